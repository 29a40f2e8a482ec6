// The caching CPU allocator.
//
// Note [Size classes]
// A freed block is kept for the next request of its class, first in the freeing thread's own cache, then in a central
// one behind a mutex. Objects have classes of 16 bytes up to 512; data has classes of 64 bytes up to 1 KiB and then
// four per doubling up to 64 KiB. Each data class has its own deleter function, so a block needs no header that names
// its class. Larger blocks are allocated one by one (from huge pages if 2 MiB or more), described by a record that is
// the context of the DataPtr, and reused by best fit under a mutex, whose cost is small compared with touching the
// memory.
//
// The thread's cache is behind one 8-byte thread-local pointer with the initial-exec model, which costs one instruction
// to read and fits into the static TLS available to a library loaded with dlopen.
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <string_view>
#include <type_traits>
#include <utility>

#include "tercel/core/allocator.h"
#include "tercel/util/ceil_div.h"
#include "tercel/util/cpu_info.h"
#include "tercel/util/error.h"
#include "tercel/util/process_mutex.h"
#include "tercel/util/sanitizers_impl.h"

namespace tercel {

namespace {

constexpr bool kCaching = TERCEL_ADDRESS_SANITIZER == 0;

constexpr size_t kAlignment = 64;
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kLargestObject = 512;
constexpr size_t kLargestClass = size_t{64} << 10;
constexpr size_t kObjectClasses = kLargestObject / 16;
constexpr size_t kDataClasses = 16 + 4 * 6;  // 64 ... 1024 by 64, then four per doubling to 64 KiB
constexpr size_t kClasses = kObjectClasses + kDataClasses;
/** Blocks of up to 4 KiB are cut out of slabs. */
constexpr size_t kSlab = size_t{64} << 10;
constexpr size_t kLargestInSlab = size_t{4} << 10;
/** Bytes that one thread caches of one class; beyond it half of them move to the central cache. */
constexpr size_t kThreadBytes = size_t{256} << 10;
/** Requests of at least this size are checked against the available memory. */
constexpr size_t kChecked = size_t{64} << 20;

constexpr size_t object_class(size_t nbytes) { return (nbytes + 15) / 16 - 1; }

constexpr size_t data_class(size_t nbytes) {
  if (nbytes <= 1024) return kObjectClasses + (nbytes + 63) / 64 - 1;
  const auto doubling =
      static_cast<size_t>(std::bit_width(nbytes - 1)) - 1;  // nbytes is in (2^doubling, 2^(doubling + 1)]
  const size_t quarter = ((nbytes - 1) >> (doubling - 2)) - 4;
  return kObjectClasses + 16 + 4 * (doubling - 10) + quarter;
}

constexpr size_t class_bytes(size_t cls) {
  if (cls < kObjectClasses) return 16 * (cls + 1);
  const size_t d = cls - kObjectClasses;
  if (d < 16) return 64 * (d + 1);
  const size_t doubling = 10 + (d - 16) / 4, quarter = (d - 16) % 4;
  return (4 + quarter + 1) << (doubling - 2);
}
static_assert(class_bytes(data_class(1)) == 64 && class_bytes(data_class(1025)) == 1280);
static_assert(class_bytes(data_class(2048)) == 2048 && class_bytes(data_class(2049)) == 2560);
static_assert(data_class(kLargestClass) == kClasses - 1 && class_bytes(kClasses - 1) == kLargestClass);

/** The number of blocks of a class that a thread caches. */
constexpr auto kMaxKept = [] {
  std::array<int64_t, kClasses> most{};
  for (size_t cls = 0; cls < kClasses; ++cls) most[cls] = static_cast<int64_t>(kThreadBytes / class_bytes(cls));
  return most;
}();

/** A counter that one thread (or the owner of a mutex) changes and others read for statistics. */
class Count {
 public:
  int64_t get() const { return value_.load(std::memory_order_relaxed); }
  void increment() { value_.store(get() + 1, std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> value_{0};
};

/** Free blocks of one class. */
class FreeList {
 public:
  bool empty() const { return head_ == nullptr; }
  int64_t size() const { return pushed_.get() - popped_.get(); }
  /** Number of blocks popped so far. */
  int64_t popped() const { return popped_.get(); }
  void push(void* p) {
    head_ = new (p) Block{head_};
    pushed_.increment();
  }
  void* pop() {
    popped_.increment();
    return std::exchange(head_, head_->next);
  }
  /** Moves up to `count` blocks; returns how many. */
  int64_t move_to(FreeList& other, int64_t count) {
    int64_t moved = 0;
    for (; moved < count && !empty(); ++moved) other.push(pop());
    return moved;
  }

 private:
  struct Block {
    Block* next;
  };
  Block* head_ = nullptr;
  Count pushed_, popped_;
};

struct ThreadCache {
  FreeList lists[kClasses];
  ThreadCache* next = nullptr;  // in the list of all caches of running threads
};

/** A block too big for a class; the context of its DataPtr. */
struct LargeBlock {
  void* base = nullptr;
  size_t bytes = 0;
  LargeBlock* next = nullptr;  // while it is free

  bool mapped() const { return bytes >= kHugePage; }
};

/** State shared by all threads, guarded by ProcessMutex::Allocator. */
struct Central {
  FreeList lists[kClasses];
  LargeBlock* large = nullptr;  // free ones, most recently used first
  ThreadCache* threads = nullptr;
  int64_t cache_limit = -1;  // see limit()
  int64_t class_bytes = 0;   // bytes that size classes have allocated from the system and not returned
  int64_t large_cached = 0, large_allocated = 0;
  /** Of large blocks and of ended threads, minus blocks that threads popped only to move them here. */
  int64_t allocations = 0;
  int64_t misses = 0;

  int64_t default_limit = 0;  // a quarter of the memory, set with the first large block

  /** Limit of the bytes cached in large blocks. */
  int64_t limit() const { return cache_limit < 0 ? default_limit : cache_limit; }

  /** Removes free large blocks, least recently used first, until the rest have at most `limit` bytes. */
  LargeBlock* cut_large(int64_t limit) {
    LargeBlock* cut = nullptr;
    large_cached = 0;
    for (LargeBlock** at = &large; *at;) {
      const auto bytes = static_cast<int64_t>((*at)->bytes);
      if (large_cached + bytes <= limit) {
        large_cached += bytes;
        at = &(*at)->next;
      } else {
        LargeBlock* block = std::exchange(*at, (*at)->next);
        block->next = std::exchange(cut, block);
      }
    }
    return cut;
  }
};

// Never destroyed: static destructors may also free blocks.
static_assert(std::is_trivially_destructible_v<Central>);
constinit Central g_central;

std::mutex& central_mutex() { return process_mutex(ProcessMutex::Allocator); }

constinit thread_local ThreadCache* t_cache [[gnu::tls_model("initial-exec")]] = nullptr;
constinit thread_local bool t_retired = false;

/** Moves a thread's blocks and counts to the central cache when the thread ends. */
struct CacheRetirer {
  ~CacheRetirer() {
    ThreadCache* cache = std::exchange(t_cache, nullptr);
    t_retired = true;
    Central& c = g_central;
    {
      const std::scoped_lock lock(central_mutex());
      for (size_t cls = 0; cls < kClasses; ++cls) {
        c.allocations += cache->lists[cls].popped();
        cache->lists[cls].move_to(c.lists[cls], INT64_MAX);
      }
      ThreadCache** link = &c.threads;
      while (*link != cache) link = &(*link)->next;
      *link = cache->next;
    }
    delete cache;
  }
};

/** The thread's cache, or null once its thread_local destructors have begun (or without memory for one). */
[[gnu::noinline]] ThreadCache* make_thread_cache() {
  if (t_retired) return nullptr;
  auto* cache = new (std::nothrow) ThreadCache;
  if (!cache) return nullptr;
  Central& c = g_central;
  {
    const std::scoped_lock lock(central_mutex());
    cache->next = std::exchange(c.threads, cache);
  }
  t_cache = cache;
  static thread_local CacheRetirer retirer;
  return cache;
}

/** Whether the system has so much memory left; small blocks are not checked. */
bool plausible(size_t nbytes) { return nbytes < kChecked || fits_in_memory(nbytes); }

/** Null if there is not enough memory. */
void* try_system_block(size_t nbytes) {
  void* p = nullptr;
  return plausible(nbytes) && posix_memalign(&p, kAlignment, nbytes) == 0 ? p : nullptr;
}

/** take(nbytes), retried once after emptying the caches; never null. */
template <class Take>
void* take_or_throw(size_t nbytes, size_t asked_for, Take take) {
  void* p = take(nbytes);
  if (!p && trim_cpu_allocator() > 0) p = take(nbytes);
  if (!p) throw_out_of_memory(asked_for);
  return p;
}

/** Fills an empty list, from the central cache or from the system. */
void refill(FreeList& list, size_t cls) {
  const size_t bytes = class_bytes(cls);
  Central& c = g_central;
  {
    const std::scoped_lock lock(central_mutex());
    c.lists[cls].move_to(list, std::min<int64_t>(32, kMaxKept[cls] / 2));
  }
  if (!list.empty()) return;
  const size_t count = bytes <= kLargestInSlab ? kSlab / bytes : 1;
  auto* first = static_cast<std::byte*>(take_or_throw(count * bytes, bytes, &try_system_block));
  for (size_t i = count; i-- > 0;) list.push(first + i * bytes);
  const std::scoped_lock lock(central_mutex());
  c.class_bytes += static_cast<int64_t>(count * bytes);
  ++c.misses;
}

void give_to_central(FreeList& list, size_t cls, int64_t count) {
  Central& c = g_central;
  const std::scoped_lock lock(central_mutex());
  c.allocations -= list.move_to(c.lists[cls], count);
}

/** Slow path: the thread's list is empty, or there is none. */
[[gnu::noinline]] void* allocate_class_slow(size_t cls) {
  ThreadCache* cache = t_cache ? t_cache : make_thread_cache();
  FreeList once;
  FreeList& list = cache ? cache->lists[cls] : once;
  refill(list, cls);
  void* p = list.pop();
  if (!cache) {
    give_to_central(once, cls, INT64_MAX);
    Central& c = g_central;
    const std::scoped_lock lock(central_mutex());
    c.allocations += once.popped();
  }
  return p;
}

[[gnu::noinline]] void free_class_slow(void* p, size_t cls) {
  if (ThreadCache* cache = make_thread_cache()) {
    cache->lists[cls].push(p);
    return;
  }
  Central& c = g_central;
  const std::scoped_lock lock(central_mutex());
  c.lists[cls].push(p);
}

[[gnu::noinline]] void halve(FreeList& list, size_t cls) { give_to_central(list, cls, list.size() / 2); }

// The functions below are on every tensor's path: slow cases are tail calls, so that no registers are saved for them.

inline void* allocate_class(size_t cls) {
  ThreadCache* cache = t_cache;
  if (cache && !cache->lists[cls].empty()) [[likely]]
    return cache->lists[cls].pop();
  return allocate_class_slow(cls);
}

inline void free_class(void* p, size_t cls) {
  ThreadCache* cache = t_cache;
  if (!cache) [[unlikely]]
    return free_class_slow(p, cls);
  FreeList& list = cache->lists[cls];
  list.push(p);
  if (list.size() > kMaxKept[cls]) [[unlikely]]
    halve(list, cls);
}

template <size_t kClass>
void free_data_block(void* p) {
  free_class(p, kObjectClasses + kClass);
}

template <size_t... kClass>
constexpr std::array<DataPtr::Deleter, sizeof...(kClass)> make_deleters(std::index_sequence<kClass...>) {
  return {&free_data_block<kClass>...};
}
constexpr auto kDeleters = make_deleters(std::make_index_sequence<kDataClasses>());

/** New memory, with huge pages requested if large enough for one; null if there is not enough. */
void* try_map_large(size_t bytes) {
  if (bytes < kHugePage) return try_system_block(bytes);
  if (!plausible(bytes)) return nullptr;
  // One huge page more than needed, so that an aligned part can be cut out of it.
  const size_t span = bytes + kHugePage;
  void* raw = mmap(nullptr, span, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (raw == MAP_FAILED) return nullptr;
  auto* const start = static_cast<std::byte*>(raw);
  const size_t before = (kHugePage - reinterpret_cast<uintptr_t>(start) % kHugePage) % kHugePage;
  if (before > 0) munmap(start, before);
  if (const size_t after = span - before - bytes) munmap(start + before + bytes, after);
  madvise(start + before, bytes, MADV_HUGEPAGE);
  return start + before;
}

/** Returns a list of large blocks to the system; the result is their size in bytes. */
int64_t release_large(LargeBlock* list) {
  int64_t bytes = 0;
  while (list) {
    LargeBlock* block = std::exchange(list, list->next);
    bytes += static_cast<int64_t>(block->bytes);
    if (block->mapped())
      munmap(block->base, block->bytes);
    else
      std::free(block->base);
    delete block;
  }
  return bytes;
}

void free_large(void* context) {
  auto* block = static_cast<LargeBlock*>(context);
  Central& c = g_central;
  LargeBlock* cut = nullptr;
  {
    const std::scoped_lock lock(central_mutex());
    c.large_allocated -= static_cast<int64_t>(block->bytes);
    c.large_cached += static_cast<int64_t>(block->bytes);
    block->next = std::exchange(c.large, block);
    if (c.large_cached > c.limit()) cut = c.cut_large(c.limit());
  }
  release_large(cut);
}

/** The free block that fits best and is at most a quarter too large, or null; under the mutex. */
LargeBlock* take_cached_large(Central& c, size_t bytes) {
  LargeBlock** best = nullptr;
  for (LargeBlock** at = &c.large; *at; at = &(*at)->next) {
    const size_t has = (*at)->bytes;
    if (has < bytes || has > bytes + bytes / 4 || (best && has >= (*best)->bytes)) continue;
    best = at;
    if (has == bytes) break;
  }
  if (!best) return nullptr;
  LargeBlock* block = std::exchange(*best, (*best)->next);
  c.large_cached -= static_cast<int64_t>(block->bytes);
  return block;
}

/** Bytes of the machine's memory; 0: not read yet. */
std::atomic<int64_t> g_memory{0};

DataPtr allocate_large(size_t nbytes) {
  if (nbytes > SIZE_MAX / 2) throw_out_of_memory(nbytes);
  const size_t unit = nbytes < kHugePage ? size_t{4} << 10 : size_t{64} << 10;
  const size_t bytes = round_up(nbytes, unit);
  Central& c = g_central;
  // Not when a block is freed, since reading files is slow and may throw.
  const int64_t known = g_memory.load(std::memory_order_relaxed);
  const int64_t memory = known > 0 ? known : memory_info().total;
  if (known == 0) g_memory.store(memory, std::memory_order_relaxed);
  const auto count = [memory](const LargeBlock& block) {
    g_central.default_limit = memory / 4;
    g_central.large_allocated += static_cast<int64_t>(block.bytes);
    ++g_central.allocations;
  };
  {
    const std::scoped_lock lock(central_mutex());
    if (LargeBlock* block = take_cached_large(c, bytes)) {
      count(*block);
      return DataPtr(block->base, block, &free_large, kCpu);
    }
  }
  auto block = std::make_unique<LargeBlock>();
  block->base = take_or_throw(bytes, nbytes, &try_map_large);
  block->bytes = bytes;
  const std::scoped_lock lock(central_mutex());
  count(*block);
  ++c.misses;
  void* const base = block->base;
  return DataPtr(base, block.release(), &free_large, kCpu);
}

class CpuAllocator final : public Allocator {
 public:
  DataPtr allocate(size_t nbytes) override {
    if (nbytes == 0) return DataPtr(nullptr, kCpu);
    if constexpr (!kCaching) {
      if (nbytes > SIZE_MAX / 2) throw_out_of_memory(nbytes);
      void* p = take_or_throw(nbytes, nbytes, &try_system_block);
      return DataPtr(p, p, &std::free, kCpu);
    }
    if (nbytes > kLargestClass) return allocate_large(nbytes);
    const size_t cls = data_class(nbytes);
    void* p = allocate_class(cls);
    return DataPtr(p, p, kDeleters[cls - kObjectClasses], kCpu);
  }
};

constinit CpuAllocator g_cpu_allocator;

/** Fills every block with bytes 0xFF, so that reads of uninitialised memory give NaN, -1 or 255. */
class PoisoningAllocator final : public Allocator {
 public:
  DataPtr allocate(size_t nbytes) override {
    DataPtr block = g_cpu_allocator.allocate(nbytes);
    if (nbytes > 0) std::memset(block.get(), 0xFF, nbytes);
    return block;
  }
};

constinit PoisoningAllocator g_poisoning_allocator;

Allocator& chosen_allocator() {
  const char* const text = std::getenv("TERCEL_POISON_MEMORY");
  if (text && std::string_view(text) == "1") return g_poisoning_allocator;
  return g_cpu_allocator;
}

constinit Allocator* g_chosen = &g_cpu_allocator;
// Chosen once at startup, so that an allocation costs no check.
[[maybe_unused]] const bool g_has_chosen = (g_chosen = &chosen_allocator(), true);

}  // namespace

Allocator& cpu_allocator() { return *g_chosen; }

AllocatorStats cpu_allocator_stats() {
  Central& c = g_central;
  const std::scoped_lock lock(central_mutex());
  AllocatorStats stats;
  int64_t free_bytes = 0;
  const auto count = [&free_bytes](const FreeList* lists) {
    int64_t popped = 0;
    for (size_t cls = 0; cls < kClasses; ++cls) {
      free_bytes += lists[cls].size() * static_cast<int64_t>(class_bytes(cls));
      popped += lists[cls].popped();
    }
    return popped;
  };
  count(c.lists);
  stats.allocations = c.allocations;
  for (const ThreadCache* t = c.threads; t; t = t->next) stats.allocations += count(t->lists);
  stats.cached_bytes = free_bytes + c.large_cached;
  stats.allocated_bytes = c.class_bytes - free_bytes + c.large_allocated;
  stats.misses = c.misses;
  return stats;
}

int64_t trim_cpu_allocator() {
  Central& c = g_central;
  if (ThreadCache* cache = t_cache)
    for (size_t cls = 0; cls < kClasses; ++cls) give_to_central(cache->lists[cls], cls, INT64_MAX);
  LargeBlock* large = nullptr;
  int64_t freed = 0;
  {
    const std::scoped_lock lock(central_mutex());
    large = c.cut_large(0);
    for (size_t cls = 0; cls < kClasses; ++cls) {
      if (class_bytes(cls) <= kLargestInSlab) continue;
      freed += c.lists[cls].size() * static_cast<int64_t>(class_bytes(cls));
      while (!c.lists[cls].empty()) std::free(c.lists[cls].pop());
    }
    c.class_bytes -= freed;
  }
  return freed + release_large(large);
}

void set_cpu_allocator_cache_limit(int64_t nbytes) {
  TERCEL_CHECK(nbytes >= 0, RuntimeError, "set_cpu_allocator_cache_limit: ", nbytes, " bytes is negative");
  Central& c = g_central;
  LargeBlock* cut = nullptr;
  {
    const std::scoped_lock lock(central_mutex());
    c.cache_limit = nbytes;
    cut = c.cut_large(nbytes);
  }
  release_large(cut);
}

namespace detail {

void* allocate_object(size_t nbytes) {
  if (!kCaching || nbytes > kLargestObject) [[unlikely]]
    return ::operator new(nbytes);
  return allocate_class(object_class(nbytes));
}

void free_object(void* block, size_t nbytes) noexcept {
  if (!kCaching || nbytes > kLargestObject) [[unlikely]] {
    ::operator delete(block);
    return;
  }
  free_class(block, object_class(nbytes));
}

}  // namespace detail

}  // namespace tercel
