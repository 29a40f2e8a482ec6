#include "tercel/core/storage.h"

#include <algorithm>
#include <cstring>

#include "tercel/util/error.h"

namespace tercel {

void StorageImpl::release_resources() { data_.clear(); }

void StorageImpl::refuse_resizable() { throw_error<ValueError>({"For resizable storage, allocator must be provided"}); }

void StorageImpl::set_allocator(Allocator* source) {
  if (resizable_ && !source) refuse_resizable();
  allocator_ = source;
}

void StorageImpl::set_resizable(bool can_resize) {
  if (can_resize && !allocator_) refuse_resizable();
  resizable_ = can_resize;
}

DataPtr StorageImpl::set_data_ptr(DataPtr block) {
  data_.swap(block);
  return block;
}

void StorageImpl::reset() {
  data_.clear();
  nbytes_ = 0;
}

void StorageImpl::resize_bytes(size_t size) {
  TERCEL_CHECK(resizable_, ValueError, "Trying to resize storage that is not resizable");
  DataPtr fresh = allocator_->allocate(size);
  const size_t common = std::min(size, nbytes_);
  if (common > 0) std::memcpy(fresh.get(), data_.get(), common);
  data_ = std::move(fresh);
  nbytes_ = size;
}

Storage create_storage(Device device) {
  Allocator& allocator = get_allocator(device.type);
  return make_intrusive<StorageImpl>(size_t{0}, DataPtr(nullptr, device), &allocator, true);
}

}  // namespace tercel
