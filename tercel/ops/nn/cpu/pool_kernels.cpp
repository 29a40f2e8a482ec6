// Pooling and resizing of images.
//
//   for each row of the output:   combine the input rows in its window, element by element;
//                                 combine the elements of the resulting row in each output's window.
//
// The first loop is over contiguous elements in both memory formats, so a window costs its height plus its width, not
// its area.
#include "tercel/ops/nn/pool_kernels.h"

#include <cstring>

#include "tercel/ops/common/cpu/simd.h"
#include "tercel/ops/common/cpu/vec.h"
#include "tercel/util/macros.h"

namespace tercel::TERCEL_ISA {

namespace {

// Whether v replaces the current maximum: NaN always does.
template <class T>
TERCEL_ALWAYS_INLINE bool beats(T v, T best) {
  return v > best || v != v;
}

// Maximum over rows, and the image row that contained it.
template <class T>
void take_row(const T* row, int32_t number, int64_t count, T* best, int32_t* rows) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) {
    const T v = row[i], b = best[i];
    const bool wins = (v > b) | (v != v);
    best[i] = wins ? v : b;
    rows[i] = wins ? number : rows[i];
  }
}
template <class T>
void take_values(const T* row, int64_t count, T* best) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) {
    const T v = row[i], b = best[i];
    best[i] = ((v > b) | (v != v)) ? v : b;
  }
}

template <class T>
void max_rows(const MaxPoolLoop& l, void* scratch, int64_t begin, int64_t end) {
  const int64_t width = l.in[2] * l.inner;
  T* best = static_cast<T*>(scratch);
  auto* rows = reinterpret_cast<int32_t*>(best + width);
  for (int64_t r = begin; r < end; ++r) {
    const int64_t oh = r % l.out[1], od = r / l.out[1] % l.out[0], outer = r / l.out[1] / l.out[0];
    const T* image = static_cast<const T*>(l.x) + outer * l.in[0] * l.in[1] * width;
    bool first = true;
    for (int64_t kd = 0; kd < l.count[0][od]; ++kd)
      for (int64_t kh = 0; kh < l.count[1][oh]; ++kh) {
        const int64_t number = (l.start[0][od] + kd * l.step[0]) * l.in[1] + l.start[1][oh] + kh * l.step[1];
        const T* row = image + number * width;
        if (first) {
          std::memcpy(best, row, static_cast<size_t>(width) * sizeof(T));
          if (l.indices)
            for (int64_t i = 0; i < width; ++i) rows[i] = static_cast<int32_t>(number);
          first = false;
        } else if (l.indices) {
          take_row(row, static_cast<int32_t>(number), width, best, rows);
        } else {
          take_values(row, width, best);
        }
      }
    T* out = static_cast<T*>(l.out_values) + r * l.out[2] * l.inner;
    int64_t* indices = l.indices ? l.indices + r * l.out[2] * l.inner : nullptr;
    for (int64_t ow = 0; ow < l.out[2]; ++ow, out += l.inner) {
      const int64_t start = l.start[2][ow], count = l.count[2][ow];
      if (!indices) {
        std::memcpy(out, best + start * l.inner, static_cast<size_t>(l.inner) * sizeof(T));
        for (int64_t k = 1; k < count; ++k) take_values(best + (start + k * l.step[2]) * l.inner, l.inner, out);
        continue;
      }
      for (int64_t c = 0; c < l.inner; ++c) {
        int64_t at = start;
        T v = best[start * l.inner + c];
        int32_t row = rows[start * l.inner + c];
        for (int64_t k = 1; k < count; ++k) {
          const int64_t other = start + k * l.step[2];
          const T w = best[other * l.inner + c];
          const int32_t other_row = rows[other * l.inner + c];
          // For ties, the first in row-major order wins.
          if (beats(w, v) || (w == v && other_row < row)) {
            v = w;
            row = other_row;
            at = other;
          }
        }
        out[c] = v;
        indices[c] = row * l.in[2] + at;
      }
      indices += l.inner;
    }
  }
}

template <class T>
void scatter_grad(const MaxPoolBackwardLoop& l, int64_t begin, int64_t end) {
  for (int64_t o = begin; o < end; ++o) {
    T* image = static_cast<T*>(l.x_grad) + o * l.in_pixels * l.inner;
    const T* grad = static_cast<const T*>(l.grad) + o * l.out_pixels * l.inner;
    const int64_t* index = l.indices + o * l.out_pixels * l.inner;
    std::memset(image, 0, static_cast<size_t>(l.in_pixels * l.inner) * sizeof(T));
    for (int64_t p = 0; p < l.out_pixels; ++p)
      for (int64_t c = 0; c < l.inner; ++c, ++grad, ++index) image[*index * l.inner + c] += *grad;
  }
}

template <class T>
TERCEL_ALWAYS_INLINE void add_times(T* to, const T* from, T factor, int64_t count, bool first) {
  if (first) {
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) to[i] = from[i] * factor;
  } else {
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) to[i] += from[i] * factor;
  }
}

/** sums[0 .. n) = the sums over rows of `width`; n is kCount vectors, or less than one vector. */
template <int kCount, class T>
TERCEL_ALWAYS_INLINE void add_rows(const T* x, int64_t rows, int64_t width, T* sums, int64_t n) {
  using V = Vec<T>;
  V acc[kCount];
  for (int v = 0; v < kCount; ++v) acc[v] = V(0);
  for (int64_t r = 0; r < rows; ++r, x += width) {
    TERCEL_UNROLL
    for (int v = 0; v < kCount; ++v) acc[v] = acc[v] + (n < V::kSize ? load_partial(x, n) : V::load(x + v * V::kSize));
  }
  for (int v = 0; v < kCount; ++v) {
    if (n < V::kSize)
      store_partial(sums, acc[v], n);
    else
      acc[v].store(sums + v * V::kSize);
  }
}

/** Sums of whole images: over rows, then halves of a row are added; in the same order in both memory formats. */
template <class T>
void sum_images(const SeparableResizeLoop& l, T* sums, int64_t begin, int64_t end) {
  constexpr int64_t kSize = Vec<T>::kSize;
  const int64_t rows = l.in[0] * l.in[1], width = l.in[2] * l.inner;
  const T divisor = static_cast<T>(l.divisor);
  for (int64_t image = begin; image < end; ++image) {
    const T* x = static_cast<const T*>(l.x) + image * rows * width;
    int64_t i = 0;
    for (; i + 4 * kSize <= width; i += 4 * kSize) add_rows<4>(x + i, rows, width, sums + i, 4 * kSize);
    for (; i + kSize <= width; i += kSize) add_rows<1>(x + i, rows, width, sums + i, kSize);
    if (i < width) add_rows<1>(x + i, rows, width, sums + i, width - i);
    for (int64_t n = l.in[2]; n > 1;) {
      const int64_t half = (n + 1) / 2;
      const T* upper = sums + half * l.inner;
#pragma GCC ivdep
      for (int64_t k = 0; k < (n - half) * l.inner; ++k) sums[k] += upper[k];
      n = half;
    }
    T* out = static_cast<T*>(l.out_values) + image * l.inner;
    for (int64_t c = 0; c < l.inner; ++c) out[c] = sums[c] / divisor;
  }
}

template <class T>
void separable_resize_rows(const SeparableResizeLoop& l, void* scratch, int64_t begin, int64_t end) {
  const int64_t width = l.in[2] * l.inner;
  const T* weight[3];
  for (int d = 0; d < 3; ++d) weight[d] = static_cast<const T*>(l.weight[d]);
  const T divisor = static_cast<T>(l.divisor);
  for (int64_t r = begin; r < end; ++r) {
    const int64_t oh = r % l.out[1], od = r / l.out[1] % l.out[0], outer = r / l.out[1] / l.out[0];
    const T* image = static_cast<const T*>(l.x) + outer * l.in[0] * l.in[1] * width;
    const int64_t d0 = l.begin[0][od], d1 = l.begin[0][od + 1], h0 = l.begin[1][oh], h1 = l.begin[1][oh + 1];
    T* sums = static_cast<T*>(scratch);
    const T* row = sums;
    if (d1 - d0 == 1 && h1 - h0 == 1 && weight[0][d0] == T(1) && weight[1][h0] == T(1)) {
      row = image + (l.index[0][d0] * l.in[1] + l.index[1][h0]) * width;
    } else {
      bool first = true;
      for (int64_t d = d0; d < d1; ++d)
        for (int64_t h = h0; h < h1; ++h) {
          add_times(sums, image + (l.index[0][d] * l.in[1] + l.index[1][h]) * width, weight[0][d] * weight[1][h], width,
                    first);
          first = false;
        }
      if (first) std::memset(sums, 0, static_cast<size_t>(width) * sizeof(T));
    }
    T* out = static_cast<T*>(l.out_values) + r * l.out[2] * l.inner;
    if (l.inner == 1) {
      for (int64_t ow = 0; ow < l.out[2]; ++ow) {
        T sum = 0;
        for (int64_t t = l.begin[2][ow]; t < l.begin[2][ow + 1]; ++t) sum += row[l.index[2][t]] * weight[2][t];
        out[ow] = sum;
      }
    } else {
      for (int64_t ow = 0; ow < l.out[2]; ++ow) {
        const int64_t t0 = l.begin[2][ow];
        if (t0 == l.begin[2][ow + 1]) std::memset(out + ow * l.inner, 0, static_cast<size_t>(l.inner) * sizeof(T));
        for (int64_t t = t0; t < l.begin[2][ow + 1]; ++t)
          add_times(out + ow * l.inner, row + l.index[2][t] * l.inner, weight[2][t], l.inner, t == t0);
      }
    }
    if (l.divisor != 1)
      for (int64_t i = 0; i < l.out[2] * l.inner; ++i) out[i] /= divisor;
  }
}

}  // namespace

void max_pool(const MaxPoolLoop& loop, void* scratch, int64_t begin, int64_t end) {
  if (loop.dtype == ScalarType::Float64) return max_rows<double>(loop, scratch, begin, end);
  if (loop.dtype == ScalarType::Int64) return max_rows<int64_t>(loop, scratch, begin, end);
  max_rows<float>(loop, scratch, begin, end);
}
void max_pool_backward(const MaxPoolBackwardLoop& loop, int64_t begin, int64_t end) {
  if (loop.wide) return scatter_grad<double>(loop, begin, end);
  scatter_grad<float>(loop, begin, end);
}
void separable_resize_dim(const SeparableResizeLoop& loop, void* scratch, int64_t begin, int64_t end) {
  if (loop.whole)
    return loop.wide ? sum_images(loop, static_cast<double*>(scratch), begin, end)
                     : sum_images(loop, static_cast<float*>(scratch), begin, end);
  if (loop.wide) return separable_resize_rows<double>(loop, scratch, begin, end);
  separable_resize_rows<float>(loop, scratch, begin, end);
}

}  // namespace tercel::TERCEL_ISA
