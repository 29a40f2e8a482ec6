// What the readers and writers of the module share: memory, files of the host, errors. Private.
#pragma once

#include <arrow/io/interfaces.h>
#include <arrow/memory_pool.h>
#include <arrow/result.h>
#include <arrow/status.h>
#include <parquet/exception.h>

#include <atomic>
#include <deque>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <string>

#include "tercel/data/arrow_abi_impl.h"

namespace tercel::arrow_module {

/**
 * jemalloc, where Arrow has it, otherwise malloc. Not the default pool: mimalloc has locks that fork() knows nothing
 * of, and the child of a process that allocates would wait for them.
 */
::arrow::MemoryPool* pool_that_forks();

/**
 * One of Arrow's pools with a limit on what is held at a time. Large blocks that are freed are kept for the next
 * batch, which needs the same ones: otherwise the system clears their pages again for each row group, a fifth of the
 * time.
 */
class LimitedPool final : public ::arrow::MemoryPool {
 public:
  using MemoryPool::Allocate;
  using MemoryPool::Free;
  using MemoryPool::Reallocate;

  ::arrow::Status Allocate(int64_t size, int64_t alignment, uint8_t** out) override;
  ::arrow::Status Reallocate(int64_t old_size, int64_t new_size, int64_t alignment, uint8_t** ptr) override;
  void Free(uint8_t* buffer, int64_t size, int64_t alignment) override;
  int64_t bytes_allocated() const override { return held_.load(); }
  int64_t total_bytes_allocated() const override { return pool_->total_bytes_allocated(); }
  int64_t num_allocations() const override { return pool_->num_allocations(); }
  std::string backend_name() const override { return pool_->backend_name(); }

  void set_limit(int64_t bytes) { limit_ = bytes; }

 private:
  struct Block {
    uint8_t* memory;
    int64_t size;
    int64_t alignment;
  };

  ::arrow::Status reserve(int64_t bytes, int64_t size);
  /** A block that was kept, or null. */
  uint8_t* take(int64_t size, int64_t alignment);
  /** Keeps a large block, and frees those that were kept first, if there are too many; frees a small one. */
  void release(const Block& block);

  ::arrow::MemoryPool* pool_ = pool_that_forks();
  std::atomic<int64_t> held_{0};
  std::atomic<int64_t> limit_{std::numeric_limits<int64_t>::max()};  // until the host sets one
  std::deque<Block> kept_;                                           // guarded by ModuleMutex::Pool, as is the next
  int64_t kept_bytes_ = 0;
};

/** While it lives, its thread cannot allocate more than this at once: lengths in damaged files are not believed. */
class AllocationLimit {
 public:
  explicit AllocationLimit(int64_t bytes);
  ~AllocationLimit();
  AllocationLimit(const AllocationLimit&) = delete;
  AllocationLimit& operator=(const AllocationLimit&) = delete;
};

/** The pool of all readers and writers; never destroyed, since batches may outlive everything else. */
LimitedPool& pool();

/** A file that the host reads. */
class HostInput final : public ::arrow::io::RandomAccessFile {
 public:
  explicit HostInput(const data::ArrowInput& input) : input_(input) {}

  using RandomAccessFile::ReadAt;
  ::arrow::Result<int64_t> GetSize() override { return input_.size; }
  ::arrow::Result<int64_t> ReadAt(int64_t position, int64_t bytes, void* out) override;
  ::arrow::Result<std::shared_ptr<::arrow::Buffer>> ReadAt(int64_t position, int64_t bytes) override;
  ::arrow::Result<int64_t> Read(int64_t bytes, void* out) override;
  ::arrow::Result<std::shared_ptr<::arrow::Buffer>> Read(int64_t bytes) override;
  ::arrow::Status Seek(int64_t position) override;
  ::arrow::Result<int64_t> Tell() const override { return position_; }
  ::arrow::Status Close() override;
  bool closed() const override { return closed_; }

 private:
  data::ArrowInput input_;
  int64_t position_ = 0;
  bool closed_ = false;
};

/** A file that the host writes. */
class HostOutput final : public ::arrow::io::OutputStream {
 public:
  explicit HostOutput(const data::ArrowOutput& output) : output_(output) {}

  using OutputStream::Write;
  ::arrow::Status Write(const void* data, int64_t bytes) override;
  ::arrow::Result<int64_t> Tell() const override { return position_; }
  ::arrow::Status Close() override;
  bool closed() const override { return closed_; }

 private:
  data::ArrowOutput output_;
  int64_t position_ = 0;
  bool closed_ = false;
};

/** The code of a status; its text goes to `failure`. */
data::ArrowCode report(const ::arrow::Status& status, data::ArrowFailure* failure);

/** Calls a function that returns a status, and makes one of what it throws: nothing is thrown across the border. */
template <class Function>
::arrow::Status caught(Function function) {
  try {
    return function();
  } catch (const ::parquet::ParquetStatusException& error) {
    return error.status();
  } catch (const std::bad_alloc&) {
    return ::arrow::Status::OutOfMemory("an allocation failed");
  } catch (const std::exception& error) {
    return ::arrow::Status::Invalid(error.what());
  } catch (...) {
    return ::arrow::Status::Invalid("an unknown exception");
  }
}

/** The same, as a code. */
template <class Function>
data::ArrowCode guarded(data::ArrowFailure* failure, Function function) {
  return report(caught(function), failure);
}

// The functions of ArrowApi, by their names there.
data::ArrowCode open_file(const data::ArrowInput* input, data::ArrowParquetFile** out, data::ArrowFailure* failure);
void close_file(data::ArrowParquetFile* file);
data::ArrowCode read_row_group(data::ArrowParquetFile* file, const data::ArrowInput* input, int32_t row_group,
                               const int32_t* leaves, int32_t leaf_count, int64_t batch_rows,
                               int64_t largest_allocation, ArrowArrayStream* out, data::ArrowFailure* failure);
data::ArrowCode open_writer(const data::ArrowOutput* output, ArrowSchema* schema,
                            const data::ArrowWriteOptions* options, data::ArrowParquetWriter** out,
                            data::ArrowFailure* failure);
data::ArrowCode write_rows(data::ArrowParquetWriter* writer, ArrowArray* rows, data::ArrowFailure* failure);
data::ArrowCode finish_writer(data::ArrowParquetWriter* writer, data::ArrowFailure* failure);
void close_writer(data::ArrowParquetWriter* writer);
data::ArrowCode store_info(const char* url, data::ArrowStoreInfo* out, data::ArrowFailure* failure);
data::ArrowCode store_list(const char* url, void* context, void (*add)(void* context, const char* name),
                           data::ArrowFailure* failure);
data::ArrowCode store_open(const char* url, int64_t* size, uint64_t* version, data::ArrowStoreFile** out,
                           data::ArrowFailure* failure);
data::ArrowCode store_read(data::ArrowStoreFile* file, void* out, int64_t bytes, int64_t offset, int64_t* found,
                           data::ArrowFailure* failure);
void store_close(data::ArrowStoreFile* file);

}  // namespace tercel::arrow_module
