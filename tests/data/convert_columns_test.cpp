// Preparation of numbers, combinations of fields and hexadecimal categories of tables.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tercel/data/row_encoder.h"
#include "tercel/util/error.h"
#include "tests/data/convert_table.h"
#include "tests/support/errors.h"

namespace tercel::data::test {
namespace {

using Keys = std::vector<int64_t>;
using Values = std::vector<float>;

constexpr const char* kNumbers = "y,a,b,c\n1,,2,x\n0,-3,,x\n1,7,100,x\n0,1,4,x\n";

CsvOptions number_options() {
  CsvOptions options = table_options();
  options.dense = {"a", "b"};
  options.dense_transform = DenseTransform::Raw;
  return options;
}

Values dense_of(const CsvOptions& options) {
  TableConversion conversion;
  return conversion.rows(conversion.run(kNumbers, options).dataset, PartName::Train).dense;
}

TEST(ConvertColumns, NumbersAreFilledThenClipped) {
  CsvOptions options = number_options();
  EXPECT_EQ(dense_of(options), (Values{0, 2, -3, 0, 7, 100, 1, 4}));
  options.fill_missing = {"5", "b=-1"};
  EXPECT_EQ(dense_of(options), (Values{5, 2, -3, -1, 7, 100, 1, 4}));
  options.clip_min = {"0"};
  options.clip_max = {"b=50.5"};
  EXPECT_EQ(dense_of(options), (Values{5, 2, 0, 0, 7, 50.5, 1, 4})) << "the filled value is clipped too";
  options.dense_transform = DenseTransform::Log;
  options.clip_min = {"b=3"};
  const Values logs = dense_of(options);
  EXPECT_FLOAT_EQ(logs[0], std::log(6.0F));
  EXPECT_EQ(logs[2], 0) << "the logarithm takes no negative numbers";
  EXPECT_FLOAT_EQ(logs[3], std::log(4.0F));
  EXPECT_FLOAT_EQ(logs[5], std::log(51.5F));
}

TEST(ConvertColumns, ZscoreIsOfTheTrainRowsWithoutLogarithm) {
  CsvOptions options = number_options();
  options.dense = {"b"};
  options.dense_transform = DenseTransform::Zscore;
  options.fill_missing = {"6"};
  options.clip_max = {"8"};
  options.test_every = 4;
  TableConversion conversion;
  const Dataset dataset = load_dataset(conversion.run(kNumbers, options).dataset.folder);
  // 2, 6 and 8 are the train rows: their mean is 16 / 3, their sample variance 28 / 3.
  EXPECT_DOUBLE_EQ(dataset.conversion->dense_mean[0], 16.0 / 3);
  EXPECT_DOUBLE_EQ(dataset.conversion->dense_std[0], std::sqrt(28.0 / 3));
  const double std = std::sqrt(28.0 / 3);
  const Values train = conversion.rows(dataset, PartName::Train).dense,
               test = conversion.rows(dataset, PartName::Test).dense;
  EXPECT_FLOAT_EQ(train[0], static_cast<float>((2 - 16.0 / 3) / std));
  EXPECT_FLOAT_EQ(train[2], static_cast<float>((8 - 16.0 / 3) / std));
  EXPECT_FLOAT_EQ(test[0], static_cast<float>((4 - 16.0 / 3) / std));

  // Later rows are prepared by the same numbers.
  const TemporaryFolder folder;
  const Dataset later = convert_like(dataset, {folder.put("l.csv", "y,a,b,c\n0,,9,x\n0,,,x\n")}, folder / "later", {},
                                     /*replace=*/false, ignore_progress)
                            .dataset;
  EXPECT_EQ(conversion.rows(later, PartName::Train).dense, (Values{train[2], train[1]}));
}

TEST(ConvertColumns, MoreThanOneRowIsNeededForADeviation) {
  CsvOptions options = number_options();
  options.dense_transform = DenseTransform::Zscore;
  TableConversion conversion;
  const Dataset dataset = conversion.run("y,a,b,c\n1,7,7,x\n", options).dataset;
  EXPECT_EQ(dataset.conversion->dense_std, (std::vector<double>{1, 1}));
  EXPECT_EQ(conversion.rows(dataset, PartName::Train).dense, (Values{0, 0}));
}

TEST(ConvertColumns, IntegersHaveTheLogarithmThatIntegerFilesHave) {
  std::string text = "y,n,c\n";
  for (int i = 0; i < 100'000; i += 7) text += "1," + std::to_string(i) + ",x\n";
  CsvOptions options = table_options();
  options.dense = {"n"};
  options.dense_transform = DenseTransform::Log;
  options.format = make_format("raw", "test");
  TableConversion conversion;
  const Values floats = conversion.rows(conversion.run(text, options).dataset, PartName::Train).dense;
  for (size_t i = 0; i < floats.size(); ++i)
    ASSERT_EQ(floats[i], std::log(static_cast<float>(7 * i) + 1.0F)) << "the value that readers of integers compute";
}

TEST(ConvertColumns, DenseColumnsAsCategories) {
  CsvOptions options = table_options();
  options.dense = {"n", "c"};
  options.categorical = {"d", "c"};
  options.dense_as_categories = true;
  options.dense_transform = DenseTransform::Raw;
  TableConversion conversion;
  const Dataset dataset = conversion.run("y,n,c,d\n1,7,2,a\n0,,2,b\n1,7,3,b\n", options).dataset;
  std::vector<std::string> names;
  for (const Slot& slot : dataset.schema.slots) names.push_back(slot.name);
  EXPECT_EQ(names, (std::vector<std::string>{"d", "c", "n"})) << "each column once, after those that are listed";
  EXPECT_EQ(dataset.schema.slot_size_array(), (Keys{3, 3, 2}));
  const auto rows = conversion.rows(dataset, PartName::Train);
  EXPECT_EQ(rows.dense, (Values{7, 2, 0, 2, 7, 3}));
  EXPECT_EQ(rows.keys[2], rows.keys[8]);
  EXPECT_EQ(rows.keys[5] + 1, rows.keys[2]) << "a missing number is a missing category";

  // Lists and other options by column know which columns are categories.
  options.list_separator = "|";
  const Dataset lists = conversion.run("y,n,c,d\n1,7,2,a|b\n0,,2,b\n", options).dataset;
  EXPECT_EQ(lists.schema.slots[0].hotness, 2);
  options.dense.clear();
  EXPECT_THROW(conversion.run("y,n,c,d\n1,7,2,a\n", options), ConfigError);
}

TEST(ConvertColumns, ColumnsThatShareKeys) {
  CsvOptions options = table_options();
  options.categorical = {"user", "history", "item", "home", "work"};
  options.list_separator = " ";
  options.lists = {"history"};
  options.shared_keys = {"item+history", "home+work"};
  options.min_count = {"1", "item=2", "history=2"};
  TableConversion conversion;
  const std::string text = "y,user,history,item,home,work\n1,u,a b,c,x,y\n0,v,,a,y,\n1,u,b d,b,,x\n0,w,c,e,x,x\n";
  const ConvertResult result = conversion.run(text, options);
  const Dataset dataset = load_dataset(result.dataset.folder);
  const std::vector<Slot>& slots = dataset.schema.slots;
  // b occurs three times in both columns together, a and c twice; d and e once. Of places, x four times, y twice.
  const auto is = [&](size_t s, int64_t first, int64_t size) {
    return slots[s].first_key == first && slots[s].size == size;
  };
  EXPECT_TRUE(is(0, 0, 4) && is(1, 4, 4) && is(2, 4, 4) && is(3, 8, 3) && is(4, 8, 3));
  EXPECT_EQ(dataset.schema.num_keys(), 11);
  const auto rows = conversion.rows(dataset, PartName::Train);
  EXPECT_EQ(rows.keys, (Keys{1, 6, 5, 7, 9, 10, 2, 6, 10, 8, 1, 5, 4, 5, 8, 9, 3, 7, 4, 9, 9}));

  ASSERT_EQ(result.fields.size(), 3u) << "a group is one";
  EXPECT_EQ(result.categories(), 3 + 5 + 2);
  EXPECT_EQ(result.fields[1].name, "history+item");
  EXPECT_TRUE(result.fields[2].is_list);
  EXPECT_EQ(result.fields[1].categories, 5);
  EXPECT_EQ(result.fields[1].dropped_categories, 2);
  EXPECT_EQ(result.fields[1].values, 9);
  EXPECT_EQ(result.fields[1].dropped_values, 2);

  // Later rows, as a model reads them, and a conversion like this one.
  const RowEncoder encoder =
      load_row_encoder(dataset.schema, *dataset.conversion, dataset.path_of(*dataset.conversion->vocabulary));
  EncodedText later(encoder, text_format_of(*dataset.conversion), {{conversion.folder().put("later", text), "later"}},
                    LabelColumn::Optional);
  EncodedRows encoded;
  ASSERT_TRUE(later.read(10, encoded));
  EXPECT_EQ(encoded.keys, rows.keys);
  const ConvertResult like = convert_like(dataset, {conversion.folder() / "t.csv"}, conversion.folder() / "like", {},
                                          /*replace=*/false, ignore_progress);
  EXPECT_EQ(conversion.rows(like.dataset, PartName::Train).keys, rows.keys);

  const auto damaged = [&](int64_t Slot::*member, int64_t value, const char* expected) {
    Schema schema = dataset.schema;
    schema.slots[2].*member = value;
    EXPECT_NE(tercel::test::message_of<DataError>([&] {
                static_cast<void>(
                    load_row_encoder(schema, *dataset.conversion, dataset.path_of(*dataset.conversion->vocabulary)));
              }).find(expected),
              std::string::npos);
  };
  damaged(&Slot::first_key, 8,
          "field 2: expected 'item' with 4 keys from 8 on, as in the dataset, found 'item' with 4 from 4 on");
  damaged(&Slot::size, 5, "field 2: expected 'item' with 5 keys from 4 on");
}

TEST(ConvertColumns, HashedColumnsShareKeysAndMistakesAreNamed) {
  CsvOptions options = table_options();
  options.categorical = {"c", "d"};
  options.shared_keys = {"c+d"};
  options.hash_buckets = {"1000"};
  TableConversion conversion;
  const Dataset dataset = conversion.run("y,c,d\n1,a,a\n0,b,a\n", options).dataset;
  EXPECT_EQ(dataset.schema.num_keys(), 1000);
  const auto rows = conversion.rows(dataset, PartName::Train);
  EXPECT_EQ(rows.keys, (Keys{hashed_key("c", "a", 1000), hashed_key("c", "a", 1000), hashed_key("c", "b", 1000),
                             hashed_key("c", "a", 1000)}));

  const auto refused = [&](auto change, const std::string& expected) {
    CsvOptions changed = table_options();
    changed.categorical = {"c", "d", "e"};
    changed.shared_keys = {"c+d"};
    change(changed);
    EXPECT_NE(
        tercel::test::message_of<ConfigError>([&] { conversion.run("y,c,d,e\n1,a,a,a\n", changed); }).find(expected),
        std::string::npos)
        << expected;
  };
  refused([](CsvOptions& o) { o.shared_keys = {"c"}; },
          "'shared_keys': expected columns with '+' between them, found 'c'");
  refused([](CsvOptions& o) { o.shared_keys = {"c+x"}; },
          "'shared_keys': expected one of the columns it can be for, found 'x'");
  refused([](CsvOptions& o) { o.shared_keys = {"c+c"}; }, "'shared_keys': expected different columns, found 'c+c'");
  refused([](CsvOptions& o) { o.shared_keys = {"c+d", "d+e"}; }, "'shared_keys': expected each column once, found 'd'");
  refused(
      [](CsvOptions& o) {
        o.min_count = {"1", "d=2"};
      },
      "option 'min_count': expected the same for 'c' and 'd', which option 'shared_keys' joins, found 1 and 2");
  refused([](CsvOptions& o) { o.hash_buckets = {"d=2"}; }, "option 'hash_buckets': expected the same for 'c' and 'd'");
  refused([](CsvOptions& o) { o.hex_modulo = {"c=2"}; }, "option 'hex_modulo': expected the same for 'c' and 'd'");
}

TEST(ConvertColumns, CombinationsAreFieldsBeforeTheOthers) {
  CsvOptions options = table_options();
  options.categorical = {"c", "d", "e"};
  options.cross = {"c+d", "e+c+d"};
  TableConversion conversion;
  const std::string text = "y,c,d,e\n1,a,b,p\n0,ab,,p\n1,a,b,q\n0,b,b,p\n1,a,bb,p\n";
  const Dataset dataset = load_dataset(conversion.run(text, options).dataset.folder);
  std::vector<std::string> names;
  for (const Slot& slot : dataset.schema.slots) names.push_back(slot.name);
  EXPECT_EQ(names, (std::vector<std::string>{"c_d", "e_c_d", "c", "d", "e"}));
  // (a, b) twice, then (a, bb) and (b, b) by their bytes; a missing value makes the combination missing.
  EXPECT_EQ(dataset.schema.slot_size_array(), (Keys{4, 5, 4, 3, 3}));
  const Keys keys = conversion.rows(dataset, PartName::Train).keys;
  Keys first;
  for (size_t row = 0; row < 5; ++row) first.push_back(keys[row * 5]);
  EXPECT_EQ(first, (Keys{1, 0, 1, 3, 2}));

  // Other texts for the same keys: thresholds, hashes and later text are those of any field.
  options.min_count = {"1", "c_d=2"};
  options.hash_buckets = {"e_c_d=1000"};
  const Dataset rare = conversion.run(text, options).dataset;
  EXPECT_EQ(rare.schema.slot_size_array(), (Keys{2, 1000, 4, 3, 3}));
  EXPECT_EQ(conversion.rows(rare, PartName::Train).keys[1],
            2 + hashed_key("e_c_d", std::string_view("p\0a\0b", 5), 1000));
  const TemporaryFolder folder;
  const Dataset later = convert_like(rare, {folder.put("l.csv", "e,d,c,y\np,b,a,1\n")}, folder / "later", {},
                                     /*replace=*/false, ignore_progress)
                            .dataset;
  const Keys later_keys = conversion.rows(later, PartName::Train).keys;
  EXPECT_EQ(Keys(later_keys.begin(), later_keys.begin() + 2),
            (Keys{1, 2 + hashed_key("e_c_d", std::string_view("p\0a\0b", 5), 1000)}));
}

TEST(ConvertColumns, NamesOfCombinedColumnsMayHaveAPlus) {
  CsvOptions options = table_options();
  options.categorical = {"a", "a+b", "c"};
  options.cross = {"a+b+c"};
  TableConversion conversion;
  const Dataset dataset = conversion.run("y,a,a+b,c\n1,x,y,z\n", options).dataset;
  EXPECT_EQ(dataset.schema.slots[0].name, "a+b_c") << "the longest name counts";
}

TEST(ConvertColumns, HexadecimalCategoriesCountModuloN) {
  CsvOptions options = table_options();
  options.categorical = {"c", "d"};
  options.hex_modulo = {"c=16"};
  TableConversion conversion;
  const std::string text = "y,c,d\n1,1f,10\n0,2F,20\n1,,30\n0,05db9164,40\n1,ffffffffffffffff,1\n0,4,2\n";
  const Dataset dataset = conversion.run(text, options).dataset;
  // 15, 15, none, 4, 15, 4
  EXPECT_EQ(dataset.schema.slot_size_array(), (Keys{3, 7}));
  const Keys keys = conversion.rows(dataset, PartName::Train).keys;
  Keys first;
  for (size_t row = 0; row < 6; ++row) first.push_back(keys[row * 2]);
  EXPECT_EQ(first, (Keys{1, 1, 0, 2, 1, 2}));
  for (const char* bad : {"x", "0x10", "-1", "10000000000000000", "1 "})
    TERCEL_EXPECT_THROW(conversion.run("y,c,d\n1,1,1\n1," + std::string(bad) + ",1\n", options), DataError,
                        "t.csv: line 3: column 2 (c): expected a hexadecimal number of at most 16 digits, found '");
}

void refused(const CsvOptions& options, const std::string& text) {
  TableConversion conversion;
  TERCEL_EXPECT_THROW(conversion.run("y,a,b,c,d\n1,1,2,x,y\n", options), ConfigError, text);
}

TEST(ConvertColumns, WrongOptionsAreNamed) {
  const auto with = [](auto change) {
    CsvOptions options = number_options();
    options.categorical = {"c", "d"};
    change(options);
    return options;
  };
  refused(with([](CsvOptions& o) { o.fill_missing = {"mean"}; }),
          "[csv] option 'fill_missing': expected X or column=X with a finite number X, found 'mean'");
  refused(with([](CsvOptions& o) { o.clip_min = {"inf"}; }), "[csv] option 'clip_min': expected X or column=X");
  refused(with([](CsvOptions& o) {
            o.clip_max = {"1", "2"};
          }),
          "[csv] option 'clip_max': expected one number for all columns, found two");
  refused(with([](CsvOptions& o) { o.clip_max = {"c=1"}; }),
          "[csv] option 'clip_max': expected one of the columns it can be for, found 'c'");
  refused(with([](CsvOptions& o) {
            o.clip_min = {"2"};
            o.clip_max = {"b=1"};
          }),
          "[csv] options 'clip_min' and 'clip_max': expected a smaller and a larger number for column 'b', found 2 and "
          "1");
  refused(with([](CsvOptions& o) { o.cross = {"c+e"}; }),
          "[csv] option 'cross': expected one of the columns it can be for, found 'e'");
  refused(with([](CsvOptions& o) { o.cross = {"c+"}; }), "found ''");
  refused(with([](CsvOptions& o) { o.cross = {""}; }), "found ''");
  refused(with([](CsvOptions& o) { o.cross = {"c"}; }),
          "[csv] option 'cross': expected columns with '+' between them, found 'c'");
  refused(with([](CsvOptions& o) { o.cross = {"c+c"}; }), "[csv] option 'cross': expected different columns");
  refused(with([](CsvOptions& o) {
            o.cross = {"c+d", "c+d"};
          }),
          "[csv] option 'cross': expected fields of different names, found two named 'c_d'");
  refused(with([](CsvOptions& o) {
            o.cross = {"c+d"};
            o.list_separator = "|";
            o.lists = {"d"};
          }),
          "[csv] option 'cross': expected columns of one value a row, found 'd'");
  refused(with([](CsvOptions& o) { o.hex_modulo = {"0"}; }), "[csv] option 'hex_modulo': expected N or column=N");
}

}  // namespace
}  // namespace tercel::data::test
