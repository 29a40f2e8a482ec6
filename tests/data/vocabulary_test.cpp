#include "tercel/data/vocabulary.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <set>

#include "tercel/data/token_table_impl.h"
#include "tercel/util/checksum.h"
#include "tercel/util/error.h"
#include "tests/support/errors.h"
#include "tests/util/temporary_folder.h"

namespace tercel::data {
namespace {

using tercel::test::TemporaryFolder;

using namespace std::string_literals;

Vocabulary make_vocabulary(const std::vector<std::pair<std::string, std::vector<std::string>>>& fields) {
  Vocabulary vocabulary;
  for (const auto& [name, categories] : fields) {
    const std::vector<std::string_view> views(categories.begin(), categories.end());
    vocabulary.add_field(name, views);
  }
  return vocabulary;
}

Vocabulary read(const std::string& bytes) { return vocabulary_from_bytes(bytes, "v.bin"); }

/** The content with its correct checksum. */
std::string sealed(std::string content) {
  const uint64_t sum = checksum(content.data(), content.size());
  content.append(reinterpret_cast<const char*>(&sum), sizeof(sum));
  return content;
}

const std::string kMagic = "TRCLVOC\1"s;

TEST(Vocabulary, FindsWhatItKnows) {
  const Vocabulary v = make_vocabulary({{"C1", {"red", "green"}}, {"C2", {}}, {"C3", {"red", "a longer category"}}});
  ASSERT_EQ(v.num_fields(), 3);
  EXPECT_EQ(v.name(2), "C3");
  EXPECT_EQ(v.size(0), 3);
  EXPECT_EQ(v.size(1), 1);
  EXPECT_EQ(v.find(0, "red"), 1);
  EXPECT_EQ(v.find(0, "green"), 2);
  EXPECT_EQ(v.find(0, "a longer category"), 0);
  EXPECT_EQ(v.find(1, "red"), 0);
  EXPECT_EQ(v.find(2, "a longer category"), 2);
  EXPECT_EQ(v.find(2, "a longer categorx"), 0);
  EXPECT_EQ(v.find(0, ""), 0);
  EXPECT_EQ(v.find(0, "red\0"s), 0) << "a zero byte is a byte";
  EXPECT_EQ(v.categories(2), (std::vector<std::string_view>{"red", "a longer category"}));
}

TEST(Vocabulary, RefusesEmptyAndRepeatedCategories) {
  TERCEL_EXPECT_THROW(make_vocabulary({{"C1", {"a", ""}}}), ValueError, "found 0 at id 2");
  TERCEL_EXPECT_THROW(make_vocabulary({{"C1", {"a", "b", "a"}}}), ValueError, "found 'a' again at id 3");
}

TEST(Vocabulary, FilesHaveTheBytesOfTheFormat) {
  const std::string bytes = vocabulary_to_bytes(make_vocabulary({{"C1", {"ab", std::string(200, 'x')}}, {"", {}}}));
  const std::string content =
      kMagic + "\x02" + "\x02" + "C1" + "\x02" + "\x02" + "ab" + "\xc8\x01"s + std::string(200, 'x') + "\x00\x00"s;
  EXPECT_EQ(bytes, sealed(content));
}

RC_GTEST_PROP(Vocabulary, RoundTripsAnyCategories, (const std::vector<std::set<std::string>>& fields)) {
  Vocabulary vocabulary;
  std::vector<std::vector<std::string>> wanted;
  for (const std::set<std::string>& categories : fields) {
    wanted.emplace_back();
    for (const std::string& category : categories)
      if (!category.empty()) wanted.back().push_back(category);
    const std::vector<std::string_view> views(wanted.back().begin(), wanted.back().end());
    vocabulary.add_field("field " + std::to_string(wanted.size()), views);
  }
  const std::string bytes = vocabulary_to_bytes(vocabulary);
  const Vocabulary again = read(bytes);
  RC_ASSERT(vocabulary_to_bytes(again) == bytes);
  RC_ASSERT(again.num_fields() == static_cast<int64_t>(wanted.size()));
  for (size_t f = 0; f < wanted.size(); ++f)
    for (size_t i = 0; i < wanted[f].size(); ++i)
      RC_ASSERT(again.find(static_cast<int64_t>(f), wanted[f][i]) == static_cast<int64_t>(i) + 1);
}

TEST(Vocabulary, SavesAndLoads) {
  const TemporaryFolder folder;
  save_vocabulary(make_vocabulary({{"C1", {"x", "y"}}}), folder / "v.bin");
  EXPECT_EQ(load_vocabulary(folder / "v.bin").find(0, "y"), 2);
  EXPECT_THROW(load_vocabulary(folder / "none"), IoError);
}

TEST(Vocabulary, NoticesEveryCutAndEveryFlippedBit) {
  const std::string bytes = vocabulary_to_bytes(make_vocabulary({{"C1", {"red", "green"}}, {"C2", {"123456789"}}}));
  for (size_t size = 0; size < bytes.size(); ++size) EXPECT_THROW(read(bytes.substr(0, size)), DataError) << size;
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string damaged = bytes;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_THROW(read(damaged), DataError) << bit;
  }
  TERCEL_EXPECT_THROW(read(""), DataError, "v.bin: byte 0: expected a vocabulary");
  std::string other = bytes;
  other[7] = 2;
  TERCEL_EXPECT_THROW(read(other), DataError,
                      "v.bin: byte 0: expected a vocabulary, which starts with the bytes TRCLVOC 01, found version 2");
  std::string damaged = bytes;
  damaged[12] = static_cast<char>(damaged[12] ^ 1);
  TERCEL_EXPECT_THROW(read(damaged), DataError, "the file is damaged");
}

TEST(Vocabulary, NoticesWrongContentUnderARightChecksum) {
  EXPECT_EQ(read(sealed(kMagic + "\x00"s)).num_fields(), 0);
  const std::pair<std::string, std::string> cases[] = {
      {"", "number of fields"},
      {"\x01"s, "number of fields"},
      {"\xff\xff\xff\xff\x07"s, "number of fields"},                // 2^31 - 1
      {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"s, "below 2^63"},  // all bits
      {"\x81\x00\x00\x00"s, "shortest form"},                       // 1 in two bytes
      {"\x01\x05"
       "ab\x00"s,
       "name of a field"},  // longer than the file
      {"\x01\x01"
       "a\x02\x01x"s,
       "number of categories"},  // two, of which one is there
      {"\x01\x01"
       "a\x01\x05x"s,
       "expected category of 0 to 1"},  // of five bytes, of which one is there
      {"\x01\x01"
       "a\x02\x01x\x01x"s,
       "'x' again"},  // twice
      {"\x01\x01"
       "a\x01\x00\x00"s,
       "found 0 at id 1"},  // empty
      {"\x01\x01"
       "a\x00"
       "more"s,
       "the last field"},  // bytes behind it
  };
  for (const auto& [content, message] : cases) {
    SCOPED_TRACE(testing::PrintToString(content));
    TERCEL_EXPECT_THROW(read(sealed(kMagic + content)), DataError, message);
  }
}

TEST(TokenTable, CountsLikeAMap) {
  TokenTable table;
  std::map<std::string, int64_t> wanted;
  uint64_t state = 1;
  for (int i = 0; i < 200000; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    // Lengths around the limit for inline strings; few letters, so that many strings are similar.
    std::string text;
    for (uint64_t bits = state >> 20, n = state % 12 + 1; n > 0; --n, bits /= 3) text += "ab\0"[bits % 3];
    ASSERT_TRUE(table.add(text, 1));
    ++wanted[text];
  }
  EXPECT_EQ(table.size(), static_cast<int64_t>(wanted.size()));
  for (const auto& [text, count] : wanted) ASSERT_EQ(table.find(text), count) << testing::PrintToString(text);
  EXPECT_EQ(table.find("abc"), 0);
  int64_t visited = 0;
  table.for_each([&](std::string_view text, int64_t count) {
    ++visited;
    EXPECT_EQ(wanted.at(std::string(text)), count);
  });
  EXPECT_EQ(visited, table.size());
}

TEST(TokenTable, HoldsLongTextsAndLargeNumbers) {
  TokenTable table;
  const std::string longest(TokenTable::kMaxLength, 'x'), other = longest.substr(1);
  EXPECT_TRUE(table.add(longest, 1));
  EXPECT_TRUE(table.add(other, TokenTable::kMaxValue - 1));
  EXPECT_EQ(table.find(longest), 1);
  EXPECT_TRUE(table.add(other, 1));
  EXPECT_EQ(table.find(other), TokenTable::kMaxValue);
  EXPECT_FALSE(table.add(other, 1));
  EXPECT_EQ(table.find(other), TokenTable::kMaxValue);
}

}  // namespace
}  // namespace tercel::data
