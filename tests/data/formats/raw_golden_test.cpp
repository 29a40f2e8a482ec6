// Raw and RawAsync files byte by byte, following HugeCTR's sources, so that reader and encoder cannot share a mistake.
#include <gtest/gtest.h>

#include <cmath>

#include "tercel/data/formats/raw_format.h"
#include "tercel/data/formats/rawasync_format.h"
#include "tests/data/norm_data.h"

namespace tercel::data::test {
namespace {

using Bytes = std::vector<unsigned char>;

std::string text_of(const Bytes& bytes) { return {bytes.begin(), bytes.end()}; }

TEST(RawGolden, FloatRowsAsCriteo2raw) {
  const Bytes bytes = {
      0, 0, 0x80, 0x3f,  // label 1
      0, 0, 0,    0x3f,  // dense 0.5
      0, 0, 0,    0xc0,  // dense -2
      3, 0, 0,    0,     // key 3
      4, 1, 0,    0,     // key 260

      0, 0, 0,    0,     // label 0
      0, 0, 0xc0, 0x3f,  // dense 1.5
      0, 0, 0,    0,     // dense 0
      0, 0, 0,    0,     // key 0
      5, 0, 0,    0,     // key 5
  };
  const TemporaryFolder folder;
  RawSpec spec;
  spec.train = {folder.put("train.bin", text_of(bytes))};
  spec.dense_dim = 2;
  spec.nnz_per_slot = {1, 1};
  spec.float_label_dense = true;
  const Rows rows = read_all(dataset_from_raw_files(spec));
  EXPECT_EQ(rows.count, 2);
  EXPECT_EQ(rows.labels, (std::vector<float>{1, 0}));
  EXPECT_EQ(rows.dense, (std::vector<float>{0.5f, -2, 1.5f, 0}));
  EXPECT_EQ(rows.nnz, (std::vector<int32_t>{1, 1, 1, 1}));
  EXPECT_EQ(rows.keys, (std::vector<int64_t>{3, 260, 0, 5}));
}

// tools/dlrm_script: 40 x i32, label, 13 counts, 26 keys; ids begin at 0 in every slot.
TEST(RawGolden, TheRecordOfDlrmsKaggleScript) {
  std::string bytes;
  for (int32_t row = 0; row < 3; ++row) {
    append<int32_t>(bytes, row % 2);
    for (int32_t d = 0; d < 13; ++d) append<int32_t>(bytes, d * d * row);
    for (int32_t s = 0; s < 26; ++s) append<int32_t>(bytes, (row + s) % 10);
  }
  ASSERT_EQ(bytes.size(), 3u * 160);
  const TemporaryFolder folder;
  RawSpec spec;
  spec.train = {folder.put("train_data.bin", bytes)};
  spec.dense_dim = 13;
  spec.nnz_per_slot.assign(26, 1);
  spec.slot_size_array.assign(26, 10);
  for (const SlotOffsets offsets : {SlotOffsets::None, SlotOffsets::Add}) {
    // Without offsets, keys of all slots but the first are outside their ranges.
    spec.slot_offsets = offsets;
    if (offsets == SlotOffsets::None)
      spec.slot_size_array.clear();
    else
      spec.slot_size_array.assign(26, 10);
    const Dataset dataset = dataset_from_raw_files(spec);
    EXPECT_EQ(dataset.train.files[0].rows, 3);
    const Rows rows = read_all(dataset);
    EXPECT_EQ(rows.labels, (std::vector<float>{0, 1, 0}));
    for (int32_t row = 0; row < 3; ++row) {
      for (int32_t d = 0; d < 13; ++d)
        EXPECT_EQ(rows.dense[static_cast<size_t>(row * 13 + d)], std::log(static_cast<float>(d * d * row) + 1.0f));
      for (int32_t s = 0; s < 26; ++s)
        EXPECT_EQ(rows.keys[static_cast<size_t>(row * 26 + s)],
                  (row + s) % 10 + (offsets == SlotOffsets::Add ? s * 10 : 0));
    }
  }
}

// samples/dlrm/preprocessing/convert_to_raw.py: i32 label, 13 x f32, 214 x i32.
TEST(RawGolden, TheRecordOfMlperfsDlrmDcnv2) {
  const std::vector<int64_t> hotness = {3, 2, 1, 2, 6, 1, 1,  1,   1,  7,  3, 8, 1,
                                        6, 9, 5, 1, 1, 1, 12, 100, 27, 10, 3, 1, 1};
  std::string bytes;
  std::vector<int64_t> keys;
  for (int32_t row = 0; row < 2; ++row) {
    append<int32_t>(bytes, 1 - row);
    for (int d = 0; d < 13; ++d) append<float>(bytes, static_cast<float>(d) / 4 - 1);
    for (size_t s = 0; s < hotness.size(); ++s)
      for (int64_t k = 0; k < hotness[s]; ++k) {
        keys.push_back(1000 * static_cast<int64_t>(s) + k + row);
        append<int32_t>(bytes, static_cast<int32_t>(keys.back()));
      }
  }
  ASSERT_EQ(bytes.size(), 2u * 912);
  const TemporaryFolder folder;
  RawAsyncSpec spec;
  spec.train = {folder.put("train_data.bin", bytes)};
  spec.dense_dim = 13;
  spec.nnz_per_slot = hotness;
  const Rows rows = read_all(dataset_from_rawasync_files(spec));
  EXPECT_EQ(rows.labels, (std::vector<float>{1, 0}));
  EXPECT_EQ(rows.dense[12], 2.0f);
  EXPECT_EQ(rows.keys, keys);
  EXPECT_EQ(rows.nnz.size(), 2u * 26);
  EXPECT_EQ(rows.nnz[20], 100);
}

TEST(RawGolden, KeysOf64BitsAreTwoWords) {
  const Bytes bytes = {
      1,    0,    0,    0,                          // label 1, an integer
      7,    0,    0,    0,                          // dense: ln 8
      5,    4,    3,    2,    1,    0,    0,    0,  // 0x0102030405
      0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f,
  };
  const TemporaryFolder folder;
  RawAsyncSpec spec;
  spec.train = {folder.put("train.bin", text_of(bytes))};
  spec.dense_dim = 1;
  spec.nnz_per_slot = {2};
  spec.is_dense_float = false;
  spec.key_type = KeyType::I64;
  const Rows rows = read_all(dataset_from_rawasync_files(spec));
  EXPECT_EQ(rows.labels, (std::vector<float>{1}));
  EXPECT_EQ(rows.dense, (std::vector<float>{std::log(8.0f)}));
  EXPECT_EQ(rows.keys, (std::vector<int64_t>{0x0102030405, INT64_MAX}));
}

}  // namespace
}  // namespace tercel::data::test
