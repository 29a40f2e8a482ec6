// tercel predict: ids, formats, interruption. train_test.cpp has the probabilities.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tercel/data/arrow_module.h"
#include "tests/cli/program.h"
#include "tests/util/temporary_folder.h"

namespace tercel::cli {
namespace {

using test::expect_error;
using test::Outcome;
using test::Program;
using test::run;
using test::TemporaryFolder;

class PredictCommand : public testing::Test {
 protected:
  void SetUp() override {
    std::string rows = "who,y,a,c\n";
    for (int r = 0; r < 400; ++r)
      rows += "u" + std::to_string(r) + (r % 3 == 0 ? ",1," : ",0,") + std::to_string(r % 7) + ",c" +
              std::to_string(r % 5) + "\n";
    root_.put("rows.csv", rows);
    ASSERT_EQ(run({"convert", "csv", root_ / "rows.csv", root_ / "data", "--label", "y", "--dense", "a",
                   "--categorical", "c", "--test-every", "4"})
                  .code,
              0);
    ASSERT_EQ(
        run({"train", root_ / "data", "--out", root_ / "run", "--epochs", "1", "--set", "solver.batchsize=64"}).code,
        0);
  }

  Outcome predict(const std::string& in, std::vector<std::string> more) const {
    std::vector<std::string> words = {"predict", root_ / "run", root_ / in};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  }
  /** The first column of CSV, without the header. */
  static std::vector<std::string> first_column(const std::string& csv) {
    std::vector<std::string> column;
    for (size_t at = csv.find('\n') + 1; at < csv.size(); at = csv.find('\n', at) + 1)
      column.push_back(csv.substr(at, csv.find(',', at) - at));
    return column;
  }

  TemporaryFolder root_;
};

TEST_F(PredictCommand, IdsAreBesideTheProbabilities) {
  const Outcome plain = predict("rows.csv", {}), text = predict("rows.csv", {"--id", "who"});
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_TRUE(text.out.starts_with("who,probability\nu0,0.")) << text.out.substr(0, 60);
  std::string without = text.out;
  for (size_t at = 0; at < without.size(); at = without.find('\n', at) + 1)
    without.erase(at, without.find(',', at) + 1 - at);
  EXPECT_EQ(without, plain.out) << "the same probabilities";
  EXPECT_EQ(first_column(text.out)[399], "u399");

  const Outcome numbers = predict("rows.csv", {"--row-number"});
  ASSERT_EQ(numbers.code, 0) << numbers.err;
  EXPECT_TRUE(numbers.out.starts_with("row,probability\n0,0.")) << numbers.out.substr(0, 60);
  EXPECT_EQ(first_column(numbers.out).back(), "399");

  // Of a dataset: every fourth row is a test row, and its category c3, c2 ... a key.
  const Outcome keys = predict("data", {"--id", "c"});
  ASSERT_EQ(keys.code, 0) << keys.err;
  const std::vector<std::string> found = first_column(keys.out);
  ASSERT_EQ(found.size(), 100u);
  for (size_t i = 5; i < 100; ++i) EXPECT_EQ(found[i], found[i - 5]);
  EXPECT_NE(found[0], found[1]);
}

TEST_F(PredictCommand, FormatsAreChosenByNameOrFlag) {
  for (const std::string name : {"x.npy", "x.parquet", "x.pq", "x.csv"}) {
    const bool is_parquet = name == "x.parquet" || name == "x.pq";
    if (is_parquet && !data::has_arrow_module()) continue;
    const Outcome outcome = predict("data", {"--row-number", "--out", root_ / name});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.out, "wrote 100 probabilities to " + (root_ / name) + "\n");
    const std::string magic = is_parquet ? "PAR1" : name == "x.npy" ? "\x93NUMPY" : "row,probability\n";
    EXPECT_TRUE(root_.get(name).starts_with(magic)) << name;
  }
  ASSERT_EQ(predict("data", {"--format", "npy", "--out", root_ / "plain"}).code, 0);
  EXPECT_TRUE(root_.get("plain").starts_with("\x93NUMPY"));
}

TEST_F(PredictCommand, MistakesAreNamed) {
  expect_error(predict("data", {"--id", "who"}), 2, {"data: unknown slot or column 'who'; known: c, a"});
  expect_error(predict("rows.csv", {"--id", "whom"}), 3,
               {"rows.csv: line 1: expected a column 'whom', found 4 columns of other names; did you mean 'who'?"});
  expect_error(predict("rows.csv", {"--id", "who", "--row-number"}), 2, {"--id and --row-number exclude each other"});
  expect_error(predict("data", {"--format", "parquet"}), 2, {"predict: --format parquet needs --out FILE"});
  expect_error(predict("data", {"--out", root_ / "none/x.npy", "--row-number"}), 4, {"none/x.npy"});
}

TEST_F(PredictCommand, AnInterruptedOneLeavesNothing) {
  for (const std::string name : {"x.csv", "x.npy", "x.parquet"}) {
    if (name == "x.parquet" && !data::has_arrow_module()) continue;
    const auto before = root_.tree().size();
    test::ProgramOptions options;
    options.keep_open = true;
    Program program({"predict", root_ / "run", "-", "--id", "who", "--out", root_ / name}, options);
    std::string rows = "who,y,a,c\n";
    for (int r = 0; r < 40'001; ++r) rows += "u" + std::to_string(r) + ",1,2,c3\n";
    program.send(rows);
    program.signal(SIGINT);
    program.close_input();
    const Outcome outcome = program.wait();
    EXPECT_EQ(outcome.code, 130) << outcome.err;
    EXPECT_EQ(root_.tree().size(), before) << name;
  }
}

}  // namespace
}  // namespace tercel::cli
