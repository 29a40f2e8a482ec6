// Memory that grows without moving.
#pragma once

#include <cstddef>

#include "tercel/util/export.h"

namespace tercel {

/**
 * A range of addresses that is reserved at once, and memory in it from its start on, as far as it was asked for. What
 * is in it never moves, and growing costs no more than the new pages. New memory is zero. Only what is touched is taken
 * from the machine; behind the first 4 MiB in huge pages where there are any. Where the process may have so many
 * addresses only (RLIMIT_AS), the range is kept free by this process itself and counts as it is used.
 */
class TERCEL_API ReservedMemory {
 public:
  /** Nothing reserved. */
  ReservedMemory() = default;
  /**
   * Reserves at most `most` bytes, fewer if the process may not have so many addresses; OutOfMemoryError if it cannot
   * have `least`, either.
   */
  ReservedMemory(size_t least, size_t most);
  ~ReservedMemory();
  ReservedMemory(ReservedMemory&& other) noexcept;
  ReservedMemory& operator=(ReservedMemory&& other) noexcept;
  ReservedMemory(const ReservedMemory&) = delete;
  ReservedMemory& operator=(const ReservedMemory&) = delete;

  /** The start; the same until the object is moved from. */
  std::byte* data() const { return data_; }
  /** Bytes that may be read and written. */
  size_t size() const { return size_; }
  /** Bytes that size() can become. */
  size_t reserved() const { return reserved_; }
  /**
   * Makes at least the first `bytes` usable. OutOfMemoryError, and no change, beyond reserved(), or if the machine does
   * not have them.
   */
  void grow(size_t bytes) {
    if (bytes > size_) [[unlikely]]
      extend(bytes);
  }

 private:
  void extend(size_t bytes);

  std::byte* data_ = nullptr;
  size_t size_ = 0, reserved_ = 0;
};

}  // namespace tercel
