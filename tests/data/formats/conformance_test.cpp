// What every format does: each new one is a line in cases().
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tercel/data/arrow_module.h"
#include "tercel/data/formats/norm_format.h"
#include "tercel/data/formats/parquet_format.h"
#include "tercel/data/formats/raw_format.h"
#include "tercel/data/formats/rawasync_format.h"
#include "tercel/data/row_subset_impl.h"
#include "tests/data/memory_format.h"
#include "tests/data/norm_data.h"
#include "tests/support/errors.h"

namespace tercel::data::test {
namespace {

/** Rows as a dataset of the format in a folder. */
using Make = std::function<Dataset(const TemporaryFolder& folder, const Schema& schema, const Rows& rows)>;

struct FormatCase {
  std::string name;
  Make make;
  bool ragged = true;        // the format holds rows with fewer keys than a slot may have
  int64_t dense_dim = 2000;  // rows of 8 KiB, so that 300 of them are more than one read
};

/** Written by the format's own writer, in three files, and described. */
Make written(const std::function<std::shared_ptr<const DatasetFormat>()>& format) {
  return [format](const TemporaryFolder& folder, const Schema& schema, const Rows& rows) {
    Dataset dataset;
    dataset.format = format();
    dataset.schema = schema;
    WriterOptions options;
    options.folder = folder.path();
    options.rows_per_file = rows.count / 3 + 1;
    const auto writer = dataset.format->create_writer(schema, options);
    writer->write({rows.count, rows.labels.data(), rows.dense.data(), rows.nnz.data(), rows.keys.data()});
    EXPECT_EQ(writer->rows(), rows.count);
    dataset.train = writer->finish();
    EXPECT_EQ(dataset.train.files.size(), 3u);
    EXPECT_LE(dataset.train.bytes(), dataset.format->estimate_bytes(schema, rows.count) + 3 * 1024);
    save_dataset(dataset, folder.path());
    return load_dataset(folder.path());
  };
}

std::vector<FormatCase> cases() {
  std::vector<FormatCase> all;
  for (const KeyType key_type : {KeyType::U32, KeyType::I64})
    for (const CheckMode mode : {CheckMode::None, CheckMode::Sum})
      all.push_back({"norm_" + std::string(to_string(key_type)) + "_" + std::string(to_string(mode)), written([=] {
                       return norm_format({key_type, mode});
                     })});
  for (const SlotOffsets offsets : {SlotOffsets::None, SlotOffsets::Add}) {
    const std::string name = "_offsets_" + std::string(to_string(offsets));
    all.push_back({"raw" + name, written([=] { return raw_format({true, offsets}); }), false});
    for (const KeyType key_type : {KeyType::U32, KeyType::I64})
      all.push_back({"rawasync_" + std::string(to_string(key_type)) + name, written([=] {
                       return rawasync_format({true, key_type, offsets});
                     }),
                     false});
  }
  if (has_arrow_module())
    for (const KeyType key_type : {KeyType::U32, KeyType::I64})
      for (const int64_t row_group_rows : {int64_t{30}, int64_t{1} << 16}) {
        ParquetOptions options;
        options.key_type = key_type;
        options.row_group_rows = row_group_rows;
        all.push_back({"parquet_" + std::string(to_string(key_type)) + "_" + std::to_string(row_group_rows),
                       written([=] { return parquet_format(options); }), true, 20});
      }
  all.push_back({"memory", [](const TemporaryFolder&, const Schema& schema, const Rows& rows) {
                   const auto memory = std::make_shared<MemoryRows>();
                   memory->rows = rows;
                   return memory_dataset(schema, memory);
                 }});
  return all;
}

class FormatConformance : public testing::TestWithParam<size_t> {
 protected:
  /** Calls check(dataset, rows) for rows with full slots and for ragged ones. */
  template <class Check>
  void for_each_kind(Check check) const {
    for (const bool ragged : {false, true}) {
      if (ragged && !cases()[GetParam()].ragged) continue;
      SCOPED_TRACE(ragged ? "ragged" : "uniform");
      const Schema schema = make_schema(cases()[GetParam()].dense_dim, {1, 3, 2});
      const Rows rows = make_rows(schema, 300, ragged);
      const TemporaryFolder folder;
      check(cases()[GetParam()].make(folder, schema, rows), rows);
    }
  }
};

/** Two inputs, of one and of two slots. */
ReaderOptions options_of(int64_t batch_size, int64_t workers = 1) {
  ReaderOptions options;
  options.batch_size = batch_size;
  options.num_workers = workers;
  options.inputs = {{"first", 1}, {"rest", 2}};
  return options;
}

TEST_P(FormatConformance, RowsThatAreWrittenAreRead) {
  for_each_kind([](const Dataset& dataset, const Rows& rows) {
    for (const int64_t batch_size : {1, 7, 64, 1000})
      for (const int64_t workers : {1, 3}) EXPECT_EQ(read_all(dataset, options_of(batch_size, workers)), rows);
  });
}

TEST_P(FormatConformance, TheOrderOfAnEpochIsThatOfEveryFormat) {
  for_each_kind([](const Dataset& dataset, const Rows& rows) {
    ReaderOptions options = options_of(32, 2);
    options.shuffle = true;
    options.seed = 5;
    options.shuffle_block = 10;
    options.shuffle_window = 100;
    const auto memory = std::make_shared<MemoryRows>();
    memory->rows = rows;
    const Rows shuffled = read_all(dataset, options);
    EXPECT_NE(shuffled, rows);
    EXPECT_EQ(shuffled, read_all(memory_dataset(dataset.schema, memory), options));
  });
}

TEST_P(FormatConformance, BatchesInRandomOrderKeepTheirRows) {
  for_each_kind([](const Dataset& dataset, const Rows& rows) {
    ReaderOptions options = options_of(32, 2);
    options.shuffle = true;
    options.shuffle_unit = ShuffleUnit::Batches;
    options.seed = 5;
    BatchReader reader(dataset, PartName::Train, options);
    const auto memory = std::make_shared<MemoryRows>();
    memory->rows = rows;
    Rows found;
    Batch batch;
    std::vector<int64_t> order;
    while (reader.next(batch)) {
      EXPECT_EQ(batch.rows, std::min<int64_t>(32, rows.count - batch.row));
      append_batch(found, batch, dataset.schema);
      // The first dense value is the number of the row.
      for (int64_t row = 0; row < batch.rows; ++row)
        order.push_back(static_cast<int64_t>(batch.dense.data<float>()[row * dataset.schema.dense_dim]));
    }
    EXPECT_EQ(found, permuted(rows, dataset.schema, order));
    for (size_t i = 0; i < order.size(); ++i) EXPECT_EQ(order[i] % 32, static_cast<int64_t>(i) % 32);
    EXPECT_NE(found, rows);
    EXPECT_EQ(found, read_all(memory_dataset(dataset.schema, memory), options));
    ReaderPosition position = reader.position();
    EXPECT_EQ(position.shuffle_block, 32);
    options.batch_size = 30;
    BatchReader other(dataset, PartName::Train, options);
    TERCEL_EXPECT_THROW(other.seek(position), ConfigError, "another order of rows");
    position.shuffle_unit = ShuffleUnit::Rows;
    TERCEL_EXPECT_THROW(reader.seek(position), ConfigError, "expected shuffle_unit batches, found rows");
  });
}

TEST_P(FormatConformance, APositionContinuesTheEpoch) {
  for_each_kind([](const Dataset& dataset, const Rows& rows) {
    BatchReader reader(dataset, PartName::Train, options_of(37, 2));
    Rows found;
    Batch batch;
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(reader.next(batch));
      append_batch(found, batch, dataset.schema);
    }
    BatchReader next(dataset, PartName::Train, options_of(37));
    next.seek(reader.position());
    while (next.next(batch)) append_batch(found, batch, dataset.schema);
    EXPECT_EQ(found, rows);
  });
}

TEST_P(FormatConformance, RowsHeldOutAndRowsLeftAreAllRows) {
  for_each_kind([](const Dataset& dataset, const Rows& rows) {
    for (const int64_t hold_out : {2, 10, 300})
      for (const bool held_out : {false, true}) {
        const RowSubset subset(rows.count, hold_out, held_out);
        std::vector<int64_t> expected(static_cast<size_t>(subset.count()));
        for (size_t i = 0; i < expected.size(); ++i) expected[i] = subset.row(static_cast<int64_t>(i));
        ReaderOptions options = options_of(37, 2);
        options.hold_out = hold_out;
        options.held_out = held_out;
        EXPECT_EQ(read_all(dataset, options), permuted(rows, dataset.schema, expected)) << hold_out;
        BatchReader reader(dataset, PartName::Train, options);
        EXPECT_EQ(reader.epoch_rows(), subset.count());
        for (const ShuffleUnit unit : {ShuffleUnit::Rows, ShuffleUnit::Batches}) {
          options.shuffle = true;
          options.shuffle_unit = unit;
          options.shuffle_block = 10;
          options.shuffle_window = 100;
          BatchReader shuffled(dataset, PartName::Train, options);
          Rows found, again;
          std::vector<int64_t> order;
          Batch batch;
          while (shuffled.next(batch)) {
            append_batch(found, batch, dataset.schema);
            for (int64_t row = 0; row < batch.rows; ++row)
              order.push_back(static_cast<int64_t>(batch.dense.data<float>()[row * dataset.schema.dense_dim]));
          }
          EXPECT_EQ(found, permuted(rows, dataset.schema, order));
          std::sort(order.begin(), order.end());
          EXPECT_EQ(order, expected) << hold_out;
          BatchReader next(dataset, PartName::Train, options);
          shuffled.rewind();
          for (int i = 0; i < 2 && shuffled.next(batch); ++i) append_batch(again, batch, dataset.schema);
          next.seek(shuffled.position());
          while (next.position().epoch == 0 && next.next(batch)) append_batch(again, batch, dataset.schema);
          EXPECT_EQ(again, found) << hold_out;
          options.shuffle = false;
        }
      }
    ReaderOptions options = options_of(37);
    options.hold_out = 10;
    BatchReader left(dataset, PartName::Train, options);
    options.held_out = true;
    TERCEL_EXPECT_THROW(BatchReader(dataset, PartName::Train, options).seek(left.position()), ConfigError,
                        "another number of rows");
    options.hold_out = 1;
    TERCEL_EXPECT_THROW(BatchReader(dataset, PartName::Train, options), ConfigError, "expected 0 or at least 2");
    options.hold_out = 0;
    TERCEL_EXPECT_THROW(BatchReader(dataset, PartName::Train, options), ConfigError, "option 'held_out'");
  });
}

TEST_P(FormatConformance, PartsOfRanksAreTheBatch) {
  for_each_kind([](const Dataset& dataset, const Rows& rows) {
    for (const bool shuffle : {false, true}) {
      ReaderOptions options = options_of(45);
      options.shuffle = shuffle;
      options.shuffle_block = 4;
      options.shuffle_window = 16;
      const Rows whole = read_all(dataset, options);
      options.ranks = 4;
      std::vector<std::unique_ptr<BatchReader>> readers;
      for (options.rank = 0; options.rank < options.ranks; ++options.rank)
        readers.push_back(std::make_unique<BatchReader>(dataset, PartName::Train, options));
      Rows found;
      for (int64_t begin = 0; begin < rows.count; begin += 45) {
        int64_t next = begin;
        for (const auto& reader : readers) {
          Batch batch;
          ASSERT_TRUE(reader->next(batch));
          EXPECT_EQ(batch.global_row, begin);
          EXPECT_EQ(batch.global_rows, std::min<int64_t>(45, rows.count - begin));
          EXPECT_EQ(batch.row, next);
          EXPECT_LE(batch.rows, 12);
          next += batch.rows;
          append_batch(found, batch, dataset.schema);
        }
        EXPECT_EQ(next, std::min(begin + 45, rows.count));
      }
      EXPECT_EQ(found, whole);
    }
  });
}

/** Keys and offsets as i64. */
std::vector<int64_t> numbers_of(const Tensor& tensor) {
  std::vector<int64_t> result;
  for (int64_t i = 0; i < tensor.numel(); ++i)
    result.push_back(tensor.dtype() == kInt64 ? static_cast<const int64_t*>(tensor.data_ptr())[i]
                                              : static_cast<const int32_t*>(tensor.data_ptr())[i]);
  return result;
}

TEST_P(FormatConformance, KeysComeInTheOrderAndWidthThatIsAsked) {
  for_each_kind([](const Dataset& dataset, const Rows& rows) {
    for (const BagOrder order : {BagOrder::SampleMajor, BagOrder::SlotMajor})
      for (const bool narrow : {false, true}) {
        ReaderOptions options = options_of(32, 2);
        BatchReader plain(dataset, PartName::Train, options);
        options.bag_order = order;
        options.narrow_keys = narrow;
        BatchReader reader(dataset, PartName::Train, options);
        Batch batch, expected;
        int64_t count = 0;
        for (; plain.next(expected); count += expected.rows) {
          ASSERT_TRUE(reader.next(batch));
          for (size_t i = 0; i < batch.sparse.size(); ++i) {
            const SparseBatch &found = batch.sparse[i], &wanted = expected.sparse[i];
            ASSERT_EQ(found.keys.dtype(), narrow ? kInt32 : kInt64);
            ASSERT_EQ(found.row_offsets.dtype(), narrow ? kInt32 : kInt64);
            EXPECT_EQ(found.order, order);
            EXPECT_EQ(found.hotness, wanted.hotness);
            const auto offsets = numbers_of(found.row_offsets), keys = numbers_of(found.keys);
            const auto all_offsets = numbers_of(wanted.row_offsets), all_keys = numbers_of(wanted.keys);
            ASSERT_EQ(offsets.size(), all_offsets.size());
            ASSERT_EQ(keys.size(), all_keys.size());
            ASSERT_EQ(offsets[0], 0);
            for (int64_t row = 0; row < batch.rows; ++row)
              for (int64_t s = 0; s < found.slot_num; ++s) {
                const auto from = static_cast<size_t>(row * found.slot_num + s);
                const auto to = order == BagOrder::SampleMajor ? from : static_cast<size_t>(s * batch.rows + row);
                ASSERT_EQ(offsets[to + 1] - offsets[to], all_offsets[from + 1] - all_offsets[from]);
                for (int64_t k = 0; k < offsets[to + 1] - offsets[to]; ++k)
                  ASSERT_EQ(keys[static_cast<size_t>(offsets[to] + k)],
                            all_keys[static_cast<size_t>(all_offsets[from] + k)]);
              }
          }
        }
        EXPECT_EQ(count, rows.count);
      }
  });
}

TEST_P(FormatConformance, UnknownColumnsAndRanksAreRefused) {
  for_each_kind([](const Dataset& dataset, const Rows&) {
    ReaderOptions options = options_of(8);
    options.columns = {"no such column"};
    TERCEL_EXPECT_THROW(BatchReader(dataset, PartName::Train, options), ConfigError, "no such column");
    options.columns.clear();
    options.rank = options.ranks = 2;
    TERCEL_EXPECT_THROW(BatchReader(dataset, PartName::Train, options), ConfigError,
                        "option 'rank': expected one below 2, the number of ranks, found 2");
  });
}

INSTANTIATE_TEST_SUITE_P(All, FormatConformance, testing::Range(size_t{0}, cases().size()),
                         [](const auto& parameter) { return cases()[parameter.param].name; });

TEST(Formats, EveryOneIsFoundByItsNameAndDescribedByItsOptions) {
  for (const FormatEntry& entry : dataset_formats()) {
    const std::unique_ptr<DatasetFormat> format = make_format(entry.name, "test");
    EXPECT_EQ(format->name(), entry.name);
    for (const OptionField& field : format->option_table())
      EXPECT_NE(field.name, "name") << "the key of the format's name in dataset.json";
    EXPECT_NE(entry.make_spec(), nullptr);
  }
  TERCEL_EXPECT_THROW(make_format("nrom", "test"), ConfigError, "test: unknown format 'nrom'; did you mean 'norm'?");
}

}  // namespace
}  // namespace tercel::data::test
