#include "tercel/util/reserved_memory.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "tercel/util/ceil_div.h"
#include "tercel/util/cpu_info.h"
#include "tercel/util/error.h"

namespace tercel {

namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kHugePage = 2 * kMiB;
// A call for each part: large enough that calls cost nothing, small enough that a step that makes one is not slow.
constexpr size_t kPart = 16 * kMiB;
// The start has small pages.
constexpr size_t kSmallPages = 2 * kHugePage;

// Note [Claimed addresses]
// Where the process may have so many addresses only (RLIMIT_AS, `ulimit -v`), what is reserved counts as if it were
// used: the first of several objects would leave nothing to the others, or to the rest of the program. There an object
// reserves nothing. It claims a range in a part of the address space that nobody else gets addresses in, since the
// kernel hands them out from the top, and programs and their heaps are above it; memory is mapped as it grows, and
// MAP_FIXED_NOREPLACE refuses a place where something is, after all. Only what is used counts then, whatever the number
// of objects.
constexpr size_t kFirstClaim = size_t{0x1000} << 32, kEndOfClaims = size_t{0x5000} << 32;

/** The claimed ranges of this process: begin and end. */
class Claims {
 public:
  /** The first gap of so many bytes; 0 if there is none. */
  size_t add(size_t bytes) {
    const std::lock_guard lock(mutex_);
    size_t begin = kFirstClaim;
    for (const auto& [first, end] : ranges_) {
      if (first - begin >= bytes) break;
      begin = end;
    }
    if (bytes > kEndOfClaims - begin) return 0;
    ranges_[begin] = begin + bytes;
    return begin;
  }
  bool has(const std::byte* begin) {
    const std::lock_guard lock(mutex_);
    return ranges_.contains(reinterpret_cast<size_t>(begin));
  }
  void remove(const std::byte* begin) {
    const std::lock_guard lock(mutex_);
    ranges_.erase(reinterpret_cast<size_t>(begin));
  }

 private:
  std::mutex mutex_;
  std::map<size_t, size_t> ranges_;
};

Claims& claims() {
  static Claims* const all = new Claims;  // objects may live until the end of the process
  return *all;
}

bool has_limited_addresses() {
  rlimit limit{};
  return getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

std::byte* claim(size_t bytes) { return reinterpret_cast<std::byte*>(claims().add(bytes)); }

/** Reserves addresses; null if there are not so many. */
std::byte* reserve(size_t bytes) {
  // One huge page more than is used, so that the start can be at one.
  void* const block = mmap(nullptr, bytes + kHugePage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (block == MAP_FAILED) return nullptr;
  auto* const begin = static_cast<std::byte*>(block);
  const size_t before = (kHugePage - reinterpret_cast<size_t>(block) % kHugePage) % kHugePage;
  if (before > 0) munmap(begin, before);
  if (before < kHugePage) munmap(begin + before + bytes, kHugePage - before);
  return begin + before;
}

/** Makes [begin, begin + bytes) memory; false if the system does not have it. */
bool commit(std::byte* begin, size_t bytes, bool claimed) {
  if (!claimed) return mprotect(begin, bytes, PROT_READ | PROT_WRITE) == 0;
  void* const block = mmap(begin, bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (block == begin) return true;
  if (block != MAP_FAILED) munmap(block, bytes);  // by a kernel that does not know the flag
  return false;
}

}  // namespace

ReservedMemory::ReservedMemory(size_t least, size_t most) {
  least = round_up(std::max<size_t>(least, 1), kHugePage);
  const bool claims_addresses = has_limited_addresses();
  for (size_t bytes = std::max(least, round_up(most, kHugePage));;
       bytes = round_up(std::max(least, bytes / 2), kHugePage)) {
    data_ = claims_addresses ? claim(bytes) : reserve(bytes);
    reserved_ = data_ ? bytes : 0;
    if (data_) return;
    TERCEL_CHECK(bytes > least, OutOfMemoryError, "cannot reserve ", least, " bytes of addresses");
  }
}

ReservedMemory::~ReservedMemory() {
  if (!data_) return;
  const bool claimed = claims().has(data_);
  if (const size_t mapped = claimed ? size_ : reserved_; mapped > 0) munmap(data_, mapped);
  if (claimed) claims().remove(data_);
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
  const bool claimed = claims().has(data_);
  // Where addresses count, no more than a quarter of them is for later.
  const size_t part = claimed ? std::clamp(round_up(size_ / 4, kMiB), kMiB, kPart) : kPart;
  const size_t target = std::min(round_up(bytes, part), reserved_), more = target - size_;
  if (!fits_in_memory(bytes - size_)) throw_out_of_memory(bytes - size_);
  if (!commit(data_ + size_, more, claimed)) throw_out_of_memory(more);
  // Small tables would take a huge page for a few rows.
  if (const size_t first = std::max(size_, kSmallPages); first < target)
    madvise(data_ + first, target - first, MADV_HUGEPAGE);
  size_ = target;
}

}  // namespace tercel
