#include "tercel/util/reserved_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <utility>

#include "tercel/util/ceil_div.h"
#include "tercel/util/cpu_info.h"
#include "tercel/util/error.h"

namespace tercel {

namespace {

constexpr size_t kHugePage = size_t{2} << 20;
// A call for each part: large enough that calls cost nothing, small enough that a step that makes one is not slow.
constexpr size_t kPart = size_t{16} << 20;

}  // namespace

ReservedMemory::ReservedMemory(size_t least, size_t most) {
  least = round_up(std::max<size_t>(least, 1), kHugePage);
  // One huge page more than is used, so that the start can be at one.
  for (size_t bytes = std::max(least, round_up(most, kHugePage));; bytes = std::max(least, bytes / 2)) {
    void* const block = mmap(nullptr, bytes + kHugePage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (block != MAP_FAILED) {
      auto* const begin = static_cast<std::byte*>(block);
      const size_t before = (kHugePage - reinterpret_cast<size_t>(block) % kHugePage) % kHugePage;
      if (before > 0) munmap(begin, before);
      if (before < kHugePage) munmap(begin + before + bytes, kHugePage - before);
      data_ = begin + before;
      reserved_ = bytes;
      return;
    }
    TERCEL_CHECK(bytes > least, OutOfMemoryError, "cannot reserve ", least, " bytes of addresses");
  }
}

ReservedMemory::~ReservedMemory() {
  if (data_) munmap(data_, reserved_);
}

ReservedMemory::ReservedMemory(ReservedMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      reserved_(std::exchange(other.reserved_, 0)) {}

ReservedMemory& ReservedMemory::operator=(ReservedMemory&& other) noexcept {
  ReservedMemory taken(std::move(other));
  std::swap(data_, taken.data_);
  std::swap(size_, taken.size_);
  std::swap(reserved_, taken.reserved_);
  return *this;
}

void ReservedMemory::extend(size_t bytes) {
  TERCEL_CHECK(bytes <= reserved_, OutOfMemoryError, "out of memory: ", bytes, " bytes of ", reserved_, " reserved");
  const size_t target = std::min(round_up(bytes, kPart), reserved_), more = target - size_;
  if (!fits_in_memory(bytes - size_)) throw_out_of_memory(bytes - size_);
  if (mprotect(data_ + size_, more, PROT_READ | PROT_WRITE) != 0) throw_out_of_memory(more);
  // Small tables would take a huge page for a few rows.
  if (size_ > 0) madvise(data_ + size_, more, MADV_HUGEPAGE);
  size_ = target;
}

}  // namespace tercel
