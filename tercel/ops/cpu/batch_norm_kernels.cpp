// Batch normalization of x [n, channels], a strip of channels at a time.
//
//   statistics:  mean = sum x / n;  var = sum (x - mean)^2 / n;  r = 1 / sqrt(var + eps)
//   forward:     (x - mean) * (r * weight) + bias
//   backward:    db = sum g;  dw = sum g * (x - mean) * r
//                dx = weight * r * (g - [db + (x - mean) * r * dw] / n), without [] where the statistics are given
//
// Sums are kept for stretches of rows and then added to totals, so that rounding errors do not grow with n.
#include "tercel/ops/batch_norm_impl.h"

#include <cmath>

namespace tercel::TERCEL_ISA {

namespace {

constexpr int64_t kStrip = kBatchNormStrip;
constexpr int64_t kStretch = 256;

template <class T>
struct Strip {
  int64_t first, width;
  const BatchNormLoop& loop;

  Strip(const BatchNormLoop& of, int64_t number)
      : first(number * kStrip), width(of.channels - first < kStrip ? of.channels - first : kStrip), loop(of) {}

  const T* row(const void* matrix, int64_t r) const {
    return static_cast<const T*>(matrix) + r * loop.channels + first;
  }
  T* row(void* matrix, int64_t r) const { return static_cast<T*>(matrix) + r * loop.channels + first; }
  const T* channels(const void* values) const { return static_cast<const T*>(values) + first; }
  T* channels(void* values) const { return static_cast<T*>(values) + first; }

  // total[c] = sum over rows of term(r, c).
  template <class Term>
  void sum_rows(T* total, Term term) const {
    alignas(64) T part[kStrip];
    for (int64_t c = 0; c < width; ++c) total[c] = part[c] = T(0);
    for (int64_t r = 0; r < loop.n; ++r) {
      for (int64_t c = 0; c < width; ++c) part[c] += term(r, c);
      if ((r + 1) % kStretch != 0 && r + 1 != loop.n) continue;
      for (int64_t c = 0; c < width; ++c) {
        total[c] += part[c];
        part[c] = T(0);
      }
    }
  }
};

template <class T>
void statistics(const BatchNormLoop& loop, int64_t begin, int64_t end) {
  for (int64_t s = begin; s < end; ++s) {
    const Strip<T> strip(loop, s);
    const T n = static_cast<T>(loop.n);
    T *mean = strip.channels(loop.mean), *var = strip.channels(loop.var), *r = strip.channels(loop.inverse_std);
    alignas(64) T total[kStrip], center[kStrip];
    strip.sum_rows(total, [&](int64_t row, int64_t c) { return strip.row(loop.x, row)[c]; });
    for (int64_t c = 0; c < strip.width; ++c) mean[c] = center[c] = total[c] / n;
    strip.sum_rows(total, [&](int64_t row, int64_t c) {
      const T distance = strip.row(loop.x, row)[c] - center[c];
      return distance * distance;
    });
    for (int64_t c = 0; c < strip.width; ++c) {
      var[c] = total[c] / n;
      r[c] = T(1) / std::sqrt(var[c] + static_cast<T>(loop.eps));
    }
  }
}

template <class T>
void forward(const BatchNormLoop& loop, int64_t begin, int64_t end) {
  for (int64_t s = begin; s < end; ++s) {
    const Strip<T> strip(loop, s);
    alignas(64) T mean[kStrip], factor[kStrip], shift[kStrip];
    for (int64_t c = 0; c < strip.width; ++c) {
      mean[c] = strip.channels(loop.mean)[c];
      factor[c] = strip.channels(loop.inverse_std)[c] * (loop.weight ? strip.channels(loop.weight)[c] : T(1));
      shift[c] = loop.bias ? strip.channels(loop.bias)[c] : T(0);
    }
    for (int64_t r = 0; r < loop.n; ++r) {
      const T* x = strip.row(loop.x, r);
      T* out = strip.row(loop.out, r);
      for (int64_t c = 0; c < strip.width; ++c) out[c] = (x[c] - mean[c]) * factor[c] + shift[c];
    }
  }
}

template <class T>
void backward(const BatchNormLoop& loop, int64_t begin, int64_t end) {
  for (int64_t s = begin; s < end; ++s) {
    const Strip<T> strip(loop, s);
    alignas(64) T mean[kStrip], r[kStrip], sum[kStrip], dot[kStrip];
    for (int64_t c = 0; c < strip.width; ++c) {
      mean[c] = strip.channels(loop.mean)[c];
      r[c] = strip.channels(loop.inverse_std)[c];
    }
    strip.sum_rows(sum, [&](int64_t row, int64_t c) { return strip.row(loop.grad, row)[c]; });
    strip.sum_rows(dot, [&](int64_t row, int64_t c) {
      return strip.row(loop.grad, row)[c] * ((strip.row(loop.x, row)[c] - mean[c]) * r[c]);
    });
    for (int64_t c = 0; c < strip.width; ++c) {
      if (loop.weight_grad) strip.channels(loop.weight_grad)[c] = dot[c];
      if (loop.bias_grad) strip.channels(loop.bias_grad)[c] = sum[c];
    }
    if (!loop.out) continue;
    alignas(64) T factor[kStrip];
    const T n = static_cast<T>(loop.n);
    for (int64_t c = 0; c < strip.width; ++c) {
      factor[c] = r[c] * (loop.weight ? strip.channels(loop.weight)[c] : T(1));
      sum[c] = loop.training ? sum[c] / n : T(0);
      dot[c] = loop.training ? dot[c] * r[c] / n : T(0);
    }
    for (int64_t row = 0; row < loop.n; ++row) {
      const T *x = strip.row(loop.x, row), *g = strip.row(loop.grad, row);
      T* out = strip.row(loop.out, row);
      for (int64_t c = 0; c < strip.width; ++c) out[c] = factor[c] * (g[c] - sum[c] - (x[c] - mean[c]) * dot[c]);
    }
  }
}

}  // namespace

void batch_norm_statistics(const BatchNormLoop& loop, int64_t begin, int64_t end) {
  if (loop.compute == Compute::F64) return statistics<double>(loop, begin, end);
  statistics<float>(loop, begin, end);
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
