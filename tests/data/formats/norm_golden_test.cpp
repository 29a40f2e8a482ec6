// Norm files byte by byte, following HugeCTR's sources (quoted with each), so that reader and encoder cannot share a
// mistake.
#include <gtest/gtest.h>

#include "tests/data/norm_data.h"

namespace tercel::data::test {
namespace {

using Bytes = std::vector<unsigned char>;

/** A dataset of one such file, found by its file list. */
Dataset dataset_of(const TemporaryFolder& folder, const Bytes& bytes, NormSpec spec) {
  const std::string file = folder.put("rows.data", std::string(bytes.begin(), bytes.end()));
  spec.train_list = folder.put("list.txt", "1\n" + file + "\n");
  return dataset_from_norm_files(spec);
}

TEST(NormGolden, RecordsWithLengthsAndSums) {
  const Bytes bytes = {
      0x40, 0, 0,    0,                 // 64 bytes of header follow
      1,    0, 0,    0,    0, 0, 0, 0,  // error_check: a sum
      2,    0, 0,    0,    0, 0, 0, 0,  // number_of_records
      1,    0, 0,    0,    0, 0, 0, 0,  // label_dim
      2,    0, 0,    0,    0, 0, 0, 0,  // dense_dim
      2,    0, 0,    0,    0, 0, 0, 0,  // slot_num
      0,    0, 0,    0,    0, 0, 0, 0,  // reserved
      0,    0, 0,    0,    0, 0, 0, 0,  //
      0,    0, 0,    0,    0, 0, 0, 0,  //
      0x08,                             // 1 + 2 + 1 + 2 + 2

      0x20, 0, 0,    0,     // 32 bytes of record follow
      0,    0, 0x80, 0x3f,  // label 1
      0,    0, 0,    0x3f,  // dense 0.5
      0,    0, 0,    0xc0,  // dense -2
      1,    0, 0,    0,     // one key in slot 0
      3,    0, 0,    0,     // 3
      2,    0, 0,    0,     // two in slot 1
      0x2c, 1, 0,    0,     // 300
      5,    0, 0,    0,     // 5
      0xf6,                 // the sum of these 32 bytes is 502 = 256 + 0xf6

      0x18, 0, 0,    0,     // 24 bytes
      0,    0, 0,    0,     // label 0
      0,    0, 0xc0, 0x3f,  // dense 1.5
      0,    0, 0,    0,     // dense 0
      0,    0, 0,    0,     // slot 0 is empty
      1,    0, 0,    0,     // one key in slot 1
      7,    0, 0,    0,     // 7
      0x07,                 // 263 = 256 + 7
  };
  const TemporaryFolder folder;
  NormSpec spec;
  spec.dense_dim = 2;
  spec.nnz_per_slot = {1, 2};
  spec.slot_size_array = {5, 300};
  spec.key_type = KeyType::U32;
  spec.check_mode = CheckMode::Sum;
  const Rows rows = read_all(dataset_of(folder, bytes, spec));
  EXPECT_EQ(rows.count, 2);
  EXPECT_EQ(rows.labels, (std::vector<float>{1, 0}));
  EXPECT_EQ(rows.dense, (std::vector<float>{0.5f, -2, 1.5f, 0}));
  EXPECT_EQ(rows.nnz, (std::vector<int32_t>{1, 2, 0, 1}));
  EXPECT_EQ(rows.keys, (std::vector<int64_t>{3, 300, 5, 7}));
}

TEST(NormGolden, BareRecordsWithKeysOf64Bits) {
  const Bytes bytes = {
      0,    0,    0,    0,    0,    0,    0,    0,  // error_check: none, so nothing is framed
      2,    0,    0,    0,    0,    0,    0,    0,  // number_of_records
      1,    0,    0,    0,    0,    0,    0,    0,  // label_dim
      0,    0,    0,    0,    0,    0,    0,    0,  // dense_dim
      1,    0,    0,    0,    0,    0,    0,    0,  // slot_num
      0,    0,    0,    0,    0,    0,    0,    0,  // reserved
      0,    0,    0,    0,    0,    0,    0,    0,  //
      0,    0,    0,    0,    0,    0,    0,    0,  //

      0,    0,    0,    0,                          // label 0
      2,    0,    0,    0,                          // two keys
      5,    4,    3,    2,    1,    0,    0,    0,  // 0x0102030405
      0,    0,    0,    0,    0,    0,    0,    0,  // 0

      0,    0,    0x80, 0x3f,                          // label 1
      2,    0,    0,    0,                             // two keys
      1,    0,    0,    0,    0,    0,    0,    0,     // 1
      0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f,  // 2^63 - 1
  };
  const TemporaryFolder folder;
  NormSpec spec;
  spec.nnz_per_slot = {2};
  spec.key_type = KeyType::I64;
  spec.check_mode = CheckMode::None;
  const Rows rows = read_all(dataset_of(folder, bytes, spec));
  EXPECT_EQ(rows.count, 2);
  EXPECT_EQ(rows.labels, (std::vector<float>{0, 1}));
  EXPECT_TRUE(rows.dense.empty());
  EXPECT_EQ(rows.nnz, (std::vector<int32_t>{2, 2}));
  EXPECT_EQ(rows.keys, (std::vector<int64_t>{0x0102030405, 0, 1, INT64_MAX}));
}

}  // namespace
}  // namespace tercel::data::test
