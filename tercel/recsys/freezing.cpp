#include <algorithm>

#include "tercel/recsys/freezing_impl.h"
#include "tercel/util/format.h"
#include "tercel/util/suggest.h"

namespace tercel::recsys {

void check_names_of_parameters(const char* function, const Graph& graph, Span<std::string> names) {
  const auto has_parameters = [](const GraphNode& node) { return node.table >= 0 || !node.parameters.empty(); };
  std::vector<std::string_view> known;
  for (const GraphNode& node : graph.nodes)
    if (has_parameters(node) && std::find(known.begin(), known.end(), node.trained_name()) == known.end())
      known.push_back(node.trained_name());
  for (const std::string& name : names) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    for (const GraphNode& node : graph.nodes)
      TERCEL_CHECK(node.name != name || name.empty(), ConfigError, function, ": layer '", printable(name), "' (",
                   node.type, ") has no parameters", known_names("", known));
    throw_error<ConfigError>(
        {function, ": there is no layer or table '", printable(name), "'", known_names(name, known)});
  }
}

std::vector<optim::ElementRange> freeze_parameters(Model& model, const std::set<std::string>& names) {
  const nn::ParameterArena& arena = model.parameters();
  std::vector<optim::ElementRange> trained;
  size_t next = 0;  // parameters are in the order of their layers
  for (const GraphNode& node : model.graph().nodes) {
    const bool frozen = names.contains(node.trained_name());
    if (node.table >= 0) {
      Tensor weight = model.embeddings().tables()[static_cast<size_t>(node.table)]->weight();
      weight.requires_grad_(!frozen);
    }
    for (size_t i = 0; i < node.parameters.size(); ++i, ++next) {
      Tensor parameter = arena[next];
      parameter.requires_grad_(!frozen);
      if (frozen) continue;
      // With the gap behind it, which stays 0.
      const bool is_last = next + 1 == arena.entries().size();
      const optim::ElementRange range{arena.entries()[next].offset,
                                      is_last ? arena.size() : arena.entries()[next + 1].offset};
      if (!trained.empty() && trained.back().end == range.begin)
        trained.back().end = range.end;
      else
        trained.push_back(range);
    }
  }
  return trained;
}

}  // namespace tercel::recsys
