// The keys of a hashed table, written and read.
#include <algorithm>
#include <utility>

#include "tercel/core/tensor.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/recsys/embedding/hashed_table.h"

namespace tercel::recsys {

namespace {

constexpr const char* kNames[] = {"keys", "free", "waiting", "scores", "counters"};
constexpr int64_t kMostCounted = int64_t{1} << 62;  // so that counting on does not overflow
constexpr size_t kMostCounters = 5;
constexpr size_t kKeys = 0, kFree = 1, kWaiting = 2, kScores = 3, kCounters = 4;

Tensor tensor_of(const std::vector<int64_t>& values, IntSpan sizes) {
  Tensor t = empty(sizes, kInt64);
  std::copy(values.begin(), values.end(), t.data<int64_t>());
  return t;
}

Tensor tensor_of(const std::vector<int64_t>& values) {
  return tensor_of(values, {static_cast<int64_t>(values.size())});
}

std::vector<int64_t> values_of(const Tensor& t) {
  const auto* const first = t.data<int64_t>();
  return {first, first + t.numel()};
}

}  // namespace

Tensor HashedTable::keys() const {
  std::vector<std::pair<int64_t, int64_t>> rows;
  index_.for_each([&](int64_t key, int64_t number) {
    if (number > 0) rows.emplace_back(number, key);
  });
  std::sort(rows.begin(), rows.end());
  Tensor all = empty({static_cast<int64_t>(rows.size())}, kInt64);
  std::transform(rows.begin(), rows.end(), all.data<int64_t>(), [](const auto& row) { return row.second; });
  return all;
}

Span<const char*> HashedTable::key_state_names() const { return kNames; }

std::vector<Tensor> HashedTable::key_state() const {
  std::vector<int64_t> keys(static_cast<size_t>(rows_), 0), pairs;
  index_.for_each([&](int64_t key, int64_t number) {
    if (number > 0) keys[static_cast<size_t>(number)] = key;
  });
  pairs.reserve(static_cast<size_t>(2 * waiting_.size()));
  waiting_.for_each([&](int64_t key, int64_t count) {
    pairs.push_back(key);
    pairs.push_back(count);
  });
  std::vector<int64_t> scores = scores_;
  if (evicts()) scores.resize(static_cast<size_t>(rows_));
  std::vector<int64_t> counters = {counters_.calls, counters_.admitted, counters_.refused, counters_.evicted};
  if (counters_.forgotten > 0) counters.push_back(counters_.forgotten);  // so that versions without it read the rest
  return {tensor_of(keys), tensor_of(free_), tensor_of(pairs, {waiting_.size(), 2}), tensor_of(scores),
          tensor_of(counters)};
}

void HashedTable::set_key_state(Span<Tensor> state) {
  const auto check = [this](bool is_right, const char* what) {
    TERCEL_CHECK(is_right, DataError, "embedding table '", name(), "': the state of its keys is damaged: ", what);
  };
  check(state.size() == std::size(kNames), "expected its five tensors");
  for (const Tensor& t : state) check(t.dtype() == kInt64 && t.is_contiguous(), "expected int64");
  const std::vector<int64_t> keys = values_of(state[kKeys]), waiting = values_of(state[kWaiting]),
                             counters = values_of(state[kCounters]);
  std::vector<int64_t> free = values_of(state[kFree]), scores = values_of(state[kScores]);
  check(!keys.empty(), "expected at least one row");
  check(state[kWaiting].dim() == 2 && state[kWaiting].size(1) == 2, "expected pairs of waiting keys and counts");
  check(counters.size() == kMostCounters || counters.size() == kMostCounters - 1, "expected 4 or 5 counters");
  const auto is_count = [](int64_t value) { return value >= 0 && value <= kMostCounted; };
  check(std::all_of(counters.begin(), counters.end(), is_count), "a counter is out of range");
  check(std::all_of(scores.begin(), scores.end(), is_count), "a score is out of range");
  const auto rows = static_cast<int64_t>(keys.size());
  // A rank may have more than its part of them after another number of ranks has trained the table.
  TERCEL_CHECK(capacity_ == 0 || !shard().is_whole() || rows - 1 <= capacity_, DataError, "embedding table '", name(),
               "': expected at most ", capacity_, " rows, found ", rows - 1);
  std::vector<bool> is_free(keys.size(), false);
  for (size_t i = 0; i < free.size(); ++i) {
    check(free[i] > 0 && free[i] < rows && (i == 0 || free[i] < free[i - 1]), "expected free rows in descending order");
    is_free[static_cast<size_t>(free[i])] = true;
  }
  KeyIndex index;
  const auto add = [&](int64_t key, int64_t number) {
    int64_t& place = index.insert(key);
    check(place == 0, "a key occurs twice");
    place = number;
  };
  for (int64_t row = 1; row < rows; ++row)
    if (!is_free[static_cast<size_t>(row)]) add(keys[static_cast<size_t>(row)], row);
  WaitingKeys list;
  for (size_t i = 0; i < waiting.size(); i += 2) {
    check(waiting[i + 1] >= 1, "a waiting key never occurred");
    check(waiting[i + 1] <= kMostCounted, "a waiting key occurred too often");
    add(waiting[i], -1 - list.add(waiting[i], waiting[i + 1]));
  }
  // Scores of another way of eviction, or none, mean nothing: all rows are then equal.
  if (scores.size() != keys.size()) scores.assign(keys.size(), 0);
  if (store().grows()) {
    changeable_store().resize(rows);
    touched_rows_ = std::max(touched_rows_, rows);  // their values are set next
  }
  index_ = std::move(index);
  waiting_ = std::move(list);
  rows_ = rows;
  free_ = std::move(free);
  if (evicts()) {
    row_keys_ = keys;
    scores_ = std::move(scores);
  }
  counters_ = {counters[0], counters[1], counters[2], counters[3],
               counters.size() == kMostCounters ? counters.back() : 0};
}

}  // namespace tercel::recsys
