#include "tercel/recsys/evaluator.h"

#include <algorithm>
#include <utility>

#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/recsys/metrics/values_impl.h"
#include "tercel/util/format.h"
#include "tercel/util/warning.h"

namespace tercel::recsys {

namespace {

std::optional<RowKeys> keys_of(const Model& model, const std::string& name, std::string_view owner) {
  if (name.empty()) return std::nullopt;
  return RowKeys(model.schema(), model.sparse_inputs(), name, owner);
}

}  // namespace

std::vector<Tensor> shifted(std::vector<Tensor> logits, Span<Head> heads, double logit_shift) {
  if (logit_shift == 0) return logits;
  for (size_t h = 0; h < heads.size(); ++h)
    if (heads[h].kind == LossKind::Binary) logits[h] = add(to(logits[h], kFloat32), logit_shift);
  return logits;
}

std::vector<std::string> evaluation_columns(const Model& model, const MetricOptions& options) {
  std::vector<std::string> columns;
  for (const auto& [name, owner] :
       {std::pair(options.group_by, "solver: group_by"), std::pair(options.slice_by, "solver: slice_by")}) {
    const std::optional<RowKeys> keys = keys_of(model, name, owner);
    if (keys && keys->is_column() && std::find(columns.begin(), columns.end(), name) == columns.end())
      columns.push_back(name);
  }
  return columns;
}

Evaluator::Evaluator(const Model& model, const MetricOptions& options, double logit_shift)
    : heads_(model.graph().heads),
      metrics_(heads_, options),
      logit_shift_(logit_shift),
      groups_(keys_of(model, options.group_by, "solver: group_by")),
      slices_(keys_of(model, options.slice_by, "solver: slice_by")) {}

void Evaluator::add(const data::Batch& batch, const std::vector<Tensor>& logits) {
  RowContext context;
  Tensor weights = batch.weights;
  if (weights.defined()) {
    weights = to(weights, kFloat32).contiguous();
    context.weights = values_of(weights);
    rows_without_weight_ += std::count(context.weights.begin(), context.weights.end(), 0.0f);
  }
  rows_ += batch.rows;
  if (groups_) context.groups = groups_->read(batch);
  if (slices_) context.slices = slices_->read(batch);
  metrics_.add(shifted(logits, heads_, logit_shift_), batch.labels, context);
}

MetricValues Evaluator::values() const {
  if (rows_ > 0 && rows_without_weight_ == rows_)
    warn(str_cat({"evaluate: all ", format_count(rows_), rows_ == 1 ? " row has" : " rows have", " weight 0"}));
  return metrics_.values();
}

}  // namespace tercel::recsys
