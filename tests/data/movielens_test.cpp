#include "tercel/data/movielens.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tercel/data/ratings_impl.h"
#include "tercel/util/error.h"
#include "tercel/util/file.h"
#include "tests/data/norm_data.h"
#include "tests/support/errors.h"
#include "tests/util/gzip_data.h"

namespace tercel::data::test {
namespace {

using tercel::test::gzip;

struct Rating {
  std::string user, item;
  int rating, time;
};

/** Ratings of `users` users, a few of them twice, in no order; user u has rated 20 + u of 60 items. */
std::vector<Rating> some_ratings(int users = 12) {
  std::vector<Rating> ratings;
  for (int u = 0; u < users; ++u)
    for (int k = 0; k < 20 + u; ++k) {
      const int item = (k * 7 + u * 3) % 60;
      ratings.push_back({"u" + std::to_string(u * u), "m" + std::to_string(item), k % 5 + 1, 1000 + (k * 37) % 101});
      if (k == 4) ratings.push_back({ratings.back().user, ratings.back().item, 5, 5000});
    }
  return ratings;
}

enum class Layout { Csv, Bare, Tabs, Colons };

std::string text_of(const std::vector<Rating>& ratings, Layout layout) {
  const std::string_view between = layout == Layout::Tabs ? "\t" : layout == Layout::Colons ? "::" : ",";
  std::string text = layout == Layout::Csv ? "userId,movieId,rating,timestamp\n" : "";
  for (const Rating& one : ratings)
    text += one.user + std::string(between) + one.item + std::string(between) + std::to_string(one.rating) +
            std::string(between) + std::to_string(one.time) + "\n";
  return text;
}

class Movielens : public testing::Test {
 protected:
  MovielensResult convert(const std::string& text, const MovielensOptions& options = {}) {
    return convert_movielens({folder_.put("ratings", text)}, folder_ / "data", options, /*replace=*/true,
                             [](double share, int64_t) { ASSERT_TRUE(share >= 0 && share <= 1); });
  }
  Rows rows(const Dataset& dataset, PartName part) {
    BatchReader reader(dataset, part, {});
    return read_rest(reader);
  }
  std::string bytes(const Dataset& dataset, PartName part) {
    return read_file(dataset.path_of(dataset.part(part).files[0]), 1 << 24);
  }

  TemporaryFolder folder_;
};

TEST_F(Movielens, PositivesAreRatingsAndNegativesAreNot) {
  const std::vector<Rating> ratings = some_ratings();
  MovielensOptions options;
  options.train_negatives = 3;
  options.test_negatives = 20;
  const MovielensResult result = convert(text_of(ratings, Layout::Csv), options);
  const Dataset dataset = load_dataset(folder_ / "data");
  EXPECT_EQ(result.users, 12);
  EXPECT_EQ(result.items, 60);
  EXPECT_EQ(dataset.schema.slot_size_array(), (std::vector<int64_t>{12, 60}));

  // By the definition: ids by first appearance, each item once, the last by time is the test row.
  std::map<std::string, int64_t> users, items;
  std::map<int64_t, std::vector<std::pair<int, int64_t>>> of_user;
  std::set<std::pair<int64_t, int64_t>> rated;
  for (const Rating& one : ratings) {
    const int64_t user = users.emplace(one.user, users.size()).first->second,
                  item = items.emplace(one.item, items.size()).first->second;
    of_user[user].emplace_back(one.time, item);
  }
  std::vector<int64_t> last;
  for (auto& [user, list] : of_user) {
    std::stable_sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [time, item] : list)
      if (rated.emplace(user, item).second) {
        last.resize(static_cast<size_t>(user) + 1);
        last.back() = item;
      }
  }
  const Rows test = rows(dataset, PartName::Test);
  ASSERT_EQ(test.count, 12 * 21);
  for (int64_t row = 0; row < test.count; ++row) {
    const auto at = static_cast<size_t>(row);
    const int64_t user = test.keys[2 * at], item = test.keys[2 * at + 1] - 12;
    ASSERT_EQ(user, row / 21) << "the rows of a user together";
    ASSERT_EQ(test.labels[at], row % 21 == 0 ? 1 : 0);
    if (row % 21 == 0)
      ASSERT_EQ(item, last[static_cast<size_t>(user)]);
    else
      ASSERT_FALSE(rated.contains({user, item}));
    for (int64_t other = row - row % 21; other < row; ++other)
      ASSERT_NE(test.keys[2 * static_cast<size_t>(other) + 1], test.keys[2 * at + 1]) << "different items";
  }
  const Rows train = rows(dataset, PartName::Train);
  std::set<std::pair<int64_t, int64_t>> positives;
  int64_t negatives = 0;
  for (size_t row = 0; row < static_cast<size_t>(train.count); ++row) {
    const std::pair<int64_t, int64_t> pair{train.keys[2 * row], train.keys[2 * row + 1] - 12};
    if (train.labels[row] != 0)
      ASSERT_TRUE(positives.insert(pair).second && rated.contains(pair));
    else
      ASSERT_TRUE(++negatives && !rated.contains(pair));
  }
  for (int64_t user = 0; user < 12; ++user) rated.erase({user, last[static_cast<size_t>(user)]});
  EXPECT_EQ(positives, rated);
  EXPECT_EQ(negatives, 3 * static_cast<int64_t>(positives.size()));
  EXPECT_EQ(result.train_positives, static_cast<int64_t>(positives.size()));
  EXPECT_EQ(result.test_positives, 12);
  EXPECT_FALSE(std::is_sorted(train.keys.begin(), train.keys.end())) << "in random order";
}

TEST_F(Movielens, LayoutsGiveTheSameFiles) {
  const std::vector<Rating> ratings = some_ratings();
  MovielensOptions options;
  options.test_negatives = 20;
  std::vector<std::string> all;
  for (const Layout layout : {Layout::Csv, Layout::Bare, Layout::Tabs, Layout::Colons})
    for (const bool zipped : {false, true}) {
      std::string text = text_of(ratings, layout);
      if (zipped) text = gzip(text);
      const Dataset dataset = convert(text, options).dataset;
      all.push_back(bytes(dataset, PartName::Train) + bytes(dataset, PartName::Test) +
                    read_file(folder_ / "data/users.txt", 1 << 20) + read_file(folder_ / "data/items.txt", 1 << 20));
    }
  for (const std::string& one : all) EXPECT_EQ(one, all[0]);
  EXPECT_EQ(read_file(folder_ / "data/users.txt", 1 << 20).substr(0, 9), "u0\nu1\nu4\n");
}

/** As the sample's own writer does it: c_longlong, c_float, c_int and c_uint. */
TEST_F(Movielens, FilesAreThoseOfTheSamplesWriter) {
  MovielensOptions options;
  options.test_negatives = 5;
  const Dataset dataset = convert(text_of(some_ratings(), Layout::Tabs), options).dataset;
  for (const PartName part : {PartName::Train, PartName::Test}) {
    const Rows expected = rows(dataset, part);
    std::string bytes;
    const auto put = [&](auto value) {
      char raw[sizeof(value)];
      std::memcpy(raw, &value, sizeof(value));
      bytes.append(raw, sizeof(value));
    };
    for (const int64_t head : {int64_t{0}, expected.count, int64_t{1}, int64_t{1}, int64_t{2}}) put(head);
    for (int i = 0; i < 3; ++i) put(int64_t{0});
    for (size_t row = 0; row < static_cast<size_t>(expected.count); ++row) {
      put(expected.labels[row]);
      put(0.0F);
      for (size_t slot = 0; slot < 2; ++slot) {
        put(int32_t{1});
        put(static_cast<uint32_t>(expected.keys[2 * row + slot]));
      }
    }
    EXPECT_TRUE(this->bytes(dataset, part) == bytes);
  }
}

TEST_F(Movielens, NegativesOfUsersAndSeeds) {
  MovielensOptions options;
  options.negatives_per = NegativesPer::User;
  options.train_negatives = 100;
  options.test_negatives = 1;
  options.seed = 5;
  const std::string text = text_of(some_ratings(), Layout::Csv);
  const MovielensResult result = convert(text, options);
  EXPECT_EQ(result.dataset.train.rows(), result.train_positives + 12 * 100);
  EXPECT_EQ(result.dataset.test.rows(), 24);
  std::map<int64_t, int> negatives;
  const Rows train = rows(result.dataset, PartName::Train);
  for (size_t row = 0; row < static_cast<size_t>(train.count); ++row)
    if (train.labels[row] == 0) ++negatives[train.keys[2 * row]];
  EXPECT_EQ(negatives.size(), 12u);
  for (const auto& [user, count] : negatives) EXPECT_EQ(count, 100);
  EXPECT_EQ(rows(convert(text, options).dataset, PartName::Train), train);
  options.seed = 6;
  EXPECT_NE(rows(convert(text, options).dataset, PartName::Train), train);

  options.train_negatives = 0;
  options.test_negatives = 0;
  const MovielensResult bare = convert(text, options);
  EXPECT_TRUE(bare.dataset.test.files.empty());
  EXPECT_EQ(bare.dataset.train.rows(), result.train_positives + 12) << "the last ratings are train rows then";
}

TEST_F(Movielens, NegativesAreUniform) {
  // One user has rated item 0 of 10; each other item is expected 1,111 times with a deviation of 31.
  std::string text;
  for (int u = 0; u < 2; ++u)
    for (int k = 0; k < (u == 0 ? 1 : 10); ++k)
      text += std::to_string(u) + "\t" + std::to_string(k) + "\t5\t" + std::to_string(k) + "\n";
  MovielensOptions options;
  options.min_ratings = 1;
  options.test_negatives = 0;
  options.train_negatives = 0;
  convert(text, options);
  options.train_negatives = 10'000;
  options.negatives_per = NegativesPer::User;
  TERCEL_EXPECT_THROW(convert(text, options), DataError,
                      "movielens: user '1': expected 1 of the 10 items without a rating, for negatives, found 0");
  text.pop_back();
  text = text.substr(0, text.rfind('\n') + 1) + "2\t9\t5\t1\n";
  const Rows train = rows(convert(text, options).dataset, PartName::Train);
  std::map<int64_t, int> counts;
  for (size_t row = 0; row < static_cast<size_t>(train.count); ++row)
    if (train.labels[row] == 0 && train.keys[2 * row] == 0) ++counts[train.keys[2 * row + 1] - 3];
  EXPECT_EQ(counts.size(), 9u);
  for (const auto& [item, count] : counts) EXPECT_NEAR(count, 1111, 5 * 32) << item;
}

TEST_F(Movielens, RatingsAndUsersAreFiltered) {
  MovielensOptions options;
  options.min_rating = 4;
  options.min_ratings = 11;
  options.test_negatives = 1;
  const std::vector<Rating> ratings = some_ratings();
  std::map<std::string, int> counts;
  for (const Rating& one : ratings) counts[one.user] += one.rating >= 4 ? 1 : 0;
  const auto kept = std::count_if(counts.begin(), counts.end(), [](const auto& user) { return user.second >= 11; });
  ASSERT_GT(kept, 2);
  ASSERT_LT(kept, 12);
  const MovielensResult result = convert(text_of(ratings, Layout::Colons), options);
  EXPECT_EQ(result.users, kept);
  EXPECT_EQ(result.dataset.schema.slots[0].size, kept);
  options.min_ratings = 1000;
  TERCEL_EXPECT_THROW(convert(text_of(ratings, Layout::Csv), options), DataError,
                      "movielens: expected users of at least 1000 ratings, as option 'min_ratings' says, found");
  options.min_rating = 6;
  TERCEL_EXPECT_THROW(convert(text_of(ratings, Layout::Csv), options), DataError,
                      "ratings: expected ratings of at least 6, as option 'min_rating' says, found none among");
}

TEST_F(Movielens, MoreRowsThanCanBeCountedAreRefused) {
  MovielensOptions options;
  options.test_negatives = 10;
  for (const int64_t negatives : {int64_t{1} << 59, int64_t{1} << 60, std::numeric_limits<int64_t>::max()}) {
    options.train_negatives = negatives;
    TERCEL_EXPECT_THROW(convert(text_of(some_ratings(), Layout::Csv), options), ConfigError,
                        "movielens: option 'train_negatives': expected rows that fit in 64 bits, found");
  }
  EXPECT_FALSE(exists(folder_ / "data"));
}

TEST_F(Movielens, WrongTextIsNamed) {
  const auto refused = [&](const std::string& text, const std::string& message) {
    TERCEL_EXPECT_THROW(convert(text), DataError, message);
    EXPECT_FALSE(exists(folder_ / "data"));
  };
  refused("", "ratings: line 1: expected a rating, as in MovieLens' ratings.csv");
  refused("hello\n", "(by '::'), found 'hello'");
  refused("userId,movieId,rating,timestamp\n", "ratings: expected ratings, found none");
  refused("userId,movieId,rating\n1,2,3\n", "ratings: line 1: expected a column 'timestamp'");
  refused("1,2,3,4\n1,2,3\n", "ratings: line 2: expected 4 columns, found 3 columns");
  refused("1,2,x,4\n", "ratings: line 1: column 3 (rating): expected a number, found 'x'");
  refused("1\t2\t3\t4\n1\t2\t3\tx\n", "ratings: line 2: column 4: expected a number or a timestamp");
  refused("1::2::3::4\n::2::3::4\n", "ratings: line 2: expected a user, found nothing");
  refused("userId,movieId,rating,timestamp\n1,,3,4\n", "ratings: line 2: expected an item, found nothing");
  refused("1::2::3::4\n1:x:2::3::4\n",
          "ratings: line 2: expected columns separated by '::', found 'x' between two ':'");
  refused("1::2::3::4\n1::2::3\n", "ratings: line 2: expected 7 columns, found 5 columns");
  TERCEL_EXPECT_THROW(convert_movielens({"-"}, folder_ / "data", {}, /*replace=*/false, [](double, int64_t) {}),
                      ConfigError, "movielens: expected files of ratings, found the standard input");
  TERCEL_EXPECT_THROW(convert_movielens({}, folder_ / "data", {}, /*replace=*/false, [](double, int64_t) {}),
                      ConfigError, "movielens: expected files of ratings, found none");
}

TEST_F(Movielens, CutAndChangedFilesGiveErrorsOrRatings) {
  for (const Layout layout : {Layout::Csv, Layout::Tabs, Layout::Colons}) {
    const std::string text = text_of(some_ratings(2), layout);
    const auto check = [&](const std::string& damaged) {
      try {
        const Ratings ratings = read_ratings({folder_.put("damaged", damaged)}, 0, [](int64_t, int64_t, int64_t) {});
        ASSERT_EQ(ratings.users.size(), ratings.times.size());
        ASSERT_EQ(ratings.users.size(), ratings.items.size());
        make_interactions(ratings, 1);
      } catch (const DataError& error) {
        ASSERT_EQ(std::string(error.what()).find((folder_ / "damaged") + ":"), 0u) << error.what();
      }
    };
    for (size_t length = 0; length < 120; ++length) check(text.substr(0, length));
    for (size_t at = 0; at < 80; ++at)
      for (const char other : {'\0', ':', ',', '\t', '\n', '"', 'x', '\xff'}) {
        std::string changed = text;
        changed[at] = other;
        check(changed);
      }
  }
}

}  // namespace
}  // namespace tercel::data::test
