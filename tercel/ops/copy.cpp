#include "tercel/ops/copy.h"

#include <algorithm>
#include <cstring>

#include "tercel/autograd/record.h"
#include "tercel/ops/copy_impl.h"
#include "tercel/ops/factories.h"
#include "tercel/ops/sum_to_size.h"
#include "tercel/ops/views.h"
#include "tercel/util/parallel.h"

namespace tercel {

namespace {

/** Gradient of a copy: the incoming one, in the dtype of what was copied. */
auto convert_back(ScalarType dtype) {
  return [dtype](BackwardCall& call) { call.set(0, to(call.take(), dtype)); };
}

}  // namespace

Tensor clone(const Tensor& x, MemoryFormat format) {
  check_defined(x, "clone", "self");
  Tensor out;
  if (format == MemoryFormat::Preserve)
    out = x.is_contiguous()
              ? empty(x.sizes(), x.options())
              : empty_strided(x.sizes(),
                              x.impl().is_non_overlapping_and_dense() ? DimVector(x.strides())
                                                                      : infer_dense_strides(x.sizes(), x.strides()),
                              x.options());
  else
    out = empty_strided(x.sizes(), strides_for(x.sizes(), format), x.options());
  copy_elements_out(out, x);
  if (should_record(x)) record("CloneBackward0", out, {x}, convert_back(x.dtype()));
  return out;
}

Tensor contiguous(const Tensor& x) {
  check_defined(x, "contiguous", "self");
  return x.is_contiguous() ? x : clone(x, MemoryFormat::Contiguous);
}

Tensor to(const Tensor& x, ScalarType dtype) {
  check_defined(x, "to", "self");
  if (x.dtype() == dtype) return x;
  TensorOptions options = x.options();
  options.dtype = dtype;
  Tensor out = x.impl().is_non_overlapping_and_dense() ? empty_strided(x.sizes(), x.strides(), options)
                                                       : empty(x.sizes(), options);
  copy_elements_out(out, x);
  if (should_record(x) && is_floating(dtype)) record("ToCopyBackward0", out, {x}, convert_back(x.dtype()));
  return out;
}

const Tensor& copy_(const Tensor& x, const Tensor& source) {
  check_defined(x, "copy_", "self");
  check_defined(source, "copy_", "src");
  const bool records = should_record(x, source) && x.is_floating_point();
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

const Tensor& fill_(const Tensor& x, Scalar value) {
  check_defined(x, "fill_", "self");
  const bool records = should_record(x);
  check_inplace(x, records);
  visit_all_types("fill_", x.dtype(), [&]<class T> {
    const T number = value.to<T>();
    if (x.impl().is_non_overlapping_and_dense()) {
      T* first = x.data<T>();
      parallel_for(0, x.numel(), 1 << 18,
                   [&](int64_t begin, int64_t end) { std::fill(first + begin, first + end, number); });
    } else {
      // An expanded tensor may be filled: every element gets the same value, however often.
      Tensor one = empty({}, x.options());
      *one.data<T>() = number;
      fill_elements_out(x, one);
    }
  });
  x.impl().bump_version();
  if (records)
    record_inplace("FillBackward0", x, {x}, [](BackwardCall& call) { call.set(0, zeros_like(call.grad())); });
  return x;
}

const Tensor& zero_(const Tensor& x) {
  if (x.defined() && x.is_contiguous() && !should_record(x)) {
    if (x.numel() > 0) {
      auto* first = static_cast<std::byte*>(x.data_ptr());
      parallel_for(0, static_cast<int64_t>(x.nbytes()), 1 << 20, [&](int64_t begin, int64_t end) {
        std::memset(first + begin, 0, static_cast<size_t>(end - begin));
      });
    }
    check_inplace(x, false);
    x.impl().bump_version();
    return x;
  }
  return fill_(x, 0);
}

Scalar item(const Tensor& x) {
  check_defined(x, "item", "self");
  TERCEL_CHECK(x.numel() == 1, ValueError, "a Tensor with ", x.numel(), " elements cannot be converted to Scalar");
  return visit_all_types("item", x.dtype(), [&]<class T> { return Scalar(*x.data<T>()); });
}

Tensor Tensor::clone(MemoryFormat format) const { return tercel::clone(*this, format); }
Tensor Tensor::contiguous() const { return tercel::contiguous(*this); }
Tensor Tensor::to(ScalarType type) const { return tercel::to(*this, type); }
Tensor& Tensor::copy_(const Tensor& source) {
  tercel::copy_(*this, source);
  return *this;
}
Tensor& Tensor::fill_(Scalar value) {
  tercel::fill_(*this, value);
  return *this;
}
Tensor& Tensor::zero_() {
  tercel::zero_(*this);
  return *this;
}
Scalar Tensor::item() const { return tercel::item(*this); }

}  // namespace tercel
