// Loops over several threads.
//
// Note [Partition]
// A range of n indices is cut into min(num_threads(), n / grain) chunks (at least one) of nearly equal size, in order,
// the longer ones first; inside a parallel region, into one. The cut depends on nothing else: not on which thread is
// idle, nor on how many threads the system grants. So a result that is combined from per-chunk parts in index order is
// the same in every run with the same number of threads.
//
// Any thread may call set_num_threads at any time, so two calls of num_threads() may differ. A loop that keeps data
// for each chunk (scratch, partial sums) therefore takes the number of chunks and their indices from one
// Partition object, and so do several loops that must see the same chunks.
#pragma once

#include <cstdint>

#include "tercel/util/export.h"
#include "tercel/util/function_ref.h"
#include "tercel/util/macros.h"

namespace tercel {

/** Threads that parallel_for uses: set_num_threads, else TERCEL_NUM_THREADS, else OMP_NUM_THREADS, else usable_cpus().
 */
TERCEL_API int64_t num_threads();

/** Takes effect at the next loop of any thread; ValueError outside [1, 1024], or inside a parallel region. */
TERCEL_API void set_num_threads(int64_t count);

/** Whether the caller runs inside a chunk of a loop that was split. */
TERCEL_API bool in_parallel_region() noexcept;

class Partition;

namespace detail {
TERCEL_API void run_chunks(const Partition& partition, FunctionRef<void(int64_t, int64_t, int64_t)> body);
TERCEL_API void parallel_for_split(int64_t begin, int64_t end, int64_t grain, FunctionRef<void(int64_t, int64_t)> body);
}  // namespace detail

/** How [begin, end) is cut, decided when the object is made, for loops that need the number of chunks or their indices.
 */
class Partition {
 public:
  /** No chunk is smaller than `grain` (at least 1). See Note [Partition]. */
  TERCEL_API Partition(int64_t begin, int64_t end, int64_t grain);

  /** How many chunks there are: 0 for an empty range. */
  int64_t chunks() const noexcept { return chunks_; }
  /** First index of a chunk; of chunk chunks(), the end of the range. */
  int64_t begin(int64_t chunk) const noexcept { return begin_ + size_ * chunk + (chunk < longer_ ? chunk : longer_); }

  /** Calls body(chunk, first, last) once for each chunk, at the same time on several threads, as parallel_for does. */
  template <class Body>
  void run(Body&& body) const {
    if (chunks_ > 1)
      detail::run_chunks(*this, body);
    else if (chunks_ == 1)
      body(int64_t{0}, begin(0), begin(1));
  }

 private:
  int64_t begin_;
  int64_t chunks_ = 0;
  // The first `longer_` chunks have one index more than `size_`.
  int64_t size_ = 0, longer_ = 0;
};

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
