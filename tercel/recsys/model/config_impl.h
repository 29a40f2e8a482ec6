// Parts of a configuration that are JSON. Private.
#pragma once

#include "tercel/recsys/model/config.h"
#include "tercel/util/json_impl.h"

namespace tercel::recsys {

/**
 * An optimizer object as HugeCTR writes it: type, update_type, and the rule's numbers flat or in "<x>_hparam". Missing
 * entries are as in `defaults`.
 */
optim::OptimizerOptions read_optimizer(const Json& json, const optim::OptimizerOptions& defaults,
                                       std::string_view owner);

/** parse_config() of a text that was parsed already. */
ModelConfig config_from_json(const Json& json, std::string_view name);
/** The JSON of to_json(). */
Json config_to_json(const ModelConfig& config);

/** Name of a layer: its only or first top; empty for Data. */
std::string layer_name(const Json& layer);

}  // namespace tercel::recsys
