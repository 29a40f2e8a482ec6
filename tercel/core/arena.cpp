#include "tercel/core/arena.h"

#include <bit>

#include "tercel/util/ceil_div.h"

namespace tercel {

size_t Arena::reserve(IntSpan sizes, ScalarType dtype, int64_t alignment) {
  TERCEL_CHECK(!is_allocated(), RuntimeError, "arena: the block is already allocated");
  const auto item = static_cast<int64_t>(item_size(dtype));
  TERCEL_CHECK(alignment >= item && alignment <= kMaxBytes && std::has_single_bit(static_cast<uint64_t>(alignment)),
               RuntimeError, "arena: expected an alignment that is a power of two, from ", item, " bytes, but got ",
               alignment);
  const int64_t numel = numel_of(sizes), offset = round_up(nbytes_, alignment);
  TERCEL_CHECK(offset <= kMaxBytes && numel <= (kMaxBytes - offset) / item &&
                   round_up(numel * item, alignment) <= kMaxBytes - offset,
               RuntimeError, "arena: with ", sizes, " ", to_string(dtype), " there would be more than ", kMaxBytes,
               " bytes");
  entries_.push_back({DimVector(sizes), dtype, offset});
  nbytes_ = offset + round_up(numel * item, alignment);
  return entries_.size() - 1;
}

void Arena::allocate(Allocator& allocator) {
  TERCEL_CHECK(!is_allocated(), RuntimeError, "arena: the block is already allocated");
  block_ = make_intrusive<StorageImpl>(static_cast<size_t>(nbytes_), &allocator, false);
}

void Arena::check_allocated() const {
  TERCEL_CHECK(is_allocated(), RuntimeError, "arena: the block is not allocated yet");
}

Tensor Arena::operator[](size_t index) const {
  check_allocated();
  const Entry& entry = entries_[index];
  const IntSpan sizes = entry.sizes;
  return Tensor(make_intrusive<TensorImpl>(block_, entry.dtype, sizes, contiguous_strides(sizes),
                                           entry.offset / static_cast<int64_t>(item_size(entry.dtype))));
}

Tensor Arena::whole(ScalarType dtype) const {
  check_allocated();
  const auto item = static_cast<int64_t>(item_size(dtype));
  TERCEL_CHECK(nbytes_ % item == 0, RuntimeError, "arena: ", nbytes_, " bytes are not a number of ", to_string(dtype),
               " elements");
  return Tensor(make_intrusive<TensorImpl>(block_, dtype, IntSpan({nbytes_ / item})));
}

}  // namespace tercel
