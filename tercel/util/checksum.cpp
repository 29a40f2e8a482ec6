#include "tercel/util/checksum.h"

#include <xxhash.h>

#include <new>
#include <vector>

#include "tercel/util/error.h"
#include "tercel/util/file.h"

namespace tercel {

struct Checksum::State {
  XXH3_state_t* xxh3 = XXH3_createState();
  ~State() { XXH3_freeState(xxh3); }
};

Checksum::Checksum() : state_(std::make_unique<State>()) {
  if (state_->xxh3 == nullptr) throw std::bad_alloc();
  XXH3_64bits_reset(state_->xxh3);
}
Checksum::Checksum(Checksum&&) noexcept = default;
Checksum& Checksum::operator=(Checksum&&) noexcept = default;
Checksum::~Checksum() = default;

void Checksum::update(const void* data, size_t bytes) {
  if (bytes > 0) TERCEL_ASSERT(XXH3_64bits_update(state_->xxh3, data, bytes) == XXH_OK);
}

uint64_t Checksum::value() const { return XXH3_64bits_digest(state_->xxh3); }

Checksum Checksum::copy() const {
  Checksum other;
  XXH3_copyState(other.state_->xxh3, state_->xxh3);
  return other;
}

uint64_t checksum(const void* data, size_t bytes) { return XXH3_64bits(data, bytes); }

uint64_t file_checksum(const std::string& path) { return file_checksum(File::open_read(path)); }

uint64_t file_checksum(const File& file) {
  std::vector<char> buffer(size_t{1} << 20);
  Checksum sum;
  int64_t at = 0;
  while (const size_t count = file.pread_some(buffer.data(), buffer.size(), at)) {
    sum.update(buffer.data(), count);
    at += static_cast<int64_t>(count);
  }
  return sum.value();
}

std::string checksum_to_hex(uint64_t value) {
  std::string text(16, '0');
  for (size_t i = 16; i-- > 0; value >>= 4) text[i] = "0123456789abcdef"[value & 15];
  return text;
}

}  // namespace tercel
