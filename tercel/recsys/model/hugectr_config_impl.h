// Configurations of HugeCTR's command line (versions before 3.4). Private.
#pragma once

#include <string_view>

#include "tercel/util/json_impl.h"

namespace tercel::recsys {

/** Whether it is such a file: its solver or its Data layer has entries that only HugeCTR's have. */
bool is_hugectr_config(const Json& config);

/**
 * The same model and training as a configuration of Tercel's, with HugeCTR's defaults. What says where data, GPUs and
 * snapshots are is left out. ConfigError with the path of an unknown entry, such as "my.json: layers[1].nmae".
 */
Json translate_hugectr_config(const Json& config, std::string_view name);

}  // namespace tercel::recsys
