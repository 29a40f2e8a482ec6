// A model's graph as HugeCTR's graph_to_json() writes it.
#pragma once

#include <string>

#include "tercel/recsys/model/config.h"
#include "tercel/recsys/model/model.h"
#include "tercel/util/export.h"

namespace tercel::recsys::hugectr {

/**
 * The whole configuration as JSON text, whose layers are written as HugeCTR reads them: with the sizes that it does not
 * derive (rows and workspace of tables, leading dimensions, keys of slots), the numbers of an optimizer in its block,
 * and without entries that it does not have where they say nothing. HugeCTR reads nothing but the layers and the name.
 * parse_config() reads the same model back. The tables need not be allocated.
 */
TERCEL_API std::string graph_json(const ModelConfig& config, Model& model);

}  // namespace tercel::recsys::hugectr
