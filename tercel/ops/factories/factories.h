// New tensors.
#pragma once

#include <initializer_list>

#include "tercel/core/tensor.h"

namespace tercel {

/** `out` with these sizes; new elements are not initialised. Note [Out variants] in common/out.h. */
TERCEL_API const Tensor& empty_out(const Tensor& out, IntSpan sizes);
/** One value everywhere, float32 unless options say otherwise. */
TERCEL_OP_API(out) Tensor zeros(IntSpan sizes, TensorOptions options = {});
TERCEL_OP_API(out) Tensor ones(IntSpan sizes, TensorOptions options = {});
/** Every element the value; its dtype is the value's unless options say otherwise. */
TERCEL_API Tensor full(IntSpan sizes, Scalar value);
TERCEL_OP_API(out) Tensor full(IntSpan sizes, Scalar value, TensorOptions options);

/**
 * Sizes of another tensor, its dtype and device unless options say otherwise, and its strides: Preserve keeps those of
 * a dense tensor, and makes dense ones in the same order of any other.
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

/** start, start + step, ... before end: int64 for integers, else float32, unless options say otherwise. */
TERCEL_API Tensor arange(Scalar end);
TERCEL_API Tensor arange(Scalar start, Scalar end, Scalar step = 1);
TERCEL_API Tensor arange(Scalar start, Scalar end, Scalar step, TensorOptions options);
TERCEL_API const Tensor& arange_out(const Tensor& out, Scalar end);
TERCEL_API const Tensor& arange_out(const Tensor& out, Scalar start, Scalar end, Scalar step = 1);
/** start, start + step, ... up to and with end. */
TERCEL_OP_API(out) Tensor range(Scalar start, Scalar end, Scalar step = 1, TensorOptions options = {});
/** `steps` values from start to end, both included; numbers for an integral dtype are first made integers. */
TERCEL_OP_API(out) Tensor linspace(Scalar start, Scalar end, int64_t steps, TensorOptions options = {});
/** The base to the power of linspace's values. */
TERCEL_OP_API(out)
Tensor logspace(Scalar start, Scalar end, int64_t steps, double base = 10, TensorOptions options = {});
/** Ones on the diagonal of an n x m matrix (m: n). */
TERCEL_OP_API(out) Tensor eye(int64_t n, int64_t m = -1, TensorOptions options = {});

/** A tensor without dimensions. */
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
  // The list lives to the end of the full expression that holds the braces.
  std::initializer_list<TensorLiteral> list_;
  bool is_list_ = false;
};
}  // namespace detail

/** A tensor of the numbers in a nested list: bool, int64, float32 or complex64 by the widest of them. RuntimeError when
 * ragged. */
TERCEL_API Tensor tensor(std::initializer_list<detail::TensorLiteral> list);
TERCEL_API Tensor tensor(std::initializer_list<detail::TensorLiteral> list, TensorOptions options);

}  // namespace tercel
