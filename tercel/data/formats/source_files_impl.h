// The files of a part as a source reads them, and the bytes it reads into. Private.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tercel/core/allocator.h"
#include "tercel/data/dataset.h"
#include "tercel/data/random_access_file.h"

namespace tercel::data {

/** Bytes that grow without being cleared, from the allocator of tensors: large ones lie in huge pages. */
class ByteBuffer {
 public:
  std::byte* data() { return static_cast<std::byte*>(bytes_.get()); }
  const std::byte* data() const { return static_cast<const std::byte*>(bytes_.get()); }
  size_t size() const { return size_; }
  /** New bytes are uninitialised. */
  void resize(size_t size);

 private:
  DataPtr bytes_;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

/** A record and where it starts in its file, for messages. */
struct RecordPlace {
  int64_t record = 0;
  int64_t offset = 0;
};

/** DataError unless a file has the content that was opened first. `found`: none if it is not there. */
void check_same_file(std::string_view path, RecordPlace at, const FileInfo& expected,
                     const std::optional<FileInfo>& found);

/** The files of a part, in order. */
class SourceFiles {
 public:
  struct Entry {
    std::string path;
    int64_t rows = 0;
    int64_t first_row = 0;  // over all files
    FileInfo info;          // as it was opened first
  };

  /** Opens a file of the part for checks, and appends it; DataError unless it has the described size. */
  std::shared_ptr<const RandomAccessFile> add(const Dataset& dataset, const DataFile& described);

  size_t count() const { return entries_.size(); }
  const Entry& operator[](size_t index) const { return entries_[index]; }
  int64_t rows() const { return rows_; }
  /** The file of a row. */
  size_t file_of(int64_t row) const;
  /** The file, open. One is kept open, for one thread at a time; whoever holds the result may read from it. */
  std::shared_ptr<const RandomAccessFile> open(size_t index);
  /** DataError unless the name still has the content that was opened first. */
  void check_unchanged(size_t index, RecordPlace at) const;

 private:
  std::vector<Entry> entries_;
  int64_t rows_ = 0;
  std::shared_ptr<const RandomAccessFile> open_;
  size_t open_index_ = SIZE_MAX;
};

}  // namespace tercel::data
