// What the machine can do at most, measured beside the work: every benchmark's share of its limit comes from here.
#pragma once

#include <cstdint>

namespace limits {

/** Operations a second (a multiply-add is two) of float FMAs on registers, on that many threads together. */
double fma_peak(int64_t threads);
/** Bytes a second of a = b + s * c over arrays far larger than the caches, 12 bytes an element, streaming stores. */
double stream_rate(int64_t threads);
/** Bytes a second of a *= s in place over an array far larger than the caches, 8 bytes an element. */
double update_rate(int64_t threads);
/** Bytes a second of a sum over an array far larger than the caches. */
double read_rate(int64_t threads);
/** Random rows a second, of `dim` floats out of `rows`, summed with prefetch, from huge pages. */
double gather_rate(int64_t threads, int64_t rows, int64_t dim);

}  // namespace limits
