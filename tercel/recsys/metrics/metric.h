// Measures of predictions, gathered batch by batch.
//
// A new metric is a header and a source in this folder, and a line in metrics.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "tercel/util/export.h"
#include "tercel/util/span.h"

namespace tercel::recsys {

/** Gives the same value however rows are cut into batches. */
class TERCEL_API Metric {
 public:
  virtual ~Metric();

  /** "auc". */
  virtual std::string_view name() const = 0;
  /** Takes in rows: logits (the prediction is their sigmoid) and as many labels, 0 or 1. */
  void add(Span<float> logits, Span<float> labels);
  /** Over all rows since the last reset; NaN when it is not defined for them, or a logit is NaN. More may follow. */
  virtual double value() = 0;
  virtual void reset() = 0;

 private:
  virtual void add_rows(Span<float> logits, Span<float> labels) = 0;
};

/** Every metric by its name: auc, log_loss, accuracy, calibration. */
TERCEL_API std::vector<std::unique_ptr<Metric>> make_metrics();

}  // namespace tercel::recsys
