// Matrix products on plain memory, used by the ops that are built on them.
#pragma once

#include <cstdint>
#include <string>

namespace tercel {

/**
 * C = mask(relu(alpha * op(A) op(B) + beta * C + bias)): A is m x k, B k x n, C m x n, after op; all row-major.
 *
 * C overlaps neither A nor B nor the mask. Sizes may be 0; k = 0 gives beta * C + bias. With beta = 0 C is not read.
 * NaN and infinity propagate. Results are deterministic for a given number of threads.
 */
template <class T>
struct Gemm {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  const T* a = nullptr;
  int64_t lda = 0;
  bool trans_a = false;  ///< A is stored as k x m
  const T* b = nullptr;
  int64_t ldb = 0;
  bool trans_b = false;  ///< B is stored as n x k
  /// If not 0, B is stored as panels of gemm_panel() columns, [k][columns] each, at this distance; ldb is ignored.
  int64_t b_panel_step = 0;
  T* c = nullptr;
  int64_t ldc = 0;
  T alpha = 1;
  T beta = 0;
  const T* bias = nullptr;  ///< n elements, added to each row
  bool relu = false;        ///< negative elements become 0
  const T* mask = nullptr;  ///< m x n; C becomes 0 where it is not positive: a ReLU's backward, given its output
  int64_t ldmask = 0;
  /** If set, and trans_a: m elements, a_sums = sum of op(A) over k + beta * a_sums. A bias gradient, for A = dY^T. */
  T* a_sums = nullptr;
  /** If set, and not trans_b: n elements, b_sums = sum of B over k + beta * b_sums. A bias gradient, for B = dY. */
  T* b_sums = nullptr;
};

/** Columns of a panel of B, and the number of elements to leave free behind each panel. */
struct GemmPanel {
  int64_t columns, gap;
};
template <class T>
GemmPanel gemm_panel();

/** Computes the product on up to num_threads() threads; inside a parallel region only on the caller's thread. */
void gemm(const Gemm<float>& g);
void gemm(const Gemm<double>& g);

/** The same for `batch` products whose operands are stride_a, stride_b, stride_c elements apart; no mask, no sums. */
void gemm_batched(const Gemm<float>& g, int64_t batch, int64_t stride_a, int64_t stride_b, int64_t stride_c);
void gemm_batched(const Gemm<double>& g, int64_t batch, int64_t stride_a, int64_t stride_b, int64_t stride_c);

/** Description of the kernels in use, for `tercel doctor`: "avx2 kernels, tiles of 6 x 16". */
std::string gemm_info();

}  // namespace tercel
