// Damaged Raw and RawAsync files, and files of the wrong generator: any bytes give rows or a DataError with the
// position.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "tercel/data/batch_reader.h"
#include "tercel/data/formats/raw_format.h"
#include "tercel/data/formats/rawasync_format.h"
#include "tercel/util/error.h"
#include "tests/data/norm_data.h"
#include "tests/support/errors.h"

namespace tercel::data::test {
namespace {

/** Three rows of a label, two dense values and keys {1, 2}. */
struct SmallFile {
  bool async = false;
  bool floats = true;
  KeyType key_type = KeyType::U32;
  int64_t slot_size = 100;
  std::shared_ptr<TemporaryFolder> folder = std::make_shared<TemporaryFolder>();

  std::string content() const {
    std::string bytes;
    for (int32_t row = 0; row < 3; ++row) {
      if (floats && !async)
        append<float>(bytes, static_cast<float>(row % 2));
      else
        append<int32_t>(bytes, row % 2);
      for (int32_t d = 0; d < 2; ++d) {
        if (floats)
          append<float>(bytes, static_cast<float>(row) / 2 - 0.25f);
        else
          append<int32_t>(bytes, 10 * row + d);
      }
      for (const int64_t key : {int64_t{row}, slot_size + row, slot_size + 2 * row + 1}) {
        if (key_type == KeyType::I64)
          append<int64_t>(bytes, key);
        else
          append<int32_t>(bytes, static_cast<int32_t>(key));
      }
    }
    return bytes;
  }

  Dataset describe(const std::string& path) const {
    if (async) {
      RawAsyncSpec spec;
      spec.train = {path};
      spec.dense_dim = 2;
      spec.nnz_per_slot = {1, 2};
      if (slot_size > 0) spec.slot_size_array = {slot_size, slot_size};
      spec.is_dense_float = floats;
      spec.key_type = key_type;
      return dataset_from_rawasync_files(spec);
    }
    RawSpec spec;
    spec.train = {path};
    spec.dense_dim = 2;
    spec.nnz_per_slot = {1, 2};
    if (slot_size > 0) spec.slot_size_array = {slot_size, slot_size};
    spec.float_label_dense = floats;
    return dataset_from_raw_files(spec);
  }

  /** The error's message, or "" if everything was read; only DataError is allowed. */
  std::string outcome(const std::string& bytes, int64_t workers = 1, bool shuffle = false, Rows* rows = nullptr) const {
    try {
      ReaderOptions options;
      options.batch_size = 2;
      options.num_workers = workers;
      options.shuffle = shuffle;
      options.shuffle_window = 2;
      options.shuffle_block = 1;
      const Rows found = read_all(describe(folder->put("x.bin", bytes)), options);
      if (rows) *rows = found;
    } catch (const DataError& error) {
      return error.what();
    }
    return {};
  }
};

std::vector<SmallFile> files() {
  std::vector<SmallFile> all;
  for (const bool floats : {false, true}) {
    all.push_back({false, floats, KeyType::U32, 100});
    for (const KeyType key_type : {KeyType::U32, KeyType::I64}) all.push_back({true, floats, key_type, 100});
  }
  return all;
}

template <class T>
std::string with(std::string bytes, size_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof(T));
  return bytes;
}

void expect_part(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(RawDamage, CutAtEveryByteItIsRefusedUnlessWholeRowsAreLeft) {
  for (const SmallFile& file : files()) {
    const std::string content = file.content();
    const size_t row = content.size() / 3;
    EXPECT_EQ(file.outcome(content), "");
    for (size_t size = 0; size < content.size(); ++size) {
      Rows rows;
      const std::string error = file.outcome(content.substr(0, size), 1, false, &rows);
      if (size > 0 && size % row == 0) {
        // Such files do not say how many rows they have.
        ASSERT_EQ(error, "");
        ASSERT_EQ(rows.count, static_cast<int64_t>(size / row));
      } else {
        ASSERT_NE(error, "") << size;
      }
    }
  }
}

TEST(RawDamage, DescribedFilesThatLackRowsAreRefused) {
  for (const SmallFile& file : files()) {
    const std::string content = file.content();
    const Dataset dataset = file.describe(file.folder->put("x.bin", content));
    describe_files(dataset, *file.folder / "data", true);
    for (size_t size = 0; size < content.size(); ++size) {
      file.folder->put("x.bin", content.substr(0, size));
      TERCEL_EXPECT_THROW(load_dataset(*file.folder / "data"), DataError, "x.bin: expected ");
      TERCEL_EXPECT_THROW(BatchReader(dataset, PartName::Train, {}), DataError, "x.bin: expected ");
    }
  }
}

TEST(RawDamage, EveryFlippedBitGivesRowsOrAPlace) {
  int refused = 0, read = 0;
  for (const SmallFile& file : files()) {
    const std::string content = file.content();
    for (size_t bit = 0; bit < content.size() * 8; ++bit) {
      std::string bytes = content;
      bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8)));
      const std::string error = file.outcome(bytes, bit % 2 == 0 ? 1 : 3, bit % 3 == 0);
      ++(error.empty() ? read : refused);
      if (error.empty()) continue;
      const auto row = static_cast<int64_t>(bit / 8 / (content.size() / 3));
      ASSERT_NE(error.find("x.bin: record " + std::to_string(row) + ": byte "), std::string::npos) << error;
      ASSERT_NE(error.find("expected "), std::string::npos) << error;
    }
    // Labels are checked entirely, but for the sign of zero.
    for (size_t bit = 0; bit < 31; ++bit) {
      std::string bytes = content;
      bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8)));
      const bool to_one = bit == 0 && (file.async || !file.floats);
      EXPECT_EQ(file.outcome(bytes).empty(), to_one) << bit;
    }
  }
  EXPECT_GT(refused, 1000);
  EXPECT_GT(read, 500);
}

TEST(RawDamage, ValuesOutsideTheirRulesAreNamed) {
  const SmallFile floats{false, true, KeyType::U32, 100};
  const std::string content = floats.content();
  expect_part(floats.outcome(with(content, 24, 2.0f)),
              "x.bin: record 1: byte 24: expected label 0 to be 0 or 1, found 2");
  expect_part(floats.outcome(with(content, 32, std::numeric_limits<float>::quiet_NaN())),
              "record 1: byte 32: expected dense value 1 to be a finite number, found nan");
  expect_part(floats.outcome(with(content, 36, 100)),
              "record 1: byte 36: expected a key from 0 to 99 in slot 0 ('slot0'), found 100");
  expect_part(floats.outcome(with(content, 44, -1)),
              "record 1: byte 44: expected a key from 100 to 199 in slot 1 ('slot1'), found -1");
  const SmallFile any{false, true, KeyType::U32, 0};
  expect_part(any.outcome(with(any.content(), 36, -7)),
              "record 1: byte 36: expected a key from 0 to 2147483647 in slot 0 ('slot0'), found -7");

  const SmallFile integers{false, false, KeyType::U32, 100};
  for (const int32_t value : {-1, -2, std::numeric_limits<int32_t>::min()})
    expect_part(integers.outcome(with(integers.content(), 28, value)),
                "record 1: byte 28: expected dense value 0 of 0 or more, as ln(x + 1) is taken of it, found " +
                    std::to_string(value));
  Rows rows;
  EXPECT_EQ(integers.outcome(with(integers.content(), 28, std::numeric_limits<int32_t>::max()), 1, false, &rows), "");
  EXPECT_FLOAT_EQ(rows.dense[2], 21.4875626f);
}

TEST(RawDamage, FilesOfTheWrongGeneratorAreRecognised) {
  // DataGenerator(format=Raw, float_label_dense=True) writes f32 labels, which RawAsync reads as integers.
  const SmallFile raw{false, true, KeyType::U32, 100};
  SmallFile async{true, true, KeyType::U32, 100};
  expect_part(async.outcome(raw.content()),
              "x.bin: record 1: byte 24: expected label 0 as i32, found 1065353216 (the bits of the float 1: written "
              "with f32 labels, as HugeCTR's DataGenerator writes Raw files with float_label_dense? Labels of RawAsync "
              "files are i32)");
  // Integers read as floats, and floats as integers.
  const SmallFile integers{false, false, KeyType::U32, 100};
  expect_part(raw.outcome(integers.content()),
              "record 1: byte 24: expected label 0 as f32, found 1.401298464324817e-45 (the bits of the integer 1: "
              "written without float_label_dense?)");
  expect_part(integers.outcome(raw.content()),
              "record 1: byte 24: expected label 0 as i32, found 1065353216 (the bits of the float 1: written with "
              "float_label_dense?)");
  // Labels that are all 0 do not tell: dense values do.
  std::string bytes = with(integers.content(), 24, 0);
  expect_part(raw.outcome(bytes),
              "record 0: byte 8: expected dense value 1 as f32, found 1.401298464324817e-45 (the bits of "
              "the integer 1: written without float_label_dense?)");
  async.floats = false;
  const SmallFile async_floats{true, true, KeyType::U32, 100};
  bytes = with(async_floats.content(), 24, 0);
  expect_part(async.outcome(bytes), "expected dense value 0 as i32, found ");
  expect_part(async.outcome(bytes), "the bits of the float -0.25: written with is_dense_float?)");
  // A single denormal value is a number.
  EXPECT_EQ(raw.outcome(with(raw.content(), 4, 1e-42f)), "");
}

TEST(RawDamage, SizesThatDoNotFitSayWhy) {
  const SmallFile wide{true, true, KeyType::I64, 100}, narrow{true, true, KeyType::U32, 100};
  // Of 36-byte rows, three; of 24-byte rows, four and a half.
  expect_part(narrow.outcome(wide.content()),
              "x.bin: expected a multiple of 24 bytes, the size of a row of 1 labels, 2 dense values and 3 keys of 4 "
              "bytes, found 108 bytes, which are 12 too many (the size of the file is right for i64 keys)");
  expect_part(wide.outcome(narrow.content() + "abc"), "found 75 bytes, which are 3 too many");
  EXPECT_EQ(wide.outcome("").find("expected rows, found 0") == std::string::npos, false);
}

TEST(RawDamage, AFileThatChangesWhileItIsReadIsNoticed) {
  for (const int64_t workers : {1, 4}) {
    const TemporaryFolder folder;
    const Schema schema = make_schema(1000, {1});
    const Rows rows = make_rows(schema, 5000, false);
    WriterOptions options;
    options.folder = folder.path();
    Dataset dataset;
    dataset.folder = folder.path();
    dataset.format = raw_format();
    dataset.schema = schema;
    const auto writer = dataset.format->create_writer(schema, options);
    writer->write({rows.count, rows.labels.data(), rows.dense.data(), rows.nnz.data(), rows.keys.data()});
    dataset.train = writer->finish();
    ReaderOptions reading;
    reading.batch_size = 16;
    reading.num_workers = workers;
    BatchReader reader(dataset, PartName::Train, reading);
    Batch batch;
    ASSERT_TRUE(reader.next(batch));
    folder.put("train/part-0.bin", folder.get("train/part-0.bin").substr(0, 1'000'000));
    const auto read_to_end = [&] {
      while (reader.next(batch)) {
      }
    };
    TERCEL_EXPECT_THROW(read_to_end(), DataError,
                        "expected the file as it was when reading began, found it with 1000000");
  }
}

}  // namespace
}  // namespace tercel::data::test
