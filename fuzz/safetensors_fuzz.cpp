// Any file is a safetensors file or a DataError; a valid file survives a round trip.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tercel/io/safetensors.h"
#include "tercel/util/error.h"
#include "tercel/util/file.h"

namespace {

using namespace tercel;

struct Content {
  std::vector<io::NamedTensor> tensors;
  io::Metadata metadata;
};

Content read_all(const std::string& path) {
  const io::SafetensorsReader reader(path);
  Content content{{}, reader.metadata()};
  for (const io::TensorEntry& entry : reader.entries()) content.tensors.push_back({entry.name, reader.read(entry)});
  return content;
}

void expect(bool holds) {
  if (!holds) std::abort();
}

void round_trip(const Content& content) {
  const std::string path = "/dev/shm/safetensors_fuzz." + std::to_string(::getpid());
  remove_file(path);
  io::write_safetensors(path, content.tensors, content.metadata);
  const io::SafetensorsReader reader(path);
  expect(reader.metadata() == content.metadata);
  expect(reader.entries().size() == content.tensors.size());
  for (const io::NamedTensor& t : content.tensors) {
    const Tensor copy = empty(t.tensor.sizes(), t.tensor.dtype());
    reader.read_into({t.name, copy});
    expect(copy.numel() == 0 || std::memcmp(copy.data_ptr(), t.tensor.data_ptr(), copy.nbytes()) == 0);
  }
  remove_file(path);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const int fd = ::memfd_create("fuzz", MFD_CLOEXEC);
  if (fd < 0 || ::write(fd, data, size) != static_cast<ssize_t>(size)) std::abort();
  try {
    round_trip(read_all("/proc/self/fd/" + std::to_string(fd)));
  } catch (const DataError&) {
  }
  ::close(fd);
  return 0;
}
