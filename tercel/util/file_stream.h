// Sequential reading and writing with large buffers; text by lines; gzip.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tercel/util/checksum.h"
#include "tercel/util/export.h"
#include "tercel/util/file.h"

namespace tercel {

struct FileWriterOptions {
  size_t buffer_bytes = size_t{1} << 20;
  bool checksum = false;  // of everything written
};

/** Buffered sequential writing. Buffered data is lost unless flush, sync or close is called. */
class TERCEL_API FileWriter {
 public:
  explicit FileWriter(File file, const FileWriterOptions& options = {});

  void write(const void* data, size_t bytes) {
    if (bytes <= capacity_ - used_) [[likely]] {
      copy_in(data, bytes);
    } else {
      write_through(data, bytes);
    }
  }
  void write(std::string_view text) { write(text.data(), text.size()); }

  /** Bytes written so far, including the buffer. */
  int64_t position() const noexcept { return flushed_ + static_cast<int64_t>(used_); }
  /** XXH3-64 of everything written; the option must be on. */
  uint64_t checksum() const;
  const std::string& path() const noexcept { return file_.path(); }

  /** Overwrites bytes before position(), e.g. counts in a header; not with the checksum on. */
  void rewrite(int64_t offset, const void* data, size_t bytes);
  void flush();
  void sync();
  void close();

 private:
  void copy_in(const void* data, size_t bytes) {
    if (bytes > 0) __builtin_memcpy(buffer_.get() + used_, data, bytes);
    used_ += bytes;
  }
  void write_through(const void* data, size_t bytes);
  void put(const void* data, size_t bytes);

  File file_;
  std::unique_ptr<char[]> buffer_;
  size_t capacity_;
  size_t used_ = 0;
  int64_t flushed_ = 0;
  std::optional<Checksum> checksum_;
};

/** A sequential source of bytes. Implementations return at least one byte unless the end is reached. */
class TERCEL_API ByteReader {
 public:
  virtual ~ByteReader();
  /** Up to `bytes`; 0 only at the end. */
  virtual size_t read_some(void* out, size_t bytes) = 0;
  /** Name for error messages. */
  virtual const std::string& name() const = 0;
};

/** Buffered sequential reading of a file, without decompression. */
class TERCEL_API FileReader : public ByteReader {
 public:
  explicit FileReader(File file, size_t buffer_bytes = size_t{256} << 10);

  size_t read_some(void* out, size_t bytes) override;
  /** DataError if the file ends early. */
  void read_exact(void* out, size_t bytes);
  const std::string& name() const override { return file_.path(); }
  /** Bytes read so far. */
  int64_t position() const noexcept { return position_; }

 private:
  File file_;
  std::vector<char> buffer_;
  size_t begin_ = 0, end_ = 0;
  int64_t position_ = 0;
};

/** Lines of a text, without LF or CRLF; skips a byte order mark at the start; the last line may lack LF. */
class TERCEL_API LineReader {
 public:
  /** The source must outlive it. */
  explicit LineReader(ByteReader& source, size_t max_line_bytes = size_t{16} << 20);

  /** False at the end. The line is valid until the next call; DataError if it is longer than allowed. */
  bool next(std::string_view& line);
  /** Number of the line that next() returned last, from 1. */
  int64_t line_number() const noexcept { return line_number_; }
  const std::string& name() const { return source_.name(); }

 private:
  bool fill();

  ByteReader& source_;
  size_t max_line_bytes_;
  std::vector<char> buffer_;
  size_t begin_ = 0, end_ = 0;
  int64_t line_number_ = 0;
  bool at_end_ = false;
};

/**
 * Plain text or gzip (any number of members), told apart by the first two bytes; a name that ends in ".gz" must be
 * gzip. DataError, with the offset in the compressed file, where gzip data is cut off or damaged, and where the output
 * passes `max_bytes`, which stops a small file from filling the disk.
 */
class TERCEL_API GzipReader : public ByteReader {
 public:
  explicit GzipReader(File file, int64_t max_bytes);
  explicit GzipReader(std::unique_ptr<ByteReader> source, int64_t max_bytes);
  ~GzipReader() override;

  size_t read_some(void* out, size_t bytes) override;
  const std::string& name() const override;
  bool is_gzip() const noexcept;
  /** Bytes taken from the file so far, e.g. for progress against its size. */
  int64_t compressed_position() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tercel
