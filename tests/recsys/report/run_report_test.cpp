// Reports: their text. python/tests/test_report.py parses and opens pages.
#include "tercel/recsys/report/run_report.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "tercel/recsys/report/html_impl.h"
#include "tercel/recsys/report/line_chart_impl.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"
#include "tests/recsys/training_data.h"
#include "tests/support/errors.h"

namespace tercel::recsys {
namespace {

using test::ignore;
using test::small_dataset;
using test::stateful_config;
using test::TemporaryFolder;

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST(Html, TextIsEscaped) {
  EXPECT_EQ(escape_html("<a href=\"x\">&'"), "&lt;a href=&quot;x&quot;&gt;&amp;&#39;");
  EXPECT_EQ(escape_html(std::string("a\x1b\x01\xff") + "b"), "a\\x1b\\x01\\xffb");
  EXPECT_EQ(number_text(0.78712345), "0.78712");
  EXPECT_EQ(number_text(1e-7), "1e-07");
  EXPECT_EQ(number_text(std::nan("")), "\xe2\x80\x94");
}

TEST(LineChart, DrawsFinitePointsOnly) {
  const std::vector<ChartSeries> series = {{"a<b", 0, false, true, {{0, 1}, {1, std::nan("")}, {2, 3}, {3, 2}}},
                                           {"", 1, true, false, {{5, 7}}},
                                           {"none", 2, false, false, {}}};
  const std::string svg = line_chart(series, {"loss & more", "step", "loss"});
  EXPECT_EQ(count(svg, "<polyline"), 3u) << "of one line in two parts, and another";
  EXPECT_EQ(count(svg, "<circle"), 4u) << "three marks, and a line of one point";
  EXPECT_NE(svg.find("<title>a&lt;b: 2, 3</title>"), std::string::npos) << svg;
  EXPECT_NE(svg.find("loss &amp; more"), std::string::npos);
  EXPECT_EQ(svg.find("nan"), std::string::npos) << svg;
  EXPECT_EQ(svg.find("none"), std::string::npos) << svg;
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(line_chart(std::vector<ChartSeries>{{"a", 0, false, true, {{0, infinity}}}}, {"t", "x", "y"}), "");
  EXPECT_EQ(line_chart({}, {"t", "x", "y"}), "");
  for (const double value : {0.0, 1.0, -3.0, 1e299, 1e-300, 123456789.0}) {
    const std::string flat = line_chart(std::vector<ChartSeries>{{"a", 0, false, true, {{5, value}}}}, {"t", "x", "y"});
    EXPECT_GE(count(flat, "class=\"grid\""), 4u) << value;
    EXPECT_LE(count(flat, "class=\"grid\""), 25u) << value;
  }
  // Neighbouring doubles, and numbers whose difference overflows.
  const double near = 1e9, far = std::numeric_limits<double>::max();
  EXPECT_NE(
      line_chart(std::vector<ChartSeries>{{"a", 0, false, true, {{near, near}, {near, std::nextafter(near, far)}}}},
                 {"t", "x", "y"}),
      "");
  EXPECT_EQ(line_chart(std::vector<ChartSeries>{{"a", 0, false, true, {{0, far}, {1, -far}}}}, {"t", "x", "y"}), "");
}

TEST(LineChart, ThinnedLinesKeepTheirMean) {
  std::vector<std::pair<double, double>> points;
  for (int i = 0; i < 1000; ++i) points.emplace_back(i, i % 10);
  const auto thin = thinned(points, 100);
  ASSERT_EQ(thin.size(), 100u);
  for (size_t i = 0; i < 100; ++i) EXPECT_EQ(thin[i], (std::pair{static_cast<double>(i) * 10 + 4.5, 4.5}));
  EXPECT_EQ(thinned(points, 1000), points);
}

TEST(RunReport, OfRunFoldersAlone) {
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 600);
  ModelConfig config = stateful_config({"solver.eval_interval=3"});
  config.solver.slice_by = dataset.schema.slots[0].name;
  Trainer(config, dataset, root / "one", Resume::Never).run(ignore);
  set_config(config, "solver.lr=0.02");
  config.model_name = "<script>alert(1)</script>";
  Trainer(config, dataset, root / "two", Resume::Never).run(ignore);
  std::filesystem::remove_all(root / "data");
  const std::vector<RunContent> runs = {read_run(root / "one"), read_run(root / "two")};
  const std::string page = report_html(runs);
  EXPECT_EQ(page.find("<script"), std::string::npos) << "text of runs is escaped";
  EXPECT_NE(page.find("&lt;script&gt;alert(1)"), std::string::npos);
  EXPECT_EQ(count(page, "http"), 1u) << "nothing is loaded: only the name of the namespace";
  for (const char* title : {"<h2>Curves</h2>", "<h2>Calibration</h2>", "<h2>Slices</h2>", "<h2>Configuration</h2>",
                            "<h3>auc</h3>", "<h3>training: loss</h3>"})
    EXPECT_EQ(count(page, title), 1u) << title;
  // Both are different, in the table of differences and in that of all.
  EXPECT_EQ(count(page, "<tr class=\"differs\"><th>solver.lr</th>"), 2u);
  EXPECT_EQ(count(page, "<tr class=\"differs\"><th>model_name</th>"), 2u);
  EXPECT_EQ(count(page, "<tr class=\"differs\""), 4u);
  EXPECT_NE(page.find("layers.dropped.rate"), std::string::npos);
  const std::string alone = report_html(std::vector<RunContent>{runs[0]});
  EXPECT_EQ(count(alone, "class=\"differs\""), 0u);

  // What a killed run may lack is left out.
  for (const char* file : {"metrics.jsonl", "details.json", "trained_on.json"})
    std::filesystem::remove(root / (std::string("one/") + file));
  const std::string less = report_html(std::vector<RunContent>{read_run(root / "one")});
  EXPECT_EQ(less.find("<h2>Curves</h2>"), std::string::npos);
  EXPECT_NE(less.find("<h2>Configuration</h2>"), std::string::npos);
  std::filesystem::remove_all(root / "one/checkpoints");
  EXPECT_FALSE(read_run(root / "one").best_step.has_value());
}

TEST(RunReport, TheTableHasTheEvaluationsOfTheBestModel) {
  RunContent run;
  run.name = "runs/first";
  const auto evaluation = [](const char* part, int64_t step, double auc) {
    return MetricsRecord{"evaluation", part, step, {{"auc", auc}}};
  };
  run.records = {evaluation("valid", 10, 0.5), evaluation("valid", 20, 0.75), evaluation("valid", 1030, 0.625),
                 evaluation("test", 20, 0.7),  evaluation("other", 10, 0.1),  evaluation("other", 1030, 0.2)};
  run.best_step = 20;
  const auto cell = [](const std::string& page, const std::string& title) {
    const size_t row = page.find("<th>" + title + "</th><td class=\"number\">");
    EXPECT_NE(row, std::string::npos) << title;
    const size_t begin = page.find("<td", row), open = page.find('>', begin) + 1;
    return page.substr(open, page.find('<', open) - open);
  };
  const std::string page = report_html(std::vector<RunContent>{run});
  EXPECT_EQ(cell(page, "valid: auc"), "0.75 (step 20)") << "not that of the last step";
  EXPECT_EQ(cell(page, "test: auc"), "0.7 (step 20)");
  EXPECT_EQ(cell(page, "other: auc"), "0.2 (step 1,030)") << "the last one, where the best model has none";
  run.best_step.reset();
  EXPECT_EQ(cell(report_html(std::vector<RunContent>{run}), "valid: auc"), "0.625 (step 1,030)");
}

TEST(RunReport, ADamagedLineOfMetricsIsLeftOut) {
  const TemporaryFolder root;
  Trainer(stateful_config({"solver.eval_interval=3"}), small_dataset(root, 600), root / "run", Resume::Never)
      .run(ignore);
  const size_t records = read_run(root / "run").records.size();
  EXPECT_TRUE(read_run(root / "run").warnings.empty());
  const std::string text = root.get("run/metrics.jsonl");
  root.put("run/metrics.jsonl", text.substr(0, 9) + "\n" + text);
  const RunContent found = read_run(root / "run");
  EXPECT_EQ(found.records.size(), records);
  ASSERT_EQ(found.warnings.size(), 1u);
  EXPECT_NE(found.warnings[0].find("run/metrics.jsonl: line 1 is left out"), std::string::npos) << found.warnings[0];
}

TEST(RunReport, TablesThatGrow) {
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 600);
  Trainer(stateful_config(), dataset, root / "plain", Resume::Never).run(ignore);
  ModelConfig config = stateful_config({"layers.e2.sparse_embedding_hparam.table_type=hashed",
                                        "layers.e2.sparse_embedding_hparam.admission=3", "solver.epochs=1"});
  Trainer trainer(config, dataset, root / "grown", Resume::Never);
  trainer.run(ignore);
  const HashedTableStatistics s =
      dynamic_cast<const HashedTable&>(*trainer.model().embeddings().tables()[1]).statistics();
  ASSERT_GT(s.keys, 0);
  ASSERT_GT(s.waiting, 0);
  const std::vector<RunContent> runs = {read_run(root / "plain"), read_run(root / "grown")};
  EXPECT_TRUE(runs[0].tables.empty());
  ASSERT_EQ(runs[1].tables.size(), 1u);
  const TableGrowth& table = runs[1].tables[0];
  EXPECT_EQ(table.name, "e2");
  EXPECT_EQ(table.statistics.keys, s.keys);
  EXPECT_EQ(table.statistics.waiting, s.waiting);
  EXPECT_EQ(table.statistics.admitted, s.admitted);
  EXPECT_EQ(table.statistics.refused, s.refused);
  const std::string page = report_html(runs);
  for (const auto& [title, value] : {std::pair("keys with a row", s.keys), {"keys that wait for one", s.waiting}})
    EXPECT_EQ(
        count(page, str_cat({"<tr><th>e2: ", title, "</th><td class=\"number\">\xe2\x80\x94</td><td class=\"number\">",
                             format_count(value), "</td></tr>"})),
        1u)
        << title;
  EXPECT_EQ(count(page, "<h2>Tables that grow</h2>"), 1u);
  EXPECT_EQ(count(report_html(std::vector<RunContent>{runs[0]}), "Tables that grow"), 0u);
}

TEST(RunReport, ADamagedFileOfDetailsDoesNotStopARun) {
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 600);
  ModelConfig config = stateful_config();
  Trainer(config, dataset, root / "run", Resume::Never).run(ignore);
  for (const char* damaged : {"[{\"part\":", "[{\"part\": 1}]", "garbage"}) {
    root.put("run/details.json", damaged);
    ++config.solver.epochs;
    Trainer(config, dataset, root / "run", Resume::Auto).run(ignore);
    EXPECT_EQ(root.get("run/details.json").find(damaged), std::string::npos);
    EXPECT_FALSE(read_run(root / "run").details.empty()) << damaged;
  }
}

TEST(RunReport, OtherFoldersAreNamed) {
  const TemporaryFolder root;
  TERCEL_EXPECT_THROW(read_run(root / "none"), IoError, "none: no such folder");
  TERCEL_EXPECT_THROW(read_run(root.path()), DataError, ": expected the folder of a run");
  root.put("run/config.json", "{}");
  TERCEL_EXPECT_THROW(read_run(root / "run"), ConfigError, "run/config.json: expected a list 'layers'");
}

}  // namespace
}  // namespace tercel::recsys
