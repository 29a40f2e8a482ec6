// Probabilities of models that were trained on rows of which negatives had been left out.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "tercel/data/convert.h"
#include "tercel/recsys/evaluate.h"
#include "tercel/recsys/prediction.h"
#include "tercel/recsys/trainer.h"
#include "tests/recsys/training_data.h"

namespace tercel::recsys {
namespace {

using test::preset_config;
using test::TemporaryFolder;

/** Category "a" is clicked in a half of its rows, "b" in a tenth. */
std::string clicks(int rows) {
  std::string text = "click,c\n";
  for (int r = 0; r < rows; ++r) {
    const bool a = r % 2 == 0, click = a ? r % 4 == 0 : r % 20 == 1;
    text += std::string(click ? "1," : "0,") + (a ? "a\n" : "b\n");
  }
  return text;
}

data::Dataset convert(const TemporaryFolder& root, double rate, const std::string& name) {
  data::CsvOptions options;
  options.label = "click";
  options.categorical = {"c"};
  options.test_from = "20000";
  options.negative_rate = rate;
  options.seed = 3;
  return data::convert_csv({root.put(name + ".csv", clicks(24'000))}, root / name, options, /*replace=*/false,
                           [](const data::ConvertProgress&) {})
      .dataset;
}

LoadedModel trained(const data::Dataset& dataset, const std::string& folder) {
  const ModelConfig config =
      preset_config("dlrm", {"solver.max_iter=100", "solver.batchsize=500", "data.validation=none"});
  Trainer(config, dataset, folder, Resume::Never).run([](const Progress&) {});
  return load_model(folder);
}

double value_of(const MetricValues& values, const std::string& name) {
  for (const auto& [key, value] : values)
    if (key == name) return value;
  return std::nan("");
}

TEST(SampledNegatives, PredictionsAreThoseOfAllRows) {
  const TemporaryFolder root;
  const data::Dataset sampled = convert(root, 0.2, "sampled"), all = convert(root, 1, "all");
  LoadedModel model = trained(sampled, root / "run");
  EXPECT_EQ(model.data.negative_rate, 0.2);
  const auto always = [](int64_t) { return true; };
  const auto measure = [&](const data::Dataset& dataset, data::PartName part) {
    return evaluate(model.model, dataset, part, model.config, always, sampling_shift(model.data, dataset, part));
  };
  // Predicted clicks over clicks: of the sampled model itself it would be about 2 on all rows.
  EXPECT_NEAR(value_of(measure(sampled, data::PartName::Test), "calibration"), 1, 0.05);
  EXPECT_NEAR(value_of(measure(sampled, data::PartName::Train), "calibration"), 1, 0.05) << "rows as those trained on";
  EXPECT_NEAR(value_of(measure(all, data::PartName::Train), "calibration"), 1, 0.05);
  EXPECT_GT(value_of(evaluate(model.model, all, data::PartName::Test, model.config, always), "calibration"), 1.5);

  // p / (p + (1 - p) / w) of the model's own probability, row by row.
  data::BatchReader reader(all, data::PartName::Test, evaluation_reading(model.model, model.config));
  std::vector<float> own, right, from_text;
  predict(model.model, reader,
          [&](const Predictions& p) { own.insert(own.end(), p.probabilities.begin(), p.probabilities.end()); });
  predict(model, all, data::PartName::Test,
          [&](const Predictions& p) { right.insert(right.end(), p.probabilities.begin(), p.probabilities.end()); });
  predict_text(model, {{root.put("text.csv", "c\na\nb\n"), ""}}, [&](const Predictions& p) {
    from_text.insert(from_text.end(), p.probabilities.begin(), p.probabilities.end());
  });
  ASSERT_EQ(own.size(), right.size());
  ASSERT_EQ(own.size(), 4000U);
  for (size_t i = 0; i < own.size(); ++i) ASSERT_NEAR(right[i], own[i] / (own[i] + (1 - own[i]) / 0.2F), 1e-6F);
  EXPECT_NEAR(right[0], 0.5, 0.05);
  EXPECT_NEAR(right[1], 0.1, 0.03);
  ASSERT_EQ(from_text.size(), 2U);
  for (size_t i = 0; i < 2; ++i) EXPECT_NEAR(from_text[i], right[i], 1e-6F);
}

TEST(SampledNegatives, EvaluationDuringTrainingIsThatOfTheModelAfterIt) {
  const TemporaryFolder root;
  const data::Dataset sampled = convert(root, 0.2, "sampled");
  const ModelConfig config =
      preset_config("dlrm", {"solver.max_iter=100", "solver.batchsize=500", "data.validation=none"});
  Trainer trainer(config, sampled, root / "run", Resume::Never);
  trainer.run([](const Progress&) {});
  EXPECT_NEAR(value_of(trainer.last_metrics(), "calibration"), 1, 0.05);
}

TEST(SampledNegatives, ShiftIsNothingWithoutSampling) {
  const TemporaryFolder root;
  const data::Dataset sampled = convert(root, 0.2, "sampled"), all = convert(root, 1, "all");
  const data::DataIdentity plain = data::identity_of(all), thinned = data::identity_of(sampled);
  EXPECT_EQ(sampling_shift(plain), 0);
  EXPECT_EQ(sampling_shift(plain, all, data::PartName::Train), 0);
  EXPECT_DOUBLE_EQ(sampling_shift(thinned), std::log(0.2));
  EXPECT_DOUBLE_EQ(sampling_shift(thinned, sampled, data::PartName::Test), std::log(0.2));
  EXPECT_EQ(sampling_shift(thinned, sampled, data::PartName::Train), 0);
  EXPECT_DOUBLE_EQ(sampling_shift(plain, sampled, data::PartName::Train), -std::log(0.2))
      << "a model of all rows, on rows without most negatives";
}

}  // namespace
}  // namespace tercel::recsys
