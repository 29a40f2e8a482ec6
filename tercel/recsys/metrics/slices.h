// Metrics of the rows that have the same key in a slot.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tercel/recsys/metrics/grouped.h"

namespace tercel::recsys {

/** The rows of one key. */
struct Slice {
  int64_t key = 0;
  std::string title;  ///< what it stands for, where that is known: SliceTitles
  int64_t rows = 0;
  double label = 0;                                    ///< mean, by weight
  std::vector<std::pair<std::string, double>> values;  ///< by metric; NaN where undefined
};

/** Keeps 32 bytes for each row. */
class TERCEL_API SliceMetrics {
 public:
  /** With these metrics of each slice. ConfigError for unknown ones. */
  explicit SliceMetrics(Span<std::string> metrics);

  /** Adds rows with the key of each; those of weight 0 are left out. Groups if a metric needs them. */
  void add(const MetricRows& rows, Span<int64_t> keys);
  /** The slices of the `count` most frequent keys, in the order of their rows; ties: the smaller key first. */
  std::vector<Slice> most_frequent(int64_t count);

 private:
  struct Row {
    int64_t key;
    GroupedRow row;
  };
  Slice measure(Span<Row> rows) const;

  std::vector<std::string> metrics_;
  std::vector<Row> rows_;
};

}  // namespace tercel::recsys
