// Partitioning of scans into tasks.
//
// Note [Scans]
// The input is contiguous [outer, n, inner]. If inner is more than 1, strips of columns are scanned in parallel, row by
// row. A single row is a chain of dependent operations. Sums break it up: short runs of elements are scanned in
// parallel, and the total before each run is added to it. If rows are too long and too few for the threads, they are
// split into blocks of kScanBlock, independent of the number of threads: Totals computes each block's total, Carries
// the total before each block, Finish scans the blocks. Whole does the same arithmetic in one pass, so the result has
// the same bits. Products are not split: partial products may overflow where the product does not.
#pragma once

#include <cstdint>

#include "tercel/core/dispatch.h"
#include "tercel/ops/common/elementwise_loop_impl.h"

namespace tercel {

enum class ScanOp : uint8_t { Sum, Product, Maximum, Minimum, LogSumExp };
enum class ScanPhase : uint8_t { Whole, Totals, Carries, Finish };

constexpr int64_t kScanBlock = 32768;
/** Bytes of a block's total. */
constexpr int64_t kScanCarryBytes = 16;
constexpr int64_t kMaxScanStrip = 1024;

/** Contiguous [outer, n, inner] of int64, float or double, along n. */
struct ScanLoop {
  ScanOp op;
  ScanPhase phase;
  Compute compute;
  bool reverse;  ///< from the last element to the first; sums and LogSumExp only
  int64_t n, inner;
  int64_t strip;   ///< columns scanned in parallel if inner > 1
  int64_t blocks;  ///< blocks per row
  const void* x;
  void* out;
  int64_t* indices;  ///< extrema only
  char* carries;     ///< kScanCarryBytes for each block of each row
};
/**
 * Rows [begin, end) of outer if inner is 1 (Whole, Carries), or tasks (row, block), the block fastest (Totals, Finish);
 * else tasks (outer, strip), the strip fastest.
 */
using ScanFn = void(const ScanLoop& loop, int64_t begin, int64_t end);

TERCEL_DECLARE_KERNELS(ScanFn, scan)

}  // namespace tercel
