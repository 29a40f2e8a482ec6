// Sparse tensors in compressed formats: CSR, CSC, and their blocked forms BSR and BSC.
//
// A tensor of sizes [*batch, rows, columns, *dense sizes] has the offsets of rows (CSR, BSR: crow_indices [*batch, rows
// + 1]) or of columns (CSC, BSC: ccol_indices [*batch, columns + 1]), the indices in the other dimension [*batch, nnz],
// and values [*batch, nnz, *dense sizes]; blocked formats have rows and columns of blocks, and values [*batch, nnz,
// height, width, *dense sizes]. Indices are int32 or int64; those of a row (column) ascend, without duplicates. The
// gradient of an operand of these formats has its pattern.
#pragma once

#include <optional>

#include "tercel/core/tensor.h"

namespace tercel {

/**
 * A tensor of a compressed layout over these parts, which are shared, not copied. Without `size`, the number of
 * compressed indices - 1 and the largest plain index + 1, times the sizes of a block, then the sizes of a value.
 * RuntimeError for parts that do not fit each other or the size; `check_invariants` (by default
 * sparse::check_invariants()) also reads every index.
 */
TERCEL_API Tensor sparse_compressed_tensor(const Tensor& compressed_indices, const Tensor& plain_indices,
                                           const Tensor& values, IntSpan size, Layout layout,
                                           std::optional<bool> check_invariants = std::nullopt);
TERCEL_API Tensor sparse_compressed_tensor(const Tensor& compressed_indices, const Tensor& plain_indices,
                                           const Tensor& values, Layout layout,
                                           std::optional<bool> check_invariants = std::nullopt);
/** The same for one layout. */
TERCEL_API Tensor sparse_csr_tensor(const Tensor& crow_indices, const Tensor& col_indices, const Tensor& values,
                                    IntSpan size, std::optional<bool> check_invariants = std::nullopt);
TERCEL_API Tensor sparse_csc_tensor(const Tensor& ccol_indices, const Tensor& row_indices, const Tensor& values,
                                    IntSpan size, std::optional<bool> check_invariants = std::nullopt);
TERCEL_API Tensor sparse_bsr_tensor(const Tensor& crow_indices, const Tensor& col_indices, const Tensor& values,
                                    IntSpan size, std::optional<bool> check_invariants = std::nullopt);
TERCEL_API Tensor sparse_bsc_tensor(const Tensor& ccol_indices, const Tensor& row_indices, const Tensor& values,
                                    IntSpan size, std::optional<bool> check_invariants = std::nullopt);

/** Without entries, in the layout of the options, CSR or CSC; indices are int64. RuntimeError for another layout. */
TERCEL_API Tensor sparse_compressed_tensor(IntSpan size, TensorOptions options);

/** Offsets of rows [*batch, rows + 1] of a CSR or BSR tensor; RuntimeError for another one. */
TERCEL_API Tensor crow_indices(const Tensor& x);
/** Columns [*batch, nnz] of a CSR or BSR tensor; RuntimeError for another one. */
TERCEL_API Tensor col_indices(const Tensor& x);
/** Offsets of columns [*batch, columns + 1] of a CSC or BSC tensor; RuntimeError for another one. */
TERCEL_API Tensor ccol_indices(const Tensor& x);
/** Rows [*batch, nnz] of a CSC or BSC tensor; RuntimeError for another one. */
TERCEL_API Tensor row_indices(const Tensor& x);

/**
 * x in a layout, from any other; x itself if it has it. Of a strided tensor the elements other than zero, the last
 * `dense_dim` dimensions being dense. `blocksize`: two sizes that divide rows and columns, for BSR and BSC only.
 */
TERCEL_OP_API(method)
Tensor to_sparse(const Tensor& x, Layout layout, IntSpan blocksize = {},
                 std::optional<int64_t> dense_dim = std::nullopt);
TERCEL_API Tensor to_sparse_csr(const Tensor& x, std::optional<int64_t> dense_dim = std::nullopt);
TERCEL_API Tensor to_sparse_csc(const Tensor& x, std::optional<int64_t> dense_dim = std::nullopt);
TERCEL_API Tensor to_sparse_bsr(const Tensor& x, IntSpan blocksize, std::optional<int64_t> dense_dim = std::nullopt);
TERCEL_API Tensor to_sparse_bsc(const Tensor& x, IntSpan blocksize, std::optional<int64_t> dense_dim = std::nullopt);

namespace sparse {

/**
 * alpha * (mat1 @ mat2) at the entries of a CSR tensor + beta * input: a CSR tensor of its pattern. mat1 [*batch, rows,
 * k] and mat2 [*batch, k, columns] are strided; an input without batch dimensions serves each matrix of the batch.
 * RuntimeError for other sizes or layouts.
 */
TERCEL_API Tensor sampled_addmm(const Tensor& input, const Tensor& mat1, const Tensor& mat2, Scalar beta = 1,
                                Scalar alpha = 1);

}  // namespace sparse

}  // namespace tercel
