// Parameters that are not trained, by the names of their layers. Private.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "tercel/optim/optimizer.h"
#include "tercel/recsys/model/model.h"

namespace tercel::recsys {

/** ConfigError "function: ..." unless each name is that of a layer with parameters, or of a table. */
void check_names_of_parameters(const char* function, const Graph& graph, Span<std::string> names);

/**
 * Lets exactly the parameters and tables of these layers need no gradient. Returns the elements of the model's arena
 * that are trained, in as few ranges as possible.
 */
std::vector<optim::ElementRange> freeze_parameters(Model& model, const std::set<std::string>& names);

}  // namespace tercel::recsys
