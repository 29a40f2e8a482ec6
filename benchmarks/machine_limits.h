// Limits of the machine, measured in the same run as the benchmarks, which report the percentage that they reach.
#pragma once

#include <cstdint>

namespace limits {

/** Operations per second (a multiply-add is two) of float FMAs on registers, in total over the threads. */
double fma_peak(int64_t threads);
/** Bytes per second of a = b + s * c over arrays far larger than the caches, 12 bytes each, streaming stores. */
double stream_rate(int64_t threads);
/** Bytes per second of a *= s in place over an array far larger than the caches, 8 bytes per element. */
double update_rate(int64_t threads);
/** Bytes per second of a sum over an array far larger than the caches. */
double read_rate(int64_t threads);
/** Random rows per second, of `dim` floats out of `rows`, summed with prefetch, from huge pages. */
double gather_rate(int64_t threads, int64_t rows, int64_t dim);

}  // namespace limits
