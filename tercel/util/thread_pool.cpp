// The threads behind parallel_for and Partition.
//
// Note [Who runs a chunk]
// Chunk i belongs to worker i (the caller is worker 0), so that loops over the same rows find them in the same core's
// cache. But no thread waits for a worker that has not started: the caller takes every chunk that is still unclaimed.
// On a busy machine a worker may get no CPU for milliseconds, a hundred times a loop's length. The results do not
// depend on which thread runs a chunk, see Note [Partition].
//
// Note [Life of the pool]
// The pool is never destroyed: at the end of the program other threads may still run loops, and its workers, which are
// detached, still read it. A forked child has none of the workers and leaves the pool as it is, since destroying a
// condition that they wait on would hang; its next loop creates a new pool.
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <utility>

#include "tercel/util/cpu_info.h"
#include "tercel/util/parallel_impl.h"
#include "tercel/util/process_mutex.h"
#include "tercel/util/thread_impl.h"

namespace tercel::detail {

namespace {

// The loops of a training step are some tens of microseconds apart, about the cost of waking a thread.
constexpr std::chrono::microseconds kSpin{100};

/** Spins for a short time; returns whether the condition became true. */
template <class Condition>
bool spin_until(Condition condition) {
  const auto start = std::chrono::steady_clock::now();
  do {
    for (int i = 0; i < 64; ++i) {
      if (condition()) return true;
      __builtin_ia32_pause();
    }
  } while (std::chrono::steady_clock::now() - start < kSpin);
  return false;
}

class ThreadPool {
 public:
  /** The pool of the process before the one that forked this one. */
  ThreadPool* abandoned = nullptr;

  /** False when another thread uses the pool or the system grants no threads. */
  bool try_run(ChunkedLoop& loop) {
    const std::unique_lock owner(owner_, std::try_to_lock);
    const int64_t chunks = loop.partition.chunks();
    if (!owner.owns_lock() || !grow(chunks - 1)) return false;
    loop_.store(&loop, std::memory_order_relaxed);
    pending_.store(chunks, std::memory_order_relaxed);
    ++round_;
    // Sequentially consistent, as is sleepers_: a worker sees the new round before it sleeps, or is counted as asleep.
    current_.store(round_ << kChunkBits | static_cast<uint64_t>(chunks));
    if (sleepers_.load() > 0) {
      { const std::lock_guard lock(mutex_); }
      start_.notify_all();
    }
    for (int64_t chunk = 0; chunk < chunks; ++chunk) run_if_unclaimed(chunk, round_);
    const auto done = [this] { return pending_.load(std::memory_order_acquire) == 0; };
    if (chunks > cpus_ || !spin_until(done)) {
      std::unique_lock lock(mutex_);
      done_.wait(lock, done);
    }
    return true;
  }

 private:
  static constexpr int kChunkBits = 16;
  static_assert(kMaxThreads < 1 << kChunkBits);

  // A chunk can be claimed once per round, and the round ends when all of its chunks have run. So a thread that has
  // claimed one may use loop_.
  void run_if_unclaimed(int64_t chunk, uint64_t round) {
    std::atomic<uint64_t>& claim = claims_[static_cast<size_t>(chunk)];
    uint64_t last = claim.load(std::memory_order_relaxed);
    if (last >= round || !claim.compare_exchange_strong(last, round, std::memory_order_acquire)) return;
    loop_.load(std::memory_order_relaxed)->run(chunk);
    if (pending_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      { const std::lock_guard lock(mutex_); }
      done_.notify_one();
    }
  }

  bool grow(int64_t workers) {
    try {
      for (; workers_ < workers; ++workers_)
        Thread([this, index = workers_ + 1, seen = current_.load()] { work(index, seen); }).detach();
    } catch (const std::system_error&) {
      return false;
    }
    return true;
  }

  [[noreturn]] void work(int64_t index, uint64_t seen) {
    for (;;) {
      const auto news = [&] { return current_.load() != seen; };
      const auto chunks = static_cast<int64_t>(seen & ((1 << kChunkBits) - 1));
      if (chunks > cpus_ || index >= cpus_ || !spin_until(news)) {
        std::unique_lock lock(mutex_);
        sleepers_.fetch_add(1);
        start_.wait(lock, news);
        sleepers_.fetch_sub(1);
      }
      seen = current_.load();
      if (index < static_cast<int64_t>(seen & ((1 << kChunkBits) - 1))) run_if_unclaimed(index, seen >> kChunkBits);
    }
  }

  // With more threads than CPUs, spinning would take the CPU from a working thread.
  const int64_t cpus_ = usable_cpus();
  std::mutex owner_;  // held by the caller for a whole loop
  int64_t workers_ = 0;
  uint64_t round_ = 0;

  std::atomic<ChunkedLoop*> loop_{nullptr};
  std::atomic<uint64_t> current_{0};                         // round and number of chunks of the running or last loop
  std::atomic<int64_t> pending_{0};                          // its chunks that have not been run to their end
  std::array<std::atomic<uint64_t>, kMaxThreads> claims_{};  // of each chunk, the last round in which it was claimed

  std::mutex mutex_;  // sleeping workers
  std::condition_variable start_, done_;
  std::atomic<int64_t> sleepers_{0};
};

// See Note [Life of the pool].
constinit std::atomic<ThreadPool*> g_pool{nullptr};
constinit ThreadPool* g_abandoned = nullptr;  // keeps the parent's pool reachable in a child

ThreadPool& pool() {
  if (ThreadPool* known = g_pool.load(std::memory_order_acquire)) [[likely]]
    return *known;
  const std::lock_guard lock(process_mutex(ProcessMutex::ThreadPool));
  if (!g_pool.load(std::memory_order_relaxed)) g_pool.store(new ThreadPool, std::memory_order_release);
  return *g_pool.load(std::memory_order_relaxed);
}

}  // namespace

void run_on_threads(ChunkedLoop& loop) {
  // A serial run keeps the chunks, so that a reduction gives the same sums when the pool is busy.
  if (!pool().try_run(loop)) loop.run_serial();
}

void abandon_threads() noexcept {
  ThreadPool* const pool = g_pool.exchange(nullptr, std::memory_order_relaxed);
  if (pool) pool->abandoned = std::exchange(g_abandoned, pool);
}

}  // namespace tercel::detail
