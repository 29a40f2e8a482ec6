#include "tercel/util/parallel.h"

#include <pthread.h>

#include <atomic>
#include <cstdlib>
#include <string_view>

#include "tercel/util/cpu_info.h"
#include "tercel/util/error.h"
#include "tercel/util/parallel_impl.h"

namespace tercel {

namespace {

using detail::kMaxThreads;

// 0 until first asked for.
std::atomic<int64_t> thread_count{0};

// Chunk that this thread runs, or -1. One word and initial-exec: reading it costs no call, also from a shared library.
__attribute__((tls_model("initial-exec"))) thread_local int64_t current_chunk = -1;

std::atomic<bool> used_threads{false};
std::atomic<bool> lost_threads{false};

int64_t parse_threads(std::string_view text) {
  int64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9' || value > kMaxThreads) return 0;
    value = value * 10 + (c - '0');
  }
  return value <= kMaxThreads ? value : 0;
}

int64_t default_threads() {
  if (const char* text = std::getenv("TERCEL_NUM_THREADS")) {
    const int64_t count = parse_threads(text);
    TERCEL_CHECK(count > 0, ConfigError, "TERCEL_NUM_THREADS: expected an integer from 1 to ", kMaxThreads, ", found '",
                 text, "'");
    return count;
  }
  if (const char* text = std::getenv("OMP_NUM_THREADS")) {
    // A list means one number per nesting level; ours is the outermost.
    const std::string_view list(text);
    const int64_t count = parse_threads(list.substr(0, list.find(',')));
    if (count > 0) return count;
  }
  return std::min(usable_cpus(), kMaxThreads);
}

// After fork only the calling thread exists; waiting for the others would hang for ever.
void after_fork_in_child() {
  if (!used_threads.load(std::memory_order_relaxed)) return;
  lost_threads.store(true, std::memory_order_relaxed);
}

void remember_thread_use() {
  if (used_threads.load(std::memory_order_relaxed)) return;
  static const int registered = pthread_atfork(nullptr, nullptr, after_fork_in_child);
  static_cast<void>(registered);
  used_threads.store(true, std::memory_order_relaxed);
}

}  // namespace

int64_t num_threads() {
  const int64_t count = thread_count.load(std::memory_order_relaxed);
  if (count > 0) [[likely]]
    return count;
  int64_t expected = 0;
  const int64_t found = default_threads();
  return thread_count.compare_exchange_strong(expected, found) ? found : expected;
}

void set_num_threads(int64_t count) {
  TERCEL_CHECK(count >= 1 && count <= kMaxThreads, ValueError, "set_num_threads: expected a number from 1 to ",
               kMaxThreads, ", found ", count);
  TERCEL_CHECK(!in_parallel_region(), ValueError, "set_num_threads: called inside a parallel region");
  thread_count.store(count, std::memory_order_relaxed);
}

bool in_parallel_region() noexcept { return current_chunk >= 0; }

int64_t thread_index() noexcept { return current_chunk >= 0 ? current_chunk : 0; }

int64_t num_chunks(int64_t count, int64_t grain) {
  if (count <= 0) return 0;
  return std::clamp(count / std::max<int64_t>(grain, 1), int64_t{1}, num_threads());
}

namespace detail {

bool threads_lost_in_fork() noexcept { return lost_threads.load(std::memory_order_relaxed); }

void ChunkedLoop::run(int64_t chunk) {
  const int64_t outer = current_chunk;
  current_chunk = chunk;
  try {
    body(chunk_begin(chunk), chunk_begin(chunk + 1));
  } catch (...) {
    const std::lock_guard lock(exception_mutex);
    if (!exception || chunk < exception_chunk) {
      exception_chunk = chunk;
      exception = std::current_exception();
    }
  }
  current_chunk = outer;
}

void ChunkedLoop::run_serial() {
  for (int64_t chunk = 0; chunk < chunks; ++chunk) run(chunk);
}

void parallel_for_split(int64_t begin, int64_t end, int64_t grain, ParallelBody body) {
  if (current_chunk >= 0) {
    body(begin, end);
    return;
  }
  const int64_t count = end - begin;
  const int64_t chunks = num_chunks(count, grain);
  if (chunks == 1) {
    body(begin, end);
    return;
  }
  ChunkedLoop loop{begin, count, chunks, body, {}, 0, nullptr};
  // Serial runs keep the chunks: the sums of a reduction must not depend on who else is busy.
  if (lost_threads.load(std::memory_order_relaxed)) {
    loop.run_serial();
  } else {
    remember_thread_use();
    run_on_threads(loop);
  }
  loop.rethrow();
}

}  // namespace detail

}  // namespace tercel
