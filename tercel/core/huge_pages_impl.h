// Small blocks of memory in huge pages. Private.
#pragma once

#include <cstddef>

namespace tercel {

/**
 * Bytes to allocate so that memory of 512 KiB or more is in huge pages of 2 MiB, as larger blocks are: up to four times
 * those that are needed. It is for the few blocks that other processes read or that come from them: the kernel copies
 * between processes page by page, which takes half the time with huge ones.
 */
constexpr size_t bytes_in_huge_pages(size_t bytes) {
  constexpr size_t kHugePage = size_t{2} << 20;
  return bytes >= kHugePage / 4 && bytes < kHugePage ? kHugePage : bytes;
}

}  // namespace tercel
