// tensor() of one number, and of a vector of them; lists are in factories.h.
#pragma once

#include <type_traits>
#include <vector>

#include "tercel/ops/factories/factories.h"

namespace tercel {

namespace detail {
/** What a number of that type becomes where no dtype is given: as in a list. */
TERCEL_API ScalarType literal_dtype(ScalarType type);
/** A vector of `count` numbers that lie at `data`. */
TERCEL_API Tensor tensor_of(const void* data, ScalarType type, size_t count, TensorOptions options);
}  // namespace detail

/** A tensor of one number, without dimensions; bool, int64, float32 or complex64 unless options say otherwise. */
template <class T>
requires std::is_arithmetic_v<T> Tensor tensor(T value, TensorOptions options) { return scalar_tensor(value, options); }
template <class T>
requires std::is_arithmetic_v<T> Tensor tensor(T value) {
  return scalar_tensor(value, detail::literal_dtype(Scalar(value).dtype()));
}
/** A tensor of the vector's numbers; its dtype likewise. */
template <class T>
requires(!std::is_same_v<T, bool>) Tensor tensor(const std::vector<T>& values, TensorOptions options) {
  return detail::tensor_of(values.data(), scalar_type_of<T>(), values.size(), options);
}
template <class T>
requires(!std::is_same_v<T, bool>) Tensor tensor(const std::vector<T>& values) {
  return tensor(values, detail::literal_dtype(scalar_type_of<T>()));
}

}  // namespace tercel
