// Data files as readers see them. There are local ones only; those of other file systems will implement
// RandomAccessFile.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "tercel/util/export.h"
#include "tercel/util/file.h"

namespace tercel::data {

/** An open file. read_at() may be called by several threads at once. */
class TERCEL_API RandomAccessFile {
 public:
  virtual ~RandomAccessFile();

  /** For messages. */
  virtual const std::string& path() const = 0;
  virtual int64_t size() const = 0;
  /** Of the content that was opened. */
  virtual FileInfo identity() const = 0;
  /** Reads up to `bytes` at `offset`, less only at the end of the file. IoError. */
  virtual size_t read_at(void* out, size_t bytes, int64_t offset) const = 0;
};

/** Opens a file; IoError if there is none or it is not a regular file. */
TERCEL_API std::unique_ptr<RandomAccessFile> open_data_file(const std::string& path);

/**
 * Identity of the content that a path names now: looked up by name, so that a file that was replaced or removed is
 * noticed, as is one that was written to. None if nothing is there.
 */
TERCEL_API std::optional<FileInfo> data_file_identity(const std::string& path);

}  // namespace tercel::data
