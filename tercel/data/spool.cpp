#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tercel/data/spool_impl.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"

namespace tercel::data {

namespace {

// A process may have some 65,000 mappings: many pieces share one.
constexpr size_t kChunkBytes = size_t{64} << 20;
constexpr size_t kAlign = 8;

size_t rounded(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

File create_unnamed() {
  const char* named = std::getenv("TMPDIR");
  const std::string folder = named && *named ? named : "/tmp";
  static std::atomic<int64_t> next{0};
  const std::string path =
      join_path(folder, str_cat({"tercel-spool-", static_cast<int64_t>(::getpid()), "-", next.fetch_add(1)}));
  File file = File::create_new(path);
  remove_file(path);
  return file;
}

}  // namespace

Spool::~Spool() {
  for (const Mapping& mapping : mappings_) ::munmap(mapping.address, mapping.bytes);
}

void Spool::map_chunk(size_t bytes) {
  if (!file_.is_open()) file_ = create_unnamed();
  bytes = rounded(std::max(bytes, kChunkBytes), static_cast<size_t>(::sysconf(_SC_PAGESIZE)));
  // Allocated on the disk now: writing to a mapping of a full disk would end the process.
  int error = 0;
  do error = ::posix_fallocate(file_.fd(), file_bytes_, static_cast<off_t>(bytes));
  while (error == EINTR);
  TERCEL_CHECK(error == 0, IoError, printable(file_.path()), ": cannot keep ", format_bytes(file_bytes_),
               " of decoded rows and ", format_bytes(static_cast<int64_t>(bytes)), " more: ", std::strerror(error),
               "; set TMPDIR to a folder with more room, or read without shuffling");
  // Opened for writing only, the file cannot be mapped: through its number it is opened again for both.
  const int both = ::open(str_cat({"/proc/self/fd/", static_cast<int64_t>(file_.fd())}).c_str(), O_RDWR | O_CLOEXEC);
  void* address = both < 0 ? MAP_FAILED : ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, both, file_bytes_);
  if (both >= 0) ::close(both);
  TERCEL_CHECK(address != MAP_FAILED, IoError, printable(file_.path()), ": cannot map ", static_cast<int64_t>(bytes),
               " bytes: ", std::strerror(errno));
  mappings_.push_back({address, bytes});
  file_bytes_ += static_cast<int64_t>(bytes);
  next_ = static_cast<std::byte*>(address);
  left_ = bytes;
}

std::byte* Spool::allocate(size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (static_cast<int64_t>(bytes) > heap_left_) {
    bytes = rounded(bytes, kAlign);
    if (bytes > left_) map_chunk(bytes);
    std::byte* const taken = next_;
    next_ += bytes;
    left_ -= bytes;
    return taken;
  }
  heap_left_ -= static_cast<int64_t>(bytes);
  // Not cleared, unlike that of make_unique.
  heap_.emplace_back(new std::byte[bytes]);
  return heap_.back().get();
}

DecodedRows Spool::keep(const DecodedRows& rows) {
  size_t total = kAlign;
  const auto keys_of = [&](const KeyColumn& column) {
    return rows.rows == 0 ? 0 : column.begin(rows.rows - 1) + column.count(rows.rows - 1) - column.begin(0);
  };
  const auto count = static_cast<size_t>(rows.rows);
  for (const FloatColumn& column : rows.floats) total += rounded(count * static_cast<size_t>(column.width) * 4, kAlign);
  for (const KeyColumn& column : rows.keys) {
    const auto num = static_cast<size_t>(keys_of(column));
    total += num * 8 + (column.weights ? rounded(num * 4, kAlign) : 0) + (column.offsets ? (count + 1) * 8 : 0);
  }
  for (const FurtherColumn& column : rows.columns) total += rounded(count * (column.floats ? 4 : 8), kAlign);

  std::byte* next = allocate(total);
  const auto put = [&]<class T>(const T* from, size_t number) {
    auto* const to = reinterpret_cast<T*>(next);
    if (number > 0) std::memcpy(to, from, number * sizeof(T));
    next += rounded(number * sizeof(T), kAlign);
    return static_cast<const T*>(to);
  };
  DecodedRows kept;
  kept.rows = rows.rows;
  kept.origins = rows.origins;
  for (const FloatColumn& column : rows.floats) {
    FloatColumn copy;
    copy.width = column.width;
    copy.values = put(column.values, count * static_cast<size_t>(column.width));
    copy.bad = column.bad;
    kept.floats.push_back(std::move(copy));
  }
  for (const KeyColumn& column : rows.keys) {
    KeyColumn copy;
    copy.per_row = column.per_row;
    copy.is_unsigned = column.is_unsigned;
    const auto num = static_cast<size_t>(keys_of(column));
    const int64_t first = rows.rows == 0 ? 0 : column.begin(0);
    copy.keys = put(column.keys + first, num);
    if (column.weights) copy.weights = put(column.weights + first, num);
    if (column.offsets) {
      auto* const offsets = reinterpret_cast<int64_t*>(next);
      for (size_t row = 0; row <= count; ++row) offsets[row] = column.offsets[row] - first;
      next += (count + 1) * sizeof(int64_t);
      copy.offsets = offsets;
    }
    copy.bad = column.bad;
    kept.keys.push_back(std::move(copy));
  }
  for (const FurtherColumn& column : rows.columns) {
    FurtherColumn copy;
    if (column.floats)
      copy.floats = put(column.floats, count);
    else
      copy.integers = put(column.integers, count);
    copy.bad = column.bad;
    kept.columns.push_back(std::move(copy));
  }
  return kept;
}

}  // namespace tercel::data
