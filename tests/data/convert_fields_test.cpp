// Labels, categories, lists and parts of times of tables.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tercel/data/formats/raw_format.h"
#include "tercel/data/row_encoder.h"
#include "tercel/util/checksum.h"
#include "tercel/util/error.h"
#include "tests/data/convert_table.h"
#include "tests/support/errors.h"

namespace tercel::data::test {
namespace {

using Names = std::vector<std::string>;
using Keys = std::vector<int64_t>;

std::vector<float> labels(const std::string& values, const Names& positive, const Names& negative = {}) {
  TableConversion conversion;
  CsvOptions options = table_options();
  options.positive = positive;
  options.negative = negative;
  std::string text = "y,c\n";
  for (const char value : values) text += std::string(1, value) + ",x\n";
  return conversion.rows(conversion.run(text, options).dataset, PartName::Train).labels;
}

TEST(ConvertLabels, AreTextsOrComparisons) {
  using Labels = std::vector<float>;
  EXPECT_EQ(labels("12345", {">=4"}), (Labels{0, 0, 0, 1, 1}));
  EXPECT_EQ(labels("12345", {">4"}), (Labels{0, 0, 0, 0, 1}));
  EXPECT_EQ(labels("12345", {"<=2"}), (Labels{1, 1, 0, 0, 0}));
  EXPECT_EQ(labels("12345", {"< 2"}), (Labels{1, 0, 0, 0, 0}));
  EXPECT_EQ(labels("12345", {"=3.0", "1"}), (Labels{1, 0, 1, 0, 0}));
  EXPECT_EQ(labels("125", {">=4"}, {"<=2"}), (Labels{0, 0, 1}));
  EXPECT_EQ(labels("1>", {"=>"}), (Labels{0, 1})) << "a text behind '=' is the label itself";
  TERCEL_EXPECT_THROW(labels("12345", {">=4"}, {"<=2"}), DataError,
                      "t.csv: line 4: column 1 (y): expected one of the labels given, found '3'");
  TERCEL_EXPECT_THROW(labels("5x", {">=4"}), DataError, "t.csv: line 3: column 1 (y): expected a number, found 'x'");
  EXPECT_EQ(labels("5x", {">=4", "x"}), (Labels{1, 1}));
  TERCEL_EXPECT_THROW(labels("12345", {"5"}, {"1", "5"}), ConfigError,
                      "[csv] expected '5' in one of the options 'positive' and 'negative', found it in both");
}

TEST(ConvertLabels, ThatMeanOneOccur) {
  TERCEL_EXPECT_THROW(labels("12345", {">5"}), DataError,
                      "t.csv: expected a label '>5', as option 'positive' says, in column 'y', found '1', '2', '3', "
                      "'4', '5'");
  TERCEL_EXPECT_THROW(labels("1y", {"1", "Y"}), DataError, "found '1', 'y'; did you mean 'y'?");
  TERCEL_EXPECT_THROW(labels("abcdefghijklm", {"x"}), DataError, "'j' ...");

  // Files of test rows that write labels in another way.
  TableConversion conversion;
  CsvOptions options = table_options();
  options.positive = {"yes"};
  options.test_every = -1;
  options.test = {conversion.folder().put("test.csv", "y,c\nyes.,x\nno.,x\n")};
  TERCEL_EXPECT_THROW(conversion.run("y,c\nyes,x\nno,x\n", options), DataError,
                      "test.csv: expected a label 'yes', as option 'positive' says, in column 'y', found 'yes.', "
                      "'no.'; did you mean 'yes.'?");
  options.positive = {"yes", "yes."};
  EXPECT_EQ(conversion.run("y,c\nyes,x\nno,x\n", options).test_clicks, 1);
}

TEST(ConvertFields, RareCategoriesAreDroppedByColumn) {
  TableConversion conversion;
  CsvOptions options = table_options();
  options.categorical = {"c", "d"};
  const std::string text = "y,c,d\n1,a,p\n1,a,p\n0,b,q\n0,b,\n1,e,q\n";
  options.min_count = {"2"};
  ConvertResult result = conversion.run(text, options);
  EXPECT_EQ(result.dataset.schema.slot_size_array(), (Keys{3, 3}));
  EXPECT_EQ(result.fields[0].name, "c");
  EXPECT_EQ(result.fields[0].categories, 3);
  EXPECT_EQ(result.fields[0].dropped_categories, 1);
  EXPECT_EQ(result.fields[0].values, 5);
  EXPECT_EQ(result.fields[0].dropped_values, 1);
  EXPECT_EQ(result.fields[1].values, 4) << "one is missing";
  EXPECT_EQ(result.fields[1].dropped_categories, 0);
  EXPECT_EQ(result.categories(), 5);
  options.min_count = {"1", "d=3"};
  result = conversion.run(text, options);
  EXPECT_EQ(result.dataset.schema.slot_size_array(), (Keys{4, 1}));
  EXPECT_EQ(result.fields[1].dropped_values, 4);
  options.min_count = {"c=1"};
  result = conversion.run(text, options);
  EXPECT_EQ(result.dataset.schema.slot_size_array(), (Keys{4, 3})) << "2 for the others";
  EXPECT_EQ(*result.dataset.conversion->setting("min_count"), R"(["2","c=1"])");

  const auto refused = [&](const Names& counts, const char* message) {
    options.min_count = counts;
    TERCEL_EXPECT_THROW(conversion.run(text, options), ConfigError, message);
  };
  refused({"e=1"}, "[csv] option 'min_count': expected one of the columns it can be for, found 'e'");
  refused({"c=0"}, "expected N or column=N with N at least 1, found 'c=0'");
  refused({"many"}, "expected N or column=N with N at least 1, found 'many'");
  refused({"c=1", "c=2"}, "[csv] option 'min_count': expected one number for column 'c', found two");
  refused({"1", "2"}, "expected one number for all columns, found two");
}

TEST(ConvertFields, RareMeansMoreOfAMillionTrainRows) {
  TableConversion conversion;
  CsvOptions options = table_options();
  options.min_count = {};
  std::string text = "y,c\n";
  for (int i = 0; i < 999'990; ++i) text += "1,a\n";
  const std::string rare = "0,b\n0,b\n0,b\n0,d\n";
  const Dataset few = conversion.run(text + rare, options).dataset;
  EXPECT_EQ(few.schema.slot_size_array(), Keys{3});
  EXPECT_EQ(*few.conversion->setting("min_count"), R"(["2"])");
  const Dataset many = conversion.run(text + rare + "1,a\n1,a\n1,a\n1,a\n1,a\n1,a\n", options).dataset;
  EXPECT_EQ(many.train.rows(), 1'000'000);
  EXPECT_EQ(many.schema.slot_size_array(), Keys{2});
  EXPECT_EQ(*many.conversion->setting("min_count"), R"(["4"])");
}

TEST(ConvertFields, KeysMayBeHashes) {
  TableConversion conversion;
  CsvOptions options = table_options();
  options.categorical = {"c", "d"};
  options.hash_buckets = {"c=1000"};
  const Dataset dataset = conversion.run("y,c,d\n1,a,p\n0,,q\n1,a long category,q\n", options).dataset;
  EXPECT_EQ(dataset.schema.slot_size_array(), (Keys{1000, 3}));
  const auto hash = [](const std::string& text) {
    const std::string whole = std::string("c\0", 2) + text;
    return static_cast<int64_t>(checksum(whole.data(), whole.size()) % 1000);
  };
  EXPECT_EQ(conversion.rows(dataset, PartName::Train).keys,
            (Keys{hash("a"), 1002, hash(""), 1001, hash("a long category"), 1001}));
  EXPECT_EQ(hashed_key("c", "a", 1000), hash("a"));
  EXPECT_EQ(hashed_key("c", "a", 1 << 20), 53704) << "the same in every version";
  const std::string long_text(1000, 'x');
  EXPECT_EQ(hashed_key("c", long_text, 1000), hash(long_text));

  options.hash_buckets = {"10"};
  EXPECT_EQ(conversion.run("y,c,d\n1,a,p\n", options).dataset.schema.slot_size_array(), (Keys{10, 10}));
  options.min_count = {"d=1"};
  TERCEL_EXPECT_THROW(conversion.run("y,c,d\n1,a,p\n", options), ConfigError,
                      "[csv] options 'min_count' and 'hash_buckets' exclude each other for a column, found both for "
                      "'d'");
  options.min_count = {"1"};
  options.hash_buckets = {"9223372036854775807"};
  TERCEL_EXPECT_THROW(conversion.run("y,c,d\n1,a,p\n", options), ConfigError, "do not fit in 64 bits");
}

TEST(ConvertFields, ListsHaveAnyNumberOfValues) {
  TableConversion conversion;
  CsvOptions options = table_options();
  options.categorical = {"user", "tags"};
  options.list_separator = "|";
  options.lists = {"tags"};
  options.missing = {"-"};
  options.trim = true;
  const std::string text = "y,user,tags\n1,u|v,a|b\n0,w,\n1,u|v,\"b| b |-|\"\n0,w,-\n1,w,a\n";
  const ConvertResult result = conversion.run(text, options);
  const Schema& schema = result.dataset.schema;
  EXPECT_EQ(schema.slots[0].hotness, 1);
  EXPECT_EQ(schema.slots[1].hotness, 2) << "the most values of a row";
  EXPECT_EQ(schema.slot_size_array(), (Keys{3, 3}));
  EXPECT_EQ(result.fields[1].values, 5);
  const Rows rows = conversion.rows(result.dataset, PartName::Train);
  EXPECT_EQ(rows.nnz, (std::vector<int32_t>{1, 2, 1, 0, 1, 2, 1, 0, 1, 1}));
  EXPECT_EQ(rows.keys, (Keys{2, 5, 4, 1, 2, 4, 4, 1, 1, 5})) << "w is more frequent than u|v, and b than a";

  options.max_hotness = {"1"};
  const ConvertResult cut = conversion.run(text, options);
  EXPECT_EQ(cut.dataset.schema.slots[1].hotness, 1);
  EXPECT_EQ(cut.cut_values, 2);
  EXPECT_EQ(conversion.rows(cut.dataset, PartName::Train).nnz, (std::vector<int32_t>{1, 1, 1, 0, 1, 1, 1, 0, 1, 1}));

  options.max_hotness = {};
  options.lists = {};
  EXPECT_EQ(conversion.run(text, options).dataset.schema.slots[0].hotness, 2) << "all columns";
  const auto refused = [&](const auto& change, const char* message) {
    CsvOptions wrong = options;
    change(wrong);
    TERCEL_EXPECT_THROW(conversion.run(text, wrong), ConfigError, message);
  };
  refused([](CsvOptions& o) { o.lists = {"tag"}; },
          "option 'lists': expected one of the columns it can be for, found "
          "'tag'; did you mean 'tags'?");
  refused([](CsvOptions& o) { o.lists = {"tags", "tags"}; }, "option 'lists': expected each column once");
  refused([](CsvOptions& o) { o.lists = {"tags"}, o.list_separator = ""; }, "'lists': expected 'list_separator' too");
  refused([](CsvOptions& o) { o.max_hotness = {"3"}, o.list_separator = ""; }, "'max_hotness': expected 'list_sep");
  refused([](CsvOptions& o) { o.max_hotness = {"user=3"}, o.lists = {"tags"}; }, "found 'user'");
  refused([](CsvOptions& o) { o.list_separator = ","; }, "'list_separator' and 'delimiter': expected two texts");
}

TEST(ConvertFields, LaterListsMayBeLonger) {
  TableConversion conversion;
  CsvOptions options = table_options();
  options.list_separator = "; ";
  const Dataset dataset = conversion.run("y,c\n1,a; b\n0,a\n", options).dataset;
  const RowEncoder encoder =
      load_row_encoder(dataset.schema, *dataset.conversion, dataset.path_of(*dataset.conversion->vocabulary));
  EncodedText text(encoder, text_format_of(*dataset.conversion),
                   {{conversion.folder().put("later", "c\na; b; new\n\"\"\nb\n"), "later"}}, LabelColumn::Optional);
  EncodedRows rows;
  ASSERT_TRUE(text.read(2, rows));
  EXPECT_EQ(rows.nnz, (std::vector<int32_t>{3, 0}));
  EXPECT_EQ(rows.keys, (Keys{1, 2, 0}));
  EXPECT_EQ(rows.first_key, (Keys{0, 3, 3}));
  ASSERT_TRUE(text.read(2, rows));
  EXPECT_EQ(rows.keys, Keys{2});
  EXPECT_FALSE(text.read(2, rows));
}

TEST(ConvertFields, WeightsNeedAFormatThatHoldsThem) {
  TableConversion conversion;
  CsvOptions options = table_options();
  options.list_separator = "|";
  options.weighted = {"c"};
  TERCEL_EXPECT_THROW(conversion.run("not read", options), ConfigError,
                      "slot 'c': expected keys without weights, which the files cannot hold");
  TextFormat format = csv_format(options);
  const auto read = [&](const std::string& text) {
    TextTable table(format, {{conversion.folder().put("w", text), "w"}});
    TextBlock block;
    TextRows rows;
    EXPECT_TRUE(table.next(block));
    table.parse(block, rows);
    EXPECT_EQ(rows.fields[0].values.size(), rows.fields[0].weights.size());
    return rows.fields[0].weights;
  };
  EXPECT_EQ(read("y,c\n1,a:0.5|b|c:x:-2e1\n0,\n"), (std::vector<float>{0.5, 1, -20}));
  TERCEL_EXPECT_THROW(read("y,c\n1,a:0.5|b:\n"), DataError,
                      "w: line 2: column 2 (c): expected a finite number as the weight behind ':', found 'b:'");
  TERCEL_EXPECT_THROW(read("y,c\n1,a:inf\n"), DataError, "found 'a:inf'");
  TERCEL_EXPECT_THROW(read("y,c\n1,:3\n"), DataError, "expected a value before the weight, found ':3'");
  options.weighted = {"d"};
  TERCEL_EXPECT_THROW(csv_format(options), ConfigError, "option 'weighted': expected one of the columns");
}

TEST(RowEncoder, WeightsStayWithTheirKeys) {
  Vocabulary vocabulary;
  const std::vector<std::string_view> categories = {"a", "b"};
  vocabulary.add_field("one", categories);
  vocabulary.add_field("list", categories);
  const RowEncoder encoder({}, std::move(vocabulary));
  TextRows rows;
  rows.rows = 3;
  rows.ragged = rows.weighted = true;
  rows.labels = {1, 0, 1};
  rows.fields = {{{"a", "", "b"}, {}, {}}, {{"b", "a", "x"}, {2, 0, 1}, {0.5, -1, 3}}};
  EncodedRows out;
  encoder.encode(rows, out);
  EXPECT_EQ(out.nnz, (std::vector<int32_t>{1, 2, 1, 0, 1, 1}));
  EXPECT_EQ(out.keys, (Keys{1, 5, 4, 0, 2, 3}));
  EXPECT_EQ(out.key_weights, (std::vector<float>{1, 0.5, -1, 1, 1, 3}));
  EXPECT_EQ(out.first_key, (Keys{0, 3, 4, 6}));
}

TEST(ConvertFields, PartsOfTimesAreFields) {
  TableConversion conversion;
  CsvOptions options = table_options();
  options.categorical = {};
  options.time_parts = {"ts=hour", "weekday", "until=year"};
  const std::string text =
      "y,ts,until\n1,2024-05-01T13:00:00,2024-01-01\n0,2024-05-08 13:59,\n1,1714568400,1714568400\n0,1,2024-01-01\n";
  const Dataset dataset = conversion.run(text, options).dataset;
  EXPECT_EQ(dataset.schema.slots[0].name, "ts_hour");
  EXPECT_EQ(dataset.schema.slots[1].name, "ts_weekday");
  EXPECT_EQ(dataset.schema.slots[2].name, "until_year");
  EXPECT_EQ(dataset.schema.slot_size_array(), (Keys{3, 3, 2}));
  EXPECT_EQ(conversion.rows(dataset, PartName::Train).keys, (Keys{1, 4, 7, 1, 4, 6, 1, 4, 7, 2, 5, 7}));

  options.min_count = {"ts_hour=2", "1"};
  EXPECT_EQ(conversion.run(text, options).dataset.schema.slots[0].size, 2);
  options.time_parts = {"ts=hour", "hours"};
  TERCEL_EXPECT_THROW(conversion.run(text, options), ConfigError,
                      "option 'time_parts': expected a part of a time for column 'ts', found 'hours'; did you mean "
                      "'hour'?");
  options.time_parts = {"hour"};
  TERCEL_EXPECT_THROW(conversion.run(text, options), ConfigError, "expected column=part,part, found 'hour'");
  options.time_parts = {"ts=hour", "hour"};
  TERCEL_EXPECT_THROW(conversion.run(text, options), ConfigError, "found two named 'ts_hour'");
  options.time_parts = {"y=hour", "until=year"};
  options.min_count = {};
  TERCEL_EXPECT_THROW(conversion.run("y,ts,until\n1,,soon\n", options), DataError,
                      "t.csv: line 2: column 3 (until): expected a number or a timestamp such as");
}

TEST(ConvertFields, ColumnsAreNamedOnce) {
  CsvOptions options = table_options();
  options.categorical = {"c", "d", "c"};
  TERCEL_EXPECT_THROW(csv_format(options), ConfigError,
                      "[csv] option 'categorical': expected each column once, found 'c' twice");
  options.categorical = {"c"};
  options.dense = {"n", "n"};
  TERCEL_EXPECT_THROW(csv_format(options), ConfigError, "[csv] option 'dense': expected each column once");
  options.dense = {"c"};
  EXPECT_EQ(csv_format(options).fields.size(), 1u) << "a column may be both";
  options.columns = 3;
  TERCEL_EXPECT_THROW(csv_format(options), ConfigError, "options 'columns' and 'no_header': expected both or neither");
}

TEST(ConvertFields, RawFilesMayHaveKeysFromZeroOnInEverySlot) {
  TableConversion conversion;
  CsvOptions options = table_options();
  options.categorical = {"c", "d"};
  const std::string text = "y,c,d\n1,a,x\n0,b,y\n";
  options.format = norm_format();
  const Rows norm = conversion.rows(conversion.run(text, options).dataset, PartName::Train);
  options.format = raw_format({true, SlotOffsets::Add});
  EXPECT_EQ(conversion.rows(conversion.run(text, options).dataset, PartName::Train).keys, norm.keys);
}

}  // namespace
}  // namespace tercel::data::test
