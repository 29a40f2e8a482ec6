// What the readers promise to sources, seen by one that counts.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "tests/data/memory_format.h"
#include "tests/support/errors.h"

namespace tercel::data::test {
namespace {

struct Case {
  Schema schema = make_schema(1, {1, 3});
  std::shared_ptr<MemoryRows> memory = std::make_shared<MemoryRows>();

  explicit Case(int64_t count = 200) { memory->rows = make_rows(schema, count, true); }
  Dataset dataset(MemoryOptions options = {}) const { return memory_dataset(schema, memory, std::move(options)); }
};

TEST(RecordSourceThreads, WindowsOfAnySizesArePreparedOnce) {
  const Case data;
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{1}, {200}, {1, 100, 2}, {13, 5}})
    for (const int64_t batch_size : {1, 10, 150})
      for (const int64_t workers : {1, 4}) {
        data.memory->prepared = 0;
        const Dataset dataset = data.dataset({.window_rows = sizes});
        ReaderOptions options;
        options.batch_size = batch_size;
        options.num_workers = workers;
        options.epochs = 2;
        BatchReader reader(dataset, PartName::Train, options);
        Rows twice = read_rest(reader);
        ASSERT_EQ(twice.count, 400);
        const std::vector<int64_t>& keys = data.memory->rows.keys;
        EXPECT_TRUE(std::equal(keys.begin(), keys.end(), twice.keys.begin()));
        EXPECT_TRUE(std::equal(keys.rbegin(), keys.rend(), twice.keys.rbegin()));
        EXPECT_EQ(twice.keys.size(), 2 * keys.size());
        const MemorySource source(data.memory, {.window_rows = sizes}, data.schema, {});
        EXPECT_EQ(data.memory->prepared, 2 * source.windows().count());
      }
}

TEST(RecordSourceThreads, AnErrorOfAWindowIsThatOfItsFirstBatch) {
  const Case data;
  const Dataset dataset = data.dataset({.window_rows = {20}, .bad_window = 60});
  for (const int64_t workers : {1, 4}) {
    ReaderOptions options;
    options.batch_size = 8;
    options.num_workers = workers;
    BatchReader reader(dataset, PartName::Train, options);
    Batch batch;
    for (int64_t row = 0; row + 8 <= 60; row += 8) {
      ASSERT_TRUE(reader.next(batch));
      EXPECT_EQ(batch.row, row);
    }
    for (int again = 0; again < 2; ++again) TERCEL_EXPECT_THROW(reader.next(batch), DataError, "a bad window");
  }
}

// Of an error in a window, each rank hears at its first batch that has or follows the row.
TEST(RecordSourceThreads, AnErrorOfLoadingEndsEveryRank) {
  const Case data;
  for (const bool shuffle : {false, true})
    for (const int64_t ranks : {1, 3})
      for (int64_t rank = 0; rank < ranks; ++rank)
        for (const int64_t workers : {1, 4}) {
          ReaderOptions options;
          options.batch_size = 12;
          options.num_workers = workers;
          options.shuffle = shuffle;
          options.shuffle_block = 2;
          options.shuffle_window = 10;
          options.rank = rank;
          options.ranks = ranks;
          options.epochs = 2;
          BatchReader reader(data.dataset({.window_rows = {5, 2, 20}, .bad_row = 100}), PartName::Train, options);
          Batch batch;
          int64_t last = -1;
          const auto read_all = [&] {
            while (reader.next(batch)) last = batch.global_row;
          };
          TERCEL_EXPECT_THROW(read_all(), DataError, "a bad row");
          if (!shuffle) {
            EXPECT_LE(last, 100);
          }
        }
}

TEST(RecordSourceThreads, ARankWithoutRowsCanBeStopped) {
  const Case data(3);
  for (const int64_t epochs : {0, 2}) {
    ReaderOptions options;
    options.batch_size = 3;
    options.ranks = 4;
    options.rank = 0;
    options.epochs = epochs;
    BatchReader reader(data.dataset(), PartName::Train, options);
    Batch batch;
    for (int i = 0; i < 2; ++i) {
      ASSERT_TRUE(reader.next(batch));
      EXPECT_EQ(batch.rows, 0);
      EXPECT_EQ(batch.global_rows, 3);
      EXPECT_EQ(batch.input("keys").row_offsets.numel(), 1);
    }
    reader.rewind();
    ASSERT_TRUE(reader.next(batch));
  }
}

TEST(RecordSource, ABatchMayGoThroughSeveralReaders) {
  const Case data;
  Batch batch;
  for (const bool weighted : {true, false, true, false})
    for (const BagOrder order : {BagOrder::SlotMajor, BagOrder::SampleMajor})
      for (const bool narrow : {true, false}) {
        ReaderOptions options;
        options.batch_size = 16;
        options.bag_order = order;
        options.narrow_keys = narrow;
        BatchReader reader(data.dataset({.key_weights = weighted}), PartName::Train, options);
        for (int i = 0; i < 3; ++i) {
          ASSERT_TRUE(reader.next(batch));
          const SparseBatch& input = batch.input("keys");
          EXPECT_EQ(input.order, order);
          EXPECT_EQ(input.keys.dtype(), narrow ? kInt32 : kInt64);
          EXPECT_EQ(input.key_weights.defined(), weighted);
          if (weighted) {
            EXPECT_EQ(input.key_weights.numel(), input.keys.numel());
          }
        }
      }
}

TEST(RecordSource, NamesOfInputsAndColumnsAreDistinct) {
  const Case data;
  ReaderOptions options;
  options.inputs = {{"a", 1}, {"a", 1}};
  TERCEL_EXPECT_THROW(BatchReader(data.dataset(), PartName::Train, options), ConfigError,
                      "option 'inputs': the name 'a' occurs twice");
  options.inputs.clear();
  options.columns = {"time", "time"};
  TERCEL_EXPECT_THROW(BatchReader(data.dataset(), PartName::Train, options), ConfigError,
                      "option 'columns': the name 'time' occurs twice");
}

TEST(RecordSource, AColumnIsTheWeightOfTheRows) {
  Case data;
  data.schema.columns = {{"weight", ColumnType::F32}, {"time", ColumnType::I64}};
  ReaderOptions options;
  options.batch_size = 32;
  options.shuffle = true;
  BatchReader plain(data.dataset(), PartName::Train, options);
  options.weight = "weight";
  BatchReader weighted(data.dataset(), PartName::Train, options);
  options.columns = {"time"};
  options.weight = "time";  // integers
  BatchReader by_time(data.dataset(), PartName::Train, options);
  Batch batch;
  const void* memory = nullptr;
  int64_t rows = 0;
  while (weighted.next(batch)) {
    ASSERT_EQ(batch.weights.sizes(), IntSpan({batch.rows}));
    for (int64_t row = 0; row < batch.rows; ++row)
      ASSERT_EQ(batch.weights.data<float>()[row], weight_of(static_cast<int64_t>(batch.dense.data<float>()[row])));
    ASSERT_EQ(batch.columns.size(), 1u);
    memory = batch.columns[0].values.data_ptr();
    EXPECT_EQ(batch.weights.data_ptr(), memory) << "no copy";
    rows += batch.rows;
  }
  EXPECT_EQ(rows, weighted.epoch_rows());
  ASSERT_TRUE(by_time.next(batch));
  ASSERT_EQ(batch.columns.size(), 1u);
  ASSERT_EQ(batch.weights.dtype(), kFloat32);
  for (int64_t row = 0; row < batch.rows; ++row)
    ASSERT_EQ(batch.weights.data<float>()[row], static_cast<float>(batch.columns[0].values.data<int64_t>()[row]));
  ASSERT_TRUE(plain.next(batch));
  EXPECT_FALSE(batch.weights.defined());
  options.weight = "wait";
  TERCEL_EXPECT_THROW(BatchReader(data.dataset(), PartName::Train, options), ConfigError,
                      "has no further column 'wait'");
}

TEST(RecordSource, ColumnsAndWeightsOfKeysFollowTheirRows) {
  const Case data;
  ReaderOptions options;
  options.batch_size = 32;
  options.shuffle = true;
  options.shuffle_block = 3;
  options.shuffle_window = 30;
  options.columns = {"time", "weight"};
  for (const BagOrder order : {BagOrder::SampleMajor, BagOrder::SlotMajor}) {
    options.bag_order = order;
    BatchReader reader(data.dataset({.key_weights = true}), PartName::Train, options);
    Batch batch;
    while (reader.next(batch)) {
      ASSERT_EQ(batch.columns.size(), 2u);
      EXPECT_EQ(batch.columns[0].name, "time");
      const SparseBatch& input = batch.input("keys");
      const int64_t* offsets = input.row_offsets.data<int64_t>();
      int64_t same = 0;
      for (int64_t row = 0; row < batch.rows; ++row) {
        // The first dense value is the row's number.
        const auto number = static_cast<int64_t>(batch.dense.data<float>()[row]);
        ASSERT_EQ(batch.columns[0].values.data<int64_t>()[row], time_of(number));
        ASSERT_EQ(batch.columns[1].values.data<float>()[row], weight_of(number));
        int64_t key = 0;
        for (int64_t slot = 0; slot < number * 2; ++slot) key += data.memory->rows.nnz[static_cast<size_t>(slot)];
        for (int64_t s = 0; s < 2; ++s) {
          const int64_t bag = order == BagOrder::SampleMajor ? row * 2 + s : s * batch.rows + row;
          for (int64_t k = offsets[bag]; k < offsets[bag + 1]; ++k, ++key, ++same) {
            ASSERT_EQ(input.keys.data<int64_t>()[k], data.memory->rows.keys[static_cast<size_t>(key)]);
            ASSERT_EQ(input.key_weights.data<float>()[k], key_weight_of(key));
          }
        }
      }
      EXPECT_EQ(same, input.keys.numel());
    }
  }
}

TEST(RecordSource, InputsAreFoundByName) {
  const Case data;
  ReaderOptions options;
  options.inputs = {{"users", 1}, {"items", 1}};
  BatchReader reader(data.dataset(), PartName::Train, options);
  Batch batch;
  ASSERT_TRUE(reader.next(batch));
  EXPECT_EQ(&batch.input("items"), &batch.sparse[1]);
  TERCEL_EXPECT_THROW(batch.input("item"), ConfigError,
                      "batch: expected a sparse input 'item', found 'users', 'items'");
}

TEST(RecordSource, NarrowKeysAreRefusedWhereTheyDoNotFit) {
  const Case data;
  Dataset dataset = data.dataset();
  ReaderOptions options;
  options.narrow_keys = true;
  dataset.schema.slots[1].first_key = int64_t{1} << 31;
  TERCEL_EXPECT_THROW(BatchReader(dataset, PartName::Train, options), ConfigError,
                      "option 'narrow_keys': expected keys of slot 's1' up to 2147483647, found keys up to 2147483747");
  dataset.schema.slots[1] = {"s1", 0, 0, 3};
  TERCEL_EXPECT_THROW(BatchReader(dataset, PartName::Train, options), ConfigError, "found that any may occur");
}

}  // namespace
}  // namespace tercel::data::test
