#include "tercel/recsys/prediction.h"

#include "tercel/autograd/grad_mode.h"
#include "tercel/data/batch_reader.h"
#include "tercel/data/row_encoder.h"
#include "tercel/ops/factories.h"
#include "tercel/ops/unary.h"
#include "tercel/recsys/checkpoint.h"
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

/** Deals the columns of `keys` [rows, slots], one key each, out to the model's sparse inputs. */
void set_sparse(const Model& model, const std::vector<int64_t>& keys, int64_t rows, int64_t slots, data::Batch& batch) {
  batch.sparse.clear();
  int64_t first = 0;
  for (const data::SparseInput& input : model.sparse_inputs()) {
    data::SparseBatch sparse;
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

LoadedModel load_model(const std::string& path) {
  const bool is_checkpoint = is_checkpoint_folder(path);
  const RunFolder run(is_checkpoint ? join_path(path, "../..") : path);
  TERCEL_CHECK(!is_checkpoint || exists(run.config()), DataError, printable(path),
               ": a checkpoint outside its run's folder: expected ", printable(run.config()), ", found nothing");
  ModelConfig config = run.read_config();
  data::Dataset dataset = run.read_description();
  std::string folder = path;
  if (!is_checkpoint) {
    const auto best = best_checkpoint(run.checkpoints());
    TERCEL_CHECK(best, DataError, path, ": no model: there is no whole checkpoint");
    folder = *best;
  }
  Model model(config, dataset.schema);
  const Checkpoint checkpoint(folder);
  checkpoint.check_fingerprint(model.fingerprint());
  model.initialize(config.solver.seed);
  for (const CheckpointFile& file : model_files(model)) checkpoint.read_some(file);
  return {std::move(config), std::move(dataset), std::move(model), std::move(folder), checkpoint.info().step};
}

void check_dataset_fits(const LoadedModel& model, const data::Dataset& dataset) {
  check_dataset_fits(model.dataset, dataset);
}

void check_dataset_fits(const data::Dataset& trained_on, const data::Dataset& dataset) {
  const data::Schema &expected = trained_on.schema, &found = dataset.schema;
  TERCEL_CHECK(found.label_dim == expected.label_dim && found.dense_dim == expected.dense_dim &&
                   found.slot_num() == expected.slot_num(),
               DataError, dataset.folder, ": expected rows as the model was trained on, of ", expected.label_dim,
               " labels, ", expected.dense_dim, " dense values and ", expected.slot_num(), " slots, found ",
               found.label_dim, ", ", found.dense_dim, " and ", found.slot_num());
  for (size_t s = 0; s < found.slots.size(); ++s) {
    const data::Slot &a = expected.slots[s], &b = found.slots[s];
    TERCEL_CHECK(a.size == b.size && a.first_key == b.first_key, DataError, dataset.folder,
                 ": made with another vocabulary than the model's: slot '", b.name, "': expected ", a.size,
                 " keys from ", a.first_key, " on, found ", b.size, " from ", b.first_key, " on");
  }
  const auto vocabulary = [](const data::Dataset& d) {
    return d.conversion && d.conversion->vocabulary ? d.conversion->vocabulary->checksum : std::string();
  };
  const std::string ours = vocabulary(trained_on), theirs = vocabulary(dataset);
  TERCEL_CHECK(ours.empty() || theirs.empty() || ours == theirs, DataError, dataset.folder,
               ": made with another vocabulary than the model's: expected checksum ", ours, ", found ", theirs);
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
  const data::Dataset& dataset = model.dataset;
  TERCEL_CHECK(dataset.conversion && dataset.conversion->vocabulary, ConfigError, dataset.folder,
               ": the model was not trained on a dataset that was converted from text, so it cannot read text");
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
