// Many tensors in one block of memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tercel/core/allocator.h"
#include "tercel/core/tensor.h"

namespace tercel {

/**
 * First reserves tensors, then allocates once. They lie one after the other, in the order of reservation, and are views
 * of the block: what is done to whole() is done to all of them, and the gaps between them.
 */
class TERCEL_API Arena {
 public:
  /** A cache line, so that no two tensors share one. */
  static constexpr int64_t kAlignment = 64;
  /** Of a block; more than any memory has, so that sums of sizes do not overflow. */
  static constexpr int64_t kMaxBytes = int64_t{1} << 50;

  /**
   * Reserves a contiguous tensor that begins, and whose successor begins, at a multiple of `alignment` bytes (a power
   * of two, at least the size of an element) from the block's start; returns its index. RuntimeError for another
   * alignment, after allocate(), or if the block would have more than kMaxBytes.
   */
  size_t reserve(IntSpan sizes, ScalarType dtype, int64_t alignment = kAlignment);
  /** Allocates the block, which is not filled. RuntimeError if it is allocated; OutOfMemoryError. */
  void allocate(Allocator& allocator = cpu_allocator());
  bool is_allocated() const { return block_.defined(); }

  /** Number of tensors. */
  size_t size() const { return entries_.size(); }
  int64_t nbytes() const { return nbytes_; }
  /** Where a tensor begins, in bytes from the block's start. */
  int64_t offset(size_t index) const { return entries_[index].offset; }
  /** A tensor, by the index that reserve() returned; RuntimeError before allocate(). */
  Tensor operator[](size_t index) const;
  /** The block as a tensor of one dimension; RuntimeError before allocate(), or if it is not a number of elements. */
  Tensor whole(ScalarType dtype) const;

 private:
  struct Entry {
    DimVector sizes;
    ScalarType dtype;
    int64_t offset;
  };
  void check_allocated() const;

  std::vector<Entry> entries_;
  Storage block_;
  int64_t nbytes_ = 0;
};

}  // namespace tercel
