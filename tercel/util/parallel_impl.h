// What parallel_for and its threads share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <mutex>

#include "tercel/util/function_ref.h"

namespace tercel::detail {

constexpr int64_t kMaxThreads = 1024;

using ParallelBody = FunctionRef<void(int64_t, int64_t)>;

/** A range cut into chunks as Note [Partition] says. */
struct ChunkedLoop {
  int64_t begin;
  int64_t count;
  int64_t chunks;
  ParallelBody body;

  int64_t chunk_begin(int64_t chunk) const { return begin + count / chunks * chunk + std::min(chunk, count % chunks); }

  /** Runs one chunk, with thread_index() set; keeps the exception of the lowest chunk. */
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

/** Runs every chunk once, on as many threads as there are chunks at most, and returns when all are done. */
void run_on_threads(ChunkedLoop& loop);

/** Whether this process was forked from one that had threads running: they are gone, so everything runs serially. */
bool threads_lost_in_fork() noexcept;

}  // namespace tercel::detail
