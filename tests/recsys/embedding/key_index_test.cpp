// The index against std::unordered_map.
#include "tercel/recsys/embedding/key_index.h"

#include <gtest/gtest.h>

#include <climits>
#include <random>
#include <unordered_map>
#include <vector>

namespace tercel::recsys {
namespace {

using Reference = std::unordered_map<int64_t, int64_t>;

void expect_equal(const KeyIndex& index, const Reference& expected) {
  ASSERT_EQ(index.size(), static_cast<int64_t>(expected.size()));
  std::vector<int64_t> keys;
  for (const auto& [key, number] : expected) {
    ASSERT_EQ(index.find(key), number);
    keys.push_back(key);
  }
  std::vector<int64_t> numbers(keys.size(), -7);
  index.find(keys, numbers.data());
  for (size_t i = 0; i < keys.size(); ++i) ASSERT_EQ(numbers[i], expected.at(keys[i]));
  Reference visited;
  index.for_each([&](int64_t key, int64_t number) { visited[key] = number; });
  EXPECT_EQ(visited, expected);
}

TEST(KeyIndex, GrowsOverManyDivisions) {
  KeyIndex index;
  Reference expected;
  int64_t next = 1, checked = 1;
  for (const int64_t stride : {int64_t{1}, int64_t{1} << 32, int64_t{-3}}) {
    for (int64_t k = 0; k < 50'000; ++k) {
      const int64_t key = k * stride;
      int64_t& number = index.insert(key);
      ASSERT_EQ(number, expected.contains(key) ? expected[key] : 0);
      if (number == 0) number = next++;
      expected[key] = number;
      if (next == checked * 2) {
        checked = next;
        expect_equal(index, expected);
      }
    }
  }
  expect_equal(index, expected);
  for (int64_t k = 50'000; k < 60'000; ++k) EXPECT_EQ(index.find(k), 0);
}

TEST(KeyIndex, AnyKeyIsAKey) {
  KeyIndex index;
  const int64_t keys[] = {0, -1, 1, INT64_MIN, INT64_MAX};
  for (const int64_t key : keys) EXPECT_EQ(index.find(key), 0);
  EXPECT_FALSE(index.erase(0));
  for (size_t i = 0; i < 5; ++i) index.insert(keys[i]) = static_cast<int64_t>(i) - 9;
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(index.find(keys[i]), static_cast<int64_t>(i) - 9);
  index.find(Span<int64_t>(), nullptr);
}

TEST(KeyIndex, RandomInsertionsAndRemovals) {
  std::mt19937_64 random(3);
  for (const uint64_t range : {20'000U, 100'000U}) {
    KeyIndex index;
    Reference expected;
    for (int64_t i = 1; i < 300'000; ++i) {
      const auto key = static_cast<int64_t>(random() % range * 0x9e3779b97f4a7c15U);
      if (random() % 3 == 0) {
        ASSERT_EQ(index.erase(key), expected.erase(key) == 1);
        ASSERT_EQ(index.find(key), 0);
      } else {
        index.insert(key) = i;
        expected[key] = i;
      }
    }
    expect_equal(index, expected);
  }
}

TEST(KeyIndex, TakesAtMost40BytesAKey) {
  KeyIndex index;
  for (int64_t key = 1; key <= 1'000'000; ++key) {
    index.insert(key * 7) = key;
    if (key >= 100'000 && key % 1000 == 0) {
      ASSERT_LT(static_cast<double>(index.bytes()), 40.0 * static_cast<double>(key));
    }
  }
}

}  // namespace
}  // namespace tercel::recsys
