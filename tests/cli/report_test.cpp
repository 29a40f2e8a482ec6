// Metrics of eval, targets and events of train, report: from the command line.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tercel/util/json_impl.h"
#include "tests/cli/program.h"
#include "tests/util/temporary_folder.h"

namespace tercel::cli {
namespace {

using test::expect_error;
using test::Outcome;
using test::run;
using test::TemporaryFolder;

class ReportCommands : public testing::Test {
 protected:
  void SetUp() override {
    std::string rows = "y,a,c,user\n";
    for (int r = 0; r < 400; ++r)
      rows += std::string(r % 3 == 0 ? "1," : "0,") + std::to_string(r % 7) + ",c" + std::to_string(r % 5) + ",u" +
              std::to_string(r % 11) + "\n";
    root_.put("rows.csv", rows);
    ASSERT_EQ(run({"convert", "csv", root_ / "rows.csv", root_ / "data", "--label", "y", "--dense", "a",
                   "--categorical", "c", "--categorical", "user", "--test-every", "4"})
                  .code,
              0);
    const Outcome trained = train("run", {"--tensorboard"});
    ASSERT_EQ(trained.code, 0) << trained.err;
  }

  Outcome train(const std::string& name, std::vector<std::string> more) const {
    std::vector<std::string> words = {"train", root_ / "data",        "--out", root_ / name,     "--threads", "1",
                                      "--set", "solver.batchsize=64", "--set", "solver.epochs=1"};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  }

  TemporaryFolder root_;
};

TEST_F(ReportCommands, EvalMeasuresWhatItIsAskedFor) {
  const Outcome shown = run({"eval", root_ / "run", root_ / "data", "--metrics", "auc,gauc,ne,hit_rate@2", "--group-by",
                             "user", "--slice-by", "c", "--slices", "3"});
  ASSERT_EQ(shown.code, 0) << shown.err;
  for (const char* text : {"gauc ", "ne ", "hit_rate@2 ", "\nby c:\n", "  c0  20 rows  mean label 0.3"})
    EXPECT_NE(shown.out.find(text), std::string::npos) << text << shown.out;
  EXPECT_EQ(shown.out.find("accuracy"), std::string::npos);
  const size_t slices = shown.out.find("\nby c:\n");
  EXPECT_NE(shown.out.find("  ne ", slices), std::string::npos) << shown.out;
  EXPECT_NE(shown.out.find("gauc", slices), std::string::npos) << shown.out;
  const Outcome as_json =
      run({"eval", root_ / "run", root_ / "data", "--metrics", "log_loss", "--slice-by", "c", "--json"});
  ASSERT_EQ(as_json.code, 0) << as_json.err;
  const Json json = parse_json(as_json.out, "eval", JsonErrors::Data);
  EXPECT_FALSE(json.contains("auc"));
  ASSERT_EQ(json.at("slices").size(), 5u);
  double sum = 0;
  int64_t rows = 0;
  for (const Json& slice : json.at("slices")) {
    sum += slice.at("log_loss").get<double>() * slice.at("rows").get<double>();
    rows += slice.at("rows").get<int64_t>();
    EXPECT_TRUE(slice.at("value").get<std::string>().starts_with("c")) << slice;
  }
  EXPECT_EQ(rows, 100);
  EXPECT_NEAR(sum / 100, json.at("log_loss").get<double>(), 1e-12) << "the slices are all rows";
}

TEST_F(ReportCommands, MistakesAreNamed) {
  const auto eval = [&](std::vector<std::string> more) {
    std::vector<std::string> words = {"eval", root_ / "run", root_ / "data"};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  };
  expect_error(eval({"--metrics", "auc,gauc"}), 2, {"eval: metric 'gauc' needs group_by"});
  expect_error(eval({"--metrics", "ucc"}), 2, {"eval: unknown metric 'ucc'"});
  expect_error(eval({"--slice-by", "d"}), 2,
               {"eval: --slice-by: unknown slot or column of integers 'd'; known: c, user"});
  expect_error(eval({"--group-by", "usr"}), 2,
               {"eval: --group-by: unknown slot or column of integers 'usr'; did you mean 'user'? known: c, user"});
  expect_error(run({"report", root_ / "none", "--out", root_ / "r.html"}), 4, {"none: no such folder"});
  expect_error(run({"report", root_ / "data", "--out", root_ / "r.html"}), 3, {"data: expected the folder of a run"});
  expect_error(run({"report", root_ / "run", "--out", root_ / "no/r.html"}), 4, {"no/r.html"});
  expect_error(run({"report"}), 2, {"RUN"});
}

TEST_F(ReportCommands, ARunEndsAtATarget) {
  const Outcome trained = train("target", {"--epochs", "50", "--set", "solver.targets={\"log_loss\": 5}", "--json"});
  ASSERT_EQ(trained.code, 0) << trained.err;
  const Json json = parse_json(trained.out, "train", JsonErrors::Data);
  EXPECT_EQ(json.at("end"), "targets");
  EXPECT_EQ(json.at("step"), 5) << "after the first epoch";
  EXPECT_NE(trained.err.find("passed solver.targets"), std::string::npos) << trained.err;
  expect_error(train("bad", {"--set", "solver.targets={\"log_loss\": \"x\"}"}), 2,
               {"option 'targets[0].value': expected a number, found"});
  expect_error(train("bad", {"--set", "solver.targets={\"rmse\": 1}"}), 2,
               {"solver: targets: 'rmse' is not among the metrics that are measured"});
}

TEST_F(ReportCommands, AReportComparesRuns) {
  ASSERT_EQ(train("other", {"--set", "solver.lr=0.02"}).code, 0);
  const Outcome written = run({"report", root_ / "run", root_ / "other", "--out", root_ / "report.html", "--json"});
  ASSERT_EQ(written.code, 0) << written.err;
  EXPECT_EQ(parse_json(written.out, "report", JsonErrors::Data).at("runs"), 2);
  const std::string page = root_.get("report.html");
  EXPECT_TRUE(page.starts_with("<!DOCTYPE html>")) << page.substr(0, 100);
  for (const char* text : {"Comparison of 2 runs", "<h2>Calibration</h2>", "<tr class=\"differs\"><th>solver.lr</th>",
                           "<td class=\"value\">0.02</td>"})
    EXPECT_NE(page.find(text), std::string::npos) << text;
}

}  // namespace
}  // namespace tercel::cli
