#include <algorithm>
#include <cstring>
#include <utility>

#include "tercel/data/formats/source_files_impl.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"

namespace tercel::data {

void ByteBuffer::resize(size_t size) {
  if (size > capacity_) {
    const size_t capacity = std::max(size, capacity_ + capacity_ / 2);
    DataPtr fresh = cpu_allocator().allocate(capacity);
    if (size_ > 0) std::memcpy(fresh.get(), bytes_.get(), size_);
    bytes_ = std::move(fresh);
    capacity_ = capacity;
  }
  size_ = size;
}

std::shared_ptr<const RandomAccessFile> SourceFiles::add(const Dataset& dataset, const DataFile& described) {
  Entry entry;
  entry.path = dataset.path_of(described);
  entry.rows = described.rows;
  entry.first_row = rows_;
  std::shared_ptr<const RandomAccessFile> file = open_data_file(entry.path);
  entry.info = file->identity();
  TERCEL_CHECK(entry.info.size == described.bytes, DataError, printable(entry.path), ": expected ", described.bytes,
               " bytes, as the dataset's description says, found ", entry.info.size);
  rows_ += entry.rows;
  entries_.push_back(std::move(entry));
  return file;
}

size_t SourceFiles::file_of(int64_t row) const {
  const auto behind = std::upper_bound(entries_.begin(), entries_.end(), row,
                                       [](int64_t r, const Entry& file) { return r < file.first_row; });
  // Files without rows share their first row with the next one: the last of them is the one that has it.
  return static_cast<size_t>(behind - entries_.begin()) - 1;
}

std::shared_ptr<const RandomAccessFile> SourceFiles::open(size_t index) {
  if (open_index_ != index) {
    open_index_ = SIZE_MAX;
    open_ = open_data_file(entries_[index].path);
    open_index_ = index;
  }
  return open_;
}

void check_same_file(std::string_view path, RecordPlace at, const FileInfo& expected,
                     const std::optional<FileInfo>& found) {
  const auto fail = [&](std::string_view what) {
    throw_error<DataError>({printable(path), ": record ", at.record, ": byte ", at.offset,
                            ": expected the file as it was when reading began, found it ", what});
  };
  if (!found) fail("removed");
  if (*found == expected) return;
  if (found->size != expected.size) fail(str_cat({"with ", found->size, " bytes instead of ", expected.size}));
  fail(found->inode != expected.inode || found->device != expected.device ? "replaced" : "written to");
}

// Looked up by name, to detect files that were replaced or removed as well as files that were written to.
void SourceFiles::check_unchanged(size_t index, RecordPlace at) const {
  const Entry& file = entries_[index];
  check_same_file(file.path, at, file.info, data_file_identity(file.path));
}

}  // namespace tercel::data
