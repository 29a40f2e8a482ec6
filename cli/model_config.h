// The configuration that --model names. Private.
#pragma once

#include <string>

#include "tercel/recsys/model/config.h"

namespace tercel::cli {

/** Bytes of the longest configuration that is read. */
constexpr int64_t kMaxConfigBytes = int64_t{16} << 20;

/** A shipped model, or the configuration in a file: a name with a '/' or that ends in .json. */
recsys::ModelConfig named_config(const std::string& model);

}  // namespace tercel::cli
