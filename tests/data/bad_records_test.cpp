// Reading with on_bad_record = skip: see Note [Bad records].
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "tercel/data/batch_reader.h"
#include "tercel/data/convert_dataset.h"
#include "tercel/data/formats/norm_format.h"
#include "tercel/data/formats/raw_format.h"
#include "tercel/data/formats/rawasync_format.h"
#include "tercel/util/error.h"
#include "tests/data/norm_data.h"
#include "tests/support/errors.h"

namespace tercel::data::test {
namespace {

constexpr int64_t kRows = 200;

struct BadCase {
  std::shared_ptr<const DatasetFormat> format;
  bool ragged = false;
  std::string file;  // the first of two
  size_t header = 0;
};

std::vector<BadCase> cases() {
  return {{norm_format({KeyType::I64, CheckMode::Sum}), false, "train/part-0.data", 69},
          {norm_format({KeyType::U32, CheckMode::None}), false, "train/part-0.data", 64},
          {norm_format({KeyType::I64, CheckMode::Sum}), true, "train/part-0.data", 69},
          {norm_format({KeyType::I64, CheckMode::None}), true, "train/part-0.data", 64},
          {raw_format(), false, "train/part-0.bin", 0},
          {rawasync_format(), false, "train/part-0.bin", 0}};
}

/** A dataset in two files, in which the rows `bad` have a label that is no label. */
struct Damaged {
  Schema schema = make_schema(2, {1, 3});
  Rows rows;
  TemporaryFolder folder;
  Dataset dataset;

  Damaged(const BadCase& which, const std::vector<int64_t>& bad) : rows(make_rows(schema, kRows, which.ragged)) {
    dataset.folder = folder.path();
    dataset.format = which.format;
    dataset.schema = schema;
    WriterOptions options;
    options.folder = folder.path();
    options.rows_per_file = kRows / 2;
    // Written as another label of the same size, which then breaks the rule of readers.
    Rows changed = rows;
    for (const int64_t row : bad) changed.labels[static_cast<size_t>(row)] = 7;
    options.binary_labels = false;
    const auto writer = which.format->create_writer(schema, options);
    writer->write({kRows, changed.labels.data(), changed.dense.data(), changed.nnz.data(), changed.keys.data()});
    dataset.train = writer->finish();
  }
};

ReaderOptions skipping(int64_t batch_size, int64_t workers = 1) {
  ReaderOptions options;
  options.batch_size = batch_size;
  options.num_workers = workers;
  options.on_bad_record = OnBadRecord::Skip;
  return options;
}

/** The rows without some. */
Rows without(const Rows& rows, const Schema& schema, const std::vector<int64_t>& bad) {
  std::vector<int64_t> order;
  for (int64_t row = 0; row < rows.count; ++row)
    if (std::find(bad.begin(), bad.end(), row) == bad.end()) order.push_back(row);
  return permuted(rows, schema, order);
}

TEST(BadRecords, AreLeftOutAndAllOthersStayWhereTheyAre) {
  const std::vector<int64_t> bad = {0, 1, 16, 31, 32, 33, 34, 35, 36, 37, 38, 39, 99, 100, 150, 199};
  for (const BadCase& which : cases()) {
    const Damaged damaged(which, bad);
    const Rows expected = without(damaged.rows, damaged.schema, bad);
    TERCEL_EXPECT_THROW(read_all(damaged.dataset), DataError, "part-0.");
    for (const int64_t batch_size : {1, 8, 13, 64, 1000})
      for (const int64_t workers : {1, 4}) {
        BatchReader reader(damaged.dataset, PartName::Train, skipping(batch_size, workers));
        Rows found;
        std::vector<int64_t> left_out;
        Batch batch;
        while (reader.next(batch)) {
          EXPECT_GT(batch.rows, 0);
          EXPECT_EQ(batch.row % batch_size, 0);
          EXPECT_EQ(batch.rows + static_cast<int64_t>(batch.bad_rows.size()), std::min(batch_size, kRows - batch.row));
          EXPECT_EQ(batch.bad_record.empty(), batch.bad_rows.empty());
          left_out.insert(left_out.end(), batch.bad_rows.begin(), batch.bad_rows.end());
          append_batch(found, batch, damaged.schema);
        }
        EXPECT_EQ(found, expected);
        EXPECT_EQ(reader.bad_records(), 16);
        // Those of batches without any other row are not delivered.
        if (batch_size >= 13) {
          EXPECT_EQ(left_out, bad);
        }
        EXPECT_NE(reader.first_bad_record().find(which.file + ": record 0: "), std::string::npos)
            << reader.first_bad_record();
        reader.rewind();
        EXPECT_EQ(reader.first_bad_record(), "") << "of the pass that begins";
      }
  }
}

TEST(BadRecords, KeepTheOrderOfShuffledRowsSlotsAndKeys) {
  const std::vector<int64_t> bad = {3, 77, 78, 140};
  for (const BadCase& which : cases()) {
    const Damaged damaged(which, bad), good(which, {});
    for (const BagOrder order : {BagOrder::SampleMajor, BagOrder::SlotMajor}) {
      ReaderOptions options = skipping(32, 2);
      options.shuffle = true;
      options.seed = 4;
      options.shuffle_window = 64;
      options.shuffle_block = 8;
      options.bag_order = order;
      options.narrow_keys = order == BagOrder::SlotMajor;
      BatchReader reader(damaged.dataset, PartName::Train, options), whole(good.dataset, PartName::Train, options);
      Batch batch, all;
      int64_t left_out = 0;
      while (reader.next(batch)) {
        ASSERT_TRUE(whole.next(all));
        // Rows are told apart by their first dense value, the number of the row.
        int64_t to = 0;
        for (int64_t row = 0; row < all.rows; ++row) {
          const float number = all.dense.data<float>()[row * 2];
          if (std::find(bad.begin(), bad.end(), static_cast<int64_t>(number)) != bad.end()) {
            EXPECT_EQ(batch.bad_rows[static_cast<size_t>(row - to)], batch.row + row);
            continue;
          }
          ASSERT_LT(to, batch.rows);
          ASSERT_EQ(batch.dense.data<float>()[to * 2], number);
          const SparseBatch &some = batch.sparse[0], &every = all.sparse[0];
          for (int64_t s = 0; s < 2; ++s) {
            const auto keys_of = [&](const SparseBatch& sparse, int64_t r, int64_t rows) {
              const int64_t bag = order == BagOrder::SlotMajor ? s * rows + r : r * 2 + s;
              const auto at = [](const Tensor& t, int64_t i) {
                return t.dtype() == kInt64 ? t.data<int64_t>()[i] : int64_t{t.data<int32_t>()[i]};
              };
              std::vector<int64_t> keys;
              for (int64_t k = at(sparse.row_offsets, bag); k < at(sparse.row_offsets, bag + 1); ++k)
                keys.push_back(at(sparse.keys, k));
              return keys;
            };
            EXPECT_EQ(keys_of(some, to, batch.rows), keys_of(every, row, all.rows));
          }
          ++to;
        }
        EXPECT_EQ(to, batch.rows);
        EXPECT_EQ(batch.sparse[0].row_offsets.numel(), batch.rows * 2 + 1);
        left_out += static_cast<int64_t>(batch.bad_rows.size());
      }
      EXPECT_EQ(left_out, 4);
      EXPECT_FALSE(whole.next(all));
    }
  }
}

TEST(BadRecords, PositionsCountThem) {
  const std::vector<int64_t> bad = {5, 6, 60, 130};
  for (const BadCase& which : cases()) {
    const Damaged damaged(which, bad);
    ReaderOptions options = skipping(20);
    options.epochs = 2;
    BatchReader whole(damaged.dataset, PartName::Train, options);
    const Rows all = read_rest(whole);
    EXPECT_EQ(whole.bad_records(), 8);
    BatchReader first(damaged.dataset, PartName::Train, options);
    Rows found;
    Batch batch;
    for (int i = 0; i < 4; ++i) {
      ASSERT_TRUE(first.next(batch));
      append_batch(found, batch, damaged.schema);
    }
    const ReaderPosition position = first.position();
    EXPECT_EQ(position.row, 80);
    EXPECT_EQ(position.bad_records, 3);
    BatchReader second(damaged.dataset, PartName::Train, options);
    second.seek(position);
    while (second.next(batch)) append_batch(found, batch, damaged.schema);
    EXPECT_EQ(found, all);
    EXPECT_EQ(second.bad_records(), 8);
    second.rewind();
    EXPECT_EQ(second.bad_records(), 0);
  }
}

TEST(BadRecords, TooManyAreAnError) {
  const std::vector<int64_t> bad = {5, 6, 60, 130};
  for (const BadCase& which : cases()) {
    const Damaged damaged(which, bad);
    for (const int64_t workers : {1, 3}) {
      ReaderOptions options = skipping(20, workers);
      options.max_bad_records = 2;
      BatchReader reader(damaged.dataset, PartName::Train, options);
      Batch batch;
      for (int i = 0; i < 3; ++i) ASSERT_TRUE(reader.next(batch));
      for (int again = 0; again < 2; ++again)
        for (const char* text : {"record 60: byte ", "more than 2 bad records, which max_bad_records allows"})
          TERCEL_EXPECT_THROW(reader.next(batch), DataError, text);
      options.max_bad_records = 4;
      EXPECT_EQ(read_all(damaged.dataset, options).count, kRows - 4);
    }
  }
}

TEST(BadRecords, PartsOfRanksLackTheirOwn) {
  const std::vector<int64_t> bad = {0, 1, 2, 3, 4, 5, 17, 199};
  for (const BadCase& which : cases()) {
    const Damaged damaged(which, bad);
    ReaderOptions options = skipping(12);
    options.ranks = 3;
    std::vector<std::unique_ptr<BatchReader>> readers;
    for (options.rank = 0; options.rank < 3; ++options.rank)
      readers.push_back(std::make_unique<BatchReader>(damaged.dataset, PartName::Train, options));
    Rows found;
    for (int64_t row = 0; row < kRows; row += 12)
      for (const auto& reader : readers) {
        Batch batch;
        // Also a part without rows, as all ranks take a step together.
        ASSERT_TRUE(reader->next(batch));
        EXPECT_EQ(batch.global_row, row);
        append_batch(found, batch, damaged.schema);
      }
    EXPECT_EQ(found, without(damaged.rows, damaged.schema, bad));
  }
}

/** Offsets of the records of the first file. */
std::vector<size_t> offsets_of(const Damaged& damaged, const NormOptions& norm) {
  std::vector<size_t> offsets = {static_cast<size_t>(norm_header_bytes(norm.check_mode))};
  for (const std::string& record :
       encode_records(damaged.schema, damaged.rows, norm.key_type, norm.check_mode, 0, kRows / 2))
    offsets.push_back(offsets.back() + record.size());
  return offsets;
}

TEST(BadRecords, RaggedFilesAreContinuedIfTheLengthIsThere) {
  for (const bool shuffle : {false, true}) {
    const BadCase which{norm_format({KeyType::I64, CheckMode::Sum}), true, "train/part-0.data", 69};
    const Damaged damaged(which, {});
    const std::vector<size_t> offsets = offsets_of(damaged, {KeyType::I64, CheckMode::Sum});
    const std::string content = damaged.folder.get(which.file);
    const auto read = [&](const std::string& bytes, const std::vector<int64_t>& bad) {
      damaged.folder.put(which.file, bytes);
      ReaderOptions options = skipping(16, 2);
      options.shuffle = shuffle;
      options.shuffle_window = 32;
      options.shuffle_block = 4;
      const Rows found = read_all(damaged.dataset, options);
      EXPECT_EQ(found.count, kRows - static_cast<int64_t>(bad.size()));
      if (!shuffle) {
        EXPECT_EQ(found, without(damaged.rows, damaged.schema, bad));
      }
    };
    // Any bit of a record but its length.
    for (const size_t row : {0u, 7u, 99u})
      for (size_t byte = offsets[row] + 4; byte < offsets[row + 1]; ++byte) {
        std::string bytes = content;
        bytes[byte] = static_cast<char>(bytes[byte] ^ 0x10);
        read(bytes, {static_cast<int64_t>(row)});
      }
    std::string bytes = content;
    for (const size_t row : {3u, 4u, 5u, 98u}) bytes[offsets[row] + 17] = static_cast<char>(0x7f);  // a key count
    read(bytes, {3, 4, 5, 98});
    // A length that no record has: the next one cannot be found.
    bytes = content;
    bytes[offsets[7] + 2] = 1;
    damaged.folder.put(which.file, bytes);
    ReaderOptions options = skipping(16);
    options.shuffle = shuffle;
    TERCEL_EXPECT_THROW(read_all(damaged.dataset, options), DataError, "record 7: byte ");
  }
  // Without lengths, a wrong count hides the next record; another value does not.
  const BadCase bare{norm_format({KeyType::I64, CheckMode::None}), true, "train/part-0.data", 64};
  const Damaged damaged(bare, {});
  const std::vector<size_t> offsets = offsets_of(damaged, {KeyType::I64, CheckMode::None});
  std::string bytes = damaged.folder.get(bare.file);
  bytes[offsets[7] + 12] = 9;
  damaged.folder.put(bare.file, bytes);
  TERCEL_EXPECT_THROW(read_all(damaged.dataset, skipping(16)), DataError, "record 7: byte ");
}

TEST(BadRecords, ConversionLeavesThemOut) {
  for (const bool ragged : {false, true}) {
    const NormOptions norm{KeyType::I64, CheckMode::Sum};
    const Damaged damaged({norm_format(norm), ragged, "train/part-0.data", 69}, {});
    std::string first = damaged.folder.get("train/part-0.data"), second = damaged.folder.get("train/part-1.data");
    const std::vector<size_t> offsets = offsets_of(damaged, norm);
    for (const size_t row : {0u, 55u, 99u}) first[offsets[row] + 9] = static_cast<char>(first[offsets[row] + 9] ^ 1);
    second[69 + 10] = static_cast<char>(second[69 + 10] ^ 1);
    damaged.folder.put("train/part-0.data", first);
    damaged.folder.put("train/part-1.data", second);
    ConvertDatasetOptions options;
    options.format = norm_format({KeyType::I64, CheckMode::None});
    const auto convert = [&] {
      return convert_dataset(damaged.dataset, damaged.folder / "out", options, true, [](int64_t) {});
    };
    TERCEL_EXPECT_THROW(convert(), DataError, "record 0: ");
    options.on_bad_record = OnBadRecord::Skip;
    const ConvertDatasetResult result = convert();
    EXPECT_EQ(result.bad_records, 4);
    EXPECT_NE(result.first_bad_record.find("part-0.data: record 0: "), std::string::npos);
    ASSERT_EQ(result.dataset.train.files.size(), 2u);
    EXPECT_EQ(result.dataset.train.files[0].rows, 97);
    EXPECT_EQ(result.dataset.train.files[1].rows, 99);
    EXPECT_EQ(read_all(load_dataset(damaged.folder / "out")), without(damaged.rows, damaged.schema, {0, 55, 99, 100}));
    options.max_bad_records = 3;
    TERCEL_EXPECT_THROW(convert(), DataError, "more than 3 bad records");
    options.max_bad_records = 4;
    // A row that the new format cannot hold is no bad record.
    options.format = raw_format({false, SlotOffsets::None});
    TERCEL_EXPECT_THROW(convert(), DataError, "part-0.data: row 1: the format raw cannot hold it: ");
  }
}

}  // namespace
}  // namespace tercel::data::test
