// The bytes that tensors view.
//
// Note [Shrunk storages]
// When a tensor is made, it is checked to lie inside its storage; afterwards only shrinking the storage can violate
// that. A storage records that it was shrunk, and TensorImpl::data(), which every op and every export calls, then
// compares the tensor's extent with the storage's size. For all other tensors this costs one test of a byte next to the
// pointer that data() loads.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "tercel/core/allocator.h"
#include "tercel/core/intrusive_ptr.h"
#include "tercel/core/peer.h"
#include "tercel/core/scalar.h"
#include "tercel/core/scalar_type.h"

namespace tercel {

/**
 * A block of bytes, its allocator, and a counter of in-place changes.
 *
 * Invariant: a resizable storage has an allocator. The version counter lives here because every tensor over the same
 * storage shares it; see Note [Version counters] in tensor_impl.h.
 */
class TERCEL_API StorageImpl final : public intrusive_ptr_target {
 public:
  /** Takes ownership of a block. */
  StorageImpl(size_t size, DataPtr block, Allocator* source, bool can_resize)
      : data_(std::move(block)), nbytes_(size), allocator_(source), resizable_(can_resize) {
    if (can_resize && !source) [[unlikely]]
      refuse_resizable();
  }
  /** Allocates a block. */
  StorageImpl(size_t size, Allocator* source, bool can_resize)
      : data_(source->allocate(size)), nbytes_(size), allocator_(source), resizable_(can_resize) {}
  ~StorageImpl() override {
    if (peer_) [[unlikely]]
      detail::drop_peer(peer_);
  }
  StorageImpl(const StorageImpl&) = delete;
  StorageImpl& operator=(const StorageImpl&) = delete;

  void* data() const { return data_.get(); }
  /** The bytes as elements of T, unchecked. */
  template <class T>
  T* unsafe_data() const {
    return static_cast<T*>(data_.get());
  }
  const DataPtr& data_ptr() const { return data_; }
  size_t nbytes() const { return nbytes_; }
  Device device() const { return data_.device(); }
  Allocator* allocator() const { return allocator_; }
  bool resizable() const { return resizable_; }
  /** Whether it was ever shrunk; see Note [Shrunk storages]. */
  bool shrunk() const { return shrunk_; }

  void set_nbytes(size_t size) {
    shrunk_ |= size < nbytes_;
    nbytes_ = size;
  }
  /** RuntimeError if a resizable storage would lose its allocator. */
  void set_allocator(Allocator* source);
  /** RuntimeError for true without an allocator. */
  void set_resizable(bool can_resize);
  /** Replaces the block and returns the old one; nbytes does not change. */
  DataPtr set_data_ptr(DataPtr block);
  /** Replaces the block and frees the old one. */
  void set_data_ptr_noswap(DataPtr block) { data_ = std::move(block); }
  /** Frees the block and sets nbytes to 0. */
  void reset();
  /** Changes the size, keeping the common bytes; every tensor over the storage sees it. RuntimeError if not resizable.
   */
  void resize_bytes(size_t size);

  /** Exchanges the bytes, with their allocators and permissions, between two storages; the owners stay where they are.
   */
  void swap(StorageImpl& other);

  /** How often tensors over these bytes were changed in place. */
  uint32_t version() const { return version_.load(std::memory_order_relaxed); }
  void bump_version() { version_.fetch_add(1, std::memory_order_relaxed); }

  /** The object of another language for this storage, or null; see Note [Peers] in peer.h. */
  void* peer() const { return peer_; }
  void set_peer(void* peer) { peer_ = peer; }

  static void* operator new(size_t size) { return detail::allocate_object(size); }
  static void operator delete(void* p) { detail::free_object(p, sizeof(StorageImpl)); }

 private:
  void release_resources() override;
  [[noreturn]] static void refuse_resizable();

  DataPtr data_;
  size_t nbytes_;
  Allocator* allocator_;
  void* peer_ = nullptr;
  std::atomic<uint32_t> version_{0};
  bool resizable_;
  bool shrunk_ = false;
};

/** Handle to a StorageImpl. */
using Storage = intrusive_ptr<StorageImpl>;

static_assert(sizeof(StorageImpl) <= 80, "one for every tensor that is not a view");

/** An empty, resizable storage with the device's allocator. */
TERCEL_API Storage create_storage(Device device);

/**
 * Replaces the block by an external one; the storage then has no allocator and cannot be resized. RuntimeError unless
 * this handle is the only one.
 */
TERCEL_API void unique_storage_share_external_pointer(const Storage& storage, DataPtr block, size_t nbytes);

/**
 * One element of a storage seen as an array of `dtype`. IndexError unless 0 <= index < number of whole elements.
 * Negative indices are not wrapped.
 */
TERCEL_API Scalar storage_get(const StorageImpl& storage, ScalarType dtype, int64_t index);
/** Sets one element, converted as in fill_(), and increments the version. */
TERCEL_API void storage_set(StorageImpl& storage, ScalarType dtype, int64_t index, Scalar value);

}  // namespace tercel
