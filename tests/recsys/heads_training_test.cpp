// Models with two heads: training, checkpoints, resuming, evaluation, prediction.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "tercel/autograd/autograd.h"
#include "tercel/data/batch_reader.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/recsys/checkpoint.h"
#include "tercel/recsys/metrics/auc.h"
#include "tercel/recsys/prediction.h"
#include "tercel/recsys/trainer.h"
#include "tests/recsys/training_data.h"
#include "tests/recsys/two_heads.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace tercel::recsys {
namespace {

using tercel::test::values_of;
using test::ignore;
using test::TemporaryFolder;
using test::two_heads_config;
using test::two_labels_dataset;

using Floats = std::vector<float>;

TEST(TwoHeads, TrainEvaluatePredict) {
  const TemporaryFolder root;
  const data::Dataset dataset = two_labels_dataset(root / "data", 600);
  Trainer trainer(two_heads_config(), dataset, root / "run", Resume::Never);
  EXPECT_EQ(trainer.run(ignore), TrainEnd::Done);
  const MetricValues metrics = trainer.last_metrics();
  std::map<std::string, double> found(metrics.begin(), metrics.end());
  ASSERT_EQ(metrics.size(), 9u);
  EXPECT_EQ(metrics[0].first, "auc");
  EXPECT_GT(found["auc/click_loss"], 0.9) << "the labels are functions of the inputs";
  EXPECT_GT(found["auc/buy_loss"], 0.9);
  EXPECT_NEAR(found["auc"], (found["auc/click_loss"] + 0.5 * found["auc/buy_loss"]) / 1.5, 1e-12);
  const std::string lines = root.get("run/metrics.jsonl");
  EXPECT_NE(lines.find("\"auc/buy_loss\":"), std::string::npos) << lines;

  LoadedModel model = load_model(root / "run");
  EXPECT_EQ(evaluate(model.model, dataset, data::PartName::Test, model.config, [](int64_t) { return true; }), metrics);
  Floats columns[2];
  const int64_t rows = predict(model, dataset, data::PartName::Test, [&](const Predictions& rows_found) {
    for (size_t i = 0; i < rows_found.probabilities.size(); ++i) columns[i % 2].push_back(rows_found.probabilities[i]);
  });
  EXPECT_EQ(rows, 600);
  ASSERT_EQ(columns[0].size(), 600u);
  ASSERT_EQ(columns[1].size(), 600u);

  // Against the model itself: probabilities, and the AUC of each label.
  data::ReaderOptions options;
  options.batch_size = 600;
  options.inputs = model.model.sparse_inputs();
  data::BatchReader reader(dataset, data::PartName::Test, options);
  data::Batch batch;
  ASSERT_TRUE(reader.next(batch));
  const Model::Result result = model.model.forward(batch);
  for (size_t h = 0; h < 2; ++h) {
    const std::vector<double> logits = values_of(result.logits[h]), labels = values_of(batch.labels);
    Floats scores, targets;
    for (size_t r = 0; r < 600; ++r) {
      ASSERT_NEAR(columns[h][r], 1 / (1 + std::exp(-logits[r])), 1e-5);
      scores.push_back(static_cast<float>(logits[r]));
      targets.push_back(static_cast<float>(labels[2 * r + h]));
    }
    Auc auc;
    auc.add(scores, targets);
    EXPECT_NEAR(auc.value(), found[h == 0 ? "auc/click_loss" : "auc/buy_loss"], 1e-9);
  }

  // The same rows as arrays.
  const Tensor by_name = predict(model.model, {{"dense", batch.dense}, {"f0", batch.input("keys").keys}});
  ASSERT_EQ(by_name.sizes(), IntSpan({600, 2}));
  for (size_t h = 0; h < 2; ++h)
    for (size_t r = 0; r < 600; ++r) ASSERT_NEAR(values_of(by_name)[2 * r + h], columns[h][r], 1e-6);
}

TEST(TwoHeads, ResumingGivesTheSameBits) {
  const TemporaryFolder root;
  const data::Dataset dataset = two_labels_dataset(root / "data", 300);
  Trainer(two_heads_config(), dataset, root / "whole", Resume::Never).run(ignore);
  Trainer(two_heads_config({"solver.max_iter=4"}), dataset, root / "parts", Resume::Never).run(ignore);
  Trainer(two_heads_config(), dataset, root / "parts", Resume::Auto).run(ignore);
  const auto last = [&](const std::string& run) { return list_checkpoints(root / (run + "/checkpoints")).back(); };
  EXPECT_EQ(Checkpoint(last("whole")).info().step, Checkpoint(last("parts")).info().step);
  LoadedModel whole = load_model(last("whole")), parts = load_model(last("parts"));
  EXPECT_EQ(values_of(whole.model.parameters().weights()), values_of(parts.model.parameters().weights()));
  EXPECT_EQ(values_of(whole.model.embeddings().tables()[0]->weight()),
            values_of(parts.model.embeddings().tables()[0]->weight()));
}

TEST(TwoHeads, LossesWhoseSumOverflowsAreNamed) {
  const TemporaryFolder root;
  const data::Dataset dataset = two_labels_dataset(root / "data", 300);
  // About 0.7 times the weight each: below the largest float, 3.4e38, but not together.
  Trainer trainer(two_heads_config({"layers.click_loss.weight=3e38", "layers.buy_loss.weight=3e38"}), dataset,
                  root / "run", Resume::Never);
  TERCEL_EXPECT_THROW(
      trainer.run(ignore), NumericError,
      "step 1: the loss is infinite; the outputs of all layers are finite, but not the sum of the losses");
}

TEST(TwoHeads, AnotherWeightIsAnotherModel) {
  const TemporaryFolder root;
  const data::Dataset dataset = two_labels_dataset(root / "data", 300);
  Trainer(two_heads_config({"solver.max_iter=2"}), dataset, root / "run", Resume::Never).run(ignore);
  TERCEL_EXPECT_THROW(
      Trainer(two_heads_config({"layers.buy_loss.weight=0.75"}), dataset, root / "run", Resume::Auto), ConfigError,
      "a checkpoint of another model: layers.buy_loss.weight: the checkpoint has 0.5, this run has 0.75");
}

// As two ranks of data-parallel training: the gradients of their parts, of tables too, add up to those of the batch.
TEST(TwoHeads, GradientsOfHalfBatchesAddUp) {
  const TemporaryFolder root;
  const data::Dataset dataset = two_labels_dataset(root / "data", 90);
  const ModelConfig config = two_heads_config();
  Model model(config, dataset.schema);
  model.initialize(1);
  const auto gradients = [&](int64_t rank, int64_t ranks) {
    data::ReaderOptions options;
    options.batch_size = 32;
    options.inputs = model.sparse_inputs();
    options.rank = rank;
    options.ranks = ranks;
    data::BatchReader reader(dataset, data::PartName::Train, options);
    data::Batch batch;
    std::vector<std::vector<double>> all;
    while (reader.next(batch)) {
      EXPECT_EQ(batch.global_rows, all.size() < 2 ? 32 : 26);
      model.parameters().zero_gradients();
      model.forward(batch, /*training=*/true, /*step=*/1).loss.backward();
      all.push_back(values_of(model.parameters().gradients()));
      const Tensor& table = model.embeddings().tables()[0]->weight();
      const Tensor dense = zeros(table.sizes());
      if (const Gradient g = gradient_of(table); g.defined()) add_rows(dense, g);
      for (const double x : values_of(dense)) all.back().push_back(x);
      clear_gradient(table);
    }
    return all;
  };
  const auto whole = gradients(0, 1), first = gradients(0, 2), second = gradients(1, 2);
  ASSERT_EQ(whole.size(), 3u);
  ASSERT_EQ(first.size(), 3u);
  ASSERT_EQ(second.size(), 3u);
  for (size_t b = 0; b < 3; ++b)
    for (size_t i = 0; i < whole[b].size(); ++i)
      ASSERT_NEAR(first[b][i] + second[b][i], whole[b][i], 1e-6) << b << " " << i;
}

}  // namespace
}  // namespace tercel::recsys
