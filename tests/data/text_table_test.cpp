#include "tercel/data/text_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tercel/util/error.h"
#include "tests/support/errors.h"
#include "tests/util/gzip_data.h"
#include "tests/util/temporary_folder.h"

namespace tercel::data {
namespace {

using tercel::test::gzip;
using tercel::test::TemporaryFolder;

struct ReadRow {
  float label;
  std::vector<double> dense;  // -999: missing
  std::vector<std::string> categories;
  friend bool operator==(const ReadRow&, const ReadRow&) = default;
};

std::vector<ReadRow> rest(TextTable& table) {
  std::vector<ReadRow> all;
  TextBlock block;
  TextRows rows;
  while (table.next(block)) {
    table.parse(block, rows);
    for (size_t row = 0; row < static_cast<size_t>(rows.rows); ++row) {
      ReadRow& read = all.emplace_back();
      read.label = rows.labels[row];
      for (const std::vector<double>& column : rows.dense)
        read.dense.push_back(std::isnan(column[row]) ? -999 : column[row]);
      for (const TextValues& field : rows.fields) read.categories.emplace_back(field.values[row]);
    }
  }
  return all;
}

class TextTableTest : public testing::Test {
 protected:
  std::vector<ReadRow> read(const TextFormat& format, const std::vector<std::string>& texts,
                            LabelColumn label = LabelColumn::Required) {
    std::vector<TextSource> sources;
    for (size_t i = 0; i < texts.size(); ++i)
      sources.push_back({folder_.put("t" + std::to_string(i), texts[i]), "t" + std::to_string(i)});
    TextTable table(format, sources, label);
    std::vector<ReadRow> rows = rest(table);
    has_label_ = table.has_label();
    EXPECT_EQ(table.bytes_done(), table.bytes_total());
    return rows;
  }
  void expect_error(const TextFormat& format, const std::vector<std::string>& texts, const std::string& message,
                    LabelColumn label = LabelColumn::Required) {
    SCOPED_TRACE(testing::PrintToString(texts));
    TERCEL_EXPECT_THROW(read(format, texts, label), DataError, message);
  }

  TemporaryFolder folder_;
  bool has_label_ = false;
};

/** label, dense, category. */
TextFormat plain_format() {
  CsvOptions options;
  options.label = "1";
  options.dense = {"2"};
  options.categorical = {"3"};
  options.no_header = true;
  return csv_format(options);
}

TextFormat named_format() {
  CsvOptions options;
  options.label = "click";
  options.dense = {"age"};
  options.categorical = {"city", "age"};
  return csv_format(options);
}

std::string criteo_line(const std::string& label, int columns = 40) {
  std::string line = label;
  for (int i = 1; i < columns; ++i) line += i <= 13 ? "\t" + std::to_string(i) : "\tc" + std::to_string(i);
  return line + "\n";
}

TEST_F(TextTableTest, ReadsNumbersOfAllKinds) {
  const std::pair<const char*, double> cases[] = {
      {"0", 0},
      {"-0", -0.0},
      {"7", 7},
      {"-3", -3},
      {"+5", 5},
      {"1.5", 1.5},
      {".5", 0.5},
      {"1e3", 1000},
      {"-2.5E-1", -0.25},
      {"007", 7},
      {"999999999999999", 999999999999999.0},
      {"1234567890123456789", 1234567890123456789.0},
      {"", -999},
  };
  for (const auto& [text, value] : cases) {
    const std::vector<ReadRow> rows = read(plain_format(), {"1," + std::string(text) + ",a\n"});
    ASSERT_EQ(rows.size(), 1u);
    EXPECT_EQ(rows[0], (ReadRow{1, {value}, {"a"}})) << text;
  }
  for (const char* text : {"abc", "1x", "--1", "+-1", "-", "+", ".", "1 ", " 1", "0x10", "1,5"}) {
    const std::string quoted = std::string("1,\"") + text + "\",a\n";
    expect_error(plain_format(), {"1,2,a\n" + quoted},
                 "t0: line 2: column 2: expected a number or nothing, found '" + std::string(text) + "'");
  }
  for (const char* text : {"nan", "inf", "-inf", "1e39", "-1e300"})
    expect_error(plain_format(), {"1," + std::string(text) + ",a\n"},
                 "t0: line 1: column 2: expected a finite number, found '");
  expect_error(plain_format(), {"1,1e999,a\n"}, "column 2: expected a number or nothing");
  expect_error(plain_format(), {"1," + std::string(100, 'x') + ",a\n"}, "found '" + std::string(40, 'x') + "...'");
}

TEST_F(TextTableTest, TakesLabelsZeroAndOneOnly) {
  EXPECT_EQ(read(plain_format(), {"0,,\n1,,\n1.0,,\n"}).size(), 3u);
  expect_error(plain_format(), {"1,,\n2,,\n"}, "t0: line 2: column 1: expected 0 or 1, found '2'");
  expect_error(plain_format(), {"-1,,\n"}, "expected 0 or 1, found '-1'");
  expect_error(plain_format(), {",,\n"}, "expected 0 or 1, found nothing");
  expect_error(plain_format(), {"yes,,\n"}, "expected 0 or 1, found 'yes'");
}

TEST_F(TextTableTest, TakesTextsForLabels) {
  TextFormat format = plain_format();
  format.positive = {"yes", "oui"};
  const std::vector<ReadRow> rows = read(format, {"yes,,\noui,,\nwhatever,,\n"});
  EXPECT_EQ(rows[0].label, 1);
  EXPECT_EQ(rows[1].label, 1);
  EXPECT_EQ(rows[2].label, 0);
  expect_error(format, {"yes,,\n,,\n"}, "t0: line 2: column 1: expected a label, found nothing");
  format.negative = {"no"};
  EXPECT_EQ(read(format, {"no,,\n"})[0].label, 0);
  expect_error(format, {"whatever,,\n"}, "expected one of the labels given, found 'whatever'");
}

TEST_F(TextTableTest, NamesTheMissingColumns) {
  expect_error(plain_format(), {"1,2,a\n1,2\n"}, "t0: line 2: expected 3 columns, found 2 columns");
  expect_error(plain_format(), {"1,2,a\n1,2,a,4\n"}, "t0: line 2: expected 3 columns, found 4 columns");
  expect_error(plain_format(), {"1,2\n"}, "t0: line 1: expected a column 3, found 2 columns");
  expect_error(plain_format(), {"1,2,a\n", "1,2,a,4\n"}, "t1: line 1: expected 3 columns, found 4 columns");
  expect_error(criteo_format(), {criteo_line("1") + criteo_line("0", 39)}, "t0: line 2: expected 40 columns, found 39");
  expect_error(criteo_format(), {criteo_line("1", 39)}, "t0: line 1: expected 40 columns, found 39");
  expect_error(criteo_format(), {criteo_line("1") + "\n"}, "t0: line 2: expected 40 columns, found 1 column");
  expect_error(criteo_format(), {"1\tx" + criteo_line("").substr(2)}, "t0: line 1: column 2 (I1): expected a number");
}

TEST_F(TextTableTest, FindsColumnsByName) {
  EXPECT_EQ(read(named_format(), {"city,click,age\nRome,1,30\n",
                                  "\xef\xbb\xbf"
                                  "age,more,click,city\r\n31,x,0,Oslo"}),
            (std::vector<ReadRow>{{1, {30}, {"Rome", "30"}}, {0, {31}, {"Oslo", "31"}}}));
  expect_error(named_format(), {"town,click,age\n"},
               "t0: line 1: expected a column 'city', found 3 columns of other names");
  expect_error(named_format(), {"citty,click,age\n"}, "did you mean 'citty'?");
  expect_error(named_format(), {"city,click,age,city\n"}, "t0: line 1: expected one column 'city', found two");
  expect_error(named_format(), {""}, "t0: expected a line with the names of the columns, found an empty file");
  expect_error(named_format(), {"city,click,age\nRome,1\n"}, "t0: line 2: expected 3 columns, found 2 columns");
  expect_error(named_format(), {"city,click,age\nRome,1,x\n"}, "t0: line 2: column 3 (age): expected a number");
  EXPECT_TRUE(read(named_format(), {"city,click,age\n"}).empty());
  TextFormat format = plain_format();
  format.label = "click";
  TERCEL_EXPECT_THROW(read(format, {"1,2,3\n"}), ConfigError, "expected the number of a column, from 1");
}

TEST_F(TextTableTest, LabelMayBeAbsentWhereItIsNotNeeded) {
  EXPECT_EQ(read(named_format(), {"city,age\nRome,30\n"}, LabelColumn::Optional),
            (std::vector<ReadRow>{{0, {30}, {"Rome", "30"}}}));
  EXPECT_FALSE(has_label_);
  expect_error(named_format(), {"city,age\nRome,30\n"}, "expected a column 'click'");

  const std::vector<ReadRow> with = read(criteo_format(), {criteo_line("1")}, LabelColumn::Optional);
  EXPECT_TRUE(has_label_);
  const std::string bare = criteo_line("").substr(1);
  const std::vector<ReadRow> without = read(criteo_format(), {bare + bare}, LabelColumn::Optional);
  EXPECT_FALSE(has_label_);
  ASSERT_EQ(without.size(), 2u);
  EXPECT_EQ(without[1].dense, with[0].dense);
  EXPECT_EQ(without[1].categories, with[0].categories);
  expect_error(criteo_format(), {bare + criteo_line("1")}, "t0: line 2: expected 39 columns, found 40",
               LabelColumn::Optional);
  expect_error(criteo_format(), {criteo_line("1", 38)}, "t0: line 1: expected 40 columns, found 38",
               LabelColumn::Optional);

  // The label is in the middle: later columns shift.
  CsvOptions options;
  options.label = "2";
  options.dense = {"1"};
  options.categorical = {"3"};
  options.no_header = true;
  options.columns = 3;
  EXPECT_EQ(read(csv_format(options), {"5,a\n"}, LabelColumn::Optional), (std::vector<ReadRow>{{0, {5}, {"a"}}}));
}

TEST_F(TextTableTest, ReadsSeveralFilesPlainAndGzip) {
  const std::string big = [] {
    std::string text;
    for (int i = 0; i < 50000; ++i) text += "1," + std::to_string(i) + ",c" + std::to_string(i % 7) + "\n";
    return text;
  }();
  const std::vector<ReadRow> rows = read(plain_format(), {gzip(big), "", "0,1,last"});
  ASSERT_EQ(rows.size(), 50001u);
  EXPECT_EQ(rows[49999], (ReadRow{1, {49999}, {"c5"}}));
  EXPECT_EQ(rows[50000], (ReadRow{0, {1}, {"last"}}));
  const std::string zipped = gzip(big);
  expect_error(plain_format(), {zipped.substr(0, zipped.size() / 2)}, "it is truncated");
  TERCEL_EXPECT_THROW(TextTable(plain_format(), {{folder_ / "none", "none"}}), IoError, "none");
}

TEST_F(TextTableTest, BlocksEndBetweenRecords) {
  CsvOptions options;
  options.label = "click";
  options.categorical = {"city"};
  // A mark, and a record with quotes at the very start and at every end of a block.
  std::string text = "\xef\xbb\xbf\"click\",\"city\"\n";
  std::vector<ReadRow> expected;
  for (int i = 0; i < 300; ++i) {
    std::string city;
    for (int line = 0; line < 100; ++line) city += "line " + std::to_string(line * i) + ", a\n";
    text += "1,\"" + city + "\"\r\n";
    expected.push_back({1, {}, {city}});
  }
  ASSERT_GT(text.size(), size_t{1} << 18);
  EXPECT_EQ(read(csv_format(options), {text, text.substr(3)}).size(), 600u);
  EXPECT_EQ(read(csv_format(options), {text}), expected);
  expect_error(csv_format(options), {text + "x,Rome\n"}, "t0: line 30302: column 1 (click): expected 0 or 1");
}

TEST_F(TextTableTest, RecordsMayBeLongerThanABlock) {
  CsvOptions options;
  options.label = "1";
  options.categorical = {"2"};
  options.no_header = true;
  const TextFormat format = csv_format(options);
  // What is left of a block of several long records may be longer than the next block begins with.
  for (const int64_t first : {60'000, 135'001, 262'140}) {
    std::string text;
    std::vector<ReadRow> expected;
    for (const int64_t size : {first, int64_t{140'000}, int64_t{3}, int64_t{700'000}, int64_t{65'530}, int64_t{2}}) {
      std::string city;
      while (static_cast<int64_t>(city.size()) < size) city += std::to_string(city.size());
      text += "1," + city + "\n";
      expected.push_back({1, {}, {city}});
    }
    EXPECT_TRUE(read(format, {text, text}).size() == 12 && read(format, {text}) == expected) << first;
  }
}

TEST_F(TextTableTest, SkippedLinesMayBeLongerThanAnyBlock) {
  CsvOptions options;
  options.label = "click";
  options.dense = {"age"};
  options.skip_lines = 350'000;
  std::string text;
  for (int64_t line = 0; line < options.skip_lines; ++line) text += "\"skipped" + std::string(100, 'x') + "\n";
  ASSERT_GT(text.size(), size_t{36} << 20);
  EXPECT_EQ(read(csv_format(options), {text + "click,age\n1,5\n"}), (std::vector<ReadRow>{{1, {5}, {}}}));
  expect_error(csv_format(options), {text + "click,age\n1,5\n1,x\n"}, "t0: line 350003: column 2");
  expect_error(csv_format(options), {text}, "t0: expected a line with the names of the columns, found no more lines");
}

TEST_F(TextTableTest, NamesMayFollowLongComments) {
  CsvOptions options;
  options.label = "click";
  options.dense = {"age"};
  options.comment = "#";
  options.skip_lines = 1;
  std::string comments = "\"skipped\n";
  while (comments.size() < 300'000) comments += "# \"a comment\n\n";
  EXPECT_EQ(read(csv_format(options), {comments + "click,age\n1,5\n"}), (std::vector<ReadRow>{{1, {5}, {}}}));
  expect_error(csv_format(options), {comments},
               "t0: expected a line with the names of the columns, found no more lines");
  const auto lines = std::count(comments.begin(), comments.end(), '\n');
  expect_error(csv_format(options), {comments + "click,ag\n"},
               "t0: line " + std::to_string(lines + 1) + ": expected a column 'age'");
}

TEST_F(TextTableTest, SkipsLinesAndDropsBlanksAndMissingTexts) {
  CsvOptions options;
  options.label = "click";
  options.dense = {"age"};
  options.categorical = {"city"};
  options.skip_lines = 2;
  options.trim = true;
  options.missing = {"?", "NA"};
  options.delimiter = ";";
  EXPECT_EQ(
      read(csv_format(options), {"# \"comment\n\nclick ; age; city\n 1; 30 ; Rome \n0;?;NA\n\n   \n0 ; ; \"?\"\n"}),
      (std::vector<ReadRow>{{1, {30}, {"Rome"}}, {0, {-999}, {""}}, {0, {-999}, {""}}}));
  expect_error(csv_format(options), {"1;2\n"},
               "t0: expected a line with the names of the columns, found no more lines");
}

TEST(TextFormat, ChecksOptionsAndComesBackFromSettings) {
  CsvOptions options;
  TERCEL_EXPECT_THROW(csv_format(options), ConfigError, "'label'");
  options.label = "y";
  TERCEL_EXPECT_THROW(csv_format(options), ConfigError, "'dense' or 'categorical'");
  options.dense = {"a, with comma", "b"};
  options.categorical = {"c", "y"};
  TERCEL_EXPECT_THROW(csv_format(options), ConfigError, "found 'y' in 'categorical' too");
  options.categorical.clear();
  options.negative = {"no"};
  TERCEL_EXPECT_THROW(csv_format(options), ConfigError, "'negative': expected 'positive'");
  options.positive = {"yes"};
  for (const char* delimiter : {"", "ab", "\"", "\n"}) {
    options.delimiter = delimiter;
    TERCEL_EXPECT_THROW(csv_format(options), ConfigError, "'delimiter'");
  }
  options.delimiter = "tab";
  options.trim = true;
  options.skip_lines = 3;
  EXPECT_EQ(csv_format(options).delimiter, '\t');

  Conversion conversion;
  conversion.tool = "csv";
  for (const OptionField& field : option_table<CsvOptions>())
    conversion.settings.push_back({std::string(field.name), option_text(field, &options)});
  const TextFormat format = text_format_of(conversion);
  EXPECT_EQ(format.dense, options.dense);
  EXPECT_EQ(format.positive, options.positive);
  EXPECT_EQ(format.skip_lines, 3);
  EXPECT_TRUE(format.trim);
  EXPECT_EQ(format.delimiter, '\t');
  conversion.tool = "generate";
  TERCEL_EXPECT_THROW(text_format_of(conversion), ConfigError, "converted from text");
}

}  // namespace
}  // namespace tercel::data
