#include "tercel/data/formats/raw_format.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tercel/data/formats/raw_layout_impl.h"
#include "tercel/data/formats/rawasync_format.h"
#include "tercel/util/error.h"
#include "tests/data/norm_data.h"
#include "tests/support/errors.h"

namespace tercel::data::test {
namespace {

/** One part in one file, by the format's writer. */
Dataset write_rows(const TemporaryFolder& folder, std::shared_ptr<const DatasetFormat> format, const Schema& schema,
                   const Rows& rows, bool binary_labels = true) {
  Dataset dataset;
  dataset.folder = folder.path();
  dataset.format = std::move(format);
  dataset.schema = schema;
  WriterOptions options;
  options.folder = folder.path();
  options.file_list = "train.txt";
  options.binary_labels = binary_labels;
  const auto writer = dataset.format->create_writer(schema, options);
  writer->write({rows.count, rows.labels.data(), rows.dense.data(), rows.nnz.data(), rows.keys.data()});
  dataset.train = writer->finish();
  return dataset;
}

TEST(RawFormat, LogarithmsOfIntegersHaveAnInverse) {
  for (int64_t x = 0; x < (int64_t{1} << 31); x += 1 + x / 1000) {
    const auto value = static_cast<int32_t>(x);
    int32_t back = -1;
    ASSERT_TRUE(inverse_log_of_dense(log_of_dense(value), back)) << value;
    // Of large integers, many have the same logarithm.
    ASSERT_EQ(log_of_dense(back), log_of_dense(value));
    if (value < 500'000) {
      ASSERT_EQ(back, value);
    }
  }
  int32_t ignored = 0;
  for (const float value : {-0.0f, 0.5f, -1.0f, 100.0f, std::nanf(""), std::numeric_limits<float>::infinity(),
                            std::nextafter(std::log(8.0f), 9.0f)})
    EXPECT_FALSE(inverse_log_of_dense(value, ignored)) << value;
}

/** Rows whose labels and dense values are integers: dense values are logarithms of counts of all sizes. */
Rows integer_rows(const Schema& schema, int64_t count) {
  Rows rows = make_rows(schema, count, false);
  for (size_t i = 0; i < rows.dense.size(); ++i)
    rows.dense[i] = log_of_dense(static_cast<int32_t>(i % 7 == 0 ? 4095 + i : (i * 37) % 200));
  return rows;
}

TEST(RawFormat, IntegersAreReadAsTheyWereWritten) {
  const Schema schema = make_schema(30, {1, 3, 2});
  const Rows rows = integer_rows(schema, 1000);
  for (const auto& format : {raw_format({false, SlotOffsets::None}), raw_format({false, SlotOffsets::Add}),
                             rawasync_format({false, KeyType::U32, SlotOffsets::None}),
                             rawasync_format({false, KeyType::I64, SlotOffsets::Add})}) {
    const TemporaryFolder folder;
    const Dataset dataset = write_rows(folder, format, schema, rows);
    EXPECT_EQ(dataset.train.file_list, "");
    for (const bool shuffle : {false, true})
      for (const int64_t workers : {1, 4}) {
        ReaderOptions options;
        options.batch_size = 64;
        options.num_workers = workers;
        options.shuffle = shuffle;
        const Rows found = read_all(dataset, options);
        if (!shuffle) {
          EXPECT_EQ(found, rows);
        }
        EXPECT_EQ(found.count, rows.count);
      }
  }
}

TEST(RawFormat, AddingOffsetsWritesKeysFromZero) {
  const Schema schema = make_schema(0, {1, 1}, 10);
  Rows rows;
  rows.count = 1;
  rows.labels = {1};
  rows.nnz = {1, 1};
  rows.keys = {3, 15};
  const TemporaryFolder plain, offset;
  write_rows(plain, raw_format({false, SlotOffsets::None}), schema, rows);
  write_rows(offset, raw_format({false, SlotOffsets::Add}), schema, rows);
  EXPECT_EQ(plain.get("train/part-0.bin"), std::string("\1\0\0\0\3\0\0\0\17\0\0\0", 12));
  EXPECT_EQ(offset.get("train/part-0.bin"), std::string("\1\0\0\0\3\0\0\0\5\0\0\0", 12));
}

TEST(RawFormat, WhatTheFilesCannotHoldIsRefused) {
  const TemporaryFolder folder;
  WriterOptions options;
  options.folder = folder.path();
  Schema schema = make_schema(1, {1, 2});
  const auto writer_of = [&](const std::shared_ptr<const DatasetFormat>& format) {
    return format->create_writer(schema, options);
  };
  schema.slots[1].weighted = true;
  TERCEL_EXPECT_THROW(writer_of(raw_format()), ConfigError, "raw: slot 's1': expected keys without weights");
  schema.slots[1].weighted = false;
  schema.columns = {{"time", ColumnType::I64}};
  TERCEL_EXPECT_THROW(writer_of(rawasync_format()), ConfigError, "rawasync: expected no columns");
  schema.columns.clear();
  schema.slots[1].size = 0;
  schema.slots[1].first_key = 0;
  TERCEL_EXPECT_THROW(writer_of(raw_format({true, SlotOffsets::Add})), ConfigError,
                      "slot 's1': expected its number of keys, as slot_offsets = add needs");
  schema.slots[1].size = int64_t{1} << 31;
  schema.slots[1].first_key = 0;
  EXPECT_NE(writer_of(raw_format()), nullptr);
  schema.slots[1].first_key = 1;
  TERCEL_EXPECT_THROW(writer_of(raw_format()), ConfigError,
                      "raw: slot 's1': expected keys up to 2147483647, which fit in the files, found keys up to "
                      "2147483648");
  EXPECT_NE(writer_of(raw_format({true, SlotOffsets::Add})), nullptr);
  EXPECT_NE(writer_of(rawasync_format({true, KeyType::U32, SlotOffsets::None})), nullptr);
}

TEST(RawFormat, RowsThatDoNotFitAreRefusedByNumber) {
  const Schema schema = make_schema(1, {1, 2}, 100);
  const TemporaryFolder folder;
  WriterOptions options;
  options.folder = folder.path();
  options.binary_labels = false;
  const auto integer = raw_format({false, SlotOffsets::None})->create_writer(schema, options);
  const auto write = [&](float label, float dense, std::vector<int32_t> nnz, std::vector<int64_t> keys) {
    integer->write({1, &label, &dense, nnz.data(), keys.data()});
  };
  write(7, log_of_dense(5), {1, 2}, {1, 100, 101});
  TERCEL_EXPECT_THROW(write(0.5f, 0, {1, 2}, {1, 100, 101}), ValueError,
                      "raw: row 1: expected label 0 to be an integer of 32 bits, found 0.5");
  TERCEL_EXPECT_THROW(write(-0.0f, 0, {1, 2}, {1, 100, 101}), ValueError, "an integer of 32 bits, found -0");
  TERCEL_EXPECT_THROW(write(3e9f, 0, {1, 2}, {1, 100, 101}), ValueError, "an integer of 32 bits, found 3e+09");
  TERCEL_EXPECT_THROW(write(1, 0.5f, {1, 2}, {1, 100, 101}), ValueError,
                      "expected dense value 0 to be ln(x + 1) of an integer x, as without float_label_dense only that "
                      "is written, found 0.5");
  TERCEL_EXPECT_THROW(write(1, 0, {1, 1}, {1, 100}), ValueError,
                      "raw: row 1: expected 2 keys in slot 1 ('s1'), as in every row of such files, found 1");
  TERCEL_EXPECT_THROW(write(1, 0, {1, 2}, {1, 100, 200}), ValueError, "expected a key from 100 to 199 in slot 1");
  EXPECT_EQ(integer->finish().rows(), 1);

  Schema any = make_schema(0, {1}, 0);
  const TemporaryFolder other;
  options.folder = other.path();
  const auto narrow = raw_format()->create_writer(any, options);
  const float label = 0;
  const int64_t large = int64_t{1} << 31;
  TERCEL_EXPECT_THROW(narrow->write({1, &label, nullptr, nullptr, &large}), ValueError,
                      "expected a key from 0 to 2147483647 in slot 0 ('s0'), found 2147483648");
}

TEST(RawFormat, NumberOfSamplesLimitsTheRows) {
  const Schema schema = make_schema(1, {1});
  const Rows rows = make_rows(schema, 10, false);
  const TemporaryFolder folder;
  write_rows(folder, raw_format(), schema, rows);
  RawSpec spec;
  spec.train = {folder / "train/part-0.bin", folder / "train/part-0.bin"};
  spec.test = {folder / "train/part-0.bin"};
  spec.dense_dim = 1;
  spec.nnz_per_slot = {1};
  spec.float_label_dense = true;
  EXPECT_EQ(dataset_from_raw_files(spec).train.rows(), 20);
  spec.num_samples = 13;
  spec.eval_num_samples = 4;
  const Dataset dataset = dataset_from_raw_files(spec);
  EXPECT_EQ(dataset.train.files[1].rows, 3);
  EXPECT_EQ(dataset.test.rows(), 4);
  const Rows found = read_all(dataset);
  EXPECT_EQ(found.count, 13);
  EXPECT_EQ(found.keys[10], rows.keys[0]);
  const Dataset described = describe_files(dataset, folder / "described", false);
  EXPECT_EQ(read_all(load_dataset(folder / "described")), found);
  spec.num_samples = 21;
  TERCEL_EXPECT_THROW(dataset_from_raw_files(spec), DataError,
                      "part-0.bin: expected 21 rows, as num_samples says, found 20 in this file and those after it");
  spec.num_samples = 0;
  spec.test.clear();
  TERCEL_EXPECT_THROW(dataset_from_raw_files(spec), ConfigError,
                      "[raw] option 'eval_num_samples': expected files of that part too, found none");
  spec.eval_num_samples = 0;
  spec.slot_size_array = {1, 2};
  TERCEL_EXPECT_THROW(dataset_from_raw_files(spec), ConfigError,
                      "[raw] option 'slot_size_array': expected none or 1 sizes, one for each slot, found 2");
}

}  // namespace
}  // namespace tercel::data::test
