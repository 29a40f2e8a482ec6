// Any file is text, gzip or a DataError; the sizes of reads change neither content nor error.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "tercel/util/error.h"
#include "tercel/util/file_stream.h"

namespace {

constexpr int64_t kMostBytes = int64_t{1} << 20;

struct Outcome {
  std::string content;
  bool failed = false;
};

Outcome read_all(const std::string& path, size_t piece) {
  Outcome outcome;
  std::string buffer(piece, '\0');
  try {
    tercel::GzipReader reader(tercel::File::open_read(path), kMostBytes);
    while (const size_t count = reader.read_some(buffer.data(), piece)) outcome.content.append(buffer, 0, count);
  } catch (const tercel::DataError&) {
    outcome.failed = true;
  }
  return outcome;
}

void read_lines(const std::string& path, const std::string& content) {
  tercel::GzipReader reader(tercel::File::open_read(path), kMostBytes);
  tercel::LineReader lines(reader, kMostBytes);
  size_t bytes = 0;
  std::string_view line;
  while (lines.next(line)) bytes += line.size();
  if (bytes > content.size()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const int fd = ::memfd_create("fuzz", MFD_CLOEXEC);
  if (fd < 0 || ::write(fd, data, size) != static_cast<ssize_t>(size)) std::abort();
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  const Outcome large = read_all(path, size_t{64} << 10);
  const Outcome small = read_all(path, 61);
  if (large.failed != small.failed) std::abort();
  if (!large.failed) {
    if (large.content != small.content) std::abort();
    read_lines(path, large.content);
  }
  ::close(fd);
  return 0;
}
