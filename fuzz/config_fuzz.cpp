// Any text is a configuration or a ConfigError, as a file and as an assignment of --set. A valid configuration survives
// a round trip; its graph is built or refused with ConfigError, and its layers with all options written out give the
// same graph.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "tercel/recsys/model/config.h"
#include "tercel/recsys/model/model.h"
#include "tercel/util/error.h"

namespace {

using tercel::recsys::ModelConfig;

tercel::data::Schema small_schema() {
  tercel::data::Schema schema;
  schema.dense_dim = 3;
  schema.slots = {{"a", 5, 0, 1}, {"b", 7, 0, 2}, {"c", 1, 0, 1}};
  schema.set_consecutive_keys();
  return schema;
}

void check(const ModelConfig& config) {
  const std::string printed = tercel::recsys::to_json(config);
  if (tercel::recsys::to_json(tercel::recsys::parse_config(printed, "again")) != printed) std::abort();
  // Nothing is allocated until it is initialised, so no size is too large for this.
  const tercel::recsys::Model model(config, small_schema());
  const tercel::recsys::Model again(tercel::recsys::parse_config(printed, "again"), small_schema());
  if (model.fingerprint() != again.fingerprint() || model.summary() != again.summary()) std::abort();
  ModelConfig resolved = config;
  resolved.layers = model.layers();
  const tercel::recsys::Model same(resolved, small_schema());
  if (model.fingerprint() != same.fingerprint() || model.layers() != same.layers()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    check(tercel::recsys::parse_config(text, "fuzz"));
  } catch (const tercel::ConfigError&) {
  }
  try {
    ModelConfig config = tercel::recsys::parse_config(tercel::recsys::preset("dcn"), "dcn");
    tercel::recsys::set_config(config, text);
    check(config);
  } catch (const tercel::ConfigError&) {
  }
  return 0;
}
