#include "tercel/recsys/model/model.h"

#include "tercel/autograd/grad_mode.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/recsys/model/batch_memory_impl.h"
#include "tercel/recsys/model/graph_impl.h"
#include "tercel/util/checksum.h"
#include "tercel/util/profile.h"

namespace tercel::recsys {

struct Model::State {
  nn::ParameterArena parameters;
  Graph graph;
  Generator generator;
  // Tensors of the running pass; members only to reuse their memory.
  std::vector<Tensor> values, bottoms, tops, rows;
};

Model::Model(const ModelConfig& config, const data::Schema& schema) : state_(std::make_unique<State>()) {
  state_->graph = build_graph(config, schema, state_->parameters);
}
Model::~Model() = default;
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;

void Model::initialize(uint64_t seed) {
  initialize(seed, [] { return true; });
}

bool Model::initialize(uint64_t seed, FunctionRef<bool()> go_on) {
  Generator generator(seed);
  state_->parameters.allocate(generator);
  if (!state_->graph.embeddings.allocate(seed, go_on)) return false;
  // Dropout has a separate random sequence.
  state_->generator.set_seed(seed ^ 0x5851F42D4C957F2Dull);
  return true;
}

void Model::allocate_parameters() { state_->parameters.allocate(); }

namespace {

/** Sets the node's tops. */
void run_node(const Graph& graph, const GraphNode& node, const data::Batch& batch, const ForwardContext& context,
              Span<Tensor> rows, std::vector<Tensor>& values, std::vector<Tensor>& bottoms, std::vector<Tensor>& tops) {
  if (!node.layer) {
    values[node.tops[0]] = graph.embeddings.look_up(node.lookup, batch, rows);
    return;
  }
  bottoms.clear();
  for (const size_t t : node.bottoms) bottoms.push_back(values[t]);
  tops.assign(node.tops.size(), Tensor());
  node.layer->forward(bottoms, tops, context);
  for (size_t i = 0; i < tops.size(); ++i) values[node.tops[i]] = std::move(tops[i]);
}

/** Runs the nodes in order; after each, calls `watch`, which decides whether to continue. */
template <class Watch>
void run_graph(const Graph& graph, const data::Batch& batch, const ForwardContext& context, std::vector<Tensor>& rows,
               std::vector<Tensor>& values, std::vector<Tensor>& bottoms, std::vector<Tensor>& tops, Watch&& watch) {
  values.assign(graph.tensors.size(), Tensor());
  values[graph.label] = batch.labels;
  values[graph.dense] = batch.dense;
  name_batch_without_memory(
      [] { return "[embeddings]"; }, batch.rows, context.training,
      [&] { graph.embeddings.find_rows(batch, grad_enabled() ? NewKeys::Insert : NewKeys::Refuse, rows); });
  for (const GraphNode& node : graph.nodes) {
    const ProfileRange range(node.name.c_str(), RangeKind::Annotation);
    if (node.tops[0] == graph.loss && !batch.labels.defined()) break;
    const auto describe = [&] { return str_cat({"[", node.type, " ", node.name, "]"}); };
    name_batch_without_memory(describe, batch.rows, context.training,
                              [&] { run_node(graph, node, batch, context, rows, values, bottoms, tops); });
    if (!watch(node)) break;
  }
  bottoms.clear();
  rows.clear();
}

}  // namespace

Model::Result Model::forward(const data::Batch& batch, bool training) {
  State& s = *state_;
  const GradModeGuard guard(training && grad_enabled());
  run_graph(s.graph, batch, {training, s.generator}, s.rows, s.values, s.bottoms, s.tops,
            [](const GraphNode&) { return true; });
  Result result{std::move(s.values[s.graph.loss]), std::move(s.values[s.graph.logits])};
  s.values.clear();  // saved tensors keep what backward needs
  return result;
}

std::string Model::first_nonfinite_layer(const data::Batch& batch) {
  State& s = *state_;
  const NoGradGuard guard;
  std::string found;
  run_graph(s.graph, batch, {true, s.generator}, s.rows, s.values, s.bottoms, s.tops, [&](const GraphNode& node) {
    for (const size_t t : node.tops)
      if (!all(isfinite(s.values[t])).item<bool>()) found = node.type + " " + node.name;
    return found.empty();
  });
  s.values.clear();
  return found;
}

const std::vector<data::SparseInput>& Model::sparse_inputs() const { return state_->graph.sparse_inputs; }
nn::ParameterArena& Model::parameters() { return state_->parameters; }
EmbeddingCollection& Model::embeddings() { return state_->graph.embeddings; }
Generator& Model::generator() { return state_->generator; }

std::vector<std::pair<std::string, Tensor>> Model::buffers() {
  std::vector<std::pair<std::string, Tensor>> all;
  for (const GraphNode& node : state_->graph.nodes)
    if (node.layer)
      for (auto& buffer : node.layer->buffers()) all.push_back(std::move(buffer));
  return all;
}

std::string Model::layers() const { return dump_json(state_->graph.layers); }

std::string Model::summary() const {
  std::string text;
  const Graph& graph = state_->graph;
  for (const GraphNode& node : graph.nodes) {
    text += node.type + " " + node.name + " ->";
    for (const size_t t : node.tops) text += t == graph.loss ? " scalar" : " " + shape_text(graph.tensors[t].shape);
    int64_t parameters = 0;
    for (const auto& entry : state_->parameters.entries())
      if (entry.name.starts_with(node.name + ".")) parameters += numel_of(entry.sizes);
    if (!node.layer) {
      const EmbeddingTable& table = *graph.embeddings.tables()[graph.embeddings.lookups()[node.lookup].table];
      parameters = table.rows() * table.dim();
    }
    if (parameters > 0) text += ", " + std::to_string(parameters) + " parameters";
    text += "\n";
  }
  return text;
}

std::string Model::fingerprint() const {
  std::string text;
  for (const auto& entry : state_->parameters.entries()) text += str_cat({entry.name, " ", IntSpan(entry.sizes), "\n"});
  for (const auto& table : state_->graph.embeddings.tables())
    text += str_cat({table->name(), " ", table->rows(), " x ", table->dim(), "\n"});
  return checksum_to_hex(checksum(text.data(), text.size()));
}

}  // namespace tercel::recsys
