#pragma once

#include <cstddef>
#include <cstdint>

#include "tercel/core/dispatch.h"

namespace tercel {

/** Counts the nonzero bytes among n. */
using CountTrueFn = int64_t(const uint8_t* truth, int64_t n);
/** out[] = first + i for each nonzero byte i of n. */
using TruePositionsFn = void(const uint8_t* truth, int64_t n, int64_t first, int64_t* out);
/** out[] = the elements of x, `item` bytes each, whose byte of n is nonzero. */
using TrueElementsFn = void(const void* x, size_t item, const uint8_t* truth, int64_t n, void* out);

TERCEL_DECLARE_KERNELS(CountTrueFn, count_true)
TERCEL_DECLARE_KERNELS(TruePositionsFn, true_positions)
TERCEL_DECLARE_KERNELS(TrueElementsFn, true_elements)

}  // namespace tercel
