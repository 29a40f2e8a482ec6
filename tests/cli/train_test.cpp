// train, eval, predict, info and doctor, from the command line.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "tercel/util/json_impl.h"
#include "tests/cli/program.h"
#include "tests/util/temporary_folder.h"

namespace tercel::cli {
namespace {

using test::expect_error;
using test::Outcome;
using test::run;
using test::TemporaryFolder;

/** Rows of a label, a number and a category, between commas. */
std::string rows(int64_t count, bool label) {
  std::string text = label ? "y,a,c\n" : "a,c\n";
  for (int64_t r = 0; r < count; ++r)
    text += (label ? (r % 3 == 0 ? "1," : "0,") : "") + std::to_string(r % 7) + ",c" + std::to_string(r % 5) + "\n";
  return text;
}

/** A dataset made of text, and a model trained on it in root_/run. */
class TrainCommands : public testing::Test {
 protected:
  void SetUp() override {
    root_.put("rows.csv", rows(400, true));
    ASSERT_EQ(run({"convert", "csv", root_ / "rows.csv", root_ / "data", "--label", "y", "--dense", "a",
                   "--categorical", "c", "--test-every", "4"})
                  .code,
              0);
    const Outcome trained = train({});
    ASSERT_EQ(trained.code, 0) << trained.err;
    EXPECT_NE(trained.out.find("trained 5 steps in "), std::string::npos) << trained.out;
  }

  Outcome train(std::vector<std::string> more) {
    std::vector<std::string> words = {"train", root_ / "data",       "--out", root_ / "run", "--threads", "1",
                                      "--set", "solver.batchsize=64"};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  }

  TemporaryFolder root_;
};

TEST_F(TrainCommands, PredictGivesTheSameForEveryKindOfInput) {
  root_.put("new.csv", rows(400, false));
  const Outcome of_text = run({"predict", root_ / "run", root_ / "new.csv"});
  ASSERT_EQ(of_text.code, 0) << of_text.err;
  EXPECT_TRUE(of_text.out.starts_with("probability\n0.")) << of_text.out.substr(0, 40);
  EXPECT_EQ(std::count(of_text.out.begin(), of_text.out.end(), '\n'), 401);
  test::ProgramOptions input;
  input.input = rows(400, false);
  const Outcome of_input = run({"predict", root_ / "run", "-"}, input);
  EXPECT_EQ(of_input.code, 0) << of_input.err;
  EXPECT_TRUE(of_input.out == of_text.out);
  // The test part: every fourth of the rows.
  ASSERT_EQ(run({"predict", root_ / "run", root_ / "data", "--out", root_ / "test.npy"}).code, 0);
  const std::string npy = root_.get("test.npy");
  ASSERT_GT(npy.size(), 400u);
  float third = 0;
  std::memcpy(&third, npy.data() + npy.size() - 400, sizeof(third));
  std::string line = of_text.out;
  for (int i = 0; i < 4; ++i) line = line.substr(line.find('\n') + 1);
  EXPECT_FLOAT_EQ(third, std::stof(line));
}

TEST_F(TrainCommands, EvalAndInfoShowWhatTrainingFound) {
  const Outcome evaluated = run({"eval", root_ / "run", root_ / "data", "--json"});
  ASSERT_EQ(evaluated.code, 0) << evaluated.err;
  const Json json = parse_json(evaluated.out, "eval", JsonErrors::Data);
  const std::string metrics = root_.get("run/metrics.jsonl");
  EXPECT_NE(metrics.find("\"auc\":" + json["auc"].dump()), std::string::npos) << evaluated.out << metrics;
  for (const std::string& folder : {root_ / "run", root_ / "run/checkpoints/step-000000000005", root_ / "data"})
    EXPECT_EQ(run({"info", folder}).code, 0) << folder;
  EXPECT_EQ(run({"doctor"}).code, 0);
}

TEST_F(TrainCommands, AFinishedRunSaysSo) {
  const Outcome again = train({"--resume", "auto"});
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_NE(again.out.find("nothing left to train after step 5; checkpoint "), std::string::npos) << again.out;
}

TEST_F(TrainCommands, MistakesAreOneLine) {
  const auto files = [this] {
    auto all = root_.tree();
    all.erase("run/lock");  // it holds the last process that asked for it
    return all;
  };
  const auto before = files();
  expect_error(train({}), 2, {"run: holds a run already", "--resume auto"});
  expect_error(run({"train", root_ / "data", "--out", root_ / "data"}), 4, {"expected a new folder or that of a run"});
  expect_error(run({"generate", root_ / "run", "--force", "--rows", "10"}), 4, {"holds no dataset.json"});
  expect_error(run({"train", root_ / "run"}), 3, {"expected a folder with dataset.json"});
  expect_error(run({"eval", root_ / "run", root_ / "rows.csv"}), 3, {"expected a dataset's folder, found a file"});
  expect_error(run({"predict", root_ / "data", root_ / "rows.csv"}), 3, {"no trained model"});
  expect_error(run({"convert", "csv", root_ / "rows.csv", root_ / "x"}), 2, {"option --label is missing"});
  expect_error(run({"convert", "norm", root_ / "x", "--nnz-per-slot", "1"}), 2, {"option --train-list is missing"});
  EXPECT_TRUE(before == files());
}

}  // namespace
}  // namespace tercel::cli
