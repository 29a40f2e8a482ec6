#include "tercel/util/span.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace tercel {
namespace {

std::vector<int64_t> copied(IntSpan list) { return list.to_vector(); }

TEST(Span, TakesWhatACallWrites) {
  const std::vector<int64_t> two{3, -1};
  EXPECT_EQ(copied({}), std::vector<int64_t>{});
  EXPECT_EQ(copied({3, -1}), two);
  EXPECT_EQ(copied(two), two);
  EXPECT_EQ(copied(std::array<int64_t, 2>{3, -1}), two);
  const int64_t plain[] = {3, -1};
  EXPECT_EQ(copied(plain), two);
}

TEST(Span, TakesASingleElement) {
  EXPECT_EQ(copied(7), std::vector<int64_t>{7});
  EXPECT_EQ(copied({7}), std::vector<int64_t>{7});
  const int64_t dim = 2;
  const IntSpan one = dim;
  EXPECT_EQ(one.data(), &dim);
  EXPECT_EQ(one.size(), 1u);
  EXPECT_FALSE((std::is_convertible_v<const char*, IntSpan>));
}

TEST(Span, PartsAndComparison) {
  const std::vector<int64_t> four{1, 2, 3, 4};
  const IntSpan all = four;
  EXPECT_EQ(all.subspan(1, 2), IntSpan({2, 3}));
  EXPECT_FALSE(all == all.subspan(0, 3));
  EXPECT_FALSE(all == IntSpan({1, 2, 3, 5}));
  EXPECT_EQ(all.front(), 1);
  EXPECT_EQ(all.back(), 4);
}

}  // namespace
}  // namespace tercel
