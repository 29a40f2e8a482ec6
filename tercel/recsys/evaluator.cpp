#include "tercel/recsys/evaluator.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/recsys/metrics/values_impl.h"
#include "tercel/recsys/ranks.h"
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
  std::vector<int64_t> counts;
  if (group_ != nullptr) counts = numbers_of_ranks(*group_, batch.rows);
  const auto of_all = [&](const Tensor& rows) { return counts.empty() ? rows : rows_of_ranks(*group_, rows, counts); };
  const auto keys_of_all = [&](Span<int64_t> keys, Tensor& memory) -> Span<int64_t> {
    if (counts.empty()) return keys;
    const Tensor own = empty({static_cast<int64_t>(keys.size())}, kInt64);
    std::copy(keys.begin(), keys.end(), own.data<int64_t>());
    memory = of_all(own);
    return {memory.data<int64_t>(), static_cast<size_t>(memory.numel())};
  };
  RowContext context;
  Tensor weights, groups, slices;
  if (batch.weights.defined()) {
    weights = of_all(to(batch.weights, kFloat32).contiguous());
    context.weights = values_of(weights);
    rows_without_weight_ += std::count(context.weights.begin(), context.weights.end(), 0.0f);
  }
  if (groups_) context.groups = keys_of_all(groups_->read(batch), groups);
  if (slices_) context.slices = keys_of_all(slices_->read(batch), slices);
  std::vector<Tensor> all_logits = shifted(logits, heads_, logit_shift_);
  for (Tensor& head : all_logits) head = of_all(head);
  rows_ += counts.empty() ? batch.rows : std::accumulate(counts.begin(), counts.end(), int64_t{0});
  metrics_.add(all_logits, of_all(batch.labels), context);
}

MetricValues Evaluator::values() const {
  if (rows_ > 0 && rows_without_weight_ == rows_)
    warn(str_cat({"evaluate: all ", format_count(rows_), rows_ == 1 ? " row has" : " rows have", " weight 0"}));
  return metrics_.values();
}

}  // namespace tercel::recsys
