// Memory-mapped files: nothing is copied, pages are read when they are touched.
#pragma once

#include <cstddef>

#include "tercel/util/export.h"
#include "tercel/util/file.h"

namespace tercel {

/**
 * The whole content of an open file. The mapping is private: writes to it stay in this process and never reach
 * the file. The file may be closed or deleted afterwards, but must not be truncated while it is mapped: touching a page
 * past its end then kills the process with SIGBUS. Files that a writer replaces (AtomicFile) are safe.
 */
class TERCEL_API MappedFile {
 public:
  /** IoError where the system cannot map it. */
  explicit MappedFile(const File& file);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  /** Null for an empty file. */
  std::byte* data() const noexcept { return data_; }
  size_t size() const noexcept { return size_; }

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace tercel
