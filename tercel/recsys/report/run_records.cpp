#include <algorithm>

#include "tercel/recsys/evaluator.h"
#include "tercel/recsys/report/metrics_record_impl.h"
#include "tercel/recsys/report/run_records_impl.h"
#include "tercel/util/error.h"

namespace tercel::recsys {

namespace {

std::vector<std::string> names_of_metrics(const Model& model, const MetricOptions& options) {
  std::vector<std::string> names;
  for (const auto& [name, value] : Evaluator(model, options).values()) names.push_back(name);
  return names;
}

/** Code in Markdown: each line is indented. */
std::string code_text(const std::string& text) {
  std::string code;
  for (size_t start = 0; start < text.size();) {
    const size_t end = std::min(text.find('\n', start), text.size());
    code += "    " + text.substr(start, end - start) + "\n";
    start = end + 1;
  }
  return code;
}

/**
 * The details that a resumed run still has: those of steps that it repeats are dropped, and a damaged file, without
 * which it goes on.
 */
std::vector<EvaluationDetails> details_until(const std::string& path, int64_t step) {
  std::vector<EvaluationDetails> all;
  try {
    all = read_details(path);
  } catch (const DataError&) {
    return {};
  }
  std::erase_if(all, [step](const EvaluationDetails& details) { return details.step > step; });
  return all;
}

}  // namespace

RunRecords::RunRecords(const RunFolder& folder, const ModelConfig& config, const Model& model, int64_t step)
    : details_path_(folder.details()),
      details_(details_until(details_path_, step)),
      csv_(folder.metrics_table(), folder.metrics(), names_of_metrics(model, config.solver)) {
  if (!config.solver.tensorboard) return;
  events_.emplace(folder.path(), step + 1);
  events_->add_text("config", code_text(to_json(config)), step);
}

void RunRecords::add(const Json& line) {
  const std::optional<MetricsRecord> record = record_of(line);
  TERCEL_ASSERT(record);
  csv_.add(*record);
  if (events_) events_->add(*record);
}

void RunRecords::add_details(EvaluationDetails details) {
  std::erase_if(details_, [&](const EvaluationDetails& other) { return other.part == details.part; });
  details_.push_back(std::move(details));
  write_details(details_path_, details_);
}

}  // namespace tercel::recsys
