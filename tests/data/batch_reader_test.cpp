#include "tercel/data/batch_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "tercel/data/formats/norm_format.h"
#include "tercel/data/row_order_impl.h"
#include "tercel/util/error.h"
#include "tests/data/norm_data.h"
#include "tests/support/errors.h"

namespace tercel::data::test {
namespace {

ReaderOptions batches_of(int64_t batch_size) {
  ReaderOptions options;
  options.batch_size = batch_size;
  return options;
}

std::vector<int64_t> shuffled_rows(const RowOrder& order, int64_t epoch) {
  std::vector<int64_t> result;
  std::vector<RowRange> ranges;
  std::vector<uint32_t> mix;
  for (int64_t window = 0; window < order.num_windows(); ++window) {
    order.ranges(epoch, window, ranges);
    order.mix(epoch, window, mix);
    std::vector<int64_t> loaded;
    for (const RowRange& range : ranges)
      for (int64_t i = 0; i < range.count; ++i) loaded.push_back(range.begin + i);
    for (const uint32_t place : mix) result.push_back(loaded[place]);
  }
  return result;
}

/** A way to lay out the same rows. */
struct Layout {
  KeyType key_type;
  CheckMode mode;
  bool ragged;
};

std::vector<Layout> all_layouts() {
  std::vector<Layout> layouts;
  for (const KeyType key_type : {KeyType::U32, KeyType::I64})
    for (const CheckMode mode : {CheckMode::None, CheckMode::Sum})
      for (const bool ragged : {false, true}) layouts.push_back({key_type, mode, ragged});
  return layouts;
}

TEST(BatchReader, EveryLayoutGivesTheRowsThatWereWritten) {
  for (const Layout& layout : all_layouts()) {
    for (const std::vector<int64_t>& hotness : std::vector<std::vector<int64_t>>{{1, 1, 1}, {1, 3, 2}, {5}, {}}) {
      const Schema schema = make_schema(3, hotness);
      const Rows rows = make_rows(schema, 700, layout.ragged);
      const TemporaryFolder folder;
      const Dataset dataset = put_dataset(folder, schema, rows, layout.key_type, layout.mode, {300, 0, 150, 250});
      EXPECT_EQ(read_all(dataset, batches_of(64)), rows);
      EXPECT_EQ(read_all(dataset, batches_of(1)), rows);
    }
  }
}

TEST(BatchReader, ReadsWhatTheWriterWrote) {
  const Schema schema = make_schema(2, {1, 4});
  const Rows rows = make_rows(schema, 1000, true);
  const TemporaryFolder folder;
  WriterOptions options;
  options.folder = folder.path();
  options.rows_per_file = 333;
  Dataset dataset;
  dataset.format = norm_format();
  const auto writer = dataset.format->create_writer(schema, options);
  writer->write({rows.count, rows.labels.data(), rows.dense.data(), rows.nnz.data(), rows.keys.data()});
  dataset.schema = schema;
  dataset.train = writer->finish();
  save_dataset(dataset, folder.path());
  ReaderOptions reader_options = batches_of(128);
  reader_options.verify_checksums = true;
  EXPECT_EQ(read_all(load_dataset(folder.path()), reader_options), rows);
}

TEST(BatchReader, EpochsEndWithAShortBatchThatMayBeDropped) {
  const Schema schema = make_schema(1, {2});
  const Rows rows = make_rows(schema, 25, false);
  const TemporaryFolder folder;
  const Dataset dataset = put_dataset(folder, schema, rows, KeyType::I64, CheckMode::Sum, {25});
  std::vector<int64_t> sizes;
  ReaderOptions options = batches_of(10);
  options.epochs = 2;
  BatchReader reader(dataset, PartName::Train, options);
  EXPECT_EQ(reader.epoch_rows(), 25);
  EXPECT_EQ(reader.epoch_batches(), 3);
  const Rows twice = read_rest(reader, &sizes);
  EXPECT_EQ(sizes, (std::vector<int64_t>{10, 10, 5, 10, 10, 5}));
  std::vector<int64_t> order(25);
  std::iota(order.begin(), order.end(), 0);
  order.insert(order.end(), order.begin(), order.begin() + 25);
  EXPECT_EQ(twice, permuted(rows, schema, order));

  options.drop_last = true;
  sizes.clear();
  BatchReader dropping(dataset, PartName::Train, options);
  EXPECT_EQ(dropping.epoch_batches(), 2);
  read_rest(dropping, &sizes);
  EXPECT_EQ(sizes, (std::vector<int64_t>{10, 10, 10, 10}));
  Batch batch;
  EXPECT_FALSE(dropping.next(batch));
  EXPECT_FALSE(dropping.next(batch));
}

TEST(BatchReader, ABatchLargerThanTheDataHoldsAllOfIt) {
  const Schema schema = make_schema(1, {2});
  const Rows rows = make_rows(schema, 25, false);
  const TemporaryFolder folder;
  const Dataset dataset = put_dataset(folder, schema, rows, KeyType::I64, CheckMode::Sum, {25});
  std::vector<int64_t> sizes;
  BatchReader reader(dataset, PartName::Train, batches_of(1 << 20));
  EXPECT_EQ(read_rest(reader, &sizes), rows);
  EXPECT_EQ(sizes, std::vector<int64_t>{25});
  ReaderOptions options = batches_of(26);
  options.drop_last = true;
  TERCEL_EXPECT_THROW(BatchReader(dataset, PartName::Train, options), ConfigError,
                      "option 'batch_size': expected at most 25");
}

TEST(BatchReader, PartsOfAShortBatchMayBeLargerThanThoseOfAWholeOne) {
  const Schema schema = make_schema(1, {1, 1, 1});
  const Rows rows = make_rows(schema, 19, false);
  const TemporaryFolder folder;
  const Dataset dataset = put_dataset(folder, schema, rows, KeyType::I64, CheckMode::Sum, {19});
  for (const int64_t ranks : {7, 12}) {
    bool larger = false;
    ReaderOptions options = batches_of(10);
    options.ranks = ranks;
    for (options.rank = 0; options.rank < ranks; ++options.rank) {
      BatchReader reader(dataset, PartName::Train, options);
      Batch batch;
      ASSERT_TRUE(reader.next(batch));
      const int64_t before = batch.rows;
      ASSERT_TRUE(reader.next(batch));
      larger |= batch.rows > before;
      const Tensor& offsets = batch.sparse[0].row_offsets;
      ASSERT_EQ(offsets.numel(), 3 * batch.rows + 1);
      ASSERT_LE(static_cast<size_t>(offsets.numel()) * sizeof(int64_t), offsets.storage()->nbytes());
      for (int64_t i = 0; i < offsets.numel(); ++i) EXPECT_EQ(offsets.data<int64_t>()[i], i);
    }
    EXPECT_TRUE(larger) << ranks;
  }
}

TEST(BatchReader, WithoutRowsOrFilesItSaysSo) {
  const Schema schema = make_schema(1, {2});
  const TemporaryFolder folder;
  const Dataset dataset = put_dataset(folder, schema, {}, KeyType::I64, CheckMode::Sum, {0, 0});
  TERCEL_EXPECT_THROW(BatchReader(dataset, PartName::Train, {}), DataError, "train: expected rows, found 0 in 2 files");
  TERCEL_EXPECT_THROW(BatchReader(dataset, PartName::Test, {}), DataError, "test: expected files of rows, found none");
}

TEST(BatchReader, EpochsWithoutEndGoOn) {
  const Schema schema = make_schema(1, {1});
  const Rows rows = make_rows(schema, 7, false);
  const TemporaryFolder folder;
  const Dataset dataset = put_dataset(folder, schema, rows, KeyType::I64, CheckMode::None, {7});
  ReaderOptions options = batches_of(3);
  options.epochs = 0;
  BatchReader reader(dataset, PartName::Train, options);
  Batch batch;
  for (int64_t i = 0; i < 300; ++i) {
    ASSERT_TRUE(reader.next(batch));
    ASSERT_EQ(batch.epoch, i / 3);
    ASSERT_EQ(batch.row, i % 3 * 3);
    ASSERT_EQ(batch.rows, i % 3 == 2 ? 1 : 3);
    ASSERT_EQ(batch.dense.data<float>()[0], static_cast<float>(batch.row));
  }
}

TEST(BatchReader, SlotsAreSharedOutToInputsInOrder) {
  const Schema schema = make_schema(1, {1, 1, 3, 2});
  for (const bool ragged : {false, true}) {
    const Rows rows = make_rows(schema, 50, ragged);
    const TemporaryFolder folder;
    const Dataset dataset = put_dataset(folder, schema, rows, KeyType::U32, CheckMode::Sum, {50});
    ReaderOptions options = batches_of(16);
    options.inputs = {{"wide", 2}, {"deep", 1}, {"rest", 1}};
    BatchReader reader(dataset, PartName::Train, options);
    Batch batch;
    ASSERT_TRUE(reader.next(batch));
    ASSERT_EQ(batch.sparse.size(), 3u);
    EXPECT_EQ(batch.sparse[0].slot_num, 2);
    EXPECT_EQ(batch.sparse[0].hotness, ragged ? 0 : 1);
    EXPECT_EQ(batch.sparse[1].hotness, ragged ? 0 : 3);
    reader.rewind();
    EXPECT_EQ(read_rest(reader), rows);
    options.inputs = {};
    BatchReader whole(dataset, PartName::Train, options);
    ASSERT_TRUE(whole.next(batch));
    ASSERT_EQ(batch.sparse.size(), 1u);
    EXPECT_EQ(batch.sparse[0].slot_num, 4);
    EXPECT_EQ(batch.sparse[0].hotness, 0);  // slots differ

    options.inputs = {{"a", 3}};
    TERCEL_EXPECT_THROW(BatchReader(dataset, PartName::Train, options), ConfigError,
                        "expected 4 slots in all, found 3");
    options.inputs = {{"a", 3}, {"b", 2}};
    TERCEL_EXPECT_THROW(BatchReader(dataset, PartName::Train, options), ConfigError, "'b' wants 2, 1 are left");
  }
}

TEST(BatchReader, ShufflingDeliversTheOrderOfTheSeed) {
  for (const Layout& layout : all_layouts()) {
    const Schema schema = make_schema(1, {1, 2});
    const Rows rows = make_rows(schema, 1000, layout.ragged);
    const TemporaryFolder folder;
    const Dataset dataset = put_dataset(folder, schema, rows, layout.key_type, layout.mode, {420, 380, 200});
    ReaderOptions options = batches_of(33);
    options.epochs = 2;
    options.shuffle = true;
    options.seed = 17;
    options.shuffle_window = 128;
    options.shuffle_block = 16;
    const RowOrder order = RowOrder::shuffled(1000, 17, 128, 16);
    std::vector<int64_t> expected = shuffled_rows(order, 0);
    const std::vector<int64_t> second = shuffled_rows(order, 1);
    expected.insert(expected.end(), second.begin(), second.end());
    EXPECT_EQ(read_all(dataset, options), permuted(rows, schema, expected));
    options.batch_size = 500;  // windows are smaller than batches
    EXPECT_EQ(read_all(dataset, options), permuted(rows, schema, expected));
  }
}

// From every position, a new reader delivers the remaining rows.
TEST(BatchReader, PositionsAreRestored) {
  for (const bool ragged : {false, true}) {
    const Schema schema = make_schema(1, {1, 2});
    const Rows rows = make_rows(schema, 1500, ragged);
    const TemporaryFolder folder;
    const Dataset dataset = put_dataset(folder, schema, rows, KeyType::I64, CheckMode::Sum, {700, 800});
    for (const bool shuffle : {false, true}) {
      ReaderOptions options = batches_of(200);
      options.epochs = 2;
      options.shuffle = shuffle;
      options.seed = 3;
      options.shuffle_window = 256;
      options.shuffle_block = 32;
      BatchReader reader(dataset, PartName::Train, options);
      const Rows all = read_rest(reader);
      EXPECT_EQ(reader.position().epoch, 2);
      EXPECT_EQ(reader.position().row, 0);
      reader.rewind();
      Rows before;
      Batch batch;
      for (;;) {
        const ReaderPosition position = reader.position();
        BatchReader other(dataset, PartName::Train, options);
        other.seek(position);
        EXPECT_EQ(other.position(), position);
        Rows joined = before;
        while (other.next(batch)) append_batch(joined, batch, schema);
        ASSERT_EQ(joined, all) << position.epoch << " " << position.row;
        if (!reader.next(batch)) break;
        append_batch(before, batch, schema);
      }
      // A reader with another batch size can continue from it: rows stay in order.
      ReaderPosition position = reader.position();
      position.epoch = 0;
      position.row = 777;
      options.batch_size = 10;
      options.epochs = 1;
      BatchReader other(dataset, PartName::Train, options);
      const Rows epoch = read_rest(other);
      other.seek(position);
      Rows tail = read_rest(other);
      EXPECT_EQ(tail.count, 1500 - 777);
      EXPECT_TRUE(std::equal(tail.labels.begin(), tail.labels.end(), epoch.labels.begin() + 777));
      EXPECT_TRUE(std::equal(tail.dense.begin(), tail.dense.end(), epoch.dense.begin() + 777));
    }
  }
}

TEST(BatchReader, TheEndCanBeMoved) {
  const Schema schema = make_schema(1, {1, 2});
  const TemporaryFolder folder;
  const Dataset dataset =
      put_dataset(folder, schema, make_rows(schema, 700, true), KeyType::I64, CheckMode::Sum, {300, 400});
  ReaderOptions options = batches_of(200);
  options.shuffle = true;
  options.shuffle_window = 256;
  options.shuffle_block = 32;
  options.epochs = 5;
  const Rows all = read_all(dataset, options);
  options.epochs = 2;
  BatchReader reader(dataset, PartName::Train, options);
  Rows joined = read_rest(reader);
  Batch batch;
  reader.set_end(3);
  EXPECT_EQ(reader.options().epochs, 2);
  ASSERT_TRUE(reader.next(batch));
  EXPECT_EQ(batch.epoch, 2);
  append_batch(joined, batch, schema);
  reader.set_end(5);  // in the middle of an epoch, which goes on
  while (reader.next(batch)) append_batch(joined, batch, schema);
  EXPECT_EQ(joined, all);
  TERCEL_EXPECT_THROW(reader.set_end(0), ConfigError, "set_end: expected an epoch of at least 1, found 0");

  // An earlier end, also one before the position, which stays where it is.
  reader.rewind();
  ASSERT_TRUE(reader.next(batch));
  reader.set_end(1);
  EXPECT_EQ(read_rest(reader).count, 500);
  EXPECT_EQ(reader.position().epoch, 1);
  ReaderPosition position = reader.position();
  position.epoch = 4;
  position.row = 600;
  reader.seek(position);
  EXPECT_FALSE(reader.next(batch));
  EXPECT_EQ(reader.position(), position);
  reader.set_end(std::numeric_limits<int64_t>::max());
  ASSERT_TRUE(reader.next(batch));
  EXPECT_EQ(batch.epoch, 4);
  EXPECT_EQ(batch.rows, 100);

  // Behind the last row of an epoch begins the next one, whether or not it is delivered.
  reader.set_end(3);
  position.row = 700;
  reader.seek(position);
  EXPECT_EQ(reader.position().epoch, 5);
  EXPECT_EQ(reader.position().row, 0);
  EXPECT_FALSE(reader.next(batch));
  position.epoch = kMaxEpoch + 1;
  TERCEL_EXPECT_THROW(reader.seek(position), ConfigError, "of an epoch from 0 to 9007199254740992, found row 700");

  options.epochs = 0;
  BatchReader endless(dataset, PartName::Train, options);
  ASSERT_TRUE(endless.next(batch));
  endless.set_end(1);
  EXPECT_EQ(endless.options().epochs, 0);
  ASSERT_TRUE(endless.next(batch));
  EXPECT_EQ(batch.row, 200);
}

TEST(BatchReader, PositionsOfAnotherOrderAreRefused) {
  const Schema schema = make_schema(1, {1});
  const Rows rows = make_rows(schema, 100, false);
  const TemporaryFolder folder;
  const Dataset dataset = put_dataset(folder, schema, rows, KeyType::I64, CheckMode::Sum, {100});
  ReaderOptions options = batches_of(10);
  options.shuffle = true;
  options.seed = 3;
  BatchReader reader(dataset, PartName::Train, options);
  const ReaderPosition good = reader.position();
  const auto with = [&](auto member, auto value) {
    ReaderPosition position = good;
    position.*member = value;
    return position;
  };
  TERCEL_EXPECT_THROW(reader.seek(with(&ReaderPosition::epoch_rows, 99)), ConfigError,
                      "expected epoch_rows 100, found 99");
  TERCEL_EXPECT_THROW(reader.seek(with(&ReaderPosition::shuffle, false)), ConfigError,
                      "expected shuffle true, found false");
  TERCEL_EXPECT_THROW(reader.seek(with(&ReaderPosition::seed, uint64_t{4})), ConfigError, "expected seed 3, found 4");
  TERCEL_EXPECT_THROW(reader.seek(with(&ReaderPosition::shuffle_window, 5)), ConfigError, "shuffle_window");
  TERCEL_EXPECT_THROW(reader.seek(with(&ReaderPosition::shuffle_block, 5)), ConfigError, "shuffle_block");
  TERCEL_EXPECT_THROW(reader.seek(with(&ReaderPosition::row, 101)), ConfigError, "expected a row from 0 to 100");
  TERCEL_EXPECT_THROW(reader.seek(with(&ReaderPosition::row, -1)), ConfigError, "found row -1");
  TERCEL_EXPECT_THROW(reader.seek(with(&ReaderPosition::epoch, -1)), ConfigError, "epoch -1");
  reader.seek(with(&ReaderPosition::row, 100));
  EXPECT_EQ(reader.position().epoch, 1);
  Batch batch;
  EXPECT_FALSE(reader.next(batch));
}

TEST(BatchReader, OptionsAreChecked) {
  const Schema schema = make_schema(1, {1});
  const TemporaryFolder folder;
  const Dataset dataset = put_dataset(folder, schema, make_rows(schema, 10, false), KeyType::I64, CheckMode::Sum, {10});
  const auto refused = [&](auto member, auto value, const char* text) {
    ReaderOptions options;
    options.*member = value;
    TERCEL_EXPECT_THROW(BatchReader(dataset, PartName::Train, options), ConfigError, text);
  };
  refused(&ReaderOptions::batch_size, 0, "option 'batch_size': expected at least 1");
  refused(&ReaderOptions::epochs, -1, "option 'epochs'");
  refused(&ReaderOptions::num_workers, 0, "option 'num_workers'");
  refused(&ReaderOptions::prefetch, 0, "option 'prefetch'");
  refused(&ReaderOptions::shuffle_window, 0, "option 'shuffle_window'");
  refused(&ReaderOptions::shuffle_block, 0, "option 'shuffle_block'");
}

TEST(BatchReader, TensorsAreUsedAgainUnlessSomebodyHoldsThem) {
  for (const bool ragged : {false, true}) {
    const Schema schema = make_schema(2, {1, 2});
    const Rows rows = make_rows(schema, 400, ragged);
    const TemporaryFolder folder;
    const Dataset dataset = put_dataset(folder, schema, rows, KeyType::I64, CheckMode::Sum, {400});
    BatchReader reader(dataset, PartName::Train, batches_of(10));
    Batch batch;
    ASSERT_TRUE(reader.next(batch));
    const Batch kept = batch;
    Rows first;
    append_batch(first, kept, schema);
    std::vector<const void*> addresses;
    while (reader.next(batch)) addresses.push_back(batch.labels.data_ptr());
    std::sort(addresses.begin(), addresses.end());
    addresses.erase(std::unique(addresses.begin(), addresses.end()), addresses.end());
    EXPECT_LE(addresses.size(), 4u);  // prefetched ones, the consumer's, and the replacement of the one kept
    EXPECT_EQ(std::count(addresses.begin(), addresses.end(), kept.labels.data_ptr()), 0);
    Rows again;
    append_batch(again, kept, schema);
    EXPECT_EQ(again, first);
  }
}

TEST(BatchReader, LabelsOtherThan0And1NeedTheOption) {
  Schema schema = make_schema(1, {1});
  schema.label_dim = 2;
  Rows rows = make_rows(schema, 10, false);
  rows.labels[7] = 0.25f;
  const TemporaryFolder folder;
  const Dataset dataset = put_dataset(folder, schema, rows, KeyType::I64, CheckMode::None, {10});
  // Row 3, label 1: header 64, rows of 8 + 4 + 12 bytes.
  TERCEL_EXPECT_THROW(read_all(dataset), DataError,
                      "0.data: record 3: byte 140: expected label 1 to be 0 or 1, found 0.25");
  ReaderOptions options;
  options.binary_labels = false;
  EXPECT_EQ(read_all(dataset, options), rows);
}

TEST(BatchReader, BareFileListsAreReadByASpec) {
  const Schema schema = make_schema(2, {1, 3});
  const Rows rows = make_rows(schema, 100, true);
  const TemporaryFolder folder;
  put_dataset(folder, schema, rows, KeyType::U32, CheckMode::Sum, {60, 40});
  NormSpec spec;
  spec.train_list = folder.put("list.txt", "2\n0.data\n1.data\n");
  spec.dense_dim = 2;
  spec.nnz_per_slot = {1, 3};
  const Dataset dataset = dataset_from_norm_files(spec);
  EXPECT_EQ(dataset.train.rows(), 100);
  EXPECT_EQ(read_all(dataset, batches_of(7)), rows);
  spec.nnz_per_slot = {4, 9};  // a generous limit is fine
  EXPECT_EQ(read_all(dataset_from_norm_files(spec), batches_of(7)), rows);
  spec.slot_size_array = {100, 50};
  TERCEL_EXPECT_THROW(read_all(dataset_from_norm_files(spec), batches_of(7)), DataError,
                      "expected a key from 100 to 149 in slot 1 ('slot1')");
}

}  // namespace
}  // namespace tercel::data::test
