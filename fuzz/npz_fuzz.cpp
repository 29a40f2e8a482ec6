// Any file is a .npz archive or a DataError; valid archives survive a round trip. Every input is tried a second time
// with corrected checksums of its members, which mutation would not find.
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tercel/io/npz.h"
#include "tercel/io/zip_impl.h"
#include "tercel/util/error.h"
#include "tercel/util/file.h"

namespace {

using namespace tercel;

constexpr int64_t kMostInflated = int64_t{1} << 24;

void expect(bool holds) {
  if (!holds) std::abort();
}

bool load(const std::string& path, std::vector<io::NamedTensor>& tensors) {
  try {
    tensors = io::load_npz(path, {.max_inflated_bytes = kMostInflated});
    return true;
  } catch (const DataError&) {
    return false;
  }
}

void round_trip(const std::vector<io::NamedTensor>& tensors, bool compressed) {
  const std::string path = "/dev/shm/npz_fuzz." + std::to_string(::getpid());
  io::save_npz(path, tensors, compressed);
  const std::vector<io::NamedTensor> back = io::load_npz(path);
  expect(back.size() == tensors.size());
  for (size_t i = 0; i < back.size(); ++i) {
    const Tensor &a = tensors[i].tensor, &b = back[i].tensor;
    expect(back[i].name == tensors[i].name && a.dtype() == b.dtype() && a.sizes() == b.sizes());
    expect(a.numel() == 0 || std::memcmp(a.data_ptr(), b.data_ptr(), a.nbytes()) == 0);
  }
  remove_file(path);
}

/** Writes the checksum of each stored member at its position in the archive. */
void mend_sums(int fd, const std::string& path) {
  try {
    const io::ZipReader zip(path, kMostInflated, "limit");
    std::string bytes = read_file(path, INT64_MAX);
    for (const io::ZipEntry& entry : zip.entries()) {
      if (entry.deflated) continue;
      const auto* data = reinterpret_cast<const Bytef*>(bytes.data()) + entry.data;
      const auto sum = static_cast<uint32_t>(crc32_z(0, data, static_cast<size_t>(entry.size)));
      for (size_t at = bytes.find(entry.name); at != std::string::npos; at = bytes.find(entry.name, at + 1)) {
        if (at >= 30 && bytes.compare(at - 30, 4, "PK\3\4") == 0) std::memcpy(&bytes[at - 16], &sum, 4);
        if (at >= 46 && bytes.compare(at - 46, 4, "PK\1\2") == 0) std::memcpy(&bytes[at - 30], &sum, 4);
      }
    }
    expect(::pwrite(fd, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
  } catch (const DataError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const int fd = ::memfd_create("fuzz", MFD_CLOEXEC);
  if (fd < 0 || ::write(fd, data, size) != static_cast<ssize_t>(size)) std::abort();
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  std::vector<io::NamedTensor> tensors;
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (load(path, tensors)) {
      round_trip(tensors, size % 2 == 0);
      break;
    }
    mend_sums(fd, path);
  }
  ::close(fd);
  return 0;
}
