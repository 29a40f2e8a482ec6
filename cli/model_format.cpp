#include "cli/model_format.h"

#include "tercel/util/enum_names.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"

namespace tercel::cli {

recsys::ModelFormat model_format(const std::string& flag, std::string_view file) {
  recsys::ModelFormat format = recsys::ModelFormat::HugeCtr;
  if (flag.empty()) {
    if (file.ends_with(".safetensors")) format = recsys::ModelFormat::Safetensors;
    if (file.ends_with(".pt") || file.ends_with(".pth")) format = recsys::ModelFormat::StateDict;
  } else {
    TERCEL_CHECK(parse_enum(flag, format), ConfigError,
                 "--format: expected hugectr, safetensors or state_dict, found '", printable(flag), "'");
  }
  return format;
}

}  // namespace tercel::cli
