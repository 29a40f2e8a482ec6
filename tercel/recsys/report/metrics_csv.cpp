#include "tercel/recsys/report/metrics_csv.h"

#include <algorithm>
#include <cmath>

#include "tercel/util/atomic_file.h"
#include "tercel/util/format.h"
#include "tercel/util/warning.h"

namespace tercel::recsys {

namespace {

/** Quoted where the text has separators of CSV. */
std::string field_text(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string number_text(double value) { return std::isnan(value) ? "nan" : format_double(value); }

}  // namespace

MetricsCsv::MetricsCsv(std::string path, std::string records, std::vector<std::string> metrics)
    : path_(std::move(path)), records_(std::move(records)), columns_{"loss", "learning_rate", "samples_per_second"} {
  columns_.insert(columns_.end(), metrics.begin(), metrics.end());
  write_all();
}

void MetricsCsv::write_all() {
  std::vector<std::string> warnings;
  const std::vector<MetricsRecord> records = read_metrics(records_, warnings);
  for (const std::string& text : warnings) warn(text);
  for (const MetricsRecord& record : records)
    for (const auto& [name, value] : record.values)
      if (std::find(columns_.begin(), columns_.end(), name) == columns_.end()) columns_.push_back(name);
  std::string text = "step,kind,part";
  for (const std::string& name : columns_) text += "," + field_text(name);
  text += "\n";
  for (const MetricsRecord& record : records) text += row_of(record);
  file_ = File();
  write_file_atomically(path_, text);
  file_ = File::append(path_);
}

std::string MetricsCsv::row_of(const MetricsRecord& record) const {
  std::string row = std::to_string(record.step) + "," + field_text(record.kind) + "," + field_text(record.part);
  for (const std::string& name : columns_) {
    row += ",";
    for (const auto& [key, value] : record.values)
      if (key == name) row += number_text(value);
  }
  return row + "\n";
}

void MetricsCsv::add(const MetricsRecord& record) {
  const bool is_known = std::all_of(record.values.begin(), record.values.end(), [this](const auto& value) {
    return std::find(columns_.begin(), columns_.end(), value.first) != columns_.end();
  });
  if (!is_known) return write_all();
  const std::string row = row_of(record);
  file_.write_all(row.data(), row.size());
}

}  // namespace tercel::recsys
