// Metrics of predictions, accumulated over batches.
//
// A new metric is a header and a source in this folder, and a line in metrics.cpp.
//
// Note [Weights of rows]
// A row of weight w counts like w rows: sums of rows are sums of weights. A row of weight 0 does not count at all, even
// if its logit is NaN. Metrics of rankings (ndcg, hit_rate@K, ndcg@K) are counts of places, which weights other than 0
// do not change.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tercel/util/enum_names.h"
#include "tercel/util/export.h"
#include "tercel/util/span.h"

namespace tercel {
class ByteCursor;
}

namespace tercel::recsys {

/** Which values of a metric are better. */
enum class Better : uint8_t { Higher, Lower, NearOne };

/** Rows of a batch: spans of one length. */
struct MetricRows {
  Span<float> logits;         ///< the prediction is their sigmoid
  Span<float> labels;         ///< 0, 1 or a probability
  Span<float> weights = {};   ///< finite, not negative; none: each is 1
  Span<int64_t> groups = {};  ///< the group of each row; for metrics that need them
};

/**
 * The value does not depend on how rows are split into batches (that of AverageLoss does). Metrics of parts of the
 * rows, as threads or ranks accumulate them, are combined by merge(); sums of floating-point numbers may then be
 * rounded differently.
 */
class TERCEL_API Metric {
 public:
  virtual ~Metric();

  /** "auc", "hit_rate@10". */
  virtual std::string_view name() const = 0;
  /** Which values are better, for targets. */
  virtual Better better() const = 0;
  /** Whether rows need groups. */
  virtual bool needs_groups() const { return false; }
  /** Adds rows: logits (the prediction is their sigmoid) and the same number of labels, 0 or 1. */
  void add(Span<float> logits, Span<float> labels) { add(MetricRows{logits, labels}); }
  /** The same with weights and groups. ValueError for other lengths, for weights that are negative or not finite, and
   * for missing groups. */
  void add(const MetricRows& rows);
  /** The metric of all rows since the last reset; NaN if it is undefined or a logit is NaN. add() may follow. */
  virtual double value() = 0;
  virtual void reset() = 0;
  /** What it knows of its rows, as bytes for merge(): a few numbers, or 8 bytes for each row (auc, ndcg), or 20 (those
   * that need groups). */
  std::string state() const;
  /** Adds the rows of another metric of this type. DataError, which leaves this one as it is, for damaged bytes. */
  void merge(std::string_view state);

 private:
  /** Weights are not zero; none where each is 1. */
  virtual void add_rows(const MetricRows& rows) = 0;
  /** Appends the state's content. */
  virtual void write_state(std::string& bytes) const = 0;
  /** Adds what write_state() wrote; reads all of it before it changes anything. */
  virtual void merge_state(ByteCursor& bytes) = 0;
};

/** Names of all metrics; "@K" stands for a number: "hit_rate@10". */
TERCEL_API Span<std::string_view> metric_names();
/** A metric by its name; ConfigError that starts with `owner` and names the known ones if there is none. */
TERCEL_API std::unique_ptr<Metric> make_metric(std::string_view name, std::string_view owner);

}  // namespace tercel::recsys
