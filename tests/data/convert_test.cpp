#include "tercel/data/convert.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "tercel/data/row_encoder.h"
#include "tercel/util/error.h"
#include "tercel/util/file_hook.h"
#include "tests/data/norm_data.h"
#include "tests/support/errors.h"
#include "tests/util/gzip_data.h"

namespace tercel::data {
namespace {

using tercel::test::gzip;
using test::Rows;
using test::TemporaryFolder;

void ignore(const ConvertProgress&) {}

/** A row of Criteo's text. */
struct RawRow {
  int label;
  std::string dense[13], categories[26];

  std::string text() const {
    std::string line = std::to_string(label);
    for (const std::string& value : dense) line += "\t" + value;
    for (const std::string& value : categories) line += "\t" + value;
    return line + "\n";
  }
};

std::vector<RawRow> raw_rows(int count, uint64_t seed) {
  std::vector<RawRow> rows(static_cast<size_t>(count));
  const Philox random{seed, 0};
  uint64_t index = 0;
  const auto draw = [&](uint64_t below) { return static_cast<int>(random(index++).word[0] % below); };
  for (RawRow& row : rows) {
    row.label = draw(4) == 0 ? 1 : 0;
    for (std::string& value : row.dense) value = draw(5) == 0 ? "" : std::to_string(draw(50) - 3);
    for (std::string& value : row.categories) {
      const int category = draw(30) * draw(30) / 60;
      value = category == 0 ? "" : (category % 2 ? "a" : "a much longer token ") + std::to_string(category);
    }
  }
  return rows;
}

std::string text_of(const std::vector<RawRow>& rows) {
  std::string text;
  for (const RawRow& row : rows) text += row.text();
  return text;
}

/** Reference conversion by definition, with plain containers. */
struct Expected {
  Rows train, test;
  std::vector<int64_t> slot_sizes;
};

Expected expected_rows(const std::vector<RawRow>& raw, const CriteoOptions& options) {
  const auto is_test = [&](int64_t row) {
    if (!options.test_from.empty()) return row >= std::stoll(options.test_from);
    const int64_t every = options.test_every < 0 ? kDefaultTestEvery : options.test_every;
    return every > 0 && row % every == every - 1;
  };
  // A missing number is 0.
  const auto number_of = [](const std::string& text) { return text.empty() ? 0.0 : std::stod(text); };
  const auto log_of = [&](const std::string& text) { return std::log(1 + std::max(number_of(text), 0.0)); };
  double mean[13], std_dev[13];
  for (size_t d = 0; d < 13; ++d) {
    std::vector<double> values;
    for (size_t row = 0; row < raw.size(); ++row)
      if (!is_test(static_cast<int64_t>(row))) values.push_back(log_of(raw[row].dense[d]));
    double sum = 0, squares = 0;
    for (const double value : values) sum += value;
    mean[d] = sum / static_cast<double>(values.size());
    for (const double value : values) squares += (value - mean[d]) * (value - mean[d]);
    std_dev[d] = std::sqrt(squares / static_cast<double>(values.size()));
  }
  Expected expected;
  std::map<std::string, int64_t> ids[26];
  std::vector<int64_t> first;
  int64_t next = 0;
  for (size_t c = 0; c < 26; ++c) {
    std::map<std::string, int64_t> counts;
    for (size_t row = 0; row < raw.size(); ++row)
      if (!is_test(static_cast<int64_t>(row)) && !raw[row].categories[c].empty()) ++counts[raw[row].categories[c]];
    std::set<std::pair<int64_t, std::string>> order;
    for (const auto& [text, count] : counts)
      if (count >= std::stoll(options.min_count.front())) order.insert({-count, text});
    for (const auto& [count, text] : order) ids[c].emplace(text, static_cast<int64_t>(ids[c].size()) + 1);
    first.push_back(next);
    expected.slot_sizes.push_back(static_cast<int64_t>(ids[c].size()) + 1);
    next += expected.slot_sizes.back();
  }
  for (size_t row = 0; row < raw.size(); ++row) {
    Rows& part = is_test(static_cast<int64_t>(row)) ? expected.test : expected.train;
    ++part.count;
    part.labels.push_back(static_cast<float>(raw[row].label));
    for (size_t d = 0; d < 13; ++d) {
      const std::string& text = raw[row].dense[d];
      double value = 0;
      switch (options.dense_transform) {
        case DenseTransform::Raw: value = number_of(text); break;
        case DenseTransform::Log: value = log_of(text); break;
        case DenseTransform::Standard: value = (log_of(text) - mean[d]) / std_dev[d]; break;
        case DenseTransform::Zscore: break;  // convert_tables_test.cpp
      }
      part.dense.push_back(static_cast<float>(value));
    }
    for (size_t c = 0; c < 26; ++c) {
      const auto found = ids[c].find(raw[row].categories[c]);
      part.keys.push_back(first[c] + (found == ids[c].end() ? 0 : found->second));
    }
  }
  return expected;
}

void expect_rows(const Dataset& dataset, PartName part, const Rows& expected) {
  BatchReader reader(dataset, part, {});
  const Rows rows = test::read_rest(reader);
  EXPECT_EQ(rows.count, expected.count);
  EXPECT_EQ(rows.labels, expected.labels);
  EXPECT_EQ(rows.keys, expected.keys);
  ASSERT_EQ(rows.dense.size(), expected.dense.size());
  for (size_t i = 0; i < rows.dense.size(); ++i) ASSERT_NEAR(rows.dense[i], expected.dense[i], 1e-5) << i;
}

ConvertResult convert(const std::vector<std::string>& sources, const std::string& folder,
                      const CriteoOptions& options = {}) {
  return convert_criteo(sources, folder, options, false, ignore);
}

TEST(ConvertCriteo, GivesWhatTheDefinitionSays) {
  const std::vector<RawRow> raw = raw_rows(5000, 1);
  for (const DenseTransform transform : {DenseTransform::Standard, DenseTransform::Log, DenseTransform::Raw}) {
    for (const int64_t min_count : {1, 4, 100000}) {
      const TemporaryFolder folder;
      CriteoOptions options;
      options.dense_transform = transform;
      options.min_count = {std::to_string(min_count)};
      options.test_every = 5;
      options.rows_per_file = 1500;
      const ConvertResult result = convert({folder.put("raw.tsv", text_of(raw))}, folder / "data", options);
      const Dataset dataset = load_dataset(folder / "data");
      const Expected expected = expected_rows(raw, options);
      EXPECT_EQ(dataset.schema.slot_size_array(), expected.slot_sizes);
      EXPECT_EQ(dataset.train.files.size(), 3u);
      expect_rows(dataset, PartName::Train, expected.train);
      expect_rows(dataset, PartName::Test, expected.test);
      EXPECT_EQ(result.train_clicks, std::count(expected.train.labels.begin(), expected.train.labels.end(), 1.0f));
      EXPECT_EQ(result.test_clicks, std::count(expected.test.labels.begin(), expected.test.labels.end(), 1.0f));
      ASSERT_TRUE(dataset.conversion && dataset.conversion->vocabulary);
      EXPECT_NO_THROW(verify_file(dataset, *dataset.conversion->vocabulary));
    }
  }
}

TEST(ConvertCriteo, DividesRowsAsTold) {
  const std::vector<RawRow> raw = raw_rows(1003, 2);
  const struct {
    int64_t every;
    const char* from;
    int64_t train;
  } cases[] = {{-1, "", 903}, {10, "", 903}, {0, "", 1003}, {2, "", 502}, {-1, "1000", 1000}, {0, "1", 1}};
  for (const auto& c : cases) {
    const TemporaryFolder folder;
    CriteoOptions options;
    options.test_every = c.every;
    options.test_from = c.from;
    options.min_count = {"1"};
    convert({folder.put("raw.tsv", text_of(raw))}, folder / "data", options);
    const Dataset dataset = load_dataset(folder / "data");
    EXPECT_EQ(dataset.train.rows(), c.train);
    EXPECT_EQ(dataset.test.rows(), 1003 - c.train);
    EXPECT_EQ(dataset.test.files.empty(), c.train == 1003);
    // With a single train row there is no variance to compare with.
    if (c.train > 1) expect_rows(dataset, PartName::Train, expected_rows(raw, options).train);
  }
}

TEST(ConvertCriteo, FilesTogetherAreLikeOne) {
  const std::vector<RawRow> raw = raw_rows(3000, 3);
  const std::string text = text_of(raw);
  const size_t cut1 = text.find('\n', text.size() / 3) + 1, cut2 = text.find('\n', text.size() / 2) + 1;
  std::string last = text.substr(cut2);
  last.pop_back();  // no end of the last line
  std::string middle;
  for (const char c : text.substr(cut1, cut2 - cut1)) middle += c == '\n' ? "\r\n" : std::string(1, c);
  const TemporaryFolder folder;
  convert({folder.put("all", text)}, folder / "one");
  convert({folder.put("a", text.substr(0, cut1)), folder.put("b", gzip(middle)), folder.put("c", ""),
           folder.put("d", last)},
          folder / "many");
  EXPECT_EQ(folder.get("one/train/part-0.data"), folder.get("many/train/part-0.data"));
  EXPECT_EQ(folder.get("one/test/part-0.data"), folder.get("many/test/part-0.data"));
  EXPECT_EQ(folder.get("one/vocabulary.bin"), folder.get("many/vocabulary.bin"));
}

TEST(ConvertCriteo, ConstantAndAbsentNumbersBecomeZero) {
  std::vector<RawRow> raw = raw_rows(20, 4);
  for (RawRow& row : raw) {
    row.dense[0] = "5";
    row.dense[1] = "";
    row.dense[2] = "1e-300";
  }
  raw[0].dense[2] = "0";
  raw[19].dense[2] = "1e38";
  const TemporaryFolder folder;
  convert({folder.put("raw", text_of(raw))}, folder / "data");
  const Dataset dataset = load_dataset(folder / "data");
  EXPECT_EQ(dataset.conversion->dense_std[0], 1);
  EXPECT_EQ(dataset.conversion->dense_std[1], 1);
  const Rows rows = test::read_all(dataset);
  for (size_t row = 0; row < 18; ++row) {
    EXPECT_EQ(rows.dense[row * 13], 0);
    EXPECT_EQ(rows.dense[row * 13 + 1], 0);
    EXPECT_EQ(rows.dense[row * 13 + 2], 0);
  }
  EXPECT_EQ(dataset.conversion->dense_std[2], 1) << "at least the rounding error of a constant";
  BatchReader test_rows(dataset, PartName::Test, {});
  EXPECT_NEAR(test::read_rest(test_rows).dense[13 + 2], std::log1p(1e38), 1e-3);
}

TEST(ConvertCriteo, RawRowsLaterBecomeWhatTheyBecameHere) {
  const std::vector<RawRow> raw = raw_rows(2000, 5);
  const TemporaryFolder folder;
  CriteoOptions options;
  options.test_every = 0;
  convert({folder.put("raw", text_of(raw))}, folder / "data", options);
  const Dataset dataset = load_dataset(folder / "data");
  const RowEncoder encoder =
      load_row_encoder(dataset.schema, *dataset.conversion, dataset.path_of(*dataset.conversion->vocabulary));
  const Rows rows = test::read_all(dataset);

  std::string without_labels;
  for (const RawRow& row : raw) without_labels += row.text().substr(2);
  for (const std::string& text : {text_of(raw), without_labels}) {
    EncodedText encoded(encoder, text_format_of(*dataset.conversion), {{folder.put("later", text), "later"}},
                        LabelColumn::Optional);
    Rows again;
    for (EncodedRows part; encoded.read(300, part);) {
      EXPECT_EQ(part.rows, again.labels.size() < 1800 ? 300 : 200);
      again.labels.insert(again.labels.end(), part.labels.begin(), part.labels.end());
      again.dense.insert(again.dense.end(), part.dense.begin(), part.dense.end());
      again.keys.insert(again.keys.end(), part.keys.begin(), part.keys.end());
    }
    EXPECT_EQ(again.dense, rows.dense) << "bit for bit";
    EXPECT_EQ(again.keys, rows.keys);
    if (encoded.table().has_label())
      EXPECT_EQ(again.labels, rows.labels);
    else
      EXPECT_EQ(again.labels, std::vector<float>(2000, 0));
  }
}

TEST(RowEncoder, WhatAFloatCannotHoldBecomesTheLargestOne) {
  Vocabulary vocabulary;
  const RowEncoder encoder({DenseTransform::Standard, {0, 1e300}, {1e-300, 1}}, std::move(vocabulary));
  TextRows rows;
  rows.rows = 1;
  rows.dense = {{5}, {5}};
  EncodedRows encoded;
  encoder.encode(rows, encoded);
  EXPECT_EQ(encoded.dense[0], std::numeric_limits<float>::max());
  EXPECT_EQ(encoded.dense[1], std::numeric_limits<float>::lowest());
}

TEST(ConvertCriteo, EncoderRefusesAnotherVocabulary) {
  const TemporaryFolder folder;
  convert({folder.put("a", text_of(raw_rows(2000, 6)))}, folder / "a-data");
  CriteoOptions options;
  options.min_count = {"50"};
  convert({folder / "a"}, folder / "b-data", options);
  const Dataset a = load_dataset(folder / "a-data");
  TERCEL_EXPECT_THROW(load_row_encoder(a.schema, *a.conversion, folder / "b-data/vocabulary.bin"), DataError,
                      "field 0: expected 'C1' with");
  save_vocabulary(Vocabulary(), folder / "empty.bin");
  TERCEL_EXPECT_THROW(load_row_encoder(a.schema, *a.conversion, folder / "empty.bin"), DataError, "expected 26 fields");
}

TEST(ConvertCriteo, SaysWhatIsWrong) {
  const TemporaryFolder folder;
  const std::string good = text_of(raw_rows(10, 7));
  const auto expect_error = [&](const std::vector<std::string>& sources, const std::string& message) {
    TERCEL_EXPECT_THROW(convert(sources, folder / "data"), DataError, message);
    EXPECT_FALSE(std::filesystem::exists(folder / "data"));
  };
  expect_error({folder.put("empty", "")}, "empty: expected rows, found none");
  expect_error({folder / "empty", folder / "empty"}, "in this file and those after it");
  expect_error({folder.put("short", good + "1\t2\n")}, "short: line 11: expected 40 columns, found 2 columns");
  expect_error({folder.put("good", good), folder.put("label", "7" + good.substr(1))},
               "label: line 1: column 1 (click)");
  const std::string zipped = gzip(good);
  expect_error({folder.put("cut.gz", zipped.substr(0, zipped.size() - 9))}, "cut.gz: byte");
  expect_error({folder.put("no.gz", good)}, "no.gz: byte 0");

  CriteoOptions options;
  options.test_from = "0";
  TERCEL_EXPECT_THROW(convert({folder / "good"}, folder / "data", options), DataError,
                      "expected train rows, found 10 rows");
  options.test_from = "-2";
  TERCEL_EXPECT_THROW(convert({folder / "good"}, folder / "data", options), ConfigError, "'test_from'");
  TERCEL_EXPECT_THROW(convert({}, folder / "data"), ConfigError, "expected files");
  TERCEL_EXPECT_THROW(convert({"-", "-"}, folder / "data"), ConfigError, "once");
  TERCEL_EXPECT_THROW(convert({folder / "none"}, folder / "data"), IoError, "none");
  TERCEL_EXPECT_THROW(convert({folder.path()}, folder / "data"), IoError, folder.path());
  EXPECT_FALSE(std::filesystem::exists(folder / "data"));
}

TEST(ConvertCriteo, NoticesFilesThatChangeMeanwhile) {
  const TemporaryFolder folder;
  const std::vector<RawRow> raw = raw_rows(5000, 8);
  for (const int change : {0, 1, 2}) {
    const std::string source = folder.put("raw", text_of(raw));
    bool changed = false;
    EXPECT_THROW(static_cast<void>(convert_criteo({source}, folder / "data", {}, false,
                                                  [&](const ConvertProgress& progress) {
                                                    if (progress.pass != 2 || changed) return;
                                                    changed = true;
                                                    if (change == 0) folder.put("raw", text_of(raw_rows(5000, 9)));
                                                    if (change == 1) std::filesystem::resize_file(source, 100);
                                                    if (change == 2)
                                                      std::ofstream(source, std::ios::app) << raw[0].text();
                                                  })),
                 DataError)
        << change;
    EXPECT_TRUE(changed);
    EXPECT_FALSE(std::filesystem::exists(folder / "data"));
  }
}

TEST(ConvertCriteo, LeavesNothingBehindWhenStoppedOrWhenACallFails) {
  const TemporaryFolder input, folder;
  const std::string source = input.put("raw", text_of(raw_rows(300, 10)));
  struct Stopped {};
  for (const int pass : {1, 2}) {
    EXPECT_THROW(static_cast<void>(convert_criteo({source}, folder / "data", {}, false,
                                                  [&](const ConvertProgress& progress) {
                                                    if (progress.pass == pass) throw Stopped();
                                                  })),
                 Stopped);
    EXPECT_TRUE(folder.tree().empty());
  }
  for (const FileOp op : {FileOp::Open, FileOp::Read, FileOp::Write, FileOp::Sync, FileOp::Rename, FileOp::MakeDir}) {
    for (int64_t nth = 1;; ++nth) {
      FaultPlan plan;
      plan.op = op;
      plan.nth = nth;
      plan.error = op == FileOp::Read ? EIO : ENOSPC;
      bool failed = false, fired = false;
      {
        const ScopedFault fault(plan);
        try {
          convert({source}, folder / "data");
        } catch (const IoError&) {
          failed = true;
        }
        fired = fault.fired();
      }
      EXPECT_EQ(failed, fired) << static_cast<int>(op) << " " << nth;
      if (std::filesystem::exists(folder / "data")) {
        EXPECT_NO_THROW(load_dataset(folder / "data"));
        std::filesystem::remove_all(folder / "data");
      }
      EXPECT_TRUE(folder.tree().empty()) << static_cast<int>(op) << " " << nth;
      if (!fired) break;
    }
  }
}

TEST(ConvertCsv, ConvertsANamedTable) {
  const TemporaryFolder folder;
  const std::string source = folder.put("people.csv",
                                        "name,age,city,income\r\n"
                                        "\"Doe, Ann\",30,Rome,>50K\r\n"
                                        "Bob,,Oslo,<=50K\r\n"
                                        "\r\n"
                                        "\"C\"\"\",60,Rome,<=50K\r\n"
                                        "Dan,10,\"New\nYork\",>50K\r\n");
  CsvOptions options;
  options.label = "income";
  options.positive = {">50K"};
  options.dense = {"age"};
  options.categorical = {"city", "name"};
  options.min_count = {"1"};
  options.test_every = 0;
  options.dense_transform = DenseTransform::Raw;
  options.format = norm_format({KeyType::U32, CheckMode::Sum});
  const ConvertResult result = convert_csv({source}, folder / "data", options, false, ignore);
  EXPECT_EQ(result.fields[0].categories, 3);
  EXPECT_EQ(result.fields[1].categories, 4);
  const Dataset dataset = load_dataset(folder / "data");
  EXPECT_EQ(dataset.schema.dense_names, std::vector<std::string>{"age"});
  EXPECT_EQ(dataset.schema.slots[0].name, "city");
  EXPECT_EQ(dataset.schema.slots[1].first_key, 4);
  const Rows rows = test::read_all(dataset);
  EXPECT_EQ(rows.labels, (std::vector<float>{1, 0, 0, 1}));
  EXPECT_EQ(rows.dense, (std::vector<float>{30, 0, 60, 10}));
  // Rome is most frequent; "New\nYork" comes before "Oslo", "Bob" before "C\"", "Dan" and "Doe, Ann".
  EXPECT_EQ(rows.keys, (std::vector<int64_t>{1, 8, 3, 5, 1, 6, 2, 7}));

  const RowEncoder encoder = load_row_encoder(dataset.schema, *dataset.conversion, folder / "data/vocabulary.bin");
  EncodedText text(encoder, text_format_of(*dataset.conversion),
                   {{folder.put("new.csv", "city,age,name\nRome,1,Eve\n"), ""}}, LabelColumn::Optional);
  EncodedRows later;
  ASSERT_TRUE(text.read(10, later));
  EXPECT_EQ(later.dense, std::vector<float>{1});
  EXPECT_EQ(later.keys, (std::vector<int64_t>{1, 4})) << "the second one is unknown";
  EXPECT_FALSE(text.read(10, later));
}

TEST(ConvertCsv, KeepsTheNumberOfColumnsOfATableWithoutNames) {
  const TemporaryFolder folder;
  CsvOptions options;
  options.label = "1";
  options.dense = {"2"};
  options.no_header = true;
  options.delimiter = "tab";
  options.test_every = 0;
  convert_csv({folder.put("t", "1\t5\textra\n0\t6\textra\n")}, folder / "data", options, false, ignore);
  const Dataset dataset = load_dataset(folder / "data");
  EXPECT_TRUE(dataset.schema.slots.empty());
  EXPECT_EQ(text_format_of(*dataset.conversion).num_columns, 3);
  const RowEncoder encoder = load_row_encoder(dataset.schema, *dataset.conversion, folder / "data/vocabulary.bin");
  EncodedText text(encoder, text_format_of(*dataset.conversion), {{folder.put("later", "6\textra\n"), "later"}},
                   LabelColumn::Optional);
  EncodedRows later;
  ASSERT_TRUE(text.read(1, later));
  EXPECT_FALSE(text.table().has_label());
  EXPECT_GT(later.dense[0], 0.9);
}

}  // namespace
}  // namespace tercel::data
