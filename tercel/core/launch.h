// Ranges of work, cut for the kernels of a device.
//
// Note [Launches]
// A kernel works on a range [begin, end). On the CPU it is called for chunks of it, on several threads (Note
// [Partition]); a kernel of another device is called once, for the whole range, which it divides among that device's
// threads. So front ends call kernels by launch(), and those with data for each chunk by a launch_partition().
#pragma once

#include <cstdint>

#include "tercel/core/device.h"
#include "tercel/util/macros.h"
#include "tercel/util/parallel.h"

namespace tercel {

namespace detail {
/** The grain for which [begin, end) is cut as the device needs it. */
inline int64_t launch_grain(Device device, int64_t begin, int64_t end, int64_t grain) {
  return device.is_cpu() || begin >= end ? grain : end - begin;
}
}  // namespace detail

/** parallel_for() on the CPU; for another device one call body(begin, end), unless the range is empty. */
template <class Body>
TERCEL_ALWAYS_INLINE void launch(Device device, int64_t begin, int64_t end, int64_t grain, Body&& body) {
  parallel_for(begin, end, detail::launch_grain(device, begin, end, grain), body);
}

/** The Partition of launch(): one chunk for a device other than the CPU. */
inline Partition launch_partition(Device device, int64_t begin, int64_t end, int64_t grain) {
  return Partition(begin, end, detail::launch_grain(device, begin, end, grain));
}

}  // namespace tercel
