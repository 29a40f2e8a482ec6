#include "cli/model_config.h"

#include "tercel/util/file.h"

namespace tercel::cli {

recsys::ModelConfig named_config(const std::string& model) {
  const bool is_file = model.find('/') != std::string::npos || model.ends_with(".json");
  return is_file ? recsys::parse_config(read_file(model, kMaxConfigBytes), model)
                 : recsys::parse_config(recsys::preset(model), model);
}

}  // namespace tercel::cli
