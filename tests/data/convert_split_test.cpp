// Division of rows into parts.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "tercel/util/error.h"
#include "tercel/util/format.h"
#include "tests/data/convert_table.h"
#include "tests/support/errors.h"

namespace tercel::data::test {
namespace {

/** Row i has the dense value i. */
std::string numbered(int count, int first = 0) {
  std::string text = "y,n,ts,c\n";
  for (int i = first; i < first + count; ++i)
    text += std::to_string(i % 2) + "," + std::to_string(i) + ",2024-05-" + (i < 9 ? "0" : "") + std::to_string(i + 1) +
            ",x\n";
  return text;
}

CsvOptions numbered_options() {
  CsvOptions options = table_options();
  options.dense = {"n"};
  options.dense_transform = DenseTransform::Raw;
  return options;
}

struct Numbers {
  std::vector<float> train, valid, test;
};

Numbers divide(const std::string& text, const CsvOptions& options) {
  TableConversion conversion;
  const ConvertResult result = conversion.run(text, options);
  const Dataset dataset = load_dataset(result.dataset.folder);
  EXPECT_EQ(dataset.train, result.dataset.train);
  const auto numbers = [&](PartName part) { return conversion.rows(dataset, part).dense; };
  const auto clicks = [&](PartName part) {
    int64_t count = 0;
    for (const float label : conversion.rows(dataset, part).labels) count += label != 0 ? 1 : 0;
    return count;
  };
  for (const auto& [name, part] : dataset.parts()) EXPECT_EQ(result.clicks(name), clicks(name));
  return {numbers(PartName::Train), numbers(PartName::Valid), numbers(PartName::Test)};
}

TEST(ConvertSplit, ByRowNumbers) {
  CsvOptions options = numbered_options();
  options.test_every = 4;
  options.valid_every = 3;
  const Numbers every = divide(numbered(12), options);
  EXPECT_EQ(every.test, (std::vector<float>{3, 7, 11}));
  EXPECT_EQ(every.valid, (std::vector<float>{2, 6, 10})) << "of the rows that are left, every third";
  EXPECT_EQ(every.train, (std::vector<float>{0, 1, 4, 5, 8, 9}));

  options = numbered_options();
  options.test_every = -1;
  options.test_from = "10";
  options.valid_from = "8";
  const Numbers from = divide(numbered(12), options);
  EXPECT_EQ(from.test, (std::vector<float>{10, 11}));
  EXPECT_EQ(from.valid, (std::vector<float>{8, 9}));
  EXPECT_EQ(from.train.size(), 8u);

  options.test_from = "";
  EXPECT_TRUE(divide(numbered(12), options).test.empty()) << "no default test rows where others are chosen by place";
  options = numbered_options();
  options.test_every = -1;
  options.valid_every = 5;
  EXPECT_EQ(divide(numbered(12), options).test, std::vector<float>{9}) << "the default";
}

TEST(ConvertSplit, ByTimes) {
  CsvOptions options = numbered_options();
  options.test_every = -1;
  options.time_column = "ts";
  options.test_from = "2024-05-11";
  options.valid_from = "2024-05-09T00:00:00Z";
  const Numbers iso = divide(numbered(12), options);
  EXPECT_EQ(iso.test, (std::vector<float>{10, 11}));
  EXPECT_EQ(iso.valid, (std::vector<float>{8, 9}));

  options.time_column = "n";
  options.test_from = "9.5";
  options.valid_from = "-1e3";
  const std::string text = "y,n,ts,c\n1,12,,x\n0,-2000,,x\n1,3,,x\n0,10,,x\n";
  const Numbers numbers = divide(text, options);
  EXPECT_EQ(numbers.test, (std::vector<float>{12, 10})) << "rows need not be in order of time";
  EXPECT_EQ(numbers.valid, std::vector<float>{3});
  EXPECT_EQ(numbers.train, std::vector<float>{-2000});

  // A column of numbers, in milliseconds, and a time of the calendar.
  options.time_unit = TimeUnit::Milliseconds;
  options.test_from = "1970-01-01T00:00:00.010";
  options.valid_from = "";
  EXPECT_EQ(divide(text, options).test, (std::vector<float>{12, 10}));
}

TEST(ConvertSplit, TheLastTenthByTimeValidates) {
  std::string text = "y,n,ts,c\n";
  for (int i = 0; i < 50; ++i)  // times 0 to 49, in no order
    text += str_cat({i % 2, ",", i * 7 % 50, ",,x\n"});
  CsvOptions options = numbered_options();
  options.test_every = -1;
  options.time_column = "n";
  options.test_from = "40";
  TableConversion conversion;
  const Dataset dataset = conversion.run(text, options).dataset;
  const std::vector<float> valid = conversion.rows(dataset, PartName::Valid).dense;
  EXPECT_EQ(std::set<float>(valid.begin(), valid.end()), (std::set<float>{36, 37, 38, 39}));
  EXPECT_EQ(dataset.train.rows(), 36);
  EXPECT_EQ(*dataset.conversion->setting("valid_from"), "36");
  CsvOptions without_test = options;
  without_test.test_from = "";
  const Numbers alone = divide(text, without_test);
  EXPECT_EQ(std::set<float>(alone.valid.begin(), alone.valid.end()), (std::set<float>{45, 46, 47, 48, 49}));
  EXPECT_TRUE(alone.test.empty());
  without_test.test_every = 5;
  EXPECT_EQ(divide(text, without_test).test.size(), 10u) << "where it is asked for";
  options.valid_every = 0;
  EXPECT_EQ(divide(text, options).valid.size(), 0u);
  options.valid_every = 4;
  EXPECT_EQ(divide(text, options).valid.size(), 10u);
  options.valid_every = -1;
  text = "y,n,ts,c\n";
  for (int i = 0; i < 20; ++i) text += str_cat({i % 2, ",", i < 18 ? 5 : 50, ",,x\n"});
  EXPECT_EQ(divide(text, options).valid.size(), 0u) << "all train rows are of one time";
}

TEST(ConvertSplit, ByFiles) {
  TableConversion conversion;
  CsvOptions options = numbered_options();
  options.test_every = -1;
  options.test = {conversion.folder().put("test1.csv", numbered(2, 20)),
                  conversion.folder().put("test2.csv", numbered(1, 22))};
  options.valid = {conversion.folder().put("valid.csv", "c,y,n,ts\nx,1,9,\n")};
  const ConvertResult result = conversion.run(numbered(12), options);
  const auto numbers = [&](PartName part) { return conversion.rows(result.dataset, part).dense; };
  EXPECT_EQ(numbers(PartName::Train).size(), 12u);
  EXPECT_EQ(numbers(PartName::Valid), std::vector<float>{9});
  EXPECT_EQ(numbers(PartName::Test), (std::vector<float>{20, 21, 22}));
  EXPECT_EQ(result.fields[0].values, 12) << "of train rows only";

  options.valid.clear();
  options.valid_every = 6;
  EXPECT_EQ(conversion.run(numbered(12), options).dataset.valid.rows(), 2);
  options.test = {conversion.folder().put("none.csv", "y,n,ts,c\n")};
  TERCEL_EXPECT_THROW(conversion.run(numbered(12), options), DataError, "none.csv: expected rows, found none");
  options.test = {conversion.folder() / "absent.csv"};
  TERCEL_EXPECT_THROW(conversion.run(numbered(12), options), IoError, "absent.csv");
}

TEST(ConvertSplit, RelativePathsStartInTheSourceFolder) {
  TableConversion conversion;
  const TemporaryFolder& folder = conversion.folder();
  folder.put("in/train.csv", numbered(12));
  folder.put("in/test.csv", numbered(2, 20));
  CsvOptions options = numbered_options();
  options.test_every = -1;
  options.test = {"test.csv"};
  options.valid = {folder.put("valid.csv", numbered(1, 22))};
  options.source_folder = folder / "in";
  const auto run = [&] {
    return convert_csv({"train.csv"}, folder / "data", options, /*replace=*/true, ignore_progress);
  };
  const Dataset dataset = run().dataset;
  EXPECT_EQ(conversion.rows(dataset, PartName::Train).dense.size(), 12u);
  EXPECT_EQ(conversion.rows(dataset, PartName::Valid).dense, std::vector<float>{22});
  EXPECT_EQ(conversion.rows(dataset, PartName::Test).dense, (std::vector<float>{20, 21}));
  EXPECT_EQ(dataset.conversion->sources, std::vector<std::string>{"train.csv"}) << "as it is given";
  EXPECT_EQ(*dataset.conversion->setting("test"), "[\"test.csv\"]");
  folder.put("in/test.csv", "y,n,ts,c\nno,1,,x\n");
  try {
    run();
    ADD_FAILURE() << "expected a DataError";
  } catch (const DataError& error) {
    EXPECT_TRUE(std::string(error.what()).starts_with("test.csv: line 2: ")) << error.what();
  }
}

TEST(ConvertSplit, OptionsExcludeEachOther) {
  TableConversion conversion;
  const auto refused = [&](const auto& change, const char* text) {
    CsvOptions options = numbered_options();
    options.test_every = -1;
    change(options);
    TERCEL_EXPECT_THROW(conversion.run(numbered(12), options), ConfigError, text);
  };
  refused([](CsvOptions& o) { o.test_every = 5, o.test_from = "3"; },
          "[csv] options 'test_every' and 'test_from' exclude each other, found both");
  refused([](CsvOptions& o) { o.test_every = 5, o.test = {"t"}; }, "'test_every' and 'test' exclude");
  refused([](CsvOptions& o) { o.test_from = "5", o.test = {"t"}; }, "'test_from' and 'test' exclude");
  refused([](CsvOptions& o) { o.valid_every = 5, o.valid_from = "3"; }, "'valid_every' and 'valid_from' exclude");
  refused([](CsvOptions& o) { o.valid_every = 5, o.valid = {"t"}; }, "'valid_every' and 'valid' exclude");
  refused([](CsvOptions& o) { o.valid_from = "5", o.valid = {"t"}; }, "'valid_from' and 'valid' exclude");
  refused([](CsvOptions& o) { o.valid_from = "5", o.test_from = "5"; },
          "option 'valid_from': expected less than 'test_from', which is '5', found '5'");
  refused([](CsvOptions& o) { o.test_from = "-1"; }, "option 'test_from': expected the number of a row, from 0 on");
  refused([](CsvOptions& o) { o.valid_from = "2024-05-01"; }, "(a time needs 'time_column' too), found '2024-05-01'");
  refused([](CsvOptions& o) { o.time_column = "ts", o.test_from = "May"; },
          "option 'test_from': expected a number or a timestamp such as 2024-05-01T12:30:00, found 'May'");
  refused([](CsvOptions& o) { o.test_every = -2; }, "option 'test_every': expected at least -1");
}

TEST(ConvertSplit, PartsThatWereAskedForHaveRows) {
  TableConversion conversion;
  const auto refused = [&](const auto& change, const char* text) {
    CsvOptions options = numbered_options();
    options.test_every = -1;
    change(options);
    TERCEL_EXPECT_THROW(conversion.run(numbered(12), options), DataError, text);
  };
  refused([](CsvOptions& o) { o.test_every = 13; },
          "t.csv: expected rows for option 'test_every', at least 13 rows, found 12");
  refused([](CsvOptions& o) { o.test_every = 2, o.valid_every = 7; },
          "t.csv: expected rows for option 'valid_every', at least 7 rows that are no test rows, found 6");
  refused([](CsvOptions& o) { o.test_from = "12"; },
          "t.csv: expected rows for option 'test_from', from row 12 on, found 12 rows");
  refused([](CsvOptions& o) { o.valid_from = "11", o.test_every = 12; },
          "t.csv: expected rows for option 'valid_from', from row 11 on, found 12 rows");
  refused([](CsvOptions& o) { o.time_column = "n", o.test_from = "11.5"; },
          "t.csv: expected rows for option 'test_from', at times from 11.5 on, found times from 0 to 11");
  refused([](CsvOptions& o) { o.valid_from = "0"; }, "found 12 rows, which are all validation rows");
  refused([](CsvOptions& o) { o.valid_from = "0", o.test_from = "1"; }, "which are all test or validation rows");
  refused([](CsvOptions& o) { o.time_column = "c", o.test_from = "1"; },
          "t.csv: line 2: column 4 (c): expected a number or a timestamp such as 2024-05-01T12:30:00, found 'x'");
  refused([](CsvOptions& o) { o.time_column = "when", o.test_from = "1"; }, "expected a column 'when'");
}

}  // namespace
}  // namespace tercel::data::test
