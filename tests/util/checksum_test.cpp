#include "tercel/util/checksum.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/util/temporary_folder.h"

namespace tercel {
namespace {

TEST(Checksum, KnownValue) {
  // XXH3-64 of nothing with seed 0, from the self-test of xxHash.
  EXPECT_EQ(checksum("", 0), 0x2d06800538d394c2u);
  EXPECT_EQ(checksum_to_hex(checksum("", 0)), "2d06800538d394c2");
  EXPECT_EQ(checksum_to_hex(0x1f), "000000000000001f");
  EXPECT_EQ(checksum_to_hex(~uint64_t{0}), "ffffffffffffffff");
}

TEST(Checksum, PiecesMakeTheSameAsTheWhole) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += static_cast<char>(i * 31 % 251);
  const uint64_t whole = checksum(text.data(), text.size());
  for (const size_t piece : {size_t{1}, size_t{7}, size_t{64}, size_t{1000}, text.size()}) {
    Checksum sum;
    for (size_t at = 0; at < text.size(); at += piece) {
      sum.update(text.data() + at, std::min(piece, text.size() - at));
      EXPECT_EQ(sum.value(), checksum(text.data(), std::min(at + piece, text.size()))) << "value() does not end it";
    }
    EXPECT_EQ(sum.value(), whole);
  }
}

TEST(Checksum, CopyGoesItsOwnWay) {
  Checksum sum;
  sum.update("abc", 3);
  Checksum copy = sum.copy();
  copy.update("def", 3);
  EXPECT_EQ(copy.value(), checksum("abcdef", 6));
  EXPECT_EQ(sum.value(), checksum("abc", 3));
  sum = std::move(copy);
  EXPECT_EQ(sum.value(), checksum("abcdef", 6));
}

TEST(Checksum, OfAFile) {
  const test::TemporaryFolder folder;
  const std::string content(3'000'000, 'x');
  EXPECT_EQ(file_checksum(folder.put("data", content)), checksum(content.data(), content.size()));
  EXPECT_EQ(file_checksum(folder.put("empty", "")), checksum("", 0));
}

}  // namespace
}  // namespace tercel
