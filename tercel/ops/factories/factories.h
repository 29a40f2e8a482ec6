// Factory functions: creation of new tensors.
#pragma once

#include <initializer_list>

#include "tercel/core/tensor.h"

namespace tercel {

/** Resizes `out`; new elements are not initialised. See Note [Out variants] in common/out.h. */
TERCEL_API const Tensor& empty_out(const Tensor& out, IntSpan sizes);
/** Filled with zeros (ones); float32 unless options say otherwise. */
TERCEL_OP_API(out) Tensor zeros(IntSpan sizes, TensorOptions options = {});
TERCEL_OP_API(out) Tensor ones(IntSpan sizes, TensorOptions options = {});
/** Filled with the value; the dtype is the value's unless options say otherwise. */
TERCEL_API Tensor full(IntSpan sizes, Scalar value);
TERCEL_OP_API(out) Tensor full(IntSpan sizes, Scalar value, TensorOptions options);

/**
 * New tensors with x's sizes, and its dtype and device unless options say otherwise. Preserve keeps the strides of a
 * dense tensor; for others it makes dense strides in the same order.
 */
TERCEL_API Tensor empty_like(const Tensor& x, MemoryFormat format = MemoryFormat::Preserve);
TERCEL_API Tensor empty_like(const Tensor& x, TensorOptions options, MemoryFormat format = MemoryFormat::Preserve);
TERCEL_API Tensor zeros_like(const Tensor& x, MemoryFormat format = MemoryFormat::Preserve);
TERCEL_API Tensor zeros_like(const Tensor& x, TensorOptions options, MemoryFormat format = MemoryFormat::Preserve);
TERCEL_API Tensor ones_like(const Tensor& x, MemoryFormat format = MemoryFormat::Preserve);
TERCEL_API Tensor ones_like(const Tensor& x, TensorOptions options, MemoryFormat format = MemoryFormat::Preserve);
TERCEL_API Tensor full_like(const Tensor& x, Scalar value, MemoryFormat format = MemoryFormat::Preserve);
TERCEL_API Tensor full_like(const Tensor& x, Scalar value, TensorOptions options,
                            MemoryFormat format = MemoryFormat::Preserve);

/** start, start + step, ..., excluding end: int64 for integers, else float32, unless options say otherwise. */
TERCEL_API Tensor arange(Scalar end);
TERCEL_API Tensor arange(Scalar start, Scalar end, Scalar step = 1);
TERCEL_API Tensor arange(Scalar start, Scalar end, Scalar step, TensorOptions options);
TERCEL_API const Tensor& arange_out(const Tensor& out, Scalar end);
TERCEL_API const Tensor& arange_out(const Tensor& out, Scalar start, Scalar end, Scalar step = 1);
/** start, start + step, ..., including end. */
TERCEL_OP_API(out) Tensor range(Scalar start, Scalar end, Scalar step = 1, TensorOptions options = {});
/** `steps` evenly spaced values from start to end, both included; for integer dtypes the bounds are truncated first. */
TERCEL_OP_API(out) Tensor linspace(Scalar start, Scalar end, int64_t steps, TensorOptions options = {});
/** base to the power of the values of linspace(). */
TERCEL_OP_API(out)
Tensor logspace(Scalar start, Scalar end, int64_t steps, double base = 10, TensorOptions options = {});
/** Identity matrix of n x m (m defaults to n). */
TERCEL_OP_API(out) Tensor eye(int64_t n, int64_t m = -1, TensorOptions options = {});

/** A 0-dimensional tensor. */
TERCEL_API Tensor scalar_tensor(Scalar value);
TERCEL_OP_API(python) Tensor scalar_tensor(Scalar s, TensorOptions options);

namespace detail {
/** A nested braced list of numbers, as in tensor({{1, 2}, {3, 4}}). */
class TensorLiteral {
 public:
  template <class T>
  requires(std::is_arithmetic_v<T> || (std::is_class_v<T> && std::is_convertible_v<T, Scalar>)) TensorLiteral(T value)
      : value_(value) {}
  TensorLiteral(std::initializer_list<TensorLiteral> list) : list_(list), is_list_(true) {}

  bool is_list() const { return is_list_; }
  Scalar value() const { return value_; }
  Span<TensorLiteral> list() const { return {list_.begin(), list_.size()}; }

 private:
  Scalar value_;
  // The list lives until the end of the full expression that contains the braces.
  std::initializer_list<TensorLiteral> list_;
  bool is_list_ = false;
};
}  // namespace detail

/** A tensor from a nested list of numbers: bool, int64, float32 or complex64, by the widest of them. RuntimeError if it
 * is ragged. */
TERCEL_API Tensor tensor(std::initializer_list<detail::TensorLiteral> list);
TERCEL_API Tensor tensor(std::initializer_list<detail::TensorLiteral> list, TensorOptions options);

}  // namespace tercel
