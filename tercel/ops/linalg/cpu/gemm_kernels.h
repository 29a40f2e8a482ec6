// Interface between gemm.cpp and the kernels of each instruction set.
//
// Note [GEMM layout]
// C is computed in tiles that stay in registers. A is cut into strips of up to `strip_rows` rows, B into panels of
// `panel_cols` columns. A packed strip is stored as [k][rows of the strip], a packed panel as [k][panel_cols], padded
// with zeros; a tile is one strip times one panel, and both are read strictly forward. Either may also be read in
// place, where packing would cost more than it gains.
//
// Note [Packing in the shadow]
// Packing moves data from L3 or memory, and takes 5 to 15 % of a product if done separately. The inner loop of a tile
// keeps the FMA units busy but leaves half of the load, store and issue slots free, so the tiles of one block also pack
// the next block, a few vectors per 8 steps of k. A PackTask describes what to pack and the progress; `pack` packs what
// the tiles have not.
#pragma once

#include <cstdint>

#include "tercel/core/dispatch.h"

namespace tercel {

/** Elements between packed parts: whole vectors are written, and parts should not map to the same sets of L1. */
constexpr int64_t kPackGap = 16;

/**
 * A part of an operand to pack: `lines` rows of A, or columns of B, cut into parts (strips of A, panels of B) of
 * part_lines. In memory k runs across the rows, or along them if `transposed`.
 */
template <class T>
struct PackTask {
  const T* source = nullptr;
  int64_t ld = 0;
  bool transposed = false;
  int64_t lines = 0;
  int64_t readable = 0;  ///< lines that exist in memory, starting with the first of these
  int64_t k = 0;
  int64_t part_lines = 1;
  T* packed = nullptr;
  int64_t part_step = 0;  ///< elements from one packed part to the next, with a gap of kPackGap
  T* sums = nullptr;  ///< two vectors per part, to which packed elements are added; null if not wanted, or transposed
  int64_t sums_step = 0;  ///< elements from the sums of one part to those of the next
  // Progress: if transposed, the part and the rounds of packing done in it; else rows of k, pairs of vectors done in
  // the next one, and the number of pairs in a row (-1: not counted yet).
  int64_t part = 0;
  int64_t row = 0;
  int64_t done = 0;
  int64_t pairs = -1;
};

/** Operations on a tile of alpha * A * B before it is stored to C, in this order. */
template <class T>
struct GemmStore {
  T* c;
  int64_t ldc;
  T alpha;
  T beta;         ///< C is not read when 0
  const T* bias;  ///< one per column, or null
  const T* mask;  ///< elements of C become zero where this is not positive; or null
  int64_t ldmask;
  bool relu;
};

/** How a block's strips of A are stored: packed, or in place with k along the rows, or across them. */
enum class GemmSource : uint8_t { Packed, Rows, Columns };

/** One block of C: `strips` strips of A times n columns of B, k deep. */
template <class T>
struct GemmBlock {
  int64_t n, k;
  int64_t strips;
  int64_t strip_rows;  ///< rows of the first `high_strips` strips; the others have one less
  int64_t high_strips;
  GemmSource source;
  const T* a;
  int64_t lda;         ///< if not packed
  int64_t strip_step;  ///< elements between packed strips
  const T* b;          ///< the first panel
  int64_t ldb;         ///< from one k to the next: panel_cols if packed; whole vectors must be readable
  int64_t panel_step;  ///< from one panel to the next
  GemmStore<T> store;
  bool strips_outside;  ///< order of the tiles: all panels for one strip first, or all strips for one panel
};

template <class T>
struct GemmKernels {
  int64_t strip_rows;
  int64_t panel_cols;
  int64_t vector;  ///< elements in a vector
  /** Computes a block; its tiles also process the tasks (count may be 0) as far as possible. */
  void (*multiply)(const GemmBlock<T>& block, PackTask<T>* tasks, int64_t count);
  /** Completes a task. */
  void (*pack)(PackTask<T>& task);
  /** y[i] = sum over j of a[i * lda + j] * x[j]. */
  void (*dot_rows)(int64_t rows, int64_t cols, const T* a, int64_t lda, const T* x, T* y);
  /** c[i * ldc + j] = sum over l of a[i * lda + l] * b[j * ldb + l]: both operands are contiguous along k. */
  void (*dots)(int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, const T* b, int64_t ldb, T* c, int64_t ldc);
  /** y[j] = sum over i of a[i * lda + j] * x[i]; x null means ones. */
  void (*sum_rows)(int64_t rows, int64_t cols, const T* a, int64_t lda, const T* x, T* y);
};

using GetGemmKernelsF32 = const GemmKernels<float>&();
using GetGemmKernelsF64 = const GemmKernels<double>&();
TERCEL_DECLARE_KERNELS(GetGemmKernelsF32, gemm_kernels_f32)
TERCEL_DECLARE_KERNELS(GetGemmKernelsF64, gemm_kernels_f64)

}  // namespace tercel
