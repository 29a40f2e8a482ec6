#pragma once

#include "tercel/ops/index/gather_kernels.h"

namespace tercel {

/** What a scattered element does to the one that it meets. */
enum class ScatterKind : uint8_t { Set, Add, Multiply, Maximum, Minimum };

/**
 * indexed[index] = kind(indexed[index], other), in order along dim. Lines (all indices along dim) [begin, end) of the
 * product of sizes. Returns whether all indices were good.
 */
using ScatterFn = bool(ScatterKind kind, const GatherLoop& loop, int64_t begin, int64_t end);

TERCEL_DECLARE_KERNELS(ScatterFn, scatter)

}  // namespace tercel
