// Normalization of rows.
//
//   forward:   mean = sum(x) / n;  rstd = 1 / sqrt(sum((x - mean)^2) / n + eps);  out = (x - mean) * rstd * w + b
//   backward:  h = (x - mean) * rstd;  g = grad * w;  out = rstd * (g - sum(g) / n - h * sum(g * h) / n)
// Without centring, mean = 0 and the term sum(g) / n is left out.
#include "tercel/ops/norm_impl.h"

#include <cmath>

#include "tercel/util/macros.h"

namespace tercel::TERCEL_ISA {

namespace {

// Sums that do not wait for each other, and that the compiler keeps in vectors.
constexpr int kSums = 32;

template <class T, class Term>
TERCEL_ALWAYS_INLINE T sum_of(int64_t n, Term term) {
  T sums[kSums] = {};
  int64_t i = 0;
  for (; i + kSums <= n; i += kSums)
    for (int j = 0; j < kSums; ++j) sums[j] += term(i + j);
  for (; i < n; ++i) sums[i % kSums] += term(i);
  T sum = 0;
  for (int width = kSums / 2; width > 0; width /= 2)
    for (int j = 0; j < width; ++j) sums[j] += sums[j + width];
  sum = sums[0];
  return sum;
}

template <class T>
void forward(const RowNormLoop& l, int64_t begin, int64_t end) {
  const int64_t n = l.n, inner = n / l.parts;
  const T count = static_cast<T>(n);
  for (int64_t r = begin; r < end; ++r) {
    const T* x = static_cast<const T*>(l.x) + r * n;
    T* out = static_cast<T*>(l.out) + r * n;
    const T mean = l.centre ? sum_of<T>(n, [x](int64_t i) { return x[i]; }) / count : T(0);
    const T square = sum_of<T>(n, [x, mean](int64_t i) { return (x[i] - mean) * (x[i] - mean); });
    const T rstd = static_cast<T>(1 / std::sqrt(static_cast<double>(square) / static_cast<double>(n) + l.eps));
    static_cast<T*>(l.mean)[r] = mean;
    static_cast<T*>(l.rstd)[r] = rstd;
    const T* w = l.weight ? static_cast<const T*>(l.weight) + r % l.period * l.parts : nullptr;
    const T* b = l.bias ? static_cast<const T*>(l.bias) + r % l.period * l.parts : nullptr;
    if (inner == 1 && w && b) {
      for (int64_t i = 0; i < n; ++i) out[i] = (x[i] - mean) * rstd * w[i] + b[i];
    } else if (inner == 1 && w) {
      for (int64_t i = 0; i < n; ++i) out[i] = (x[i] - mean) * rstd * w[i];
    } else {
      for (int64_t p = 0; p < l.parts; ++p, x += inner, out += inner) {
        const T factor = w ? w[p] : T(1), shift = b ? b[p] : T(0);
        for (int64_t i = 0; i < inner; ++i) out[i] = (x[i] - mean) * rstd * factor + shift;
      }
    }
  }
}

template <class T, class Weight>
TERCEL_ALWAYS_INLINE void backward_row(const RowNormLoop& l, int64_t r, Weight weight) {
  const int64_t n = l.n;
  const T count = static_cast<T>(n);
  const T* x = static_cast<const T*>(l.x) + r * n;
  const T* g = static_cast<const T*>(l.grad) + r * n;
  T* out = static_cast<T*>(l.out) + r * n;
  const T mean = static_cast<const T*>(l.mean)[r], rstd = static_cast<const T*>(l.rstd)[r];
  const T shift = l.centre ? sum_of<T>(n, [&](int64_t i) { return g[i] * weight(i); }) / count : T(0);
  const T slope = sum_of<T>(n, [&](int64_t i) { return g[i] * weight(i) * ((x[i] - mean) * rstd); }) / count;
  for (int64_t i = 0; i < n; ++i) out[i] = rstd * (g[i] * weight(i) - shift - (x[i] - mean) * rstd * slope);
}

template <class T>
void backward(const RowNormLoop& l, int64_t begin, int64_t end) {
  const int64_t inner = l.n / l.parts;
  for (int64_t r = begin; r < end; ++r) {
    const T* w = l.weight ? static_cast<const T*>(l.weight) + r % l.period * l.parts : nullptr;
    if (!w)
      backward_row<T>(l, r, [](int64_t) { return T(1); });
    else if (inner == 1)
      backward_row<T>(l, r, [w](int64_t i) { return w[i]; });
    else
      backward_row<T>(l, r, [w, inner](int64_t i) { return w[i / inner]; });
  }
}

}  // namespace

void row_norm(const RowNormLoop& loop, int64_t begin, int64_t end) {
  if (loop.wide) return forward<double>(loop, begin, end);
  forward<float>(loop, begin, end);
}
void row_norm_backward(const RowNormLoop& loop, int64_t begin, int64_t end) {
  if (loop.wide) return backward<double>(loop, begin, end);
  backward<float>(loop, begin, end);
}

}  // namespace tercel::TERCEL_ISA
