#pragma once

#include "tercel/ops/index/gather_kernels.h"

namespace tercel {

/** How a scattered element is combined with the existing one. */
enum class ScatterKind : uint8_t { Set, Add, Multiply, Maximum, Minimum };

/**
 * indexed[index] = kind(indexed[index], other), in order along dim, for lines (all indices along dim) [begin, end) of
 * the product of sizes. Returns whether all indices are valid.
 */
using ScatterFn = bool(ScatterKind kind, const GatherLoop& loop, int64_t begin, int64_t end);

TERCEL_DECLARE_KERNELS(ScatterFn, scatter)

}  // namespace tercel
