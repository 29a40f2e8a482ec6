// HugeCTR's GeneralBuffer2: first reserves tensors and blocks of tensors, then allocates once (core/arena.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "tercel/core/arena.h"
#include "tercel/recsys/hugectr/allocators.h"
#include "tercel/recsys/hugectr/dimensions.h"
#include "tercel/recsys/hugectr/sparse_tensor.h"
#include "tercel/recsys/hugectr/tensor2.h"
#include "tercel/util/export.h"

namespace tercel::recsys::hugectr {

namespace detail {

/** Tensors that are going to lie one after the other, without gaps. */
class TERCEL_API BlockReservations {
 public:
  explicit BlockReservations(ScalarType dtype) : dtype_(dtype) {}
  /** RuntimeError after whole() or place(), or if the block would have more than Arena::kMaxBytes. */
  TensorBag2 reserve(IntSpan sizes);
  /** All of them as one tensor [numel()]; no more can be reserved. */
  TensorBag2 whole();
  ScalarType dtype() const { return dtype_; }
  int64_t numel() const { return numel_; }
  /** Gives every tensor its part of `flat` [numel()]. */
  void place(const Tensor& flat);

 private:
  ScalarType dtype_;
  int64_t numel_ = 0;
  bool finalized_ = false;
  std::vector<std::shared_ptr<ReservedTensor>> parts_;
  std::shared_ptr<ReservedTensor> whole_;
};

/** What GeneralBuffer2s of all allocators are. */
class TERCEL_API BufferReservations {
 public:
  TensorBag2 reserve(IntSpan sizes, ScalarType dtype);
  SparseTensorBag reserve_sparse(IntSpan sizes, int64_t slot_num, ScalarType dtype);
  std::shared_ptr<BlockReservations> create_block(ScalarType dtype);
  void allocate(Allocator& allocator);
  bool allocated() const { return arena_.is_allocated(); }
  size_t nbytes() const { return static_cast<size_t>(arena_.nbytes()); }
  void* data() const;

 private:
  void check_open() const;

  std::vector<std::shared_ptr<BlockReservations>> blocks_;  // until allocate(); shared with their BufferBlock2s
  Arena arena_;                                             // empty until allocate()
};

}  // namespace detail

/** Tensors of one type that lie one after the other, and are one flat tensor: all weights, or all gradients. */
template <class T>
class BufferBlock2 {
 public:
  /** create_block() makes blocks. */
  explicit BufferBlock2(std::shared_ptr<detail::BlockReservations> reservations)
      : reservations_(std::move(reservations)) {}

  /**
   * Makes *tensor one of these sizes; its memory comes with the buffer's allocate(). RuntimeError after that, after
   * as_tensor(), or if the block would have more than Arena::kMaxBytes.
   */
  void reserve(const Dimensions& sizes, Tensor2<T>* tensor) {
    *tensor = Tensor2<T>::stretch_from(reservations_->reserve(sizes));
  }
  /** The whole block as a tensor of one dimension, in the order of reservation; ends the reservations. */
  Tensor2<T>& as_tensor() {
    whole_ = Tensor2<T>::stretch_from(reservations_->whole());
    return whole_;
  }

 private:
  std::shared_ptr<detail::BlockReservations> reservations_;  // shared with the buffer, which places them
  Tensor2<T> whole_;
};

/**
 * Memory of many tensors, allocated once. They lie in the order of reservation, each, and each block, at a multiple of
 * 32 bytes from the start, and are views of one storage, which lives as long as any of them. One thread at a time.
 */
template <BufferAllocator A = HostAllocator>
class GeneralBuffer2 {
 public:
  /** What reservations are rounded up to, in bytes. */
  static constexpr int64_t kAlignment = 32;

  GeneralBuffer2() = default;
  GeneralBuffer2(const GeneralBuffer2&) = delete;
  GeneralBuffer2& operator=(const GeneralBuffer2&) = delete;
  /** As HugeCTR's programs make one; whoever reserves may keep it. */
  static std::shared_ptr<GeneralBuffer2> create() { return std::make_shared<GeneralBuffer2>(); }

  /** Makes *tensor one of these sizes, whose memory comes with allocate(); RuntimeError after that. */
  template <class T>
  void reserve(const Dimensions& sizes, Tensor2<T>* tensor) {
    *tensor = Tensor2<T>::stretch_from(reservations_.reserve(sizes, scalar_type_of<T>()));
  }
  /**
   * Makes *tensor one of sizes [..., samples, most keys of a sample]: max_nnz() is their product, and there are
   * slot_num rows for each sample. Its nnz() is 0. RuntimeError after allocate(), without sizes, or for slot_num < 1.
   */
  template <class T>
  void reserve(const Dimensions& sizes, int64_t slot_num, SparseTensor<T>* tensor) {
    *tensor = SparseTensor<T>::stretch_from(reservations_.reserve_sparse(sizes, slot_num, scalar_type_of<T>()));
  }
  /** A block at this place among the reservations; RuntimeError after allocate(). */
  template <class T>
  std::shared_ptr<BufferBlock2<T>> create_block() {
    return std::make_shared<BufferBlock2<T>>(reservations_.create_block(scalar_type_of<T>()));
  }
  /**
   * Allocates everything, not filled, and ends the reservations. RuntimeError if it was called before, or for more than
   * Arena::kMaxBytes; what the allocator throws leaves everything as it was.
   */
  void allocate() { reservations_.allocate(A::allocator()); }

  bool allocated() const { return reservations_.allocated(); }
  /** Of all reservations; 0 before allocate(). */
  size_t get_size_in_bytes() const { return reservations_.nbytes(); }
  /** The first byte; null if there are none. RuntimeError before allocate(). */
  void* get_ptr() const { return reservations_.data(); }

 private:
  detail::BufferReservations reservations_;
};

}  // namespace tercel::recsys::hugectr
