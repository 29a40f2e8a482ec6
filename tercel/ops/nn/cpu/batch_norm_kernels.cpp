// Batch normalization of images, one channel at a time or, with channels last, strips of channels.
//
//   statistics:  mean = sum x / n;  var = sum (x - mean)^2 / n;  r = 1 / sqrt(var + eps)
//   forward:     (x - mean) * (r * weight) + bias
//   backward:    db = sum g;  dw = sum g * (x - mean) * r
//                dx = weight * r * (g - [db + (x - mean) * r * dw] / n), without [] if the statistics are given
//
// A channel's sums are kept in lanes, to which its pixels are assigned cyclically, in either memory order. Lanes are
// added to totals after each stretch, so that rounding errors do not grow with n.
#include "tercel/ops/nn/batch_norm_kernels.h"

#include <algorithm>
#include <cmath>

#include "tercel/ops/common/cpu/lane_sums.h"

namespace tercel::TERCEL_ISA {

namespace {

constexpr int64_t kStretch = 8192;
// Number of channels whose lanes stay in the L1 cache.
constexpr int64_t kStrip = 64;

/** One number per channel, for a single channel or for the channels of a vector. */
template <class T>
struct OneChannel {
  int64_t c;
  TERCEL_ALWAYS_INLINE Vec<T> of(const void* values) const { return Vec<T>(static_cast<const T*>(values)[c]); }
};
template <class T, class Vector>
struct ChannelVector {
  int64_t c;
  Vector vector;
  TERCEL_ALWAYS_INLINE Vec<T> of(const void* values) const { return vector.load(static_cast<const T*>(values) + c); }
};

/** Calls part(image, first, count) for stretches of pixels, and end() after at least kStretch of them. */
template <class Part, class End>
TERCEL_ALWAYS_INLINE void for_stretches(const BatchNormLoop& l, Part part, End end) {
  int64_t done = 0;
  for (int64_t image = 0; image < l.images; ++image)
    for (int64_t first = 0; first < l.pixels; first += kStretch) {
      const int64_t count = std::min(kStretch, l.pixels - first);
      part(image, first, count);
      done += count;
      if (done < kStretch) continue;
      end();
      done = 0;
    }
  if (done > 0) end();
}

/** sum[k][c - begin] = sum over channel c of term(at, vector, channel, k) for the element at `at`. */
template <class T, int kCount, class Term>
TERCEL_ALWAYS_INLINE void sum_planes(const BatchNormLoop& l, int64_t begin, int64_t end, T (&sum)[kCount][kStrip],
                                     Term term) {
  for (int64_t c = begin; c < end; ++c) {
    LaneSums<T> lanes[kCount];
    T total[kCount] = {};
    for_stretches(
        l,
        [&](int64_t image, int64_t first, int64_t count) {
          const int64_t at = (image * l.channels + c) * l.pixels + first;
          for_lane_vectors<T>(count, [&](int64_t i, int64_t j, auto vector) {
            Vec<T> value[kCount];
            term(at + i, vector, OneChannel<T>{c}, value);
            for (int k = 0; k < kCount; ++k) lanes[k].part[j] = lanes[k].part[j] + value[k];
          });
        },
        [&] {
          for (int k = 0; k < kCount; ++k) {
            total[k] += lanes[k].total();
            lanes[k].clear();
          }
        });
    for (int k = 0; k < kCount; ++k) sum[k][c - begin] = total[k];
  }
}

template <class T, int kCount, class Term>
TERCEL_ALWAYS_INLINE void sum_rows(const BatchNormLoop& l, int64_t begin, int64_t end, T (&sum)[kCount][kStrip],
                                   Term term) {
  using V = Vec<T>;
  constexpr int64_t kLaneCount = kSumLanes<T>;
  alignas(64) T lanes[kLaneCount][kCount][kStrip] = {};
  for (int k = 0; k < kCount; ++k) std::fill_n(sum[k], kStrip, T(0));
  for_stretches(
      l,
      [&](int64_t image, int64_t first, int64_t count) {
        const int64_t at = (image * l.pixels + first) * l.channels + begin;
        for (int64_t p = 0; p < count; ++p)
          for_vectors<T>(end - begin, [&](int64_t i, auto vector) {
            V value[kCount];
            term(at + p * l.channels + i, vector, ChannelVector<T, decltype(vector)>{begin + i, vector}, value);
            for (int k = 0; k < kCount; ++k) {
              T* lane = lanes[p % kLaneCount][k] + i;
              (V::load(lane) + value[k]).store(lane);
            }
          });
      },
      [&] {
        for (int64_t width = kLaneCount / 2; width > 0; width /= 2)
          for (int64_t j = 0; j < width; ++j)
            for (int k = 0; k < kCount; ++k)
              for (int64_t i = 0; i < kStrip; ++i) lanes[j][k][i] += lanes[j + width][k][i];
        for (int k = 0; k < kCount; ++k)
          for (int64_t i = 0; i < kStrip; ++i) sum[k][i] += lanes[0][k][i];
        std::fill_n(&lanes[0][0][0], kLaneCount * kCount * kStrip, T(0));
      });
}

template <class T, int kCount, class Term>
TERCEL_ALWAYS_INLINE void sum_channels(const BatchNormLoop& l, int64_t begin, int64_t end, T (&sum)[kCount][kStrip],
                                       Term term) {
  if (l.channels_last) return sum_rows<T>(l, begin, end, sum, term);
  sum_planes<T>(l, begin, end, sum, term);
}

template <class T>
void statistics(const BatchNormLoop& l, int64_t begin, int64_t end) {
  const T n = static_cast<T>(l.images * l.pixels);
  const T* x = static_cast<const T*>(l.x);
  T *mean = static_cast<T*>(l.mean), *var = static_cast<T*>(l.var), *r = static_cast<T*>(l.inverse_std);
  for (int64_t first = begin; first < end; first += kStrip) {
    const int64_t last = std::min(first + kStrip, end);
    T sum[1][kStrip];
    sum_channels<T>(l, first, last, sum,
                    [&](int64_t at, auto vector, auto, Vec<T>* value) { value[0] = vector.load(x + at); });
    for (int64_t c = first; c < last; ++c) mean[c] = sum[0][c - first] / n;
    sum_channels<T>(l, first, last, sum, [&](int64_t at, auto vector, auto channel, Vec<T>* value) {
      const Vec<T> center = channel.of(l.mean), distance = vector.load(x + at, center) - center;
      value[0] = distance * distance;
    });
    for (int64_t c = first; c < last; ++c) {
      var[c] = sum[0][c - first] / n;
      r[c] = T(1) / std::sqrt(var[c] + static_cast<T>(l.eps));
    }
  }
}

template <class T>
void gradient_sums(const BatchNormLoop& l, int64_t begin, int64_t end) {
  const T n = static_cast<T>(l.images * l.pixels);
  const T *x = static_cast<const T*>(l.x), *g = static_cast<const T*>(l.grad);
  for (int64_t first = begin; first < end; first += kStrip) {
    const int64_t last = std::min(first + kStrip, end);
    T sum[2][kStrip];
    sum_channels<T>(l, first, last, sum, [&](int64_t at, auto vector, auto channel, Vec<T>* value) {
      const Vec<T> center = channel.of(l.mean);
      value[0] = vector.load(g + at);
      value[1] = value[0] * ((vector.load(x + at, center) - center) * channel.of(l.inverse_std));
    });
    for (int64_t c = first; c < last; ++c) {
      const T total = sum[0][c - first], dot = sum[1][c - first];
      static_cast<T*>(l.grad_sum)[c] = total;
      static_cast<T*>(l.grad_dot)[c] = dot;
      if (!l.shift) continue;
      static_cast<T*>(l.shift)[c] = total / n;
      static_cast<T*>(l.slope)[c] = dot * static_cast<const T*>(l.inverse_std)[c] / n;
    }
  }
}

/** Calls step(at, vector, channel) for the elements of rows [begin, end). */
template <class T, class Step>
TERCEL_ALWAYS_INLINE void for_rows(const BatchNormLoop& l, int64_t begin, int64_t end, Step step) {
  const int64_t length = l.channels_last ? l.channels : l.pixels;
  if (l.channels_last) {
    for (int64_t row = begin; row < end; ++row)
      for_vectors<T>(length, [&](int64_t i, auto vector) {
        step(row * length + i, vector, ChannelVector<T, decltype(vector)>{i, vector});
      });
  } else {
    for (int64_t row = begin; row < end; ++row)
      for_vectors<T>(length,
                     [&](int64_t i, auto vector) { step(row * length + i, vector, OneChannel<T>{row % l.channels}); });
  }
}

template <class T>
void forward(const BatchNormLoop& l, int64_t begin, int64_t end) {
  const T* x = static_cast<const T*>(l.x);
  T* out = static_cast<T*>(l.out);
  for_rows<T>(l, begin, end, [&](int64_t at, auto vector, auto channel) {
    const Vec<T> r = channel.of(l.inverse_std), factor = l.weight ? r * channel.of(l.weight) : r;
    const Vec<T> shift = l.bias ? channel.of(l.bias) : Vec<T>(T(0));
    vector.store(out + at, (vector.load(x + at) - channel.of(l.mean)) * factor + shift);
  });
}

template <class T>
void backward(const BatchNormLoop& l, int64_t begin, int64_t end) {
  using V = Vec<T>;
  const T *x = static_cast<const T*>(l.x), *g = static_cast<const T*>(l.grad);
  T* out = static_cast<T*>(l.out);
  for_rows<T>(l, begin, end, [&](int64_t at, auto vector, auto channel) {
    const V r = channel.of(l.inverse_std), factor = l.weight ? r * channel.of(l.weight) : r;
    V grad = vector.load(g + at);
    if (l.shift) grad = grad - channel.of(l.shift) - (vector.load(x + at) - channel.of(l.mean)) * channel.of(l.slope);
    vector.store(out + at, factor * grad);
  });
}

}  // namespace

void batch_norm_statistics(const BatchNormLoop& loop, int64_t begin, int64_t end) {
  if (loop.compute == Compute::F64) return statistics<double>(loop, begin, end);
  statistics<float>(loop, begin, end);
}

void batch_norm_sums(const BatchNormLoop& loop, int64_t begin, int64_t end) {
  if (loop.compute == Compute::F64) return gradient_sums<double>(loop, begin, end);
  gradient_sums<float>(loop, begin, end);
}

void batch_norm(const BatchNormLoop& loop, int64_t begin, int64_t end) {
  if (loop.compute == Compute::F64) return forward<double>(loop, begin, end);
  forward<float>(loop, begin, end);
}

void batch_norm_backward(const BatchNormLoop& loop, int64_t begin, int64_t end) {
  if (loop.compute == Compute::F64) return backward<double>(loop, begin, end);
  backward<float>(loop, begin, end);
}

}  // namespace tercel::TERCEL_ISA
