#include "tercel/recsys/model/model.h"

#include <algorithm>
#include <set>

#include "tercel/autograd/grad_mode.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/views/views.h"
#include "tercel/recsys/fingerprint_impl.h"
#include "tercel/recsys/model/batch_memory_impl.h"
#include "tercel/recsys/model/batch_place.h"
#include "tercel/recsys/model/graph_impl.h"
#include "tercel/util/format.h"
#include "tercel/util/json_impl.h"
#include "tercel/util/profile.h"
#include "tercel/util/suggest.h"

namespace tercel::recsys {

struct Model::State {
  data::Schema schema;
  nn::ParameterArena parameters;
  ModelGraph graph;
  TensorOptions place;
  uint64_t seed = 0;  // of masks
  distributed::ProcessGroup* group = nullptr;
  // Tensors of the running pass; members only to reuse their memory.
  std::vector<Tensor> values, bottoms, tops, rows;

  /** After the parameters, and where they are. */
  void allocate_buffers() {
    place = {parameters.weights().dtype(), parameters.weights().device()};
    for (const GraphStep& step : graph.steps)
      if (step.layer) step.layer->allocate(place);
  }
};

namespace {

/** Dtype and device of a place, where a model can be. */
TensorOptions checked(const TensorOptions& place) {
  TERCEL_CHECK(place.dtype == kFloat32 || place.dtype == kFloat64, ConfigError,
               "model: expected float32 or float64 parameters but got ", to_string(place.dtype));
  static_cast<void>(get_allocator(place.device.type));  // before anything else is allocated
  return {place.dtype, place.device};
}

}  // namespace

Model::Model(const ModelConfig& config, const data::Schema& schema) : state_(std::make_unique<State>()) {
  state_->schema = schema;
  state_->graph = build_graph(config, schema, state_->parameters);
}
Model::~Model() = default;
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;

void Model::initialize(uint64_t seed, const TensorOptions& place) {
  initialize(seed, place, [] { return true; });
}

bool Model::initialize(uint64_t seed, const TensorOptions& place, FunctionRef<bool()> go_on) {
  State& s = *state_;
  Generator generator(seed);
  s.parameters.allocate(generator, checked(place));
  s.allocate_buffers();
  if (!s.graph.embeddings.allocate(seed, s.place, go_on)) return false;
  s.seed = seed;
  return true;
}

void Model::allocate_parameters(const TensorOptions& place) {
  state_->parameters.allocate(checked(place));
  state_->allocate_buffers();
}

const TensorOptions& Model::place() const { return state_->place; }

data::Batch Model::make_batch(Span<data::ArrayInput> arrays, const Tensor& labels, const Tensor& weights) const {
  return data::batch_from_arrays(arrays, schema(), sparse_inputs(), dense_name(), labels, weights);
}

namespace {

bool is_key_dtype(ScalarType dtype) { return dtype == kInt64 || dtype == kInt32; }

/** RuntimeError unless the tensor is float32 or float64 [rows, columns]. */
void check_values(const char* what, const Tensor& t, int64_t rows, int64_t columns) {
  TERCEL_CHECK(t.defined() && (t.dtype() == kFloat32 || t.dtype() == kFloat64) && t.sizes() == IntSpan({rows, columns}),
               RuntimeError, "model: expected a batch with ", what, " [", rows, ", ", columns,
               "] of float32 or float64, found ", describe(t));
}

/** What reads the batch takes the sizes of its tensors for granted; keys are checked when they are looked up. */
void check_batch(const data::Batch& batch, const data::Schema& schema, Span<data::SparseInput> inputs) {
  TERCEL_CHECK(batch.rows >= 0, RuntimeError, "model: expected a batch with rows, found ", batch.rows);
  if (batch.labels.defined()) check_values("labels", batch.labels, batch.rows, schema.label_dim);
  if (batch.dense.defined() || schema.dense_dim > 0)
    check_values("dense values", batch.dense, batch.rows, schema.dense_dim);
  TERCEL_CHECK(!batch.weights.defined() || ((batch.weights.dtype() == kFloat32 || batch.weights.dtype() == kFloat64) &&
                                            batch.weights.sizes() == IntSpan({batch.rows})),
               RuntimeError, "model: expected weights [", batch.rows, "] of float32 or float64, found ",
               describe(batch.weights));
  for (const data::SparseInput& expected : inputs) {
    const data::SparseBatch& input = batch.input(expected.name);
    TERCEL_CHECK(input.slot_num == expected.slot_num && input.keys.defined() && input.keys.dim() == 1 &&
                     is_key_dtype(input.keys.dtype()) && input.row_offsets.defined() && input.row_offsets.dim() == 1 &&
                     is_key_dtype(input.row_offsets.dtype()) &&
                     input.row_offsets.numel() == batch.rows * expected.slot_num + 1,
                 RuntimeError, "model: expected keys [nnz] and row offsets [", batch.rows * expected.slot_num + 1,
                 "] of the ", expected.slot_num, " slots of input '", printable(expected.name), "', found ",
                 describe(input.keys), " and ", describe(input.row_offsets), " of ", input.slot_num);
    TERCEL_CHECK(
        !input.key_weights.defined() || (input.key_weights.dim() == 1 && input.key_weights.is_floating_point() &&
                                         input.key_weights.numel() == input.keys.numel()),
        RuntimeError, "model: expected key weights [", input.keys.numel(), "] of input '", printable(expected.name),
        "', found ", describe(input.key_weights));
  }
}

/** Labels of heads that want 0 and 1, beside heads that want others, so that readers do not check them. */
void check_binary_labels(const data::Batch& batch, const Graph& graph) {
  if (!batch.labels.defined() || graph.has_binary_labels()) return;
  const Tensor labels = empty(batch.labels.sizes(), kFloat64);
  copy_(labels, batch.labels);
  for (const Head& head : graph.heads) {
    if (!head.has_binary_labels) continue;
    for (int64_t row = 0; row < batch.rows; ++row) {
      const double label = labels.data<double>()[row * labels.size(1) + head.first_label];
      TERCEL_CHECK(label >= 0 && label <= 1, DataError, "[", graph.nodes[0].type, "] label '",
                   printable(graph.tensors[head.label].name), "' of head '", printable(head.name),
                   "': expected 0 or 1, found ", label, " in row ", row, " of the batch");
    }
  }
}

// Positions in masks, rows times up to 2^31 columns, then fit in 64 bits.
constexpr int64_t kMaxGlobalRows = int64_t{1} << 31;

/** Sets the tops of the step's node. */
void run_step(const ModelGraph& graph, const GraphStep& step, const data::Batch& batch, const ForwardContext& context,
              Span<Tensor> rows, std::vector<Tensor>& values, std::vector<Tensor>& bottoms, std::vector<Tensor>& tops) {
  const GraphNode& node = graph.nodes[step.node];
  if (!step.layer) {
    values[node.tops[0]] = graph.embeddings.look_up(step.lookup, batch, rows);
    return;
  }
  bottoms.clear();
  for (const size_t t : node.bottoms) bottoms.push_back(values[t]);
  tops.assign(node.tops.size(), Tensor());
  step.layer->forward(bottoms, tops, context);
  for (size_t i = 0; i < tops.size(); ++i) values[node.tops[i]] = std::move(tops[i]);
}

/** Sets the tensors of labels and dense values. Several labels are views of their columns. */
void set_inputs(const ModelGraph& graph, const data::Batch& batch, std::vector<Tensor>& values) {
  int64_t column = 0;
  for (const size_t t : graph.nodes[0].tops) {
    const GraphTensor& tensor = graph.tensors[t];
    if (tensor.kind == TensorKind::Dense) values[t] = batch.dense;
    if (tensor.kind != TensorKind::Label || !batch.labels.defined()) continue;
    const int64_t columns = tensor.shape.sizes[0];
    values[t] = columns == batch.labels.size(1) ? batch.labels : narrow(batch.labels, 1, column, columns);
    column += columns;
  }
}

/** Runs the steps in order, without losses if there are no labels; after each, `watch` decides whether to continue. */
template <class Watch>
void run_graph(ModelGraph& graph, const data::Batch& batch, const ForwardContext& context, std::vector<Tensor>& rows,
               std::vector<Tensor>& values, std::vector<Tensor>& bottoms, std::vector<Tensor>& tops, Watch&& watch) {
  values.assign(graph.tensors.size(), Tensor());
  set_inputs(graph, batch, values);
  name_batch_without_memory(
      [] { return "[embeddings]"; }, batch.rows, context.training,
      [&] { graph.embeddings.find_rows(batch, grad_enabled() ? NewKeys::Insert : NewKeys::Refuse, rows); });
  for (const GraphStep& step : graph.steps) {
    const GraphNode& node = graph.nodes[step.node];
    const ProfileRange range(node.name.c_str(), RangeKind::Annotation);
    const auto makes = [&node](const Head& head) { return head.loss == node.tops[0]; };
    if (!batch.labels.defined() && std::any_of(graph.heads.begin(), graph.heads.end(), makes)) continue;
    const auto describe = [&] { return str_cat({"[", node.type, " ", node.name, "]"}); };
    name_batch_without_memory(describe, batch.rows, context.training,
                              [&] { run_step(graph, step, batch, context, rows, values, bottoms, tops); });
    if (!watch(node)) break;
  }
  bottoms.clear();
  rows.clear();
}

ForwardContext context_of(const data::Batch& batch, bool training, uint64_t seed, int64_t step,
                          distributed::ProcessGroup* group) {
  ForwardContext context{training, seed, step, 0, batch.global_rows, batch.weights, training ? group : nullptr};
  if (batch.global_rows == 0) return context;
  context.first_row = batch.row - batch.global_row;
  TERCEL_CHECK(context.first_row >= 0 && context.first_row <= batch.global_rows - batch.rows &&
                   batch.global_rows <= kMaxGlobalRows,
               RuntimeError, "model: expected a batch in its global rows [", batch.global_row, ", ",
               batch.global_row + batch.global_rows, "), at most ", kMaxGlobalRows, ", but it has the ", batch.rows,
               " rows from ", batch.row, " on");
  return context;
}

}  // namespace

Model::Result Model::forward(const data::Batch& batch) {
  Result result;
  forward(batch, /*training=*/false, /*step=*/0, result);
  return result;
}

Model::Result Model::forward(const data::Batch& batch, bool training, int64_t step) {
  Result result;
  forward(batch, training, step, result);
  return result;
}

void Model::forward(const data::Batch& batch, bool training, int64_t step, Result& result) {
  State& s = *state_;
  check_batch(batch, s.schema, s.graph.sparse_inputs);
  check_binary_labels(batch, s.graph);
  data::Batch moved;
  const data::Batch& here = is_at(batch, s.place) ? batch : (moved = batch_at(batch, s.place));
  const GradModeGuard guard(training && grad_enabled());
  result.loss.reset();
  result.logits.clear();
  run_graph(s.graph, here, context_of(here, training, s.seed, step, s.group), s.rows, s.values, s.bottoms, s.tops,
            [](const GraphNode&) { return true; });
  for (const Head& head : s.graph.heads) {
    Tensor& loss = s.values[head.loss];
    if (loss.defined()) result.loss = result.loss.defined() ? add(result.loss, loss) : std::move(loss);
    result.logits.push_back(s.values[head.logits]);
  }
  s.values.clear();  // saved tensors keep what backward needs
}

Tensor Model::compute(const data::Batch& batch, std::string_view tensor) {
  State& s = *state_;
  std::vector<std::string_view> known;
  size_t t = s.graph.tensors.size();
  for (size_t i = 0; i < s.graph.tensors.size(); ++i) {
    const GraphTensor& candidate = s.graph.tensors[i];
    if (candidate.kind == TensorKind::SparseInput || candidate.absent) continue;
    known.push_back(candidate.name);
    if (candidate.name == tensor) t = i;
  }
  TERCEL_CHECK(t < s.graph.tensors.size(), ConfigError, "model: there is no tensor '", printable(tensor), "'",
               known_names(tensor, known));
  check_batch(batch, s.schema, s.graph.sparse_inputs);
  const NoGradGuard guard;
  run_graph(s.graph, batch_at(batch, s.place), context_of(batch, /*training=*/false, s.seed, /*step=*/0, s.group),
            s.rows, s.values, s.bottoms, s.tops, [&s, t](const GraphNode&) { return !s.values[t].defined(); });
  const Tensor value = s.values[t];
  s.values.clear();
  TERCEL_CHECK(value.defined(), ConfigError, "model: the tensor '", printable(tensor),
               "' needs labels, and the batch has none");
  return value;
}

std::string Model::first_nonfinite_layer(const data::Batch& batch, int64_t step) {
  State& s = *state_;
  check_batch(batch, s.schema, s.graph.sparse_inputs);
  const NoGradGuard guard;
  std::string found;
  run_graph(s.graph, batch_at(batch, s.place), context_of(batch, /*training=*/true, s.seed, step, s.group), s.rows,
            s.values, s.bottoms, s.tops, [&](const GraphNode& node) {
              for (const size_t t : node.tops)
                if (found.empty() && !all(isfinite(s.values[t])).item<bool>()) found = node.type + " " + node.name;
              return found.empty() || s.group != nullptr;  // other ranks may go on, and count on this one
            });
  s.values.clear();
  return found;
}

void Model::set_group(distributed::ProcessGroup& group, Span<TablePlacement> placements) {
  state_->group = &group;
  state_->graph.embeddings.set_group(group, placements);
}

const Graph& Model::graph() const { return state_->graph; }
const data::Schema& Model::schema() const { return state_->schema; }
const std::string& Model::dense_name() const {
  const std::vector<GraphTensor>& tensors = graph().tensors;
  return std::find_if(tensors.begin(), tensors.end(), [](const GraphTensor& t) { return t.kind == TensorKind::Dense; })
      ->name;
}
const std::vector<data::SparseInput>& Model::sparse_inputs() const { return state_->graph.sparse_inputs; }
nn::ParameterArena& Model::parameters() { return state_->parameters; }
EmbeddingCollection& Model::embeddings() { return state_->graph.embeddings; }

std::vector<std::pair<std::string, Tensor>> Model::buffers() {
  std::vector<std::pair<std::string, Tensor>> all;
  for (const GraphStep& step : state_->graph.steps)
    if (step.layer)
      for (auto& buffer : step.layer->buffers()) all.push_back(std::move(buffer));
  return all;
}

std::string Model::layers() const {
  Json layers = Json::array();
  for (const GraphNode& node : graph().nodes) layers.push_back(parse_json(node.options, node.name, JsonErrors::Config));
  return dump_json(layers);
}

std::string Model::summary() const {
  std::string text;
  std::set<int64_t> counted;  // tables: lookups may share them
  for (const GraphNode& node : graph().nodes) {
    if (node.type == "Data") continue;
    text += node.type + " " + printable(node.name) + " ->";
    for (const size_t t : node.tops) text += " " + shape_text(graph().tensors[t].shape);
    int64_t parameters = 0;
    for (const GraphParameter& parameter : node.parameters) parameters += numel_of(parameter.sizes);
    if (node.table >= 0 && counted.insert(node.table).second) {
      const EmbeddingTable& table = *state_->graph.embeddings.tables()[static_cast<size_t>(node.table)];
      parameters = (table.rows_of_all_ranks() - table.rows_without_key()) * table.dim();
    }
    if (parameters > 0) text += ", " + std::to_string(parameters) + " parameters";
    text += "\n";
  }
  return text;
}

std::string Model::fingerprint(ScalarType dtype) const {
  std::string text;
  for (const GraphNode& node : graph().nodes)
    for (const GraphParameter& p : node.parameters) text += str_cat({p.name, " ", IntSpan(p.sizes), "\n"});
  for (const auto& table : state_->graph.embeddings.tables())
    text += str_cat({table->name(), " ", table->size_text(), "\n"});
  return fingerprint_of(text, dtype);
}

}  // namespace tercel::recsys
