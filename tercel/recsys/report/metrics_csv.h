// metrics.csv: the records of metrics.jsonl as a table.
#pragma once

#include <string>
#include <vector>

#include "tercel/recsys/report/metrics_record.h"
#include "tercel/util/export.h"
#include "tercel/util/file.h"

namespace tercel::recsys {

/**
 * A row for each record, under a header that is known when the run begins: step, kind, part, what is reported of
 * training, then the metrics of evaluations. Fields that a record does not have are empty; an undefined value is "nan".
 */
class TERCEL_API MetricsCsv {
 public:
  /**
   * Writes the file again, with the records that metrics.jsonl, at `records`, has. `metrics` are the names that
   * evaluations will have; names that only the records have become columns behind them. IoError.
   */
  MetricsCsv(std::string path, std::string records, std::vector<std::string> metrics);

  /** Appends a record that metrics.jsonl already has. With a name without a column, the file is written again. */
  void add(const MetricsRecord& record);

 private:
  void write_all();
  std::string row_of(const MetricsRecord& record) const;

  std::string path_, records_;
  std::vector<std::string> columns_;
  File file_;
};

}  // namespace tercel::recsys
