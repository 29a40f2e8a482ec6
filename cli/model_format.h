// The format of a model's files on the command line. Private.
#pragma once

#include <string>
#include <string_view>

#include "tercel/recsys/exchange/exchange.h"

namespace tercel::cli {

/** What --format says or, if it is empty, the name of a file: .safetensors, .pt or .pth, else HugeCTR's. ConfigError.
 */
recsys::ModelFormat model_format(const std::string& flag, std::string_view file);

}  // namespace tercel::cli
