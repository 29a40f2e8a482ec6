#include "tercel/recsys/prediction.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "tercel/autograd/grad_mode.h"
#include "tercel/data/batch_reader.h"
#include "tercel/data/row_encoder.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/nn/softmax.h"
#include "tercel/ops/views/cat.h"
#include "tercel/ops/views/views.h"
#include "tercel/recsys/evaluate.h"
#include "tercel/recsys/metrics/values_impl.h"
#include "tercel/recsys/model_files.h"
#include "tercel/recsys/run_folder_impl.h"
#include "tercel/recsys/table_reader.h"
#include "tercel/util/format.h"

namespace tercel::recsys {

namespace {

/** The folder of the run that contains a model's path. */
std::string run_of(const std::string& path) { return is_checkpoint_folder(path) ? join_path(path, "../..") : path; }

/**
 * The dataset that a run was trained on, for further text; its folder is the run's. ConfigError if it was not converted
 * from text.
 */
data::Dataset text_description(const std::string& run, const data::DataIdentity& trained_on) {
  data::Dataset dataset = RunFolder(run).read_description();
  check_dataset_fits(trained_on, dataset);
  TERCEL_CHECK(dataset.conversion && dataset.conversion->vocabulary, ConfigError, dataset.name(),
               ": the model's dataset was not converted from text, so the model cannot read text");
  if (!trained_on.dense_mean.empty()) {  // the run may have continued on data with other moments
    dataset.conversion->dense_mean = trained_on.dense_mean;
    dataset.conversion->dense_std = trained_on.dense_std;
  }
  return dataset;
}

template <class T>
Tensor tensor_of(const std::vector<T>& values, ScalarType dtype, IntSpan size) {
  Tensor tensor = empty(size, dtype);
  std::copy(values.begin(), values.end(), static_cast<T*>(tensor.data_ptr()));
  return tensor;
}

/** Encoded rows as a batch of a model's inputs. Lists may be longer than those that it was trained on. */
data::Batch batch_of(const Model& model, const data::EncodedRows& rows) {
  data::Schema schema = model.schema();
  for (data::Slot& slot : schema.slots)
    if (!rows.nnz.empty()) slot.hotness = data::kMaxHotness;
  std::vector<data::ArrayInput> inputs{
      {model.dense_name(), tensor_of(rows.dense, kFloat32, {rows.rows, schema.dense_dim})}};
  const auto slots = static_cast<size_t>(schema.slot_num()), count = static_cast<size_t>(rows.rows);
  std::vector<std::vector<float>> weights;
  size_t first_slot = 0;
  for (const data::SparseInput& input : model.sparse_inputs()) {
    const auto own = static_cast<size_t>(input.slot_num);
    std::vector<int64_t> keys, offsets = {0};
    std::vector<float>& of_keys = weights.emplace_back();
    size_t key = 0;
    for (size_t row = 0; row < count; ++row)
      for (size_t slot = 0; slot < slots; ++slot) {
        const size_t end = key + (rows.nnz.empty() ? 1 : static_cast<size_t>(rows.nnz[row * slots + slot]));
        if (slot >= first_slot && slot < first_slot + own) {
          keys.insert(keys.end(), rows.keys.data() + key, rows.keys.data() + end);
          offsets.push_back(static_cast<int64_t>(keys.size()));
          if (!rows.key_weights.empty())
            of_keys.insert(of_keys.end(), rows.key_weights.data() + key, rows.key_weights.data() + end);
        }
        key = end;
      }
    first_slot += own;
    inputs.push_back({input.name, tensor_of(keys, kInt64, {static_cast<int64_t>(keys.size())}),
                      tensor_of(offsets, kInt64, {static_cast<int64_t>(offsets.size())})});
  }
  data::Batch batch = data::batch_from_arrays(inputs, schema, model.sparse_inputs(), model.dense_name());
  for (size_t i = 0; i < weights.size(); ++i)
    if (!weights[i].empty())
      batch.sparse[i].key_weights = tensor_of(weights[i], kFloat32, {static_cast<int64_t>(weights[i].size())});
  return batch;
}

}  // namespace

data::Dataset text_description(const std::string& path) {
  std::vector<std::string> warnings;
  return text_description(run_of(path), open_model(path, Verify::Sizes, warnings).identity().data);
}

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
  const ScalarType dtype = checkpoint.dtype();
  checkpoint.check_fingerprint(model.fingerprint(dtype));
  model.allocate_parameters(dtype);
  const TableReader tables(model, checkpoint);
  tables.set_keys();
  for (size_t t = 0; t < model.embeddings().tables().size(); ++t)
    model.embeddings().tables()[t]->set_weight(tables.weight(t));
  checkpoint.read_some(dense_file(model));
  const int64_t step = checkpoint.info().step;
  const int64_t last = is_checkpoint_folder(path) ? step : last_step(RunFolder(path).checkpoints()).value_or(step);
  return {identity.config,     identity.data, run_of(path), std::move(model),
          checkpoint.folder(), step,          last,         std::move(warnings)};
}

std::string check_dataset_fits(const data::DataIdentity& trained_on, const data::Dataset& dataset) {
  const data::DataIdentity identity = data::identity_of(dataset);
  data::check_same_meaning(trained_on, identity, dataset.name());
  return data::compare_moments(trained_on, identity);
}

Tensor predict(Model& model, const data::Batch& batch, double logit_shift) {
  const NoGradGuard guard;
  const std::vector<Head>& heads = model.graph().heads;
  std::vector<Tensor> parts = shifted(model.forward(batch).logits, heads, logit_shift);
  for (size_t h = 0; h < heads.size(); ++h)
    parts[h] = heads[h].kind == LossKind::Classes ? softmax(parts[h], 1) : sigmoid(parts[h]);
  return (parts.size() == 1 ? parts[0] : cat(parts, 1)).contiguous();
}

int64_t predict(Model& model, data::BatchReader& reader, PredictionSink sink, double logit_shift, RowIds* ids) {
  data::Batch batch;
  int64_t rows = 0;
  while (reader.next(batch)) {
    const Tensor probabilities = to(predict(model, batch, logit_shift), kFloat32);
    sink({batch.rows, values_of(probabilities), ids != nullptr ? ids->read(batch) : data::TableValues()});
    rows += batch.rows;
  }
  return rows;
}

int64_t predict(Model& model, const ModelConfig& config, const data::DataIdentity& trained_on,
                const data::Dataset& dataset, data::PartName part, PredictionSink sink, const std::string& id) {
  data::ReaderOptions reading = evaluation_reading(model, config);
  reading.on_bad_record = data::OnBadRecord::Fail;  // every row has its probability
  std::optional<RowIds> ids;
  if (!id.empty()) ids.emplace(dataset.schema, model.sparse_inputs(), id, dataset.name());
  reading.columns = ids ? ids->columns() : std::vector<std::string>();  // not those of evaluations
  reading.weight.clear();
  data::BatchReader reader(dataset, part, reading);
  return predict(model, reader, sink, sampling_shift(trained_on, dataset, part), ids ? &*ids : nullptr);
}

int64_t predict(LoadedModel& model, const data::Dataset& dataset, data::PartName part, PredictionSink sink,
                const std::string& id) {
  check_dataset_fits(model.data, dataset);
  return predict(model.model, model.config, model.data, dataset, part, sink, id);
}

int64_t predict_text(LoadedModel& model, std::vector<data::TextSource> sources, PredictionSink sink,
                     const std::string& id) {
  const data::Dataset dataset = text_description(model.run, model.data);
  data::TextFormat format = data::text_format_of(*dataset.conversion);
  TERCEL_CHECK(id.empty() || format.kind == data::TextKind::Table, ConfigError,
               "predict: an id is a column of a table; libsvm and libffm text has none");
  format.id_column = id;
  format.weight_column.clear();
  const data::RowEncoder encoder =
      data::load_row_encoder(dataset.schema, *dataset.conversion, dataset.path_of(*dataset.conversion->vocabulary));
  data::EncodedText text(encoder, format, std::move(sources), data::LabelColumn::Optional);
  const double shift = sampling_shift(model.data);
  data::EncodedRows rows;
  int64_t total = 0;
  while (text.read(model.config.solver.batchsize_eval, rows)) {
    const Tensor probabilities = to(predict(model.model, batch_of(model.model, rows), shift), kFloat32);
    data::TableValues ids;
    ids.texts = rows.ids;
    sink({rows.rows, values_of(probabilities), ids});
    total += rows.rows;
  }
  return total;
}

Tensor predict(Model& model, Span<data::ArrayInput> inputs, double logit_shift) {
  const Tensor all = predict(model, model.make_batch(inputs), logit_shift);
  return all.size(1) == 1 ? all.select(1, 0) : all;
}

}  // namespace tercel::recsys
