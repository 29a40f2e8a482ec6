#include "tercel/recsys/embedding/embedding_collection.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "tercel/autograd/autograd.h"
#include "tercel/autograd/grad_mode.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/embedding/batched_embedding_bag.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/factories/huge_pages_impl.h"
#include "tercel/ops/index/index_put.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/views/cat.h"
#include "tercel/ops/views/views.h"
#include "tercel/recsys/embedding/row_exchange.h"
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

/** For each position of a bag, one over the number of the bag's keys. */
Tensor parts_of_mean(const Tensor& positions_offsets, const Tensor& key_offsets, ScalarType dtype) {
  const NoGradGuard no_grad;
  const Tensor ends = contiguous(to(positions_offsets, kInt64)), keys = contiguous(to(key_offsets, kInt64));
  const auto* const end = ends.data<int64_t>();
  const auto* const key = keys.data<int64_t>();
  const int64_t bags = ends.numel() - 1;
  const Tensor parts = empty({end[bags]}, kFloat64);
  for (int64_t bag = 0; bag < bags; ++bag)
    std::fill(parts.data<double>() + end[bag], parts.data<double>() + end[bag + 1],
              1 / static_cast<double>(key[bag + 1] - key[bag]));
  return to(parts, dtype);
}

/** Of vectors of which some are sums of rows: see Note [Rows or sums]. */
Tensor look_up_sums(const Lookup& lookup, const Tensor& vectors, const RowQuestions& questions,
                    const Tensor& key_offsets) {
  Tensor weights;
  if (lookup.combiner == BagMode::Mean) weights = parts_of_mean(questions.row_offsets, key_offsets, vectors.dtype());
  return batched_embedding_bag(vectors, questions.positions, questions.row_offsets, lookup.slots, BagMode::Sum,
                               weights);
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
  group_lookup(lookup);
  remote_of_.push_back(kLocal);
  lookups_.push_back(std::move(lookup));
  return lookups_.size() - 1;
}

/** Finds or makes the group of the next lookup. */
void EmbeddingCollection::group_lookup(const Lookup& lookup) {
  size_t group = 0;
  while (group < groups_.size() && (groups_[group].input != lookup.input ||
                                    !tables_[groups_[group].table]->finds_same_rows(*tables_[lookup.table])))
    ++group;
  if (group == groups_.size()) groups_.push_back({lookup.input, lookup.table});
  Readers& readers = readers_[lookup.table];
  if (readers.count++ == 0) readers.group = group;
  group_of_.push_back(group);
}

void EmbeddingCollection::set_group(distributed::ProcessGroup& group, Span<TablePlacement> placements) {
  TERCEL_CHECK(placements.empty() || placements.size() == tables_.size(), RuntimeError,
               "embedding collection: expected a placement of each of the ", tables_.size(), " tables, got ",
               placements.size());
  group_ = &group;
  for (size_t t = 0; t < placements.size(); ++t) tables_[t]->place(placements[t], group.rank());
  // Tables whose keys have the same rows in one process may have them on different ranks.
  groups_.clear();
  group_of_.clear();
  readers_.assign(tables_.size(), {});
  for (const Lookup& lookup : lookups_) group_lookup(lookup);
  remote_.clear();
  requests_ = 0;
  for (Group& of : groups_) {
    of.is_remote = !tables_[of.table]->shard().is_whole();
    if (!of.is_remote) continue;
    of.request = requests_++;
    of.may_sum = true;
  }
  for (size_t l = 0; l < lookups_.size(); ++l) {
    const size_t g = group_of_[l], table = lookups_[l].table;
    remote_of_[l] = kLocal;
    if (!groups_[g].is_remote) continue;
    groups_[g].may_sum &= lookups_[l].places == 0;
    groups_[g].slots = lookups_[l].slots;
    const auto same = [&](const RemoteVectors& one) { return one.table == table && one.group == g; };
    remote_of_[l] =
        static_cast<size_t>(std::distance(remote_.begin(), std::find_if(remote_.begin(), remote_.end(), same)));
    if (remote_of_[l] == remote_.size()) remote_.push_back({table, g});
  }
  asker_ = remote_.empty() ? nullptr : std::make_unique<RowAsker>();
  keys_of_step_.reset();
  forget_announced();
}

bool EmbeddingCollection::has_all_rows() const {
  return std::all_of(tables_.begin(), tables_.end(), [](const auto& table) { return table->shard().is_whole(); });
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

Tensor EmbeddingCollection::keys_of(const Group& group, const data::Batch& batch) const {
  const data::SparseBatch& input = batch.input(group.input);
  TERCEL_CHECK(input.order == data::BagOrder::SampleMajor, RuntimeError, "embedding of input '", group.input,
               "': expected a batch of order ", to_string(data::BagOrder::SampleMajor), ", got ",
               to_string(input.order));
  return input.keys;
}

void EmbeddingCollection::find_rows(const data::Batch& batch, NewKeys new_keys, std::vector<Tensor>& rows) {
  rows.assign(groups_.size(), Tensor());
  find_local_rows(batch, new_keys, rows);
  if (!asker_) return;
  bring_vectors(batch, new_keys, rows);
  begin_announced();
}

/** Of groups of the same table before this one, rows; of those behind it, the rows of keys that have one. */
std::vector<Tensor> EmbeddingCollection::rows_in_use(size_t group, NewKeys new_keys,
                                                     const std::vector<Tensor>& rows) const {
  std::vector<Tensor> in_use;
  const size_t t = groups_[group].table;
  if (new_keys != NewKeys::Insert || !tables_[t]->evicts()) return in_use;
  for (size_t other = 0; other < groups_.size(); ++other)
    if (other != group && groups_[other].table == t)
      in_use.push_back(other < group ? rows[other] : tables_[t]->find_rows(keys_[other], NewKeys::Refuse));
  return in_use;
}

/** Of groups whose tables have all rows here. */
void EmbeddingCollection::find_local_rows(const data::Batch& batch, NewKeys new_keys, std::vector<Tensor>& rows) {
  keys_.assign(groups_.size(), Tensor());
  first_.assign(groups_.size(), 0);
  for (size_t g = 0; g < groups_.size(); ++g) {
    keys_[g] = keys_of(groups_[g], batch);
    if (groups_[g].is_remote || group_ == nullptr || new_keys != NewKeys::Insert || !tables_[groups_[g].table]->grows())
      continue;
    const std::vector<int64_t> counts = numbers_of_ranks(*group_, keys_[g].numel());
    first_[g] = std::accumulate(counts.begin(), counts.begin() + group_->rank(), int64_t{0});
    keys_[g] = rows_of_ranks(*group_, to(keys_[g], kInt64), counts);
  }
  for (size_t g = 0; g < groups_.size(); ++g)
    if (!groups_[g].is_remote)
      rows[g] = tables_[groups_[g].table]->find_rows(keys_[g], new_keys, rows_in_use(g, new_keys, rows));
  for (size_t g = 0; g < groups_.size(); ++g)
    if (const int64_t own = keys_of(groups_[g], batch).numel(); rows[g].defined() && own != rows[g].numel())
      rows[g] = rows[g].narrow(0, first_[g], own);
  keys_.clear();
}

/** What this rank asks others for, of each group whose tables have rows on several ranks. */
std::vector<RowQuestions> EmbeddingCollection::ask(const data::Batch& batch, NewKeys new_keys) {
  std::vector<RowQuestions> questions;
  for (size_t g = 0; g < groups_.size(); ++g) {
    const Group& group = groups_[g];
    if (!group.is_remote) continue;
    const EmbeddingTable& table = *tables_[group.table];
    // Which occurrence of a key gets it a row, and how many there are, counts for admission and eviction.
    const bool counts_keys = new_keys == NewKeys::Insert && table.counts_keys();
    RowRequest request{&table, keys_of(group, batch), !counts_keys};
    const data::SparseBatch& input = batch.input(group.input);
    if (group.may_sum && !counts_keys && !input.key_weights.defined()) {
      request.row_offsets = input.row_offsets;
      request.slots = group.slots;
      for (const RemoteVectors& one : remote_)
        if (one.group == g) {
          const Tensor& weight = tables_[one.table]->weight();
          request.bytes_of_vector += weight.size(1) * static_cast<int64_t>(item_size(weight.dtype()));
        }
    }
    questions.push_back(asker_->ask(request, group_->size(), group_->rank()));
  }
  return questions;
}

void EmbeddingCollection::announce(const data::Batch* next) {
  if (asker_) announced_ = next;
}

/** Begins to send the keys of the batch that was announced. */
void EmbeddingCollection::begin_announced() {
  if (!announced_) return;
  const data::Batch* const next = *announced_;
  announced_.reset();
  is_ahead_sent_ = false;
  std::vector<RowQuestions> questions;
  if (next != nullptr) try {
      questions = ask(*next, NewKeys::Insert);
    } catch (const Error&) {  // the step that trains it has the error
      questions.clear();
    }
  keys_ahead_ = questions.empty() ? std::make_unique<KeyExchange>(*group_, requests_)
                                  : std::make_unique<KeyExchange>(*group_, std::move(questions));
}

void EmbeddingCollection::send_announced() {
  if (!keys_ahead_ || is_ahead_sent_) return;
  is_ahead_sent_ = keys_ahead_->send();
  if (!is_ahead_sent_) keys_ahead_.reset();
}

void EmbeddingCollection::take_announced() {
  send_announced();
  takes_ahead_ = keys_ahead_ != nullptr;
}

void EmbeddingCollection::forget_announced() {
  announced_.reset();
  keys_ahead_.reset();
  takes_ahead_ = false;
}

/** Of the others: rows are then those of the vectors that came. See Note [Exchange of rows]. */
void EmbeddingCollection::bring_vectors(const data::Batch& batch, NewKeys new_keys, std::vector<Tensor>& rows) {
  if (std::exchange(takes_ahead_, false)) {
    keys_of_step_ = std::move(keys_ahead_);
  } else {
    keys_of_step_ = std::make_unique<KeyExchange>(*group_, ask(batch, new_keys));
    keys_of_step_->send();
  }
  std::vector<AskedKeys> asked = keys_of_step_->receive();
  keys_.assign(groups_.size(), Tensor());
  std::vector<Tensor> found(groups_.size());
  for (size_t g = 0; g < groups_.size(); ++g)
    if (groups_[g].is_remote) keys_[g] = std::move(asked[groups_[g].request].keys);
  for (size_t g = 0; g < groups_.size(); ++g) {
    Group& group = groups_[g];
    if (!group.is_remote) continue;
    found[g] = to(tables_[group.table]->find_rows(keys_[g], new_keys, rows_in_use(g, new_keys, found)), kInt64);
    group.rows = found[g];
    group.row_offsets = std::move(asked[group.request].row_offsets);
    rows[g] = keys_of_step_->questions(group.request).positions;
  }
  keys_.clear();
  std::vector<AskedRows> wanted;
  for (const RemoteVectors& one : remote_) {
    const Group& group = groups_[one.group];
    wanted.push_back({group.request, tables_[one.table]->weight(), group.rows, group.row_offsets});
  }
  std::vector<Tensor> vectors = send_vectors(*keys_of_step_, wanted);
  for (size_t i = 0; i < remote_.size(); ++i) {
    remote_[i].vectors = std::move(vectors[i]);
    remote_[i].vectors.requires_grad_(tables_[remote_[i].table]->weight().requires_grad());
  }
}

Tensor EmbeddingCollection::look_up(size_t lookup, const data::Batch& batch, Span<Tensor> rows) const {
  const Lookup& l = lookups_[lookup];
  const EmbeddingTable& table = *tables_[l.table];
  const data::SparseBatch& input = batch.input(l.input);
  const bool is_remote = remote_of_[lookup] != kLocal;
  const Tensor& weight = is_remote ? remote_[remote_of_[lookup]].vectors : table.weight();
  try {
    if (is_remote) {
      const RowQuestions& questions = keys_of_step_->questions(groups_[group_of_[lookup]].request);
      if (questions.row_offsets.defined()) return look_up_sums(l, weight, questions, input.row_offsets);
    }
    if (l.places == 0)
      return batched_embedding_bag(weight, rows[group_of_[lookup]], input.row_offsets, l.slots, l.combiner,
                                   input.key_weights);
    const Tensor vectors =
        batched_embedding_bag(weight, rows[group_of_[lookup]], offsets_of_places(input.row_offsets, l),
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
  gather_gradients();
  if (asker_) send_back_gradients();
}

/** Of tables that each rank has: those of all ranks. */
void EmbeddingCollection::gather_gradients() {
  constexpr int64_t kNone = -1;
  std::vector<size_t> here;
  for (size_t t = 0; t < tables_.size(); ++t)
    if (tables_[t]->shard().is_whole()) here.push_back(t);
  if (here.empty()) return;
  const auto tables = static_cast<int64_t>(here.size());
  std::vector<int64_t> row_bytes(here.size());
  std::vector<Gradient> own(here.size());
  int64_t most = 0;  // bytes of rows and values before those of equal rows are added up
  for (size_t i = 0; i < here.size(); ++i) {
    const Tensor& weight = tables_[here[i]]->weight();
    row_bytes[i] = weight.size(1) * static_cast<int64_t>(item_size(weight.dtype()));
    own[i] = row_gradient(here[i]);
    if (own[i].defined()) most += own[i].rows.numel() * (static_cast<int64_t>(sizeof(int64_t)) + row_bytes[i]);
  }
  // Rows and values of all tables travel together, table by table.
  const Tensor packed = empty_in_huge_pages({most}, kUInt8);
  auto* to = packed.data<uint8_t>();
  const Tensor own_counts = full({tables}, kNone, kInt64);
  for (size_t i = 0; i < here.size(); ++i) {
    if (!own[i].defined()) continue;
    const Gradient unique = unique_rows(here[i], own[i]).reduce(own[i]);
    own_counts.data<int64_t>()[i] = unique.rows.size(0);
    if (unique.rows.numel() == 0) continue;
    for (const Tensor& t : {unique.rows, unique.values}) {
      std::memcpy(to, t.data_ptr(), t.nbytes());
      to += t.nbytes();
    }
  }
  const std::vector<int64_t> alike(static_cast<size_t>(group_->size()), tables);
  const Tensor all_counts = rows_of_ranks(*group_, own_counts, alike);
  for (Group& group : groups_) group.unique_rows.release();
  const auto count_of = [&](size_t rank, size_t i) {
    return std::max<int64_t>(all_counts.data<int64_t>()[rank * here.size() + i], 0);
  };
  std::vector<int64_t> bytes(alike.size(), 0);
  for (size_t r = 0; r < bytes.size(); ++r)
    for (size_t i = 0; i < here.size(); ++i)
      bytes[r] += count_of(r, i) * (static_cast<int64_t>(sizeof(int64_t)) + row_bytes[i]);
  const Tensor gathered =
      rows_of_ranks(*group_, packed.narrow(0, 0, bytes[static_cast<size_t>(group_->rank())]), bytes);
  const auto* from = gathered.data<uint8_t>();
  std::vector<Gradient> all(here.size());
  std::vector<int64_t> done(here.size(), 0);
  for (size_t i = 0; i < here.size(); ++i) {
    bool is_defined = false;  // on one rank
    int64_t rows = 0;
    for (size_t r = 0; r < bytes.size(); ++r) {
      is_defined |= all_counts.data<int64_t>()[r * here.size() + i] != kNone;
      rows += count_of(r, i);
    }
    const Tensor& weight = tables_[here[i]]->weight();
    if (is_defined)
      all[i] = {empty({rows, weight.size(1)}, TensorOptions(weight.dtype(), weight.device())), empty({rows}, kInt64)};
  }
  for (size_t r = 0; r < bytes.size(); ++r)
    for (size_t i = 0; i < here.size(); ++i) {
      const auto count = static_cast<size_t>(count_of(r, i)), width = static_cast<size_t>(row_bytes[i]);
      if (count == 0) continue;
      std::memcpy(all[i].rows.data<int64_t>() + done[i], from, count * sizeof(int64_t));
      from += count * sizeof(int64_t);
      std::memcpy(static_cast<std::byte*>(all[i].values.data_ptr()) + static_cast<size_t>(done[i]) * width, from,
                  count * width);
      from += count * width;
      done[i] += static_cast<int64_t>(count);
    }
  for (size_t i = 0; i < here.size(); ++i)
    if (all[i].defined()) set_gradient(tables_[here[i]]->weight(), std::move(all[i]));
}

/** Of vectors that came from other ranks: sends them there. */
void EmbeddingCollection::send_back_gradients() {
  const NoGradGuard no_grad;
  std::vector<VectorGradients> sums;
  for (const RemoteVectors& one : remote_) {
    const Group& group = groups_[one.group];
    const Tensor& vectors = one.vectors;
    const Gradient gradient = gradient_of(vectors);
    Tensor sum;
    if (gradient.defined()) {
      UniqueRows& unique_rows = groups_[one.group].unique_rows;
      const Tensor& positions = keys_of_step_->questions(group.request).positions;
      const bool has_own_rows = gradient.rows.data_ptr() == positions.data_ptr();
      if (has_own_rows) unique_rows.share(gradient.rows);
      const Gradient unique = (has_own_rows ? unique_rows : unique_rows_).reduce(gradient);
      if (unique.rows.size(0) == vectors.size(0)) {
        sum = empty_in_huge_pages(vectors.sizes(), TensorOptions(vectors.dtype(), vectors.device()));
        copy_(sum, unique.values);
      } else {
        sum = zeros(vectors.sizes(), TensorOptions(vectors.dtype(), vectors.device()));
        index_copy_(sum, 0, unique.rows, unique.values);
      }
    } else {  // no row of the batch reads it, or the table is frozen
      sum = zeros(vectors.sizes(), TensorOptions(vectors.dtype(), vectors.device()));
    }
    sums.push_back({group.request, sum, group.row_offsets});
  }
  for (Group& group : groups_) group.unique_rows.release();
  std::vector<Tensor> values = send_gradients(*keys_of_step_, sums);
  std::vector<std::vector<Tensor>> values_of(tables_.size()), rows_of(tables_.size());
  for (size_t i = 0; i < remote_.size(); ++i) {
    values_of[remote_[i].table].push_back(values[i]);
    rows_of[remote_[i].table].push_back(groups_[remote_[i].group].rows);
  }
  const auto joined = [](const std::vector<Tensor>& parts) { return parts.size() == 1 ? parts[0] : cat(parts, 0); };
  for (size_t t = 0; t < tables_.size(); ++t)
    if (!values_of[t].empty() && tables_[t]->weight().requires_grad())
      set_gradient(tables_[t]->weight(), {joined(values_of[t]), joined(rows_of[t])});
}

void EmbeddingCollection::add_to(optim::GradientNorm& norm) {
  optim::GradientNorm here;  // of rows that only this rank has
  here.clear(norm.limit());
  for (size_t t = 0; t < tables_.size(); ++t)
    if (const Gradient gradient = row_gradient(t); gradient.defined())
      (tables_[t]->shard().is_whole() ? norm : here)
          .add_rows(gradient, unique_rows(t, gradient), tables_[t]->rows_without_key());
  if (!asker_) return;
  const Tensor squares = full({1}, here.squares(), kFloat64);
  sum_over_ranks(*group_, squares);
  norm.add_squares(squares.item<double>());
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
  for (const RemoteVectors& one : remote_)
    if (one.vectors.defined()) clear_gradient(one.vectors);
}

void EmbeddingCollection::forget_nonfinite() {
  for (optim::Optimizer& optimizer : optimizers_) optimizer.forget_nonfinite();
}

bool EmbeddingCollection::is_finite() const {
  return std::all_of(optimizers_.begin(), optimizers_.end(),
                     [](const optim::Optimizer& optimizer) { return optimizer.is_finite(); });
}

}  // namespace tercel::recsys
