// Metrics of predictions, accumulated over batches.
//
// A new metric is a header and a source in this folder, and a line in metrics.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tercel/util/export.h"
#include "tercel/util/span.h"

namespace tercel {
class ByteCursor;
}

namespace tercel::recsys {

/**
 * The value does not depend on how rows are split into batches. Metrics of parts of the rows, as threads or ranks
 * accumulate them, are combined by merge(); sums of floating-point numbers may then be rounded differently.
 */
class TERCEL_API Metric {
 public:
  virtual ~Metric();

  /** "auc". */
  virtual std::string_view name() const = 0;
  /** Adds rows: logits (the prediction is their sigmoid) and the same number of labels, 0 or 1. */
  void add(Span<float> logits, Span<float> labels);
  /** The metric of all rows since the last reset; NaN if it is undefined or a logit is NaN. add() may follow. */
  virtual double value() = 0;
  virtual void reset() = 0;
  /** What it knows of its rows, as bytes for merge(). That of Auc has 8 bytes for each row. */
  std::string state() const;
  /** Adds the rows of another metric of this type. DataError, which leaves this one as it is, for damaged bytes. */
  void merge(std::string_view state);

 private:
  virtual void add_rows(Span<float> logits, Span<float> labels) = 0;
  /** Appends the state's content. */
  virtual void write_state(std::string& bytes) const = 0;
  /** Adds what write_state() wrote; reads all of it before it changes anything. */
  virtual void merge_state(ByteCursor& bytes) = 0;
};

/** Every metric by its name: auc, log_loss, accuracy, calibration. */
TERCEL_API std::vector<std::unique_ptr<Metric>> make_metrics();

}  // namespace tercel::recsys
