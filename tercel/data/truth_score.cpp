#include <algorithm>
#include <cmath>

#include "tercel/data/truth_score_impl.h"

namespace tercel::data {

namespace {

constexpr int64_t kBins = int64_t{1} << 20;
constexpr double kRange = 12;

}  // namespace

TruthScore::TruthScore(double logit_mean, double logit_std)
    : low_(logit_mean - kRange * logit_std),
      bins_per_unit_(static_cast<double>(kBins) / (2 * kRange * logit_std)),
      clicked_(kBins),
      not_clicked_(kBins) {}

void TruthScore::add(int64_t rows, const float* labels, const float* logits) {
  for (int64_t i = 0; i < rows; ++i) {
    const double logit = logits[i];
    const double place = std::clamp((logit - low_) * bins_per_unit_, 0.0, static_cast<double>(kBins - 1));
    const bool click = labels[i] != 0;
    ++(click ? clicked_ : not_clicked_)[static_cast<size_t>(place)];
    clicks_ += click ? 1 : 0;
    // Log loss of the row, in a form in which exp never overflows.
    const double against = click ? -logit : logit;
    loss_sum_ += std::max(against, 0.0) + std::log1p(std::exp(-std::abs(against)));
  }
  rows_ += rows;
}

std::optional<PlantedTruth> TruthScore::result() const {
  const int64_t others = rows_ - clicks_;
  if (clicks_ == 0 || others == 0) return std::nullopt;
  double ordered = 0, below = 0;
  for (size_t bin = 0; bin < clicked_.size(); ++bin) {
    const auto negatives = static_cast<double>(not_clicked_[bin]);
    ordered += static_cast<double>(clicked_[bin]) * (below + negatives / 2);
    below += negatives;
  }
  PlantedTruth truth;
  truth.auc = ordered / static_cast<double>(clicks_) / static_cast<double>(others);
  truth.log_loss = loss_sum_ / static_cast<double>(rows_);
  return truth;
}

double TruthScore::auc_error() const {
  const int64_t others = rows_ - clicks_;
  if (clicks_ == 0 || others == 0) return 0;
  double unordered = 0;
  for (size_t bin = 0; bin < clicked_.size(); ++bin)
    unordered += static_cast<double>(clicked_[bin]) * static_cast<double>(not_clicked_[bin]);
  return unordered / 2 / static_cast<double>(clicks_) / static_cast<double>(others);
}

}  // namespace tercel::data
