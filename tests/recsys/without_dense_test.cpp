// Every shipped model trains on tables without dense values (ratings, logs of apps and ads).
#include <gtest/gtest.h>

#include "tercel/data/convert.h"
#include "tercel/recsys/trainer.h"
#include "tercel/util/philox.h"
#include "tests/recsys/training_data.h"

namespace tercel::recsys {
namespace {

using test::preset_config;
using test::TemporaryFolder;

/** Rows of a label and `columns` categories; the label follows from the first one, or from the first two together. */
data::Dataset ratings(const TemporaryFolder& root, int columns, int64_t rows = 8000) {
  std::string text = "label";
  data::CsvOptions options;
  options.label = "label";
  options.test_every = 4;
  for (int c = 0; c < columns; ++c) {
    options.categorical.push_back("c" + std::to_string(c));
    text += ",c" + std::to_string(c);
  }
  text += "\n";
  const Philox random{7, 0};
  for (int64_t r = 0; r < rows; ++r) {
    const PhiloxBlock block = random(static_cast<uint64_t>(r));
    const uint32_t user = block.word[0] % 12, item = block.word[1] % 15;
    const bool liked = columns == 1 ? user % 2 == 0 : (user % 2 == 0) == (item % 3 == 0);
    text += block.word[2] % 10 == 0 ? (liked ? "0" : "1") : (liked ? "1" : "0");
    for (int c = 0; c < columns; ++c)
      text += ",k" + std::to_string(c == 0 ? user : c == 1 ? item : block.word[3] % static_cast<uint32_t>(3 + c));
    text += "\n";
  }
  root.put("rows.csv", text);
  return data::convert_csv({root / "rows.csv"}, root / "data", options, /*replace=*/true,
                           [](const data::ConvertProgress&) {})
      .dataset;
}

MetricValues train(const ModelConfig& config, const data::Dataset& dataset, const std::string& run) {
  Trainer trainer(config, dataset, run, Resume::Never);
  EXPECT_EQ(trainer.run([](const Progress&) {}), TrainEnd::Done);
  return trainer.last_metrics();
}

TEST(WithoutDense, EveryPresetLearnsTheSameEachTime) {
  const TemporaryFolder root;
  for (const int columns : {1, 4}) {
    const data::Dataset dataset = ratings(root, columns);
    ASSERT_EQ(dataset.schema.dense_dim, 0);
    for (const std::string_view name : preset_names()) {
      if (name == "din" || name == "bst") continue;  // of histories: preset_sequences_test.cpp
      if (name == "lr" && columns > 1) continue;     // the label is no sum of what the columns say
      SCOPED_TRACE(std::string(name) + " of " + std::to_string(columns) + " columns");
      const ModelConfig config = preset_config(name, {"solver.epochs=4", "solver.lr=0.05"});
      const std::string run = std::string(name) + std::to_string(columns);
      const MetricValues first = train(config, dataset, root / (run + "-first"));
      if (columns == 4) {
        EXPECT_EQ(train(config, dataset, root / (run + "-again")), first);
      }
      ASSERT_EQ(first[0].first, "auc");
      EXPECT_GT(first[0].second, 0.85) << "the labels of 9 rows in 10 follow from the row";
    }
  }
}

}  // namespace
}  // namespace tercel::recsys
