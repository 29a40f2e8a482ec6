#include "tercel/recsys/hugectr/general_buffer2.h"

#include <utility>

#include "tercel/util/error.h"

namespace tercel::recsys::hugectr::detail {

TensorBag2 BlockReservations::reserve(IntSpan sizes) {
  TERCEL_CHECK(!finalized_, RuntimeError,
               "BufferBlock2::reserve: Buffer block is finalized. Reserve before as_tensor() and allocate().");
  const int64_t numel = numel_of(sizes), most = Arena::kMaxBytes / static_cast<int64_t>(item_size(dtype_));
  TERCEL_CHECK(numel <= most - numel_, RuntimeError, "BufferBlock2::reserve: with ", sizes, " ", to_string(dtype_),
               " there would be more than ", Arena::kMaxBytes, " bytes");
  parts_.push_back(std::make_shared<ReservedTensor>(ReservedTensor{DimVector(sizes), dtype_}));
  numel_ += numel;
  return TensorBag2(parts_.back());
}

TensorBag2 BlockReservations::whole() {
  if (!whole_) whole_ = std::make_shared<ReservedTensor>(ReservedTensor{DimVector{numel_}, dtype_});
  finalized_ = true;
  return TensorBag2(whole_);
}

void BlockReservations::place(const Tensor& flat) {
  int64_t offset = flat.storage_offset();
  for (const std::shared_ptr<ReservedTensor>& part : parts_) {
    const IntSpan sizes = part->sizes;
    part->tensor = Tensor(make_intrusive<TensorImpl>(flat.storage(), dtype_, sizes, contiguous_strides(sizes), offset));
    offset += numel_of(sizes);
  }
  whole();
  whole_->tensor = flat;
  parts_.clear();
}

void BufferReservations::check_open() const {
  TERCEL_CHECK(!allocated(), RuntimeError, "GeneralBuffer2: General buffer is finalized. Reserve before allocate().");
}

std::shared_ptr<BlockReservations> BufferReservations::create_block(ScalarType dtype) {
  check_open();
  blocks_.push_back(std::make_shared<BlockReservations>(dtype));
  return blocks_.back();
}

TensorBag2 BufferReservations::reserve(IntSpan sizes, ScalarType dtype) {
  check_open();
  auto block = std::make_shared<BlockReservations>(dtype);
  TensorBag2 bag = block->reserve(sizes);
  blocks_.push_back(std::move(block));
  return bag;
}

SparseTensorBag BufferReservations::reserve_sparse(IntSpan sizes, int64_t slot_num, ScalarType dtype) {
  check_open();
  TERCEL_CHECK(!sizes.empty() && slot_num >= 1, RuntimeError,
               "GeneralBuffer2::reserve: a SparseTensor needs at least one size and one slot, but got ", sizes, " and ",
               slot_num, " slots");
  DimVector rows(sizes.subspan(0, sizes.size() - 1));
  rows.push_back(slot_num);
  const int64_t num_rows = numel_of(rows), max_nnz = numel_of(sizes);
  // Both or none: a buffer with row offsets alone would have memory that nobody knows.
  TensorBag2 values = reserve({max_nnz}, dtype);
  TensorBag2 row_offsets;
  try {
    TERCEL_CHECK(num_rows < INT64_MAX, RuntimeError, "GeneralBuffer2::reserve: too many rows: ", num_rows);
    row_offsets = reserve({num_rows + 1}, dtype);
  } catch (...) {
    blocks_.pop_back();
    throw;
  }
  return SparseTensorBag(sizes, std::move(values), std::move(row_offsets), std::make_shared<int64_t>(0));
}

void BufferReservations::allocate(Allocator& allocator) {
  TERCEL_CHECK(!allocated(), RuntimeError, "GeneralBuffer2::allocate: Memory has already been allocated.");
  Arena arena;
  for (const std::shared_ptr<BlockReservations>& block : blocks_)
    arena.reserve({block->numel()}, block->dtype(), GeneralBuffer2<>::kAlignment);
  arena.allocate(allocator);
  arena_ = std::move(arena);
  for (size_t b = 0; b < blocks_.size(); ++b) blocks_[b]->place(arena_[b]);
  blocks_.clear();
}

void* BufferReservations::data() const {
  TERCEL_CHECK(allocated(), RuntimeError, "GeneralBuffer2::get_ptr: General buffer is not allocated yet");
  return arena_.whole(kUInt8).data_ptr();
}

}  // namespace tercel::recsys::hugectr::detail
