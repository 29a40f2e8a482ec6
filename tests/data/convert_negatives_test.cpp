// Train rows of label 0 that a conversion leaves out.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "tercel/data/data_identity.h"
#include "tercel/util/error.h"
#include "tercel/util/parallel.h"
#include "tests/data/convert_table.h"
#include "tests/support/errors.h"

namespace tercel::data::test {
namespace {

constexpr int kRows = 40'000;

/** Row i has the number i; every fifth label is 1. Category "rare" occurs in rows of label 0 only, five times. */
std::string rows_text() {
  std::string text = "y,n,c\n";
  for (int i = 0; i < kRows; ++i)
    text += std::string(i % 5 == 0 ? "1," : "0,") + std::to_string(i) + (i % 8000 == 1 ? ",rare\n" : ",x\n");
  return text;
}

CsvOptions sampling_options(double rate, uint64_t seed) {
  CsvOptions options = table_options();
  options.dense = {"n"};
  options.dense_transform = DenseTransform::Raw;
  options.test_every = 4;
  options.negative_rate = rate;
  options.seed = seed;
  return options;
}

std::vector<float> numbers(const TableConversion& conversion, const Dataset& dataset, PartName part) {
  return conversion.rows(dataset, part).dense;
}

TEST(ConvertNegatives, AreLeftOutOfTheTrainPartOnly) {
  TableConversion conversion;
  const std::string text = rows_text();
  const ConvertResult all = conversion.run(text, sampling_options(1, 0));
  const std::vector<float> before = numbers(conversion, all.dataset, PartName::Train),
                           test = numbers(conversion, all.dataset, PartName::Test);
  EXPECT_EQ(all.left_out_negatives, 0);
  EXPECT_EQ(all.dataset.conversion->negative_rate, 1);

  const ConvertResult some = conversion.run(text, sampling_options(0.25, 7));
  const Dataset dataset = load_dataset(some.dataset.folder);
  EXPECT_EQ(dataset.conversion->negative_rate, 0.25);
  EXPECT_EQ(identity_of(dataset).negative_rate, 0.25);
  const std::vector<float> kept = numbers(conversion, dataset, PartName::Train);
  EXPECT_EQ(numbers(conversion, dataset, PartName::Test), test);
  EXPECT_EQ(some.train_clicks, all.train_clicks) << "every row of label 1 is kept";
  EXPECT_EQ(some.test_clicks, all.test_clicks);
  EXPECT_EQ(static_cast<int64_t>(kept.size()) + some.left_out_negatives, static_cast<int64_t>(before.size()));
  const std::set<float> known(before.begin(), before.end());
  for (const float number : kept) ASSERT_TRUE(known.contains(number));
  // 24,000 negatives: five deviations of the binomial distribution are 335.
  const auto negatives = static_cast<double>(dataset.train.rows() - some.train_clicks);
  EXPECT_NEAR(negatives, 6000, 335);
}

TEST(ConvertNegatives, DependOnTheSeedAndNotOnThreads) {
  TableConversion conversion;
  const std::string text = rows_text();
  const auto kept = [&](uint64_t seed) {
    return numbers(conversion, conversion.run(text, sampling_options(0.5, seed)).dataset, PartName::Train);
  };
  const int64_t threads = num_threads();
  const std::vector<float> one = kept(1);
  set_num_threads(3);
  EXPECT_EQ(kept(1), one);
  set_num_threads(threads);
  EXPECT_NE(kept(2), one);
}

TEST(ConvertNegatives, HaveNoPartInStatistics) {
  TableConversion conversion;
  CsvOptions options = sampling_options(1e-9, 0);
  options.dense_transform = DenseTransform::Zscore;
  const ConvertResult result = conversion.run(rows_text(), options);
  EXPECT_EQ(result.dataset.train.rows(), result.train_clicks);
  EXPECT_EQ(result.fields[0].categories, 1) << "the category of negatives is not counted";
  // The rows of label 1 that are no test rows: 0, 5, 10, then 20 and so on.
  double sum = 0, count = 0;
  for (int i = 0; i < kRows; i += 5)
    if (i % 4 != 3) sum += i, ++count;
  EXPECT_NEAR(result.dataset.conversion->dense_mean[0], sum / count, 1e-6);

  TERCEL_EXPECT_THROW(conversion.run("y,n,c\n0,1,x\n0,2,x\n0,3,x\n", options), DataError,
                      "t.csv: expected train rows, found 3 of label 0, which option 'negative_rate' leaves out");
  options.negative_rate = 0;
  TERCEL_EXPECT_THROW(conversion.run(rows_text(), options), ConfigError, "negative_rate");
}

TEST(ConvertNegatives, OfLaterRowsAreKeptUnlessAskedFor) {
  TableConversion conversion;
  const Dataset dataset = conversion.run(rows_text(), sampling_options(0.25, 7)).dataset;
  const TemporaryFolder folder;
  const std::string text = folder.put("later.csv", rows_text());
  LikeOptions options;
  const ConvertResult all = convert_like(dataset, {text}, folder / "all", options, /*replace=*/false, ignore_progress);
  EXPECT_EQ(all.dataset.train.rows(), kRows);
  EXPECT_EQ(load_dataset(folder / "all").conversion->negative_rate, 1);
  options.negative_rate = 0.5;
  const ConvertResult half =
      convert_like(dataset, {text}, folder / "half", options, /*replace=*/false, ignore_progress);
  EXPECT_EQ(half.dataset.train.rows(), kRows - half.left_out_negatives);
  EXPECT_EQ(load_dataset(folder / "half").conversion->negative_rate, 0.5);
}

TEST(ConvertNegatives, RateOfADescriptionIsChecked) {
  TableConversion conversion;
  std::string json = dataset_to_json(conversion.run(rows_text(), sampling_options(0.25, 7)).dataset);
  const std::string entry = "\"negative_rate\": 0.25,";
  ASSERT_NE(json.rfind(entry), std::string::npos) << json;
  for (const char* bad : {"0", "1.5", "-1", "\"x\""}) {
    std::string changed = json;
    changed.replace(changed.rfind(entry), entry.size(), "\"negative_rate\": " + std::string(bad) + ",");
    TERCEL_EXPECT_THROW(dataset_from_json(changed, "d"), DataError, "negative_rate");
  }
  std::string older = json;
  older.erase(older.rfind(entry), entry.size());
  EXPECT_EQ(dataset_from_json(older, "d").conversion->negative_rate, 1);
}

}  // namespace
}  // namespace tercel::data::test
