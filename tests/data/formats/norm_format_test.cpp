#include "tercel/data/formats/norm_format.h"

#include <gtest/gtest.h>

#include <string>

#include "tercel/util/error.h"
#include "tests/support/errors.h"

namespace tercel::data {
namespace {

TEST(NormFormat, SizesFollowTheFormula) {
  EXPECT_EQ(norm_header_bytes(CheckMode::None), 64);
  EXPECT_EQ(norm_header_bytes(CheckMode::Sum), 69);
  // 1 label, 13 dense values, 26 slots with a key each.
  EXPECT_EQ(norm_record_bytes(1, 13, 26, 26, KeyType::I64, CheckMode::None), 4 * 14 + 26 * (4 + 8));
  EXPECT_EQ(norm_record_bytes(1, 13, 26, 26, KeyType::U32, CheckMode::None), 4 * 14 + 26 * (4 + 4));
  EXPECT_EQ(norm_record_bytes(1, 13, 26, 26, KeyType::I64, CheckMode::Sum), 5 + 4 * 14 + 26 * (4 + 8));
  EXPECT_EQ(norm_record_bytes(2, 0, 3, 0, KeyType::I64, CheckMode::None), 4 * 2 + 3 * 4);
}

TEST(NormFormat, SumIsThatOfAllBytesModulo256) {
  std::string bytes;
  uint8_t sum = 0;
  for (int length = 0; length < 1000; ++length) {
    ASSERT_EQ(norm_sum(bytes.data(), bytes.size()), sum) << length;
    const auto byte = static_cast<uint8_t>(length * 37 + 201);
    bytes.push_back(static_cast<char>(byte));
    sum = static_cast<uint8_t>(sum + byte);
  }
  const std::string full(100000, '\xff');
  EXPECT_EQ(norm_sum(full.data(), full.size()), static_cast<uint8_t>(100000u * 255u));
  // At any address.
  for (size_t start = 0; start < 20; ++start)
    EXPECT_EQ(norm_sum(full.data() + start, 33), static_cast<uint8_t>(33u * 255u));
}

TEST(NormFormat, NamesGoBothWaysAndHugectrsAreUnderstood) {
  EXPECT_EQ(to_string(KeyType::U32), "u32");
  EXPECT_EQ(to_string(CheckMode::None), "none");
  EXPECT_EQ(parse_enum_or_throw<KeyType>("key type", "i64"), KeyType::I64);
  EXPECT_EQ(parse_enum_or_throw<CheckMode>("check mode", "Non"), CheckMode::None);
  EXPECT_EQ(parse_enum_or_throw<CheckMode>("check mode", "Sum"), CheckMode::Sum);
  TERCEL_EXPECT_THROW(parse_enum_or_throw<KeyType>("key type", "i46"), ConfigError, "did you mean 'i64'");
}

}  // namespace
}  // namespace tercel::data
