#include "tercel/recsys/placement_plan.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tercel/ops/common/copy.h"
#include "tercel/ops/views/views.h"
#include "tercel/util/error.h"

namespace tercel::recsys {

namespace {

constexpr double kKeyBytes = 8, kElementBytes = 4;

/** Of one with few bytes. */
double exchange_seconds(int64_t ranks, const MachineRates& rates) {
  return rates.latency_seconds + static_cast<double>(std::max<int64_t>(0, ranks - 2)) * rates.message_seconds;
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

double unique_keys(const SlotLoad& slot, double rows) {
  if (rows <= 0) return 0;
  if (!slot.unique.empty()) {
    // Between samples, and beyond the last one, as a power of the number of rows.
    const double at = std::max(0.0, std::log2(rows));
    if (slot.unique.size() == 1) return slot.unique[0] * std::min(1.0, rows);
    const size_t i = std::min(static_cast<size_t>(at), slot.unique.size() - 2);
    const double lower = std::max(slot.unique[i], 1e-9), upper = std::max(slot.unique[i + 1], 1e-9);
    const double found = lower * std::pow(upper / lower, at - static_cast<double>(i)) * std::min(1.0, rows);
    return slot.size > 0 ? std::min(found, static_cast<double>(slot.size)) : found;
  }
  const double keys = slot.keys * rows;
  if (slot.size == 0) return keys;
  const auto size = static_cast<double>(slot.size);
  return size * -std::expm1(-keys / size);
}

double ranks_of_row(const SlotLoad& slot, double ranks) {
  const auto of_keys = [ranks](double keys) { return ranks * (1 - std::pow(1 - 1 / ranks, keys)); };
  if (slot.sizes.empty()) return slot.keys < 1 ? slot.keys : of_keys(slot.keys);
  double expected = 0;
  for (size_t keys = 1; keys < slot.sizes.size(); ++keys)
    expected += slot.sizes[keys] * of_keys(static_cast<double>(keys));
  return expected;
}

namespace {

/** The slots, by their numbers in the schema, that each table is read with. */
std::vector<std::vector<size_t>> slots_of_tables(Model& model) {
  const EmbeddingCollection& embeddings = model.embeddings();
  std::vector<std::vector<size_t>> slots(embeddings.tables().size());
  for (size_t t = 0; t < slots.size(); ++t) {
    size_t slot = 0;
    for (const data::SparseInput& input : model.sparse_inputs()) {
      const auto reads = [&](const Lookup& lookup) { return lookup.table == t && lookup.input == input.name; };
      const bool is_read = std::any_of(embeddings.lookups().begin(), embeddings.lookups().end(), reads);
      for (int64_t s = 0; s < input.slot_num; ++s, ++slot)
        if (is_read) slots[t].push_back(slot);
    }
  }
  return slots;
}

}  // namespace

std::vector<TableLoad> table_loads(Model& model) {
  const std::vector<std::vector<size_t>> slots = slots_of_tables(model);
  std::vector<TableLoad> loads;
  const EmbeddingCollection& embeddings = model.embeddings();
  for (size_t t = 0; t < embeddings.tables().size(); ++t) {
    const EmbeddingTable& table = *embeddings.tables()[t];
    TableLoad load;
    load.name = table.name();
    load.is_static = !table.grows();
    load.is_limited = table.is_limited();
    load.rows = load.is_static ? table.rows_of_all_ranks() : 0;
    load.dim = table.dim();
    const auto states = static_cast<int64_t>(optim::Optimizer::state_names(embeddings.optimizer(t)).size());
    const auto per_row = static_cast<int64_t>(optim::Optimizer::row_states(embeddings.optimizer(t)));
    load.numbers_per_row = table.dim() * (1 + states - per_row) + per_row;
    load.counts_keys = table.counts_keys();
    load.dims_of_keys = 0;
    for (size_t other = 0; other < slots.size(); ++other) {
      if (slots[other] != slots[t] || !embeddings.tables()[other]->finds_same_rows(table)) continue;
      load.dims_of_keys += embeddings.tables()[other]->dim();
      load.shares_keys |= other < t;
    }
    for (const size_t s : slots[t]) {
      const data::Slot& slot = model.schema().slots[s];
      load.slots.push_back({slot.size, static_cast<double>(slot.hotness)});
    }
    loads.push_back(std::move(load));
  }
  return loads;
}

std::vector<TableLoad> sampled_table_loads(Model& model, data::BatchReader& reader, int64_t rows) {
  // Of each slot: its keys, and the rows that they are in.
  std::vector<std::vector<std::pair<int64_t, int64_t>>> keys(model.schema().slots.size());
  std::vector<std::vector<double>> sizes(keys.size());  // rows by their number of keys
  reader.rewind();
  data::Batch batch;
  int64_t read = 0;
  while (read < rows && reader.next(batch)) {
    size_t first = 0;
    for (const data::SparseInput& input : model.sparse_inputs()) {
      const data::SparseBatch& sparse = batch.input(input.name);
      const Tensor offsets = contiguous(to(sparse.row_offsets, kInt64)), all = contiguous(to(sparse.keys, kInt64));
      for (int64_t bag = 0; bag + 1 < offsets.numel(); ++bag) {
        const size_t slot = first + static_cast<size_t>(bag % input.slot_num);
        const int64_t begin = offsets.data<int64_t>()[bag], end = offsets.data<int64_t>()[bag + 1];
        for (int64_t k = begin; k < end; ++k)
          keys[slot].emplace_back(all.data<int64_t>()[k], read + bag / input.slot_num);
        const auto size = static_cast<size_t>(end - begin);
        if (sizes[slot].size() <= size) sizes[slot].resize(size + 1, 0);
        ++sizes[slot][size];
      }
      first += static_cast<size_t>(input.slot_num);
    }
    read += batch.rows;
  }
  reader.rewind();
  std::vector<SlotLoad> loads(keys.size());
  for (size_t s = 0; s < keys.size(); ++s) {
    loads[s] = {model.schema().slots[s].size,
                read == 0 ? 0 : static_cast<double>(keys[s].size()) / static_cast<double>(read)};
    loads[s].sizes = std::move(sizes[s]);
    for (double& rows_of_size : loads[s].sizes) rows_of_size /= static_cast<double>(std::max<int64_t>(1, read));
    for (int64_t size = 1; size <= read; size *= 2) {
      // Different ones of each group of so many rows that follow one another.
      std::vector<std::pair<int64_t, int64_t>> found;
      const int64_t groups = read / size;
      for (const auto& [key, row] : keys[s])
        if (row / size < groups) found.emplace_back(row / size, key);
      std::sort(found.begin(), found.end());
      const auto different = std::unique(found.begin(), found.end()) - found.begin();
      loads[s].unique.push_back(static_cast<double>(different) / static_cast<double>(groups));
    }
  }
  const std::vector<std::vector<size_t>> slots = slots_of_tables(model);
  std::vector<TableLoad> tables = table_loads(model);
  for (size_t t = 0; t < tables.size(); ++t)
    for (size_t i = 0; i < slots[t].size(); ++i) tables[t].slots[i] = loads[slots[t][i]];
  return tables;
}

PlacementCost placement_cost(const TableLoad& table, const TablePlacement& placement, int64_t ranks, int64_t batch_rows,
                             const MachineRates& rates) {
  const auto n = static_cast<double>(ranks);
  const double whole = static_cast<double>(batch_rows), part = whole / n;
  const double row = kElementBytes * static_cast<double>(table.dim);
  const double touched = 2 * kElementBytes * static_cast<double>(table.numbers_per_row);  // read and written
  double asked = 0, changed = 0;              // unique rows of a rank's part, and of the whole batch
  double numbers = 0, vectors = 0, keys = 0;  // that it sends for keys, and that come for them
  for (const SlotLoad& slot : table.slots) {
    const double unique = unique_keys(slot, part), of_slot = slot.keys * part;
    asked += unique;
    changed += unique_keys(slot, whole);
    const double rows_there = table.counts_keys ? of_slot : unique;
    const double owners =
        placement.placement == Placement::Distributed ? static_cast<double>(placement.ranks.size()) : 1;
    const double sums = ranks_of_row(slot, owners) * part;
    const auto dims = static_cast<double>(std::max(table.dim, table.dims_of_keys));
    const auto bytes = [&](double sent, double come) { return sent * kKeyBytes + come * 2 * kElementBytes * dims; };
    const bool are_sums = !table.counts_keys && bytes(of_slot + sums, sums) < bytes(rows_there, rows_there);
    numbers += are_sums ? of_slot + sums : rows_there;
    vectors += are_sums ? sums : rows_there;
    keys += are_sums ? of_slot : rows_there;
  }
  PlacementCost cost;
  int64_t rows = table.rows;
  double added = 0;  // rows of gradients that a rank adds up
  double ahead = 0;  // bytes of keys
  if (placement.placement == Placement::Replicated) {
    cost.bytes_sent = (n - 1) * asked * (row + kKeyBytes);
    cost.exchanges = 2;
    cost.rows_changed = changed;
    added = n * asked;
  } else {
    const LargestPart most = largest_part(table, placement, whole);
    const double here = changed == 0 ? 0 : most.unique / changed;  // of the keys, those of the busiest rank
    // It answers the other ranks, and asks them for what it does not have.
    const double answers = (n - 1) * vectors * here, questions = vectors * (1 - here);
    if (!table.shares_keys) ahead = numbers * (1 - here) * kKeyBytes;
    cost.bytes_sent = ahead + (questions + answers) * row;
    cost.exchanges = 2;
    cost.rows_changed = most.unique;
    added = n * keys * here;
    rows = most.rows;
  }
  cost.memory_bytes = rows * table.numbers_per_row * static_cast<int64_t>(kElementBytes);
  cost.seconds = (cost.bytes_sent - ahead) / rates.network_bytes + cost.exchanges * exchange_seconds(ranks, rates) +
                 (std::max(0.0, cost.rows_changed - asked) * touched + added * row) / rates.memory_bytes;
  return cost;
}

namespace {

/** Simulations have other numbers of ranks than the run that a placement was given for. */
bool is_given_for(const TableLoad& table, int64_t ranks) {
  return table.given && std::all_of(table.given->ranks.begin(), table.given->ranks.end(),
                                    [ranks](int64_t rank) { return rank < ranks; });
}

}  // namespace

std::vector<TablePlacement> plan_placements(Span<TableLoad> tables, PlacementChoice choice, int64_t ranks,
                                            int64_t batch_rows, const MachineRates& rates) {
  // What a copy on every rank is worth: a run goes on from its last step when a rank is lost.
  constexpr double kWorthOfCopies = 1.1;
  const std::vector<int64_t> all = all_ranks(ranks);
  std::vector<TablePlacement> plan;
  for (const TableLoad& table : tables) {
    TablePlacement chosen;
    if (is_given_for(table, ranks)) {
      chosen = *table.given;
      if (chosen.placement != Placement::Replicated && chosen.ranks.empty()) chosen.ranks = all;
    } else if (choice == PlacementChoice::Auto) {
      // Less than an exchange is no gain of a small table.
      const double copied = placement_cost(table, chosen, ranks, batch_rows, rates).seconds;
      const double least = std::min(copied / kWorthOfCopies, copied - rates.latency_seconds);
      const TablePlacement distributed{Placement::Distributed, all};
      // A table with a capacity may fill its part of it on one rank before the others.
      if (!table.is_limited && placement_cost(table, distributed, ranks, batch_rows, rates).seconds < least)
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

StepEstimate estimate_step(const StepLoad& step, Span<TableLoad> tables, PlacementChoice choice, int64_t ranks,
                           int64_t batch_rows, const MachineRates& rates) {
  constexpr double kExchangedAtOnce = 65536;  // bytes of all ranks together: see Note [Collectives]
  const auto n = static_cast<double>(ranks);
  StepEstimate found;
  found.ranks = ranks;
  found.batch_rows = batch_rows;
  found.compute_seconds = step.fixed_seconds + step.row_seconds * static_cast<double>(batch_rows) / n;
  found.placements = plan_placements(tables, choice, ranks, batch_rows, rates);
  for (size_t t = 0; t < tables.size(); ++t) {
    const PlacementCost cost = placement_cost(tables[t], found.placements[t], ranks, batch_rows, rates);
    found.table_bytes += cost.bytes_sent;
    found.table_memory += cost.memory_bytes;
    if (ranks > 1) found.table_seconds += cost.seconds;
  }
  if (ranks > 1) {
    const bool at_once = step.gradient_bytes * n <= kExchangedAtOnce;
    found.dense_bytes = step.gradient_bytes * (at_once ? n - 1 : 2 * (n - 1) / n);
    found.dense_seconds = found.dense_bytes / rates.network_bytes + (at_once ? 1 : 2) * exchange_seconds(ranks, rates);
  }
  found.seconds = found.compute_seconds + found.dense_seconds + found.table_seconds;
  return found;
}

}  // namespace tercel::recsys
