// What a run leaves beside metrics.jsonl for people to look at. Private.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tercel/recsys/model/model.h"
#include "tercel/recsys/report/details.h"
#include "tercel/recsys/report/event_writer.h"
#include "tercel/recsys/report/metrics_csv.h"
#include "tercel/recsys/run_folder_impl.h"
#include "tercel/util/json_impl.h"

namespace tercel::recsys {

class RunRecords {
 public:
  /** Of a run at `step`: writes metrics.csv again, and begins a file of events if the configuration asks for one. */
  RunRecords(const RunFolder& folder, const ModelConfig& config, const Model& model, int64_t step);

  /** A line that metrics.jsonl already has. */
  void add(const Json& line);
  /** Details of an evaluation, in place of those of the part's last one. */
  void add_details(EvaluationDetails details);

 private:
  std::string details_path_;
  std::vector<EvaluationDetails> details_;
  MetricsCsv csv_;
  std::optional<EventWriter> events_;
};

}  // namespace tercel::recsys
