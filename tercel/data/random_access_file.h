// Data files as readers see them: local ones, and those of stores on the network (remote_store.h), by URL.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tercel/util/export.h"
#include "tercel/util/file.h"
#include "tercel/util/file_stream.h"

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

/** Kind and size of what a path or URL names; none if nothing is there. Web servers have no folders. */
TERCEL_API std::optional<FileInfo> data_path_info(const std::string& path);

/** Names in a folder, sorted. ConfigError for a URL of a web server, which cannot list folders. */
TERCEL_API std::vector<std::string> list_data_folder(const std::string& path);

/** A file from its start to its end. */
class TERCEL_API SequentialReader final : public ByteReader {
 public:
  explicit SequentialReader(std::unique_ptr<RandomAccessFile> file);

  size_t read_some(void* out, size_t bytes) override;
  const std::string& name() const override { return file_->path(); }

 private:
  std::unique_ptr<RandomAccessFile> file_;
  int64_t position_ = 0;
};

/**
 * A file from its start to its end, unpacked if it is gzip; a local one may be a pipe or "-", the standard input.
 * `info` becomes that of what was opened. IoError.
 */
TERCEL_API std::unique_ptr<GzipReader> open_data_stream(const std::string& path, FileInfo& info);

/** Whole content; DataError if it has more than `max_bytes`. */
TERCEL_API std::string read_data_file(const std::string& path, int64_t max_bytes);

/** XXH3-64 of the content. */
TERCEL_API uint64_t data_file_checksum(const std::string& path);

}  // namespace tercel::data
