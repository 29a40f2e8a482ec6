// Zip archives, the container of .npz and .pt files. Members are stored or deflated, archives may be zip64.
//
// Members must not overlap each other or other parts of the archive, and their names must not lead out of a folder;
// docs/design/io.md explains why no library is used.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tercel/util/atomic_file.h"
#include "tercel/util/file_stream.h"

namespace tercel::io {

struct ZipEntry {
  std::string name;
  int64_t header = 0;  ///< offset of the local header
  int64_t data = 0;    ///< offset of the first byte
  int64_t packed = 0;  ///< bytes in the file
  int64_t size = 0;    ///< bytes of content
  uint32_t crc = 0;
  bool deflated = false;
};

/** An archive open for reading. The constructor reads and checks the whole structure; DataError if it is invalid. */
class ZipReader {
 public:
  /**
   * Deflated members may grow to `max_inflated` bytes together; 0 is 1 GiB or 128 times the file, whichever is more,
   * which only a bomb or very long runs of one value reach. `parameter` names that limit in the error.
   */
  ZipReader(const std::string& path, int64_t max_inflated, std::string_view parameter);

  /** In the order of the directory, without folders. */
  const std::vector<ZipEntry>& entries() const { return entries_; }
  /** The entry of a name, or null. */
  const ZipEntry* find(std::string_view name) const;
  /** Reads a member; checksum and size are checked with the last byte. The archive must outlive the reader. */
  std::unique_ptr<ByteReader> open(const ZipEntry& entry) const;
  /** Whole content of a member. */
  std::string read(const ZipEntry& entry) const;
  /** Content into memory of the member's size. */
  void read_into(const ZipEntry& entry, void* out) const;
  const File& file() const { return file_; }

 private:
  struct Directory {
    int64_t begin = 0, end = 0, count = 0;
  };
  Directory find_directory() const;
  void read_directory(const Directory& directory);
  void read_local_header(ZipEntry& entry, int64_t limit) const;
  void check_ranges(int64_t directory) const;
  [[noreturn]] void fail(int64_t offset, std::string_view expected, std::string_view found) const;

  File file_;
  int64_t size_ = 0;
  std::vector<ZipEntry> entries_;
  std::unordered_map<std::string_view, size_t> index_;
};

/** Writes an archive atomically. The same content gives the same bytes. */
class ZipWriter {
 public:
  explicit ZipWriter(const std::string& path);
  ~ZipWriter();

  /** Starts a member of `size` bytes; a stored one's content lies at a multiple of `alignment` (a power of two). */
  void begin(std::string_view name, int64_t size, bool deflate, size_t alignment = 1);
  void write(const void* data, size_t bytes);
  /** Ends the member, of which all bytes have been written. */
  void end();
  /** A whole stored member. */
  void add(std::string_view name, std::string_view content, size_t alignment = 1);
  void commit();

 private:
  struct Deflater;
  void put(const void* data, size_t bytes);

  AtomicFile file_;
  std::vector<ZipEntry> entries_;
  std::unique_ptr<Deflater> deflater_;
  int64_t position_ = 0;
  int64_t written_ = 0;  // of the member's content
  bool wide_ = false;    // the member's local header has 64-bit sizes
};

/** Whether a member may have that name: UTF-8, relative, without "..", backslashes and control characters. */
bool is_safe_member_name(std::string_view name);

}  // namespace tercel::io
