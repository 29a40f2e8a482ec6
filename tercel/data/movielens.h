// Implicit feedback out of MovieLens' ratings: what users have rated, and items that they have not.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tercel/data/dataset.h"
#include "tercel/data/formats/norm_format.h"
#include "tercel/util/enum_names.h"
#include "tercel/util/export.h"
#include "tercel/util/function_ref.h"
#include "tercel/util/options.h"

namespace tercel::data {

/** What train negatives are counted by. */
enum class NegativesPer : uint8_t { Rating, User };

constexpr auto enum_names(NegativesPer) {
  return std::to_array<EnumName<NegativesPer>>({{NegativesPer::Rating, "rating"}, {NegativesPer::User, "user"}});
}

struct MovielensOptions {
  double min_rating = 0;
  int64_t min_ratings = 20;
  int64_t train_negatives = 4;
  NegativesPer negatives_per = NegativesPer::Rating;
  int64_t test_negatives = 99;
  uint64_t seed = 0;
  int64_t rows_per_file = 4 << 20;
  /** Of the files; the default is that of HugeCTR's NCF sample. */
  std::shared_ptr<const DatasetFormat> format = norm_format({KeyType::U32, CheckMode::None});

  static constexpr auto fields() {  // options of the format are its own
    return option_list(
        option_field<&MovielensOptions::min_rating>("min_rating", "smaller ratings are left out"),
        option_field<&MovielensOptions::min_ratings>("min_ratings", "users with fewer ratings are left out",
                                                     at_least(1)),
        option_field<&MovielensOptions::train_negatives>(
            "train_negatives", "items that the user has not rated, drawn for each train rating or user", at_least(0)),
        option_field<&MovielensOptions::negatives_per>("negatives_per", "what train_negatives counts by"),
        option_field<&MovielensOptions::test_negatives>(
            "test_negatives",
            "different items that the user has not rated, behind the last rating of each user, which is the test "
            "part; 0: no test part",
            at_least(0)),
        option_field<&MovielensOptions::seed>("seed", "of the negatives and the order of the train rows"),
        option_field<&MovielensOptions::rows_per_file>("rows_per_file", "rows of each data file", at_least(1)));
  }
};

struct MovielensResult {
  Dataset dataset;
  int64_t users = 0, items = 0;
  int64_t train_positives = 0;
  int64_t test_positives = 0;
};

/** Progress: a share of the work from 0 to 1, and rows read or written. */
using MovielensProgress = FunctionRef<void(double share, int64_t rows)>;

/**
 * Converts ratings of ml-100k (u.data), ml-1m (ratings.dat), ml-20m and later ones (ratings.csv) to a dataset of
 * two slots, user and item, in a folder that appears when it is complete. A user's last rating by time is a test row,
 * followed by its negatives; train rows are in random order. The files users.txt and items.txt have the texts of the
 * ids, a line for each. Memory is about 40 bytes for each rating, whatever the number of negatives. With `replace`, the
 * folder may hold a dataset already. ConfigError for wrong options; DataError that names file and line for invalid
 * text, and for a user who has rated nearly all items.
 */
TERCEL_API MovielensResult convert_movielens(const std::vector<std::string>& sources, const std::string& folder,
                                             const MovielensOptions& options, bool replace, MovielensProgress progress);

}  // namespace tercel::data
