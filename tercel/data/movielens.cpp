#include "tercel/data/movielens.h"

#include <algorithm>
#include <utility>

#include "tercel/data/conversion_settings_impl.h"
#include "tercel/data/dataset_format.h"
#include "tercel/data/dataset_writer.h"
#include "tercel/data/ratings_impl.h"
#include "tercel/data/row_order_impl.h"
#include "tercel/util/atomic_file.h"
#include "tercel/util/error.h"
#include "tercel/util/file.h"
#include "tercel/util/format.h"
#include "tercel/util/philox.h"
#include "tercel/util/version.h"

namespace tercel::data {

namespace {

constexpr int64_t kBatchRows = 8192;
/** Reading's share of the work. */
constexpr double kReading = 0.4;

/** The upper half of Philox streams says what numbers are for. */
constexpr uint64_t kTrainNegatives = uint64_t{1} << 62, kTestNegatives = uint64_t{2} << 62;

struct Row {
  int64_t user;
  uint32_t item;
  bool positive;
};

/** Rows of the train part as functions of their number: they need no memory. */
class TrainRows {
 public:
  TrainRows(const Interactions& interactions, const MovielensOptions& options)
      : interactions_(interactions), options_(options) {
    // The last rating of a user is a test row, unless it is the only one.
    first_.push_back(0);
    for (int64_t user = 0; user < interactions.num_users(); ++user)
      first_.push_back(first_.back() + interactions.count(user) - (is_tested(user) ? 1 : 0));
    TERCEL_CHECK(!__builtin_mul_overflow(owners(), options.train_negatives, &count_) &&
                     !__builtin_add_overflow(count_, positives(), &count_),
                 ConfigError, "movielens: option 'train_negatives': expected rows that fit in 64 bits, found ",
                 options.train_negatives, " negatives for each of ", owners(),
                 options.negatives_per == NegativesPer::User ? " users" : " ratings");
  }

  bool is_tested(int64_t user) const { return options_.test_negatives > 0 && interactions_.count(user) > 1; }
  int64_t positives() const { return first_.back(); }
  int64_t count() const { return count_; }

  Row operator()(int64_t number) const {
    if (number < positives()) {
      const int64_t user = user_of(number);
      const int64_t place = interactions_.begin(user) + number - first_[static_cast<size_t>(user)];
      return {user, interactions_.items[static_cast<size_t>(place)], true};
    }
    const int64_t negative = number - positives(), owner = negative / options_.train_negatives;
    const int64_t user = options_.negatives_per == NegativesPer::User ? owner : user_of(owner);
    const Philox random{options_.seed, kTrainNegatives | static_cast<uint64_t>(negative)};
    for (uint64_t draw = 0;; ++draw) {
      const PhiloxBlock bits = random(draw);
      const auto item = static_cast<uint32_t>(
          uniform_int(random_u64(bits.word[0], bits.word[1]), static_cast<uint64_t>(interactions_.num_items())));
      if (!interactions_.contains(user, item)) return {user, item, false};
    }
  }

 private:
  int64_t owners() const {
    return options_.negatives_per == NegativesPer::User ? interactions_.num_users() : positives();
  }
  int64_t user_of(int64_t positive) const {
    return std::upper_bound(first_.begin(), first_.end(), positive) - first_.begin() - 1;
  }

  const Interactions& interactions_;
  const MovielensOptions& options_;
  std::vector<int64_t> first_;  // [users + 1] train ratings before each user's
  int64_t count_ = 0;
};

/** Rows in memory until there are enough for the writer. */
class RowBuffer {
 public:
  RowBuffer(DatasetWriter& writer, int64_t num_users) : writer_(writer), num_users_(num_users) {}

  void add(const Row& row) {
    labels_.push_back(row.positive ? 1.0F : 0.0F);
    keys_.push_back(row.user);
    keys_.push_back(num_users_ + row.item);
    if (static_cast<int64_t>(labels_.size()) == kBatchRows) flush();
  }
  void flush() {
    dense_.resize(labels_.size());
    RowBlock block;
    block.rows = static_cast<int64_t>(labels_.size());
    block.labels = labels_.data();
    block.dense = dense_.data();
    block.keys = keys_.data();
    if (block.rows > 0) writer_.write(block);
    labels_.clear();
    keys_.clear();
  }

 private:
  DatasetWriter& writer_;
  int64_t num_users_;
  std::vector<float> labels_, dense_;
  std::vector<int64_t> keys_;
};

/** DataError unless every user has enough items left. */
void check_users(const Interactions& interactions, const MovielensOptions& options) {
  const int64_t needed = std::max(options.test_negatives, std::min<int64_t>(options.train_negatives, 1));
  for (int64_t user = 0; user < interactions.num_users(); ++user) {
    const int64_t left = interactions.num_items() - interactions.count(user);
    TERCEL_CHECK(left >= needed, DataError, "movielens: user '",
                 printable(interactions.user_names[static_cast<size_t>(user)]), "': expected ", needed, " of the ",
                 interactions.num_items(), " items without a rating, for negatives, found ", left);
  }
}

Schema schema_of(const Interactions& interactions) {
  Schema schema;
  schema.label_names = {"interaction"};
  schema.dense_dim = 1;
  schema.dense_names = {"dummy"};
  schema.slots = {{"user", interactions.num_users(), 0, 1}, {"item", interactions.num_items(), 0, 1}};
  schema.set_consecutive_keys();
  return schema;
}

std::string lines_of(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += name + "\n";
  return text;
}

/** The last rating of each user, and the negatives behind it. */
void write_test(const Interactions& interactions, const TrainRows& train, const MovielensOptions& options,
                RowBuffer& rows) {
  std::vector<uint32_t> drawn;
  for (int64_t user = 0; user < interactions.num_users(); ++user) {
    if (!train.is_tested(user)) continue;
    rows.add({user, interactions.items[static_cast<size_t>(interactions.begin(user + 1)) - 1], true});
    const Philox random{options.seed, kTestNegatives | static_cast<uint64_t>(user)};
    drawn.clear();
    for (uint64_t draw = 0; static_cast<int64_t>(drawn.size()) < options.test_negatives; ++draw) {
      const PhiloxBlock bits = random(draw);
      const auto item = static_cast<uint32_t>(
          uniform_int(random_u64(bits.word[0], bits.word[1]), static_cast<uint64_t>(interactions.num_items())));
      if (interactions.contains(user, item) || std::find(drawn.begin(), drawn.end(), item) != drawn.end()) continue;
      drawn.push_back(item);
      rows.add({user, item, false});
    }
  }
}

}  // namespace

MovielensResult convert_movielens(const std::vector<std::string>& sources, const std::string& folder,
                                  const MovielensOptions& options, bool replace, MovielensProgress progress) {
  check_options(options, "movielens");
  TERCEL_CHECK(options.format, ConfigError, "movielens: expected a format, such as norm_format(), found none");
  for (const std::string& source : sources)
    if (replace) check_outside(folder, source);
  AtomicDir target(folder, replace ? kDatasetFile : std::string_view());
  const Interactions interactions =
      make_interactions(read_ratings(sources, options.min_rating,
                                     [&](int64_t rows, int64_t bytes, int64_t all_bytes) {
                                       progress(kReading * static_cast<double>(bytes) /
                                                    static_cast<double>(std::max<int64_t>(all_bytes, 1)),
                                                rows);
                                     }),
                        options.min_ratings);
  check_users(interactions, options);
  const TrainRows train(interactions, options);
  TERCEL_CHECK(train.positives() > 0, DataError, printable(sources.front()),
               ": expected train ratings besides the last one of each user, found none");

  MovielensResult result;
  result.users = interactions.num_users();
  result.items = interactions.num_items();
  Dataset& dataset = result.dataset;
  dataset.format = options.format;
  dataset.schema = schema_of(interactions);
  Conversion& conversion = dataset.conversion.emplace();
  conversion.tool = "movielens";
  conversion.tercel_version = version();
  conversion.sources = sources;
  conversion.settings = settings_of(options);

  const auto writer_of = [&](PartName part) {
    WriterOptions writing;
    writing.folder = target.temporary_path();
    writing.prefix = str_cat({to_string(part), "/part-"});
    writing.file_list = str_cat({to_string(part), ".txt"});
    writing.rows_per_file = options.rows_per_file;
    return options.format->create_writer(dataset.schema, writing);
  };
  const std::unique_ptr<DatasetWriter> train_writer = writer_of(PartName::Train);
  RowBuffer train_rows(*train_writer, result.users);
  const int64_t count = train.count();
  const Permutation order(count, options.seed);
  for (int64_t row = 0; row < count; ++row) {
    train_rows.add(train(order(row)));
    if (row % kBatchRows == 0)
      progress(kReading + (1 - kReading) * static_cast<double>(row) / static_cast<double>(count), row);
  }
  train_rows.flush();
  dataset.train = train_writer->finish();
  result.train_positives = train.positives();

  result.test_positives = static_cast<int64_t>(interactions.items.size()) - train.positives();
  if (result.test_positives > 0) {
    const std::unique_ptr<DatasetWriter> test_writer = writer_of(PartName::Test);
    RowBuffer test_rows(*test_writer, result.users);
    write_test(interactions, train, options, test_rows);
    test_rows.flush();
    dataset.test = test_writer->finish();
  }
  write_file(join_path(target.temporary_path(), "users.txt"), lines_of(interactions.user_names));
  write_file(join_path(target.temporary_path(), "items.txt"), lines_of(interactions.item_names));
  save_dataset(dataset, target.temporary_path());
  target.commit();
  dataset.folder = target.path();
  return result;
}

}  // namespace tercel::data
