// Area under the ROC curve.
#pragma once

#include "tercel/recsys/metrics/metric.h"

namespace tercel::recsys {

/**
 * The probability that a random positive row scores above a random negative one, ties counting half: exact, over all
 * rows, in 8 bytes a row. NaN unless both labels occur.
 */
class TERCEL_API Auc final : public Metric {
 public:
  std::string_view name() const override { return "auc"; }
  double value() override;
  void reset() override;

 private:
  void add_rows(Span<float> logits, Span<float> labels) override;
  void write_state(std::string& bytes) const override;
  void merge_state(ByteCursor& bytes) override;

  void add_row(uint64_t row);

  // Order-preserving bits of the logit, then the label as the lowest bit. In blocks, all but the last of the same size:
  // a single vector would need twice the memory when it grows.
  std::vector<std::vector<uint64_t>> blocks_;
  bool has_nan_ = false;
};

}  // namespace tercel::recsys
