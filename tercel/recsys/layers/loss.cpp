#include "tercel/recsys/layers/loss.h"

#include <algorithm>
#include <cmath>

#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/nn/cross_entropy.h"
#include "tercel/ops/views/views.h"

namespace tercel::recsys {

LossLayer::LossLayer(const LossOptions& options, const BuildContext& context)
    : Layer(context), where_(str_cat({"[", context.type, " ", context.name, "]"})), options_(options) {
  add_top(TensorShape::with_rows({}, 0));
}

bool LossLayer::has_columns(const BuildContext& context) {
  const std::vector<TensorShape>& in = context.bottoms;
  return in.size() == 2 && std::all_of(in.begin(), in.end(), [](const TensorShape& shape) {
           return shape.sizes.size() == 1 && shape.rows_per_sample == 1;
         });
}

void LossLayer::refuse_label(std::string_view expected, double found, int64_t row) const {
  throw_error<DataError>({where_, " expected ", expected, ", found ", found, " in row ", row, " of the batch"});
}

void LossLayer::forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext& context) {
  const Tensor &logits = bottoms[0], &labels = bottoms[1];
  const bool is_part = context.global_rows != 0 && context.global_rows != logits.size(0);
  double factor = options_.weight;
  // Not the mean times a share: a part may have no rows.
  if (is_part) factor /= static_cast<double>(context.global_rows);
  const Tensor loss = reduced(logits, labels, context.weights, is_part ? Reduction::Sum : Reduction::Mean);
  tops[0] = factor == 1 ? loss : mul(loss, factor);
}

namespace {

/** Weights [B] as [B, 1]; undefined if there are none. */
Tensor column_of(const Tensor& weights) { return weights.defined() ? unsqueeze(weights, 1) : Tensor(); }

}  // namespace

BinaryCrossEntropyLoss::BinaryCrossEntropyLoss(const Options& options, const BuildContext& context)
    : LossLayer(options, context) {
  if (!has_columns(context) || context.bottoms[0].sizes[0] != 1 || context.bottoms[1].sizes[0] != 1) {
    const bool has_labels =
        context.bottoms.size() == 2 && !context.bottoms[1].sizes.empty() && context.bottoms[1].sizes[0] > 1;
    refuse_inputs(context, has_labels ? "a logit [batch, 1] and a label [batch, 1] (several labels need a "
                                        "MultiCrossEntropyLoss, as the model mmoe has, or a loss each)"
                                      : "a logit [batch, 1] and a label [batch, 1]");
  }
}

Tensor BinaryCrossEntropyLoss::reduced(const Tensor& logits, const Tensor& labels, const Tensor& weights,
                                       Reduction reduction) const {
  return binary_cross_entropy_with_logits(logits, labels, column_of(weights), reduction);
}

CrossEntropyLoss::CrossEntropyLoss(const Options& options, const BuildContext& context) : LossLayer(options, context) {
  if (!has_columns(context) || context.bottoms[0].sizes[0] < 2 ||
      (context.bottoms[1].sizes[0] != 1 && context.bottoms[1].sizes[0] != context.bottoms[0].sizes[0]))
    refuse_inputs(context, "logits [batch, n] of at least 2 classes and a label [batch, 1] or [batch, n]");
  classes_ = context.bottoms[0].sizes[0];
  has_shares_ = context.bottoms[1].sizes[0] != 1;
}

namespace {

/** Labels in the host's memory, row after row. */
Tensor on_host(const Tensor& labels) {
  const Tensor host = empty(labels.sizes(), kFloat64);
  copy_(host, labels.detach());
  return host;
}

}  // namespace

Tensor CrossEntropyLoss::class_numbers(const Tensor& labels) const {
  const Tensor column = select(labels.detach(), 1, 0);
  if (classes_ == 2) return to(ge(column, 0.5), kInt64);
  const Tensor host = on_host(column);
  const double* const numbers = host.data<double>();
  for (int64_t row = 0; row < host.numel(); ++row)
    if (!(numbers[row] >= 0 && numbers[row] < static_cast<double>(classes_) &&
          numbers[row] == std::floor(numbers[row])))
      refuse_label(str_cat({"labels that are numbers of classes, 0 to ", classes_ - 1}), numbers[row], row);
  return to(column, kInt64);
}

void CrossEntropyLoss::check_shares(const Tensor& labels) const {
  constexpr double kRounding = 1e-3;
  const Tensor host = on_host(labels);
  const double* share = host.data<double>();
  for (int64_t row = 0; row < labels.size(0); ++row) {
    double sum = 0;
    for (int64_t i = 0; i < classes_; ++i, ++share) {
      if (!(*share >= 0)) refuse_label("shares of classes that are not negative", *share, row);
      sum += *share;
    }
    if (!(std::abs(sum - 1) <= kRounding)) refuse_label("labels that are the shares of classes, of sum 1", sum, row);
  }
}

Tensor CrossEntropyLoss::reduced(const Tensor& logits, const Tensor& labels, const Tensor& weights,
                                 Reduction reduction) const {
  if (has_shares_) check_shares(labels);
  const Tensor targets = has_shares_ ? to(labels, logits.dtype()) : class_numbers(labels);
  // The weights of cross_entropy() are those of classes.
  if (!weights.defined()) return cross_entropy(logits, targets, {}, reduction);
  return reduce_loss(mul(cross_entropy(logits, targets, {}, Reduction::None), weights), reduction);
}

MultiCrossEntropyLoss::MultiCrossEntropyLoss(const Options& options, const BuildContext& context)
    : LossLayer(options, context), target_weight_(options.target_weight) {
  if (!has_columns(context) || context.bottoms[0] != context.bottoms[1])
    refuse_inputs(context, "logits [batch, n] and labels [batch, n]");
  const int64_t columns = context.bottoms[0].sizes[0];
  if (target_weight_.empty()) target_weight_.assign(static_cast<size_t>(columns), 1);
  TERCEL_CHECK(static_cast<int64_t>(target_weight_.size()) == columns, ConfigError, "[MultiCrossEntropyLoss ",
               context.name, "] target_weight has ", target_weight_.size(), " entries for ", columns, " columns");
}

void MultiCrossEntropyLoss::allocate(const TensorOptions& place) {
  const Tensor host = empty({static_cast<int64_t>(target_weight_.size())}, kFloat64);
  std::copy(target_weight_.begin(), target_weight_.end(), host.data<double>());
  factors_ = empty(host.sizes(), place);
  copy_(factors_, host);
}

Tensor MultiCrossEntropyLoss::reduced(const Tensor& logits, const Tensor& labels, const Tensor& weights,
                                      Reduction reduction) const {
  const Tensor host = on_host(labels);
  const double* const found = host.data<double>();
  const auto columns = static_cast<int64_t>(target_weight_.size());
  for (int64_t i = 0; i < host.numel(); ++i)
    if (!(found[i] < kUnknownLabel || (found[i] >= 0 && found[i] <= 1)))
      refuse_label("labels in [0, 1], or below -0.5 where they are unknown", found[i], i / columns);
  Tensor factors = mul(to(ge(labels, kUnknownLabel), logits.dtype()), factors_);
  if (weights.defined()) factors = mul(factors, column_of(weights));
  const Tensor loss = binary_cross_entropy_with_logits(logits, labels, factors, reduction);
  return reduction == Reduction::Sum ? div(loss, static_cast<double>(columns)) : loss;
}

}  // namespace tercel::recsys
