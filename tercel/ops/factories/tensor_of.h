// tensor() of a single number and of a vector; nested lists are in factories.h.
#pragma once

#include <type_traits>
#include <vector>

#include "tercel/ops/factories/factories.h"

namespace tercel {

namespace detail {
/** The default dtype for numbers of that type, as in a list. */
TERCEL_API ScalarType literal_dtype(ScalarType type);
/** A vector of the `count` numbers at `data`. */
TERCEL_API Tensor tensor_of(const void* data, ScalarType type, size_t count, TensorOptions options);
}  // namespace detail

/** A 0-dimensional tensor; bool, int64, float32 or complex64 unless options say otherwise. */
template <class T>
requires std::is_arithmetic_v<T> Tensor tensor(T value, TensorOptions options) { return scalar_tensor(value, options); }
template <class T>
requires std::is_arithmetic_v<T> Tensor tensor(T value) {
  return scalar_tensor(value, detail::literal_dtype(Scalar(value).dtype()));
}
/** A tensor with the numbers of a vector; the dtype is chosen as for a single number. */
template <class T>
requires(!std::is_same_v<T, bool>) Tensor tensor(const std::vector<T>& values, TensorOptions options) {
  return detail::tensor_of(values.data(), scalar_type_of<T>(), values.size(), options);
}
template <class T>
requires(!std::is_same_v<T, bool>) Tensor tensor(const std::vector<T>& values) {
  return tensor(values, detail::literal_dtype(scalar_type_of<T>()));
}

}  // namespace tercel
