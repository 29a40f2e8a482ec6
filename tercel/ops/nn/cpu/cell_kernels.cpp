// Steps of recurrent layers, after the matrix products.
//
//   LSTM:  c' = f c + i g;  h' = o tanh(c')           with i, f, o = sigmoid(sum), g = tanh(sum)
//   GRU:   h' = n + z (h - n)                         with r, z = sigmoid(x + h part), n = tanh(x + r * h part)
//   RNN:   h' = tanh(sum), or max(sum, 0)
#include "tercel/ops/nn/cell_kernels.h"

#include "tercel/ops/common/cpu/vec_math.h"
#include "tercel/util/macros.h"

namespace tercel::TERCEL_ISA {

namespace {

/** A full vector of a row, or a partial one at its end. */
template <class T, bool kWhole>
struct Piece {
  using V = Vec<T>;
  int64_t at, n;

  TERCEL_ALWAYS_INLINE V get(const T* row) const {
    if constexpr (kWhole) return V::load(row + at);
    return load_partial(row + at, n);
  }
  TERCEL_ALWAYS_INLINE void put(T* row, V v) const {
    if constexpr (kWhole)
      v.store(row + at);
    else
      store_partial(row + at, v, n);
  }
};

/** Calls body(row, piece) for the pieces of rows of n elements. */
template <class T, class Body>
TERCEL_ALWAYS_INLINE void for_each_piece(int64_t begin, int64_t end, int64_t n, Body body) {
  constexpr int64_t kSize = Vec<T>::kSize;
  for (int64_t row = begin; row < end; ++row) {
    int64_t i = 0;
    for (; i + kSize <= n; i += kSize) body(row, Piece<T, true>{i, kSize});
    if (i < n) body(row, Piece<T, false>{i, n - i});
  }
}

template <class V>
TERCEL_ALWAYS_INLINE V sigmoid(V x) {
  return V(1) / (V(1) + exp(-x));
}
/** The derivatives of sigmoid and tanh, given their results. */
template <class V>
TERCEL_ALWAYS_INLINE V sigmoid_slope(V y) {
  return y * (V(1) - y);
}
template <class V>
TERCEL_ALWAYS_INLINE V tanh_slope(V y) {
  return V(1) - y * y;
}

/** A row of a matrix with `width` columns, or null if there is no matrix. */
template <class T>
T* row_of(void* matrix, int64_t row, int64_t width) {
  return matrix ? static_cast<T*>(matrix) + row * width : nullptr;
}
template <class T>
const T* row_of(const void* matrix, int64_t row, int64_t width) {
  return matrix ? static_cast<const T*>(matrix) + row * width : nullptr;
}

template <class T>
void lstm_forward(const CellLoop& l, int64_t begin, int64_t end) {
  using V = Vec<T>;
  const int64_t n = l.hidden;
  for_each_piece<T>(begin, end, n, [&](int64_t row, auto piece) {
    T *g = row_of<T>(l.gates, row, 4 * n), *c = row_of<T>(l.c, row, n), *kept = row_of<T>(l.kept, row, n);
    const V in = sigmoid(piece.get(g)), forget = sigmoid(piece.get(g + n)), cell = tanh(piece.get(g + 2 * n)),
            out = sigmoid(piece.get(g + 3 * n));
    const V next = forget * piece.get(c) + in * cell, bounded = tanh(next), h = out * bounded;
    piece.put(c, next);
    piece.put(row_of<T>(l.h, row, n), h);
    piece.put(row_of<T>(l.out, row, n), h);
    if (!kept) return;
    piece.put(kept, bounded);
    piece.put(g, in);
    piece.put(g + n, forget);
    piece.put(g + 2 * n, cell);
    piece.put(g + 3 * n, out);
  });
}

template <class T>
void gru_forward(const CellLoop& l, int64_t begin, int64_t end) {
  using V = Vec<T>;
  const int64_t n = l.hidden;
  for_each_piece<T>(begin, end, n, [&](int64_t row, auto piece) {
    T *g = row_of<T>(l.gates, row, 3 * n), *h = row_of<T>(l.h, row, n), *kept = row_of<T>(l.kept, row, n);
    const T* share = row_of<T>(l.hidden_gates, row, 3 * n);
    const V reset = sigmoid(piece.get(g) + piece.get(share)), update = sigmoid(piece.get(g + n) + piece.get(share + n));
    const V of_state = piece.get(share + 2 * n), fresh = tanh(piece.get(g + 2 * n) + reset * of_state);
    const V next = fresh + update * (piece.get(h) - fresh);
    piece.put(h, next);
    piece.put(row_of<T>(l.out, row, n), next);
    if (!kept) return;
    piece.put(kept, of_state);
    piece.put(g, reset);
    piece.put(g + n, update);
    piece.put(g + 2 * n, fresh);
  });
}

template <class T, bool kRelu>
void rnn_forward(const CellLoop& l, int64_t begin, int64_t end) {
  using V = Vec<T>;
  const int64_t n = l.hidden;
  for_each_piece<T>(begin, end, n, [&](int64_t row, auto piece) {
    const V x = piece.get(row_of<T>(l.gates, row, n));
    V next;
    if constexpr (kRelu)
      next = where(x < V(0), V(0), x);
    else
      next = tanh(x);
    piece.put(row_of<T>(l.h, row, n), next);
    piece.put(row_of<T>(l.out, row, n), next);
  });
}

/** The gradient of h': from later steps, and from the output. */
template <class T, class P>
TERCEL_ALWAYS_INLINE Vec<T> gradient_of(const CellBackwardLoop& l, int64_t row, P piece) {
  const Vec<T> later = piece.get(row_of<T>(l.dh, row, l.hidden));
  return l.grad ? later + piece.get(row_of<T>(l.grad, row, l.hidden)) : later;
}

template <class T>
void lstm_backward(const CellBackwardLoop& l, int64_t begin, int64_t end) {
  using V = Vec<T>;
  const int64_t n = l.hidden;
  for_each_piece<T>(begin, end, n, [&](int64_t row, auto piece) {
    const T* g = row_of<T>(l.gates, row, 4 * n);
    T *to = row_of<T>(l.input_gates, row, 4 * n), *dc = row_of<T>(l.dc, row, n);
    const V in = piece.get(g), forget = piece.get(g + n), cell = piece.get(g + 2 * n), out = piece.get(g + 3 * n);
    const V bounded = piece.get(row_of<T>(l.kept, row, n)), dh = gradient_of<T>(l, row, piece);
    const V of_c = piece.get(dc) + dh * out * tanh_slope(bounded);
    piece.put(to, of_c * cell * sigmoid_slope(in));
    piece.put(to + n, of_c * piece.get(row_of<T>(l.before, row, n)) * sigmoid_slope(forget));
    piece.put(to + 2 * n, of_c * in * tanh_slope(cell));
    piece.put(to + 3 * n, dh * bounded * sigmoid_slope(out));
    piece.put(dc, of_c * forget);
  });
}

template <class T>
void gru_backward(const CellBackwardLoop& l, int64_t begin, int64_t end) {
  using V = Vec<T>;
  const int64_t n = l.hidden;
  for_each_piece<T>(begin, end, n, [&](int64_t row, auto piece) {
    const T* g = row_of<T>(l.gates, row, 3 * n);
    T *of_input = row_of<T>(l.input_gates, row, 3 * n), *of_state = row_of<T>(l.hidden_gates, row, 3 * n);
    const V reset = piece.get(g), update = piece.get(g + n), fresh = piece.get(g + 2 * n);
    const V dh = gradient_of<T>(l, row, piece), before = piece.get(row_of<T>(l.before, row, n));
    const V of_fresh = dh * (V(1) - update) * tanh_slope(fresh);
    const V of_reset = of_fresh * piece.get(row_of<T>(l.kept, row, n)) * sigmoid_slope(reset);
    const V of_update = dh * (before - fresh) * sigmoid_slope(update);
    piece.put(of_input, of_reset);
    piece.put(of_input + n, of_update);
    piece.put(of_input + 2 * n, of_fresh);
    piece.put(of_state, of_reset);
    piece.put(of_state + n, of_update);
    piece.put(of_state + 2 * n, of_fresh * reset);
    piece.put(row_of<T>(l.dh, row, n), dh * update);
  });
}

template <class T, bool kRelu>
void rnn_backward(const CellBackwardLoop& l, int64_t begin, int64_t end) {
  using V = Vec<T>;
  const int64_t n = l.hidden;
  for_each_piece<T>(begin, end, n, [&](int64_t row, auto piece) {
    const V h = piece.get(row_of<T>(l.kept, row, n)), dh = gradient_of<T>(l, row, piece);
    V sums;
    if constexpr (kRelu)
      sums = where(h > V(0), dh, V(0));
    else
      sums = dh * tanh_slope(h);
    piece.put(row_of<T>(l.input_gates, row, n), sums);
  });
}

template <class T>
void forward(const CellLoop& l, int64_t begin, int64_t end) {
  switch (l.kind) {
    case CellKind::Lstm: return lstm_forward<T>(l, begin, end);
    case CellKind::Gru: return gru_forward<T>(l, begin, end);
    case CellKind::Tanh: return rnn_forward<T, false>(l, begin, end);
    case CellKind::Relu: return rnn_forward<T, true>(l, begin, end);
  }
}
template <class T>
void backward(const CellBackwardLoop& l, int64_t begin, int64_t end) {
  switch (l.kind) {
    case CellKind::Lstm: return lstm_backward<T>(l, begin, end);
    case CellKind::Gru: return gru_backward<T>(l, begin, end);
    case CellKind::Tanh: return rnn_backward<T, false>(l, begin, end);
    case CellKind::Relu: return rnn_backward<T, true>(l, begin, end);
  }
}

}  // namespace

void cell_forward(const CellLoop& loop, int64_t begin, int64_t end) {
  loop.wide ? forward<double>(loop, begin, end) : forward<float>(loop, begin, end);
}

void cell_backward(const CellBackwardLoop& loop, int64_t begin, int64_t end) {
  loop.wide ? backward<double>(loop, begin, end) : backward<float>(loop, begin, end);
}

}  // namespace tercel::TERCEL_ISA
