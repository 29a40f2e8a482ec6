// Any text as a manifest, or as an evaluation beside a valid manifest, gives a checkpoint or a DataError; a
// checkpoint's model is built or refused, and a table in shards is looked for. A text that starts with 'C' is the
// content of a manifest with a correct checksum, one that starts with 'E' that of an evaluation.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "tercel/recsys/checkpoint.h"
#include "tercel/recsys/model/model.h"
#include "tercel/util/checksum.h"
#include "tercel/util/error.h"
#include "tercel/util/file.h"
#include "tercel/util/json_impl.h"

namespace {

/** A folder with a file that manifests can name. */
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

/** The file with that content. */
std::string sealed(std::string_view content) {
  tercel::Json json = {{"format", 3}};
  try {
    json["content"] = tercel::parse_json(content, "content", tercel::JsonErrors::Data);
  } catch (const tercel::DataError&) {
    return std::string(content);
  }
  if (json["content"].is_object()) json["content"]["format"] = 3;
  const std::string line = tercel::dump_json_line(json["content"]);
  json["checksum"] = tercel::checksum_to_hex(tercel::checksum(line.data(), line.size()));
  return tercel::dump_json(json);
}

/** The manifest of an intact checkpoint. */
constexpr std::string_view kWhole = R"({
  "tercel_version": "0.1.0", "instruction_set": "avx2", "info": {"step": 3},
  "config": {"layers": [{"type": "Data"}]},
  "data": {"schema": {"label_dim": 1, "dense_dim": 0},
           "parts": [{"part": "train", "files": [{"path": "a", "bytes": 0, "rows": 0}]}]},
  "files": [{"name": "dense.safetensors", "bytes": 2, "checksum": "CHECKSUM"}]})";

std::string whole_manifest(const Folder& folder) {
  std::string text(kWhole);
  const std::string sum = tercel::checksum_to_hex(tercel::file_checksum(folder.path() + "/dense.safetensors"));
  return sealed(text.replace(text.find("CHECKSUM"), 8, sum));
}

void build(const tercel::recsys::RunIdentity& identity) {
  try {
    // Nothing is allocated until it is initialised, so no size is too large for this.
    const tercel::recsys::Model model(identity.config, identity.data.schema);
    if (model.layers().empty()) std::abort();
  } catch (const tercel::ConfigError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Folder folder;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string path = folder.path() + "/manifest.json";
  tercel::remove_file(path);
  tercel::write_file(path, text.starts_with('C') ? sealed(text.substr(1)) : std::string(text));
  try {
    const tercel::recsys::Checkpoint checkpoint(folder.path());
    if (checkpoint.info().step < 0) std::abort();
    checkpoint.check_fingerprint(checkpoint.info().fingerprint);
    build(checkpoint.identity());
    // The file is no tensor's, so that shards of any rows end in an error.
    if (checkpoint.map("table-0", "table", tercel::kFloat32, {8, 2}).defined()) std::abort();
  } catch (const tercel::DataError&) {
  }
  static const std::string whole = whole_manifest(folder);
  tercel::write_file(path, whole);
  const std::string evaluation = folder.path() + "/evaluation.json";
  tercel::write_file(evaluation, text.starts_with('E') ? sealed(text.substr(1)) : std::string(text));
  const tercel::recsys::Checkpoint checkpoint(folder.path());  // whatever the evaluation contains
  if (checkpoint.info().step != 3) std::abort();
  tercel::remove_file(evaluation);
  return 0;
}
