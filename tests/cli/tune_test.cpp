// tercel tune, and train --refit.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <string>
#include <vector>

#include "tercel/recsys/model/config.h"
#include "tercel/util/json_impl.h"
#include "tests/cli/program.h"
#include "tests/util/temporary_folder.h"

namespace tercel::cli {
namespace {

using test::expect_error;
using test::Outcome;
using test::run;
using test::TemporaryFolder;

Json json_of(const Outcome& outcome) {
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return parse_json(outcome.out, "stdout", JsonErrors::Data);
}

TEST(TuneCommand, FindsAConfigurationThatTrains) {
  const TemporaryFolder root;
  ASSERT_EQ(run({"generate", root / "data", "--preset", "small", "--rows", "4000"}).code, 0);
  const std::vector<std::string> words = {
      "tune", root / "data", "--model", "wdl",   "--search",    "solver.lr=log:0.0001:0.1", "--trials", "3", "--epochs",
      "1",    "--threads",   "1",       "--out", root / "tuned"};
  const Outcome tuned = run(words);
  ASSERT_EQ(tuned.code, 0) << tuned.err;
  for (const char* text : {"after 0.5 epochs: trial 2: log_loss 0.", "after 1 epoch: trial ", "best trials:\n  trial ",
                           "train the best one with: tercel train "})
    EXPECT_NE(tuned.out.find(text), std::string::npos) << tuned.out;
  std::vector<std::string> again = words;
  for (const char* word : {"--resume", "auto", "--json"}) again.emplace_back(word);
  const Json json = json_of(run(again));
  EXPECT_EQ(json["end"], "done");
  ASSERT_EQ(json["trials"].size(), 3u);
  EXPECT_EQ(json["trials"][0]["rung"], 1);
  const Json trained = json_of(run({"train", root / "data", "--model", json["best"].get<std::string>(), "--out",
                                    root / "run", "--json", "--threads", "1"}));
  EXPECT_GT(trained["test"]["auc"], 0.6);
  expect_error(run(words), 2, {"already contains a search"});
  expect_error(run({"tune", root / "data", "--out", root / "x", "--search", "solver.lr=log:1"}), 2,
               {"--search solver.lr=log:1: expected log:LOW:HIGH"});
  expect_error(run({"tune", root / "data", "--out", root / "x", "--search", "solver.rate=1,2"}), 2,
               {"unknown option 'rate'"});
  expect_error(run({"tune", root / "data"}), 2, {"--out"});
  expect_error(run({"tune", root / "data", "--out", root / "x", "--weight", "w"}), 2, {"has no further column 'w'"});
  const Outcome failing =
      run({"tune", root / "data", "--out", root / "failing", "--model", "wdl", "--search", "solver.lr=1e30,1e31",
           "--set", "optimizer.type=SGD", "--set", "solver.lr=1e30", "--trials", "3"});
  EXPECT_EQ(failing.code, 2);
  EXPECT_NE(
      failing.err.find("tune: expected a trial with a score, found none; trial 0 ended with: step 2: the loss is"),
      std::string::npos)
      << failing.err;
  EXPECT_FALSE(std::filesystem::exists(root / "x"));
}

TEST(RefitFlag, TrainsTheFinalModelOnAllRows) {
  const TemporaryFolder root;
  ASSERT_EQ(run({"generate", root / "data", "--preset", "small", "--rows", "4000"}).code, 0);
  const std::vector<std::string> words = {"train",      root / "data", "--model",   "wdl", "--out",
                                          root / "run", "--refit",     "--threads", "1",   "--json"};
  const Json json = json_of(run(words));
  EXPECT_EQ(json["run"], root / "run");
  EXPECT_FALSE(json.contains("valid"));
  const Json& selection = json["selection"];
  EXPECT_EQ(selection["run"], root / "run-selection");
  EXPECT_FALSE(selection["valid"].empty());
  // 3,600 train rows, of which 3,240 were trained before.
  const auto steps = selection["best_step"].get<int64_t>();
  EXPECT_NEAR(json["step"].get<double>(), static_cast<double>(steps) / 0.9, 0.51);
  EXPECT_GT(json["test"]["auc"], 0.6);
  std::vector<std::string> again = words;
  for (const char* word : {"--resume", "auto"}) again.emplace_back(word);
  const Json resumed = json_of(run(again));
  EXPECT_EQ(resumed["rows"], 0) << "nothing was left to train";
  EXPECT_EQ(resumed["test"], json["test"]);
  // Without --model it is that of the run, also before the second one has begun.
  std::vector<std::string> same;
  std::copy_if(again.begin(), again.end(), std::back_inserter(same),
               [](const std::string& word) { return word != "--model" && word != "wdl"; });
  EXPECT_EQ(json_of(run(same))["test"], json["test"]);
  std::filesystem::remove_all(root / "run");
  EXPECT_EQ(json_of(run(same))["test"], json["test"]);
  expect_error(run(words), 2, {"already exists; continue it with --resume auto"});
  expect_error(run({"train", root / "data", "--out", root / "none", "--refit", "--validation", "none"}), 2,
               {"--refit needs validation rows"});
}

TEST(InitFrom, BeginsWithAnotherRunAndLeavesNothingIfItCannot) {
  const TemporaryFolder root;
  ASSERT_EQ(run({"generate", root / "data", "--preset", "small", "--rows", "2000"}).code, 0);
  const std::vector<std::string> one = {"--epochs", "1", "--threads", "1"};
  const auto train = [&](const std::string& out, std::vector<std::string> more) {
    std::vector<std::string> words = {"train", root / "data", "--out", root / out};
    words.insert(words.end(), one.begin(), one.end());
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  };
  ASSERT_EQ(train("first", {"--model", "wdl"}).code, 0);
  const Outcome second = train("second", {"--model", "wdl", "--init-from", root / "first"});
  EXPECT_EQ(second.code, 0) << second.err;
  EXPECT_NE(second.out.find("begins with 6 dense tensors and "), std::string::npos) << second.out;
  expect_error(train("none", {"--model", "wdl", "--init-from", root / "data"}), 3, {"data"});
  expect_error(train("none", {"--model", "dlrm", "--init-from", root / "first", "--set",
                              "layers.embedding.sparse_embedding_hparam.embedding_vec_size=8", "--set",
                              "layers.bottom.mlp_param.num_outputs=64,32,8", "--quiet"}),
               2, {"first: no weight of this model fits: "});
  EXPECT_FALSE(std::filesystem::exists(root / "none"));
}

TEST(TrainFlags, AreShortForEntries) {
  const Json config = json_of(run({"train", "--print-config", "--lr", "0.5", "--batch-size", "77", "--optimizer", "SGD",
                                   "--seed", "9", "--early-stop", "3", "--epochs", "2", "--validation", "held_out"}));
  EXPECT_EQ(config["solver"]["lr"], 0.5);
  EXPECT_EQ(config["solver"]["batchsize"], 77);
  EXPECT_EQ(config["solver"]["seed"], 9);
  EXPECT_EQ(config["solver"]["early_stop"], 3);
  EXPECT_EQ(config["solver"]["epochs"], 2);
  EXPECT_EQ(config["optimizer"]["type"], "SGD");
  EXPECT_EQ(config["data"]["validation"], "held_out");
  expect_error(run({"train", "--print-config", "--lr", "fast"}), 2, {"--lr", "fast"});
  expect_error(run({"train", "--print-config", "--optimizer", "Adm"}), 2, {"--optimizer", "did you mean 'Adam'"});
}

TEST(TrainFlags, HelpNamesTheShippedModels) {
  std::string help = run({"train", "--help"}).out;
  std::replace(help.begin(), help.end(), '\n', ' ');
  const size_t list = help.find("a shipped model (");
  ASSERT_NE(list, std::string::npos) << help;
  const std::string names = " " + help.substr(list + 17, help.find(')', list) - list - 17) + ",";
  for (const std::string_view name : recsys::preset_names())
    EXPECT_NE(names.find(" " + std::string(name) + ","), std::string::npos) << name << ": " << names;
}

}  // namespace
}  // namespace tercel::cli
