#include "tercel/data/formats/norm_format.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "tercel/util/checksum.h"
#include "tercel/util/error.h"
#include "tercel/util/file_hook.h"
#include "tests/data/norm_data.h"
#include "tests/support/errors.h"

namespace tercel::data::test {
namespace {

WriterOptions writer_options(const TemporaryFolder& folder, int64_t rows_per_file) {
  WriterOptions options;
  options.folder = folder.path();
  options.prefix = "train/part-";
  options.file_list = "train.txt";
  options.rows_per_file = rows_per_file;
  return options;
}

std::unique_ptr<DatasetWriter> make_writer(const Schema& schema, const TemporaryFolder& folder, KeyType key_type,
                                           CheckMode mode, int64_t rows_per_file) {
  return norm_format({key_type, mode})->create_writer(schema, writer_options(folder, rows_per_file));
}

void write_rows(DatasetWriter& writer, const Rows& rows) {
  writer.write({rows.count, rows.labels.data(), rows.dense.data(), rows.nnz.data(), rows.keys.data()});
}

std::string hex(const std::string& bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (const char c : bytes) {
    out += kDigits[static_cast<uint8_t>(c) >> 4];
    out += kDigits[static_cast<uint8_t>(c) & 15];
  }
  return out;
}

TEST(NormWriter, RefusesWhatTheFilesCannotHold) {
  const TemporaryFolder folder;
  Schema schema = make_schema(2, {1, 2}, 0);
  schema.slots[1].weighted = true;
  TERCEL_EXPECT_THROW(make_writer(schema, folder, KeyType::I64, CheckMode::Sum, 10), ConfigError,
                      "norm: slot 's1': expected keys without weights");
  schema.slots[1].weighted = false;
  schema.columns = {{"time", ColumnType::I64}};
  TERCEL_EXPECT_THROW(make_writer(schema, folder, KeyType::I64, CheckMode::Sum, 10), ConfigError,
                      "norm: expected no columns besides labels, dense values and keys, which are all that the files "
                      "hold, found 'time'");
}

// One row by hand: label 1, dense 0.5 and -2, slots {7} and {300, 2}.
TEST(NormWriter, BytesAreThoseOfTheFormat) {
  Schema schema = make_schema(2, {1, 2}, 0);
  const float label = 1;
  const float dense[] = {0.5f, -2.0f};
  const int32_t nnz[] = {1, 2};
  const int64_t keys[] = {7, 300, 2};
  const auto written = [&](KeyType key_type, CheckMode mode) {
    const TemporaryFolder folder;
    const auto writer = make_writer(schema, folder, key_type, mode, 10);
    writer->write({1, &label, dense, nnz, keys});
    writer->finish();
    return hex(folder.get("train/part-0.data"));
  };
  const std::string none_header =
      "0000000000000000"
      "0100000000000000"
      "0100000000000000"
      "0200000000000000"
      "0200000000000000"
      "000000000000000000000000000000000000000000000000";
  const std::string floats =
      "0000803f"
      "0000003f"
      "000000c0";
  EXPECT_EQ(written(KeyType::I64, CheckMode::None), none_header + floats +
                                                        "01000000"
                                                        "0700000000000000"
                                                        "02000000"
                                                        "2c01000000000000"
                                                        "0200000000000000");
  EXPECT_EQ(written(KeyType::U32, CheckMode::None), none_header + floats +
                                                        "01000000"
                                                        "07000000"
                                                        "02000000"
                                                        "2c010000"
                                                        "02000000");
  // The sums: 1 + 1 + 1 + 2 + 2 = 7; 80 + 3f + 3f + c0 + 01 + 07 + 02 + 2c + 01 + 02 = 1f7.
  EXPECT_EQ(written(KeyType::U32, CheckMode::Sum),
            "40000000"
            "0100000000000000"
            "0100000000000000"
            "0100000000000000"
            "0200000000000000"
            "0200000000000000"
            "000000000000000000000000000000000000000000000000"
            "07"
            "20000000" +
                floats +
                "01000000"
                "07000000"
                "02000000"
                "2c010000"
                "02000000"
                "f7");
}

TEST(NormWriter, EveryModeGivesTheFilesOfThePlainEncoder) {
  for (const KeyType key_type : {KeyType::U32, KeyType::I64})
    for (const CheckMode mode : {CheckMode::None, CheckMode::Sum})
      for (const bool ragged : {false, true}) {
        const Schema schema = make_schema(3, {1, 3, 2});
        const Rows rows = make_rows(schema, 1000, ragged);
        const TemporaryFolder folder;
        const auto writer = make_writer(schema, folder, key_type, mode, 300);
        write_rows(*writer, rows);
        EXPECT_EQ(writer->rows(), 1000);
        const DataPart part = writer->finish();
        ASSERT_EQ(part.files.size(), 4u);
        EXPECT_EQ(part.rows(), 1000);
        EXPECT_EQ(part.file_list, "train.txt");
        EXPECT_EQ(folder.get("train.txt"),
                  "4\ntrain/part-0.data\ntrain/part-1.data\ntrain/part-2.data\ntrain/part-3.data\n");
        for (int64_t i = 0; i < 4; ++i) {
          const DataFile& file = part.files[static_cast<size_t>(i)];
          const std::string content = folder.get(file.path);
          EXPECT_EQ(content,
                    encode_file(schema, rows, key_type, mode, i * 300, std::min<int64_t>(1000, i * 300 + 300)));
          EXPECT_EQ(file.rows, i < 3 ? 300 : 100);
          EXPECT_EQ(file.bytes, static_cast<int64_t>(content.size()));
          EXPECT_EQ(file.checksum, checksum_to_hex(checksum(content.data(), content.size())));
        }
        EXPECT_EQ(folder.tree().size(), 6u);  // four files, their folder and the list
      }
}

TEST(NormWriter, FilesThatAreJustFullAndNoRowsAtAll) {
  const Schema schema = make_schema(0, {1});
  const Rows rows = make_rows(schema, 20, false);
  const TemporaryFolder folder;
  {
    const auto writer = make_writer(schema, folder, KeyType::I64, CheckMode::Sum, 10);
    write_rows(*writer, rows);
    EXPECT_EQ(writer->finish().files.size(), 2u);
    TERCEL_EXPECT_THROW(write_rows(*writer, rows), ValueError, "after finish()");
    TERCEL_EXPECT_THROW(writer->finish(), ValueError, "after finish()");
  }
  const TemporaryFolder empty;
  const auto writer = make_writer(schema, empty, KeyType::I64, CheckMode::Sum, 10);
  const DataPart part = writer->finish();
  ASSERT_EQ(part.files.size(), 1u);
  EXPECT_EQ(part.rows(), 0);
  EXPECT_EQ(empty.get("train/part-0.data"), encode_header(schema, CheckMode::Sum, 0));
}

TEST(NormWriter, NullCountsMeanFullSlots) {
  const Schema schema = make_schema(1, {2, 1});
  const Rows rows = make_rows(schema, 5, false);
  const TemporaryFolder folder;
  const auto writer = make_writer(schema, folder, KeyType::I64, CheckMode::None, 10);
  writer->write({5, rows.labels.data(), rows.dense.data(), nullptr, rows.keys.data()});
  writer->finish();
  EXPECT_EQ(folder.get("train/part-0.data"), encode_file(schema, rows, KeyType::I64, CheckMode::None, 0, 5));
}

TEST(NormWriter, BadRowsAreRefusedByNumberAndLeaveTheFileWhole) {
  const Schema schema = make_schema(1, {1, 2});  // keys 0 to 99, 100 to 199
  const Rows good = make_rows(schema, 1, false);
  const TemporaryFolder folder;
  const auto writer = make_writer(schema, folder, KeyType::U32, CheckMode::Sum, 10);
  writer->write({1, good.labels.data(), good.dense.data(), good.nnz.data(), good.keys.data()});
  const auto write = [&](float label, float dense, std::vector<int32_t> nnz, std::vector<int64_t> keys) {
    writer->write({1, &label, &dense, nnz.data(), keys.data()});
  };
  TERCEL_EXPECT_THROW(write(0.5f, 0, {1, 0}, {1}), ValueError, "norm: row 1: expected label 0 to be 0 or 1, found 0.5");
  TERCEL_EXPECT_THROW(write(1, std::nanf(""), {1, 0}, {1}), ValueError,
                      "expected dense value 0 to be a finite number, found nan");
  TERCEL_EXPECT_THROW(write(1, INFINITY, {1, 0}, {1}), ValueError, "found inf");
  TERCEL_EXPECT_THROW(write(1, 0, {2, 0}, {1, 2}), ValueError, "expected 0 to 1 keys in slot 0 ('s0'), found 2");
  TERCEL_EXPECT_THROW(write(1, 0, {-1, 0}, {}), ValueError, "found -1");
  TERCEL_EXPECT_THROW(write(1, 0, {1, 1}, {100, 100}), ValueError,
                      "expected a key from 0 to 99 in slot 0 ('s0'), found 100");
  TERCEL_EXPECT_THROW(write(1, 0, {1, 1}, {1, 99}), ValueError,
                      "expected a key from 100 to 199 in slot 1 ('s1'), found 99");
  TERCEL_EXPECT_THROW(write(1, 0, {1, 0}, {-1}), ValueError, "found -1");
  writer->finish();
  EXPECT_EQ(folder.get("train/part-0.data"), encode_file(schema, good, KeyType::U32, CheckMode::Sum, 0, 1));

  const Schema unknown = make_schema(0, {1}, 0);
  const TemporaryFolder other;
  const auto narrow = make_writer(unknown, other, KeyType::U32, CheckMode::Sum, 10);
  const float label = 0;
  const int64_t large = int64_t{1} << 32;
  TERCEL_EXPECT_THROW(narrow->write({1, &label, nullptr, nullptr, &large}), ValueError,
                      "expected a key from 0 to 4294967295 in slot 0 ('s0'), found 4294967296");
}

TEST(NormWriter, OptionsThatMakeNoSenseAreRefused) {
  const TemporaryFolder folder;
  WriterOptions options = writer_options(folder, 0);
  const auto create = [&](const Schema& schema) { norm_format()->create_writer(schema, options); };
  TERCEL_EXPECT_THROW(create(make_schema(0, {1})), ConfigError, "rows_per_file: expected at least 1, found 0");
  options.rows_per_file = 1;
  options.file_list = "a/b.txt";
  TERCEL_EXPECT_THROW(create(make_schema(0, {1})), ConfigError, "file_list");
  options.file_list = "";
  TERCEL_EXPECT_THROW(create(make_schema(0, std::vector<int64_t>(32, kMaxHotness))), ConfigError, "less than 2 GiB");
  TERCEL_EXPECT_THROW(create(make_schema(0, {kMaxHotness + 1})), ConfigError, "hotness");
}

// Whichever file system call fails: the final names refer to complete files or do not exist.
TEST(NormWriter, AfterAFailureNothingIsLeftBehind) {
  const Schema schema = make_schema(2, {1, 2});
  const Rows rows = make_rows(schema, 250, true);
  const auto write_all = [&](const TemporaryFolder& folder) {
    const auto writer = make_writer(schema, folder, KeyType::I64, CheckMode::Sum, 100);
    write_rows(*writer, rows);
    writer->finish();
  };
  int64_t calls = 0;
  {
    const TemporaryFolder folder;
    const ScopedFault count({FileOp::Any, 0});
    write_all(folder);
    calls = count.calls();
  }
  ASSERT_GT(calls, 20);
  int failures = 0;
  for (int64_t nth = 1; nth <= calls; ++nth) {
    const TemporaryFolder folder;
    bool failed = false;
    try {
      const ScopedFault fault({FileOp::Any, nth, FaultKind::Error, 28});
      write_all(folder);
    } catch (const IoError&) {
      failed = true;
    }
    std::map<std::string, std::string> tree = folder.tree();
    for (const auto& [name, content] : tree) {
      if (name == "train/") continue;
      // A name exists only if the last step failed: the sync of its folder, or of the list's.
      EXPECT_EQ(name.find(".tmp-"), std::string::npos) << nth << ": " << name;
      if (name.ends_with(".data")) {
        const auto index = static_cast<int64_t>(name[name.size() - 6] - '0');
        EXPECT_EQ(content, encode_file(schema, rows, KeyType::I64, CheckMode::Sum, index * 100,
                                       std::min<int64_t>(250, index * 100 + 100)))
            << nth;
      }
    }
    failures += failed;
  }
  EXPECT_GT(failures, 10);
}

TEST(NormWriter, WithoutFinishThereAreNoFiles) {
  const Schema schema = make_schema(2, {1, 2});
  const Rows rows = make_rows(schema, 250, true);
  const TemporaryFolder folder;
  {
    const auto writer = make_writer(schema, folder, KeyType::I64, CheckMode::Sum, 100);
    write_rows(*writer, rows);
    EXPECT_EQ(folder.tree().count("train/part-0.data"), 1u);
  }
  EXPECT_EQ(folder.tree().size(), 1u);  // the empty folder train/
}

}  // namespace
}  // namespace tercel::data::test
