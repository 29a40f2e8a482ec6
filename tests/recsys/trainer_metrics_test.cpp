// What a run measures, when it ends by a target, and the files that it leaves for people.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>

#include "tercel/recsys/checkpoint.h"
#include "tercel/recsys/report/details.h"
#include "tercel/recsys/report/metrics_record.h"
#include "tercel/util/error.h"
#include "tests/recsys/training_data.h"
#include "tests/recsys/two_heads.h"
#include "tests/support/errors.h"

namespace tercel::recsys {
namespace {

using test::CleanProcess;
using test::ignore;
using test::small_dataset;
using test::stateful_config;
using test::TemporaryFolder;

std::map<std::string, double> values_by_name(const MetricValues& values) { return {values.begin(), values.end()}; }

/** Lines of a text without the last line end. */
std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t start = 0; start < text.size(); start = text.find('\n', start) + 1)
    lines.push_back(text.substr(start, text.find('\n', start) - start));
  return lines;
}

std::vector<std::string> event_files(const TemporaryFolder& root, const std::string& run) {
  std::vector<std::string> names;
  for (const auto& [name, content] : root.tree())
    if (name.starts_with(run + "/events.out.tfevents.")) names.push_back(name);
  return names;
}

TEST(TrainerMetrics, AreThoseOfTheConfiguration) {
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 600);
  ModelConfig config = stateful_config({"solver.metrics=auc,gauc,ne,hit_rate@3,average_loss"});
  TERCEL_EXPECT_THROW(Trainer(config, dataset, root / "run", Resume::Never), ConfigError,
                      "solver: metric 'gauc' needs group_by");
  EXPECT_FALSE(std::filesystem::exists(root / "run"));
  config.solver.group_by = "nothing";
  TERCEL_EXPECT_THROW(Trainer(config, dataset, root / "run", Resume::Never), ConfigError,
                      "solver: group_by: unknown slot or column of integers 'nothing'");
  config.solver.group_by = dataset.schema.slots[1].name;
  config.solver.slice_by = dataset.schema.slots[2].name;
  config.solver.slices = 3;
  Trainer trainer(config, dataset, root / "run", Resume::Never);
  trainer.run(ignore);
  const auto found = values_by_name(trainer.last_metrics());
  EXPECT_EQ(found.size(), 5u);
  for (const char* name : {"auc", "gauc", "ne", "hit_rate@3", "average_loss"})
    EXPECT_TRUE(std::isfinite(found.at(name))) << name;

  // The same on the rows themselves.
  Model& model = trainer.model();
  data::BatchReader reader(dataset, data::PartName::Test, evaluation_reading(model, config));
  data::Batch batch;
  Evaluator evaluator(model, config.solver);
  while (reader.next(batch)) evaluator.add(batch, model.forward(batch).logits);
  EXPECT_EQ(evaluator.values(), trainer.last_metrics());

  const std::vector<EvaluationDetails> details = read_details(root / "run/details.json");
  ASSERT_EQ(details.size(), 2u);
  EXPECT_EQ(details[0].part, "valid");
  EXPECT_EQ(details[1].part, "test");
  EXPECT_EQ(details[1].step, trainer.result().best_step);
  EXPECT_EQ(details[1].slice_by, config.solver.slice_by);
  ASSERT_EQ(details[1].heads.size(), 1u);
  EXPECT_EQ(details[1].heads[0].slices.size(), 3u);
  double rows = 0;
  for (const ReliabilityBin& bin : details[1].heads[0].bins) rows += bin.rows;
  EXPECT_EQ(rows, static_cast<double>(dataset.test.rows()));
}

TEST(TrainerMetrics, ARunEndsAtItsTargets) {
  const CleanProcess clean;
  const TemporaryFolder root;
  const data::Dataset dataset = test::two_labels_dataset(root / "data", 600);
  const ModelConfig config = test::two_heads_config(
      {"solver.epochs=50", "solver.eval_interval=5", "solver.targets={\"auc/click_loss\": 0.9}"});
  int64_t end = 0;
  {
    Trainer trainer(config, dataset, root / "run", Resume::Never);
    EXPECT_EQ(trainer.run(ignore), TrainEnd::Done);
    EXPECT_TRUE(trainer.result().passed_targets);
    EXPECT_GT(values_by_name(trainer.result().valid).at("auc/click_loss"), 0.9);
    end = trainer.step();
    EXPECT_LT(end, 900);
  }
  // No earlier evaluation passed it.
  std::vector<std::string> warnings;
  for (const MetricsRecord& record : read_metrics(root / "run/metrics.jsonl", warnings))
    for (const auto& [name, value] : record.values) {
      if (name == "auc/click_loss" && record.part == "valid") {
        EXPECT_EQ(value > 0.9, record.step == end) << record.step;
      }
    }
  {  // It is the end for a resumed run as well.
    Trainer again(config, dataset, root / "run", Resume::Auto);
    EXPECT_EQ(again.run(ignore), TrainEnd::Done);
    EXPECT_EQ(again.step(), end);
  }
  // Another target lets it go on.
  ModelConfig more = config;
  set_config(more, "solver.targets={\"auc/click_loss\": 0.9, \"log_loss/buy_loss\": 1e-9}");
  set_config(more, "solver.epochs=" + std::to_string((end + 18) / 19 + 1));
  Trainer further(more, dataset, root / "run", Resume::Auto);
  EXPECT_EQ(further.run(ignore), TrainEnd::Done);
  EXPECT_GT(further.step(), end);
  EXPECT_FALSE(further.result().passed_targets);
}

TEST(TrainerMetrics, TheTableHasARowForEachLineAlsoOfAResumedRun) {
  const CleanProcess clean;
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 600);
  const ModelConfig config = stateful_config({"solver.eval_interval=4", "solver.display_seconds=1e-9"});
  {
    Trainer trainer(config, dataset, root / "run", Resume::Never);
    trainer.run(ignore, [&, n = 0]() mutable { return ++n < 9; });
    ASSERT_LT(trainer.step(), 14);
    ASSERT_GT(trainer.step(), 0);
  }
  const std::string header = lines_of(root.get("run/metrics.csv"))[0];
  EXPECT_EQ(header, "step,kind,part,loss,learning_rate,samples_per_second,auc,log_loss,accuracy,calibration");
  Trainer(config, dataset, root / "run", Resume::Auto).run(ignore);
  const std::vector<std::string> rows = lines_of(root.get("run/metrics.csv"));
  std::vector<std::string> warnings;
  const std::vector<MetricsRecord> records = read_metrics(root / "run/metrics.jsonl", warnings);
  ASSERT_EQ(rows.size(), records.size() + 1);
  EXPECT_EQ(rows[0], header);
  for (size_t i = 0; i < records.size(); ++i) {
    EXPECT_TRUE(rows[i + 1].starts_with(std::to_string(records[i].step) + "," + records[i].kind + ",")) << rows[i + 1];
    EXPECT_EQ(std::count(rows[i + 1].begin(), rows[i + 1].end(), ','), 9) << rows[i + 1];
  }
}

TEST(TrainerMetrics, EventsAreWrittenIfAskedFor) {
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 300);
  Trainer(stateful_config(), dataset, root / "without", Resume::Never).run(ignore);
  EXPECT_TRUE(event_files(root, "without").empty());
  const ModelConfig config = stateful_config({"solver.tensorboard=true"});
  Trainer(config, dataset, root / "with", Resume::Never).run(ignore);
  const std::vector<std::string> files = event_files(root, "with");
  ASSERT_EQ(files.size(), 1u);
  const std::string events = root.get(files[0]);
  for (const char* text : {"brain.Event:2", "train/loss", "/auc", "config", "\"batchsize_eval\": 50"})
    EXPECT_NE(events.find(text), std::string::npos) << text;
  Trainer(config, dataset, root / "with", Resume::Auto).run(ignore);
  EXPECT_EQ(event_files(root, "with").size(), 2u) << "each start of a run begins a file";
}

}  // namespace
}  // namespace tercel::recsys
