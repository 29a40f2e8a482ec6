// Any pickle program is a value or a DataError; a valid value is written as a file, which reads and writes to the same
// file. The input is the program only: its storages have 64 bytes each, and npz_fuzz covers the archive around it.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "tercel/io/pickle_impl.h"
#include "tercel/io/pt.h"
#include "tercel/util/error.h"
#include "tercel/util/file.h"

namespace {

using namespace tercel;

constexpr int64_t kMostBytes = 64;

Storage make_storage(std::string_view, int64_t nbytes, ScalarType) {
  TERCEL_CHECK(nbytes <= kMostBytes, DataError, "fuzz: a storage of ", nbytes, " bytes");
  auto storage = make_intrusive<StorageImpl>(static_cast<size_t>(nbytes), &cpu_allocator(), true);
  if (nbytes > 0) std::memset(storage->data(), 1, static_cast<size_t>(nbytes));
  return storage;
}

std::string file_of(const std::string& path, const io::Value& value) {
  io::save_pt(path, value);
  return read_file(path, INT64_MAX);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view program(reinterpret_cast<const char*>(data), size);
  io::Value value;
  try {
    value = io::unpickle(program, "fuzz", make_storage);
  } catch (const DataError&) {
    return 0;
  }
  const std::string path = "/dev/shm/pt_fuzz." + std::to_string(::getpid());
  const std::string once = file_of(path, value);
  const std::string again = file_of(path, io::load_pt(path));
  if (once != again) std::abort();
  remove_file(path);
  return 0;
}
