// Memory for tensors: DataPtr owns a block, Allocator allocates blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "tercel/core/device.h"
#include "tercel/util/export.h"

namespace tercel {

/**
 * Owner of a block of memory: the address of the data, and the function that frees it.
 *
 * The deleter takes the context, not the data, so the data may be an interior pointer (a mapped file, another library's
 * tensor). It runs once, iff the context is not null, even when the data is null. A null block still has a device.
 */
class DataPtr {
 public:
  using Deleter = void (*)(void* context);

  DataPtr() = default;
  /** Borrowed memory: nothing is freed. */
  DataPtr(void* where, Device on) : data_(where), device_(on) {}
  DataPtr(void* where, void* owner, Deleter free_owner, Device on)
      : data_(where), context_(owner), deleter_(free_owner), device_(on) {}
  DataPtr(DataPtr&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        context_(std::exchange(other.context_, nullptr)),
        deleter_(std::exchange(other.deleter_, nullptr)),
        device_(other.device_) {}
  DataPtr& operator=(DataPtr&& other) noexcept {
    DataPtr(std::move(other)).swap(*this);
    return *this;
  }
  DataPtr(const DataPtr&) = delete;
  DataPtr& operator=(const DataPtr&) = delete;
  ~DataPtr() {
    if (context_ && deleter_) deleter_(context_);
  }

  void* get() const { return data_; }
  void* context() const { return context_; }
  Deleter deleter() const { return deleter_; }
  Device device() const { return device_; }
  explicit operator bool() const { return data_ || context_; }

  /** Frees the block now; the device stays. */
  void clear() { *this = DataPtr(nullptr, device_); }
  /** Transfers the context to the caller, who must free it. */
  [[nodiscard]] void* release_context() {
    deleter_ = nullptr;
    return std::exchange(context_, nullptr);
  }
  /** Moves the context out as a unique_ptr, null if there is nothing to free. The data pointer stays, now borrowed. */
  [[nodiscard]] std::unique_ptr<void, Deleter> move_context() {
    const Deleter free_owner = deleter_;
    return {release_context(), free_owner};
  }
  /** The context as T, or null when the block has another deleter than `expected`. */
  template <class T>
  T* cast_context(Deleter expected) const {
    return deleter_ == expected ? static_cast<T*>(context_) : nullptr;
  }
  /** Replaces the deleter if it is `expected`; returns whether it did. */
  bool compare_exchange_deleter(Deleter expected, Deleter desired) {
    if (deleter_ != expected) return false;
    deleter_ = desired;
    return true;
  }
  void swap(DataPtr& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(context_, other.context_);
    std::swap(deleter_, other.deleter_);
    std::swap(device_, other.device_);
  }

 private:
  void* data_ = nullptr;
  void* context_ = nullptr;
  Deleter deleter_ = nullptr;
  Device device_;
};

/**
 * Allocates memory on one device. An allocator outlives its blocks and is not owned through this interface. It is
 * thread-safe, and any thread may free its blocks.
 */
class TERCEL_API Allocator {
 public:
  /** A block of at least nbytes, uninitialised; data is null for 0 bytes. OutOfMemoryError when there is not enough. */
  virtual DataPtr allocate(size_t nbytes) = 0;
  /** Set iff data == context for every block, which makes raw_allocate and raw_deallocate legal. */
  virtual DataPtr::Deleter raw_deleter() const;

  /** A block without its DataPtr; RuntimeError unless raw_deleter() is set. */
  void* raw_allocate(size_t nbytes);
  void raw_deallocate(void* block);

 protected:
  constexpr Allocator() = default;
  ~Allocator() = default;
};

/** Exact while no other thread allocates or frees; all zero under AddressSanitizer. */
struct AllocatorStats {
  int64_t allocated_bytes = 0;  ///< in blocks that are in use, rounded up to their class
  int64_t cached_bytes = 0;     ///< in free blocks kept for reuse
  int64_t allocations = 0;      ///< allocated blocks, headers of tensors and graph nodes included
  int64_t misses = 0;           ///< allocations that needed memory from the system
};

/**
 * The default CPU allocator: 64-byte aligned, keeps freed blocks by size class, takes blocks of 2 MiB and more from
 * huge pages. Under AddressSanitizer it caches nothing, so that use after free is detected.
 */
TERCEL_API Allocator& cpu_allocator();
TERCEL_API AllocatorStats cpu_allocator_stats();
/**
 * Returns cached blocks to the system, except those in other threads' caches and those of at most 4 KiB. The result is
 * the number of bytes returned.
 */
TERCEL_API int64_t trim_cpu_allocator();
/**
 * Limits the bytes in cached blocks above 64 KiB (default: a quarter of the memory); beyond it the least recently used
 * are returned to the system.
 */
TERCEL_API void set_cpu_allocator_cache_limit(int64_t nbytes);

/** The allocator that new tensors on a device use; RuntimeError when the device has none in this build. */
TERCEL_API Allocator& get_allocator(DeviceType device);
/** Replaces it (null: with the built-in one) and returns the old one; existing blocks keep their deleters. */
TERCEL_API Allocator* set_allocator(DeviceType device, Allocator* allocator);

namespace detail {
/** Memory for small objects (tensor headers, graph nodes) from the same caches, 16-byte aligned, at most 512 bytes. */
TERCEL_API void* allocate_object(size_t nbytes);
TERCEL_API void free_object(void* block, size_t nbytes) noexcept;
}  // namespace detail

}  // namespace tercel
