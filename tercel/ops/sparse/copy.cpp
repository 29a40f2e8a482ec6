#include "tercel/ops/common/copy.h"

#include <string_view>

#include "tercel/autograd/record.h"
#include "tercel/ops/common/out.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/sparse/compressed_impl.h"
#include "tercel/ops/sparse/coo.h"
#include "tercel/ops/sparse/coo_impl.h"
#include "tercel/ops/sparse/sparse_ops_impl.h"

namespace tercel {

using sparse_ops::by_rows;
using sparse_ops::compressed_of_values;
using sparse_ops::compressed_values;
using sparse_ops::empty_coo;
using sparse_ops::is_blocked;
using sparse_ops::layout_word;
using sparse_ops::make_compressed;
using sparse_ops::make_coo;
using sparse_ops::overwrite;
using sparse_ops::parts_of;
using sparse_ops::replace_parts;
using sparse_ops::with_values;

Tensor sparse_clone(const Tensor& x) {
  if (is_compressed(x.layout())) {
    const SparseData& of = *x.impl().sparse();
    return compressed_of_values(x.layout(), clone(of.indices), clone(of.plain_indices), clone(compressed_values(x)),
                                x.sizes());
  }
  const SparseData& parts = parts_of("clone", x);
  Tensor out = make_coo(clone(parts.indices), clone(parts.values), x.sizes(), parts.coalesced);
  _coalesced_(out, parts.coalesced);
  if (should_record(x)) record("CloneBackward0", out, {x}, [](BackwardCall& call) { call.set(0, call.take()); });
  return out;
}

Tensor sparse_to(const Tensor& x, ScalarType dtype, bool copy) {
  if (is_compressed(x.layout())) {
    if (x.dtype() == dtype) return copy ? clone(x) : x;
    return with_values(x, to(compressed_values(x), dtype));
  }
  const SparseData& parts = parts_of("to", x);
  if (x.dtype() == dtype) return copy ? clone(x) : x;
  Tensor out = make_coo(parts.indices, to(parts.values, dtype), x.sizes(), parts.coalesced);
  if (should_record(x) && is_differentiable(dtype))
    record("ToCopyBackward0", out, {x}, [from = x.dtype()](BackwardCall& call) { call.set(0, to(call.take(), from)); });
  return out;
}

namespace {

/** x = source, of which `copy` has the elements. */
void replace_by_copy(const Tensor& x, const Tensor& source, const Tensor& copy) {
  const bool records = should_record(x, source) && x.is_differentiable();
  check_inplace(x, records);
  const DimVector before(x.sizes());
  overwrite(x, copy, records);
  if (records)
    record_inplace("CopyBackwards", x, {x, source}, [dtype = source.dtype(), before](BackwardCall& call) {
      if (call.needs(0)) {
        const Tensor& grad = call.grad();
        call.set(0, IntSpan(before) == grad.sizes() ? zeros_like(grad)
                                                    : zeros(before, TensorOptions(grad.dtype(), grad.device())));
      }
      if (call.needs(1)) call.set(1, to(call.grad(), dtype));
    });
}

void replace_by_zeros(const Tensor& x, const Tensor& zero) {
  const bool records = should_record(x);
  check_inplace(x, records);
  overwrite(x, zero, records);
  if (records)
    record_inplace("ZeroBackward0", x, {x}, [](BackwardCall& call) { call.set(0, zeros_like(call.grad())); });
}

/** Of a tensor of the same layout, sizes, block sizes and number of entries: its indices too. */
const Tensor& compressed_copy_(const Tensor& x, const Tensor& source) {
  TERCEL_CHECK(x.layout() == source.layout(), RuntimeError,
               "copy of sparse compressed tensors having different layouts is not supported. self layout is ",
               layout_word(x.layout()), " and src layout is ", layout_word(source.layout()));
  TERCEL_CHECK(_nnz(x) == _nnz(source), RuntimeError,
               "copy of sparse compressed tensors: only sparse compressed tensors with the same number of specified "
               "elements are supported.");
  TERCEL_CHECK(x.dim() == source.dim(), RuntimeError,
               "expected self and src to have the same number of dimensions, got ", x.dim(), " and ", source.dim());
  for (size_t d = x.sizes().size(); d-- > 0;)
    TERCEL_CHECK(x.sizes()[d] == source.sizes()[d], RuntimeError,
                 "expected shapes of self and src to match along dimension ", d, ", got ", x.sizes()[d], " and ",
                 source.sizes()[d]);
  const SparseData& parts = *source.impl().sparse();
  TERCEL_CHECK(
      x.impl().sparse()->values.sizes() == parts.values.sizes(), RuntimeError,
      "copy of sparse compressed tensors having different block sizes is not supported. The values of self are ",
      x.impl().sparse()->values.sizes(), ", those of src ", parts.values.sizes());
  if (!x.is_same(source))
    replace_by_copy(x, source,
                    make_compressed(x.layout(), clone(parts.indices), clone(parts.plain_indices),
                                    to(parts.values, x.dtype(), true), x.sizes()));
  return x;
}

}  // namespace

const Tensor& sparse_copy_(const Tensor& x, const Tensor& source) {
  check_defined("copy_", x, "self");
  check_defined("copy_", source, "src");
  if (has_compressed(x, source)) return compressed_copy_(x, source);
  TERCEL_CHECK(is_sparse(x.layout()) && is_sparse(source.layout()), RuntimeError,
               "copy_() between dense and sparse Tensors is not implemented! Found self layout = ",
               to_string(x.layout()), " and src layout = ", to_string(source.layout()));
  const SparseData& parts = parts_of("copy_", source);
  const SparseData& before = parts_of("copy_", x);
  TERCEL_CHECK(x.sizes() == source.sizes() || before.values.size(0) == 0, RuntimeError,
               "copy_: expected the sizes of a sparse tensor with entries, ", x.sizes(), ", but src has ",
               source.sizes());
  if (x.is_same(source)) return x;
  replace_by_copy(x, source,
                  make_coo(clone(parts.indices), to(parts.values, x.dtype(), true), source.sizes(), parts.coalesced));
  return x;
}

const Tensor& sparse_zero_(const Tensor& x) {
  if (is_compressed(x.layout())) {
    replace_by_zeros(x, with_values(x.detach(), zeros_like(x.impl().sparse()->values)));
    return x;
  }
  const SparseData& parts = parts_of("zero_", x);
  replace_by_zeros(x, empty_coo(x.sizes(), x.dtype(), x.device(), parts.sparse_dim));
  return x;
}

namespace {

/** Without entries, in the layout of the options, with the batch, block and dense sizes of x, which is compressed. */
Tensor compressed_zeros(const Tensor& x, TensorOptions options) {
  const SparseData& of = *x.impl().sparse();
  const bool blocked = is_blocked(options.layout);
  TERCEL_CHECK(blocked == is_blocked(x.layout()), RuntimeError, "sparse_compressed_tensor_with_dims: blocksize ",
               blocked ? "needs to be a tuple of size 2, but got 0" : "cannot be specified for non-block layout ",
               blocked ? "" : layout_word(options.layout));
  const auto batch = static_cast<size_t>(sparse_ops::batch_dims(x));
  DimVector offsets(x.sizes().subspan(0, batch)), none(offsets), value_sizes(of.values.sizes());
  const size_t line = batch + (by_rows(options.layout) ? 0 : 1);
  offsets.push_back((blocked ? x.sizes()[line] / value_sizes[line + 1] : x.sizes()[line]) + 1);
  none.push_back(0);
  value_sizes[batch] = 0;
  const TensorOptions index(of.indices.dtype(), options.device);
  return make_compressed(options.layout, zeros(offsets, index), empty(none, index),
                         empty(value_sizes, TensorOptions(options.dtype, options.device)), x.sizes());
}

}  // namespace

Tensor sparse_empty_like(const char* op, const Tensor& x, TensorOptions options, MemoryFormat format) {
  if (options.layout == Layout::Strided) {
    const MemoryFormat wanted = format == MemoryFormat::Preserve ? MemoryFormat::Contiguous : format;
    const Tensor out = empty(x.sizes(), options, wanted);
    if (std::string_view(op) == "zeros_like") zero_(out);
    return out;
  }
  TERCEL_CHECK(format == MemoryFormat::Preserve, RuntimeError,
               "memory format option is only supported by strided tensors");
  if (is_compressed(x.layout()) && options.layout != x.layout() && std::string_view(op) == "zeros_like") {
    if (options.layout == Layout::SparseCoo)
      return empty_coo(x.sizes(), options.dtype, options.device, sparse_ops::batch_dims(x) + 2);
    return compressed_zeros(x, options);
  }
  TERCEL_CHECK(options.layout == x.layout() || !is_compressed(x.layout()) || !is_compressed(options.layout),
               RuntimeError, "empty_like with different sparse layout is not supported (self is ",
               layout_word(x.layout()), " but you requested ", layout_word(options.layout), ")");
  if (is_compressed(x.layout()) && options.layout == x.layout()) {
    const SparseData& of = *x.impl().sparse();
    return make_compressed(x.layout(), clone(of.indices), clone(of.plain_indices),
                           empty(of.values.sizes(), TensorOptions(options.dtype, options.device)), x.sizes());
  }
  const SparseData& parts = parts_of(op, x);
  TERCEL_CHECK(options.layout == Layout::SparseCoo, NotImplementedError, op, ": a tensor of layout ",
               to_string(options.layout), " cannot be created this way");
  return empty_coo(x.sizes(), options.dtype, options.device, parts.sparse_dim);
}

const Tensor& sparse_put_out(const char* op, const Tensor& out, const Tensor& result) {
  check_defined(op, out, "out");
  check_out_gradients(op, result);
  check_out_gradients(op, out);
  TERCEL_CHECK(out.layout() == result.layout(), RuntimeError, op, ": expected an out= tensor of layout ",
               to_string(result.layout()), " but got ", to_string(out.layout()));
  return out.is_same(result) ? out : sparse_assign_(out, result);
}

}  // namespace tercel
