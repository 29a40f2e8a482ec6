#include "tercel/data/generate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <limits>
#include <numeric>

#include "tercel/data/click_model_impl.h"
#include "tercel/data/truth_score_impl.h"
#include "tercel/util/cpu_info.h"
#include "tercel/util/error.h"
#include "tercel/util/file_hook.h"
#include "tercel/util/parallel.h"
#include "tests/data/norm_data.h"
#include "tests/support/errors.h"

namespace tercel::data {
namespace {

using test::Rows;
using test::TemporaryFolder;

void ignore(int64_t) {}

GenerateOptions small_options(int64_t rows) {
  GenerateOptions options;
  options.preset = GeneratePreset::Small;
  options.rows = rows;
  return options;
}

Dataset generate(const std::string& folder, const GenerateOptions& options) {
  static_cast<void>(generate_dataset(folder, options, false, ignore));
  return load_dataset(folder);
}

Rows read_part(const Dataset& dataset, PartName part) {
  BatchReader reader(dataset, part, {});
  return test::read_rest(reader);
}

/** The plain definition, by pairs of ranks; ties count half. */
double exact_auc(const std::vector<float>& scores, const std::vector<float>& labels) {
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return scores[a] < scores[b]; });
  double ordered = 0, clicks = 0, others = 0;
  for (size_t i = 0; i < order.size();) {
    double tied_clicks = 0, tied_others = 0;
    size_t j = i;
    for (; j < order.size() && scores[order[j]] == scores[order[i]]; ++j)
      (labels[order[j]] != 0 ? tied_clicks : tied_others) += 1;
    ordered += tied_clicks * (others + tied_others / 2);
    clicks += tied_clicks;
    others += tied_others;
    i = j;
  }
  return ordered / clicks / others;
}

TEST(Generate, WritesWhatTheDatasetSays) {
  const TemporaryFolder folder;
  GenerateOptions options = small_options(1000);
  options.test_fraction = 0.25;
  options.files = 4;
  const Dataset dataset = generate(folder / "data", options);
  EXPECT_EQ(dataset.train.rows(), 750);
  EXPECT_EQ(dataset.test.rows(), 250);
  ASSERT_EQ(dataset.train.files.size(), 4u);
  EXPECT_EQ(dataset.train.files[0].rows, 188);
  EXPECT_EQ(dataset.schema.num_keys(), 278);
  EXPECT_EQ(dataset.schema.dense_dim, 4);
  ASSERT_TRUE(dataset.conversion);
  EXPECT_EQ(dataset.conversion->tool, "generate");
  ASSERT_NE(dataset.conversion->setting("rows"), nullptr);
  EXPECT_EQ(*dataset.conversion->setting("rows"), "1000");
  for (const DataFile& file : dataset.train.files) EXPECT_NO_THROW(verify_file(dataset, file));
  EXPECT_EQ(read_part(dataset, PartName::Train).count, 750);
  EXPECT_EQ(read_part(dataset, PartName::Test).count, 250);
}

TEST(GenerateThreads, RowsDependNeitherOnThreadsNorOnFilesNorOnTheirNumber) {
  const TemporaryFolder folder;
  const int64_t threads_before = num_threads();
  GenerateOptions options = small_options(40000);
  options.test_fraction = 0;
  set_num_threads(1);
  const Dataset one = generate(folder / "one", options);
  const Rows rows = read_part(one, PartName::Train);
  set_num_threads(3);
  const Dataset three = generate(folder / "three", options);
  EXPECT_EQ(three.train.files[0].checksum, one.train.files[0].checksum);
  EXPECT_EQ(folder.get("one/dataset.json"), folder.get("three/dataset.json"));

  options.files = 3;
  options.rows = 25000;
  options.test_fraction = 0.2;
  const Dataset cut = generate(folder / "cut", options);
  set_num_threads(threads_before);
  Rows joined = read_part(cut, PartName::Train);
  const Rows tail = read_part(cut, PartName::Test);
  joined.labels.insert(joined.labels.end(), tail.labels.begin(), tail.labels.end());
  joined.keys.insert(joined.keys.end(), tail.keys.begin(), tail.keys.end());
  ASSERT_EQ(joined.labels.size(), 25000u);
  EXPECT_TRUE(std::equal(joined.labels.begin(), joined.labels.end(), rows.labels.begin()));
  EXPECT_TRUE(std::equal(joined.keys.begin(), joined.keys.end(), rows.keys.begin()));

  options.seed = 2;
  EXPECT_NE(read_part(generate(folder / "other", options), PartName::Train).labels,
            read_part(cut, PartName::Train).labels);
}

TEST(Generate, TruthIsThatOfTheProbabilitiesOnTheRowsWritten) {
  ClickModelSpec spec;
  spec.fields = {{5, 1.0}, {100, 1.5}, {300, 1.8}};
  spec.dense_dim = 4;
  spec.interacting_fields = 3;
  const ClickModel model(spec, 9);
  constexpr int64_t kRows = 50000;
  std::vector<float> labels(kRows), dense(kRows * 4), logits(kRows);
  std::vector<int64_t> keys(kRows * 3);
  model.generate(0, kRows, {labels.data(), dense.data(), keys.data(), logits.data()});
  TruthScore score(model.logit_mean(), model.logit_std());
  score.add(20000, labels.data(), logits.data());
  score.add(kRows - 20000, labels.data() + 20000, logits.data() + 20000);

  double loss = 0, probability = 0;
  for (size_t i = 0; i < labels.size(); ++i) {
    const double p = 1 / (1 + std::exp(-static_cast<double>(logits[i])));
    loss -= labels[i] != 0 ? std::log(p) : std::log(1 - p);
    probability += p;
  }
  ASSERT_TRUE(score.result());
  EXPECT_LT(score.auc_error(), 1e-5);
  EXPECT_NEAR(score.result()->auc, exact_auc(logits, labels), score.auc_error());
  EXPECT_NEAR(score.result()->log_loss, loss / kRows, 1e-9);
  // The labels are drawn from these probabilities: the number of clicks is within four standard deviations.
  EXPECT_NEAR(static_cast<double>(score.clicks()), probability, 4 * std::sqrt(kRows * 0.25));
}

TEST(TruthScore, CountsTiesHalfAndNeedsBothLabels) {
  TruthScore score(0, 1);
  EXPECT_FALSE(score.result());
  const float labels[] = {1, 0, 1, 0}, logits[] = {0, 0, 1000, -1000};
  score.add(1, labels, logits);
  EXPECT_FALSE(score.result());
  score.add(1, labels + 1, logits + 1);
  ASSERT_TRUE(score.result());
  EXPECT_EQ(score.result()->auc, 0.5);
  EXPECT_EQ(score.auc_error(), 0.5);
  EXPECT_NEAR(score.result()->log_loss, std::log(2), 1e-12);
  score.add(2, labels + 2, logits + 2);
  EXPECT_EQ(score.result()->auc, 0.875);
  EXPECT_NEAR(score.result()->log_loss, std::log(2) / 2, 1e-12) << "certain and correct predictions have no loss";
}

TEST(Generate, AnySeedHasTheRateAndTheAucAskedFor) {
  const TemporaryFolder folder;
  for (const uint64_t seed : {uint64_t{0}, uint64_t{7}, ~uint64_t{0}}) {
    GenerateOptions options;
    options.rows = 150000;
    options.test_fraction = 0;
    options.seed = seed;
    const GenerateResult result = generate_dataset(folder / "data", options, true, ignore);
    EXPECT_NEAR(static_cast<double>(result.train_clicks) / 150000, 0.25, 0.005) << seed;
    EXPECT_NEAR(result.dataset.train.truth->auc, 0.80, 0.01) << seed;
  }
  GenerateOptions options;
  options.rows = 150000;
  options.ctr = 0.03;
  options.auc = 0.7;
  const GenerateResult result = generate_dataset(folder / "data", options, true, ignore);
  EXPECT_NEAR(static_cast<double>(result.train_clicks) / 135000, 0.03, 0.003);
  EXPECT_NEAR(result.dataset.train.truth->auc, 0.70, 0.015);
}

TEST(Generate, FieldsFollowPowerLawsAndDenseValuesAreStandardised) {
  const TemporaryFolder folder;
  GenerateOptions options = small_options(100000);
  options.test_fraction = 0;
  const Dataset dataset = generate(folder / "data", options);
  const Rows rows = read_part(dataset, PartName::Train);
  const auto slots = static_cast<size_t>(dataset.schema.slot_num());
  // The third field: 25 keys with exponent 1.2.
  const Slot& slot = dataset.schema.slots[2];
  ASSERT_EQ(slot.size, 25);
  std::vector<double> count(25);
  for (size_t row = 0; row < 100000; ++row) ++count[static_cast<size_t>(rows.keys[row * slots + 2] - slot.first_key)];
  double sum = 0;
  for (int r = 1; r <= 25; ++r) sum += std::pow(r, -1.2);
  for (size_t r = 0; r < 25; ++r) {
    const double expected = 100000 * std::pow(static_cast<double>(r) + 1, -1.2) / sum;
    EXPECT_NEAR(count[r], expected, 5 * std::sqrt(expected)) << r;
  }
  for (size_t d = 0; d < 4; ++d) {
    double mean = 0, square = 0;
    for (size_t row = 0; row < 100000; ++row) {
      mean += rows.dense[row * 4 + d] / 1e5;
      square += rows.dense[row * 4 + d] * rows.dense[row * 4 + d] / 1e5;
    }
    EXPECT_NEAR(mean, 0, 0.02) << d;
    EXPECT_NEAR(square, 1, 0.03) << d;
  }
}

// Logistic regression on one-hot fields and dense values, by AdaGrad over some epochs; its AUC on the test part.
double logistic_regression_auc(const Dataset& dataset) {
  const Rows train = read_part(dataset, PartName::Train), test = read_part(dataset, PartName::Test);
  const auto slots = static_cast<size_t>(dataset.schema.slot_num()),
             dim = static_cast<size_t>(dataset.schema.dense_dim);
  std::vector<float> weight(static_cast<size_t>(dataset.schema.num_keys()) + dim + 1), squares(weight.size(), 1e-8f);
  const size_t first_dense = weight.size() - dim - 1;
  const auto logit = [&](const Rows& rows, size_t row) {
    float sum = weight.back();
    for (size_t s = 0; s < slots; ++s) sum += weight[static_cast<size_t>(rows.keys[row * slots + s])];
    for (size_t d = 0; d < dim; ++d) sum += weight[first_dense + d] * rows.dense[row * dim + d];
    return sum;
  };
  const auto step = [&](size_t i, float gradient) {
    squares[i] += gradient * gradient;
    weight[i] -= 0.05f * gradient / std::sqrt(squares[i]);
  };
  std::vector<float> scores(static_cast<size_t>(test.count));
  double best = 0;
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (size_t row = 0; row < static_cast<size_t>(train.count); ++row) {
      const float error = 1 / (1 + std::exp(-logit(train, row))) - train.labels[row];
      for (size_t s = 0; s < slots; ++s) step(static_cast<size_t>(train.keys[row * slots + s]), error);
      for (size_t d = 0; d < dim; ++d) step(first_dense + d, error * train.dense[row * dim + d]);
      step(weight.size() - 1, error);
    }
    for (size_t row = 0; row < scores.size(); ++row) scores[row] = logit(test, row);
    best = std::max(best, exact_auc(scores, test.labels));
  }
  return best;
}

TEST(Generate, ALinearModelCatchesPartOfTheTruthOnly) {
  const TemporaryFolder folder;
  GenerateOptions options;
  options.rows = 300000;
  options.test_fraction = 0.3;
  options.seed = 3;
  const Dataset dataset = generate(folder / "data", options);
  const double share = (logistic_regression_auc(dataset) - 0.5) / (dataset.test.truth->auc - 0.5);
  EXPECT_LT(share, 0.90);
  EXPECT_GT(share, 0.80);
}

TEST(Generate, VocabulariesHaveTheSizesAskedFor) {
  const TemporaryFolder folder;
  GenerateOptions options = small_options(2000);
  options.slot_size_array = {1000};
  EXPECT_EQ(generate(folder / "equal", options).schema.slot_size_array(), (std::vector<int64_t>(5, 1000)));
  options.slot_size_array = {2, 30, 400, 5000, 60000};
  const Dataset dataset = generate(folder / "each", options);
  EXPECT_EQ(dataset.schema.slot_size_array(), options.slot_size_array);
  EXPECT_EQ(*dataset.conversion->setting("slot_size_array"), "[2,30,400,5000,60000]");
  EXPECT_NEAR(dataset.train.truth->auc, 0.8, 0.03) << "the truth does not depend on the sizes";
  options.slot_size_array = {3, 4};
  TERCEL_EXPECT_THROW(generate(folder / "two", options), ConfigError,
                      "'slot_size_array': expected 1 or 5 numbers, found 2");
  options.slot_size_array = {1};
  TERCEL_EXPECT_THROW(generate(folder / "one", options), ConfigError, "slot_size_array");
}

TEST(Generate, LooksAtTheRoomOnTheDiskFirst) {
  const TemporaryFolder folder;
  for (const int64_t rows : {int64_t{1} << 45, std::numeric_limits<int64_t>::max()})
    TERCEL_EXPECT_THROW(generate(folder / "some/data", small_options(rows)), IoError, folder / "some/data: expected ");
  TERCEL_EXPECT_THROW(generate(folder / "data", small_options(int64_t{1} << 45)), IoError,
                      " of room on the disk for 35184372088832 rows, found ");
  EXPECT_TRUE(folder.tree().empty());
}

TEST(Generate, LooksAtTheMemoryFirst) {
  const TemporaryFolder folder;
  GenerateOptions options = small_options(100);
  options.slot_size_array = {1 << 30};  // 140 GiB
  if (fits_in_memory(size_t{120} << 30)) GTEST_SKIP() << "a machine of much memory";
  TERCEL_EXPECT_THROW(generate(folder / "data", options), OutOfMemoryError,
                      "generate: 5368709120 keys: out of memory: cannot allocate ");
  EXPECT_TRUE(folder.tree().empty());
}

TEST(Generate, RefusesWhatMakesNoSense) {
  const TemporaryFolder folder;
  GenerateOptions options = small_options(0);
  TERCEL_EXPECT_THROW(generate(folder / "data", options), ConfigError, "'rows': expected at least 1, found 0");
  options.rows = 1;
  options.test_fraction = 0.9;
  TERCEL_EXPECT_THROW(generate(folder / "data", options), ConfigError, "at least 1 row in the train part");
  options = small_options(10);
  options.auc = 0.5;
  TERCEL_EXPECT_THROW(generate(folder / "data", options), ConfigError, "'auc'");
  EXPECT_TRUE(folder.tree().empty());
}

TEST(Generate, OneRowIsADatasetWithoutATruth) {
  const TemporaryFolder folder;
  GenerateOptions options = small_options(1);
  options.test_fraction = 0;
  const Dataset dataset = generate(folder / "data", options);
  EXPECT_EQ(dataset.train.rows(), 1);
  EXPECT_FALSE(dataset.train.truth);
  EXPECT_TRUE(dataset.test.files.empty());
}

TEST(Generate, ReplacesADatasetOnlyWhenTold) {
  const TemporaryFolder folder;
  generate(folder / "data", small_options(10));
  TERCEL_EXPECT_THROW(generate(folder / "data", small_options(20)), IoError, "exists already");
  EXPECT_EQ(load_dataset(folder / "data").train.rows(), 9);
  static_cast<void>(generate_dataset(folder / "data", small_options(20), true, ignore));
  EXPECT_EQ(load_dataset(folder / "data").train.rows(), 18);
  folder.put("mine/thesis.txt", "not a dataset");
  TERCEL_EXPECT_THROW(generate_dataset(folder / "mine", small_options(20), true, ignore), IoError, "dataset.json");
  EXPECT_EQ(folder.get("mine/thesis.txt"), "not a dataset");
}

TEST(Generate, LeavesNothingBehindWhenStoppedOrWhenACallFails) {
  const TemporaryFolder folder;
  struct Stopped {};
  EXPECT_THROW(static_cast<void>(
                   generate_dataset(folder / "data", small_options(50000), false, [](int64_t) { throw Stopped(); })),
               Stopped);
  EXPECT_TRUE(folder.tree().empty());

  for (const FileOp op : {FileOp::Open, FileOp::Write, FileOp::Sync, FileOp::Close, FileOp::Rename, FileOp::MakeDir}) {
    for (int64_t nth = 1;; ++nth) {
      FaultPlan plan;
      plan.op = op;
      plan.nth = nth;
      plan.error = ENOSPC;
      bool failed = false, fired = false;
      {
        const ScopedFault fault(plan);
        try {
          static_cast<void>(generate_dataset(folder / "data", small_options(100), false, ignore));
        } catch (const IoError&) {
          failed = true;
        }
        fired = fault.fired();
      }
      // Failing to close a synced file has no effect.
      EXPECT_TRUE(failed || !fired || op == FileOp::Close) << static_cast<int>(op) << " " << nth;
      // Complete if only the parent folder could not be synced; otherwise missing.
      if (std::filesystem::exists(folder / "data")) {
        EXPECT_NO_THROW(load_dataset(folder / "data"));
        std::filesystem::remove_all(folder / "data");
      }
      EXPECT_TRUE(folder.tree().empty()) << static_cast<int>(op) << " " << nth;
      if (!fired) break;
    }
  }
}

}  // namespace
}  // namespace tercel::data
