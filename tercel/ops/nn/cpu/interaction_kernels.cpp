// Feature interactions.
//
//   dot:      Z = [mlp; emb] or emb alone, n x d;  T = Z transposed
//             for blocks of rows i, of columns j < i:  G[i][j] = sum over k of Z[i][k] * T[k][j], in registers
//             out = [mlp or all of emb, G[1][0:1], G[2][0:2], ..., G[n-1][0:n-1], 0]
//   backward: A = the gradients of G in both triangles, n x n, with a diagonal of zeros
//             for blocks of rows i, of columns k:  dZ[i][k] = sum over j of A[i][j] * Z[j][k], in registers
//   fm:       s = sum of v;  q = sum of v * v;  out = (s * s - q) / 2;  backward: dv = g * (s - v)
#include "tercel/ops/nn/interaction_kernels.h"

#include <algorithm>

#include "tercel/ops/common/cpu/simd.h"
#include "tercel/ops/common/cpu/tile_io.h"
#include "tercel/util/ceil_div.h"

namespace tercel::TERCEL_ISA {

namespace {

template <class T>
constexpr int64_t pad_to_vector(int64_t n) {
  return (n + kLanes<T> - 1) / kLanes<T> * kLanes<T>;
}

template <class T>
using ItemOf = std::conditional_t<sizeof(T) == 4, Item4, Item8>;

// g[r][0 : C vectors] = sum over k of rows[r][k] * columns[k], for R rows `stride` apart.
template <int R, int C, class T>
void multiply_rows(const T* rows, int64_t stride, const T* columns, int64_t ld, int64_t depth, T* g, int64_t ldg) {
  Simd<T> sum[R][C] = {};
  for (int64_t k = 0; k < depth; ++k) {
    Simd<T> column[C];
    TERCEL_UNROLL for (int c = 0; c < C; ++c) column[c] = load(columns + k * ld + c * kLanes<T>);
    TERCEL_UNROLL for (int r = 0; r < R; ++r) {
      const Simd<T> row = broadcast(rows[r * stride + k]);
      TERCEL_UNROLL for (int c = 0; c < C; ++c) sum[r][c] = multiply_add(row, column[c], sum[r][c]);
    }
  }
  TERCEL_UNROLL for (int r = 0; r < R; ++r) {
    TERCEL_UNROLL for (int c = 0; c < C; ++c) store(g + r * ldg + c * kLanes<T>, sum[r][c]);
  }
}

template <int C, class T>
void multiply_rows(int r, const T* rows, int64_t stride, const T* columns, int64_t ld, int64_t depth, T* g,
                   int64_t ldg) {
  switch (r) {
    case 8: return multiply_rows < C <= 1 ? 8 : 1, C > (rows, stride, columns, ld, depth, g, ldg);
    case 4: return multiply_rows < C <= 3 ? 4 : 1, C > (rows, stride, columns, ld, depth, g, ldg);
    case 2: return multiply_rows<2, C>(rows, stride, columns, ld, depth, g, ldg);
    default: return multiply_rows<1, C>(rows, stride, columns, ld, depth, g, ldg);
  }
}

// Number of rows to multiply with a number of vectors of columns, out of `left`: sums and columns stay in registers.
int rows_at_once(int64_t vectors, int64_t left) {
  const int most = vectors <= 1 ? 8 : (vectors <= 3 ? 4 : 2);
  return left >= most ? most : (left >= 4 && most > 4 ? 4 : (left >= 2 && most >= 2 ? 2 : 1));
}

// g[r][0 : vectors] for r rows.
template <class T>
void multiply_block(int r, int64_t vectors, const T* rows, int64_t stride, const T* columns, int64_t ld, int64_t depth,
                    T* g, int64_t ldg) {
  for (int64_t done = 0; done < vectors; done += 4) {
    const T* part = columns + done * kLanes<T>;
    T* to = g + done * kLanes<T>;
    switch (vectors - done) {
      case 1: multiply_rows<1>(r, rows, stride, part, ld, depth, to, ldg); break;
      case 2: multiply_rows<2>(r, rows, stride, part, ld, depth, to, ldg); break;
      case 3: multiply_rows<3>(r, rows, stride, part, ld, depth, to, ldg); break;
      default: multiply_rows<4>(r, rows, stride, part, ld, depth, to, ldg);
    }
  }
}

// t[k][i] = z[i][k] for `rows` rows, `ld` apart in t.
template <class T>
void transpose_into(T* t, int64_t ld, const T* z, int64_t rows, int64_t dim) {
  constexpr int64_t kStep = Transpose<ItemOf<T>>::kStep, kItem = static_cast<int64_t>(sizeof(T));
  int64_t i = 0;
  for (; i + kStep <= rows; i += kStep) {
    int64_t k = 0;
    for (; k + kStep <= dim; k += kStep)
      Transpose<ItemOf<T>>::square(reinterpret_cast<char*>(t + k * ld + i), ld * kItem,
                                   reinterpret_cast<const char*>(z + i * dim + k), dim * kItem);
    for (; k < dim; ++k)
      for (int64_t r = i; r < i + kStep; ++r) t[k * ld + r] = z[r * dim + k];
  }
  for (; i < rows; ++i)
    for (int64_t k = 0; k < dim; ++k) t[k * ld + i] = z[i * dim + k];
}

template <class T>
void forward(const DotLoop& loop, T* scratch, int64_t begin, int64_t end) {
  constexpr int64_t kLane = kLanes<T>;
  const int64_t slots = loop.slots, dim = loop.dim, ld = pad_to_vector<T>(slots + 1);
  const int64_t pairs = (slots + 1) * slots / 2;
  T* columns = scratch;              // [dim][ld]
  T* products = scratch + dim * ld;  // [8][ld]
  for (int64_t i = 0; i < dim * ld; ++i) columns[i] = T(0);
  for (int64_t b = begin; b < end; ++b) {
    const T* first = static_cast<const T*>(loop.first) + b * loop.first_stride;
    const T* others = static_cast<const T*>(loop.others) + b * loop.others_stride;
    T* out = static_cast<T*>(loop.out) + b * loop.out_stride;
    std::copy_n(first, loop.passed, out);
    for (int64_t k = 0; k < dim; ++k) columns[k * ld] = first[k];
    if (dim > 0) transpose_into(columns + 1, ld, others, slots, dim);
    T* pair = out + loop.passed;
    T* const last = pair + pairs;
    for (int64_t i = 1; i <= slots;) {
      // Rows with the same number of vectors left of the diagonal.
      const int64_t vectors = ceil_div(i, kLane);
      const int64_t left = (vectors * kLane < slots ? vectors * kLane : slots) - i + 1;
      const int r = rows_at_once(vectors, left);
      multiply_block(r, vectors, others + (i - 1) * dim, dim, columns, ld, dim, products, ld);
      for (int64_t row = i; row < i + r; ++row) {
        const T* product = products + (row - i) * ld;
        // Excess elements of a last vector are overwritten by the next row.
        if (pair + vectors * kLane <= last)
          for (int64_t v = 0; v < vectors; ++v) store(pair + v * kLane, load(product + v * kLane));
        else
          std::copy_n(product, row, pair);
        pair += row;
      }
      i += r;
    }
    if (loop.pad) *last = T(0);
  }
}

template <class T>
void backward(const DotLoop& loop, T* scratch, int64_t begin, int64_t end) {
  constexpr int64_t kLane = kLanes<T>;
  const int64_t slots = loop.slots, dim = loop.dim, n = slots + 1;
  const int64_t ld = pad_to_vector<T>(n), padded = pad_to_vector<T>(dim), vectors = padded / kLane;
  const int64_t pairs = n * slots / 2;
  T* grads = scratch;           // [n][ld]: both triangles
  T* z = grads + (n + 1) * ld;  // [n][padded]
  T* dz = z + n * padded;       // [8][padded]
  for (int64_t i = 0; i < (n + 1) * ld; ++i) grads[i] = T(0);
  for (int64_t i = 0; i < n * padded; ++i) z[i] = T(0);
  for (int64_t b = begin; b < end; ++b) {
    const T* first = static_cast<const T*>(loop.first) + b * loop.first_stride;
    const T* others = static_cast<const T*>(loop.others) + b * loop.others_stride;
    const T* out_grad = static_cast<const T*>(loop.out_grad) + b * loop.out_stride;
    std::copy_n(first, dim, z);
    if (padded == dim && slots > 0)
      std::copy_n(others, dim * slots, z + padded);
    else
      for (int64_t s = 0; s < slots; ++s) std::copy_n(others + s * dim, dim, z + (s + 1) * padded);

    const T* pair = out_grad + loop.passed;
    const T* const last = pair + pairs;
    for (int64_t i = 1; i < n; ++i) {
      // The last vector reads too far and writes wrong numbers to the diagonal and beyond; later rows overwrite them.
      T* row = grads + i * ld;
      const int64_t used = ceil_div(i, kLane);
      if (pair + used * kLane <= last)
        for (int64_t v = 0; v < used; ++v) store(row + v * kLane, load(pair + v * kLane));
      else
        std::copy_n(pair, i, row);
      row[i] = T(0);
      for (int64_t j = 0; j < i; ++j) grads[j * ld + i] = pair[j];
      pair += i;
    }

    for (int64_t i = 0; i < n;) {
      const int r = rows_at_once(vectors, n - i);
      multiply_block(r, vectors, grads + i * ld, ld, z, padded, n, dz, padded);
      for (int64_t row = i; row < i + r; ++row) {
        const T* from = dz + (row - i) * padded;
        T* to = nullptr;
        if (row > 0 && loop.others_grad)
          to = static_cast<T*>(loop.others_grad) + b * loop.others_stride + (row - 1) * dim;
        if (row == 0 && loop.first_grad) to = static_cast<T*>(loop.first_grad) + b * loop.first_grad_stride;
        if (!to) continue;
        if (row * dim < loop.passed)
          for (int64_t k = 0; k < dim; ++k) to[k] = out_grad[row * dim + k] + from[k];
        else
          std::copy_n(from, dim, to);
      }
      i += r;
    }
  }
}

template <class T>
void fm_forward(const FmLoop& loop, int64_t begin, int64_t end) {
  const int64_t dim = loop.dim;
  for (int64_t b = begin; b < end; ++b) {
    const T* x = static_cast<const T*>(loop.x) + b * loop.slots * dim;
    T* out = static_cast<T*>(loop.out) + b * dim;
    int64_t k = 0;
    for (; k + kLanes<T> <= dim; k += kLanes<T>) {
      Simd<T> sum{}, squares{};
      for (int64_t s = 0; s < loop.slots; ++s) {
        const Simd<T> v = load(x + s * dim + k);
        sum += v;
        squares = multiply_add(v, v, squares);
      }
      store(out + k, T(0.5) * (sum * sum - squares));
    }
    for (; k < dim; ++k) {
      T sum = 0, squares = 0;
      for (int64_t s = 0; s < loop.slots; ++s) {
        const T v = x[s * dim + k];
        sum += v;
        squares = multiply_add(v, v, squares);
      }
      out[k] = T(0.5) * (sum * sum - squares);
    }
  }
}

template <class T>
void fm_backward(const FmLoop& loop, int64_t begin, int64_t end) {
  const int64_t dim = loop.dim;
  for (int64_t b = begin; b < end; ++b) {
    const T* x = static_cast<const T*>(loop.x) + b * loop.slots * dim;
    const T* grad = static_cast<const T*>(loop.out_grad) + b * dim;
    T* out = static_cast<T*>(loop.out) + b * loop.slots * dim;
    int64_t k = 0;
    for (; k + kLanes<T> <= dim; k += kLanes<T>) {
      Simd<T> sum{};
      for (int64_t s = 0; s < loop.slots; ++s) sum += load(x + s * dim + k);
      const Simd<T> g = load(grad + k);
      for (int64_t s = 0; s < loop.slots; ++s) store(out + s * dim + k, g * (sum - load(x + s * dim + k)));
    }
    for (; k < dim; ++k) {
      T sum = 0;
      for (int64_t s = 0; s < loop.slots; ++s) sum += x[s * dim + k];
      for (int64_t s = 0; s < loop.slots; ++s) out[s * dim + k] = grad[k] * (sum - x[s * dim + k]);
    }
  }
}

}  // namespace

void dot_interaction(const DotLoop& loop, void* scratch, int64_t begin, int64_t end) {
  if (loop.compute == Compute::F64) return forward(loop, static_cast<double*>(scratch), begin, end);
  forward(loop, static_cast<float*>(scratch), begin, end);
}

void dot_interaction_backward(const DotLoop& loop, void* scratch, int64_t begin, int64_t end) {
  if (loop.compute == Compute::F64) return backward(loop, static_cast<double*>(scratch), begin, end);
  backward(loop, static_cast<float*>(scratch), begin, end);
}

void fm_order2(const FmLoop& loop, int64_t begin, int64_t end) {
  if (loop.compute == Compute::F64) return fm_forward<double>(loop, begin, end);
  fm_forward<float>(loop, begin, end);
}

void fm_order2_backward(const FmLoop& loop, int64_t begin, int64_t end) {
  if (loop.compute == Compute::F64) return fm_backward<double>(loop, begin, end);
  fm_backward<float>(loop, begin, end);
}

}  // namespace tercel::TERCEL_ISA
