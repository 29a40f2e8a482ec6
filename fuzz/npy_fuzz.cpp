// Any file is a .npy file or a DataError, whether read or mapped; a valid array survives a round trip.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>

#include "tercel/io/npy.h"
#include "tercel/util/error.h"
#include "tercel/util/file.h"

namespace {

using namespace tercel;

void expect(bool holds) {
  if (!holds) std::abort();
}

std::optional<Tensor> load(const std::string& path, bool mmap) {
  try {
    return io::load_npy(path, {.mmap = mmap});
  } catch (const DataError&) {
    return std::nullopt;
  }
}

void expect_same(const Tensor& a, const Tensor& b) {
  expect(a.dtype() == b.dtype() && a.sizes() == b.sizes());
  expect(a.numel() == 0 || (a.strides() == b.strides() && std::memcmp(a.data_ptr(), b.data_ptr(), a.nbytes()) == 0));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const int fd = ::memfd_create("fuzz", MFD_CLOEXEC);
  if (fd < 0 || ::write(fd, data, size) != static_cast<ssize_t>(size)) std::abort();
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  const std::optional<Tensor> read = load(path, false), mapped = load(path, true);
  expect(read.has_value() == mapped.has_value());
  if (read) {
    expect_same(*read, *mapped);
    const std::string copy = "/dev/shm/npy_fuzz." + std::to_string(::getpid());
    io::save_npy(copy, *read);
    expect_same(*read, io::load_npy(copy));
    remove_file(copy);
  }
  ::close(fd);
  return 0;
}
