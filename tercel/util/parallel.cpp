#include "tercel/util/parallel.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <string_view>

#include "tercel/util/cpu_info.h"
#include "tercel/util/error.h"
#include "tercel/util/parallel_impl.h"

namespace tercel {

namespace {

using detail::kMaxThreads;

// 0 until first used.
std::atomic<int64_t> thread_count{0};

// Whether this thread runs a chunk. Initial-exec: reading it costs no call, also from a shared library.
__attribute__((tls_model("initial-exec"))) thread_local bool in_chunk = false;

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
    // A list has one number per nesting level; the first is the outermost.
    const std::string_view list(text);
    const int64_t count = parse_threads(list.substr(0, list.find(',')));
    if (count > 0) return count;
  }
  return std::min(usable_cpus(), kMaxThreads);
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

bool in_parallel_region() noexcept { return in_chunk; }

Partition::Partition(int64_t begin, int64_t end, int64_t grain) : begin_(begin) {
  const int64_t count = end - begin;
  if (count <= 0) return;
  chunks_ = in_chunk ? 1 : std::clamp(count / std::max<int64_t>(grain, 1), int64_t{1}, num_threads());
  size_ = count / chunks_;
  longer_ = count % chunks_;
}

namespace detail {

void ChunkedLoop::run(int64_t chunk) {
  const bool outer = in_chunk;
  in_chunk = true;
  try {
    body(chunk, partition.begin(chunk), partition.begin(chunk + 1));
  } catch (...) {
    const std::lock_guard lock(exception_mutex);
    if (!exception || chunk < exception_chunk) {
      exception_chunk = chunk;
      exception = std::current_exception();
    }
  }
  in_chunk = outer;
}

void ChunkedLoop::run_serial() {
  for (int64_t chunk = 0; chunk < partition.chunks(); ++chunk) run(chunk);
}

void run_chunks(const Partition& partition, ChunkBody body) {
  ChunkedLoop loop{partition, body, {}, 0, nullptr};
  // A serial run keeps the chunks, so that a reduction gives the same sums when the pool is busy.
  if (in_chunk)
    loop.run_serial();
  else
    run_on_threads(loop);
  loop.rethrow();
}

void parallel_for_split(int64_t begin, int64_t end, int64_t grain, FunctionRef<void(int64_t, int64_t)> body) {
  Partition(begin, end, grain).run([body](int64_t, int64_t first, int64_t last) { body(first, last); });
}

}  // namespace detail

}  // namespace tercel
