#include <algorithm>
#include <limits>
#include <memory>
#include <numeric>
#include <utility>

#include "tercel/data/random_access_file.h"
#include "tercel/data/ratings_impl.h"
#include "tercel/data/row_parser_impl.h"
#include "tercel/data/text_table.h"
#include "tercel/data/token_table_impl.h"
#include "tercel/util/error.h"
#include "tercel/util/file_stream.h"
#include "tercel/util/format.h"

namespace tercel::data {

namespace {

constexpr size_t kMaxFirstLine = 4096;

/** The first line of a file, which may be cut. */
std::string first_line(const std::string& path) {
  FileInfo info;
  const std::unique_ptr<GzipReader> reader = open_data_stream(path, info);
  std::string text(kMaxFirstLine, '\0');
  size_t size = 0;
  while (size < text.size()) {
    const size_t count = reader->read_some(text.data() + size, text.size() - size);
    if (count == 0) break;
    size += count;
  }
  text.resize(size);
  std::string line = text.substr(0, text.find('\n'));
  if (line.ends_with('\r')) line.pop_back();
  return line;
}

TextField field_of(std::string column, std::string name) {
  TextField field;
  field.column = std::move(column);
  field.name = std::move(name);
  return field;
}

/** The layout that the first line of a file has. */
TextFormat layout_of(const std::string& path, double min_rating) {
  const std::string line = first_line(path);
  TextFormat format;
  format.label_name = "rating";
  format.positive = {">=" + format_double(min_rating)};
  const auto set_columns = [&](const char* user, const char* item, const char* rating, const char* time) {
    format.fields = {field_of(user, "user"), field_of(item, "item")};
    format.label = rating;
    format.time_column = time;
  };
  if (line.find("::") != std::string::npos) {
    // Columns between two colons, with an empty one behind each.
    format.delimiter = ':';
    format.num_columns = 7;
    set_columns("1", "3", "5", "7");
    for (const char* between : {"2", "4", "6"}) format.fields.push_back(field_of(between, "between '::'"));
    return format;
  }
  const bool tabs = line.find('\t') != std::string::npos;
  TERCEL_CHECK(tabs || line.find(',') != std::string::npos, DataError, printable(path),
               ": line 1: expected a rating, as in MovieLens' ratings.csv (userId,movieId,rating,timestamp), u.data "
               "(separated by tabs) or ratings.dat (by '::'), found ",
               line.empty() ? "nothing" : quoted_text(line));
  format.delimiter = tabs ? '\t' : ',';
  format.header = !tabs && line.find("userId") != std::string::npos;
  if (format.header) {
    set_columns("userId", "movieId", "rating", "timestamp");
  } else {
    format.num_columns = 4;
    set_columns("1", "2", "3", "4");
  }
  return format;
}

/** Numbers texts by first appearance. */
class Numbering {
 public:
  uint32_t operator()(std::string_view text) {
    const int64_t known = table_.find(text);
    if (known > 0) return static_cast<uint32_t>(known - 1);
    names_.emplace_back(text);
    TERCEL_ASSERT(table_.add(text, static_cast<int64_t>(names_.size())));
    return static_cast<uint32_t>(names_.size() - 1);
  }
  std::vector<std::string> take_names() { return std::move(names_); }

 private:
  TokenTable table_;
  std::vector<std::string> names_;
};

void check_values(const TextBlock& block, const TextRows& rows, int64_t row) {
  const auto at = static_cast<size_t>(row);
  // Records are lines here, all of which are parsed.
  const auto fail = [&](std::string_view expected, std::string_view found) {
    throw_error<DataError>({printable(block.name), ": line ", block.lines_before + (block.has_header ? 1 : 0) + row + 1,
                            ": expected ", expected, ", found ", found});
  };
  for (size_t f = 0; f < 2; ++f)
    if (rows.fields[f].values[at].empty()) fail(f == 0 ? "a user" : "an item", "nothing");
  for (size_t f = 2; f < rows.fields.size(); ++f)
    if (const std::string_view text = rows.fields[f].values[at]; !text.empty())
      fail("columns separated by '::'", quoted_text(text) + " between two ':'");
}

/** Numbers ids that are kept again, by first appearance. */
class Renumbering {
 public:
  explicit Renumbering(std::vector<std::string> names)
      : before_(std::move(names)), ids_(before_.size(), std::numeric_limits<uint32_t>::max()) {}

  uint32_t operator()(uint32_t id) {
    uint32_t& now = ids_[id];
    if (now == std::numeric_limits<uint32_t>::max()) {
      now = static_cast<uint32_t>(names_.size());
      names_.push_back(std::move(before_[id]));
    }
    return now;
  }
  std::vector<std::string> take_names() { return std::move(names_); }

 private:
  std::vector<std::string> before_, names_;
  std::vector<uint32_t> ids_;
};

/** Drops what is not marked, in place. */
template <class T>
void keep_marked(std::vector<T>& values, const std::vector<uint8_t>& marks) {
  size_t kept = 0;
  for (size_t i = 0; i < values.size(); ++i)
    if (marks[i] != 0) values[kept++] = values[i];
  values.resize(kept);
}

}  // namespace

Ratings read_ratings(const std::vector<std::string>& sources, double min_rating,
                     FunctionRef<void(int64_t rows, int64_t bytes, int64_t all_bytes)> progress) {
  TERCEL_CHECK(!sources.empty(), ConfigError, "movielens: expected files of ratings, found none");
  std::vector<TextSource> files;
  for (const std::string& path : sources) {
    TERCEL_CHECK(path != "-", ConfigError, "movielens: expected files of ratings, found the standard input ('-')");
    files.push_back({path, path});
  }
  TextTable table(layout_of(sources.front(), min_rating), std::move(files));
  Ratings ratings;
  Numbering users, items;
  TextBlock block;
  TextRows rows;
  int64_t count = 0;
  while (table.next(block)) {
    table.parse(block, rows);
    for (int64_t row = 0; row < rows.rows; ++row) {
      check_values(block, rows, row);
      const auto at = static_cast<size_t>(row);
      if (rows.labels[at] == 0) continue;
      ratings.users.push_back(users(rows.fields[0].values[at]));
      ratings.items.push_back(items(rows.fields[1].values[at]));
      ratings.times.push_back(rows.times[at]);
    }
    count += rows.rows;
    progress(count, table.bytes_done(), table.bytes_total());
  }
  const std::string name = printable(sources.front());
  TERCEL_CHECK(count > 0, DataError, name, ": expected ratings, found none");
  TERCEL_CHECK(!ratings.users.empty(), DataError, name, ": expected ratings of at least ", min_rating,
               ", as option 'min_rating' says, found none among ", count);
  ratings.user_names = users.take_names();
  ratings.item_names = items.take_names();
  return ratings;
}

bool Interactions::contains(int64_t user, uint32_t item) const {
  const auto from = sorted.begin() + begin(user);
  return std::binary_search(from, from + count(user), item);
}

Interactions make_interactions(Ratings ratings, int64_t min_ratings) {
  const size_t all = ratings.users.size();
  std::vector<int64_t> counts(ratings.user_names.size());
  for (const uint32_t user : ratings.users) ++counts[user];
  const int64_t most = counts.empty() ? 0 : *std::max_element(counts.begin(), counts.end());
  TERCEL_CHECK(most >= min_ratings, DataError, "movielens: expected users of at least ", min_ratings,
               " ratings, as option 'min_ratings' says, found ", most, " at most");
  std::vector<uint8_t> marks(all);
  for (size_t i = 0; i < all; ++i) marks[i] = counts[ratings.users[i]] >= min_ratings ? 1 : 0;
  keep_marked(ratings.users, marks);
  keep_marked(ratings.items, marks);
  keep_marked(ratings.times, marks);
  Renumbering users(std::move(ratings.user_names)), items(std::move(ratings.item_names));
  for (uint32_t& user : ratings.users) user = users(user);
  for (uint32_t& item : ratings.items) item = items(item);

  Interactions out;
  out.user_names = users.take_names();
  out.item_names = items.take_names();
  const size_t num_users = out.user_names.size(), rows = ratings.users.size();
  std::vector<int64_t> next(num_users + 1);
  for (const uint32_t user : ratings.users) ++next[user + 1];
  std::partial_sum(next.begin(), next.end(), next.begin());
  // Rows of each user in the order of the files, then by time.
  std::vector<uint32_t> order(rows);
  {
    std::vector<int64_t> place(next.begin(), next.end() - 1);
    for (size_t row = 0; row < rows; ++row)
      order[static_cast<size_t>(place[ratings.users[row]]++)] = static_cast<uint32_t>(row);
  }
  out.first.push_back(0);
  std::vector<std::pair<uint32_t, uint32_t>> seen;  // item, and where it is among the user's
  for (size_t user = 0; user < num_users; ++user) {
    const auto begin = order.begin() + next[user], end = order.begin() + next[user + 1];
    std::stable_sort(begin, end, [&](uint32_t a, uint32_t b) { return ratings.times[a] < ratings.times[b]; });
    seen.clear();
    for (auto row = begin; row != end; ++row)
      seen.emplace_back(ratings.items[*row], static_cast<uint32_t>(row - begin));
    std::sort(seen.begin(), seen.end());
    // Of an item that was rated again, the first time counts.
    seen.erase(std::unique(seen.begin(), seen.end(), [](const auto& a, const auto& b) { return a.first == b.first; }),
               seen.end());
    for (const auto& [item, place] : seen) out.sorted.push_back(item);
    std::sort(seen.begin(), seen.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    for (const auto& [item, place] : seen) out.items.push_back(item);
    out.first.push_back(static_cast<int64_t>(out.items.size()));
  }
  return out;
}

}  // namespace tercel::data
