#include "tercel/recsys/embedding/table_shard.h"

#include <algorithm>
#include <bit>
#include <map>
#include <utility>

#include "tercel/util/error.h"

namespace tercel::recsys {

int64_t count_of(Span<RowRun> runs) {
  int64_t rows = 0;
  for (const RowRun& run : runs) rows += run.count;
  return rows;
}

TableShard TableShard::by_row(int64_t rows, std::vector<int64_t> ranks, int64_t rank) {
  TERCEL_CHECK(!ranks.empty(), RuntimeError, "table shard: expected at least one rank");
  TableShard shard;
  const auto n = static_cast<int64_t>(ranks.size());
  for (int64_t i = 0; i < n; ++i)
    if (ranks[static_cast<size_t>(i)] == rank) shard.runs_ = {{i, std::max<int64_t>(0, (rows - i + n - 1) / n), n}};
  shard.ranks_ = std::move(ranks);
  shard.rank_ = rank;
  return shard;
}

TableShard TableShard::by_slot(std::vector<int64_t> slot_ends, std::vector<int64_t> ranks, int64_t rank) {
  TERCEL_CHECK(!ranks.empty() && !slot_ends.empty() && std::is_sorted(slot_ends.begin(), slot_ends.end()), RuntimeError,
               "table shard: expected at least one rank and ascending ends of slots");
  TableShard shard;
  std::map<int64_t, int64_t> filled;  // rows of each rank so far
  int64_t first = 0;
  for (size_t s = 0; s < slot_ends.size(); ++s) {
    const int64_t owner = ranks[s % ranks.size()], count = slot_ends[s] - first;
    shard.slots_.push_back({first, slot_ends[s], owner, filled[owner]});
    filled[owner] += count;
    if (owner == rank && count > 0) shard.runs_.push_back({first, count, 1});
    first = slot_ends[s];
  }
  shard.ranks_ = std::move(ranks);
  shard.rank_ = rank;
  return shard;
}

const TableShard::Slot& TableShard::slot_of(int64_t row) const {
  return *std::upper_bound(slots_.begin(), slots_.end() - 1, row,
                           [](int64_t value, const Slot& slot) { return value < slot.end; });
}

int64_t TableShard::owner(int64_t row) const {
  return slots_.empty() ? ranks_[static_cast<size_t>(row) % ranks_.size()] : slot_of(row).owner;
}

namespace {

/** Replaces rows by f(row, row / n, row modulo n); those of powers of two take no division. */
template <class F>
void replace_by_row(int64_t* rows, size_t count, size_t n, F&& f) {
  const auto bits = static_cast<uint64_t>(std::bit_width(n) - 1);
  if (std::has_single_bit(n))
    std::transform(rows, rows + count, rows,
                   [&](int64_t row) { return f(row, row >> bits, static_cast<size_t>(row) & (n - 1)); });
  else
    std::transform(rows, rows + count, rows,
                   [&](int64_t row) { return f(row, row / static_cast<int64_t>(n), static_cast<size_t>(row) % n); });
}

}  // namespace

void TableShard::replace_by_owners(int64_t* rows, size_t count) const {
  if (slots_.empty())
    replace_by_row(rows, count, ranks_.size(), [&](int64_t, int64_t, size_t number) { return ranks_[number]; });
  else
    std::transform(rows, rows + count, rows, [this](int64_t row) { return slot_of(row).owner; });
}

void TableShard::replace_by_own_places(int64_t* rows, size_t count) const {
  if (slots_.empty())
    replace_by_row(rows, count, ranks_.size(), [&](int64_t row, int64_t place, size_t number) {
      return row >= 0 && ranks_[number] == rank_ ? place : -1;
    });
  else
    std::transform(rows, rows + count, rows, [this](int64_t row) { return row >= 0 && is_own(row) ? place(row) : -1; });
}

int64_t TableShard::place(int64_t row) const {
  if (slots_.empty()) return row / static_cast<int64_t>(ranks_.size());
  const Slot& slot = slot_of(row);
  return slot.place + row - slot.first;
}

}  // namespace tercel::recsys
