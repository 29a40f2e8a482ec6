#include "tercel/util/cursor.h"
#include "tests/support/errors.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>

namespace tercel {
namespace {

using namespace std::string_literals;

const std::string kBytes = "\x01\x02\x03\x04\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00\x80\x3ftext"s;

TEST(ByteCursor, ReadsLittleEndianAtAnyAlignment) {
  ByteCursor cursor(kBytes, {.file = "f"});
  EXPECT_EQ(cursor.read<uint8_t>("a"), 1);
  EXPECT_EQ(cursor.read<uint16_t>("b"), 0x0302);
  cursor.skip(1, "c");
  EXPECT_EQ(cursor.position(), 4);
  EXPECT_EQ(cursor.read<int64_t>("d"), -1);
  EXPECT_EQ(cursor.read<float>("e"), 1.0f);
  EXPECT_EQ(cursor.remaining(), 4u);
  EXPECT_EQ(cursor.text(4, "f"), "text");
  EXPECT_TRUE(cursor.at_end());
  cursor.expect_end("all");
  EXPECT_EQ(cursor.bytes(0, "nothing").size(), 0u);
}

TEST(ByteCursor, ReadsArrays) {
  ByteCursor cursor(kBytes, {.file = "f"});
  uint16_t values[2];
  cursor.read_array(values, 2, "values");
  EXPECT_EQ(values[1], 0x0403);
  uint64_t many[4];
  TERCEL_EXPECT_THROW(cursor.read_array(many, 3, "keys"), DataError,
                      "f: byte 4: expected 3 values of 8 bytes of keys, found 16 bytes before the end");
  TERCEL_EXPECT_THROW(cursor.read_array(many, std::numeric_limits<size_t>::max() / 2, "keys"), DataError, "keys");
  EXPECT_EQ(cursor.position(), 4) << "a failed read moves nothing";
}

TEST(ByteCursor, ErrorsNameFileRecordOffsetExpectedAndFound) {
  ByteCursor cursor(kBytes, {.file = "train\n.data", .record = 7, .base_offset = 1000});
  cursor.skip(18, "head");
  TERCEL_EXPECT_THROW(cursor.read<int32_t>("nnz"), DataError,
                      "train\\n.data: record 7: byte 1018: expected 4 bytes of nnz, found 2 bytes before the end");
  cursor.set_record(8);
  TERCEL_EXPECT_THROW(cursor.fail("a label of 0 or 1", "3"), DataError,
                      "record 8: byte 1018: expected a label of 0 or 1, found 3");
  TERCEL_EXPECT_THROW(cursor.fail_at(5, "x", "y"), DataError, "record 8: byte 5: expected x, found y");
  TERCEL_EXPECT_THROW(cursor.expect_end("the last record"), DataError,
                      "byte 1018: expected the end after the last record, found 2 more bytes");
  TERCEL_EXPECT_THROW(ByteCursor("", {.file = "f"}).read<char>("x"), DataError, "f: byte 0: expected 1 bytes of x");
}

TEST(ByteCursor, CountsAreCheckedBeforeAnythingIsAllocated) {
  const ByteCursor cursor(kBytes, {.file = "f"});  // 20 bytes
  EXPECT_EQ(cursor.check_count(int32_t{5}, 4, "keys"), 5u);
  EXPECT_EQ(cursor.check_count(uint64_t{0}, 8, "keys"), 0u);
  TERCEL_EXPECT_THROW(cursor.check_count(6, 4, "keys"), DataError,
                      "f: byte 0: expected keys of 0 to 5 (20 bytes are left), found 6");
  TERCEL_EXPECT_THROW(cursor.check_count(-1, 4, "keys"), DataError, "found -1");
  TERCEL_EXPECT_THROW(cursor.check_count(std::numeric_limits<int64_t>::min(), 1, "keys"), DataError,
                      "found -9223372036854775808");
  TERCEL_EXPECT_THROW(cursor.check_count(std::numeric_limits<uint64_t>::max(), 8, "keys"), DataError,
                      "found 18446744073709551615");
  TERCEL_EXPECT_THROW(cursor.check_count(uint32_t{1} << 31, 4, "keys"), DataError, "found 2147483648");
}

TEST(ByteCursor, SubCursorKeepsToItsPart) {
  ByteCursor cursor(kBytes, {.file = "f", .record = 2, .base_offset = 50});
  cursor.skip(4, "head");
  ByteCursor part = cursor.sub(8, "part");
  EXPECT_EQ(cursor.position(), 62);
  EXPECT_EQ(part.position(), 54);
  EXPECT_EQ(part.read<int32_t>("x"), -1);
  TERCEL_EXPECT_THROW(part.read<int64_t>("y"), DataError,
                      "f: record 2: byte 58: expected 8 bytes of y, found 4 bytes before the end");
  TERCEL_EXPECT_THROW(cursor.sub(9, "part"), DataError, "expected 9 bytes of part, found 8");
}

}  // namespace
}  // namespace tercel
