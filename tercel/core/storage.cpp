#include "tercel/core/storage.h"

#include <algorithm>
#include <cstring>

#include "tercel/util/error.h"

namespace tercel {

void StorageImpl::release_resources() { data_.clear(); }

void StorageImpl::refuse_resizable() {
  throw_error<RuntimeError>({"For resizable storage, allocator must be provided"});
}

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
  set_nbytes(0);
}

void StorageImpl::resize_bytes(size_t size) {
  TERCEL_CHECK(resizable_, RuntimeError, "Trying to resize storage that is not resizable");
  DataPtr fresh = allocator_->allocate(size);
  const size_t common = std::min(size, nbytes_);
  if (common > 0) std::memcpy(fresh.get(), data_.get(), common);
  data_ = std::move(fresh);
  set_nbytes(size);
}

void StorageImpl::swap(StorageImpl& other) {
  data_.swap(other.data_);
  const size_t size = nbytes_;
  set_nbytes(other.nbytes_);
  other.set_nbytes(size);
  std::swap(allocator_, other.allocator_);
  std::swap(resizable_, other.resizable_);
  bump_version();
  if (this != &other) other.bump_version();
}

Storage create_storage(Device device) {
  Allocator& allocator = get_allocator(device.type);
  return make_intrusive<StorageImpl>(size_t{0}, DataPtr(nullptr, device), &allocator, true);
}

void unique_storage_share_external_pointer(const Storage& storage, DataPtr block, size_t nbytes) {
  TERCEL_CHECK(storage.unique(), RuntimeError,
               "UniqueStorageShareExternalPointer can only be called when use_count == 1, not ", storage.use_count());
  storage->set_resizable(false);
  storage->set_allocator(nullptr);
  storage->set_data_ptr_noswap(std::move(block));
  storage->set_nbytes(nbytes);
  storage->bump_version();
}

namespace {

std::byte* element_of(const StorageImpl& storage, ScalarType dtype, int64_t index) {
  TERCEL_CHECK(dtype != ScalarType::Undefined, RuntimeError, "cannot index a storage with an undefined dtype");
  TERCEL_CHECK(storage.device().is_cpu(), NotImplementedError, "elements of a storage on ", to_string(storage.device()),
               " cannot be read individually");
  const auto count = static_cast<int64_t>(storage.nbytes() / item_size(dtype));
  TERCEL_CHECK(index >= 0 && index < count, IndexError, "storage index ", index, " is out of bounds for a storage of ",
               count, " elements");
  return storage.unsafe_data<std::byte>() + static_cast<size_t>(index) * item_size(dtype);
}

}  // namespace

// memcpy, since a storage may be unaligned.
Scalar storage_get(const StorageImpl& storage, ScalarType dtype, int64_t index) {
  const std::byte* at = element_of(storage, dtype, index);
  return visit_all_types("storage_get", dtype, [at]<class T> {
    T value;
    std::memcpy(&value, at, sizeof(T));
    return Scalar(value);
  });
}

void storage_set(StorageImpl& storage, ScalarType dtype, int64_t index, Scalar value) {
  std::byte* at = element_of(storage, dtype, index);
  visit_all_types("storage_set", dtype, [at, value]<class T> {
    const T converted = value.to<T>();
    std::memcpy(at, &converted, sizeof(T));
  });
  storage.bump_version();
}

}  // namespace tercel
