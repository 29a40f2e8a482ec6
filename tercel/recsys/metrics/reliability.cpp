#include "tercel/recsys/metrics/reliability.h"

#include <algorithm>
#include <cmath>

#include "tercel/recsys/metrics/probability_impl.h"
#include "tercel/recsys/metrics/state_impl.h"
#include "tercel/util/error.h"

namespace tercel::recsys {

namespace {

// Probabilities of neighbouring bins differ by 2 % at most; the first and the last bin take what lies beyond.
constexpr double kMost = 16, kWidth = 0.02;
constexpr auto kBins = static_cast<size_t>(2 * kMost / kWidth);

}  // namespace

Reliability::Reliability() : fine_(kBins) {}

void Reliability::add(const MetricRows& rows) {
  for (size_t i = 0; i < rows.logits.size(); ++i) {
    const double logit = rows.logits[i], weight = weight_of(rows, i);
    if (std::isnan(logit) || weight == 0) continue;
    const double at = std::clamp((logit + kMost) / kWidth, 0.0, static_cast<double>(kBins - 1));
    ReliabilityBin& bin = fine_[static_cast<size_t>(at)];
    bin.rows += weight;
    bin.prediction += weight * probability_of(logit);
    bin.label += weight * static_cast<double>(rows.labels[i]);
  }
}

std::vector<ReliabilityBin> Reliability::bins(int64_t count) const {
  TERCEL_CHECK(count >= 1, ValueError, "reliability: expected at least 1 bin, got ", count);
  double all = 0;
  for (const ReliabilityBin& bin : fine_) all += bin.rows;
  std::vector<ReliabilityBin> bins;
  ReliabilityBin sum;
  double before = 0;  // rows of the bins that are complete
  const auto finish = [&] {
    before += sum.rows;
    bins.push_back({sum.rows, sum.prediction / sum.rows, sum.label / sum.rows});
    sum = {};
  };
  for (const ReliabilityBin& bin : fine_) {
    sum.rows += bin.rows;
    sum.prediction += bin.prediction;
    sum.label += bin.label;
    // By the sum of all bins so far, so that large bins do not make the later ones small.
    const double due = all * static_cast<double>(bins.size() + 1) / static_cast<double>(count);
    if (sum.rows > 0 && before + sum.rows >= due * (1 - 1e-12)) finish();
  }
  if (sum.rows > 0) finish();
  return bins;
}

}  // namespace tercel::recsys
