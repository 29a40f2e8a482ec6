// Validation, the best model and the early end of a run.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tercel/recsys/checkpoint.h"
#include "tercel/recsys/evaluate.h"
#include "tercel/recsys/prediction.h"
#include "tests/recsys/training_data.h"
#include "tests/support/errors.h"

namespace tercel::recsys {
namespace {

using test::checkpoint_files;
using test::CleanProcess;
using test::differences;
using test::ignore;
using test::small_dataset;
using test::stateful_config;
using test::TemporaryFolder;

constexpr auto kAlways = [](int64_t) { return true; };

/** A model that soon learns its rows by heart. */
ModelConfig greedy_config() {
  ModelConfig config = stateful_config({"solver.lr=0.2", "solver.batchsize=16", "data.shuffle=true"});
  config.solver.epochs = 0;
  return config;
}

double log_loss_of(const Progress& now) {
  EXPECT_EQ(now.metrics.at(1).first, "log_loss");
  return now.metrics.at(1).second;
}

data::Dataset without_valid(const TemporaryFolder& root) {
  data::Dataset dataset = small_dataset(root, 1200);
  dataset.valid = {};
  return dataset;
}

TEST(EarlyStop, EndsWithTheBestModelAndTestsThatOnce) {
  const TemporaryFolder root;
  const CleanProcess clean;
  const data::Dataset dataset = without_valid(root);
  ModelConfig config = greedy_config();
  config.solver.batchsize = 8;
  Trainer trainer(config, dataset, root / "run", Resume::Never);
  EXPECT_EQ(trainer.session().validation_rows(), 90);
  EXPECT_EQ(trainer.session().train_reader().epoch_rows(), 810);
  std::vector<std::pair<int64_t, double>> valid;
  std::vector<int64_t> tested;
  EXPECT_EQ(trainer.run([&](const Progress& now) {
    if (now.kind != Progress::Kind::Evaluation) return;
    if (now.part == data::PartName::Test)
      tested.push_back(now.step);
    else
      valid.emplace_back(now.step, log_loss_of(now));
  }),
            TrainEnd::Early);
  ASSERT_GE(valid.size(), 3u);
  for (size_t i = 0; i < valid.size(); ++i) EXPECT_EQ(valid[i].first, static_cast<int64_t>(i + 1) * 102);  // of epochs
  const auto best =
      std::min_element(valid.begin(), valid.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  EXPECT_EQ(valid.end() - best, 3) << "the best and two more";
  EXPECT_EQ(tested, std::vector<int64_t>{best->first});
  const RunResult& result = trainer.result();
  EXPECT_EQ(result.best_step, best->first);
  EXPECT_EQ(result.valid.at(1).second, best->second);
  EXPECT_EQ(result.validations, static_cast<int64_t>(valid.size()));
  EXPECT_EQ(trainer.step(), valid.back().first);
  EXPECT_EQ(trainer.session().steps(), best->first);
  EXPECT_EQ(trainer.session().evaluate(kAlways), result.test);
  EXPECT_EQ(trainer.session().evaluate(data::PartName::Valid, kAlways), result.valid);
  EXPECT_EQ(trainer.run(ignore), TrainEnd::Early) << "there is nothing left to do";
  LoadedModel loaded = load_model(root / "run");
  EXPECT_EQ(loaded.step, best->first);
  EXPECT_EQ(evaluate(loaded.model, dataset, data::PartName::Test, loaded.config, kAlways), result.test);
}

TEST(EarlyStop, ResumedRunsEndWhereOthersDo) {
  const TemporaryFolder root;
  const CleanProcess clean;
  const data::Dataset dataset = without_valid(root);
  const ModelConfig config = greedy_config();
  RunResult expected;
  int64_t steps = 0;
  {
    Trainer whole(config, dataset, root / "whole", Resume::Never);
    EXPECT_EQ(whole.run(ignore), TrainEnd::Early);
    expected = whole.result();
    steps = whole.step();
  }
  // Stopped after every step, in training and in evaluations: in a new process each time.
  TrainEnd end = TrainEnd::Stopped;
  for (int64_t parts = 0; end == TrainEnd::Stopped; ++parts) {
    ASSERT_LT(parts, 200);
    Trainer part(config, dataset, root / "parts", Resume::Auto);
    int64_t calls = parts % 3 == 0 ? 9 : 5;
    end = part.run(ignore, [&] { return --calls > 0; });
    if (end == TrainEnd::Stopped) continue;
    EXPECT_EQ(part.step(), steps);
    EXPECT_EQ(part.result().best_step, expected.best_step);
    EXPECT_EQ(part.result().valid, expected.valid);
    EXPECT_EQ(part.result().test, expected.test);
  }
  EXPECT_EQ(end, TrainEnd::Early);
  Trainer again(config, dataset, root / "parts", Resume::Auto);
  EXPECT_EQ(again.run(ignore), TrainEnd::Early);
  EXPECT_EQ(again.step(), steps);
  EXPECT_EQ(again.result().test, expected.test);
}

TEST(EarlyStop, AValidationSavedWithItsStepCountsOnce) {
  const TemporaryFolder root;
  const CleanProcess clean;
  const data::Dataset dataset = without_valid(root);
  ModelConfig config = greedy_config();
  set_config(config, "solver.eval_interval=5");
  set_config(config, "solver.checkpoint_interval=100000");  // so that stops alone write checkpoints
  config.solver.early_stop = 3;
  int64_t steps = 0;
  {
    Trainer whole(config, dataset, root / "whole", Resume::Never);
    EXPECT_EQ(whole.run(ignore), TrainEnd::Early);
    steps = whole.step();
  }
  TrainEnd end = TrainEnd::Stopped;
  for (int64_t parts = 0; end == TrainEnd::Stopped; ++parts) {
    ASSERT_LT(parts, 200);
    Trainer part(config, dataset, root / "parts", Resume::Auto);
    bool validated = false;
    end = part.run([&](const Progress& now) { validated |= now.kind == Progress::Kind::Evaluation; },
                   [&] { return !validated; });
    EXPECT_EQ(part.step() % 5, 0) << "stopped after a validation";
    if (end != TrainEnd::Stopped) {
      EXPECT_EQ(part.step(), steps);
    }
  }
  EXPECT_EQ(end, TrainEnd::Early);
}

TEST(EarlyStop, ValidationsThatGiveNothingToCompareDoNotEndARun) {
  const TemporaryFolder root;
  const CleanProcess clean;
  data::Dataset dataset = test::plain_dataset(
      root, 200, "ones", [](int64_t r) { return static_cast<float>(r % 7); }, [](int64_t) { return 1.0f; });
  dataset.valid = {};
  ModelConfig config = parse_config(test::kLinearModel, "linear");
  config.solver.epochs = 6;
  config.solver.early_stop = 2;
  config.solver.metrics = {"auc"};
  Trainer trainer(config, dataset, root / "run", Resume::Never);
  EXPECT_EQ(trainer.run(ignore), TrainEnd::Done) << "rows of one class have no AUC";
  EXPECT_GT(trainer.result().validations, 2);
}

TEST(EarlyStop, WithoutItARunGoesOnAndTakesTheBestModel) {
  const TemporaryFolder root;
  const CleanProcess clean;
  const data::Dataset dataset = without_valid(root);
  ModelConfig config = greedy_config();
  config.solver.epochs = 6;
  set_config(config, "solver.lr=0.4");
  Trainer trainer(config, dataset, root / "run", Resume::Never);
  std::vector<double> losses;
  EXPECT_EQ(trainer.run([&](const Progress& now) {
    if (now.kind == Progress::Kind::Evaluation && now.part == data::PartName::Valid) losses.push_back(log_loss_of(now));
  }),
            TrainEnd::Done);
  ASSERT_EQ(losses.size(), 6u) << "once in each epoch";
  EXPECT_EQ(trainer.step(), 6 * 51);
  const auto best = std::min_element(losses.begin(), losses.end()) - losses.begin();
  EXPECT_LT(best, 5);
  EXPECT_EQ(trainer.result().best_step, (best + 1) * 51);
}

TEST(EarlyStop, RowsOfOneClassAreComparedByLogLoss) {
  const TemporaryFolder root;
  const CleanProcess clean;
  data::Dataset dataset = test::plain_dataset(
      root, 200, "ones", [](int64_t r) { return static_cast<float>(r % 7); }, [](int64_t) { return 1.0f; });
  dataset.valid = {};
  ModelConfig config = parse_config(test::kLinearModel, "linear");
  config.solver.epochs = 3;
  Trainer trainer(config, dataset, root / "run", Resume::Never);
  EXPECT_EQ(trainer.run(ignore), TrainEnd::Done);
  EXPECT_EQ(trainer.result().best_step, trainer.step()) << "the loss falls";
}

TEST(EarlyStop, OtherValidationRowsBeginAnew) {
  const TemporaryFolder root;
  const CleanProcess clean;
  const data::Dataset dataset = without_valid(root);
  ModelConfig config = greedy_config();
  {
    Trainer trainer(config, dataset, root / "run", Resume::Never);
    EXPECT_EQ(trainer.run(ignore), TrainEnd::Early);
  }
  data::Dataset other = small_dataset(root, 1200, 0.25, "other", /*seed=*/7);
  other.valid = {};
  config.solver.epochs = 2;
  Trainer trainer(config, other, root / "run", Resume::Auto, NewData::Accept);
  const int64_t before = trainer.step();
  EXPECT_EQ(trainer.run(ignore), TrainEnd::Done) << "earlier validations do not count";
  EXPECT_EQ(trainer.step(), before + 2 * 51);
  EXPECT_GE(trainer.result().best_step, before);
}

TEST(EarlyStop, TheModelBeforeNewRowsCanStayTheBest) {
  const TemporaryFolder root;
  const CleanProcess clean;
  const data::Dataset dataset = without_valid(root);
  ModelConfig config = greedy_config();
  int64_t before = 0;
  {
    Trainer trainer(config, dataset, root / "run", Resume::Never);
    trainer.run(ignore);
    before = trainer.step();
  }
  data::Dataset other = small_dataset(root, 1200, 0.25, "other", /*seed=*/7);
  other.valid = {};
  config.solver.epochs = 2;
  set_config(config, "solver.lr=2");  // too large: each further step makes it worse
  Trainer trainer(config, other, root / "run", Resume::Auto, NewData::Accept);
  EXPECT_EQ(trainer.run(ignore), TrainEnd::Done);
  EXPECT_EQ(trainer.result().best_step, before);
  EXPECT_EQ(trainer.session().steps(), before);
  EXPECT_EQ(trainer.session().evaluate(kAlways), trainer.result().test);
}

}  // namespace
}  // namespace tercel::recsys
