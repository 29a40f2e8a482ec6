// XXH3-64 checksums, which detect accidental damage, not deliberate changes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "tercel/util/export.h"

namespace tercel {

class File;

/** Streaming XXH3-64. */
class TERCEL_API Checksum {
 public:
  Checksum();
  Checksum(Checksum&&) noexcept;
  Checksum& operator=(Checksum&&) noexcept;
  ~Checksum();

  void update(const void* data, size_t bytes);
  /** Checksum of everything added so far; more may follow. */
  uint64_t value() const;
  Checksum copy() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/** XXH3-64 of a block of memory. */
TERCEL_API uint64_t checksum(const void* data, size_t bytes);

/** XXH3-64 of a file's content. */
TERCEL_API uint64_t file_checksum(const std::string& path);
/** XXH3-64 of an open file from its beginning; does not move the file's position. */
TERCEL_API uint64_t file_checksum(const File& file);

/** 16 hexadecimal digits, most significant first. */
TERCEL_API std::string checksum_to_hex(uint64_t value);

}  // namespace tercel
