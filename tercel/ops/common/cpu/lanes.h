// In-register reductions over the lanes of a floating-point vector.
#pragma once

#include <utility>

#include "tercel/ops/common/cpu/vec.h"
#include "tercel/util/macros.h"

namespace tercel::TERCEL_ISA {
namespace {

template <int kHalf, class T, size_t... kLane>
TERCEL_ALWAYS_INLINE Vec<T> exchange_halves(Vec<T> v, std::index_sequence<kLane...>) {
  using Register = typename Vec<T>::Batch::register_type;
  const Register r = v.v;
  return typename Vec<T>::Batch(Register(__builtin_shufflevector(r, r, (kLane ^ kHalf)...)));
}

/** Combines all lanes, halves first, then quarters and so on; all lanes get the result. combine must commute. */
template <int kHalf, class T, class Combine>
TERCEL_ALWAYS_INLINE Vec<T> combine_all_lanes(Vec<T> v, Combine combine) {
  if constexpr (kHalf == 0)
    return v;
  else
    return combine_all_lanes<kHalf / 2>(
        combine(v, exchange_halves<kHalf>(v, std::make_index_sequence<static_cast<size_t>(Vec<T>::kSize)>())), combine);
}
template <class T, class Combine>
TERCEL_ALWAYS_INLINE Vec<T> combine_all_lanes(Vec<T> v, Combine combine) {
  return combine_all_lanes<static_cast<int>(Vec<T>::kSize / 2)>(v, combine);
}

template <class T>
TERCEL_ALWAYS_INLINE T first_lane(Vec<T> v) {
  const typename Vec<T>::Batch::register_type r = v.v;
  return r[0];
}

}  // namespace
}  // namespace tercel::TERCEL_ISA
