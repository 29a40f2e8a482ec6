// Depthwise convolutions, channels-last.
//
//   forward:  for row of positions, vector of channels, few positions o:
//               acc[o] = bias;  for tap k with pixels p[o]:  acc[o] += x[p[o]] * w[k];  y[o] = acc[o]
//   input:    for position o, block of channels:  for tap k with a pixel p:  x[p] += y[o] * w[k]
//   weight:   for row of positions, block, k:  acc = 0;  for o in the row:  acc += y[o] * x[p];  w[k] += acc
#include <type_traits>

#include "tercel/ops/common/cpu/simd.h"
#include "tercel/ops/nn/depthwise_kernels.h"
#include "tercel/util/ceil_div.h"

namespace tercel::TERCEL_ISA {

namespace {

// Vectors of channels whose sums are kept in registers.
constexpr int kBlockVectors = 4;

int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

// Channels that do not fill a vector are computed one by one.
template <class V, class T>
TERCEL_ALWAYS_INLINE V get(const T* p) {
  V v;
  __builtin_memcpy(&v, p, sizeof(V));
  return v;
}
template <class V, class T>
TERCEL_ALWAYS_INLINE void put(T* p, V v) {
  __builtin_memcpy(p, &v, sizeof(V));
}

/** Calls fn.operator()<V, count>(channel) for blocks of `count` V's that cover channels [begin, end). */
template <class T, class Fn>
TERCEL_ALWAYS_INLINE void for_each_block(int64_t begin, int64_t end, Fn fn) {
  int64_t c = begin;
  for (; c + kBlockVectors * kLanes<T> <= end; c += kBlockVectors * kLanes<T>)
    fn.template operator()<Simd<T>, kBlockVectors>(c);
  for (; c + kLanes<T> <= end; c += kLanes<T>) fn.template operator()<Simd<T>, 1>(c);
  for (; c < end; ++c) fn.template operator()<T, 1>(c);
}

/** Calls fn.operator()<V>(channel) for the vectors V that cover channels [begin, end). */
template <class T, class Fn>
TERCEL_ALWAYS_INLINE void for_each_vector(int64_t begin, int64_t end, Fn fn) {
  int64_t c = begin;
  for (; c + kLanes<T> <= end; c += kLanes<T>) fn.template operator()<Simd<T>>(c);
  for (; c < end; ++c) fn.template operator()<T>(c);
}

/** Taps [first, last) of a dimension that read a pixel at a position, and the pixel of tap 0, which may not exist. */
struct Taps {
  int64_t first, last, pixel;

  Taps(int64_t first_tap, int64_t last_tap, int64_t first_pixel)
      : first(first_tap), last(last_tap), pixel(first_pixel) {}
  Taps(const DepthwiseLoop& l, int d, int64_t position) : pixel(position * l.stride[d] - l.padding[d]) {
    const int64_t step = l.dilation[d];
    first = pixel >= 0 ? 0 : step == 1 ? -pixel : ceil_div(-pixel, step);
    last = l.in[d] <= pixel ? 0 : step == 1 ? l.in[d] - pixel : ceil_div(l.in[d] - pixel, step);
    last = least(last, l.kernel[d]);
    first = least(first, most(last, 0));
  }
};

/** Calls visit(tap, pixel) for the taps of a position that are inside the image. */
template <class Visit>
TERCEL_ALWAYS_INLINE void for_each_tap(const DepthwiseLoop& l, const Taps& depth, const Taps& height, const Taps& width,
                                       Visit visit) {
  for (int64_t kd = depth.first; kd < depth.last; ++kd)
    for (int64_t kh = height.first; kh < height.last; ++kh) {
      const int64_t row = (depth.pixel + kd * l.dilation[0]) * l.in[1] + height.pixel + kh * l.dilation[1];
      const int64_t tap = (kd * l.kernel[1] + kh) * l.kernel[2];
      for (int64_t kw = width.first; kw < width.last; ++kw)
        visit(tap + kw, row * l.in[2] + width.pixel + kw * l.dilation[2]);
    }
}

/** Calls visit(position, depth, height, width) for all positions, with their taps. */
template <class Visit>
TERCEL_ALWAYS_INLINE void for_each_position(const DepthwiseLoop& l, Visit visit) {
  int64_t position = 0;
  for (int64_t od = 0; od < l.out[0]; ++od) {
    const Taps depth(l, 0, od);
    for (int64_t oh = 0; oh < l.out[1]; ++oh) {
      const Taps height(l, 1, oh);
      for (int64_t ow = 0; ow < l.out[2]; ++ow) visit(position++, depth, height, Taps(l, 2, ow));
    }
  }
}

/** Positions [first, last) of an output row whose taps of the last dimension are all inside the image. */
struct Interior {
  int64_t first, last;

  explicit Interior(const DepthwiseLoop& l) {
    const int64_t step = l.stride[2], reach = (l.kernel[2] - 1) * l.dilation[2];
    const int64_t room = l.in[2] + l.padding[2] - reach;
    first = least(ceil_div(l.padding[2], step), l.out[2]);
    last = most(first, least(l.out[2], room <= 0 ? 0 : ceil_div(room, step)));
  }
};

/** A vector of channels at kCount positions of a row with the same taps; `width` is that of the first one. */
template <class V, int kCount, class T>
TERCEL_ALWAYS_INLINE void sum_taps(const DepthwiseLoop& l, const T* x, const T* weight, const T* bias, T* y,
                                   const Taps& depth, const Taps& height, const Taps& width) {
  // A stride that no second position uses may be any number.
  const int64_t step = kCount > 1 ? l.stride[2] * l.channels : 0;
  V acc[kCount];
  TERCEL_UNROLL
  for (int o = 0; o < kCount; ++o) acc[o] = bias ? get<V>(bias) : V{};
  for_each_tap(l, depth, height, width, [&](int64_t tap, int64_t pixel) {
    const T* xs = x + pixel * l.channels;
    const V w = get<V>(weight + tap * l.channels);
    TERCEL_UNROLL
    for (int o = 0; o < kCount; ++o) acc[o] = multiply_add(get<V>(xs + o * step), w, acc[o]);
  });
  TERCEL_UNROLL
  for (int o = 0; o < kCount; ++o) put(y + o * l.channels, acc[o]);
}

template <class T>
void run_forward(const DepthwiseLoop& l, const T* x, const T* weight, const T* bias, T* y, int64_t begin, int64_t end) {
  constexpr int kMany = 8, kSome = 4;
  const Interior interior(l);
  for (int64_t row = 0; row < l.out[0] * l.out[1]; ++row) {
    const Taps depth(l, 0, row / l.out[1]), height(l, 1, row % l.out[1]);
    T* out = y + row * l.out[2] * l.channels;
    for_each_vector<T>(begin, end, [&]<class V>(int64_t c) {
      const auto at = [&]<int kCount>(std::integral_constant<int, kCount>, int64_t ow) {
        sum_taps<V, kCount>(l, x + c, weight + c, bias ? bias + c : nullptr, out + ow * l.channels + c, depth, height,
                            Taps(l, 2, ow));
      };
      int64_t ow = 0;
      const auto until = [&](int64_t last, auto count) {
        for (; ow + count <= last; ow += count) at(count, ow);
      };
      until(interior.first, std::integral_constant<int, 1>());
      until(interior.last, std::integral_constant<int, kMany>());
      until(interior.last, std::integral_constant<int, kSome>());
      until(l.out[2], std::integral_constant<int, 1>());
    });
  }
}

template <class T>
void run_input(const DepthwiseLoop& l, const T* y, const T* weight, T* x, int64_t begin, int64_t end) {
  for_each_position(l, [&](int64_t position, const Taps& depth, const Taps& height, const Taps& width) {
    for_each_block<T>(begin, end, [&]<class V, int kCount>(int64_t c) {
      V grad[kCount];
      TERCEL_UNROLL
      for (int v = 0; v < kCount; ++v) grad[v] = get<V>(y + position * l.channels + c + v * kLanes<T>);
      for_each_tap(l, depth, height, width, [&](int64_t tap, int64_t pixel) {
        T* xs = x + pixel * l.channels + c;
        const T* ws = weight + tap * l.channels + c;
        TERCEL_UNROLL
        for (int v = 0; v < kCount; ++v)
          put(xs + v * kLanes<T>, multiply_add(grad[v], get<V>(ws + v * kLanes<T>), get<V>(xs + v * kLanes<T>)));
      });
    });
  });
}

template <class T>
void run_weight(const DepthwiseLoop& l, const T* x, const T* y, T* weight, int64_t begin, int64_t end) {
  for (int64_t od = 0; od < l.out[0]; ++od) {
    const Taps depth(l, 0, od);
    for (int64_t oh = 0; oh < l.out[1]; ++oh) {
      const Taps height(l, 1, oh);
      const T* row = y + (od * l.out[1] + oh) * l.out[2] * l.channels;
      for_each_block<T>(begin, end, [&]<class V, int kCount>(int64_t c) {
        for (int64_t kw = 0; kw < l.kernel[2]; ++kw) {
          // 0 <= ow * stride + shift < in
          const int64_t shift = kw * l.dilation[2] - l.padding[2], step = l.stride[2];
          const int64_t first = shift >= 0 ? 0 : ceil_div(-shift, step);
          const int64_t last = least(l.out[2], l.in[2] <= shift ? 0 : ceil_div(l.in[2] - shift, step));
          for_each_tap(l, depth, height, Taps(kw, kw + 1, -l.padding[2]), [&](int64_t tap, int64_t pixel) {
            V acc[kCount] = {};
            for (int64_t ow = first; ow < last; ++ow) {
              const T *ys = row + ow * l.channels + c, *xs = x + (pixel + ow * step) * l.channels + c;
              TERCEL_UNROLL
              for (int v = 0; v < kCount; ++v)
                acc[v] = multiply_add(get<V>(ys + v * kLanes<T>), get<V>(xs + v * kLanes<T>), acc[v]);
            }
            T* ws = weight + tap * l.channels + c;
            TERCEL_UNROLL
            for (int v = 0; v < kCount; ++v) put(ws + v * kLanes<T>, get<V>(ws + v * kLanes<T>) + acc[v]);
          });
        }
      });
    }
  }
}

}  // namespace

void depthwise_forward(const DepthwiseLoop& loop, const void* x, const void* weight, const void* bias, void* y,
                       int64_t begin, int64_t end) {
  const auto run = [&]<class T>() {
    run_forward<T>(loop, static_cast<const T*>(x), static_cast<const T*>(weight), static_cast<const T*>(bias),
                   static_cast<T*>(y), begin, end);
  };
  loop.wide ? run.template operator()<double>() : run.template operator()<float>();
}

void depthwise_input(const DepthwiseLoop& loop, const void* y, const void* weight, void* x, int64_t begin,
                     int64_t end) {
  const auto run = [&]<class T>() {
    run_input<T>(loop, static_cast<const T*>(y), static_cast<const T*>(weight), static_cast<T*>(x), begin, end);
  };
  loop.wide ? run.template operator()<double>() : run.template operator()<float>();
}

void depthwise_weight(const DepthwiseLoop& loop, const void* x, const void* y, void* weight, int64_t begin,
                      int64_t end) {
  const auto run = [&]<class T>() {
    run_weight<T>(loop, static_cast<const T*>(x), static_cast<const T*>(y), static_cast<T*>(weight), begin, end);
  };
  loop.wide ? run.template operator()<double>() : run.template operator()<float>();
}

}  // namespace tercel::TERCEL_ISA
