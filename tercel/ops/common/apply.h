// Applies a function to the elements of one, two or three tensors of the same number of elements, like TH_TENSOR_APPLY.
//
// Note [Apply]
// Elements are matched by their row-major index, regardless of shape: [2, 3] matches [6] and [3, 1, 2]. Nothing is
// broadcast, promoted or recorded, and everything runs on the caller's thread. Each tensor has its own cursor, which
// merges dimensions that are contiguous with each other, so that contiguous tensors are one loop. For arithmetic, the
// ops are faster; these functions are for operations without an op:
//
//   apply2<float, const int64_t>(scores, labels, [&](float& s, int64_t l) { ... });
#pragma once

#include <tuple>
#include <type_traits>
#include <utility>

#include "tercel/core/tensor.h"

namespace tercel {

namespace detail {

/** A position in a tensor, in row-major order. */
class TERCEL_API ElementCursor {
 public:
  explicit ElementCursor(const Tensor& t);

  std::byte* position() const { return position_; }
  /** Distance in bytes to the next element, and the number of elements with that distance, including this one. */
  int64_t step() const { return steps_.empty() ? 0 : steps_[0]; }
  int64_t run() const { return sizes_.empty() ? 1 : sizes_[0] - index_[0]; }
  /** Advances by at most run() elements. */
  void advance(int64_t count);

 private:
  std::byte* position_;
  DimVector sizes_, steps_, index_;  // innermost first, merged
};

/** Throws if the tensor has another dtype, or if it is written to and the change would have to be recorded. */
TERCEL_API void check_apply(const char* op, const Tensor& t, ScalarType dtype, size_t alignment, bool writes,
                            int64_t numel);

template <class... T, class F, size_t... I>
void apply_together(const char* op, F& f, std::index_sequence<I...>, const std::conditional_t<true, Tensor, T>&... t) {
  const int64_t numel = std::get<0>(std::tie(t...)).numel();
  (check_apply(op, t, scalar_type_of<std::remove_const_t<T>>(), alignof(T), !std::is_const_v<T>, numel), ...);
  // Before f runs, which may throw or use tensors that were saved for backward.
  ((std::is_const_v<T> ? void() : t.impl().bump_version()), ...);
  ElementCursor cursors[] = {ElementCursor(t)...};
  for (int64_t left = numel; left > 0;) {
    int64_t count = left;
    ((count = cursors[I].run() < count ? cursors[I].run() : count), ...);
    std::byte* at[] = {cursors[I].position()...};
    for (int64_t i = 0; i < count; ++i) {
      f(*reinterpret_cast<T*>(at[I])...);
      ((at[I] += cursors[I].step()), ...);
    }
    (cursors[I].advance(count), ...);
    left -= count;
  }
}

}  // namespace detail

/**
 * Calls f(a) for every element, as a reference to A: a const A is read-only. RuntimeError if the tensor's dtype is not
 * A, and for a tensor that is written to and requires grad while gradients are enabled.
 */
template <class A, class F>
void apply(const Tensor& a, F f) {
  detail::apply_together<A>("apply", f, std::index_sequence_for<A>(), a);
}
/** f(a, b) for every pair; RuntimeError "inconsistent tensor size" unless both have the same number of elements. */
template <class A, class B, class F>
void apply2(const Tensor& a, const Tensor& b, F f) {
  detail::apply_together<A, B>("apply2", f, std::index_sequence_for<A, B>(), a, b);
}
template <class A, class B, class C, class F>
void apply3(const Tensor& a, const Tensor& b, const Tensor& c, F f) {
  detail::apply_together<A, B, C>("apply3", f, std::index_sequence_for<A, B, C>(), a, b, c);
}

}  // namespace tercel
