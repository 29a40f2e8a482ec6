// Unchecked access to elements by index, for loops over small tensors.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tercel/util/span.h"

namespace tercel {

/** a[i][j] of a tensor of N dimensions, as x.accessor<T, N>() gives it; valid while the tensor keeps its sizes. */
template <class T, size_t N>
class TensorAccessor {
 public:
  constexpr TensorAccessor(T* data, const int64_t* sizes, const int64_t* strides)
      : data_(data), sizes_(sizes), strides_(strides) {}

  constexpr T* data() const { return data_; }
  constexpr IntSpan sizes() const { return {sizes_, N}; }
  constexpr IntSpan strides() const { return {strides_, N}; }
  constexpr int64_t size(size_t d) const { return sizes_[d]; }
  constexpr int64_t stride(size_t d) const { return strides_[d]; }
  /** The element, or an accessor of the remaining dimensions; i is not checked. */
  constexpr decltype(auto) operator[](int64_t i) const {
    T* at = data_ + i * strides_[0];
    if constexpr (N > 1)
      return TensorAccessor<T, N - 1>(at, sizes_ + 1, strides_ + 1);
    else
      return static_cast<T&>(*at);
  }

 private:
  T* data_;
  const int64_t* sizes_;
  const int64_t* strides_;
};

}  // namespace tercel
