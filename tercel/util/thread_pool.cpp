// The threads behind parallel_for.
//
// Note [Who runs a chunk]
// Chunk i belongs to worker i (the caller is worker 0), so that loops over the same rows find them in the same core's
// cache. But nobody waits for a worker that has not begun: the caller takes every chunk that is still unclaimed. On a
// busy machine a worker may get no CPU for milliseconds, a hundred times a loop's length. Who runs a chunk changes
// nothing in what it calculates, see Note [Partition].
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "tercel/util/parallel_impl.h"

namespace tercel::detail {

namespace {

// Between the loops of a training step lie some tens of microseconds, about what it costs to wake a thread.
constexpr std::chrono::microseconds kSpin{100};

/** Whether the condition came true soon. */
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
  ~ThreadPool() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    start_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  /** False when another thread uses the pool or the system grants no threads. */
  bool try_run(ChunkedLoop& loop) {
    const std::unique_lock owner(owner_, std::try_to_lock);
    if (!owner.owns_lock() || !grow(loop.chunks - 1)) return false;
    loop_.store(&loop, std::memory_order_relaxed);
    pending_.store(loop.chunks, std::memory_order_relaxed);
    ++round_;
    // Sequential, as is sleepers_: either a worker sees the new round before it sleeps, or it is seen to sleep.
    current_.store(round_ << kChunkBits | static_cast<uint64_t>(loop.chunks));
    if (sleepers_.load() > 0) {
      { const std::lock_guard lock(mutex_); }
      start_.notify_all();
    }
    for (int64_t chunk = 0; chunk < loop.chunks; ++chunk) run_if_unclaimed(chunk, round_);
    const auto done = [this] { return pending_.load(std::memory_order_acquire) == 0; };
    if (!spin_until(done)) {
      std::unique_lock lock(mutex_);
      done_.wait(lock, done);
    }
    return true;
  }

 private:
  static constexpr int kChunkBits = 16;
  static_assert(kMaxThreads < 1 << kChunkBits);

  // A chunk can be claimed once a round, and only while the round lasts: it ends when all of its chunks have been run.
  // So whoever has claimed one may use loop_.
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
      while (static_cast<int64_t>(workers_.size()) < workers) {
        const auto index = static_cast<int64_t>(workers_.size()) + 1;
        workers_.emplace_back([this, index, seen = current_.load()] { work(index, seen); });
      }
    } catch (const std::system_error&) {
      return false;
    }
    return true;
  }

  void work(int64_t index, uint64_t seen) {
    for (;;) {
      const auto news = [&] { return current_.load() != seen; };
      if (!spin_until(news)) {
        std::unique_lock lock(mutex_);
        sleepers_.fetch_add(1);
        start_.wait(lock, [&] { return stopping_ || news(); });
        sleepers_.fetch_sub(1);
        if (stopping_) return;
      }
      seen = current_.load();
      if (index < static_cast<int64_t>(seen & ((1 << kChunkBits) - 1))) run_if_unclaimed(index, seen >> kChunkBits);
    }
  }

  std::mutex owner_;  // held by the caller for a whole loop
  std::vector<std::thread> workers_;
  uint64_t round_ = 0;

  std::atomic<ChunkedLoop*> loop_{nullptr};
  std::atomic<uint64_t> current_{0};                         // round and number of chunks of the running or last loop
  std::atomic<int64_t> pending_{0};                          // its chunks that have not been run to their end
  std::array<std::atomic<uint64_t>, kMaxThreads> claims_{};  // of each chunk, the last round in which it was claimed

  std::mutex mutex_;  // of those who sleep
  std::condition_variable start_, done_;
  std::atomic<int64_t> sleepers_{0};
  bool stopping_ = false;
};

// In a forked child the pool is left alone: its threads are gone, and destroying a condition they wait on hangs.
struct PoolOwner {
  ThreadPool* pool = new ThreadPool;
  ~PoolOwner() {
    if (!threads_lost_in_fork()) delete pool;
  }
};

}  // namespace

void run_on_threads(ChunkedLoop& loop) {
  static const PoolOwner owner;
  if (!owner.pool->try_run(loop)) loop.run_serial();
}

}  // namespace tercel::detail
