#include "tercel/recsys/embedding/static_table.h"

#include <algorithm>
#include <numeric>

#include "tercel/autograd/grad_mode.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/views/views.h"
#include "tercel/recsys/embedding/initialize_rows.h"
#include "tercel/util/ceil_div.h"

namespace tercel::recsys {

StaticTable::StaticTable(std::string name, int64_t first_key, int64_t rows, int64_t dim, nn::Init init)
    : StaticTable(std::move(name), first_key, dim, {{rows, init}}) {}

StaticTable::StaticTable(std::string name, int64_t first_key, int64_t dim, std::vector<RowsInit> parts)
    : EmbeddingTable(std::move(name), dim), first_key_(first_key), rows_(0), parts_(std::move(parts)) {
  for (const RowsInit& part : parts_) rows_ += part.rows;
  slot_ends_ = {rows_};
}

void StaticTable::set_slots(std::vector<int64_t> ends) {
  TERCEL_CHECK(!ends.empty() && ends.front() >= 0 && ends.back() == rows_ && std::is_sorted(ends.begin(), ends.end()),
               RuntimeError, "embedding table '", name(), "': expected ascending ends of slots up to ", rows_);
  slot_ends_ = std::move(ends);
}

void StaticTable::place(const TablePlacement& placement, int64_t rank) {
  TERCEL_CHECK(!weight().defined(), RuntimeError, "embedding table '", name(), "': it has rows already");
  switch (placement.placement) {
    case Placement::Replicated: return set_shard({});
    case Placement::Distributed: return set_shard(TableShard::by_row(rows_, placement.ranks, rank));
    case Placement::Localized: return set_shard(TableShard::by_slot(slot_ends_, placement.ranks, rank));
  }
}

bool StaticTable::owners(Span<int64_t> keys, int64_t* ranks) const {
  for (size_t i = 0; i < keys.size(); ++i) {
    const int64_t row = keys[i] - first_key_;
    if (row < 0 || row >= rows_) return false;
    ranks[i] = row;
  }
  shard().replace_by_owners(ranks, keys.size());
  return true;
}

Tensor StaticTable::find_rows(const Tensor& keys, NewKeys /*new_keys*/, Span<Tensor> /*in_use*/) {
  const Tensor wide = to(keys, kInt64);
  if (shard().is_whole()) return first_key_ == 0 ? wide : sub(wide, first_key_);
  const Tensor given = contiguous(wide), rows = empty(given.sizes(), kInt64);
  const auto* const all = given.data<int64_t>();
  auto* const found = rows.data<int64_t>();
  std::transform(all, all + given.numel(), found, [this](int64_t key) {
    const int64_t row = key - first_key_;
    return row >= 0 && row < rows_ ? row : -1;
  });
  shard().replace_by_own_places(found, static_cast<size_t>(given.numel()));
  return rows;
}

Tensor StaticTable::keys() const {
  Tensor all = empty({rows()}, kInt64);
  auto* next = all.data<int64_t>();
  for (const RowRun& run : runs())
    for (int64_t i = 0; i < run.count; ++i) *next++ = first_key_ + run.first + i * run.step;
  return all;
}

bool StaticTable::finds_same_rows(const EmbeddingTable& other) const {
  const auto* const table = dynamic_cast<const StaticTable*>(&other);
  return table && table->first_key_ == first_key_ && table->shard() == shard() &&
         (shard().is_whole() || table->rows_ == rows_);
}

void StaticTable::refuse_keys(const Tensor& keys) const {
  const Tensor wide = contiguous(to(keys, kInt64));
  const auto* const all = wide.data<int64_t>();
  const auto* const bad = std::find_if(all, all + wide.numel(),
                                       [this](int64_t key) { return key < first_key_ || key - first_key_ >= rows_; });
  TERCEL_CHECK(bad == all + wide.numel(), IndexError, "embedding table '", name(), "': no row for key ", *bad,
               " (at position ", bad - all, "); it has the keys from ", first_key_, " to ", first_key_ + rows_ - 1);
}

bool StaticTable::allocate(uint64_t seed, const RowStates& states, const TensorOptions& place,
                           FunctionRef<bool()> go_on) {
  const NoGradGuard no_grad;
  RowStore store;
  try {
    store = RowStore(rows(), dim(), place, states.names, states.per_row);
  } catch (const OutOfMemoryError& e) {
    throw_error<OutOfMemoryError>({"embedding table '", name(), "' (", rows(), " rows of ", dim(), "): ", e.what(),
                                   "; a table of \"table_type\": \"hashed\" has rows only for keys that occur"});
  }
  if (!fill(store, seed, states.initial, go_on)) return false;
  set_store(std::move(store));
  return true;
}

/** Rows of the table that this rank has. */
RowRuns StaticTable::runs() const { return shard().is_whole() ? RowRuns{{0, rows_, 1}} : shard().runs(); }

/** Gives all rows their initial values; false if it ended early. */
bool StaticTable::fill(const RowStore& store, uint64_t seed, double initial_state, FunctionRef<bool()> go_on) const {
  constexpr int64_t kPart = int64_t{1} << 22;  // elements
  const int64_t most = std::max<int64_t>(1, kPart / dim());
  std::vector<int64_t> keys, numbers;
  int64_t done = 0;  // rows of this rank
  for (const RowRun& run : runs()) {
    int64_t end = 0, i = 0;  // end of the rows with one Init, in the table; rows of the run so far
    for (const RowsInit& alike : parts_) {
      end += alike.rows;
      const int64_t stop = std::min(run.count, std::max<int64_t>(0, ceil_div(end - run.first, run.step)));
      while (i < stop) {
        if (!go_on()) return false;
        const int64_t n = std::min(most, stop - i), first_key = first_key_ + run.first + i * run.step;
        if (run.step == 1) {
          initialize_rows(store.weight().narrow(0, done, n), alike.init, seed, name(), first_key);
        } else {
          keys.resize(static_cast<size_t>(n));
          numbers.resize(keys.size());
          for (int64_t k = 0; k < n; ++k) {
            keys[static_cast<size_t>(k)] = first_key + k * run.step;
            numbers[static_cast<size_t>(k)] = done + k;
          }
          initialize_rows(store.weight(), alike.init, seed, name(), keys, numbers);
        }
        for (const Tensor& state : store.states()) fill_(state.narrow(0, done, n), initial_state);
        i += n;
        done += n;
      }
    }
  }
  return true;
}

}  // namespace tercel::recsys
