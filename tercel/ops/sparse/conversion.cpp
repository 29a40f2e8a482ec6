// COO tensors from strided ones, and back.
#include <cstring>

#include "tercel/autograd/record.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/index/gather.h"
#include "tercel/ops/index/nonzero.h"
#include "tercel/ops/linalg/packed_weight.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/sparse/compressed_impl.h"
#include "tercel/ops/sparse/coo.h"
#include "tercel/ops/sparse/coo_impl.h"
#include "tercel/ops/views/views.h"
#include "tercel/util/parallel.h"
#include "tercel/util/profile.h"

namespace tercel {

namespace {

/** Strided, of x's sizes. */
Tensor filled(const Tensor& x, const sparse_ops::UniqueEntries& entries) {
  const NoRecordGuard no_record;
  const Tensor flat = contiguous(entries.flat), values = contiguous(entries.values);
  Tensor out = zeros(x.sizes(), TensorOptions(x.dtype(), x.device()));
  const int64_t n = flat.numel();
  if (out.numel() == 0 || n == 0) return out;
  const size_t row = values.nbytes() / static_cast<size_t>(n);
  const auto* at = static_cast<const int64_t*>(flat.data_ptr());
  const auto* from = static_cast<const std::byte*>(values.data_ptr());
  auto* to = static_cast<std::byte*>(out.data_ptr());
  parallel_for(0, n, 16384, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      std::memcpy(to + static_cast<size_t>(at[i]) * row, from + static_cast<size_t>(i) * row, row);
  });
  return out;
}

Tensor entries_of(const Tensor& x, int64_t sparse_dim) {
  const NoRecordGuard no_record;
  const auto n = static_cast<size_t>(sparse_dim);
  const IntSpan sparse = x.sizes().subspan(0, n), dense = x.sizes().subspan(n, x.sizes().size() - n);
  const int64_t rows = numel_of(sparse);
  Tensor mask = ne(x, 0);
  DimVector flat_sizes{rows};
  for (const int64_t s : dense) flat_sizes.push_back(s);
  const Tensor flat = reshape(x, flat_sizes);
  if (!dense.empty())
    mask = numel_of(dense) == 0 ? zeros(sparse, TensorOptions(kBool, x.device()))
                                : reshape(any(reshape(mask, {rows, numel_of(dense)}), 1), sparse);
  const Tensor at = reshape(nonzero(reshape(mask, {rows})), {-1});
  return sparse_ops::make_coo(sparse_ops::unflatten(at, sparse), index_select(flat, 0, at), x.sizes(), true);
}

}  // namespace

Tensor to_dense(const Tensor& x, std::optional<ScalarType> dtype, bool masked_grad) {
  const ProfileRange range("to_dense", RangeKind::Op);
  check_defined("to_dense", x, "self");
  if (x.layout() == Layout::Opaque) return to(unpack_weight(x), dtype.value_or(x.dtype()));
  if (x.layout() == Layout::Strided) return dtype ? to(x, *dtype) : x;
  if (!is_compressed(x.layout())) sparse_ops::parts_of("to_dense", x);
  TERCEL_CHECK(!dtype || *dtype == x.dtype(), RuntimeError, "dtype argument is not supported by sparse_to_dense");
  if (is_compressed(x.layout())) return compressed_to_dense(x, masked_grad);
  const sparse_ops::UniqueEntries entries = sparse_ops::unique_entries("to_dense", x);
  Tensor out = filled(x, entries);
  if (should_record(x))
    record("ToDenseBackward0", out, {x},
           [indices = SavedTensor(entries.indices), sizes = DimVector(x.sizes()), masked_grad](BackwardCall& call) {
             const Tensor at = indices.get();
             if (!masked_grad) return call.set(0, call.take());
             call.set(0,
                      sparse_ops::coo_of_values(at, sparse_ops::elements_at(call.grad(), at, at.size(0)), sizes, true));
           });
  return out;
}

Tensor to_sparse(const Tensor& x, int64_t sparse_dim) {
  const ProfileRange range("to_sparse", RangeKind::Op);
  check_defined("to_sparse", x, "self");
  if (x.layout() == Layout::SparseCoo) {
    TERCEL_CHECK(sparse_dim == tercel::sparse_dim(x), RuntimeError,
                 "to_sparse: conversion from Sparse to Sparse with sparse_dim argument !=self.sparse_dim() is not "
                 "supported");
    return x;
  }
  if (is_compressed(x.layout())) {
    TERCEL_CHECK(sparse_dim == 2 + sparse_ops::batch_dims(x), RuntimeError,
                 "sparse_compressed_to_sparse: conversion from ", sparse_ops::layout_word(x.layout()),
                 " to Sparse with sparse_dim argument !=2 is not supported");
    return compressed_to_coo(x);
  }
  check_strided("to_sparse", x);
  TERCEL_CHECK(sparse_dim >= 0 && sparse_dim <= x.dim(), RuntimeError,
               "dense_to_sparse: sparse_dim argument must be in [0,", x.dim(), "] range, but ", sparse_dim,
               " is given");
  TERCEL_CHECK(sparse_dim > 0 || x.dim() == 0, RuntimeError,
               "dense_to_sparse: sparse_dim argument must be in >0 when self.dim()>0");
  Tensor out = entries_of(x, sparse_dim);
  if (should_record(x))
    record("ToSparseBackward0", out, {x}, [](BackwardCall& call) { call.set(0, to_dense(call.grad())); });
  return out;
}

Tensor to_sparse(const Tensor& x) {
  check_defined("to_sparse", x, "self");
  if (is_compressed(x.layout())) return compressed_to_coo(x);
  return x.layout() == Layout::SparseCoo ? x : to_sparse(x, x.dim());
}

Tensor sparse_mask(const Tensor& x, const Tensor& mask) {
  check_defined("sparse_mask", x, "self");
  if (is_compressed(mask.layout()))
    return sparse_ops::with_values(mask.detach(), sparse_ops::elements_at_pattern(x, mask));
  const SparseData& pattern = sparse_ops::parts_of("sparse_mask", mask);
  if (x.layout() != Layout::Strided) sparse_ops::parts_of("sparse_mask", x);
  TERCEL_CHECK(x.sizes() == mask.sizes(), RuntimeError,
               "sparse_mask(): operands have incompatible sizes; self has size ", x.sizes(), " but mask has size ",
               mask.sizes());
  return sparse_ops::coo_of_values(pattern.indices, sparse_ops::elements_at(x, pattern.indices, pattern.sparse_dim),
                                   mask.sizes(), pattern.coalesced);
}

}  // namespace tercel
