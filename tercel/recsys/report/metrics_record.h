// A line of a run's metrics.jsonl.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tercel/util/export.h"

namespace tercel::recsys {

/** What a run reports after a step. */
struct MetricsRecord {
  std::string kind;  ///< "train": of the steps since the last report; "evaluation"
  std::string part;  ///< of an evaluation: whose rows, "valid" or "test"; empty where the record does not say it
  int64_t step = 0;
  std::vector<std::pair<std::string, double>> values;  ///< by name; NaN where one is undefined
};

/**
 * The records of a file of lines of JSON, in its order; none if it does not exist. A last line that is cut short, as a
 * killed run leaves it, is left out. So is any other line that is no record, as a crash of the machine may leave it,
 * with a warning that names file and line.
 */
TERCEL_API std::vector<MetricsRecord> read_metrics(const std::string& path, std::vector<std::string>& warnings);

}  // namespace tercel::recsys
