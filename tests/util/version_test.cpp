#include "tercel/util/version.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

namespace tercel {
namespace {

TEST(Version, HasThreeNumbers) {
  const std::string_view text = version();
  EXPECT_EQ(std::count(text.begin(), text.end(), '.'), 2) << text;
  EXPECT_TRUE(std::all_of(text.begin(), text.end(), [](char c) { return c == '.' || (c >= '0' && c <= '9'); })) << text;
  EXPECT_NE(text.front(), '.');
  EXPECT_NE(text.back(), '.');
}

TEST(Version, RevisionIsACommitOrEmpty) {
  const std::string_view text = revision();
  EXPECT_TRUE(text.empty() || text.size() == 12) << text;
  EXPECT_EQ(text.find_first_not_of("0123456789abcdef"), std::string_view::npos) << text;
}

}  // namespace
}  // namespace tercel
