// A report of runs as one HTML file that needs nothing else: no network, no script.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tercel/recsys/report/details.h"
#include "tercel/recsys/report/metrics_record.h"
#include "tercel/recsys/report/table_growth.h"
#include "tercel/util/export.h"
#include "tercel/util/span.h"

namespace tercel::recsys {

/** What a run's folder says about it. */
struct RunContent {
  std::string name;  ///< as the report calls it: its path
  std::string model_name;
  /** Entries of the configuration, resolved where a checkpoint has it: "solver.lr" and "0.001". */
  std::vector<std::pair<std::string, std::string>> config;
  /** Facts: where the rows come from, how many there are. */
  std::vector<std::pair<std::string, std::string>> facts;
  std::optional<int64_t> best_step;  ///< of its best checkpoint
  std::vector<MetricsRecord> records;
  std::vector<EvaluationDetails> details;
  std::vector<TableGrowth> tables;    ///< of the best checkpoint: those that grow
  std::vector<std::string> warnings;  ///< about damaged lines, which are left out
};

/**
 * Reads the folder of a run; its dataset and the values of its tensors are not needed. DataError if it is none, or
 * damaged; lines of metrics.jsonl that are damaged are left out, with a warning.
 */
TERCEL_API RunContent read_run(const std::string& folder);

/** The page: curves, calibration, slices and configuration of the runs, side by side. Well-formed XML too. */
TERCEL_API std::string report_html(Span<RunContent> runs);

}  // namespace tercel::recsys
