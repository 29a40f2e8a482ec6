#include "tercel/arrow/arrow_io_impl.h"

#include <arrow/buffer.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <limits>

#include "tercel/arrow/fork_locks.h"

namespace tercel::arrow_module {

using ::arrow::Result;
using ::arrow::Status;
using data::ArrowCode;

namespace {

// Blocks that are kept when they are freed.
constexpr int64_t kLeastKept = int64_t{64} << 10;
constexpr int64_t kMostKeptBytes = int64_t{128} << 20;
constexpr size_t kMostKept = 512;

thread_local int64_t largest_allocation = std::numeric_limits<int64_t>::max();

}  // namespace

AllocationLimit::AllocationLimit(int64_t bytes) { largest_allocation = bytes; }
AllocationLimit::~AllocationLimit() { largest_allocation = std::numeric_limits<int64_t>::max(); }

::arrow::MemoryPool* pool_that_forks() {
  ::arrow::MemoryPool* found = nullptr;
  return ::arrow::jemalloc_memory_pool(&found).ok() ? found : ::arrow::system_memory_pool();
}

Status LimitedPool::reserve(int64_t bytes, int64_t size) {
  if (size > largest_allocation)
    return Status::Invalid("a page or list needs ", size, " bytes, more than ", largest_allocation,
                           ", which is what the sizes in the metadata allow");
  const int64_t held = held_.fetch_add(bytes) + bytes;
  if (bytes <= 0 || held <= limit_.load()) return Status::OK();
  held_.fetch_sub(bytes);
  return Status::OutOfMemory("it needs ", bytes, " bytes more than the ", held - bytes, " in use, of at most ",
                             limit_.load());
}

Status LimitedPool::Allocate(int64_t size, int64_t alignment, uint8_t** out) {
  ARROW_RETURN_NOT_OK(reserve(size, size));
  if (size >= kLeastKept && (*out = take(size, alignment)) != nullptr) return Status::OK();
  Status status = pool_->Allocate(size, alignment, out);
  if (!status.ok()) held_.fetch_sub(size);
  return status;
}

Status LimitedPool::Reallocate(int64_t old_size, int64_t new_size, int64_t alignment, uint8_t** ptr) {
  ARROW_RETURN_NOT_OK(reserve(new_size - old_size, new_size));
  if (uint8_t* const kept = new_size >= kLeastKept && new_size != old_size ? take(new_size, alignment) : nullptr) {
    std::memcpy(kept, *ptr, static_cast<size_t>(std::min(old_size, new_size)));
    release({*ptr, old_size, alignment});
    *ptr = kept;
    return Status::OK();
  }
  Status status = pool_->Reallocate(old_size, new_size, alignment, ptr);
  if (!status.ok()) held_.fetch_sub(new_size - old_size);
  return status;
}

void LimitedPool::Free(uint8_t* buffer, int64_t size, int64_t alignment) {
  held_.fetch_sub(size);
  release({buffer, size, alignment});
}

uint8_t* LimitedPool::take(int64_t size, int64_t alignment) {
  const std::lock_guard lock(module_mutex(ModuleMutex::Pool));
  // The last ones first: they are the likeliest to be in the cache.
  for (auto block = kept_.rbegin(); block != kept_.rend(); ++block) {
    if (block->size != size || block->alignment != alignment) continue;
    uint8_t* const memory = block->memory;
    kept_.erase(std::next(block).base());
    kept_bytes_ -= size;
    return memory;
  }
  return nullptr;
}

void LimitedPool::release(const Block& block) {
  if (block.size < kLeastKept || block.size > kMostKeptBytes)
    return pool_->Free(block.memory, block.size, block.alignment);
  const std::lock_guard lock(module_mutex(ModuleMutex::Pool));
  kept_.push_back(block);
  kept_bytes_ += block.size;
  while (kept_bytes_ > kMostKeptBytes || kept_.size() > kMostKept) {
    const Block oldest = kept_.front();
    kept_.pop_front();
    kept_bytes_ -= oldest.size;
    pool_->Free(oldest.memory, oldest.size, oldest.alignment);
  }
}

LimitedPool& pool() {
  static auto* const pool = new LimitedPool;
  return *pool;
}

Result<int64_t> HostInput::ReadAt(int64_t position, int64_t bytes, void* out) {
  if (position < 0 || bytes < 0) return Status::Invalid("a read of ", bytes, " bytes at ", position);
  const int64_t found = input_.read_at(input_.context, out, bytes, position);
  if (found < 0) return Status::IOError("the file cannot be read");
  return found;
}

Result<std::shared_ptr<::arrow::Buffer>> HostInput::ReadAt(int64_t position, int64_t bytes) {
  // The size in a damaged file must not be believed before memory is allocated.
  if (position < 0 || bytes < 0 || position > input_.size)
    return Status::Invalid("a read of ", bytes, " bytes at ", position, " of a file of ", input_.size);
  bytes = std::min(bytes, input_.size - position);
  ARROW_ASSIGN_OR_RAISE(auto buffer, ::arrow::AllocateResizableBuffer(bytes, &pool()));
  ARROW_ASSIGN_OR_RAISE(const int64_t found, ReadAt(position, bytes, buffer->mutable_data()));
  if (found < bytes) ARROW_RETURN_NOT_OK(buffer->Resize(found));
  return std::shared_ptr<::arrow::Buffer>(std::move(buffer));
}

Result<int64_t> HostInput::Read(int64_t bytes, void* out) {
  ARROW_ASSIGN_OR_RAISE(const int64_t found, ReadAt(position_, bytes, out));
  position_ += found;
  return found;
}

Result<std::shared_ptr<::arrow::Buffer>> HostInput::Read(int64_t bytes) {
  ARROW_ASSIGN_OR_RAISE(auto buffer, ReadAt(position_, bytes));
  position_ += buffer->size();
  return buffer;
}

Status HostInput::Seek(int64_t position) {
  position_ = position;
  return Status::OK();
}

Status HostInput::Close() {
  closed_ = true;
  return Status::OK();
}

Status HostOutput::Write(const void* data, int64_t bytes) {
  if (output_.write(output_.context, data, bytes) != 0) return Status::IOError("the file cannot be written");
  position_ += bytes;
  return Status::OK();
}

Status HostOutput::Close() {
  closed_ = true;
  return Status::OK();
}

ArrowCode report(const Status& status, data::ArrowFailure* failure) {
  if (status.ok()) return ArrowCode::Ok;
  const std::string& text = status.message();
  const size_t length = std::min(text.size(), sizeof(failure->text) - 1);
  std::memcpy(failure->text, text.data(), length);
  failure->text[length] = '\0';
  switch (status.code()) {
    case ::arrow::StatusCode::OutOfMemory: return ArrowCode::Memory;
    case ::arrow::StatusCode::IOError: return ArrowCode::Io;
    case ::arrow::StatusCode::NotImplemented: return ArrowCode::Unsupported;
    default: return ArrowCode::Data;
  }
}

}  // namespace tercel::arrow_module
