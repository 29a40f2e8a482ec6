// Normalization of rows.
//
//   forward:   mean = sum(x) / n;  rstd = 1 / sqrt(sum((x - mean)^2) / n + eps);  out = (x - mean) * rstd * w + b
//   backward:  h = (x - mean) * rstd;  g = grad * w;  out = rstd * (g - sum(g) / n - h * sum(g * h) / n)
//              dw = sum over rows of grad * h;  db = sum over rows of grad
// Without centring, mean = 0 and the term sum(g) / n is dropped.
#include "tercel/ops/nn/norm_kernels.h"

#include <cmath>
#include <cstring>

#include "tercel/ops/common/cpu/lane_sums.h"
#include "tercel/util/macros.h"

namespace tercel::TERCEL_ISA {

namespace {

/** One row of a loop, and its statistics. */
template <class T>
struct Row {
  using V = Vec<T>;
  const RowNormLoop& l;
  int64_t r, n, parts, inner;
  const T *x, *w, *b;
  T mean = 0, rstd = 0;

  Row(const RowNormLoop& loop, int64_t number)
      : l(loop), r(number), n(l.n), parts(l.parts), inner(n / parts), x(static_cast<const T*>(l.x) + r * n) {
    const int64_t at = r % l.period * parts;
    w = l.weight ? static_cast<const T*>(l.weight) + at : nullptr;
    b = l.bias ? static_cast<const T*>(l.bias) + at : nullptr;
  }

  void measure() {
    if (l.centre) mean = lane_sum<T>(n, [&](int64_t i, auto v) { return v.load(x + i); }) / static_cast<T>(n);
    const V m(mean);
    const T square = lane_sum<T>(n, [&](int64_t i, auto v) {
      const V away = v.load(x + i, m) - m;
      return away * away;
    });
    rstd = static_cast<T>(1 / std::sqrt(static_cast<double>(square) / static_cast<double>(n) + l.eps));
    static_cast<T*>(l.mean)[r] = mean;
    static_cast<T*>(l.rstd)[r] = rstd;
  }

  void write() const {
    T* out = static_cast<T*>(l.out) + r * n;
    const V m(mean), s(rstd);
    if (inner == 1 && w && b)
      return for_vectors<T>(
          n, [&](int64_t i, auto v) { v.store(out + i, (v.load(x + i) - m) * s * v.load(w + i) + v.load(b + i)); });
    if (inner == 1 && w)
      return for_vectors<T>(n, [&](int64_t i, auto v) { v.store(out + i, (v.load(x + i) - m) * s * v.load(w + i)); });
    const int64_t pieces = w || b ? parts : 1, length = n / pieces;
    for (int64_t p = 0; p < pieces; ++p) {
      const V factor(w ? w[p] : T(1)), shift(b ? b[p] : T(0));
      const T* from = x + p * length;
      T* to = out + p * length;
      for_vectors<T>(length, [&](int64_t i, auto v) { v.store(to + i, (v.load(from + i) - m) * s * factor + shift); });
    }
  }
};

/** Backward of one row. */
template <class T>
struct RowGradient : Row<T> {
  using V = Vec<T>;
  using Row<T>::l, Row<T>::r, Row<T>::n, Row<T>::parts, Row<T>::x, Row<T>::w;
  const T* g;
  T* out;
  T *dw, *db;
  V m, s;

  RowGradient(const RowNormLoop& loop, int64_t number)
      : Row<T>(loop, number),
        g(static_cast<const T*>(loop.grad) + r * n),
        out(loop.out ? static_cast<T*>(loop.out) + r * n : nullptr),
        m(static_cast<const T*>(loop.mean)[r]),
        s(static_cast<const T*>(loop.rstd)[r]) {
    const int64_t at = (r / l.block * l.period + r % l.period) * parts;
    dw = sums(l.weight_sums, at);
    db = sums(l.bias_sums, at);
  }
  /** Sums of the block that contains this row; the first row of a block clears them. */
  T* sums(void* all, int64_t at) const {
    if (!all) return nullptr;
    T* to = static_cast<T*>(all) + at;
    if (r % l.block < l.period) std::memset(to, 0, static_cast<size_t>(parts) * sizeof(T));
    return to;
  }

  template <class Vector>
  TERCEL_ALWAYS_INLINE V normalised(const T* p, Vector v) const {
    return (v.load(p, m) - m) * s;
  }

  /** One weight per element. */
  void by_element() const {
    if (out) {
      LaneSums<T> shifts, slopes;
      for_lane_vectors<T>(n, [&](int64_t i, int64_t j, auto v) {
        const V scaled = v.load(g + i) * v.load(w + i);
        shifts.part[j] = shifts.part[j] + scaled;
        slopes.part[j] = slopes.part[j] + scaled * normalised(x + i, v);
      });
      const V shift(l.centre ? shifts.total() / static_cast<T>(n) : T(0)), slope(slopes.total() / static_cast<T>(n));
      for_vectors<T>(n, [&](int64_t i, auto v) {
        const V scaled = v.load(g + i) * v.load(w + i);
        v.store(out + i, s * (scaled - shift - normalised(x + i, v) * slope));
      });
    }
    if (dw)
      for_vectors<T>(
          n, [&](int64_t i, auto v) { v.store(dw + i, v.load(dw + i) + v.load(g + i) * normalised(x + i, v)); });
    if (db) for_vectors<T>(n, [&](int64_t i, auto v) { v.store(db + i, v.load(db + i) + v.load(g + i)); });
  }

  /** One weight, or none, per piece. */
  void by_piece() const {
    const int64_t pieces = w || dw || db ? parts : 1, length = n / pieces;
    T shift = 0, slope = 0;
    for (int64_t p = 0; p < pieces; ++p) {
      const T *gs = g + p * length, *xs = x + p * length;
      LaneSums<T> shifts, slopes;
      for_lane_vectors<T>(length, [&](int64_t i, int64_t j, auto v) {
        const V grad = v.load(gs + i);
        shifts.part[j] = shifts.part[j] + grad;
        slopes.part[j] = slopes.part[j] + grad * normalised(xs + i, v);
      });
      const T of_shift = shifts.total(), of_slope = slopes.total(), factor = w ? w[p] : T(1);
      if (dw) dw[p] += of_slope;
      if (db) db[p] += of_shift;
      shift += factor * of_shift;
      slope += factor * of_slope;
    }
    if (!out) return;
    const V down(l.centre ? shift / static_cast<T>(n) : T(0)), along(slope / static_cast<T>(n));
    for (int64_t p = 0; p < pieces; ++p) {
      const T *gs = g + p * length, *xs = x + p * length;
      T* to = out + p * length;
      const V factor(w ? w[p] : T(1));
      for_vectors<T>(length, [&](int64_t i, auto v) {
        v.store(to + i, s * (v.load(gs + i) * factor - down - normalised(xs + i, v) * along));
      });
    }
  }
};

template <class T>
void forward(const RowNormLoop& l, int64_t begin, int64_t end) {
  for (int64_t r = begin; r < end; ++r) {
    Row<T> row(l, r);
    row.measure();
    row.write();
  }
}

template <class T>
void backward(const RowNormLoop& l, int64_t begin, int64_t end) {
  for (int64_t r = begin; r < end; ++r) {
    const RowGradient<T> row(l, r);
    if (row.inner == 1 && row.w)
      row.by_element();
    else
      row.by_piece();
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
