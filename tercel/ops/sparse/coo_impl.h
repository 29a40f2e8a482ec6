// Parts of COO tensors, for the ops of this folder.
#pragma once

#include <string_view>

#include "tercel/core/sparse_data.h"
#include "tercel/core/tensor.h"

namespace tercel::sparse_ops {

/** The name of a layout in PyTorch's errors: "Strided", "Sparse", "SparseCsr" ... */
std::string_view layout_word(Layout layout);

/** The parts; NotImplementedError "op: ..." if x is not a COO tensor. */
const SparseData& parts_of(const char* op, const Tensor& x);
using detail::make_coo;
/** make_coo(), as a result of `values`: its gradient at the entries is that of the values. */
Tensor coo_of_values(const Tensor& indices, const Tensor& values, IntSpan sizes, bool coalesced);
/** No entries. */
Tensor empty_coo(IntSpan sizes, ScalarType dtype, Device device, int64_t sparse_dim);

/**
 * x to compute with its values: coalesced if it requires a gradient, so that the values' gradients are those of
 * elements; else x itself.
 */
Tensor for_values(const Tensor& x);
/** The values of for_values(x), recorded. */
Tensor recorded_values(const Tensor& x);

/** Row-major positions [nnz] of entries in the sparse sizes; IndexError for an index outside them. */
Tensor flat_indices(const char* op, const Tensor& indices, IntSpan sparse_sizes);
/** IndexError for an index outside the sparse sizes. */
void check_indices(const char* op, const Tensor& indices, IntSpan sparse_sizes);
/** Whether numbers, strided and of one dimension, int64, ascend, none twice. */
bool ascends(const Tensor& numbers);
/** Entries in row-major order, each once. */
struct UniqueEntries {
  Tensor indices, values;
  Tensor flat;  ///< row-major positions [nnz]
};
/** Those of a COO tensor, also of one that only claims to be coalesced; shares parts in order. Not recorded. */
UniqueEntries unique_entries(const char* op, const Tensor& x);
/** Whether both have the same entries in the same order. */
bool same_entries(const SparseData& a, const SparseData& b);
/** The reverse of flat_indices(): indices [n, nnz] of flat positions. */
Tensor unflatten(const Tensor& flat, IntSpan sizes);
/** The elements [nnz, *dense sizes] of x, strided or COO, at entries; recorded. */
Tensor elements_at(const Tensor& x, const Tensor& indices, int64_t sparse_dim);

/** Replaces the entries of x, a COO tensor with the sizes, and counts the change. Not recorded. */
void replace_parts(const Tensor& x, const Tensor& with);
/**
 * The same of tensors of one dtype. Unless backward of a recorded change needs the old values, those of a compressed
 * tensor of the same pattern are written over, so that values() and transposes see the change.
 */
void overwrite(const Tensor& x, const Tensor& with, bool records);
/** x = result, of x's dtype, recorded: x's gradient is that of the result. */
void replace_by_result(const Tensor& x, const Tensor& result);
/** NotImplementedError if a change of a sparse tensor that is not recorded would have to be. */
void check_unrecorded(const char* op, const Tensor& x, bool records);

/** The sizes of the sparse or of the dense dimensions. */
IntSpan sparse_sizes(const Tensor& x, const SparseData& parts);
IntSpan dense_sizes(const Tensor& x, const SparseData& parts);

}  // namespace tercel::sparse_ops
