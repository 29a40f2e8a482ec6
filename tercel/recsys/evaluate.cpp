#include "tercel/recsys/evaluate.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "tercel/ops/common/copy.h"
#include "tercel/ops/views/views.h"
#include "tercel/recsys/metrics/values_impl.h"
#include "tercel/recsys/ranks.h"
#include "tercel/util/error.h"
#include "tercel/util/warning.h"

namespace tercel::recsys {

data::ReaderOptions evaluation_reading(const Model& model, const ModelConfig& config) {
  data::ReaderOptions options;
  options.batch_size = config.solver.batchsize_eval;
  options.num_workers = config.data.num_workers;
  options.prefetch = config.data.prefetch;
  options.on_bad_record = config.data.on_bad_record;
  options.max_bad_records = config.data.max_bad_records;
  options.inputs = model.sparse_inputs();
  options.binary_labels = model.graph().has_binary_labels();
  options.columns = evaluation_columns(model, config.solver);
  options.weight = config.data.weight;
  return options;
}

double sampling_shift(const data::DataIdentity& trained_on) { return std::log(trained_on.negative_rate); }

double sampling_shift(const data::DataIdentity& trained_on, const data::Dataset& dataset, data::PartName part) {
  const bool is_sampled = part == data::PartName::Train && dataset.conversion;
  return sampling_shift(trained_on) - (is_sampled ? std::log(dataset.conversion->negative_rate) : 0);
}

EvaluationResult measure(Model& model, data::BatchReader& reader, const MetricOptions& options, RowObserver observer,
                         double logit_shift, RankingMetrics* ranking, distributed::ProcessGroup* group) {
  Evaluator evaluator(model, options, logit_shift);
  if (group != nullptr) evaluator.set_group(*group);
  data::Batch batch;
  Model::Result result;
  int64_t rows = 0;
  while (reader.next(batch)) {
    model.forward(batch, /*training=*/false, /*step=*/0, result);
    evaluator.add(batch, result.logits);
    if (ranking != nullptr) {  // a shift does not change the order
      const Head& head = model.graph().heads.front();
      const Tensor scores = to(result.logits.front(), kFloat32).contiguous();
      const Tensor labels = to(batch.labels.narrow(1, head.first_label, 1), kFloat32).contiguous();
      ranking->add(values_of(scores), values_of(labels));
    }
    rows += group != nullptr ? batch.global_rows : batch.rows;
    bool go_on = observer(rows);
    if (group != nullptr) {
      const std::vector<int64_t> all = numbers_of_ranks(*group, go_on ? 1 : 0);
      go_on = std::all_of(all.begin(), all.end(), [](int64_t one) { return one == 1; });
    }
    if (!go_on) return {};
  }
  EvaluationResult found = evaluator.result();
  if (ranking != nullptr)
    for (auto& value : ranking->values()) found.values.push_back(std::move(value));
  return found;
}

MetricValues evaluate(Model& model, const data::Dataset& dataset, data::PartName part, const ModelConfig& config,
                      RowObserver observer, double logit_shift) {
  data::BatchReader reader(dataset, part, evaluation_reading(model, config));
  EvaluationResult found = measure(model, reader, config.solver, observer, logit_shift);
  warn_of_bad_records(reader);
  return std::move(found.values);
}

void warn_of_bad_records(const data::BatchReader& reader) {
  if (reader.bad_records() == 0) return;
  warn(str_cat({"evaluate: ", data::bad_records_text(reader.bad_records(), reader.first_bad_record())}));
}

}  // namespace tercel::recsys
