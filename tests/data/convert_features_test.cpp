// libsvm's and libffm's text.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tercel/data/text_table.h"
#include "tercel/util/error.h"
#include "tests/data/convert_table.h"
#include "tests/support/errors.h"

namespace tercel::data::test {
namespace {

using Keys = std::vector<int64_t>;
using Counts = std::vector<int32_t>;

template <class Options>
Options plain() {
  Options options;
  options.min_count = {"1"};
  options.test_every = 0;
  return options;
}

class ConvertFeatures : public testing::Test {
 protected:
  ConvertResult svm(const std::string& text, const LibsvmOptions& options = plain<LibsvmOptions>()) {
    return convert_libsvm({folder_.put("t.svm", text)}, folder_ / "data", options, /*replace=*/true, ignore_progress);
  }
  ConvertResult ffm(const std::string& text, const LibffmOptions& options = plain<LibffmOptions>()) {
    return convert_libffm({folder_.put("t.ffm", text)}, folder_ / "data", options, /*replace=*/true, ignore_progress);
  }
  Rows rows(const Dataset& dataset) { return read_all(dataset); }
  void expect_error(const std::string& text, const char* message) {
    TERCEL_EXPECT_THROW(svm(text), DataError, message);
  }

  TemporaryFolder folder_;
};

TEST_F(ConvertFeatures, LibsvmIsOneSlotOfAllFeatures) {
  const ConvertResult result =
      svm("# comment\n+1 1:1 5:1.0 # why\n-1 qid:7 0:1 007:1\n\n0 5:1\n1\n1 18446744073709551616:1 5:0 5:1 5:1\r\n");
  const Schema& schema = result.dataset.schema;
  ASSERT_EQ(schema.slots.size(), 1u);
  EXPECT_EQ(schema.slots[0].name, "features");
  EXPECT_EQ(schema.slots[0].size, 6);
  EXPECT_EQ(schema.slots[0].hotness, 3);
  EXPECT_FALSE(schema.slots[0].weighted);
  EXPECT_EQ(schema.label_names, std::vector<std::string>{"label"});
  const Rows all = rows(result.dataset);
  EXPECT_EQ(all.labels, (std::vector<float>{1, 0, 0, 1, 1}));
  EXPECT_EQ(all.nnz, (Counts{2, 2, 1, 0, 3}));
  // By count, then by text: 5, 0, 1, 18446744073709551616, 7.
  EXPECT_EQ(all.keys, (Keys{3, 1, 2, 5, 1, 4, 1, 1}));
  EXPECT_EQ(*result.dataset.conversion->setting("values"), "auto");
}

TEST_F(ConvertFeatures, LibffmHasASlotForEachField) {
  const ConvertResult result = ffm("1 2:10:1 0:3:1 2:11:1\n0 10:1:1 0:3:1\n1 0:4:0\n");
  const Schema& schema = result.dataset.schema;
  ASSERT_EQ(schema.slots.size(), 3u);
  EXPECT_EQ(schema.slots[0].name, "field0");
  EXPECT_EQ(schema.slots[1].name, "field2");
  EXPECT_EQ(schema.slots[2].name, "field10");
  EXPECT_EQ(schema.slot_size_array(), (Keys{2, 3, 2}));
  const Rows all = rows(result.dataset);
  EXPECT_EQ(all.nnz, (Counts{1, 2, 0, 1, 0, 1, 0, 0, 0}));
  EXPECT_EQ(all.keys, (Keys{1, 3, 4, 1, 6})) << "in the order of the fields";
  EXPECT_EQ(*result.dataset.conversion->setting("field_numbers"), R"(["0","2","10"])");

  LibffmOptions options = plain<LibffmOptions>();
  options.field_numbers = {"10", "0"};
  TERCEL_EXPECT_THROW(ffm("1 2:10:1\n", options), DataError,
                      "t.ffm: line 1: column 2: expected one of the 2 fields of the dataset, found field '2'");
  options.field_numbers = {"0", "x"};
  TERCEL_EXPECT_THROW(ffm("", options), ConfigError, "'field_numbers': expected numbers from 0 on, found 'x'");
  options.field_numbers = {"1", "01"};
  TERCEL_EXPECT_THROW(ffm("", options), ConfigError, "'field_numbers': expected each number once, found 1 twice");
  TERCEL_EXPECT_THROW(ffm("1\n0\n"), DataError, "t.ffm: expected features, found none");
  TERCEL_EXPECT_THROW(ffm("1 99999999999999999999:1:1\n"), DataError, "expected the number of a field below 2^63");
}

TEST_F(ConvertFeatures, ValuesAreWeightsUnlessAllAreOne) {
  const std::string text = "1 1:0.5 2:1\n0 2:0\n";
  TERCEL_EXPECT_THROW(svm(text), ConfigError,
                      "slot 'features': expected keys without weights, which the files cannot hold, found keys with "
                      "weights; with the value 'ignore' of option 'values', values are left out");
  LibsvmOptions options = plain<LibsvmOptions>();
  options.values = FeatureValues::Weights;
  TERCEL_EXPECT_THROW(svm("1 1:1\n", options), ConfigError, "weights");
  options.values = FeatureValues::Ignore;
  EXPECT_EQ(rows(svm(text, options).dataset).nnz, (Counts{2, 0})) << "a value of 0 is no feature";

  // Later text is held to what the first one was.
  const Dataset dataset = svm("1 1:1\n").dataset;
  TextTable table(text_format_of(*dataset.conversion), {{folder_.put("later", text), "later"}});
  TextBlock block;
  TextRows later;
  ASSERT_TRUE(table.next(block));
  TERCEL_EXPECT_THROW(
      table.parse(block, later), DataError,
      "later: line 1: column 2: expected the value 1, as in the text that was converted, found '1:0.5'");
}

TEST_F(ConvertFeatures, OptionsOfTablesApply) {
  LibffmOptions options = plain<LibffmOptions>();
  options.min_count = {"1", "field1=2"};
  options.max_hotness = {"field0=1"};
  options.positive = {">2"};
  options.test_every = 4;
  const std::string text = "5 0:1:1 0:2:1 1:1:1\n1 1:1:1\n3 1:2:1\n4 0:9:1\n";
  const ConvertResult result = ffm(text, options);
  EXPECT_EQ(result.dataset.schema.slot_size_array(), (Keys{2, 2}));
  EXPECT_EQ(result.cut_values, 1);
  EXPECT_EQ(result.train_clicks, 2);
  EXPECT_EQ(result.dataset.test.rows(), 1);
  options.hash_buckets = {"field0=50"};
  EXPECT_EQ(ffm(text, options).dataset.schema.slots[0].size, 50);
  options.min_count = {"field7=2"};
  TERCEL_EXPECT_THROW(ffm(text, options), ConfigError, "[libffm] option 'min_count': expected one of the columns");
}

TEST_F(ConvertFeatures, SaysWhatIsWrong) {
  expect_error("2 1:1\n", "t.svm: line 1: column 1 (label): expected 0, 1 or -1, found '2'");
  expect_error("1:1 2:1\n", "t.svm: line 1: column 1 (label): expected a label, found '1:1'");
  expect_error("1 1:1\n1 a:1\n", "t.svm: line 2: column 2: expected the index of a feature, a whole number from 0 on");
  for (const char* index : {"", "-1", "+1", "1.5", "1e3", " "})
    expect_error("1 " + std::string(index) + ":1\n", "t.svm: line 1: column 2: expected ");
  for (const char* value : {"", "x", "nan", "inf", "1e39", "1:1"})
    expect_error("1 1:" + std::string(value) + "\n", "expected a finite number as the value");
  expect_error("1 5\n", "t.svm: line 1: column 2: expected index:value, found '5'");
  expect_error("# nothing\n", "t.svm: expected rows, found none");
  TERCEL_EXPECT_THROW(ffm("1 1:1\n"), DataError, "t.ffm: line 1: column 2: expected field:index:value, found '1:1'");
  TERCEL_EXPECT_THROW(ffm("1 x:1:1\n"), DataError, "expected the number of a field, from 0 on, found 'x:1:1'");
  TERCEL_EXPECT_THROW(ffm("1 qid:1:1\n"), DataError, "expected the number of a field");
}

}  // namespace
}  // namespace tercel::data::test
