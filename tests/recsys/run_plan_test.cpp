#include "tercel/recsys/run_plan.h"

#include <gtest/gtest.h>

#include "tests/recsys/training_data.h"
#include "tests/support/errors.h"

namespace tercel::recsys {
namespace {

using test::preset_config;
using test::small_dataset;
using test::TemporaryFolder;

ModelConfig open_config(const std::vector<std::string>& assignments = {}) {
  ModelConfig config = parse_config(preset("wdl"), "wdl");
  for (const std::string& assignment : assignments) set_config(config, assignment);
  return config;
}

TEST(RunPlan, DecidesWhatIsOpen) {
  const TemporaryFolder root;
  data::Dataset dataset = small_dataset(root, 4000);
  const auto decided = [&](const std::vector<std::string>& assignments) {
    const ModelConfig config = plan_run(open_config(assignments), dataset).config;
    return std::tuple(config.data.validation, config.solver.epochs, config.solver.max_iter, config.solver.early_stop);
  };
  using Decided = std::tuple<Validation, int64_t, int64_t, int64_t>;
  EXPECT_EQ(decided({}), Decided(Validation::Part, 10, 0, 2));
  dataset.valid = {};
  EXPECT_EQ(decided({}), Decided(Validation::HeldOut, 10, 0, 2));
  EXPECT_EQ(decided({"solver.epochs=3"}), Decided(Validation::HeldOut, 3, 0, 0));
  EXPECT_EQ(decided({"solver.max_iter=30"}), Decided(Validation::HeldOut, 0, 30, 0));
  EXPECT_EQ(decided({"solver.epochs=3", "solver.early_stop=2"}), Decided(Validation::HeldOut, 3, 0, 2));
  EXPECT_EQ(decided({"solver.early_stop=0"}), Decided(Validation::HeldOut, 10, 0, 0));
  EXPECT_EQ(decided({"data.validation=none"}), Decided(Validation::None, 1, 0, 0));
  TERCEL_EXPECT_THROW(decided({"data.validation=part"}), ConfigError, "has no validation part");
  TERCEL_EXPECT_THROW(decided({"data.validation=none", "solver.early_stop=2"}), ConfigError,
                      "early_stop is 2, but there are no validation rows");
  TERCEL_EXPECT_THROW(decided({"data.validation=none", "solver.targets={\"auc\": 0.9}"}), ConfigError,
                      "solver: targets: expected validation rows");
  const ModelConfig once = plan_run(open_config(), dataset).config;
  EXPECT_EQ(to_json(plan_run(once, dataset).config), to_json(once)) << "a run's own configuration stays as it is";
  EXPECT_NE(plan_run(open_config(), dataset).validation.find("one of 10 train rows"), std::string::npos);
  dataset = small_dataset(root, 100, 0.25, "few");
  dataset.valid = {};
  EXPECT_EQ(decided({}), Decided(Validation::None, 1, 0, 0)) << "75 train rows";
}

TEST(RunPlan, ARefitTakesAllRowsForAsManyPasses) {
  const TemporaryFolder root;
  data::Dataset dataset = small_dataset(root, 4000);  // 3,000 train rows, 1,000 others
  const RunPlan part = plan_run(open_config(), dataset);
  Refit refit = plan_refit(part, dataset, 30, 3000);
  EXPECT_EQ(refit.config.solver.max_iter, 40);
  EXPECT_EQ(refit.config.solver.epochs, 0);
  EXPECT_EQ(refit.config.solver.early_stop, 0);
  EXPECT_EQ(refit.config.data.validation, Validation::None);
  EXPECT_EQ(refit.dataset.train.rows(), 4000);
  EXPECT_EQ(refit.dataset.valid.rows(), 0);
  EXPECT_EQ(Session(refit.config, refit.dataset).train_reader().epoch_rows(), 4000);
  dataset.valid = {};
  const RunPlan held_out = plan_run(open_config({"solver.targets={\"auc\": 0.9}"}), dataset);
  const int64_t trained = Session(held_out.config, dataset).train_reader().epoch_rows();
  EXPECT_EQ(trained, 2700);
  refit = plan_refit(held_out, dataset, 90, trained);
  EXPECT_EQ(refit.config.solver.max_iter, 100);
  EXPECT_TRUE(plan_run(refit.config, refit.dataset).config.solver.targets.empty()) << "nothing can pass them";
  EXPECT_EQ(refit.dataset.train.rows(), 3000);
  EXPECT_EQ(Session(refit.config, refit.dataset).train_reader().epoch_rows(), 3000);
  TERCEL_EXPECT_THROW(plan_refit(plan_run(refit.config, refit.dataset), dataset, 90, 3000), ConfigError,
                      "had no validation rows");
}

}  // namespace
}  // namespace tercel::recsys
