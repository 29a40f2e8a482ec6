#include "tercel/recsys/report/metrics_record.h"

#include <algorithm>
#include <limits>

#include "tercel/recsys/report/metrics_record_impl.h"
#include "tercel/util/error.h"
#include "tercel/util/file.h"
#include "tercel/util/format.h"

namespace tercel::recsys {

namespace {

constexpr int64_t kMaxBytes = int64_t{1} << 30;
constexpr size_t kShownBytes = 60;  // of a line that is no record

}  // namespace

std::optional<MetricsRecord> record_of(const Json& line) {
  if (!line.is_object() || !line.contains("kind") || !line.at("kind").is_string() || !line.contains("step") ||
      !line.at("step").is_number_integer())
    return std::nullopt;
  MetricsRecord record;
  record.kind = line.at("kind").get<std::string>();
  record.step = line.at("step").get<int64_t>();
  for (const auto& [name, value] : line.items()) {
    if (name == "part" && value.is_string()) record.part = value.get<std::string>();
    if (name == "step") continue;
    if (value.is_number())
      record.values.emplace_back(name, value.get<double>());
    else if (value.is_null())
      record.values.emplace_back(name, std::numeric_limits<double>::quiet_NaN());
  }
  return record;
}

std::vector<MetricsRecord> read_metrics(const std::string& path, std::vector<std::string>& warnings) {
  std::vector<MetricsRecord> records;
  if (!exists(path)) return records;
  const std::string text = read_file(path, kMaxBytes);
  int64_t number = 0;
  for (size_t start = 0, end = 0; (end = text.find('\n', start)) != std::string::npos; start = end + 1) {
    ++number;
    const Json line = Json::parse(text.begin() + static_cast<std::ptrdiff_t>(start),
                                  text.begin() + static_cast<std::ptrdiff_t>(end), nullptr, /*allow_exceptions=*/false);
    std::optional<MetricsRecord> record = record_of(line);
    if (record)
      records.push_back(*std::move(record));
    else
      warnings.push_back(str_cat(
          {printable(path), ": line ", number, " is left out: expected an object with 'kind' and 'step', found '",
           printable(std::string_view(text).substr(start, std::min(end - start, kShownBytes))), "'"}));
  }
  return records;
}

}  // namespace tercel::recsys
