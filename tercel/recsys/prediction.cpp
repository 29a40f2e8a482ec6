#include "tercel/recsys/prediction.h"

#include <algorithm>

#include "tercel/autograd/grad_mode.h"
#include "tercel/data/batch_reader.h"
#include "tercel/data/row_encoder.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/views/cat.h"
#include "tercel/ops/views/views.h"
#include "tercel/recsys/evaluate.h"
#include "tercel/recsys/metrics/values_impl.h"
#include "tercel/recsys/model_files.h"
#include "tercel/recsys/run_folder_impl.h"
#include "tercel/util/format.h"

namespace tercel::recsys {

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
  const ScalarType dtype = checkpoint.dtype();
  checkpoint.check_fingerprint(model.fingerprint(dtype));
  model.allocate_parameters(dtype);
  for (size_t t = 0; t < model.embeddings().tables().size(); ++t) {
    EmbeddingTable& table = *model.embeddings().tables()[t];
    table.set_weight(checkpoint.map(table_file(t), table.name(), dtype, {table.rows(), table.dim()}));
  }
  checkpoint.read_some(dense_file(model));
  const int64_t step = checkpoint.info().step;
  const int64_t last = is_checkpoint_folder(path) ? step : last_step(RunFolder(path).checkpoints()).value_or(step);
  return {identity.config,     identity.data, run_of(path), std::move(model),
          checkpoint.folder(), step,          last,         std::move(warnings)};
}

std::string check_dataset_fits(const data::DataIdentity& trained_on, const data::Dataset& dataset) {
  const data::DataIdentity identity = data::identity_of(dataset);
  data::check_same_meaning(trained_on, identity, dataset.folder);
  return data::compare_moments(trained_on, identity);
}

Tensor predict(Model& model, const data::Batch& batch) {
  const NoGradGuard guard;
  const std::vector<Tensor> logits = model.forward(batch).logits;
  return sigmoid(logits.size() == 1 ? logits[0] : cat(logits, 1)).contiguous();
}

int64_t predict(Model& model, data::BatchReader& reader, ProbabilitySink sink) {
  data::Batch batch;
  int64_t rows = 0;
  while (reader.next(batch)) {
    sink(values_of(to(predict(model, batch), kFloat32)));
    rows += batch.rows;
  }
  return rows;
}

int64_t predict(LoadedModel& model, const data::Dataset& dataset, data::PartName part, ProbabilitySink sink) {
  check_dataset_fits(model.data, dataset);
  data::ReaderOptions reading = evaluation_reading(model.model, model.config);
  reading.on_bad_record = data::OnBadRecord::Fail;  // every row has its probability
  data::BatchReader reader(dataset, part, reading);
  return predict(model.model, reader, sink);
}

int64_t predict_text(LoadedModel& model, std::vector<data::TextSource> sources, ProbabilitySink sink) {
  data::Dataset dataset = RunFolder(model.run).read_description();
  check_dataset_fits(model.data, dataset);
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
  const Tensor dense = empty({capacity, encoder.dense_dim()}), keys = empty({capacity, slots}, kInt64);
  int64_t total = 0;
  while (true) {
    const int64_t rows = text.read(capacity, labels.data(), static_cast<float*>(dense.data_ptr()),
                                   static_cast<int64_t*>(keys.data_ptr()));
    if (rows == 0) return total;
    std::vector<data::ArrayInput> inputs{{model.model.dense_name(), dense.narrow(0, 0, rows)}};
    int64_t slot = 0;
    for (const data::SparseInput& input : model.model.sparse_inputs()) {
      inputs.push_back({input.name, keys.narrow(0, 0, rows).narrow(1, slot, input.slot_num)});
      slot += input.slot_num;
    }
    sink(values_of(to(predict(model.model, model.model.make_batch(inputs)), kFloat32)));
    total += rows;
  }
}

Tensor predict(Model& model, Span<data::ArrayInput> inputs) {
  const Tensor all = predict(model, model.make_batch(inputs));
  return all.size(1) == 1 ? all.select(1, 0) : all;
}

}  // namespace tercel::recsys
