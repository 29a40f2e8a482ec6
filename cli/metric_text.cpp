#include <cmath>
#include <cstdio>

#include "cli/metric_text.h"
#include "tercel/util/format.h"

namespace tercel::cli {

std::string metric_text(const recsys::MetricValues& values) {
  std::string text;
  for (const auto& [name, value] : values) {
    char number[32];
    std::snprintf(number, sizeof(number), "%.4f", value);
    text += (text.empty() ? "" : "  ") + printable(name) + " " + number;
  }
  return text;
}

void add_metrics(Json& json, const recsys::MetricValues& values) {
  for (const auto& [name, value] : values) {
    if (std::isfinite(value))
      json[name] = value;
    else
      json[name] = nullptr;
  }
}

}  // namespace tercel::cli
