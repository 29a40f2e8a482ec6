#include "tercel/recsys/placement_plan.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tercel/util/error.h"

namespace tercel::recsys {

namespace {

constexpr double kKeyBytes = 8, kElementBytes = 4;

/** Expected different ones of keys that are drawn evenly. */
double unique_keys(const SlotLoad& slot, double rows) {
  const double keys = slot.keys * rows;
  if (slot.size == 0) return keys;
  const auto size = static_cast<double>(slot.size);
  return size * -std::expm1(-keys / size);
}

std::vector<int64_t> all_ranks(int64_t ranks) {
  std::vector<int64_t> all(static_cast<size_t>(ranks));
  std::iota(all.begin(), all.end(), int64_t{0});
  return all;
}

/** The part of a table's unique rows, and of all its rows, that the rank with most of them has. */
struct LargestPart {
  double unique = 0;
  int64_t rows = 0;
};

LargestPart largest_part(const TableLoad& table, const TablePlacement& placement, double batch_rows) {
  const auto owners = static_cast<double>(placement.ranks.size());
  double unique = 0;
  for (const SlotLoad& slot : table.slots) unique += unique_keys(slot, batch_rows);
  if (placement.placement == Placement::Distributed)
    return {unique / owners, static_cast<int64_t>(std::ceil(static_cast<double>(table.rows) / owners))};
  std::vector<double> parts(placement.ranks.size(), 0);
  std::vector<int64_t> rows(placement.ranks.size(), 0);
  for (size_t s = 0; s < table.slots.size(); ++s) {
    parts[s % parts.size()] += unique_keys(table.slots[s], batch_rows);
    rows[s % parts.size()] += table.slots[s].size;
  }
  return {*std::max_element(parts.begin(), parts.end()), *std::max_element(rows.begin(), rows.end())};
}

}  // namespace

std::vector<TableLoad> table_loads(Model& model) {
  std::vector<TableLoad> loads;
  const EmbeddingCollection& embeddings = model.embeddings();
  for (size_t t = 0; t < embeddings.tables().size(); ++t) {
    const EmbeddingTable& table = *embeddings.tables()[t];
    TableLoad load;
    load.name = table.name();
    load.is_static = !table.grows();
    load.rows = load.is_static ? table.rows_of_all_ranks() : 0;
    load.dim = table.dim();
    const auto states = static_cast<int64_t>(optim::Optimizer::state_names(embeddings.optimizer(t)).size());
    const auto per_row = static_cast<int64_t>(optim::Optimizer::row_states(embeddings.optimizer(t)));
    load.numbers_per_row = table.dim() * (1 + states - per_row) + per_row;
    load.counts_keys = table.counts_keys();
    std::vector<std::string> inputs;
    for (const Lookup& lookup : embeddings.lookups())
      if (lookup.table == t && std::find(inputs.begin(), inputs.end(), lookup.input) == inputs.end())
        inputs.push_back(lookup.input);
    size_t first = 0;
    for (const data::SparseInput& input : model.sparse_inputs()) {
      const bool is_read = std::find(inputs.begin(), inputs.end(), input.name) != inputs.end();
      for (int64_t s = 0; s < input.slot_num; ++s) {
        const data::Slot& slot = model.schema().slots[first++];
        if (is_read) load.slots.push_back({slot.size, static_cast<double>(slot.hotness)});
      }
    }
    loads.push_back(std::move(load));
  }
  return loads;
}

PlacementCost placement_cost(const TableLoad& table, const TablePlacement& placement, int64_t ranks, int64_t batch_rows,
                             const MachineRates& rates) {
  const auto n = static_cast<double>(ranks);
  const double whole = static_cast<double>(batch_rows), part = whole / n;
  const double row = kElementBytes * static_cast<double>(table.dim);
  const double touched = 2 * kElementBytes * static_cast<double>(table.numbers_per_row);  // read and written
  double asked = 0, changed = 0;  // unique rows of a rank's part, and of the whole batch
  for (const SlotLoad& slot : table.slots) {
    asked += table.counts_keys ? slot.keys * part : unique_keys(slot, part);
    changed += unique_keys(slot, whole);
  }
  PlacementCost cost;
  int64_t rows = table.rows;
  double added = 0;  // rows of gradients that a rank adds up
  if (placement.placement == Placement::Replicated) {
    cost.bytes_sent = (n - 1) * asked * (row + kKeyBytes);
    cost.messages = 2 * (n - 1);
    cost.rows_changed = changed;
    added = n * asked;
  } else {
    const LargestPart most = largest_part(table, placement, whole);
    const double here = changed == 0 ? 0 : most.unique / changed;  // of the keys, those of the busiest rank
    // It answers the other ranks, and asks them for what it does not have.
    const double answers = (n - 1) * asked * here, questions = asked * (1 - here);
    cost.bytes_sent = questions * (kKeyBytes + row) + answers * row;
    cost.messages = 3 * (n - 1);
    cost.rows_changed = most.unique;
    added = n * asked * here;
    rows = most.rows;
  }
  cost.memory_bytes = rows * table.numbers_per_row * static_cast<int64_t>(kElementBytes);
  cost.seconds = cost.bytes_sent / rates.network_bytes + cost.messages * rates.latency_seconds +
                 (cost.rows_changed * touched + added * row) / rates.memory_bytes;
  return cost;
}

std::vector<TablePlacement> plan_placements(Span<TableLoad> tables, PlacementChoice choice, int64_t ranks,
                                            int64_t batch_rows, const MachineRates& rates) {
  // What a copy on every rank is worth: a run goes on from its last step when a rank is lost.
  constexpr double kWorthOfCopies = 1.1;
  const std::vector<int64_t> all = all_ranks(ranks);
  std::vector<TablePlacement> plan;
  for (const TableLoad& table : tables) {
    TablePlacement chosen;
    if (choice == PlacementChoice::Auto) {
      const double least = placement_cost(table, chosen, ranks, batch_rows, rates).seconds / kWorthOfCopies;
      const TablePlacement distributed{Placement::Distributed, all};
      // A table that grows may fill its part of the capacity on one rank before the others.
      if (table.is_static && placement_cost(table, distributed, ranks, batch_rows, rates).seconds < least)
        chosen = distributed;
    } else if (choice != PlacementChoice::Replicated) {
      chosen.placement = choice == PlacementChoice::Distributed ? Placement::Distributed : Placement::Localized;
      chosen.ranks = all;
      TERCEL_CHECK(chosen.placement != Placement::Localized || table.is_static, ConfigError,
                   "solver.placement: table '", table.name,
                   "' grows, and cannot be localized; expected distributed or replicated");
    }
    plan.push_back(std::move(chosen));
  }
  return plan;
}

}  // namespace tercel::recsys
