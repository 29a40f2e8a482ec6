// Loops over several threads.
//
// Note [Partition]
// A range of n indices is cut into min(num_threads(), n / grain) chunks (at least one) of nearly equal size, in order,
// the longer ones first. Chunk i reports thread_index() == i while it runs. The cut depends on nothing else: not on
// which thread is free, nor on how many threads the system grants. So a result that is combined from per-chunk parts in
// index order is the same in every run with the same number of threads.
#pragma once

#include <cstdint>

#include "tercel/util/export.h"
#include "tercel/util/function_ref.h"
#include "tercel/util/macros.h"

namespace tercel {

/** Threads that parallel_for uses: set_num_threads, else TERCEL_NUM_THREADS, else OMP_NUM_THREADS, else usable_cpus().
 */
TERCEL_API int64_t num_threads();

/** Takes effect at the next parallel_for of any thread; ValueError outside [1, 1024], or inside a parallel region. */
TERCEL_API void set_num_threads(int64_t count);

/** Whether the caller runs inside a chunk of a parallel_for that was split. */
TERCEL_API bool in_parallel_region() noexcept;

/** Index of the running chunk, in [0, num_threads()); 0 outside a parallel region. */
TERCEL_API int64_t thread_index() noexcept;

/** Number of chunks that parallel_for cuts `count` indices into when called outside a parallel region. */
TERCEL_API int64_t num_chunks(int64_t count, int64_t grain);

namespace detail {
TERCEL_API void parallel_for_split(int64_t begin, int64_t end, int64_t grain, FunctionRef<void(int64_t, int64_t)> body);
}

/**
 * Calls body(first, last) for consecutive chunks of [begin, end), at the same time on several threads; returns when all
 * are done. No chunk is smaller than `grain` (at least 1), so less than 2 * grain indices stay on the caller's thread,
 * at the cost of a call. A call inside a chunk runs serially. If chunks throw, the others still finish, and the
 * exception of the first chunk in index order reaches the caller. See Note [Partition].
 */
template <class Body>
TERCEL_ALWAYS_INLINE void parallel_for(int64_t begin, int64_t end, int64_t grain, Body&& body) {
  const int64_t count = end - begin;
  if (count <= 0) return;
  if (count - grain < grain) {
    body(begin, end);
    return;
  }
  detail::parallel_for_split(begin, end, grain, body);
}

}  // namespace tercel
