#include "tercel/nn/adaptive_softmax.h"

#include <cmath>
#include <string_view>

#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/index/gather.h"
#include "tercel/ops/index/index_put.h"
#include "tercel/ops/index/nonzero.h"
#include "tercel/ops/nn/softmax.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/views/cat.h"
#include "tercel/ops/views/slicing.h"
#include "tercel/ops/views/views.h"

namespace tercel::nn {

namespace {

constexpr std::string_view kCutoffs =
    "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each value is "
    "between "
    "1 and n_classes-1";

void check_cutoffs(IntSpan cutoffs, int64_t n_classes) {
  TERCEL_CHECK(!cutoffs.empty(), ValueError, "cutoffs should be a sequence of length larger than 0");
  int64_t before = 0;
  for (const int64_t c : cutoffs) {
    TERCEL_CHECK(c > before && c < n_classes, ValueError, kCutoffs, ", but got ", cutoffs, " of ", n_classes,
                 " classes");
    before = c;
  }
}

void check_rows(const Tensor& x, const Tensor& target, int64_t n_classes) {
  TERCEL_CHECK(target.dim() <= 1, RuntimeError, "0D or 1D target tensor expected, multi-target not supported");
  TERCEL_CHECK(x.dim() == target.dim() + 1, RuntimeError, target.dim(), "D target tensor expects ", target.dim() + 1,
               "D input tensors, but found inputs with size ", x.sizes());
  TERCEL_CHECK(target.dim() == 0 || x.size(0) == target.size(0), RuntimeError,
               "Input and target should have the same size in the batch dimension.");
  if (target.numel() == 0) return;
  const auto low = min(target).item<int64_t>(), high = max(target).item<int64_t>();
  TERCEL_CHECK(low >= 0 && high < n_classes, RuntimeError, "Target values should be in [0, ", n_classes - 1,
               "], but values in range [", low, ", ", high, "] were found. ");
}

// The elements of rows [n, k] at classes [n].
Tensor gathered(const Tensor& rows, const Tensor& classes) {
  return squeeze(gather(rows, 1, unsqueeze(classes, 1)), 1);
}

}  // namespace

AdaptiveLogSoftmaxWithLoss::AdaptiveLogSoftmaxWithLoss(int64_t in_features, int64_t n_classes,
                                                       std::vector<int64_t> cutoffs, AdaptiveSoftmaxOptions options)
    : cutoffs_(std::move(cutoffs)) {
  check_cutoffs(cutoffs_, n_classes);
  const auto clusters = static_cast<int64_t>(cutoffs_.size());
  cutoffs_.push_back(n_classes);
  head_ = register_module("head", std::make_shared<Linear>(in_features, shortlist() + clusters, options.head_bias));
  tail_ = register_module("tail", std::make_shared<ModuleList>());
  double narrowing = 1;
  for (size_t i = 0; i + 1 < cutoffs_.size(); ++i) {
    narrowing *= options.div_value;
    const auto width = static_cast<int64_t>(std::floor(static_cast<double>(in_features) / narrowing));
    tail_->push_back(
        std::make_shared<Sequential>(std::make_shared<Linear>(in_features, width, false),
                                     std::make_shared<Linear>(width, cutoffs_[i + 1] - cutoffs_[i], false)));
  }
}

LogProbabilitiesAndLoss AdaptiveLogSoftmaxWithLoss::forward(const Tensor& x, const Tensor& target) {
  check_rows(x, target, cutoffs_.back());
  const bool alone = target.dim() == 0;
  const Tensor rows = alone ? unsqueeze(x, 0) : x, classes = alone ? unsqueeze(target, 0) : target;
  // The head's output for each row: that of the class, or of its cluster.
  const Tensor in_head = clone(classes);
  Tensor output = zeros(classes.sizes(), rows.options());
  for (size_t i = 0; i + 1 < cutoffs_.size(); ++i) {
    const Tensor inside = logical_and(ge(classes, cutoffs_[i]), lt(classes, cutoffs_[i + 1]));
    const Tensor places = squeeze(nonzero(inside), 1);
    if (places.numel() == 0) continue;
    in_head.masked_fill_(inside, shortlist() + static_cast<int64_t>(i));
    const Tensor logs = log_softmax((*(*tail_)[i])(index_select(rows, 0, places)), 1);
    output = index_copy(output, 0, places, gathered(logs, sub(index_select(classes, 0, places), cutoffs_[i])));
  }
  output = add(output, gathered(log_softmax((*head_)(rows), 1), in_head));
  return {alone ? squeeze(output, 0) : output, neg(mean(output))};
}

Tensor AdaptiveLogSoftmaxWithLoss::log_prob(const Tensor& x) {
  const Tensor logs = log_softmax((*head_)(x), 1);
  std::vector<Tensor> parts{narrow(logs, 1, 0, shortlist())};
  for (size_t i = 0; i < tail_->size(); ++i)
    parts.push_back(add(log_softmax((*(*tail_)[i])(x), 1), narrow(logs, 1, shortlist() + static_cast<int64_t>(i), 1)));
  return cat(parts, 1);
}

Tensor AdaptiveLogSoftmaxWithLoss::predict(const Tensor& x) {
  const Tensor best = argmax((*head_)(x), 1);
  const Tensor places = squeeze(nonzero(ge(best, shortlist())), 1);
  if (places.numel() == 0) return best;
  return index_copy(best, 0, places, argmax(log_prob(index_select(x, 0, places)), 1));
}

}  // namespace tercel::nn
