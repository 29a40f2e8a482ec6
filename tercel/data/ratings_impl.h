// MovieLens' ratings: files of users, items, ratings and times. Private.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tercel/util/function_ref.h"

namespace tercel::data {

/** Ratings in the order of the files. */
struct Ratings {
  std::vector<uint32_t> users, items;  // ids, by first appearance
  std::vector<double> times;
  std::vector<std::string> user_names, item_names;  // of the ids: their texts in the files
};

/**
 * Reads files, plain or gzip, all in one of the layouts of MovieLens: ratings.csv (userId, movieId, rating, timestamp,
 * with a header or, without one, in this order), u.data (the same, separated by tabs) and ratings.dat (separated by
 * "::"), which the first line tells apart. Ratings below `min_rating` are left out. DataError that names file and line
 * for another layout, and for ratings and times that are no numbers.
 */
Ratings read_ratings(const std::vector<std::string>& sources, double min_rating,
                     FunctionRef<void(int64_t rows, int64_t bytes, int64_t all_bytes)> progress);

/** What each user has rated, without users of fewer than `min_ratings` ratings, and each item once. */
struct Interactions {
  std::vector<std::string> user_names, item_names;
  std::vector<int64_t> first;    // [users + 1] where the items of each user begin
  std::vector<uint32_t> items;   // by time, those of equal times in the order of the files
  std::vector<uint32_t> sorted;  // the same of each user by id

  int64_t num_users() const { return static_cast<int64_t>(user_names.size()); }
  int64_t num_items() const { return static_cast<int64_t>(item_names.size()); }
  /** Items of a user. */
  int64_t count(int64_t user) const { return first[static_cast<size_t>(user) + 1] - first[static_cast<size_t>(user)]; }
  /** The place of a user's items. */
  int64_t begin(int64_t user) const { return first[static_cast<size_t>(user)]; }
  bool contains(int64_t user, uint32_t item) const;
};

/** Ids are numbered again, by first appearance in what is left. */
Interactions make_interactions(Ratings ratings, int64_t min_ratings);

}  // namespace tercel::data
