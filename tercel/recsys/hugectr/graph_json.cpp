#include "tercel/recsys/hugectr/graph_json.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "tercel/recsys/model/config_impl.h"
#include "tercel/recsys/model/graph_options_impl.h"
#include "tercel/util/ceil_div.h"
#include "tercel/util/json_impl.h"
#include "tercel/util/options_impl.h"

namespace tercel::recsys::hugectr {

namespace {

using Names = std::vector<std::string_view>;

/** HugeCTR's block of a rule's numbers, and which they are; no name for a rule that it does not have. */
std::pair<const char*, Names> block_of(optim::Rule rule) {
  switch (rule) {
    case optim::Rule::Adam: return {"adam_hparam", {"beta1", "beta2", "epsilon"}};
    case optim::Rule::AdaGrad: return {"adagrad_hparam", {"initial_accu_value", "epsilon"}};
    case optim::Rule::MomentumSgd: return {"momentum_sgd_hparam", {"momentum_factor"}};
    case optim::Rule::Nesterov: return {"nesterov_hparam", {"momentum_factor"}};
    case optim::Rule::Ftrl: return {"ftrl_hparam", {"beta", "lambda1", "lambda2"}};
    case optim::Rule::Sgd:
    case optim::Rule::AdamW:
    case optim::Rule::RowWiseAdaGrad:
    case optim::Rule::RmsProp: break;
  }
  return {nullptr, {}};
}

bool is_among(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/** Without what is as in the model's options for tables, which Tercel takes for what is missing. */
Json optimizer_json(const optim::OptimizerOptions& options, const optim::OptimizerOptions& of_model) {
  const Json all = write_options(options), defaults = write_options(of_model);
  const auto [block, numbers] = block_of(options.type);
  Json out = {{"update_type", all.at("update_type")}, {"type", all.at("type")}};
  for (const auto& [key, value] : all.items()) {
    if (is_among(numbers, key))
      out[block][key] = value;
    else if (value != defaults.at(key))
      out[key] = value;
  }
  return out;
}

/** Removes what says nothing: empty lists, and initializers that are the layer's own. */
void remove_empty(Json& object) {
  for (auto entry = object.begin(); entry != object.end();) {
    Json& value = entry.value();
    if (value.is_object()) remove_empty(value);
    if ((value.is_array() && value.empty()) || value == "Default")
      entry = object.erase(entry);
    else
      ++entry;
  }
}

class Writer {
 public:
  Writer(Model& model, const optim::OptimizerOptions& optimizer) : model_(model), optimizer_(optimizer) {}

  Json layer(const GraphNode& node) {
    Json out = parse_json(node.options, "layers", JsonErrors::Config);
    if (node.type == "Data") return data(std::move(out));
    if (node.table >= 0) add_table(node, out);
    if (node.type == "Reshape") add_leading_dim(node, out);
    if (out.contains("regularizer")) rename_regularizer(out);
    remove_empty(out);
    return out;
  }

 private:
  /** The most keys of each slot, where the graph leaves it to the dataset. */
  Json data(Json out) const {
    size_t slot = 0;
    for (Json& input : out["sparse"]) {
      const auto slots = input.at("slot_num").get<size_t>();
      for (size_t s = 0; s < slots; ++s, ++slot)
        if (input["nnz_per_slot"].size() <= s) input["nnz_per_slot"].push_back(model_.schema().slots[slot].hotness);
    }
    return out;
  }

  void add_table(const GraphNode& node, Json& out) {
    const auto t = static_cast<size_t>(node.table);
    const EmbeddingTable& table = *model_.embeddings().tables()[t];
    const optim::OptimizerOptions& optimizer = model_.embeddings().optimizer(t);
    out["optimizer"] = optimizer_json(optimizer, optimizer_);
    Json& parameters = out["sparse_embedding_hparam"];
    const Json defaults = write_options(EmbeddingParameters{});
    const Names own = {"workspace_size_per_gpu_in_mb", "max_vocabulary_size_global", "embedding_vec_size", "combiner"};
    for (const auto& [key, value] : defaults.items())
      if (!is_among(own, key) && parameters.contains(key) && parameters.at(key) == value) parameters.erase(key);
    if (table.rows_without_key() > 0) return;  // it grows: the configured bounds are all there is to say
    parameters["max_vocabulary_size_global"] = table.rows();
    const auto numbers = static_cast<int64_t>(1 + optim::Optimizer::state_names(optimizer).size());
    if (parameters.value("workspace_size_per_gpu_in_mb", Json(0)) == Json(0))
      parameters["workspace_size_per_gpu_in_mb"] =
          ceil_div(table.rows() * table.dim() * numbers * static_cast<int64_t>(sizeof(float)), int64_t{1} << 20);
  }

  void add_leading_dim(const GraphNode& node, Json& out) const {
    const bool is_shaped = out.contains("shape") && !out.at("shape").empty();
    const bool selects = out.contains("selected") && !out.at("selected").empty();
    const DimVector& sizes = model_.graph().tensors[node.tops[0]].shape.sizes;
    if (is_shaped || selects) return;
    if (out.value("leading_dim", Json(0)) == Json(0) && sizes.size() == 1) out["leading_dim"] = sizes[0];
    if (out.value("time_step", Json(0)) == Json(0)) out.erase("time_step");
  }

  /** HugeCTR's writer has them only if there is one. */
  static void rename_regularizer(Json& out) {
    if (out.at("regularizer") == "None")
      out.erase("regularizer");
    else
      out["lambda"] = out.at("regularizer_lambda");
    out.erase("regularizer_lambda");
    if (out.contains("weight") && out.at("weight") == Json(1.0)) out.erase("weight");
  }

  Model& model_;
  optim::OptimizerOptions optimizer_;  // of tables without their own
};

}  // namespace

std::string graph_json(const ModelConfig& config, Model& model) {
  Json out = config_to_json(config);
  out["layers"] = Json::array();
  Writer writer(model, optim::options_of_tables(config.optimizer));
  for (const GraphNode& node : model.graph().nodes) out["layers"].push_back(writer.layer(node));
  return dump_json(out);
}

}  // namespace tercel::recsys::hugectr
