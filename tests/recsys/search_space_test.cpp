#include "tercel/recsys/search_space.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/support/errors.h"

namespace tercel::recsys {
namespace {

/** The values of an entry in trials 1 to `count`. */
std::vector<std::string> drawn(std::string_view search, int64_t count, uint64_t seed = 1) {
  const std::vector<SearchRange> ranges = {parse_search("solver.seed=1"), parse_search(search)};
  std::vector<std::string> values;
  for (int64_t trial = 1; trial <= count; ++trial) {
    const std::vector<std::string> assignments = draw_trial(ranges, seed, trial);
    EXPECT_EQ(assignments.size(), 2u);
    EXPECT_EQ(assignments[0], "solver.seed=1");
    EXPECT_EQ(assignments[1].find(ranges[1].entry + "="), 0u);
    values.push_back(assignments[1].substr(ranges[1].entry.size() + 1));
  }
  return values;
}

TEST(SearchSpace, TheFirstTrialChangesNothing) {
  EXPECT_TRUE(draw_trial(std::vector<SearchRange>{parse_search("solver.lr=1,2")}, 1, 0).empty());
}

TEST(SearchSpace, ChoicesAreDrawnEquallyOften) {
  std::map<std::string, int64_t> counts;
  for (const std::string& value : drawn("solver.batchsize=128,256,512", 3000)) ++counts[value];
  EXPECT_EQ(counts.size(), 3u);
  for (const auto& [value, count] : counts) EXPECT_NEAR(static_cast<double>(count), 1000, 130) << value;
  const std::vector<std::string> lists = drawn("layers.logit.mlp_param.num_outputs=256,128|64", 50);
  EXPECT_EQ(std::set<std::string>(lists.begin(), lists.end()), (std::set<std::string>{"256,128", "64"}));
}

TEST(SearchSpace, NumbersLieInTheirRange) {
  int64_t below = 0;
  for (const std::string& value : drawn("solver.lr=log:0.001:0.1", 1000)) {
    const double v = std::stod(value);
    EXPECT_GE(v, 0.001);
    EXPECT_LE(v, 0.1);
    below += v < 0.01 ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(below), 500, 80) << "half of them in each decade";
  below = 0;
  for (const std::string& value : drawn("layers.d.rate=uniform:0:0.5", 1000)) below += std::stod(value) < 0.1 ? 1 : 0;
  EXPECT_NEAR(static_cast<double>(below), 200, 65);
  std::map<std::string, int64_t> counts;
  for (const std::string& value : drawn("x.y=int:2:4", 3000)) ++counts[value];
  EXPECT_EQ(counts.size(), 3u);
  for (const auto& [value, count] : counts) EXPECT_NEAR(static_cast<double>(count), 1000, 130) << value;
  counts.clear();
  for (const std::string& value : drawn("x.y=logint:1:3", 3000)) ++counts[value];  // of [1, 4): 1 is half
  EXPECT_EQ(counts.size(), 3u);
  EXPECT_NEAR(static_cast<double>(counts["1"]), 1500, 150);
}

TEST(SearchSpace, NumbersOfANarrowRangeHaveMoreDigits) {
  for (const char* search : {"optimizer.beta1=uniform:0.9996:0.9999", "solver.lr=log:0.12345:0.12349"})
    for (const std::string& value : drawn(search, 100)) {
      const SearchRange range = parse_search(search);
      EXPECT_GE(std::stod(value), range.low) << value;
      EXPECT_LE(std::stod(value), range.high) << value;
      EXPECT_LE(value.size(), 8u) << value;
    }
}

TEST(SearchSpace, TrialsAreFunctionsOfTheSeed) {
  EXPECT_EQ(drawn("solver.lr=log:0.001:0.1", 20), drawn("solver.lr=log:0.001:0.1", 20));
  EXPECT_NE(drawn("solver.lr=log:0.001:0.1", 20, 2), drawn("solver.lr=log:0.001:0.1", 20));
}

TEST(SearchSpace, MistakesAreRefused) {
  const std::pair<const char*, const char*> cases[] = {
      {"solver.lr", "expected SECTION.OPTION=VALUES"},
      {"lr=1,2", "expected SECTION.OPTION=VALUES"},
      {"solver.lr=", "expected SECTION.OPTION=VALUES"},
      {"solver.lr=1,,2", "found an empty one"},
      {"solver.lr=log:0:1", "above 0 for log, found 0"},
      {"solver.lr=log:0.1", "expected log:LOW:HIGH with numbers LOW < HIGH"},
      {"solver.lr=log:1:0.1", "expected log:LOW:HIGH with numbers LOW < HIGH"},
      {"solver.lr=uniform:a:b", "expected uniform:LOW:HIGH"},
      {"solver.lr=uniform:0:inf", "expected uniform:LOW:HIGH"},
      {"solver.lr=int:0.5:3", "expected integers for int"}};
  for (const auto& [text, says] : cases) TERCEL_EXPECT_THROW(parse_search(text), ConfigError, says);
}

}  // namespace
}  // namespace tercel::recsys
