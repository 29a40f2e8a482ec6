// Interface between parallel loops and the thread pool.
#pragma once

#include <cstdint>
#include <exception>
#include <mutex>

#include "tercel/util/function_ref.h"
#include "tercel/util/parallel.h"

namespace tercel::detail {

constexpr int64_t kMaxThreads = 1024;

using ChunkBody = FunctionRef<void(int64_t, int64_t, int64_t)>;

/** One run of a partition. */
struct ChunkedLoop {
  const Partition& partition;
  ChunkBody body;

  /** Runs one chunk, inside a parallel region; keeps the exception of the lowest chunk. */
  void run(int64_t chunk);
  /** Runs all chunks, one after the other. */
  void run_serial();
  void rethrow() const {
    if (exception) std::rethrow_exception(exception);
  }

  std::mutex exception_mutex;
  int64_t exception_chunk = 0;
  std::exception_ptr exception;
};

/** Runs every chunk once, on at most one thread per chunk, and returns when all are done. */
void run_on_threads(ChunkedLoop& loop);

/** Called in a forked child: the next loop starts new threads. */
void abandon_threads() noexcept;

}  // namespace tercel::detail
