#include "tercel/recsys/embedding/hashed_table.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "tercel/autograd/grad_mode.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/views/views.h"
#include "tercel/recsys/embedding/initialize_rows.h"
#include "tercel/util/ceil_div.h"
#include "tercel/util/format.h"
#include "tercel/util/parallel.h"

namespace tercel::recsys {

namespace {

constexpr int64_t kGrain = 2048;
// Evicting some rows at once, a pass over all scores is needed that much less often.
constexpr int64_t kEvictedPart = 16;

Span<int64_t> elements(const Tensor& t) { return {t.data<int64_t>(), static_cast<size_t>(t.numel())}; }

}  // namespace

HashedTableStatistics& HashedTableStatistics::operator+=(const HashedTableStatistics& other) {
  keys += other.keys;
  waiting += other.waiting;
  admitted += other.admitted;
  refused += other.refused;
  evicted += other.evicted;
  forgotten += other.forgotten;
  return *this;
}

HashedTable::HashedTable(std::string name, int64_t dim, nn::Init init, const HashedTableOptions& options)
    : EmbeddingTable(std::move(name), dim), init_(init), options_(options), capacity_(options.capacity) {
  TERCEL_CHECK(options.capacity >= 0 && options.most_waiting >= 0 && options.admission >= 1 &&
                   (options.capacity > 0 || !evicts()),
               RuntimeError, "embedding table '", this->name(),
               "': expected a capacity of at least 0, or 1 with eviction, and an admission of at least 1, but got ",
               options.capacity, " and ", options.admission);
  if (evicts()) {
    row_keys_.resize(1);
    scores_.resize(1);
  }
}

std::string HashedTable::size_text() const { return str_cat({"hashed x ", dim()}); }

void HashedTable::place(const TablePlacement& placement, int64_t rank) {
  TERCEL_CHECK(!weight().defined(), RuntimeError, "embedding table '", name(), "': it has rows already");
  if (placement.placement == Placement::Replicated) return set_shard({});
  TERCEL_CHECK(placement.placement == Placement::Distributed, ConfigError, "embedding table '", name(),
               "': expected a placement replicated or distributed of a table that grows, found ",
               to_string(placement.placement));
  set_shard(TableShard::by_row(0, placement.ranks, rank));
  capacity_ = ceil_div(options_.capacity, static_cast<int64_t>(placement.ranks.size()));
}

bool HashedTable::owners(Span<int64_t> keys, int64_t* ranks) const {
  std::copy(keys.begin(), keys.end(), ranks);
  shard().replace_by_owners(ranks, keys.size());
  return true;
}

HashedTableStatistics HashedTable::statistics() const {
  HashedTableStatistics s;
  s.keys = rows_ - 1 - static_cast<int64_t>(free_.size());
  s.waiting = waiting_.size();
  s.admitted = counters_.admitted;
  s.refused = counters_.refused;
  s.evicted = counters_.evicted;
  s.forgotten = counters_.forgotten;
  s.load = index_.load();
  return s;
}

bool HashedTable::allocate(uint64_t seed, const RowStates& states, const TensorOptions& place,
                           FunctionRef<bool()> go_on) {
  if (!go_on()) return false;
  const NoGradGuard no_grad;
  RowStore store;
  try {
    store = RowStore::growing(dim(), place, states.names, states.per_row);
    store.resize(rows_);
  } catch (const OutOfMemoryError& e) {
    throw_error<OutOfMemoryError>({"embedding table '", name(), "' (rows of ", dim(), "): ", e.what()});
  }
  seed_ = seed;
  initial_state_ = states.initial;
  set_store(std::move(store));
  updated();
  return true;
}

void HashedTable::updated() {
  const NoGradGuard no_grad;
  fill_(weight().narrow(0, 0, 1), options_.default_value);
  for (const Tensor& state : store().states()) fill_(state.narrow(0, 0, 1), initial_state_);
}

Tensor HashedTable::find_rows(const Tensor& keys, NewKeys new_keys, Span<Tensor> in_use) {
  const NoGradGuard no_grad;
  const Tensor wide = contiguous(to(keys, kInt64));
  const Tensor rows = empty(wide.sizes(), kInt64);
  if (wide.numel() == 0) return rows;
  const Span<int64_t> all = elements(wide);
  auto* const out = rows.data<int64_t>();
  parallel_for(0, wide.numel(), kGrain, [&](int64_t begin, int64_t end) {
    index_.find({all.data() + begin, static_cast<size_t>(end - begin)}, out + begin);
    for (int64_t i = begin; i < end; ++i) out[i] = std::max<int64_t>(out[i], 0);  // below it: a key that waits
  });
  if (new_keys == NewKeys::Admit)
    insert(all, out, in_use, /*admission=*/1);
  else if (new_keys == NewKeys::Insert && weight().defined() && weight().requires_grad())
    insert(all, out, in_use, options_.admission);
  return rows;
}

void HashedTable::insert(Span<int64_t> keys, int64_t* rows, Span<Tensor> in_use, int64_t admission) {
  TERCEL_CHECK(store().grows(), RuntimeError, "embedding table '", name(),
               "': it has the rows of a file, for prediction; it cannot be trained");
  ++counters_.calls;
  const int64_t rows_before = rows_;
  new_.keys.clear();
  new_.rows.clear();
  try {
    give_rows(keys, rows, in_use, admission);
    if (rows_ > rows_before) changeable_store().resize(rows_);
  } catch (const OutOfMemoryError& e) {
    const int64_t wanted = rows_;
    undo(rows_before);
    throw_error<OutOfMemoryError>({"embedding table '", name(), "' (rows of ", dim(), "): ", e.what(), "; with ",
                                   wanted - 1, " keys it needs ",
                                   format_bytes(wanted * bytes_of_row() + static_cast<int64_t>(index_.bytes()))});
  } catch (...) {
    undo(rows_before);
    throw;
  }
  if (!new_.keys.empty()) fill_new_rows();
  counters_.admitted += static_cast<int64_t>(new_.keys.size());
  if (evicts()) score({rows, keys.size()});
}

/** Of the weight and the states. */
int64_t HashedTable::bytes_of_row() const {
  int64_t numbers = dim();
  for (const Tensor& state : store().states()) numbers += state.size(1);
  return numbers * static_cast<int64_t>(item_size(weight().dtype()));
}

/** In the order of the keys: the numbers of rows are the same for any number of threads. */
void HashedTable::give_rows(Span<int64_t> keys, int64_t* rows, Span<Tensor> in_use, int64_t admission) {
  for (size_t i = 0; i < keys.size(); ++i) {
    if (rows[i] != 0) continue;
    int64_t number = index_.find(keys[i]);
    if (number <= 0) {
      if (wait(keys[i], number, admission)) continue;
      const int64_t before = number;
      number = take_row({{rows, keys.size()}, in_use});
      new_.keys.push_back(keys[i]);
      new_.rows.push_back(number);
      index_.insert(keys[i]) = number;
      if (before != 0) waiting_.remove(-1 - before);
      if (evicts()) row_keys_[static_cast<size_t>(number)] = keys[i];
    }
    rows[i] = number;
  }
}

/** Whether a key, which has this number in the index, has to go on waiting for a row. */
bool HashedTable::wait(int64_t key, int64_t number, int64_t admission) {
  const int64_t place = -1 - number;
  const int64_t count = number == 0 ? 1 : waiting_.count(place) + 1;
  if (count >= admission) return false;
  ++counters_.refused;
  if (number != 0) {
    waiting_.count(place) = count;
    return true;
  }
  const int64_t added = waiting_.add(key, count);
  try {
    index_.insert(key) = -1 - added;
  } catch (...) {
    waiting_.remove(added);
    throw;
  }
  const int64_t keys = rows_ - 1 - static_cast<int64_t>(free_.size());
  const int64_t most = options_.most_waiting > 0 ? options_.most_waiting : std::max(kMostWaiting, keys);
  for (; waiting_.size() > most; ++counters_.forgotten) {
    const int64_t oldest = waiting_.oldest();
    index_.erase(waiting_.key(oldest));
    waiting_.remove(oldest);
  }
  return true;
}

/** A row without a key; those that the batch uses keep theirs. */
int64_t HashedTable::take_row(const InUse& in_use) {
  const bool is_full = capacity_ > 0 && rows_ > capacity_;
  if (free_.empty() && is_full && evicts()) evict(in_use);
  if (!free_.empty()) {
    const int64_t row = free_.back();
    free_.pop_back();
    return row;
  }
  TERCEL_CHECK(!is_full, RuntimeError, "embedding table '", name(), "': Runtime vocabulary size (", capacity_ + 1,
               ") exceeds max_vocabulary_size_per_gpu (", capacity_,
               evicts() ? "): the keys of one batch are more, and none of them can be evicted; a smaller batch or a "
                          "larger workspace_size_per_gpu_in_mb or max_vocabulary_size_global is needed"
                        : "): more keys have occurred than the table may have rows; a larger "
                          "workspace_size_per_gpu_in_mb or max_vocabulary_size_global, or eviction, is needed");
  if (evicts()) {
    row_keys_.resize(static_cast<size_t>(rows_) + 1);
    scores_.resize(static_cast<size_t>(rows_) + 1);
  }
  return rows_++;
}

void HashedTable::evict(const InUse& in_use) {
  std::vector<bool> is_used(static_cast<size_t>(rows_), false);
  is_used[0] = true;
  const auto keep = [&is_used](Span<int64_t> rows) {
    for (const int64_t row : rows) is_used[static_cast<size_t>(row)] = true;
  };
  keep(in_use.rows);
  for (const Tensor& rows : in_use.of_others) keep(elements(rows));
  std::vector<int64_t> candidates;
  for (int64_t row = 1; row < rows_; ++row)
    if (!is_used[static_cast<size_t>(row)]) candidates.push_back(row);
  const auto count = std::min(static_cast<int64_t>(candidates.size()), std::max<int64_t>(1, capacity_ / kEvictedPart));
  const auto is_before = [this](int64_t a, int64_t b) {
    return std::pair(scores_[static_cast<size_t>(a)], a) < std::pair(scores_[static_cast<size_t>(b)], b);
  };
  std::nth_element(candidates.begin(), candidates.begin() + count, candidates.end(), is_before);
  candidates.resize(static_cast<size_t>(count));
  std::sort(candidates.begin(), candidates.end(), std::greater<>());
  for (const int64_t row : candidates) index_.erase(row_keys_[static_cast<size_t>(row)]);
  counters_.evicted += count;
  free_ = std::move(candidates);
}

/** Takes the rows of this call back. */
void HashedTable::undo(int64_t rows_before) {
  for (const int64_t key : new_.keys) {
    if (const int64_t number = index_.find(key); number < 0) waiting_.remove(-1 - number);
    index_.erase(key);
  }
  for (const int64_t row : new_.rows)
    if (row < rows_before) free_.push_back(row);
  std::sort(free_.begin(), free_.end(), std::greater<>());
  rows_ = rows_before;
}

void HashedTable::fill_new_rows() {
  initialize_rows(weight(), init_, seed_, name(), new_.keys, new_.rows);
  for (const int64_t row : new_.rows)
    if (evicts()) scores_[static_cast<size_t>(row)] = 0;
  Span<int64_t> to_fill = new_.rows;
  if (initial_state_ == 0) {  // new memory is zero already
    used_again_.clear();
    for (const int64_t row : new_.rows)
      if (row < touched_rows_) used_again_.push_back(row);
    to_fill = used_again_;
  }
  for (const Tensor& state : store().states()) fill_rows(state, to_fill, initial_state_);
  touched_rows_ = std::max(touched_rows_, rows_);
}

void HashedTable::score(Span<int64_t> rows) {
  for (const int64_t row : rows) {
    int64_t& score = scores_[static_cast<size_t>(row)];
    score = options_.eviction == Eviction::Age ? counters_.calls : score + 1;
  }
}

}  // namespace tercel::recsys
