// The shipped models of histories and of several labels learn a planted truth.
#include <gtest/gtest.h>

#include "tercel/recsys/trainer.h"
#include "tercel/util/error.h"
#include "tercel/util/philox.h"
#include "tests/recsys/training_data.h"
#include "tests/support/errors.h"

namespace tercel::recsys {
namespace {

using test::preset_config;
using test::TemporaryFolder;

constexpr int64_t kItems = 20, kCategories = 4, kHistory = 4, kRows = 6000;

/** Writes the parts of a dataset, each row by `write_row(random, writer)`. */
template <class WriteRow>
void write_parts(data::Dataset& dataset, const std::string& folder, WriteRow write_row) {
  dataset.folder = folder;
  dataset.format = data::norm_format();
  const auto part = [&](const char* prefix, uint64_t seed) {
    data::WriterOptions options;
    options.folder = dataset.folder;
    options.prefix = prefix;
    const auto writer = dataset.format->create_writer(dataset.schema, options);
    const Philox random{seed, 0};
    for (uint64_t row = 0; row < static_cast<uint64_t>(kRows); ++row) write_row(random(row), *writer);
    return writer->finish();
  };
  dataset.train = part("train/", 1);
  dataset.test = part("test/", 2);
  data::save_dataset(dataset, dataset.folder);
}

/** A user, up to 4 items seen, and an item, which is clicked if one of its category was seen; items share keys. */
data::Dataset histories(const std::string& folder, const std::string& history = "history") {
  data::Dataset dataset;
  dataset.schema.slots = {{history, kItems, 0, kHistory}, {"item", kItems, 0, 1}, {"user", 10, kItems, 1}};
  write_parts(dataset, folder, [](const PhiloxBlock& random, data::DatasetWriter& writer) {
    const auto length = static_cast<int32_t>(random.word[0] % (kHistory + 1));
    const int64_t item = random.word[1] % kItems;
    std::vector<int64_t> keys;
    bool clicked = false;
    for (int32_t i = 0; i < length; ++i) {
      keys.push_back((random.word[2] >> (8 * i)) % 256 % kItems);
      clicked |= keys.back() % kCategories == item % kCategories;
    }
    keys.push_back(item);
    keys.push_back(kItems + random.word[3] % 10);
    const int32_t counts[] = {length, 1, 1};
    const float label = clicked ? 1.0F : 0.0F;
    writer.write({1, &label, nullptr, counts, keys.data()});
  });
  return dataset;
}

double auc_of(const ModelConfig& config, const data::Dataset& dataset, const std::string& run) {
  Trainer trainer(config, dataset, run, Resume::Never);
  EXPECT_EQ(trainer.run(test::ignore), TrainEnd::Done);
  const MetricValues metrics = trainer.last_metrics();
  EXPECT_EQ(metrics[0].first, "auc");
  return metrics[0].second;
}

TEST(PresetSequences, DinAndBstFindTheItemInTheHistory) {
  const TemporaryFolder root;
  const data::Dataset dataset = histories(root / "data");
  for (const char* name : {"din", "bst"}) {
    SCOPED_TRACE(name);
    const ModelConfig config = preset_config(name, {"solver.epochs=6", "solver.lr=0.01", "solver.batchsize=64",
                                                    "layers.embedding.sparse_embedding_hparam.init_stddev=0.1"});
    EXPECT_GT(auc_of(config, dataset, root / name), 0.95);
  }
}

TEST(PresetSequences, SlotsHaveOtherNames) {
  const TemporaryFolder root;
  const data::Dataset dataset = histories(root / "data", "clicked");
  for (const char* name : {"din", "bst"}) {
    TERCEL_EXPECT_THROW(
        Model(preset_config(name), dataset.schema), ConfigError,
        "layers.history.index: in '=slot(history)': the model reads a slot 'history', which the dataset does not have");
    Model(preset_config(name, {"layers.history.index=[\"=slot(clicked)\"]"}), dataset.schema);
  }
}

TEST(PresetSequences, MmoeLearnsTwoLabels) {
  const TemporaryFolder root;
  data::Dataset dataset;
  dataset.schema.label_dim = 2;
  dataset.schema.slots = {{"user", 12, 0, 1}, {"item", 15, 12, 1}};
  write_parts(dataset, root / "data", [](const PhiloxBlock& random, data::DatasetWriter& writer) {
    const int64_t user = random.word[0] % 12, item = random.word[1] % 15;
    const bool first = (user % 2 == 0) == (item % 3 == 0), second = user % 3 == 0;
    const float labels[] = {first != (random.word[2] % 10 == 0) ? 1.0F : 0.0F,
                            second != (random.word[3] % 10 == 0) ? 1.0F : 0.0F};
    const int64_t keys[] = {user, 12 + item};
    writer.write({1, labels, nullptr, nullptr, keys});
  });
  const ModelConfig config = preset_config("mmoe", {"solver.epochs=4", "solver.lr=0.05"});
  EXPECT_GT(auc_of(config, dataset, root / "run"), 0.85) << "9 labels in 10 follow from the row";
}

}  // namespace
}  // namespace tercel::recsys
