// Matrices by rows (CSR) as plain tensors: what the compressed layouts compute with.
//
// Note [Matrices by rows]
// A CSC matrix is the CSR form of its transpose, so these functions serve both. Offsets and columns are int32 or int64,
// both of one dtype; columns of a row ascend unless a function says otherwise. Functions check offsets, and columns
// where they use them (IndexError), since the memory is the caller's, who may have changed it. Results are new and not
// recorded, and do not depend on the number of threads.
#pragma once

#include <utility>

#include "tercel/core/tensor.h"

namespace tercel::sparse_ops {

/** Entries of row r are offsets[r] to offsets[r + 1] - 1. */
struct CsrMatrix {
  Tensor offsets;  ///< [rows + 1]
  Tensor columns;  ///< [nnz]
  Tensor values;   ///< [nnz, ...]
  int64_t num_columns = 0;

  int64_t num_rows() const { return offsets.numel() - 1; }
  int64_t nnz() const { return columns.numel(); }
  ScalarType index_dtype() const { return offsets.dtype(); }
};

/** Calls f.template operator()<I>() with the type of indices. */
template <class F>
decltype(auto) with_index(ScalarType dtype, F&& f) {
  return dtype == kInt64 ? f.template operator()<int64_t>() : f.template operator()<int32_t>();
}

/** IndexError if a column is outside of the matrix. */
void check_columns(const char* op, const CsrMatrix& a);
/** RuntimeError if the number does not fit in indices of the dtype. */
void check_index_range(const char* op, int64_t largest, ScalarType index_dtype);

/** The dtype in which values of `t` are multiplied and added; sums of integers wrap, so int64 serves all. */
ScalarType product_dtype(ScalarType t);
/** Both with int64 indices if their dtypes differ. */
void share_index_dtype(CsrMatrix& a, CsrMatrix& b);

/** Contiguous parts whose offsets rise from 0 to nnz, else IndexError. */
CsrMatrix checked_csr(const char* op, const CsrMatrix& a);

// csr_products.cpp

/** a @ dense [num_columns, n]: [rows, n] of dense's dtype, which is a's. */
Tensor csr_times_dense(const char* op, const CsrMatrix& a, const Tensor& dense);
/** a.T @ dense [rows, n]: [num_columns, n]. */
Tensor csr_transposed_times_dense(const char* op, const CsrMatrix& a, const Tensor& dense);
/** left [rows, k] @ right [k, num_columns] at the entries of a pattern: [nnz]. Values of `a` are not read. */
Tensor csr_sampled_product(const char* op, const CsrMatrix& a, const Tensor& left, const Tensor& right);

// csr_spgemm.cpp

/** a @ b, both of one dtype and index dtype. Has an entry wherever a term is, also where terms cancel. */
CsrMatrix csr_times_csr(const char* op, const CsrMatrix& a, const CsrMatrix& b);

// csr_merge.cpp

/** Whether the columns of each row ascend, none twice. */
bool csr_ascends(const char* op, const CsrMatrix& a);
/** The same matrix with ascending columns; equal entries are added. */
CsrMatrix csr_ascending(const char* op, const CsrMatrix& a);
/** a + alpha * b of one dtype and index dtype: an entry wherever one of them has one. Columns need not ascend. */
CsrMatrix csr_add(const char* op, const CsrMatrix& a, const CsrMatrix& b, Scalar alpha);
/** a * b of one dtype and index dtype: an entry wherever both have one. Columns need not ascend. */
CsrMatrix csr_mul(const char* op, const CsrMatrix& a, const CsrMatrix& b);

// csr_sorting.cpp

/**
 * From entries in any order, whose values [nnz, ...] are added if they are equal (in the order of their positions,
 * 16-bit floats in float32). Of ascending entries, columns and values are the given ones. IndexError for an index
 * outside the sizes.
 */
CsrMatrix csr_of_entries(const char* op, const Tensor& rows, const Tensor& columns, const Tensor& values,
                         int64_t num_rows, int64_t num_columns, ScalarType index_dtype);
/** The row of each entry: [nnz] of the index dtype. */
Tensor csr_rows(const CsrMatrix& a);
/** The transpose by rows; columns of a need not ascend. Stable. */
CsrMatrix csr_transpose(const char* op, const CsrMatrix& a);

// csr_conversions.cpp

/** Elements other than zero of a strided matrix [rows, columns]; NaN is kept. */
CsrMatrix csr_of_dense(const Tensor& dense, ScalarType index_dtype);
/** Elements [rows, num_columns, ...] without those that have no entry; of several equal entries the last. */
Tensor dense_of_csr(const char* op, const CsrMatrix& a);
/** Blocks [nnz, height, width] by rows of blocks, where `a` has an entry. */
CsrMatrix blocks_of_csr(const char* op, const CsrMatrix& a, int64_t height, int64_t width);
/** All elements of blocks. */
CsrMatrix csr_of_blocks(const char* op, const CsrMatrix& blocks);

}  // namespace tercel::sparse_ops
