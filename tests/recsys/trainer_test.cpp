#include "tercel/recsys/trainer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <limits>
#include <map>
#include <stdexcept>

#include "tercel/data/batch_reader.h"
#include "tercel/recsys/checkpoint.h"
#include "tercel/util/error.h"
#include "tests/recsys/training_data.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace tercel::recsys {
namespace {

using tercel::test::values_of;
using test::below;
using test::checkpoint_files;
using test::CleanProcess;
using test::differences;
using test::ignore;
using test::kLinearModel;
using test::plain_dataset;
using test::preset_config;
using test::small_dataset;
using test::stateful_config;
using test::TemporaryFolder;
using test::Tree;

TrainEnd train(const ModelConfig& config, const data::Dataset& dataset, const std::string& folder,
               Resume resume = Resume::Never) {
  Trainer trainer(config, dataset, folder, resume);
  EXPECT_EQ(trainer.warnings(), std::vector<std::string>());
  return trainer.run(ignore);
}

/** Trains until the evaluation after step k, stops there on request, and continues in a new trainer. */
void train_in_parts(ModelConfig config, const data::Dataset& dataset, const std::string& folder,
                    const std::vector<int64_t>& stops) {
  const CleanProcess clean;
  for (const int64_t stop : stops) {
    config.solver.eval_interval = stop;
    config.solver.checkpoint_interval = 1000;
    Trainer trainer(config, dataset, folder, Resume::Auto);
    const TrainEnd end = trainer.run([&](const Progress& now) {
      if (now.kind == Progress::Kind::Evaluation && now.step == stop) request_stop(SIGINT);
    });
    EXPECT_EQ(end, TrainEnd::Stopped);
    EXPECT_EQ(trainer.step(), stop);
    request_stop(0);
  }
  config.solver.eval_interval = 0;
  Trainer(config, dataset, folder, Resume::Auto).run(ignore);
}

TEST(Trainer, AFunctionMayStopIt) {
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 400);
  const CleanProcess clean;
  ModelConfig config = stateful_config();
  config.solver.eval_interval = 2;
  // It says so once; calls lie between steps and in evaluations.
  for (const int64_t at : {1, 2, 5, 7}) {
    int64_t calls = 0;
    const std::string run = root / ("run" + std::to_string(at));
    Trainer trainer(config, dataset, run, Resume::Never);
    calls = at;
    EXPECT_EQ(trainer.run(ignore, [&] { return --calls != 0; }), TrainEnd::Stopped) << at;
    EXPECT_LT(trainer.step(), 10) << at;
    EXPECT_EQ(trainer.last_checkpoint().has_value(), trainer.step() > 0) << at;
    if (trainer.step() == 0) continue;  // its folder is gone
    EXPECT_EQ(trainer.run(ignore), TrainEnd::Done) << at;
    EXPECT_EQ(trainer.step(), 10) << at;
  }
  Trainer never(config, dataset, root / "never", Resume::Never, NewData::Refuse, [] { return false; });
  EXPECT_EQ(never.run(ignore), TrainEnd::Stopped) << "in the constructor";
  EXPECT_FALSE(std::filesystem::exists(root / "never"));
}

TEST(Trainer, WhatAFunctionThrowsComesAfterASave) {
  const TemporaryFolder root;
  const CleanProcess clean;
  bool fails = false;
  const auto go_on = [&] {
    if (fails) throw std::range_error("mine");
    return true;
  };
  Trainer trainer(stateful_config(), small_dataset(root, 400), root / "run", Resume::Never);
  EXPECT_THROW(trainer.run([&](const Progress& now) { fails = now.step >= 3; }, go_on), std::range_error);
  ASSERT_TRUE(trainer.last_checkpoint());
  EXPECT_EQ(Checkpoint(*trainer.last_checkpoint()).info().step, trainer.step());
}

void expect_parts_equal_whole(const std::vector<std::string>& assignments) {
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 400);  // 300 train rows: 5 steps an epoch, the last one of 44 rows
  const ModelConfig config = stateful_config(assignments);
  ModelConfig whole = config;
  whole.solver.checkpoint_interval = 1000;
  whole.solver.keep_checkpoints = 1;
  EXPECT_EQ(train(whole, dataset, root / "whole"), TrainEnd::Done);
  const Tree expected = checkpoint_files(root, "whole");
  EXPECT_TRUE(expected.contains("step-000000000010/manifest.json"));
  const std::vector<int64_t> cases[] = {{1}, {4}, {5}, {9}, {2, 3, 7}};
  for (const std::vector<int64_t>& stops : cases) {
    ModelConfig parts = config;
    parts.solver.keep_checkpoints = 1;
    const std::string name = "parts-" + std::to_string(stops.front());
    train_in_parts(parts, dataset, root / name, stops);
    Tree found = checkpoint_files(root, name);
    // The best one, which is tested, may be an earlier one, which the whole run did not save.
    const auto is_other = [](const auto& file) {
      return !file.first.starts_with("step-000000000010/") || file.first.ends_with("/test.json");
    };
    std::erase_if(found, is_other);
    Tree last = expected;
    std::erase_if(last, is_other);
    EXPECT_EQ(differences(last, found), "") << "stopped first after step " << stops.front();
  }
}

TEST(TrainerThreads, PartsEqualTheWholeForEveryOptimizer) {
  const CleanProcess clean;
  for (const int64_t threads : {1, 2}) {
    set_num_threads(threads);
    for (const char* rule : {"SGD", "MomentumSGD", "Adam", "AdaGrad", "Ftrl"}) {
      SCOPED_TRACE(std::string(rule) + ", threads: " + std::to_string(threads));
      expect_parts_equal_whole({std::string("optimizer.type=") + rule, "data.shuffle=true", "data.shuffle_window=128"});
    }
  }
}

TEST(TrainerThreads, PartsEqualTheWholeWithoutShuffling) {
  const CleanProcess clean;
  set_num_threads(1);
  expect_parts_equal_whole({"optimizer.type=Adam", "solver.warmup_steps=4", "solver.decay_start=6",
                            "solver.decay_steps=3", "data.num_workers=3"});
}

TEST(TrainerThreads, RunsOfOneSeedAreIdenticalAndOthersAreNot) {
  const CleanProcess clean;
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 400);
  for (const int64_t threads : {1, 2}) {
    set_num_threads(threads);
    const std::string n = std::to_string(threads);
    train(stateful_config({"data.shuffle=true"}), dataset, root / ("a" + n));
    train(stateful_config({"data.shuffle=true"}), dataset, root / ("b" + n));
    train(stateful_config({"data.shuffle=true", "solver.seed=2"}), dataset, root / ("c" + n));
    EXPECT_EQ(differences(checkpoint_files(root, "a" + n), checkpoint_files(root, "b" + n)), "");
    EXPECT_NE(differences(checkpoint_files(root, "a" + n), checkpoint_files(root, "c" + n)), "");
  }
}

TEST(Trainer, EveryPresetContinuesBitForBit) {
  const CleanProcess clean;
  for (const std::string_view name : preset_names()) {
    SCOPED_TRACE(name);
    const TemporaryFolder root;
    const data::Dataset dataset = small_dataset(root, 2000);
    ModelConfig config =
        test::small_preset_config(name, {"solver.checkpoint_interval=1000", "solver.keep_checkpoints=1"});
    train(config, dataset, root / "whole");
    train_in_parts(config, dataset, root / "parts", {3});
    const std::string last = "step-000000000006/";
    Tree whole = checkpoint_files(root, "whole"), parts = checkpoint_files(root, "parts");
    ASSERT_TRUE(whole.contains(last + "manifest.json"));
    for (Tree* tree : {&whole, &parts})
      std::erase_if(*tree, [&](const auto& file) { return !file.first.starts_with(last); });
    EXPECT_EQ(differences(whole, parts), "");
  }
}

TEST(TrainerThreads, AnotherNumberOfThreadsIsAWarning) {
  const CleanProcess clean;
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 400);
  ModelConfig config = stateful_config({"solver.max_iter=3"});
  set_num_threads(1);
  train(config, dataset, root / "run");
  config.solver.max_iter = 0;
  set_num_threads(2);
  Trainer trainer(config, dataset, root / "run", Resume::Auto);
  ASSERT_EQ(trainer.warnings().size(), 2u);  // and of max_iter
  EXPECT_NE(trainer.warnings()[1].find("trained with 1 thread, this run has 2"), std::string::npos)
      << trainer.warnings()[1];
  EXPECT_EQ(trainer.step(), 3);
  EXPECT_EQ(trainer.run(ignore), TrainEnd::Done);
  EXPECT_EQ(trainer.step(), 10);
}

TEST(Trainer, TrainsEveryRowOfEveryEpoch) {
  const TemporaryFolder root;
  for (const int64_t batch : {1, 7, 14, 15}) {
    const data::Dataset dataset = small_dataset(root, 20, 0.25, "data-" + std::to_string(batch));
    ModelConfig config = preset_config("dlrm", {"solver.epochs=3", "solver.batchsize=" + std::to_string(batch)});
    Trainer trainer(config, dataset, root / ("run-" + std::to_string(batch)), Resume::Never);
    int64_t rows = 0, total = 0;
    EXPECT_EQ(trainer.run([&](const Progress& now) {
      if (now.kind == Progress::Kind::Step) rows = now.rows, total = now.total_steps;
    }),
              TrainEnd::Done);
    const int64_t steps = 3 * ((15 + batch - 1) / batch);
    EXPECT_EQ(rows, 3 * 15) << "batch " << batch;
    EXPECT_EQ(trainer.step(), steps);
    EXPECT_EQ(total, steps);
  }
}

TEST(Trainer, StepsAreThoseOfPlainGradientDescent) {
  const TemporaryFolder root;
  const auto value = [](int64_t r) { return static_cast<float>(r % 5) * 0.25f - 0.5f; };
  const auto label = [](int64_t r) { return r % 3 == 0 ? 1.0f : 0.0f; };
  const data::Dataset dataset = plain_dataset(root, 10, "data", value, label);
  Trainer trainer(parse_config(kLinearModel, "linear"), dataset, root / "run", Resume::Never);
  EXPECT_EQ(trainer.run(ignore), TrainEnd::Done);

  double w = 0, b = 0, table[4] = {};
  for (int64_t start = 0; start < 10; start += 4) {  // 4, 4 and 2 rows: the mean is over as many as there are
    const int64_t end = std::min<int64_t>(start + 4, 10);
    double dw = 0, db = 0, dt[4] = {};
    for (int64_t r = start; r < end; ++r) {
      const double x = double{value(r)}, logit = w * x + b + table[r % 4];
      const double g = (1 / (1 + std::exp(-logit)) - double{label(r)}) / static_cast<double>(end - start);
      dw += g * x;
      db += g;
      dt[r % 4] += g;
    }
    w -= 0.5 * dw;
    b -= 0.5 * db;
    for (int k = 0; k < 4; ++k) table[k] -= 0.5 * dt[k];
  }
  EXPECT_NEAR(values_of(trainer.model().parameters()[0])[0], w, 1e-6);
  EXPECT_NEAR(values_of(trainer.model().parameters()[1])[0], b, 1e-6);
  const std::vector<double> rows = values_of(trainer.model().embeddings().tables()[0]->weight());
  for (size_t k = 0; k < 4; ++k) EXPECT_NEAR(rows[k], table[k], 1e-6);
}

TEST(Trainer, EvaluationCountsEveryRowOnce) {
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 1003);
  for (const char* batch : {"1", "7", "250", "251", "8192"}) {
    ModelConfig config = preset_config("deepfm", {std::string("solver.batchsize_eval=") + batch, "solver.lr=0.05"});
    Trainer trainer(config, dataset, root / (std::string("run-") + batch), Resume::Never);
    EXPECT_EQ(trainer.run(ignore), TrainEnd::Done);

    std::vector<double> logits, labels;
    data::ReaderOptions options;
    options.batch_size = 100;
    options.inputs = trainer.model().sparse_inputs();
    data::BatchReader reader(dataset, data::PartName::Test, options);
    data::Batch rows;
    while (reader.next(rows)) {
      for (const double x : values_of(trainer.model().forward(rows).logits[0])) logits.push_back(x);
      for (const double y : values_of(rows.labels)) labels.push_back(y);
    }
    ASSERT_EQ(static_cast<int64_t>(logits.size()), dataset.test.rows());
    double above = 0, pairs = 0, loss = 0, right = 0, sum = 0, clicks = 0;
    for (size_t i = 0; i < logits.size(); ++i) {
      loss += std::log1p(std::exp(-std::abs(logits[i]))) + std::max(logits[i], 0.0) - logits[i] * labels[i];
      right += (logits[i] >= 0) == (labels[i] == 1);
      sum += 1 / (1 + std::exp(-logits[i]));
      clicks += labels[i];
      for (size_t j = 0; j < logits.size(); ++j)
        if (labels[i] == 1 && labels[j] == 0) {
          pairs += 1;
          above += logits[i] > logits[j] ? 1 : logits[i] == logits[j] ? 0.5 : 0;
        }
    }
    const auto n = static_cast<double>(logits.size());
    std::map<std::string, double> found;
    for (const auto& [name, metric] : trainer.last_metrics()) found[name] = metric;
    EXPECT_EQ(found.size(), 4u);
    EXPECT_NEAR(found["auc"], above / pairs, 1e-9);
    EXPECT_NEAR(found["log_loss"], loss / n, 1e-6);
    EXPECT_NEAR(found["accuracy"], right / n, 1e-9);
    EXPECT_NEAR(found["calibration"], sum / clicks, 1e-5);
  }
}

TEST(Trainer, LearnsWhatWasPlanted) {
  for (const std::string_view name : preset_names()) {
    const TemporaryFolder root;
    const data::Dataset dataset = small_dataset(root, 16000);
    ModelConfig config =
        test::small_preset_config(name, {"solver.checkpoint_interval=10000", "solver.eval_interval=1"});
    std::vector<double> losses;
    Trainer trainer(config, dataset, root / "run", Resume::Never);
    EXPECT_EQ(trainer.run([&](const Progress& now) {
      if (test::is_validation(now)) losses.push_back(now.metrics[1].second);
    }),
              TrainEnd::Done);
    ASSERT_EQ(losses.size(), 47u);
    EXPECT_LT(losses.back(), losses.front() - 0.05) << name;
    ASSERT_EQ(trainer.last_metrics()[0].first, "auc");
    // A field-aware model, with a vector of each key for each field, has learnt less after 47 steps.
    EXPECT_GT(trainer.last_metrics()[0].second, name == "ffm" ? 0.65 : 0.7) << name;
  }
}

TEST(Trainer, WorksWithoutATestPart) {
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 100, 0);
  Trainer trainer(preset_config("dcn", {"solver.batchsize=16", "data.validation=none"}), dataset, root / "run",
                  Resume::Never);
  EXPECT_EQ(trainer.run(ignore), TrainEnd::Done);
  EXPECT_TRUE(trainer.last_metrics().empty());
  EXPECT_EQ(list_checkpoints(root / "run/checkpoints").size(), 1u);
}

TEST(Trainer, TestRowsOfOneKindHaveNoAuc) {
  const TemporaryFolder root;
  const data::Dataset dataset = plain_dataset(
      root, 10, "data", [](int64_t r) { return static_cast<float>(r); }, [](int64_t) { return 0.0f; });
  Trainer trainer(parse_config(kLinearModel, "linear"), dataset, root / "run", Resume::Never);
  EXPECT_EQ(trainer.run(ignore), TrainEnd::Done);
  EXPECT_TRUE(std::isnan(trainer.last_metrics()[0].second));
  EXPECT_FALSE(Checkpoint(list_checkpoints(root / "run/checkpoints").back()).evaluation()->metrics[0].name == "auc");
}

TEST(Trainer, RefusesDataWithoutRows) {
  const TemporaryFolder root;
  const data::Dataset dataset = plain_dataset(
      root, 0, "data", [](int64_t) { return 0.0f; }, [](int64_t) { return 0.0f; });
  TERCEL_EXPECT_THROW(Trainer(parse_config(kLinearModel, "linear"), dataset, root / "run", Resume::Never), DataError,
                      "data: train: expected rows");
}

TEST(Trainer, ABatchMayBeLargerThanTheData) {
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 20, 0.25);
  const std::vector<std::string> large = {"solver.batchsize=16", "solver.epochs=3", "data.validation=none"};
  Trainer trainer(preset_config("dlrm", large), dataset, root / "run", Resume::Never);
  EXPECT_EQ(trainer.run(ignore), TrainEnd::Done);
  EXPECT_EQ(trainer.step(), 3) << "an epoch is one short batch";
  EXPECT_EQ(trainer.session().rows(), 3 * trainer.train_rows());
  TERCEL_EXPECT_THROW(Trainer(preset_config("dlrm", {"solver.batchsize=16", "data.drop_last=true"}), dataset,
                              root / "none", Resume::Never),
                      ConfigError, "'batch_size': expected at most 15");
}

TEST(Trainer, RefusesASecondWriter) {
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 40);
  const Trainer first(preset_config("dlrm", {"solver.batchsize=16"}), dataset, root / "run", Resume::Never);
  const Tree before = below(root, "run");
  for (const Resume resume : {Resume::Never, Resume::Auto})
    TERCEL_EXPECT_THROW(Trainer(preset_config("wdl", {"solver.batchsize=16"}), dataset, root / "run", resume), IoError,
                        "lock");
  EXPECT_EQ(differences(before, below(root, "run")), "") << "the second one changed nothing";
}

TEST(Trainer, RefusesAFolderWithARun) {
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 40);
  train(preset_config("dlrm", {"solver.batchsize=16"}), dataset, root / "run");
  const Tree before = below(root, "run");
  TERCEL_EXPECT_THROW(Trainer(preset_config("wdl", {"solver.batchsize=16"}), dataset, root / "run", Resume::Never),
                      ConfigError, "--resume auto");
  EXPECT_EQ(differences(before, below(root, "run")), "");
}

TEST(Trainer, AFinishedRunHasNothingToDo) {
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 400);
  train(stateful_config(), dataset, root / "run");
  const Tree before = checkpoint_files(root, "run");
  EXPECT_EQ(train(stateful_config(), dataset, root / "run", Resume::Auto), TrainEnd::Done);
  EXPECT_EQ(differences(before, checkpoint_files(root, "run")), "");
}

TEST(Trainer, StopsAfterTheStepWithACheckpoint) {
  const CleanProcess clean;
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 400);
  const ModelConfig config = stateful_config({"solver.checkpoint_interval=2"});
  {
    Trainer trainer(config, dataset, root / "run", Resume::Never);
    EXPECT_EQ(trainer.run([](const Progress& now) {
      if (now.kind == Progress::Kind::Checkpoint && now.step == 4) request_stop(SIGTERM);
    }),
              TrainEnd::Stopped);
    EXPECT_EQ(trainer.step(), 4);
  }
  {  // the stop request is still set: not a single step
    Trainer trainer(config, dataset, root / "run", Resume::Auto);
    EXPECT_EQ(trainer.step(), 4);
    EXPECT_EQ(trainer.run(ignore), TrainEnd::Stopped);
    EXPECT_EQ(trainer.step(), 4);
  }
  {  // before the first one: there is nothing to save
    Trainer trainer(config, dataset, root / "none", Resume::Never);
    EXPECT_EQ(trainer.run(ignore), TrainEnd::Stopped);
  }
  request_stop(0);
  EXPECT_FALSE(std::filesystem::exists(root / "none"));
  train(config, dataset, root / "none", Resume::Auto);
  train(config, dataset, root / "run", Resume::Auto);
  Tree none = checkpoint_files(root, "none"), run = checkpoint_files(root, "run");
  for (Tree* tree : {&none, &run})
    std::erase_if(*tree, [](const auto& file) { return !file.first.starts_with("step-000000000010/"); });
  EXPECT_EQ(none.size(), 7u);
  EXPECT_EQ(differences(none, run), "");
}

TEST(Trainer, MakesUpForAnEvaluationThatAStopPrevented) {
  const CleanProcess clean;
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 400);
  {
    Trainer trainer(stateful_config({"solver.eval_interval=2", "solver.max_iter=2"}), dataset, root / "run",
                    Resume::Never);
    EXPECT_EQ(trainer.run([](const Progress& now) {
      if (now.kind == Progress::Kind::Step && now.step == 2) request_stop(SIGINT);
    }),
              TrainEnd::Stopped);
    request_stop(0);
  }
  const ModelConfig config = stateful_config({"solver.eval_interval=2", "solver.max_iter=6"});
  std::vector<int64_t> evaluated;
  MetricValues last;
  {
    Trainer trainer(config, dataset, root / "run", Resume::Auto);
    trainer.run([&](const Progress& now) {
      if (test::is_validation(now)) evaluated.push_back(now.step);
    });
    last = trainer.last_metrics();
  }
  EXPECT_EQ(evaluated, (std::vector<int64_t>{2, 4, 6}));
  Trainer again(config, dataset, root / "run", Resume::Auto);  // and does none twice
  again.run([](const Progress& now) { EXPECT_NE(now.kind, Progress::Kind::Evaluation); });
  EXPECT_EQ(again.last_metrics(), last);
}

TEST(Trainer, AnEvaluationThatWasMadeUpForIsInTheCheckpoint) {
  const CleanProcess clean;
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 400);
  const ModelConfig config = stateful_config({"solver.max_iter=2"});
  {
    Trainer trainer(config, dataset, root / "run", Resume::Never);
    trainer.run([](const Progress& now) {
      if (now.kind == Progress::Kind::Step && now.step == 2) request_stop(SIGINT);
    });
    request_stop(0);
  }
  const std::string last = list_checkpoints(root / "run/checkpoints").back();
  EXPECT_FALSE(Checkpoint(last).evaluation());
  train(config, dataset, root / "run", Resume::Auto);
  EXPECT_TRUE(Checkpoint(last).evaluation());
  train(config, dataset, root / "whole");
  EXPECT_EQ(differences(checkpoint_files(root, "whole"), checkpoint_files(root, "run")), "");
  Trainer again(config, dataset, root / "run", Resume::Auto);
  again.run([](const Progress& now) { EXPECT_NE(now.kind, Progress::Kind::Evaluation); });
}

TEST(Trainer, RefusesAFolderOfSomethingElse) {
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 400);
  root.put("mine/notes.txt", "keep me");
  for (const std::string& folder : {root / "mine", dataset.folder}) {
    const auto before = root.tree();
    TERCEL_EXPECT_THROW(Trainer(stateful_config(), dataset, folder, Resume::Never), IoError,
                        "expected a new folder or a run folder");
    EXPECT_EQ(differences(before, root.tree()), "");
  }
}

TEST(Trainer, NanLossNamesTheFirstLayer) {
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 400);
  const auto value = [](int64_t) { return 3e38f; };
  const auto label = [](int64_t) { return 1.0f; };
  const data::Dataset huge = plain_dataset(root, 10, "huge", value, label);
  {
    ModelConfig config = parse_config(kLinearModel, "linear");
    set_config(config, "solver.lr=1e30");
    Trainer trainer(config, huge, root / "overflow", Resume::Never);
    try {
      trainer.run(ignore);
      ADD_FAILURE() << "no error";
    } catch (const NumericError& e) {
      const std::string text = e.what();
      EXPECT_NE(text.find("step 2: the loss is "), std::string::npos) << text;
      EXPECT_NE(text.find("InnerProduct wx"), std::string::npos) << text;
    }
  }
  {  // the last update, whose loss is not computed
    ModelConfig config = parse_config(kLinearModel, "linear");
    for (const char* set : {"solver.lr=1e30", "solver.max_iter=1"}) set_config(config, set);
    Trainer trainer(config, huge, root / "last", Resume::Never);
    TERCEL_EXPECT_THROW(trainer.run(ignore), NumericError, "step 1: its update made wx.weight NaN or infinite");
    EXPECT_TRUE(list_checkpoints(root / "last/checkpoints").empty());
  }
  {  // a table's row
    Trainer trainer(preset_config("dlrm"), dataset, root / "table", Resume::Never);
    const Tensor& weight = trainer.model().embeddings().tables()[0]->weight();
    for (int64_t i = 0; i < weight.numel(); ++i) weight.data<float>()[i] = std::numeric_limits<float>::quiet_NaN();
    TERCEL_EXPECT_THROW(trainer.run(ignore), NumericError, "DistributedSlotSparseEmbeddingHash embedding");
    EXPECT_TRUE(list_checkpoints(root / "table/checkpoints").empty()) << "broken state is not saved";
  }
  {  // in the middle
    Trainer trainer(preset_config("dlrm"), dataset, root / "middle", Resume::Never);
    for (const auto& entry : trainer.model().parameters().entries())
      if (entry.name == "logit.1.weight") entry.tensor.data<float>()[0] = std::numeric_limits<float>::infinity();
    TERCEL_EXPECT_THROW(trainer.run(ignore), NumericError, "MLP logit");
  }
}

TEST(Trainer, AStateThatIsNotFiniteIsNotSaved) {
  const TemporaryFolder root;
  const data::Dataset huge = plain_dataset(
      root, 10, "huge", [](int64_t) { return 1e25f; }, [](int64_t) { return 1.0f; });
  ModelConfig config = parse_config(kLinearModel, "linear");
  for (const char* set : {"optimizer.type=Adam", "solver.max_iter=1"}) set_config(config, set);
  Trainer trainer(config, huge, root / "run", Resume::Never);
  // The square of the gradient is infinite; weight and loss stay finite, so no later loss would show it.
  TERCEL_EXPECT_THROW(trainer.run(ignore), NumericError, "step 1: its update made wx.weight/v NaN or infinite");
  EXPECT_TRUE(list_checkpoints(root / "run/checkpoints").empty());
}

TEST(Trainer, WritesALineForEachReport) {
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 400);
  train(stateful_config({"solver.eval_interval=2"}), dataset, root / "run");
  const std::string lines = root.get("run/metrics.jsonl");
  int64_t evaluations = 0;
  for (size_t at = 0; (at = lines.find("\"kind\":\"evaluation\"", at)) != std::string::npos; ++at) ++evaluations;
  EXPECT_EQ(evaluations, 6) << "five on validation rows, one on the test part";
  for (const char* key : {"\"kind\":\"train\"", "\"step\":10", "\"loss\":", "\"auc\":", "\"learning_rate\":"})
    EXPECT_NE(lines.find(key), std::string::npos) << key;
  EXPECT_EQ(lines.back(), '\n');
}

TEST(Trainer, ResumingForgetsWhatAKilledRunWroteInVain) {
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 400);
  const ModelConfig config = stateful_config({"solver.eval_interval=2"});
  train(config, dataset, root / "run");
  const std::string lines = root.get("run/metrics.jsonl");
  root.put("run/metrics.jsonl", lines + "{\"kind\":\"evaluation\",\"step\":99}\n{\"kind\":\"tr");
  const Trainer trainer(config, dataset, root / "run", Resume::Auto);
  EXPECT_EQ(root.get("run/metrics.jsonl"), lines);
}

}  // namespace
}  // namespace tercel::recsys
