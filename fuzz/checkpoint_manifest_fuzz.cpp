// Any text in the place of a manifest makes a checkpoint or a DataError. A text that starts with 'C' is the content of
// a manifest whose checksum is right.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "tercel/recsys/checkpoint.h"
#include "tercel/util/checksum.h"
#include "tercel/util/error.h"
#include "tercel/util/file.h"
#include "tercel/util/json_impl.h"

namespace {

/** A folder with a file for manifests to name. */
class Folder {
 public:
  Folder() {
    std::string path = (::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp") + std::string("/tercel_fuzz_XXXXXX");
    if (::mkdtemp(path.data()) == nullptr) std::abort();
    path_ = path;
    tercel::write_file(path_ + "/dense.safetensors", "{}");
  }
  ~Folder() { tercel::remove_tree(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/** The manifest with that content. */
std::string manifest_of(std::string_view content) {
  tercel::Json json = {{"format", 1}};
  try {
    json["content"] = tercel::parse_json(content, "content", tercel::JsonErrors::Data);
  } catch (const tercel::DataError&) {
    return std::string(content);
  }
  const std::string line = tercel::dump_json_line(json["content"]);
  json["checksum"] = tercel::checksum_to_hex(tercel::checksum(line.data(), line.size()));
  return tercel::dump_json(json);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Folder folder;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string path = folder.path() + "/manifest.json";
  tercel::remove_file(path);
  tercel::write_file(path, text.starts_with('C') ? manifest_of(text.substr(1)) : std::string(text));
  try {
    const tercel::recsys::Checkpoint checkpoint(folder.path());
    if (checkpoint.info().step < 0) std::abort();
    checkpoint.check_fingerprint(checkpoint.info().fingerprint);
  } catch (const tercel::DataError&) {
  }
  return 0;
}
