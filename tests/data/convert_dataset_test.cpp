#include "tercel/data/convert_dataset.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "tercel/data/formats/norm_format.h"
#include "tercel/data/formats/raw_format.h"
#include "tercel/data/formats/rawasync_format.h"
#include "tercel/data/generate.h"
#include "tercel/data/vocabulary.h"
#include "tercel/util/checksum.h"
#include "tercel/util/error.h"
#include "tests/data/memory_format.h"
#include "tests/data/norm_data.h"
#include "tests/support/errors.h"

namespace tercel::data::test {
namespace {

void no_progress(int64_t /*rows*/) {}

Dataset convert(const Dataset& source, const std::string& folder, std::shared_ptr<const DatasetFormat> format,
                int64_t rows_per_file = 0) {
  ConvertDatasetOptions options;
  options.format = std::move(format);
  options.rows_per_file = rows_per_file;
  convert_dataset(source, folder, options, false, no_progress);
  return load_dataset(folder);
}

/** As the dataset was before, with the options of that format. */
Dataset convert_back(const Dataset& source, const std::string& folder, std::string_view format) {
  return convert(source, folder, make_format_like(source, format, "test"));
}

/** A train part in files of these numbers of rows, and a test part, as Norm. */
Dataset norm_dataset(const TemporaryFolder& folder, const Schema& schema, const Rows& rows, const NormOptions& norm,
                     const std::vector<int64_t>& file_rows) {
  Dataset dataset;
  dataset.folder = folder.path();
  dataset.format = norm_format(norm);
  dataset.schema = schema;
  for (const PartName part : {PartName::Train, PartName::Test}) {
    WriterOptions options;
    options.folder = folder.path();
    options.prefix = std::string(to_string(part)) + "/part-";
    options.file_list = std::string(to_string(part)) + ".txt";
    const auto writer = dataset.format->create_writer(schema, options);
    Rows left = rows;
    for (const int64_t count : file_rows) {
      writer->start_file(count);
      std::vector<int64_t> order;
      for (int64_t row = 0; row < count; ++row) order.push_back(row);
      const Rows some = permuted(left, schema, order);
      writer->write({count, some.labels.data(), some.dense.data(), some.nnz.data(), some.keys.data()});
      order.clear();
      for (int64_t row = count; row < left.count; ++row) order.push_back(row);
      left = permuted(left, schema, order);
    }
    (part == PartName::Train ? dataset.train : dataset.test) = writer->finish();
  }
  dataset.train.truth = PlantedTruth{0.8, 0.45};
  Conversion& conversion = dataset.conversion.emplace();
  conversion.tool = "csv";
  conversion.tercel_version = "0.0";
  conversion.settings = {{"min_count", "4"}};
  FileRecord& vocabulary = conversion.vocabulary.emplace();
  vocabulary.path = folder.put("words/vocabulary.bin", "any bytes").substr(folder.path().size() + 1);
  vocabulary.bytes = 9;
  vocabulary.checksum = checksum_to_hex(checksum("any bytes", 9));
  save_dataset(dataset, folder.path());
  return load_dataset(folder.path());
}

/** Content of all files but the description. */
std::map<std::string, std::string> data_files(const TemporaryFolder& folder, const std::string& prefix) {
  std::map<std::string, std::string> files;
  for (const auto& [path, content] : folder.tree())
    if (path.starts_with(prefix) && !path.ends_with(".json")) files[path.substr(prefix.size())] = content;
  files.erase("");
  return files;
}

TEST(ConvertDataset, ThereAndBackGivesTheSameBytes) {
  const Schema schema = make_schema(3, {1, 3, 2});
  const Rows rows = make_rows(schema, 30, false);
  for (const KeyType key_type : {KeyType::U32, KeyType::I64})
    for (const CheckMode mode : {CheckMode::None, CheckMode::Sum})
      for (const auto& format :
           {raw_format(), raw_format({true, SlotOffsets::Add}), rawasync_format(),
            rawasync_format({true, KeyType::U32, SlotOffsets::Add}), norm_format({KeyType::I64, CheckMode::Sum})}) {
        const TemporaryFolder in, folder;
        const Dataset source = norm_dataset(in, schema, rows, {key_type, mode}, {7, 0, 12, 11, 0});
        const Dataset there = convert(source, folder / "there", format);
        ASSERT_EQ(there.train.files.size(), 5u);
        EXPECT_EQ(there.train.files[2].rows, 12);
        EXPECT_EQ(there.schema, schema);
        EXPECT_EQ(there.train.truth, source.train.truth);
        EXPECT_EQ(there.conversion, source.conversion);
        EXPECT_EQ(read_all(there), rows);
        verify_file(there, *there.conversion->vocabulary);
        for (const DataFile& file : there.test.files) verify_file(there, file);
        if (format->name() == "norm") continue;
        const Dataset back = convert_back(there, folder / "back", "norm");
        EXPECT_EQ(back.train, source.train);
        EXPECT_EQ(back.test, source.test);
        EXPECT_EQ(data_files(folder, "back/"), data_files(in, ""));
        // And once more, through both.
        const Dataset again = convert_back(back, folder / "again", format->name());
        EXPECT_EQ(again.train, there.train);
      }
}

TEST(ConvertDataset, RemembersEveryFormatOnTheWay) {
  const Schema schema = make_schema(1, {1, 2});
  const TemporaryFolder in, folder;
  const Dataset norm = norm_dataset(in, schema, make_rows(schema, 5, false), {KeyType::U32, CheckMode::None}, {5});
  const Dataset raw = convert(norm, folder / "raw", raw_format({true, SlotOffsets::Add}));
  const Dataset async = convert_back(raw, folder / "async", "rawasync");
  ASSERT_EQ(async.origins.size(), 2u);
  EXPECT_EQ(async.origins[0]->name(), "norm");
  EXPECT_EQ(async.origins[1]->name(), "raw");
  const Dataset back = convert_back(async, folder / "back", "raw");
  EXPECT_EQ(back.train, raw.train);
  ASSERT_EQ(back.origins.size(), 2u);
  EXPECT_EQ(back.origins[1]->name(), "rawasync");
  EXPECT_EQ(convert_back(back, folder / "norm", "norm").train, norm.train);
  std::string json = dataset_to_json(back);
  EXPECT_EQ(dataset_to_json(dataset_from_json(json, "x.json")), json);
  const size_t at = json.find("\"rawasync\"", json.find("\"origins\""));
  ASSERT_NE(at, std::string::npos);
  json.replace(at, 10, "\"rawsync\"");
  TERCEL_EXPECT_THROW(dataset_from_json(json, "x.json"), DataError,
                      "x.json: origins: unknown format 'rawsync'; did you mean 'rawasync'?");
}

TEST(ConvertDataset, FilesMayHaveOtherNumbersOfRows) {
  const Schema schema = make_schema(1, {1});
  const Rows rows = make_rows(schema, 20, false);
  const TemporaryFolder in, folder;
  const Dataset source = norm_dataset(in, schema, rows, {}, {1, 19});
  const Dataset result = convert(source, folder / "out", raw_format(), 8);
  ASSERT_EQ(result.train.files.size(), 3u);
  EXPECT_EQ(result.train.files[2].rows, 4);
  EXPECT_EQ(read_all(result), rows);
}

TEST(ConvertDataset, ManyRowsOfManyFiles) {
  GenerateOptions options;
  options.rows = 30000;
  options.files = 3;
  options.format = norm_format();
  const TemporaryFolder folder;
  const Dataset source = generate_dataset(folder / "in", options, false, no_progress).dataset;
  int64_t last = 0;
  ConvertDatasetOptions to;
  to.format = rawasync_format();
  const Dataset result = convert_dataset(source, folder / "out", to, false, [&](int64_t rows) { last = rows; }).dataset;
  EXPECT_EQ(last, 30000);
  EXPECT_EQ(read_all(result), read_all(source));
  EXPECT_EQ(result.test.truth, source.test.truth);
}

TEST(ConvertDataset, TheTruthOfAllRowsIsNotThatOfSome) {
  const Schema schema = make_schema(1, {1});
  const TemporaryFolder in, folder;
  const Dataset source = norm_dataset(in, schema, make_rows(schema, 10, false), {}, {10});
  EXPECT_TRUE(convert(source, folder / "whole", norm_format()).train.truth);
  std::string bytes = in.get("train/part-0.data");
  bytes[bytes.size() - 3] ^= 1;
  in.put("train/part-0.data", bytes);
  ConvertDatasetOptions options;
  options.format = norm_format();
  options.on_bad_record = OnBadRecord::Skip;
  const ConvertDatasetResult result = convert_dataset(source, folder / "part", options, false, no_progress);
  EXPECT_EQ(result.bad_records, 1);
  EXPECT_FALSE(result.dataset.train.truth);
}

TEST(ConvertDataset, RowsThatAreLeftOutCountInTheirFiles) {
  Schema schema = make_schema(1, {1});
  schema.dense_dim = 1 << 18;  // each row is a batch, and a bad one is not delivered
  const TemporaryFolder in, folder;
  const Dataset source = norm_dataset(in, schema, make_rows(schema, 6, false), {}, {2, 1, 3});
  const int64_t record = (source.train.files[1].bytes - 64);
  const auto damage = [&](const std::string& path, int64_t row) {
    std::string bytes = in.get(path);
    bytes[static_cast<size_t>(64 + row * record + 100)] ^= 1;
    in.put(path, bytes);
  };
  damage("train/part-0.data", 0);
  damage("train/part-1.data", 0);
  damage("train/part-2.data", 2);
  ConvertDatasetOptions options;
  options.format = norm_format();
  options.on_bad_record = OnBadRecord::Skip;
  const ConvertDatasetResult result = convert_dataset(source, folder / "part", options, false, no_progress);
  EXPECT_EQ(result.bad_records, 3);
  std::vector<int64_t> rows;
  for (const DataFile& file : result.dataset.train.files) rows.push_back(file.rows);
  EXPECT_EQ(rows, (std::vector<int64_t>{1, 0, 2}));
}

TEST(ConvertDataset, RowsThatDoNotFitAreNamed) {
  const Schema schema = make_schema(1, {1, 3});
  Rows rows = make_rows(schema, 10, false);
  rows.nnz[2 * 6 + 1] = 2;  // row 6: the second of the file with rows 5 to 9
  rows.keys.erase(rows.keys.begin() + 6 * 4 + 1);
  const TemporaryFolder in, folder;
  const Dataset source = norm_dataset(in, schema, rows, {}, {5, 5});
  TERCEL_EXPECT_THROW(
      convert(source, folder / "out", raw_format()), DataError,
      "train/part-1.data: row 1: the format raw cannot hold it: expected 3 keys in slot 1 ('s1'), as in "
      "every row of such files, found 2");
  EXPECT_TRUE(folder.tree().empty());

  // Dense values that are no logarithms of counts.
  const Rows full = make_rows(schema, 10, false);
  const TemporaryFolder other;
  const Dataset dense = norm_dataset(other, schema, full, {}, {5, 5});
  TERCEL_EXPECT_THROW(
      convert(dense, folder / "out", raw_format({false, SlotOffsets::None})), DataError,
      "train/part-0.data: row 1: the format raw cannot hold it: expected dense value 0 to be ln(x + 1)");
  EXPECT_TRUE(folder.tree().empty());
}

TEST(ConvertDataset, WhatTheSchemaForbidsIsRefusedAtOnce) {
  const TemporaryFolder folder;
  Schema schema = make_schema(0, {1, 1}, int64_t{1} << 30);
  schema.slots.push_back({"more", 10, int64_t{1} << 31, 1});
  const auto memory = std::make_shared<MemoryRows>();
  memory->rows = make_rows(schema, 10, false);
  MemoryOptions unread;
  unread.bad_row = 0;
  TERCEL_EXPECT_THROW(convert(memory_dataset(schema, memory, unread), folder / "out", raw_format()), ConfigError,
                      "raw: slot 'more': expected keys up to 2147483647");
  schema.slots[2] = {"more", 0, int64_t{1} << 33, 1};
  TERCEL_EXPECT_THROW(convert(memory_dataset(schema, memory, unread), folder / "out", raw_format()), ConfigError,
                      "raw: slot 'more': expected keys up to 2147483647, which fit in the files, found keys from "
                      "8589934592 on");
  schema.slots[0].weighted = true;
  TERCEL_EXPECT_THROW(convert(memory_dataset(schema, memory, unread), folder / "out", norm_format()), ConfigError,
                      "norm: slot 's0': expected keys without weights");
  EXPECT_TRUE(folder.tree().empty());
}

TEST(ConvertDataset, BadSourcesLeaveNothing) {
  const Schema schema = make_schema(1, {1});
  const TemporaryFolder in, folder;
  Dataset source = norm_dataset(in, schema, make_rows(schema, 10, false), {}, {10});
  std::string bytes = in.get("train/part-0.data");
  bytes[bytes.size() - 3] ^= 1;
  in.put("train/part-0.data", bytes);
  TERCEL_EXPECT_THROW(convert(source, folder / "out", raw_format()), DataError, "record 9: byte ");
  in.put("words/vocabulary.bin", "any Bytes");
  TERCEL_EXPECT_THROW(convert(source, folder / "out", raw_format()), DataError, "vocabulary.bin: expected the XXH3");
  EXPECT_TRUE(folder.tree().empty());
  ConvertDatasetOptions options;
  options.format = raw_format();
  TERCEL_EXPECT_THROW(convert_dataset(source, in.path(), options, true, no_progress), ConfigError, in.path());
}

}  // namespace
}  // namespace tercel::data::test
