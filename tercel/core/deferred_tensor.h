// Caffe2's tensor: dtype and memory may be missing until the first write access.
//
// Note [Uninitialised tensors]
// The two are independent. Without dtype: elements have no size. Without storage: there are elements, but no memory for
// them (a tensor of no elements always has its storage). resize() sets sizes and may free memory, but never
// allocates; mutable_data<T>() provides both. Most functions cannot work with such a tensor. It is therefore a separate
// class, so that TensorImpl needs neither these states nor checks for them; tensor() returns an ordinary tensor once
// both are set. Elements are row-major, without gaps.
//
// Note [Shared memory]
// Memory is reused or freed in place only by its sole owner. If another tensor or handle shares the storage, or the
// storage cannot be resized, this one takes a new storage and leaves the old one unchanged.
#pragma once

#include <concepts>
#include <cstdint>
#include <utility>

#include "tercel/core/element_type.h"
#include "tercel/core/tensor.h"

namespace tercel {

/** See Note [Uninitialised tensors]. A copy shares the memory, as share_data() does. */
class TERCEL_API DeferredTensor {
 public:
  /** One dimension of size 0; no dtype. */
  explicit DeferredTensor(Device device = kCpu);
  /** Shares a tensor's memory. RuntimeError unless it is contiguous and strided. */
  explicit DeferredTensor(const Tensor& tensor);

  /** An ordinary tensor over the same memory. RuntimeError without dtype or memory, or for a type unknown to ops. */
  Tensor tensor() const;

  int64_t dim() const { return static_cast<int64_t>(sizes_.size()); }
  IntSpan sizes() const { return sizes_; }
  int64_t numel() const { return numel_; }
  int64_t storage_offset() const { return storage_offset_; }
  const Storage& storage() const { return storage_; }
  Device device() const { return storage_->device(); }
  const ElementType& element_type() const { return *type_; }
  bool dtype_initialized() const { return type_->itemsize != 0; }
  bool storage_initialized() const { return storage_->data() || numel_ == 0; }
  /** Whether reserve_space() or extend() was called: resize() then keeps memory regardless of the settings. */
  bool reserved() const { return reserved_; }
  /** RuntimeError without dtype. */
  size_t itemsize() const;
  size_t nbytes() const { return static_cast<size_t>(numel_) * itemsize(); }

  /**
   * Sets the sizes: resize(2, 3), or any span or vector of integers. Returns whether the number of elements changed.
   * If it did, memory is freed that is too small or, unless reserved, too large by the settings in context.h.
   */
  template <std::integral... Ints>
  bool resize(Ints... sizes) {
    return set_sizes(DimVector{checked_size(sizes)...});
  }
  template <std::integral T>
  bool resize(Span<T> sizes) {
    DimVector wide;
    for (const T size : sizes) wide.push_back(checked_size(size));
    return set_sizes(wide);
  }
  bool resize(IntSpan sizes) { return set_sizes(DimVector(sizes)); }
  template <class C>
  requires(std::integral<typename C::value_type> &&
           !std::same_as<typename C::value_type, int64_t>) bool resize(const C& sizes) {
    return resize(Span<typename C::value_type>(sizes));
  }
  bool resize_like(const DeferredTensor& other) { return set_sizes(other.sizes_); }
  /** Changes the sizes of the same elements; RuntimeError if their number differs. */
  void reshape(IntSpan sizes);

  /** Reserves memory for `outer` along the first dimension; elements are lost if that needs a reallocation. */
  void reserve_space(int64_t outer);
  /** Adds `num` along the first dimension and keeps the elements; memory grows by growth_pct percent if needed. */
  void extend(int64_t num, double growth_pct);
  /** Frees the memory; sizes and dtype stay. */
  void free_memory();

  /** First element, as T: sets the dtype and allocates memory if they differ; the values are then unspecified.
   */
  template <class T>
  T* mutable_data() {
    return static_cast<T*>(raw_mutable_data(element_type_of<T>()));
  }
  void* raw_mutable_data(const ElementType& type);
  /** The same with the current dtype; RuntimeError without one. */
  void* raw_mutable_data();
  /** First element; RuntimeError if T is not the dtype or there is no memory. */
  template <class T>
  const T* data() const {
    check_data(&element_type_of<T>());
    return reinterpret_cast<const T*>(first());
  }
  /** The same untyped; null when there are no elements. */
  const void* raw_data() const {
    check_data(nullptr);
    return numel_ == 0 ? nullptr : first();
  }

  /** Shares memory, dtype and offset of a source with memory and the same number of elements. */
  void share_data(const DeferredTensor& source);
  /** Uses external memory of at least numel() elements, or capacity bytes; the deleter may be null. */
  template <class T>
  void share_external_pointer(T* data, size_t capacity = 0, void* context = nullptr,
                              DataPtr::Deleter deleter = nullptr) {
    share_external_pointer(DataPtr(data, context, deleter, device()), element_type_of<T>(), capacity);
  }
  void share_external_pointer(DataPtr block, const ElementType& type, size_t capacity = 0);

 private:
  template <std::integral T>
  static int64_t checked_size(T size) {
    TERCEL_CHECK(std::in_range<int64_t>(size), RuntimeError, "resize: the size ", size, " does not fit int64");
    return static_cast<int64_t>(size);
  }
  bool set_sizes(DimVector sizes);
  bool keeps_memory(int64_t count) const;
  Allocator& allocator() const;
  void allocate(const ElementType& type, int64_t count);
  bool owns_alone() const { return storage_.unique() && storage_->resizable(); }
  void check_data(const ElementType* wanted) const;
  const std::byte* first() const {
    return storage_->unsafe_data<std::byte>() + static_cast<size_t>(storage_offset_) * type_->itemsize;
  }

  Storage storage_;  // never null
  const ElementType* type_ = &kNoElementType;
  DimVector sizes_{0};
  int64_t numel_ = 0;
  int64_t storage_offset_ = 0;
  bool reserved_ = false;
};

}  // namespace tercel
