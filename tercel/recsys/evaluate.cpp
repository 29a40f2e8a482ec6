#include "tercel/recsys/evaluate.h"

#include "tercel/recsys/metrics/head_metrics.h"

namespace tercel::recsys {

data::ReaderOptions evaluation_reading(const Model& model, const ModelConfig& config) {
  data::ReaderOptions options;
  options.batch_size = config.solver.batchsize_eval;
  options.num_workers = config.data.num_workers;
  options.prefetch = config.data.prefetch;
  options.on_bad_record = config.data.on_bad_record;
  options.max_bad_records = config.data.max_bad_records;
  options.inputs = model.sparse_inputs();
  return options;
}

MetricValues evaluate(Model& model, data::BatchReader& reader, RowObserver observer) {
  HeadMetrics metrics(model.graph().heads);
  data::Batch batch;
  Model::Result result;
  int64_t rows = 0;
  while (reader.next(batch)) {
    model.forward(batch, /*training=*/false, /*step=*/0, result);
    metrics.add(result.logits, batch.labels);
    rows += batch.rows;
    if (!observer(rows)) return {};
  }
  return metrics.values();
}

MetricValues evaluate(Model& model, const data::Dataset& dataset, data::PartName part, const ModelConfig& config,
                      RowObserver observer) {
  data::BatchReader reader(dataset, part, evaluation_reading(model, config));
  return evaluate(model, reader, observer);
}

}  // namespace tercel::recsys
