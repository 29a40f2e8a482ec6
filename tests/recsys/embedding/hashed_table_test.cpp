// Tables that grow: rows of new keys, against std::unordered_map.
#include "tercel/recsys/embedding/hashed_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <unordered_map>

#include "tercel/ops/factories/factories.h"
#include "tercel/optim/optimizer.h"
#include "tercel/recsys/embedding/embedding_collection.h"
#include "tercel/recsys/embedding/initialize_rows.h"
#include "tercel/util/parallel.h"
#include "tests/support/errors.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/tensors.h"

namespace tercel::recsys {
namespace {

using test::bytes_of;
using Numbers = std::vector<int64_t>;

constexpr int64_t kDim = 3;
const nn::Init kInit = nn::Init::uniform(0.5);
const auto kAlways = [] { return true; };

Tensor tensor_of(const Numbers& values) {
  Tensor t = empty({static_cast<int64_t>(values.size())}, kInt64);
  std::copy(values.begin(), values.end(), t.data<int64_t>());
  return t;
}

Numbers find(HashedTable& table, const Numbers& keys, NewKeys new_keys = NewKeys::Refuse) {
  const Tensor rows = table.find_rows(tensor_of(keys), new_keys);
  const auto* const first = rows.data<int64_t>();
  return {first, first + rows.numel()};
}

Numbers insert(HashedTable& table, const Numbers& keys) { return find(table, keys, NewKeys::Insert); }

std::unique_ptr<HashedTable> table_of(const HashedTableOptions& options = {}, const nn::Init& init = kInit,
                                      double state = 0.5) {
  auto table = std::make_unique<HashedTable>("table", kDim, init, options);
  EXPECT_TRUE(table->allocate(1, {optim::Optimizer::state_names(optim::Rule::Adam), state}, {}, kAlways));
  return table;
}

std::vector<float> row_of(const Tensor& t, int64_t row) {
  const auto* const first = t.data<float>() + row * kDim;
  return {first, first + kDim};
}

/** Random keys, some of them several times. */
Numbers random_keys(std::mt19937_64& random, size_t count, uint64_t range) {
  Numbers keys(count);
  for (int64_t& key : keys) key = static_cast<int64_t>(random() % range * 0x9e3779b97f4a7c15U);
  return keys;
}

TEST(HashedTable, RowsAreGivenInTheOrderOfTheKeysForAnyNumberOfThreads) {
  const int64_t before = num_threads();
  std::string weights[2];
  for (const int64_t threads : {1, 3}) {
    set_num_threads(threads);
    const std::unique_ptr<HashedTable> table = table_of();
    const float* const start = table->weight().data<float>();
    const Tensor weight = table->weight();
    std::mt19937_64 random(2);
    std::unordered_map<int64_t, int64_t> expected;
    for (int step = 0; step < 30; ++step) {
      const Numbers keys = random_keys(random, 10'000, 150'000);
      const Numbers rows = insert(*table, keys);
      for (size_t i = 0; i < keys.size(); ++i)
        ASSERT_EQ(rows[i], expected.try_emplace(keys[i], static_cast<int64_t>(expected.size()) + 1).first->second);
      ASSERT_EQ(table->rows(), static_cast<int64_t>(expected.size()) + 1);
      ASSERT_EQ(find(*table, keys), rows);
    }
    EXPECT_GT(expected.size(), 100'000u);
    EXPECT_EQ(table->weight().data<float>(), start) << "rows do not move";
    EXPECT_EQ(weight.size(0), table->rows()) << "the tensor itself grows";
    for (const auto& [key, row] : expected) {
      if (row % 97 != 0) continue;
      const Tensor values = empty({1, kDim});
      initialize_rows(values, kInit, 1, "table", key);
      ASSERT_EQ(row_of(weight, row), row_of(values, 0));
    }
    for (const Tensor& state : table->store().states()) {
      EXPECT_EQ(state.sizes(), weight.sizes());
      ASSERT_TRUE(
          std::all_of(state.data<float>(), state.data<float>() + state.numel(), [](float x) { return x == 0.5F; }));
    }
    weights[threads == 1 ? 0 : 1] = bytes_of(weight);
  }
  set_num_threads(before);
  EXPECT_EQ(weights[0], weights[1]);
}

TEST(HashedTable, OnlyTrainingInserts) {
  const std::unique_ptr<HashedTable> table = table_of({.default_value = 0.25});
  EXPECT_EQ(find(*table, {5, -5, 0}), (Numbers{0, 0, 0}));
  EXPECT_EQ(find(*table, {}, NewKeys::Insert), Numbers{});
  EXPECT_EQ(row_of(table->weight(), 0), (std::vector<float>{0.25F, 0.25F, 0.25F}));
  EXPECT_EQ(insert(*table, {5, INT64_MIN, 5, 0}), (Numbers{1, 2, 1, 3}));
  EXPECT_EQ(find(*table, {0, 7, 5}), (Numbers{3, 0, 1}));
  Tensor weight = table->weight();
  weight.requires_grad_(false);
  EXPECT_EQ(insert(*table, {7, 5}), (Numbers{0, 1})) << "frozen";
  EXPECT_EQ(table->rows(), 4);
}

TEST(HashedTable, AKeyIsAdmittedAtItsNthOccurrence) {
  const std::unique_ptr<HashedTable> table = table_of({.admission = 3});
  EXPECT_EQ(insert(*table, {8, 9, 8}), (Numbers{0, 0, 0}));
  EXPECT_EQ(find(*table, {8, 8, 8}), (Numbers{0, 0, 0})) << "evaluation does not count";
  EXPECT_EQ(insert(*table, {9, 8, 8, 9}), (Numbers{0, 1, 1, 2}));
  const HashedTableStatistics s = table->statistics();
  EXPECT_EQ(s.keys, 2);
  EXPECT_EQ(s.waiting, 0);
  EXPECT_EQ(s.admitted, 2);
  EXPECT_EQ(s.refused, 4);
  insert(*table, {1});
  EXPECT_EQ(table->statistics().waiting, 1);
}

TEST(HashedTable, TheOldestOfTooManyWaitingKeysAreForgotten) {
  const std::unique_ptr<HashedTable> table = table_of({.admission = 3, .most_waiting = 3});
  EXPECT_EQ(insert(*table, {1, 2, 3, 1, 2}), (Numbers{0, 0, 0, 0, 0}));
  EXPECT_EQ(insert(*table, {4, 2}), (Numbers{0, 1})) << "1 is forgotten, though it had occurred twice";
  EXPECT_EQ(insert(*table, {1, 1}), (Numbers{0, 0})) << "it begins anew";
  EXPECT_EQ(table->statistics().waiting, 3);
  EXPECT_EQ(table->statistics().forgotten, 1);
  const Tensor waiting = table->key_state()[2];
  EXPECT_EQ(Numbers(waiting.data<int64_t>(), waiting.data<int64_t>() + 6), (Numbers{3, 1, 4, 1, 1, 2}));
  EXPECT_EQ(insert(*table, {5, 6, 1}), (Numbers{0, 0, 2})) << "3 and 4 are forgotten";
  EXPECT_EQ(table->statistics().forgotten, 3);
  TERCEL_EXPECT_THROW(HashedTable("t", 1, kInit, {.most_waiting = -1}), RuntimeError, "expected a capacity");
}

TEST(HashedTable, KeysThatOccurOnceTakeBoundedMemory) {
  const std::unique_ptr<HashedTable> table = table_of({.admission = 2, .most_waiting = 1000});
  int64_t next = 0;
  for (int step = 0; step < 300; ++step) {
    Numbers keys(1000);
    for (size_t i = 0; i < keys.size(); ++i) keys[i] = i % 10 == 0 ? static_cast<int64_t>(i) : 1'000'000 + next++;
    insert(*table, keys);
  }
  const HashedTableStatistics s = table->statistics();
  EXPECT_EQ(s.keys, 100) << "those that come back in each step";
  EXPECT_EQ(s.waiting, 1000);
  EXPECT_EQ(s.forgotten, 300 * 900 - 1000);
}

TEST(HashedTable, AKeyWaitsOnWhenThereIsNoRowForIt) {
  const std::unique_ptr<HashedTable> table = table_of({.capacity = 1, .admission = 2});
  insert(*table, {1, 1, 2, 3});
  TERCEL_EXPECT_THROW(insert(*table, {3}), RuntimeError, "exceeds");
  TERCEL_EXPECT_THROW(insert(*table, {2}), RuntimeError, "exceeds");
  EXPECT_EQ(table->statistics().waiting, 2);
  EXPECT_EQ(insert(*table, {4, 1}), (Numbers{0, 1}));
  EXPECT_EQ(table->statistics().waiting, 3);
}

TEST(HashedTable, AFullTableIsAnError) {
  const std::unique_ptr<HashedTable> table = table_of({.capacity = 3});
  insert(*table, {1, 2});
  TERCEL_EXPECT_THROW(insert(*table, {3, 4}), RuntimeError,
                      "embedding table 'table': Runtime vocabulary size (4) exceeds max_vocabulary_size_per_gpu (3)");
  EXPECT_EQ(find(*table, {1, 2, 3, 4}), (Numbers{1, 2, 0, 0})) << "as before the call";
  EXPECT_EQ(insert(*table, {4}), Numbers{3});
  TERCEL_EXPECT_THROW(HashedTable("t", 1, kInit, {.admission = 0}), RuntimeError, "expected a capacity");
  TERCEL_EXPECT_THROW(HashedTable("t", 1, kInit, {.eviction = Eviction::Age}), RuntimeError, "expected a capacity");
}

TEST(HashedTable, TheRarestKeysAreEvicted) {
  const std::unique_ptr<HashedTable> table = table_of({.capacity = 3, .eviction = Eviction::Frequency});
  insert(*table, {1, 2, 2, 3, 3, 3});
  Tensor(table->store().states()[0]).data<float>()[3] = 9;  // of key 1
  EXPECT_EQ(insert(*table, {4, 4, 4, 4}), (Numbers{1, 1, 1, 1}));
  EXPECT_EQ(find(*table, {1, 2, 3, 4}), (Numbers{0, 2, 3, 1}));
  EXPECT_EQ(row_of(table->store().states()[0], 1), (std::vector<float>{0.5F, 0.5F, 0.5F})) << "as a new row";
  const Tensor values = empty({1, kDim});
  initialize_rows(values, kInit, 1, "table", 4);
  EXPECT_EQ(row_of(table->weight(), 1), row_of(values, 0));
  EXPECT_EQ(insert(*table, {1, 2}), (Numbers{3, 2})) << "3 is the rarest that the batch does not need";
  EXPECT_EQ(table->statistics().evicted, 2);
  TERCEL_EXPECT_THROW(insert(*table, {5, 6, 7, 8}), RuntimeError, "the keys of one batch are more");
}

TEST(HashedTable, TheOldestKeysAreEvicted) {
  const std::unique_ptr<HashedTable> table = table_of({.capacity = 3, .eviction = Eviction::Age});
  insert(*table, {1, 1, 1, 1});
  insert(*table, {2});
  insert(*table, {3});
  insert(*table, {1});
  EXPECT_EQ(insert(*table, {4}), Numbers{2});
  EXPECT_EQ(find(*table, {1, 2, 3, 4}), (Numbers{1, 0, 3, 2}));
}

/** Every operation, and a second table that continues from the first one's state in each step. */
TEST(HashedTable, RandomStepsContinueFromAState) {
  std::mt19937_64 random(5);
  for (const Eviction eviction : {Eviction::Frequency, Eviction::Age}) {
    const HashedTableOptions options{
        .capacity = 400, .eviction = eviction, .admission = 2, .most_waiting = eviction == Eviction::Age ? 30 : 0};
    std::unique_ptr<HashedTable> table = table_of(options);
    for (int step = 0; step < 200; ++step) {
      const Numbers keys = random_keys(random, 1 + random() % 200, 600);
      std::unique_ptr<HashedTable> next = table_of(options);
      next->set_key_state(table->key_state());
      const Numbers rows = insert(*table, keys);
      ASSERT_EQ(insert(*next, keys), rows);
      const Numbers found = find(*table, keys);
      std::unordered_map<int64_t, int64_t> row_of_key, key_of_row;
      for (size_t i = 0; i < keys.size(); ++i) {
        if (rows[i] != 0) {
          ASSERT_EQ(found[i], rows[i]);
        }
        if (found[i] == 0) continue;
        ASSERT_LE(found[i], options.capacity);
        ASSERT_EQ(row_of_key.try_emplace(keys[i], found[i]).first->second, found[i]);
        ASSERT_EQ(key_of_row.try_emplace(found[i], keys[i]).first->second, keys[i]);
      }
      const std::vector<Tensor> a = table->key_state(), b = next->key_state();
      for (size_t i = 0; i < a.size(); ++i) ASSERT_EQ(bytes_of(a[i]), bytes_of(b[i]));
      const HashedTableStatistics s = table->statistics();
      ASSERT_EQ(s.keys, s.admitted - s.evicted);
      if (step % 2 == 0) table = std::move(next);
    }
    EXPECT_GT(table->statistics().evicted, 400);
    EXPECT_EQ(table->statistics().forgotten > 100, eviction == Eviction::Age);
  }
}

TEST(HashedTable, ADamagedStateIsAnError) {
  const std::unique_ptr<HashedTable> table = table_of();
  insert(*table, {1, 2, 3});
  const std::vector<Tensor> whole = table->key_state();
  const auto expect_refused = [&](size_t part, const Tensor& content, const char* text) {
    const std::unique_ptr<HashedTable> other = table_of({.capacity = 5});
    std::vector<Tensor> state = whole;
    state[part] = content;
    TERCEL_EXPECT_THROW(other->set_key_state(state), DataError, text);
    EXPECT_EQ(other->rows(), 1);
  };
  expect_refused(0, tensor_of({0, 4, 5, 4}), "a key occurs twice");
  expect_refused(0, tensor_of({}), "expected at least one row");
  expect_refused(0, tensor_of({0, 1, 2, 3, 4, 5, 6}), "expected at most 5 rows, found 6");
  expect_refused(0, zeros({4}), "expected int64");
  expect_refused(1, tensor_of({4}), "expected free rows in descending order");
  expect_refused(1, tensor_of({1, 2}), "expected free rows in descending order");
  expect_refused(2, tensor_of({1, 2}), "expected pairs");
  expect_refused(2, zeros({1, 2}, kInt64), "a waiting key never occurred");
  expect_refused(2, tensor_of({8, INT64_MAX}).reshape({1, 2}), "a waiting key occurred too often");
  expect_refused(3, tensor_of({0, 0, 0, INT64_MAX}), "a score is out of range");
  expect_refused(4, tensor_of({1}), "expected 4 or 5 counters");
  expect_refused(4, tensor_of({1, 1, -1, 1}), "a counter is out of range");
  TERCEL_EXPECT_THROW(table->set_key_state({}), DataError, "expected its five tensors");
  std::vector<Tensor> older = whole;  // of a version that forgot no keys
  older[4] = tensor_of({1, 3, 0, 0});
  const std::unique_ptr<HashedTable> other = table_of();
  other->set_key_state(older);
  EXPECT_EQ(other->statistics().admitted, 3);
}

TEST(HashedTable, ALoadedRowIsNewWhenAnotherKeyGetsIt) {
  const HashedTableOptions options{.capacity = 3, .eviction = Eviction::Age};
  const std::unique_ptr<HashedTable> table = table_of(options), next = table_of(options, kInit, 0);
  insert(*table, {1});
  insert(*table, {2, 3});
  next->set_key_state(table->key_state());
  Tensor state = next->store().states()[0];
  for (int64_t i = 0; i < state.numel(); ++i) state.data<float>()[i] = 9;  // as a checkpoint has it
  EXPECT_EQ(insert(*next, {4}), Numbers{1});
  EXPECT_EQ(row_of(state, 1), std::vector<float>(kDim, 0));
  EXPECT_EQ(row_of(state, 2), std::vector<float>(kDim, 9));
}

TEST(HashedTable, AdmitGivesARowAtOnce) {
  const std::unique_ptr<HashedTable> table = table_of({.admission = 3});
  insert(*table, {8});
  Tensor weight = table->weight();
  weight.requires_grad_(false);
  EXPECT_EQ(find(*table, {9, 8}, NewKeys::Admit), (Numbers{1, 2}));
  EXPECT_EQ(find(*table, {8, 9, 7}), (Numbers{2, 1, 0}));
  EXPECT_EQ(bytes_of(table->keys()), bytes_of(tensor_of({9, 8})));
}

/** Two lookups in a table, of keys {a} and {b}; the rows that they find. */
std::pair<int64_t, int64_t> train_two(EmbeddingCollection& all, int64_t a, int64_t b) {
  data::Batch batch;
  batch.rows = 1;
  batch.sparse.push_back({.name = "a", .slot_num = 1, .row_offsets = tensor_of({0, 1}), .keys = tensor_of({a})});
  batch.sparse.push_back({.name = "b", .slot_num = 1, .row_offsets = tensor_of({0, 1}), .keys = tensor_of({b})});
  std::vector<Tensor> rows;
  all.find_rows(batch, NewKeys::Insert, rows);
  return {rows[0].data<int64_t>()[0], rows[1].data<int64_t>()[0]};
}

TEST(HashedTable, EvictionKeepsTheRowsOfAllLookupsOfABatch) {
  EmbeddingCollection all;
  const HashedTableOptions options{.capacity = 2, .eviction = Eviction::Age};
  const size_t table =
      all.add_table(std::make_unique<HashedTable>("table", kDim, kInit, options), {.type = optim::Rule::Sgd});
  for (const char* input : {"a", "b"}) all.add_lookup({input, table, input, BagMode::Sum, 1});
  ASSERT_TRUE(all.allocate(1, {}, kAlways));
  EXPECT_EQ(train_two(all, 1, 2), std::pair(int64_t{1}, int64_t{2}));
  EXPECT_EQ(train_two(all, 3, 1), std::pair(int64_t{2}, int64_t{1})) << "key 1 is the oldest, but b needs it";
  EXPECT_EQ(train_two(all, 1, 4), std::pair(int64_t{1}, int64_t{2})) << "and here a does";
  all.add_lookup({"c", table, "c", BagMode::Sum, 1});
  data::Batch batch;
  batch.rows = 1;
  for (const char* input : {"a", "b", "c"})
    batch.sparse.push_back(
        {.name = input, .slot_num = 1, .row_offsets = tensor_of({0, 1}), .keys = tensor_of({5 + input[0]})});
  std::vector<Tensor> rows;
  TERCEL_EXPECT_THROW(all.find_rows(batch, NewKeys::Insert, rows), RuntimeError, "the keys of one batch are more");
}

TEST(HashedTable, TheNormOfGradientsHasNoKeysWithoutARow) {
  EmbeddingCollection all;
  all.add_lookup({"a",
                  all.add_table(std::make_unique<HashedTable>("table", kDim, kInit, HashedTableOptions{.admission = 2}),
                                {.type = optim::Rule::Sgd}),
                  "a", BagMode::Sum, 1});
  ASSERT_TRUE(all.allocate(1, {}, kAlways));
  const auto norm_of = [&all](const Numbers& keys) {
    data::Batch batch;
    batch.rows = 1;
    batch.sparse.push_back({.name = "a",
                            .slot_num = 1,
                            .row_offsets = tensor_of({0, static_cast<int64_t>(keys.size())}),
                            .keys = tensor_of(keys)});
    std::vector<Tensor> rows;
    all.find_rows(batch, NewKeys::Insert, rows);
    all.look_up(0, batch, rows).backward(ones({1, 1, kDim}));
    optim::GradientNorm norm;
    all.add_to(norm);
    all.clear_gradients();
    return norm.value();
  };
  EXPECT_EQ(norm_of({1, 2, 3}), 0);
  EXPECT_DOUBLE_EQ(norm_of({1, 4, 5}), std::sqrt(3.0));
}

TEST(HashedTable, OtherDevicesAreRefused) {
  HashedTable table("table", kDim, kInit);
  TERCEL_EXPECT_THROW(table.allocate(1, {}, kCuda, kAlways), NotImplementedError, "rows that grow are in the memory");
  EXPECT_FALSE(table.weight().defined());
}

TEST(HashedTable, KeysWithoutARowAreNotTrained) {
  EmbeddingCollection all;
  all.add_lookup({"lookup",
                  all.add_table(std::make_unique<HashedTable>("table", kDim, kInit, HashedTableOptions{.admission = 2}),
                                {.type = optim::Rule::Adam}),
                  "keys", BagMode::Mean, 1});
  ASSERT_TRUE(all.allocate(1, {}, kAlways));
  data::Batch batch;
  batch.rows = 2;
  batch.sparse.push_back(
      {.name = "keys", .slot_num = 1, .row_offsets = tensor_of({0, 3, 4}), .keys = tensor_of({7, 7, 8, 9})});
  std::vector<Tensor> rows;
  all.find_rows(batch, NewKeys::Insert, rows);
  const Tensor vectors = all.look_up(0, batch, rows);
  const std::vector<float> row = row_of(all.tables()[0]->weight(), 1);
  for (size_t c = 0; c < kDim; ++c)
    EXPECT_FLOAT_EQ(vectors.data<float>()[c], row[c] / 3) << "the mean divides by all keys";
  vectors.backward(ones({2, 1, kDim}));
  all.update(0.1, 1);
  const Tensor& weight = all.tables()[0]->weight();
  EXPECT_EQ(row_of(weight, 0), std::vector<float>(kDim, 0));
  EXPECT_NE(row_of(weight, 1), row);
  for (const Tensor& state : all.tables()[0]->store().states())
    EXPECT_EQ(row_of(state, 0), std::vector<float>(kDim, 0));
}

}  // namespace
}  // namespace tercel::recsys
