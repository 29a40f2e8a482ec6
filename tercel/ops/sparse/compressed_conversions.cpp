// Compressed layouts from strided tensors, from COO and from each other, and back.
//
// Note [Recorded conversions]
// A conversion between sparse layouts moves values. Where it is recorded, the positions are converted instead, and the
// values are selected by them, which is a recorded op; otherwise the values are converted with their indices.
#include <limits>

#include "tercel/autograd/record.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/index/gather.h"
#include "tercel/ops/sparse/compressed.h"
#include "tercel/ops/sparse/compressed_impl.h"
#include "tercel/ops/sparse/coo.h"
#include "tercel/ops/sparse/coo_impl.h"
#include "tercel/ops/views/cat.h"
#include "tercel/ops/views/views.h"
#include "tercel/util/profile.h"

namespace tercel {

using sparse_ops::batch_dims;
using sparse_ops::batch_of;
using sparse_ops::blocks_of_csr;
using sparse_ops::by_rows;
using sparse_ops::check_columns;
using sparse_ops::compressed_of_values;
using sparse_ops::compressed_values;
using sparse_ops::coo_of_values;
using sparse_ops::csr_of_blocks;
using sparse_ops::csr_of_dense;
using sparse_ops::csr_of_entries;
using sparse_ops::csr_rows;
using sparse_ops::csr_transpose;
using sparse_ops::CsrMatrix;
using sparse_ops::dense_of_csr;
using sparse_ops::elements_at_pattern;
using sparse_ops::for_values;
using sparse_ops::is_blocked;
using sparse_ops::layout_word;
using sparse_ops::matrix_of;
using sparse_ops::parts_of;
using sparse_ops::recorded_values;
using sparse_ops::stack_batches;
using sparse_ops::tensor_of;
using sparse_ops::transposed_layout;
using sparse_ops::with_values;

namespace {

/** matrix -> converted matrix, and the sizes and layout of the tensor that it is. */
template <class Convert>
Tensor converted(const Tensor& x, Layout layout, Convert&& convert) {
  CsrMatrix a = matrix_of(x);
  if (!should_record(x)) return tensor_of(layout, convert(a), x.sizes());
  // Elements are numbered from 1; 0 is an element of a block that has no entry.
  const Tensor values = compressed_values(x);
  const int64_t sparse_values = values.dim() - x.impl().sparse()->dense_dim;
  DimVector element_sizes(values.sizes().subspan(0, static_cast<size_t>(sparse_values)));
  const int64_t count = numel_of(element_sizes);
  const Tensor numbers = reshape(arange(1, count + 1), element_sizes);
  a.values = is_blocked(x.layout()) && !by_rows(x.layout()) ? transpose(numbers, 1, 2) : numbers;
  const Tensor out = tensor_of(layout, convert(a), x.sizes().subspan(0, 2));
  const SparseData& parts = *out.impl().sparse();
  DimVector rows{count};
  for (size_t d = element_sizes.size(); d < values.sizes().size(); ++d) rows.push_back(values.sizes()[d]);
  DimVector none(rows);
  none[0] = 1;
  const Tensor padded = cat({zeros(none, values.options()), reshape(values, rows)}, 0);
  DimVector sizes(parts.values.sizes());
  for (size_t d = 1; d < rows.size(); ++d) sizes.push_back(rows[d]);
  const Tensor selected = reshape(index_select(padded, 0, reshape(parts.values, {-1})), sizes);
  return compressed_of_values(layout, parts.indices, parts.plain_indices, selected, x.sizes());
}

/** CSR and CSC of blocked layouts; others themselves. */
Tensor unblocked(const Tensor& x) {
  if (!is_blocked(x.layout())) return x;
  return converted(x, by_rows(x.layout()) ? Layout::SparseCsr : Layout::SparseCsc,
                   [](const CsrMatrix& a) { return csr_of_blocks("to_sparse", a); });
}

Tensor turned(const Tensor& x) {
  return converted(x, transposed_layout(x.layout()), [&](const CsrMatrix& a) {
    CsrMatrix out = csr_transpose("to_sparse", a);
    if (is_blocked(x.layout())) out.values = transpose(out.values, 1, 2);
    return out;
  });
}

IntSpan block_of(const Tensor& x) {
  return x.impl().sparse()->values.sizes().subspan(static_cast<size_t>(batch_dims(x)) + 1, 2);
}

void check_blocksize(const char* op, const Tensor& x, size_t batch, IntSpan blocksize) {
  TERCEL_CHECK(blocksize.size() == 2, RuntimeError, op, ": blocksize needs to be a tuple of size 2, but got ",
               blocksize.size());
  TERCEL_CHECK(blocksize[0] > 0 && blocksize[1] > 0, RuntimeError, op, ": blocksize needs to be positive, but got ",
               blocksize);
  const int64_t rows = x.sizes()[batch], columns = x.sizes()[batch + 1];
  TERCEL_CHECK(rows % blocksize[0] == 0 && columns % blocksize[1] == 0, RuntimeError, op, ": tensor sparse size (",
               rows, ",", columns, ") must be divisible by given blocksize (", blocksize[0], ",", blocksize[1], ")");
}

std::string_view target_of(Layout layout) {
  switch (layout) {
    case Layout::SparseCsr: return "to_sparse_csr";
    case Layout::SparseCsc: return "to_sparse_csc";
    case Layout::SparseBsr: return "to_sparse_bsr";
    default: return "to_sparse_bsc";
  }
}

/** One matrix of a compressed layout in another one. */
Tensor matrix_in(const Tensor& x, Layout layout, IntSpan blocksize) {
  if (is_blocked(x.layout()) && is_blocked(layout)) {
    TERCEL_CHECK(blocksize.empty() || block_of(x) == blocksize, RuntimeError, target_of(layout), ": conversion from ",
                 layout_word(x.layout()), " to ", layout_word(layout), " with blocksize changed from ", block_of(x),
                 " to ", blocksize, " is not supported");
    return x.layout() == layout ? x : turned(x);
  }
  Tensor out = unblocked(x);
  if (by_rows(out.layout()) != by_rows(layout)) out = turned(out);
  if (!is_blocked(layout)) return out;
  const int64_t height = blocksize[by_rows(layout) ? 0 : 1], width = blocksize[by_rows(layout) ? 1 : 0];
  return converted(out, layout, [&](const CsrMatrix& a) { return blocks_of_csr("to_sparse", a, height, width); });
}

/** One CSR matrix of a COO tensor. */
Tensor csr_of_coo(const Tensor& given) {
  TERCEL_CHECK(sparse_dim(given) == 2, RuntimeError,
               "to_sparse_csr: conversion from Sparse to SparseCsr for input "
               "tensors with sparse_dim()!=2 is not supported");
  const Tensor x = for_values(given);
  const SparseData& parts = parts_of("to_sparse_csr", x);
  const Tensor rows = select(parts.indices, 0, 0), columns = select(parts.indices, 0, 1);
  const CsrMatrix a = csr_of_entries("to_sparse_csr", rows, columns, parts.values, x.size(0), x.size(1), kInt64);
  if (!should_record(x)) return tensor_of(Layout::SparseCsr, a, x.sizes());
  return compressed_of_values(Layout::SparseCsr, a.offsets, a.columns, recorded_values(x), x.sizes());
}

Tensor of_strided(const Tensor& x, Layout layout, IntSpan blocksize, int64_t dense_dim) {
  const NoRecordGuard no_record;
  if (x.dim() - dense_dim > 2) {
    std::vector<Tensor> batches;
    for (int64_t b = 0; b < x.size(0); ++b)
      batches.push_back(of_strided(select(x, 0, b), layout, blocksize, dense_dim));
    TERCEL_CHECK(!batches.empty(), RuntimeError, "to_", to_string(layout),
                 ": Expected product of batch dimensions to be non-zero.");
    return stack_batches(batches);
  }
  const Tensor rows =
      dense_dim > 0 ? csr_of_coo(to_sparse(x, 2)) : tensor_of(Layout::SparseCsr, csr_of_dense(x, kInt64), x.sizes());
  return matrix_in(rows, layout, blocksize);
}

}  // namespace

Tensor to_sparse(const Tensor& x, Layout layout, IntSpan blocksize, std::optional<int64_t> dense_dim) {
  const ProfileRange range("to_sparse", RangeKind::Op);
  check_defined("to_sparse", x, "self");
  const bool needs_block = is_blocked(layout) && !is_blocked(x.layout());
  TERCEL_CHECK(is_blocked(layout) || blocksize.empty(), RuntimeError, "dense_to_sparse: conversion from ",
               layout_word(x.layout()), " to ", layout_word(layout), " with blocksize argument given is not supported");
  TERCEL_CHECK(!needs_block || !blocksize.empty(), RuntimeError, "dense_to_sparse: conversion from ",
               layout_word(x.layout()), " to ", layout_word(layout),
               " without blocksize argument given is not supported");
  if (layout == Layout::Strided) return to_dense(x);
  if (layout == Layout::SparseCoo) {
    TERCEL_CHECK(!dense_dim || !is_compressed(x.layout()), RuntimeError,
                 "sparse_compressed_to_sparse: conversion with the dense_dim argument is not supported");
    if (is_compressed(x.layout())) return compressed_to_coo(x);
    return dense_dim ? tercel::to_sparse(x, x.dim() - *dense_dim) : tercel::to_sparse(x);
  }
  TERCEL_CHECK(is_compressed(layout), RuntimeError, "to_sparse: expected a sparse layout but got ",
               layout_word(layout));
  if (x.layout() == Layout::Strided) {
    const std::string op = str_cat({"dense_", target_of(layout)});
    const int64_t dense = dense_dim.value_or(0);
    TERCEL_CHECK(x.dim() >= 2, RuntimeError, op, ": expected a tensor of at least 2 dimensions but got ", x.sizes());
    TERCEL_CHECK(dense >= 0 && dense <= x.dim() - 2, RuntimeError, op, ": dense_dim argument must be in [0,",
                 x.dim() - 2, "] range, but ", dense, " is given");
    if (is_blocked(layout)) check_blocksize(op.c_str(), x, static_cast<size_t>(x.dim() - dense - 2), blocksize);
    Tensor out = of_strided(x, layout, blocksize, dense);
    if (should_record(x))
      record("ToSparseBackward0", out, {x}, [](BackwardCall& call) { call.set(0, to_dense(call.grad())); });
    return out;
  }
  TERCEL_CHECK(!dense_dim, RuntimeError, target_of(layout), ": conversion from ", layout_word(x.layout()), " to ",
               layout_word(layout), " with dense_dim argument given is not supported");
  const Tensor given = x.layout() == Layout::SparseCoo ? csr_of_coo(x) : x;
  if (given.layout() == layout && blocksize.empty()) return given;
  if (needs_block)
    check_blocksize(std::string(target_of(layout)).c_str(), given, static_cast<size_t>(batch_dims(given)), blocksize);
  if (batch_dims(given) == 0) return matrix_in(given, layout, blocksize);
  std::vector<Tensor> batches;
  for (int64_t b = 0; b < given.size(0); ++b) batches.push_back(to_sparse(batch_of(given, b), layout, blocksize));
  TERCEL_CHECK(!batches.empty(), RuntimeError, target_of(layout), ": expected at least one matrix");
  return stack_batches(batches);
}

Tensor to_sparse_csr(const Tensor& x, std::optional<int64_t> dense_dim) {
  return to_sparse(x, Layout::SparseCsr, {}, dense_dim);
}
Tensor to_sparse_csc(const Tensor& x, std::optional<int64_t> dense_dim) {
  return to_sparse(x, Layout::SparseCsc, {}, dense_dim);
}
Tensor to_sparse_bsr(const Tensor& x, IntSpan blocksize, std::optional<int64_t> dense_dim) {
  return to_sparse(x, Layout::SparseBsr, blocksize, dense_dim);
}
Tensor to_sparse_bsc(const Tensor& x, IntSpan blocksize, std::optional<int64_t> dense_dim) {
  return to_sparse(x, Layout::SparseBsc, blocksize, dense_dim);
}

namespace {

Tensor filled(const Tensor& x) {
  if (batch_dims(x) > 0) {
    std::vector<Tensor> batches;
    for (int64_t b = 0; b < x.size(0); ++b) batches.push_back(filled(batch_of(x, b)));
    return batches.empty() ? zeros(x.sizes(), TensorOptions(x.dtype(), x.device())) : stack(batches, 0);
  }
  const Tensor plain = unblocked(x);
  const Tensor elements = dense_of_csr("to_dense", matrix_of(plain));
  return by_rows(plain.layout()) ? elements : contiguous(transpose(elements, 0, 1));
}

}  // namespace

Tensor compressed_to_dense(const Tensor& x, bool masked_grad) {
  Tensor out;
  {
    const NoRecordGuard no_record;
    out = filled(x);
  }
  if (should_record(x))
    record("ToDenseBackward0", out, {x}, [pattern = SavedTensor(x.detach()), masked_grad](BackwardCall& call) {
      if (!masked_grad) return call.set(0, call.take());
      const Tensor like = pattern.get();
      call.set(0, with_values(like, elements_at_pattern(call.grad(), like)));
    });
  return out;
}

Tensor compressed_to_coo(const Tensor& x) {
  if (batch_dims(x) > 0) {
    std::vector<Tensor> batches;
    for (int64_t b = 0; b < x.size(0); ++b) batches.push_back(unsqueeze(compressed_to_coo(batch_of(x, b)), 0));
    TERCEL_CHECK(!batches.empty(), RuntimeError, "to_sparse: expected at least one matrix");
    return cat(batches, 0);
  }
  // By rows, a matrix of blocks would have an offset for each row of elements.
  if (x.layout() == Layout::SparseBsc && x.size(0) > std::numeric_limits<int32_t>::max())
    return coalesce(transpose(compressed_to_coo(transpose(x, 0, 1)), 0, 1));
  const SparseData& given = *x.impl().sparse();
  // Indices of elements need more bits than those of blocks.
  const Tensor wide = is_blocked(x.layout()) && given.indices.dtype() != kInt64
                          ? compressed_of_values(x.layout(), to(given.indices, kInt64), to(given.plain_indices, kInt64),
                                                 compressed_values(x), x.sizes())
                          : x;
  Tensor rows = unblocked(wide);
  if (!by_rows(rows.layout())) rows = turned(rows);
  const CsrMatrix a = matrix_of(rows);
  check_columns("to_sparse", a);
  const Tensor indices = stack({to(csr_rows(a), kInt64), to(a.columns, kInt64)}, 0);
  return coo_of_values(indices, compressed_values(rows), x.sizes(), csr_ascends("to_sparse", a));
}

}  // namespace tercel
