#include "tercel/recsys/report/run_report.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <utility>

#include "tercel/recsys/report/html_impl.h"
#include "tercel/recsys/report/line_chart_impl.h"
#include "tercel/util/format.h"
#include "tercel/util/version.h"

namespace tercel::recsys {

namespace {

constexpr size_t kMaxPoints = 500;  // of a curve of training

constexpr std::string_view kStyle = R"css(
body { font: 15px/1.45 system-ui, sans-serif; color: #1b1b1b; background: #fff; margin: 2rem auto; max-width: 1200px;
  padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; margin-top: 2rem; border-bottom: 1px solid #ccc; }
h3 { font-size: 1rem; margin: 0.3rem 0; }
.charts { display: grid; grid-template-columns: repeat(auto-fill, minmax(440px, 1fr)); gap: 1rem; }
figure { margin: 0; } svg { width: 100%; height: auto; } svg text { font-size: 11px; fill: #444; }
.grid { stroke: #e3e3e3; } .equal { stroke: #888; stroke-dasharray: 2 3; } .curve { fill: none; stroke-width: 1.6; }
.key { margin-right: 1rem; white-space: nowrap; }
.line { display: inline-block; width: 1.6rem; border-top: 3px solid; vertical-align: middle; margin-right: 0.3rem; }
.dashed { border-top-style: dashed; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; margin: 0.5rem 0; }
th, td { border: 1px solid #ddd; padding: 0.2rem 0.6rem; text-align: left; vertical-align: top; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
td.value { font-family: ui-monospace, monospace; font-size: 0.85rem; white-space: pre-wrap; max-width: 34rem;
  overflow-wrap: anywhere; }
thead th { background: #f4f4f4; } tr.differs td, tr.differs th { background: #fff3cd; }
details { margin: 0.5rem 0; } summary { cursor: pointer; }
)css";

/** Names of runs that are as short as they can be different: the folder's name, or else the path. */
std::vector<std::string> short_names(Span<RunContent> runs) {
  std::map<std::string, int> count;
  const auto last = [](const std::string& path) {
    const std::string trimmed = path.substr(0, path.find_last_not_of('/') + 1);
    const size_t slash = trimmed.rfind('/');
    return slash == std::string::npos ? trimmed : trimmed.substr(slash + 1);
  };
  for (const RunContent& run : runs) ++count[last(run.name)];
  std::vector<std::string> names;
  for (const RunContent& run : runs) names.push_back(count[last(run.name)] == 1 ? last(run.name) : run.name);
  return names;
}

class Page {
 public:
  explicit Page(Span<RunContent> runs) : runs_(runs), names_(short_names(runs)) {}

  std::string html() {
    const std::string title =
        names_.size() == 1 ? "Run " + names_[0] : "Comparison of " + std::to_string(names_.size()) + " runs";
    out_ =
        "<!DOCTYPE html>\n<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>"
        "\n<meta name=\"viewport\" content=\"width=device-width\"/>\n<title>" +
        escape_html(title) + "</title>\n<style>" + std::string(kStyle) + "</style>\n</head>\n<body>\n<h1>" +
        escape_html(title) + "</h1>\n";
    add_summary();
    add_curves();
    add_calibration();
    add_slices();
    add_tables();
    add_config();
    out_ += "<p><small>Written by Tercel " + escape_html(version()) + ".</small></p>\n</body>\n</html>\n";
    return std::move(out_);
  }

 private:
  /** A table's head: an empty cell, or a title, and a column for each run. */
  std::string head_of_runs(std::string_view title) const {
    std::string head = "<thead><tr><th>" + escape_html(title) + "</th>";
    for (const std::string& name : names_) head += "<th>" + escape_html(name) + "</th>";
    return head + "</tr></thead>\n";
  }

  void add_row(std::string_view title, const std::vector<std::string>& cells, const char* kind, bool differs = false) {
    out_ += std::string("<tr") + (differs ? " class=\"differs\"" : "") + "><th>" + escape_html(title) + "</th>";
    for (const std::string& cell : cells)
      out_ += std::string("<td class=\"") + kind + "\">" + escape_html(cell) + "</td>";
    out_ += "</tr>\n";
  }

  template <class F>
  std::vector<std::string> of_runs(F&& value) const {
    std::vector<std::string> cells;
    for (const RunContent& run : runs_) cells.push_back(value(run));
    return cells;
  }

  static std::string series_of(const MetricsRecord& record) { return record.part.empty() ? "evaluation" : record.part; }

  /** A value of an evaluation, and the step of its model. */
  struct StepValue {
    double value = 0;
    int64_t step = 0;
  };

  /** By "test: auc", the evaluation of each part that the best model had; the last one where it had none. */
  static std::vector<std::pair<std::string, StepValue>> best_values(const RunContent& run) {
    std::vector<std::pair<std::string, StepValue>> values;
    for (const MetricsRecord& record : run.records) {
      if (record.kind != "evaluation") continue;
      for (const auto& [name, value] : record.values) {
        const std::string title = series_of(record) + ": " + name;
        const auto known = std::find_if(values.begin(), values.end(), [&](const auto& v) { return v.first == title; });
        if (known == values.end())
          values.emplace_back(title, StepValue{value, record.step});
        else if (known->second.step != run.best_step || record.step == run.best_step)
          known->second = {value, record.step};
      }
    }
    return values;
  }

  /** Keys of lists of pairs, in the order in which they occur first. */
  template <class F>
  std::vector<std::string> keys_of(F&& pairs) const {
    std::vector<std::string> keys;
    for (const RunContent& run : runs_)
      for (const auto& [key, value] : pairs(run))
        if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
    return keys;
  }

  template <class V>
  static const V* find(const std::vector<std::pair<std::string, V>>& pairs, const std::string& key) {
    for (const auto& pair : pairs)
      if (pair.first == key) return &pair.second;
    return nullptr;
  }

  void add_summary() {
    out_ += "<h2>Runs</h2>\n<div class=\"scroll\"><table>\n" + head_of_runs("") + "<tbody>\n";
    add_row("folder", of_runs([](const RunContent& run) { return run.name; }), "value");
    add_row("model", of_runs([](const RunContent& run) { return run.model_name; }), "value");
    add_row("steps", of_runs([](const RunContent& run) {
              int64_t step = 0;
              for (const MetricsRecord& record : run.records) step = std::max(step, record.step);
              return format_count(step);
            }),
            "number");
    add_row("best checkpoint, step", of_runs([](const RunContent& run) {
              return run.best_step ? format_count(*run.best_step) : "\xe2\x80\x94";
            }),
            "number");
    for (const std::string& key : keys_of([](const RunContent& run) { return run.facts; }))
      add_row(key, of_runs([&](const RunContent& run) {
                const std::string* const fact = find(run.facts, key);
                return fact != nullptr ? *fact : "\xe2\x80\x94";
              }),
              "number");
    std::vector<std::vector<std::pair<std::string, StepValue>>> best;
    for (const RunContent& run : runs_) best.push_back(best_values(run));
    const auto best_of = [&](const RunContent& run) -> const auto& {
      return best[static_cast<size_t>(&run - runs_.data())];
    };
    for (const std::string& key : keys_of(best_of))
      add_row(key, of_runs([&](const RunContent& run) {
                const StepValue* const found = find(best_of(run), key);
                if (found == nullptr) return number_text(std::nan(""));
                return number_text(found->value) + " (step " + format_count(found->step) + ")";
              }),
              "number");
    out_ += "</tbody></table></div>\n";
  }

  /** Charts of one kind of records: one for each name of a value, with a line for each run and part. */
  std::string charts_of(std::string_view kind) const {
    std::vector<std::string> names;
    for (const RunContent& run : runs_)
      for (const MetricsRecord& record : run.records)
        for (const auto& [name, value] : record.values)
          if (record.kind == kind && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    std::string charts;
    for (const std::string& name : names) {
      std::vector<ChartSeries> series;
      for (size_t r = 0; r < runs_.size(); ++r) add_series(r, kind, name, series);
      charts += line_chart(series, {kind == "train" ? "training: " + name : name, "step", name});
    }
    return charts;
  }

  void add_series(size_t run, std::string_view kind, const std::string& name, std::vector<ChartSeries>& series) const {
    std::vector<std::pair<std::string, ChartSeries>> parts;
    for (const MetricsRecord& record : runs_[run].records) {
      const double* const value = find(record.values, name);
      if (record.kind != kind || value == nullptr) continue;
      auto part = std::find_if(parts.begin(), parts.end(), [&](const auto& p) { return p.first == record.part; });
      if (part == parts.end()) {
        const std::string title = names_[run] + (record.part.empty() ? "" : ", " + record.part);
        parts.push_back({record.part, {title, run, record.part == "test", kind != "train", {}}});
        part = parts.end() - 1;
      }
      part->second.points.emplace_back(static_cast<double>(record.step), *value);
    }
    for (auto& [part, line] : parts) {
      if (!line.marks) line.points = thinned(line.points, kMaxPoints);
      series.push_back(std::move(line));
    }
  }

  void add_curves() {
    const std::string charts = charts_of("evaluation") + charts_of("train");
    if (!charts.empty()) out_ += "<h2>Curves</h2>\n<div class=\"charts\">\n" + charts + "</div>\n";
  }

  static std::string title_of(const EvaluationDetails& details, const HeadDetails& head) {
    return details.part + (details.heads.size() > 1 ? ", head " + head.name : std::string());
  }

  void add_calibration() {
    std::vector<std::pair<std::string, std::vector<ChartSeries>>> charts;  // by part and head
    for (size_t r = 0; r < runs_.size(); ++r)
      for (const EvaluationDetails& details : runs_[r].details)
        for (const HeadDetails& head : details.heads) {
          const std::string title = title_of(details, head);
          auto chart = std::find_if(charts.begin(), charts.end(), [&](const auto& c) { return c.first == title; });
          if (chart == charts.end()) chart = charts.insert(charts.end(), {title, {}});
          ChartSeries series{names_[r] + ", step " + format_count(details.step), r, false, true, {}};
          for (const ReliabilityBin& bin : head.bins) series.points.emplace_back(bin.prediction, bin.label);
          chart->second.push_back(std::move(series));
        }
    std::string html;
    for (const auto& [title, series] : charts)
      html += line_chart(series, {title, "mean predicted probability", "share of rows with label 1", true});
    if (html.empty()) return;
    out_ +=
        "<h2>Calibration</h2>\n<p>Rows in up to 20 groups of similar probability, equally many in each. On the dotted "
        "line, predictions are right on average.</p>\n<div class=\"charts\">\n" +
        html + "</div>\n";
  }

  void add_slices() {
    std::string html;
    std::swap(html, out_);  // the tables are collected first: without any there is no heading
    for (size_t r = 0; r < runs_.size(); ++r)
      for (const EvaluationDetails& details : runs_[r].details)
        for (const HeadDetails& head : details.heads)
          if (!head.slices.empty()) add_slice_table(r, details, head);
    std::swap(html, out_);
    if (!html.empty()) out_ += "<h2>Slices</h2>\n" + html;
  }

  void add_slice_table(size_t run, const EvaluationDetails& details, const HeadDetails& head) {
    out_ += "<h3>" +
            escape_html(names_[run] + ", " + title_of(details, head) + ", by " + details.slice_by + ", step " +
                        format_count(details.step)) +
            "</h3>\n<div class=\"scroll\"><table>\n<thead><tr><th>value</th><th>rows</th><th>mean label</th>";
    for (const auto& [name, value] : head.slices.front().values) out_ += "<th>" + escape_html(name) + "</th>";
    out_ += "</tr></thead>\n<tbody>\n";
    for (const Slice& slice : head.slices) {
      std::vector<std::string> cells{format_count(slice.rows), number_text(slice.label)};
      for (const auto& [name, value] : slice.values) cells.push_back(number_text(value));
      add_row(slice.title, cells, "number");
    }
    out_ += "</tbody></table></div>\n";
  }

  void add_tables() {
    std::vector<std::string> tables;
    for (const RunContent& run : runs_)
      for (const TableGrowth& table : run.tables)
        if (std::find(tables.begin(), tables.end(), table.name) == tables.end()) tables.push_back(table.name);
    if (tables.empty()) return;
    out_ +=
        "<h2>Tables that grow</h2>\n<p>In training, up to the best checkpoint.</p>\n<div class=\"scroll\"><table>\n" +
        head_of_runs("table") + "<tbody>\n";
    using Statistics = HashedTableStatistics;
    const std::pair<const char*, int64_t Statistics::*> counts[] = {
        {"keys with a row", &Statistics::keys}, {"keys that wait for one", &Statistics::waiting},
        {"admitted", &Statistics::admitted},    {"occurrences without a row", &Statistics::refused},
        {"evicted", &Statistics::evicted},      {"forgotten while they waited", &Statistics::forgotten}};
    for (const std::string& name : tables)
      for (const auto& row : counts)
        add_row(name + ": " + row.first, of_runs([&](const RunContent& run) {
                  for (const TableGrowth& table : run.tables)
                    if (table.name == name) return format_count(table.statistics.*row.second);
                  return std::string("\xe2\x80\x94");
                }),
                "number");
    out_ += "</tbody></table></div>\n";
  }

  void add_config() {
    const std::vector<std::string> keys = keys_of([](const RunContent& run) { return run.config; });
    const auto cells_of = [this](const std::string& key) {
      return of_runs([&](const RunContent& run) {
        const std::string* const value = find(run.config, key);
        return value != nullptr ? *value : "\xe2\x80\x94";
      });
    };
    const auto differs = [](const std::vector<std::string>& cells) {
      return std::adjacent_find(cells.begin(), cells.end(), std::not_equal_to<>()) != cells.end();
    };
    out_ += "<h2>Configuration</h2>\n";
    if (runs_.size() > 1) {
      const bool any = std::any_of(keys.begin(), keys.end(), [&](const auto& key) { return differs(cells_of(key)); });
      out_ += any ? "<p>Options in which the runs differ:</p>\n<div class=\"scroll\"><table>\n" +
                        head_of_runs("option") + "<tbody>\n"
                  : "<p>All options are the same.</p>\n";
      for (const std::string& key : keys)
        if (const std::vector<std::string> cells = cells_of(key); differs(cells)) add_row(key, cells, "value", true);
      if (any) out_ += "</tbody></table></div>\n";
    }
    out_ += "<details" + std::string(runs_.size() == 1 ? " open=\"open\"" : "") +
            "><summary>All options</summary>\n<div class=\"scroll\"><table>\n" + head_of_runs("option") + "<tbody>\n";
    for (const std::string& key : keys) {
      const std::vector<std::string> cells = cells_of(key);
      add_row(key, cells, "value", differs(cells));
    }
    out_ += "</tbody></table></div></details>\n";
  }

  Span<RunContent> runs_;
  std::vector<std::string> names_;
  std::string out_;
};

}  // namespace

std::string report_html(Span<RunContent> runs) { return Page(runs).html(); }

}  // namespace tercel::recsys
