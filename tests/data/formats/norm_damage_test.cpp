// Damaged Norm files: any bytes give rows or a DataError with the position.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tercel/data/batch_reader.h"
#include "tercel/util/error.h"
#include "tests/data/norm_data.h"
#include "tests/support/errors.h"

namespace tercel::data::test {
namespace {

struct SmallFile {
  Schema schema;
  Rows rows;
  KeyType key_type;
  CheckMode mode;
  std::string content;
  TemporaryFolder folder;

  SmallFile(KeyType width, CheckMode check, bool ragged, int64_t count = 3, int64_t slot_size = 100)
      : schema(make_schema(2, {1, 2}, slot_size)),
        rows(make_rows(slot_size > 0 ? schema : make_schema(2, {1, 2}), count, ragged)),
        key_type(width),
        mode(check),
        content(encode_file(schema, rows, key_type, mode, 0, count)) {}

  /** Reads other bytes as this file, described from the file alone or by the dataset. */
  Rows read(const std::string& bytes, bool bare, bool shuffle = false) {
    const std::string path = folder.put("x.data", bytes);
    ReaderOptions options;
    options.batch_size = 2;
    options.shuffle = shuffle;
    options.shuffle_window = 2;
    options.shuffle_block = 1;
    if (bare) {
      NormSpec spec;
      spec.train_list = folder.put("list", "1\n" + path + "\n");
      spec.dense_dim = 2;
      spec.nnz_per_slot = {1, 2};
      if (schema.slots[0].size > 0) spec.slot_size_array = schema.slot_size_array();
      spec.key_type = key_type;
      spec.check_mode = mode;
      return read_all(dataset_from_norm_files(spec), options);
    }
    Dataset dataset;
    dataset.folder = folder.path();
    dataset.schema = schema;
    dataset.format = norm_format({key_type, mode});
    DataFile file;
    file.path = "x.data";
    file.bytes = static_cast<int64_t>(bytes.size());
    file.rows = rows.count;
    dataset.train.files.push_back(file);
    return read_all(dataset, options);
  }
};

/** The error's message, or "" if everything was read; only DataError is allowed. */
std::string outcome(SmallFile& file, const std::string& bytes, bool bare, bool shuffle = false) {
  try {
    file.read(bytes, bare, shuffle);
  } catch (const DataError& error) {
    return error.what();
  }
  return {};
}

TEST(NormDamage, CutAtEveryByteItIsRefused) {
  for (const CheckMode mode : {CheckMode::None, CheckMode::Sum})
    for (const bool ragged : {false, true})
      for (const bool bare : {false, true})
        for (const bool shuffle : {false, true}) {
          SmallFile file(KeyType::I64, mode, ragged);
          EXPECT_EQ(outcome(file, file.content, bare, shuffle), "");
          for (size_t size = 0; size < file.content.size(); ++size) {
            const std::string error = outcome(file, file.content.substr(0, size), bare, shuffle);
            ASSERT_NE(error.find("x.data: "), std::string::npos) << size << ": " << error;
            ASSERT_NE(error.find("expected"), std::string::npos) << size << ": " << error;
          }
        }
}

TEST(NormDamage, BytesBehindTheLastRecordAreRefused) {
  for (const CheckMode mode : {CheckMode::None, CheckMode::Sum})
    for (const bool ragged : {false, true})
      for (const bool shuffle : {false, true}) {
        SmallFile file(KeyType::U32, mode, ragged);
        for (const size_t more : {1, 4, 100}) {
          const std::string error = outcome(file, file.content + std::string(more, '\0'), true, shuffle);
          ASSERT_NE(error.find("x.data: "), std::string::npos) << error;
        }
      }
  SmallFile file(KeyType::U32, CheckMode::None, true);
  const std::string size = std::to_string(file.content.size());
  const std::string error = outcome(file, file.content + "abc", true);
  EXPECT_NE(error.find("record 2: byte " + size + ": expected the end of the file after 3 records, found 3 more bytes"),
            std::string::npos)
      << error;
}

TEST(NormDamage, SumModeCatchesEveryFlippedBit) {
  for (const KeyType key_type : {KeyType::U32, KeyType::I64})
    for (const bool ragged : {false, true})
      for (const int64_t slot_size : {0, 100}) {
        SmallFile file(key_type, CheckMode::Sum, ragged, 3, slot_size);
        for (size_t bit = 0; bit < file.content.size() * 8; ++bit) {
          std::string bytes = file.content;
          bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8)));
          const std::string error = outcome(file, bytes, bit % 2 == 0, bit % 3 == 0);
          ASSERT_NE(error.find("x.data: "), std::string::npos) << "bit " << bit << ": " << error;
          if (bit / 8 >= 69) {
            ASSERT_NE(error.find("record "), std::string::npos) << error;
            ASSERT_NE(error.find(": byte "), std::string::npos) << error;
          }
        }
      }
}

TEST(NormDamage, NoneModeSurvivesEveryFlippedBit) {
  int refused = 0, read = 0;
  for (const KeyType key_type : {KeyType::U32, KeyType::I64})
    for (const bool ragged : {false, true}) {
      SmallFile file(key_type, CheckMode::None, ragged);
      for (size_t bit = 0; bit < file.content.size() * 8; ++bit) {
        std::string bytes = file.content;
        bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8)));
        const std::string error = outcome(file, bytes, bit % 2 == 0, bit % 3 == 0);
        ++(error.empty() ? read : refused);
        // Every bit of the header is checked, except reserved ones.
        if (bit / 8 < 40) {
          ASSERT_NE(error, "") << "bit " << bit;
        }
      }
    }
  EXPECT_GT(refused, 1000);
  EXPECT_GT(read, 100);
}

template <class T>
std::string with(std::string bytes, size_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof(T));
  return bytes;
}

TEST(NormDamage, WrongCountsInTheHeaderAreRefused) {
  const int64_t values[] = {0,
                            2,
                            4,
                            int64_t{1} << 31,
                            int64_t{1} << 32,
                            -1,
                            std::numeric_limits<int64_t>::max(),
                            std::numeric_limits<int64_t>::min()};
  for (const bool ragged : {false, true})
    for (const bool bare : {false, true})
      for (const int64_t value : values) {
        SmallFile file(KeyType::I64, CheckMode::None, ragged);
        // error_check, number_of_records, label_dim, dense_dim, slot_num
        for (size_t field = 0; field < 5; ++field) {
          const std::string bytes = with(file.content, field * 8, value);
          if (bytes == file.content) continue;
          const std::string error = outcome(file, bytes, bare);
          ASSERT_NE(error.find("x.data: "), std::string::npos) << field << " = " << value << ": " << error;
        }
      }
  SmallFile file(KeyType::I64, CheckMode::None, false);
  const auto error = [&](size_t field, int64_t value) {
    return outcome(file, with(file.content, field * 8, value), true);
  };
  const auto expect = [](const std::string& found, const std::string& text) {
    EXPECT_NE(found.find(text), std::string::npos) << found;
  };
  expect(error(0, 1), "byte 0: expected error_check 0, found 1");
  expect(error(1, -1), "byte 8: expected number_of_records of 0 or more, found -1");
  expect(error(2, 0), "byte 16: expected label_dim 1, found 0");
  // Only their sum is compared upstream.
  expect(outcome(file, with(with(file.content, 16, int64_t{2}), 24, int64_t{1}), true),
         "expected label_dim 1, found 2");
  expect(error(3, 3), "byte 24: expected dense_dim 2, found 3");
  expect(error(4, 26), "byte 32: expected slot_num 2, found 26");
}

TEST(NormDamage, WrongKeyCountsAreRefused) {
  for (const KeyType key_type : {KeyType::U32, KeyType::I64})
    for (const CheckMode mode : {CheckMode::None, CheckMode::Sum})
      for (const bool ragged : {false, true}) {
        SmallFile file(key_type, mode, ragged);
        const size_t frame = mode == CheckMode::Sum ? 4 : 0;
        const size_t nnz = static_cast<size_t>(norm_header_bytes(mode)) + frame + 12;
        for (const int32_t value :
             {-1, 2, 3, 1 << 30, std::numeric_limits<int32_t>::max(), std::numeric_limits<int32_t>::min()}) {
          std::string bytes = with(file.content, nnz, value);
          const std::string error = outcome(file, bytes, true);
          if (mode == CheckMode::None) {
            EXPECT_NE(error.find("record 0: byte " + std::to_string(nnz) + ": expected "), std::string::npos) << error;
            EXPECT_NE(error.find("keys in slot 0 ('slot0')"), std::string::npos) << error;
            EXPECT_NE(error.find("found " + std::to_string(value)), std::string::npos) << error;
          } else {
            EXPECT_NE(error.find("record 0: byte "), std::string::npos) << error;
            EXPECT_NE(error.find("expected sum of the record"), std::string::npos) << error;
          }
        }
      }
}

TEST(NormDamage, WrongLengthsOfRecordsAreRefused) {
  for (const bool ragged : {false, true}) {
    SmallFile file(KeyType::I64, CheckMode::Sum, ragged);
    for (const int32_t value :
         {0, 1, 31, 1 << 30, -1, std::numeric_limits<int32_t>::max(), std::numeric_limits<int32_t>::min()}) {
      const std::string error = outcome(file, with(file.content, 69, value), true);
      EXPECT_NE(error.find("record 0: byte "), std::string::npos) << error;
      EXPECT_EQ(outcome(file, with(file.content, 0, value), true)
                        .find("expected length of the header 64, found " + std::to_string(value)) == std::string::npos,
                false);
    }
  }
}

TEST(NormDamage, ValuesOutsideTheirRulesAreNamed) {
  SmallFile file(KeyType::I64, CheckMode::None, false);
  const size_t record = 12 + 4 + 8 + 4 + 16;
  const size_t second = 64 + record;  // record 1
  const auto expect = [&](const std::string& bytes, const std::string& text) {
    const std::string error = outcome(file, bytes, true);
    EXPECT_NE(error.find("x.data: record 1: byte " + text), std::string::npos) << error;
  };
  const std::string at = std::to_string(second);
  expect(with(file.content, second, 2.0f), at + ": expected label 0 to be 0 or 1, found 2");
  expect(with(file.content, second, std::numeric_limits<float>::quiet_NaN()),
         at + ": expected label 0 to be 0 or 1, found nan");
  expect(with(file.content, second + 8, std::numeric_limits<float>::quiet_NaN()),
         std::to_string(second + 8) + ": expected dense value 1 to be a finite number, found nan");
  expect(with(file.content, second + 4, -std::numeric_limits<float>::infinity()),
         std::to_string(second + 4) + ": expected dense value 0 to be a finite number, found -inf");
  expect(with(file.content, second + 16, int64_t{100}),
         std::to_string(second + 16) + ": expected a key from 0 to 99 in slot 0 ('slot0'), found 100");
  expect(with(file.content, second + 16, int64_t{-1}),
         std::to_string(second + 16) + ": expected a key from 0 to 99 in slot 0 ('slot0'), found -1");
  expect(with(file.content, second + 36, int64_t{99}),
         std::to_string(second + 36) + ": expected a key from 100 to 199 in slot 1 ('slot1'), found 99");
  // Denormal and negative zero are numbers.
  EXPECT_EQ(outcome(file, with(file.content, second + 4, 1e-42f), true), "");
  EXPECT_EQ(outcome(file, with(file.content, second, -0.0f), true), "");
  // Without slot sizes any key may occur.
  SmallFile any(KeyType::I64, CheckMode::None, false, 3, 0);
  EXPECT_EQ(outcome(any, with(any.content, second + 16, std::numeric_limits<int64_t>::min()), true), "");
}

TEST(NormDamage, TheWrongModeOrKeyTypeIsGuessed) {
  SmallFile sum(KeyType::I64, CheckMode::Sum, false);
  SmallFile none(KeyType::I64, CheckMode::None, false);
  const auto expect = [](const std::string& found, const std::string& text) {
    EXPECT_NE(found.find(text), std::string::npos) << found;
  };
  expect(outcome(none, sum.content, true), "(a file with check mode sum?)");
  expect(outcome(sum, none.content, true), "expected length of the header 64, found 0 (a file with check mode none?)");
  SmallFile narrow(KeyType::U32, CheckMode::Sum, false);
  expect(outcome(narrow, sum.content, true), " (the size of the file is right for i64 keys)");
  expect(outcome(sum, narrow.content, true), " (the size of the file is right for u32 keys)");
}

TEST(NormDamage, FilesThatAreNoFiles) {
  SmallFile file(KeyType::I64, CheckMode::Sum, false);
  NormSpec spec;
  spec.dense_dim = 2;
  spec.nnz_per_slot = {1, 2};
  spec.train_list = file.folder.put("list", "1\n" + file.folder.path() + "\n");
  TERCEL_EXPECT_THROW(dataset_from_norm_files(spec), IoError, "expected a regular file, found a directory");
  spec.train_list = file.folder.put("list", "1\n/dev/zero\n");
  TERCEL_EXPECT_THROW(dataset_from_norm_files(spec), IoError, "expected a regular file, found a character device");
  spec.train_list = file.folder / "nowhere";
  TERCEL_EXPECT_THROW(dataset_from_norm_files(spec), IoError, "nowhere: open");
}

// A bag of a million keys, among empty bags.
TEST(NormDamage, HugeAndEmptyBagsAreFine) {
  const Schema schema = make_schema(1, {1'000'000, 3}, 1000);
  Rows rows;
  rows.count = 4;
  rows.labels = {0, 1, 0, 1};
  rows.dense = {0, 1, 2, 3};
  rows.nnz = {0, 0, 1'000'000, 3, 0, 2, 1, 0};
  for (int64_t i = 0; i < 1'000'000; ++i) rows.keys.push_back(i % 1000);
  for (const int64_t key : {1000, 1001, 1999, 1500, 1501, 7}) rows.keys.push_back(key);
  for (const CheckMode mode : {CheckMode::None, CheckMode::Sum})
    for (const bool shuffle : {false, true}) {
      const TemporaryFolder folder;
      const Dataset dataset = put_dataset(folder, schema, rows, KeyType::U32, mode, {4});
      ReaderOptions options;
      options.batch_size = 2;
      options.shuffle = shuffle;
      Rows got = read_all(dataset, options);
      if (!shuffle) {
        EXPECT_TRUE(got == rows);
      }
      EXPECT_EQ(got.keys.size(), rows.keys.size());
    }
}

}  // namespace
}  // namespace tercel::data::test
