#include "tercel/recsys/embedding/embedding_collection.h"

#include <algorithm>
#include <numeric>

#include "tercel/autograd/autograd.h"
#include "tercel/autograd/grad_mode.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/embedding/batched_embedding_bag.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/views/cat.h"
#include "tercel/ops/views/views.h"
#include "tercel/recsys/ranks.h"

namespace tercel::recsys {

namespace {

/**
 * Row offsets that have a bag for each of a slot's places, with one key or none: place j of a bag that starts at s and
 * has n keys starts at s + min(j, n).
 */
Tensor offsets_of_places(const Tensor& row_offsets, const Lookup& lookup) {
  const NoGradGuard no_grad;
  const int64_t bags = row_offsets.numel() - 1;
  const Tensor starts = row_offsets.narrow(0, 0, bags);
  const Tensor counts = sub(row_offsets.narrow(0, 1, bags), starts);
  if (bags > 0) {
    const int64_t most = to(max(counts), kInt64).item<int64_t>();
    TERCEL_CHECK(most <= lookup.places, RuntimeError, "lookup '", lookup.name, "': expected at most ", lookup.places,
                 " keys in a slot, as its vectors are side by side, but got ", most);
  }
  const Tensor places = arange(0, lookup.places, 1, TensorOptions(row_offsets.dtype(), row_offsets.device()));
  const Tensor inner = add(unsqueeze(starts, 1), minimum(unsqueeze(places, 0), unsqueeze(counts, 1)));
  return cat({reshape(inner, {bags * lookup.places}), row_offsets.narrow(0, bags, 1)}, 0);
}

}  // namespace

size_t EmbeddingCollection::add_table(std::unique_ptr<EmbeddingTable> table, const optim::OptimizerOptions& optimizer) {
  tables_.push_back(std::move(table));
  options_.push_back(optimizer);
  readers_.emplace_back();
  return tables_.size() - 1;
}

size_t EmbeddingCollection::add_lookup(Lookup lookup) {
  TERCEL_CHECK(lookup.table < tables_.size(), RuntimeError, "lookup '", lookup.name, "': there is no table ",
               lookup.table, ", only ", tables_.size());
  size_t group = 0;
  while (group < groups_.size() && (groups_[group].input != lookup.input ||
                                    !tables_[groups_[group].table]->finds_same_rows(*tables_[lookup.table])))
    ++group;
  if (group == groups_.size()) groups_.push_back({lookup.input, lookup.table});
  Readers& readers = readers_[lookup.table];
  if (readers.count++ == 0) readers.group = group;
  group_of_.push_back(group);
  lookups_.push_back(std::move(lookup));
  return lookups_.size() - 1;
}

bool EmbeddingCollection::allocate(uint64_t seed, const TensorOptions& place, FunctionRef<bool()> go_on) {
  optimizers_.clear();
  for (size_t t = 0; t < tables_.size(); ++t) {
    const RowStates states{optim::Optimizer::state_names(options_[t]), optim::Optimizer::initial_state(options_[t]),
                           optim::Optimizer::row_states(options_[t])};
    if (!go_on() || !tables_[t]->allocate(seed, states, place, go_on)) return false;
    const RowStore& rows = tables_[t]->store();
    optimizers_.emplace_back(options_[t], rows.weight(), rows.states());
  }
  return true;
}

void EmbeddingCollection::find_rows(const data::Batch& batch, NewKeys new_keys, std::vector<Tensor>& rows) {
  rows.clear();
  const auto keys_of = [&batch](const Group& group) {
    const data::SparseBatch& input = batch.input(group.input);
    TERCEL_CHECK(input.order == data::BagOrder::SampleMajor, RuntimeError, "embedding of input '", group.input,
                 "': expected a batch of order ", to_string(data::BagOrder::SampleMajor), ", got ",
                 to_string(input.order));
    return input.keys;
  };
  keys_.clear();
  first_.clear();
  for (const Group& group : groups_) {
    keys_.push_back(keys_of(group));
    first_.push_back(0);
    if (group_ == nullptr || new_keys != NewKeys::Insert || !tables_[group.table]->grows()) continue;
    const std::vector<int64_t> counts = numbers_of_ranks(*group_, keys_.back().numel());
    first_.back() = std::accumulate(counts.begin(), counts.begin() + group_->rank(), int64_t{0});
    keys_.back() = rows_of_ranks(*group_, to(keys_.back(), kInt64), counts);
  }
  std::vector<Tensor> in_use;
  for (size_t g = 0; g < groups_.size(); ++g) {
    const size_t t = groups_[g].table;
    in_use.clear();
    if (new_keys == NewKeys::Insert && tables_[t]->evicts())
      for (size_t other = 0; other < groups_.size(); ++other)
        if (other != g && groups_[other].table == t)
          in_use.push_back(other < g ? rows[other] : tables_[t]->find_rows(keys_[other], NewKeys::Refuse));
    rows.push_back(tables_[t]->find_rows(keys_[g], new_keys, in_use));
  }
  for (size_t g = 0; g < groups_.size(); ++g)
    if (const int64_t own = keys_of(groups_[g]).numel(); own != rows[g].numel())
      rows[g] = rows[g].narrow(0, first_[g], own);
  keys_.clear();
}

Tensor EmbeddingCollection::look_up(size_t lookup, const data::Batch& batch, Span<Tensor> rows) const {
  const Lookup& l = lookups_[lookup];
  const EmbeddingTable& table = *tables_[l.table];
  const data::SparseBatch& input = batch.input(l.input);
  try {
    if (l.places == 0)
      return batched_embedding_bag(table.weight(), rows[group_of_[lookup]], input.row_offsets, l.slots, l.combiner,
                                   input.key_weights);
    const Tensor vectors =
        batched_embedding_bag(table.weight(), rows[group_of_[lookup]], offsets_of_places(input.row_offsets, l),
                              l.slots * l.places, BagMode::Sum, input.key_weights);
    return reshape(vectors, {vectors.size(0), l.slots, l.places * table.dim()});
  } catch (const IndexError&) {
    table.refuse_keys(input.keys);
    throw;
  }
}

/** Undefined if the table has none in this step. */
Gradient EmbeddingCollection::row_gradient(size_t table) const {
  Gradient gradient = gradient_of(tables_[table]->weight());
  TERCEL_CHECK(!gradient.defined() || gradient.is_rows(), RuntimeError, "embedding table '", tables_[table]->name(),
               "': expected a gradient of rows, as lookups have, but got a dense one");
  return gradient;
}

/** Those of the group, sorted once in a step: gradients of all its tables have the rows of find_rows() as rows. */
UniqueRows& EmbeddingCollection::unique_rows(size_t table, const Gradient& gradient) {
  if (readers_[table].count != 1) return unique_rows_;
  UniqueRows& shared = groups_[readers_[table].group].unique_rows;
  shared.share(gradient.rows);
  return shared;
}

void EmbeddingCollection::reduce_gradients() {
  if (group_ == nullptr) return;
  constexpr int64_t kNone = -1;
  const auto tables = static_cast<int64_t>(tables_.size());
  std::vector<Gradient> own(tables_.size());
  const Tensor own_counts = full({tables}, kNone, kInt64);
  for (size_t t = 0; t < tables_.size(); ++t) {
    const Gradient gradient = row_gradient(t);
    if (!gradient.defined()) continue;
    const Gradient unique = unique_rows(t, gradient).reduce(gradient);
    own[t] = {unique.values.clone(), unique.rows.clone()};
    own_counts.data<int64_t>()[t] = unique.rows.size(0);
  }
  const std::vector<int64_t> alike(static_cast<size_t>(group_->size()), tables);
  const Tensor all_counts = rows_of_ranks(*group_, own_counts, alike);
  for (Group& group : groups_) group.unique_rows.release();
  std::vector<int64_t> counts(alike.size());
  for (size_t t = 0; t < tables_.size(); ++t) {
    bool is_defined = false;  // on one rank
    for (size_t r = 0; r < counts.size(); ++r) {
      const int64_t count = all_counts.data<int64_t>()[r * tables_.size() + t];
      is_defined |= count != kNone;
      counts[r] = std::max<int64_t>(count, 0);
    }
    if (!is_defined) continue;
    const Tensor& weight = tables_[t]->weight();
    if (!own[t].defined())
      own[t] = {empty({0, weight.size(1)}, TensorOptions(weight.dtype(), weight.device())), empty({0}, kInt64)};
    const Tensor rows = rows_of_ranks(*group_, own[t].rows, counts);
    set_gradient(weight, {rows_of_ranks(*group_, own[t].values, counts), rows});
  }
}

void EmbeddingCollection::add_to(optim::GradientNorm& norm) {
  for (size_t t = 0; t < tables_.size(); ++t)
    if (const Gradient gradient = row_gradient(t); gradient.defined())
      norm.add_rows(gradient, unique_rows(t, gradient), tables_[t]->rows_without_key());
}

void EmbeddingCollection::set_clip(const optim::GradientClip& clip) {
  for (optim::Optimizer& optimizer : optimizers_) optimizer.set_clip(clip);
}

Tensor EmbeddingCollection::history(size_t table) const {
  return table < optimizers_.size() ? optimizers_[table].history() : Tensor();
}

void EmbeddingCollection::update(double learning_rate, int64_t step) {
  TERCEL_CHECK(optimizers_.size() == tables_.size(), RuntimeError,
               "embedding tables without optimizer states cannot be trained");
  // After an error too: the next step must not see this one's gradients.
  struct Cleared {
    EmbeddingCollection& collection;
    ~Cleared() { collection.clear_gradients(); }
  };
  const Cleared cleared{*this};
  for (size_t t = 0; t < tables_.size(); ++t)
    if (const Gradient gradient = row_gradient(t); gradient.defined()) {
      optimizers_[t].update_rows(gradient, learning_rate, step, unique_rows(t, gradient));
      tables_[t]->updated();
    }
}

void EmbeddingCollection::clear_gradients() {
  for (Group& group : groups_) group.unique_rows.release();
  for (const auto& table : tables_) clear_gradient(table->weight());
}

void EmbeddingCollection::forget_nonfinite() {
  for (optim::Optimizer& optimizer : optimizers_) optimizer.forget_nonfinite();
}

bool EmbeddingCollection::is_finite() const {
  return std::all_of(optimizers_.begin(), optimizers_.end(),
                     [](const optim::Optimizer& optimizer) { return optimizer.is_finite(); });
}

}  // namespace tercel::recsys
