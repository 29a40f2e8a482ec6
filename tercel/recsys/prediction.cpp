#include "tercel/recsys/prediction.h"

#include "tercel/autograd/grad_mode.h"
#include "tercel/data/batch_reader.h"
#include "tercel/data/row_encoder.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/recsys/learner.h"
#include "tercel/recsys/metrics/metric.h"
#include "tercel/recsys/run_folder_impl.h"
#include "tercel/util/format.h"

namespace tercel::recsys {

namespace {

Span<float> values_of(const Tensor& contiguous) {
  return {contiguous.data<float>(), static_cast<size_t>(contiguous.numel())};
}

data::ReaderOptions reading_once(const Model& model, const ModelConfig& config) {
  data::ReaderOptions options;
  options.batch_size = config.solver.batchsize_eval;
  options.num_workers = config.data.num_workers;
  options.prefetch = config.data.prefetch;
  options.inputs = model.sparse_inputs();
  return options;
}

/** Distributes the columns of `keys` [rows, slots], one key each, to the model's sparse inputs. */
void set_sparse(const Model& model, const std::vector<int64_t>& keys, int64_t rows, int64_t slots, data::Batch& batch) {
  batch.sparse.clear();
  int64_t first = 0;
  for (const data::SparseInput& input : model.sparse_inputs()) {
    data::SparseBatch sparse;
    sparse.name = input.name;
    sparse.slot_num = input.slot_num;
    sparse.hotness = 1;
    sparse.row_offsets = arange(rows * input.slot_num + 1);
    sparse.keys = empty({rows * input.slot_num}, kInt64);
    int64_t* out = sparse.keys.data<int64_t>();
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t s = 0; s < input.slot_num; ++s) *out++ = keys[static_cast<size_t>(r * slots + first + s)];
    batch.sparse.push_back(std::move(sparse));
    first += input.slot_num;
  }
}

}  // namespace

namespace {

/** The folder of the run that contains a model's path. */
std::string run_of(const std::string& path) { return is_checkpoint_folder(path) ? join_path(path, "../..") : path; }

}  // namespace

bool is_model_folder(const std::string& path) {
  const RunFolder run(path);
  return is_checkpoint_folder(path) || exists(run.config()) || exists(run.checkpoints());
}

Checkpoint open_model(const std::string& path, Verify verify, std::vector<std::string>& warnings) {
  if (is_checkpoint_folder(path)) return Checkpoint(path, verify);
  TERCEL_CHECK(is_model_folder(path), DataError, printable(path), ": no trained model: the folder contains no run");
  std::optional<Checkpoint> best = open_checkpoint(RunFolder(path).checkpoints(), Which::Best, verify, warnings);
  TERCEL_CHECK(best, DataError, printable(path), ": no model: the run has no checkpoint yet");
  return *std::move(best);
}

LoadedModel load_model(const std::string& path) {
  std::vector<std::string> warnings;
  const Checkpoint checkpoint = open_model(path, Verify::Contents, warnings);
  const RunIdentity& identity = checkpoint.identity();
  Model model(identity.config, identity.data.schema);
  checkpoint.check_fingerprint(model.fingerprint());
  model.allocate_parameters();
  for (size_t t = 0; t < model.embeddings().tables().size(); ++t) {
    EmbeddingTable& table = *model.embeddings().tables()[t];
    table.set_weight(checkpoint.map(table_file(t), table.name(), kFloat32, {table.rows(), table.dim()}));
  }
  checkpoint.read_some(dense_file(model));
  const int64_t step = checkpoint.info().step;
  const int64_t last = is_checkpoint_folder(path) ? step : last_step(RunFolder(path).checkpoints()).value_or(step);
  return {identity.config,     identity.data, run_of(path), std::move(model),
          checkpoint.folder(), step,          last,         std::move(warnings)};
}

std::string check_dataset_fits(const LoadedModel& model, const data::Dataset& dataset) {
  const data::DataIdentity identity = data::identity_of(dataset);
  data::check_same_meaning(model.data, identity, dataset.folder);
  return data::compare_moments(model.data, identity);
}

MetricValues evaluate(Model& model, const data::Dataset& dataset, data::PartName part, const ModelConfig& config,
                      RowObserver observer) {
  data::BatchReader reader(dataset, part, reading_once(model, config));
  const auto metrics = make_metrics();
  data::Batch batch;
  int64_t rows = 0;
  while (reader.next(batch)) {
    const Tensor logits = model.forward(batch, /*training=*/false).logits.contiguous();
    for (const auto& metric : metrics) metric->add(values_of(logits), values_of(batch.labels));
    rows += batch.rows;
    if (!observer(rows)) return {};
  }
  MetricValues out;
  for (const auto& metric : metrics) out.emplace_back(metric->name(), metric->value());
  return out;
}

namespace {

void predict_batch(Model& model, const data::Batch& batch, ProbabilitySink sink) {
  const NoGradGuard guard;
  sink(values_of(sigmoid(model.forward(batch, /*training=*/false).logits).contiguous()));
}

}  // namespace

int64_t predict(LoadedModel& model, const data::Dataset& dataset, data::PartName part, ProbabilitySink sink) {
  check_dataset_fits(model, dataset);
  data::BatchReader reader(dataset, part, reading_once(model.model, model.config));
  data::Batch batch;
  int64_t rows = 0;
  while (reader.next(batch)) {
    predict_batch(model.model, batch, sink);
    rows += batch.rows;
  }
  return rows;
}

int64_t predict_text(LoadedModel& model, std::vector<data::TextSource> sources, ProbabilitySink sink) {
  data::Dataset dataset = RunFolder(model.run).read_description();
  check_dataset_fits(model, dataset);
  TERCEL_CHECK(dataset.conversion && dataset.conversion->vocabulary, ConfigError, dataset.folder,
               ": the model's dataset was not converted from text, so the model cannot read text");
  if (!model.data.dense_mean.empty()) {  // the run may have continued on data with other moments
    dataset.conversion->dense_mean = model.data.dense_mean;
    dataset.conversion->dense_std = model.data.dense_std;
  }
  const data::RowEncoder encoder =
      data::load_row_encoder(dataset.schema, *dataset.conversion, dataset.path_of(*dataset.conversion->vocabulary));
  data::EncodedText text(encoder, data::text_format_of(*dataset.conversion), std::move(sources),
                         data::LabelColumn::Optional);
  const int64_t capacity = model.config.solver.batchsize_eval, slots = encoder.slot_num();
  std::vector<float> labels(static_cast<size_t>(capacity));
  std::vector<int64_t> keys(static_cast<size_t>(capacity * slots));
  int64_t total = 0;
  while (true) {
    const Tensor dense = empty({capacity, encoder.dense_dim()});
    const int64_t rows = text.read(capacity, labels.data(), dense.data<float>(), keys.data());
    if (rows == 0) return total;
    data::Batch batch;
    batch.rows = rows;
    batch.dense = dense.narrow(0, 0, rows);
    set_sparse(model.model, keys, rows, slots, batch);
    predict_batch(model.model, batch, sink);
    total += rows;
  }
}

}  // namespace tercel::recsys
