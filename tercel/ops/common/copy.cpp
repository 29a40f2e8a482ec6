#include "tercel/ops/common/copy.h"

#include <algorithm>
#include <cstring>

#include "tercel/autograd/record.h"
#include "tercel/core/dtype_words.h"
#include "tercel/core/load_element.h"
#include "tercel/ops/common/copy_impl.h"
#include "tercel/ops/common/promotion_impl.h"
#include "tercel/ops/common/sum_to_size.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/sparse/coo.h"
#include "tercel/ops/sparse/sparse_ops_impl.h"
#include "tercel/ops/views/views.h"
#include "tercel/util/parallel.h"

namespace tercel {

namespace {

/** Gradient of a copy: the incoming gradient, in the dtype of the source. */
auto convert_back(ScalarType dtype) {
  return [dtype](BackwardCall& call) { call.set(0, to(call.take(), dtype)); };
}

}  // namespace

Tensor clone(const Tensor& x, MemoryFormat memory_format) {
  // A packed weight never changes, so that copies may share its elements.
  if (x.layout() == Layout::Opaque && x.impl().sparse() && memory_format == MemoryFormat::Preserve) [[unlikely]]
    return Tensor(x.impl().shallow_copy(true, true));
  if (has_sparse(x)) [[unlikely]]
    return sparse_clone(x);
  check_strided("clone", x);
  Tensor out = empty_like(x, memory_format);
  copy_elements_out(out, x);
  if (should_record(x)) record("CloneBackward0", out, {x}, convert_back(x.dtype()));
  return out;
}

Tensor contiguous(const Tensor& x, MemoryFormat format) {
  check_strided("contiguous", x);
  TERCEL_CHECK(format != MemoryFormat::Preserve, RuntimeError,
               "preserve memory format is unsupported by the contiguous operator");
  return x.is_contiguous(format) ? x : clone(x, format);
}

Tensor to(const Tensor& x, ScalarType dtype, bool copy, MemoryFormat format) {
  if (has_sparse(x)) [[unlikely]]
    return sparse_to(x, dtype, copy);
  check_strided("to", x);
  const bool preserves = format == MemoryFormat::Preserve;
  if (!copy && x.dtype() == dtype && (preserves || x.suggest_memory_format() == format)) return x;
  TensorOptions options = x.options();
  options.dtype = dtype;
  // A tensor with gaps keeps its memory format, but not the dimension order that clone() infers.
  if (preserves && !x.impl().is_non_overlapping_and_dense()) format = x.suggest_memory_format();
  Tensor out = empty_like(x, options, format);
  copy_elements_out(out, x);
  if (should_record(x) && is_differentiable(dtype)) record("ToCopyBackward0", out, {x}, convert_back(x.dtype()));
  return out;
}
Tensor to(const Tensor& x, MemoryFormat format) { return to(x, x.dtype(), false, format); }

const Tensor& copy_(const Tensor& x, const Tensor& source) {
  if (has_sparse(x, source)) [[unlikely]]
    return sparse_copy_(x, source);
  check_strided("copy_", x);
  check_strided("copy_", source, "src");
  const bool records = should_record(x, source) && x.is_differentiable();
  check_inplace(x, records);
  copy_elements_out(x, source);
  x.impl().bump_version();
  if (records)
    record_inplace("CopyBackwards", x, {x, source},
                   [dtype = source.dtype(), sizes = DimVector(source.sizes())](BackwardCall& call) {
                     if (call.needs(0)) call.set(0, zeros_like(call.grad()));
                     if (call.needs(1)) call.set(1, to(sum_to_size(call.grad(), sizes), dtype));
                   });
  return x;
}

void fill_elements(const Tensor& x, Scalar value) {
  check_number_fits(x.dtype(), value);
  visit_all_types("fill_", x.dtype(), [&]<class T> {
    const T number = value.to<T>();
    if (x.impl().is_non_overlapping_and_dense()) {
      T* first = x.data<T>();
      parallel_for(0, x.numel(), 1 << 18,
                   [&](int64_t begin, int64_t end) { std::fill(first + begin, first + end, number); });
    } else {
      // Filling an expanded tensor is allowed: every element gets the same value.
      Tensor one = empty({}, x.options());
      *one.data<T>() = number;
      fill_elements_out(x, one);
    }
  });
}

const Tensor& fill_(const Tensor& x, Scalar value) {
  check_strided("fill_", x);
  const bool records = should_record(x);
  check_inplace(x, records);
  fill_elements(x, value);
  x.impl().bump_version();
  if (records)
    record_inplace("FillBackward0", x, {x}, [](BackwardCall& call) { call.set(0, zeros_like(call.grad())); });
  return x;
}

void zero_elements(const Tensor& x) {
  if (!x.impl().is_non_overlapping_and_dense()) return fill_elements(x, 0);
  if (x.numel() == 0) return;
  auto* first = static_cast<std::byte*>(x.data_ptr());
  parallel_for(0, static_cast<int64_t>(x.nbytes()), 1 << 20,
               [&](int64_t begin, int64_t end) { std::memset(first + begin, 0, static_cast<size_t>(end - begin)); });
}

const Tensor& zero_(const Tensor& x) {
  if (has_sparse(x)) [[unlikely]]
    return sparse_zero_(x);
  check_strided("zero_", x);
  if (!should_record(x)) {
    check_inplace(x, false);
    zero_elements(x);
    x.impl().bump_version();
    return x;
  }
  return fill_(x, 0);
}

Scalar item(const Tensor& x) {
  if (!has_sparse(x)) check_strided("item", x);
  TERCEL_CHECK(x.numel() == 1, RuntimeError, "a Tensor with ", x.numel(), " elements cannot be converted to Scalar");
  if (has_sparse(x)) [[unlikely]]
    return item(to_dense(x));
  return visit_all_types("item", x.dtype(), [&]<class T> { return Scalar(load_element(x.data<T>())); });
}

Scalar Tensor::item() const { return tercel::item(*this); }

}  // namespace tercel
