#include "tercel/recsys/tune.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "tercel/util/file.h"
#include "tercel/util/format.h"
#include "tests/recsys/training_data.h"
#include "tests/support/errors.h"

namespace tercel::recsys {
namespace {

using test::CleanProcess;
using test::small_dataset;
using test::TemporaryFolder;

constexpr auto kAlways = [] { return true; };

ModelConfig config_of() {
  ModelConfig config = parse_config(preset("wdl"), "wdl");
  config.solver.batchsize = 64;
  return config;
}

std::vector<SearchRange> rates() { return {parse_search("solver.lr=log:0.00001:0.1")}; }

TuneOptions small_search() {
  TuneOptions options;
  options.trials = 9;
  options.epochs = 3;
  options.first_epochs = 0.4;
  return options;
}

void ignore(const TuneProgress&) {}

std::string text_of(const std::vector<Trial>& trials) {
  std::string text;
  for (const Trial& trial : trials)
    text += std::to_string(trial.number) + " " + std::to_string(trial.rung) + " " + std::to_string(trial.score) + " " +
            std::to_string(trial.best_step) + " " + std::to_string(trial.steps) + "\n";
  return text;
}

TEST(Tune, GoesOnWithTheBestTrials) {
  const TemporaryFolder root;
  const CleanProcess clean;
  const data::Dataset dataset = small_dataset(root, 3000);
  std::map<int64_t, int64_t> runs;  // by comparison
  const TuneResult result = tune(
      config_of(), dataset, rates(), small_search(), root / "tune", Resume::Never,
      [&](const TuneProgress& now) {
        if (now.training == nullptr) ++runs[now.rung];
      },
      kAlways);
  EXPECT_FALSE(result.stopped);
  EXPECT_EQ(runs, (std::map<int64_t, int64_t>{{0, 9}, {1, 3}, {2, 1}})) << "after 0.4, 1.2 and 3 epochs";
  ASSERT_EQ(result.trials.size(), 9u);
  EXPECT_EQ(result.trials[0].rung, 2);
  for (size_t i = 1; i < 9; ++i) EXPECT_EQ(result.trials[i].rung, i < 3 ? 1 : 0);
  for (size_t i = 1; i < 9; ++i)
    if (i != 1 && i != 3) {
      EXPECT_GE(result.trials[i - 1].score, result.trials[i].score);
    }
  EXPECT_GT(result.trials[0].score, -0.6) << "minus the log loss";
  const ModelConfig best = parse_config(root.get("tune/best.json"), "best.json");
  if (!result.trials[0].assignments.empty()) {
    EXPECT_EQ("solver.lr=" + format_double(best.solver.lr), result.trials[0].assignments[0]);
  }
  const std::string number = std::to_string(result.trials[0].number);
  EXPECT_TRUE(std::filesystem::exists(root / ("tune/trial-" + number + "/checkpoints")));
  const std::string last = std::to_string(result.trials[8].number);
  EXPECT_FALSE(std::filesystem::exists(root / ("tune/trial-" + last + "/checkpoints"))) << "only the record is kept";
  EXPECT_EQ(root.get("tune/trial-" + number + "/metrics.jsonl").find("\"test\""), std::string::npos);
}

TEST(Tune, AResumedSearchFindsTheSame) {
  const TemporaryFolder root;
  const CleanProcess clean;
  const data::Dataset dataset = small_dataset(root, 3000);
  const TuneResult whole =
      tune(config_of(), dataset, rates(), small_search(), root / "whole", Resume::Never, ignore, kAlways);
  TuneResult parts;
  parts.stopped = true;
  for (int64_t i = 0; parts.stopped; ++i) {
    ASSERT_LT(i, 200);
    int64_t calls = 0;
    const int64_t most = 25 + i % 7;
    parts = tune(config_of(), dataset, rates(), small_search(), root / "parts", Resume::Auto, ignore,
                 [&] { return ++calls < most; });
    if (parts.stopped) {
      EXPECT_FALSE(std::filesystem::exists(root / "parts/best.json"));
    }
  }
  EXPECT_EQ(text_of(parts.trials), text_of(whole.trials));
  EXPECT_EQ(root.get("parts/best.json"), root.get("whole/best.json"));
  const TuneResult again = tune(
      config_of(), dataset, rates(), small_search(), root / "parts", Resume::Auto,
      [](const TuneProgress&) { ADD_FAILURE() << "there is nothing left to do"; }, kAlways);
  EXPECT_EQ(text_of(again.trials), text_of(whole.trials));
}

TEST(Tune, ATrialThatFailsIsTheLast) {
  const TemporaryFolder root;
  const CleanProcess clean;
  const data::Dataset dataset = small_dataset(root, 1000);
  TuneOptions options = small_search();
  options.trials = 4;
  options.epochs = 1;
  ModelConfig config = config_of();
  config.optimizer.type = optim::Rule::Sgd;
  const TuneResult result = tune(config, dataset, std::vector{parse_search("solver.lr=1e38")}, options, root / "tune",
                                 Resume::Never, ignore, kAlways);
  EXPECT_EQ(result.trials[0].number, 0);
  EXPECT_TRUE(result.trials[0].has_score);
  for (size_t i = 1; i < 4; ++i) {
    EXPECT_FALSE(result.trials[i].has_score);
    EXPECT_NE(result.trials[i].error.find("step "), std::string::npos) << result.trials[i].error;
  }
}

TEST(Tune, OneSearchAtATimeInAFolder) {
  const TemporaryFolder root;
  const CleanProcess clean;
  const data::Dataset dataset = small_dataset(root, 1000);
  const auto search = [&](bool goes_on) {
    return tune(config_of(), dataset, rates(), small_search(), root / "tune", Resume::Auto, ignore,
                [goes_on] { return goes_on; });
  };
  EXPECT_TRUE(search(false).stopped);
  root.put("tune/tune.json.tmp-0badcafe", "of a killed process");
  {
    const FileLock other(root / "tune/lock");
    TERCEL_EXPECT_THROW(search(true), IoError, "tune/lock");
  }
  EXPECT_TRUE(search(false).stopped);
  EXPECT_FALSE(std::filesystem::exists(root / "tune/tune.json.tmp-0badcafe"));
  // Killed before it had saved anything.
  std::filesystem::remove(root / "tune/tune.json");
  root.put("tune/tune.json.tmp-0badcafe", "");
  EXPECT_TRUE(search(false).stopped);
}

TEST(Tune, MistakesAreReportedFirst) {
  const TemporaryFolder root;
  const CleanProcess clean;
  data::Dataset dataset = small_dataset(root, 1000);
  const auto tuned = [&](std::string_view search, TuneOptions options = small_search(), Resume resume = Resume::Auto) {
    return tune(config_of(), dataset, std::vector{parse_search(search)}, options, root / "tune", resume, ignore,
                [] { return false; });
  };
  TERCEL_EXPECT_THROW(tuned("solver.rate=1,2"), ConfigError, "[--search solver] unknown option 'rate'");
  TERCEL_EXPECT_THROW(tuned("layers.embedding.sparse_embedding_hparam.embedding_vec_size=-3"), ConfigError,
                      "embedding_vec_size");
  EXPECT_FALSE(std::filesystem::exists(root / "tune"));
  EXPECT_TRUE(tuned("solver.lr=0.1,0.2").stopped);
  TERCEL_EXPECT_THROW(tuned("solver.lr=0.1,0.2", small_search(), Resume::Never), ConfigError, "--resume auto");
  TERCEL_EXPECT_THROW(tuned("solver.lr=0.1,0.3,0.4,0.5"), ConfigError, "contains another search");
  TuneOptions other = small_search();
  other.reduction = 2;
  TERCEL_EXPECT_THROW(tuned("solver.lr=0.1,0.2", other), ConfigError, "its options differ");
  root.put("tune/tune.json", "{");
  TERCEL_EXPECT_THROW(tuned("solver.lr=0.1,0.2"), DataError, "tune.json");
  root.put("other/file", "mine");
  TERCEL_EXPECT_THROW(
      tune(config_of(), dataset, rates(), small_search(), root / "other", Resume::Auto, ignore, kAlways), ConfigError,
      "expected a new folder or that of a search");
  dataset = small_dataset(root, 60, 0.25, "few");
  dataset.valid = {};
  TERCEL_EXPECT_THROW(tuned("solver.lr=0.1,0.2"), ConfigError, "expected validation rows");
}

}  // namespace
}  // namespace tercel::recsys
