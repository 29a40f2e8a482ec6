// Lookups that share tables, tables that share inputs.
#include "tercel/recsys/embedding/embedding_collection.h"

#include <gtest/gtest.h>

#include "tercel/autograd/autograd.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/recsys/embedding/static_table.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace tercel::recsys {
namespace {

using optim::OptimizerOptions;
using optim::Rule;
using test::bytes_of;
using test::make;
using test::values_of;

OptimizerOptions options_of(Rule rule) {
  OptimizerOptions options;
  options.type = rule;
  return options;
}

std::unique_ptr<EmbeddingTable> table_of(const std::string& name, int64_t first_key, int64_t rows, int64_t dim) {
  return std::make_unique<StaticTable>(name, first_key, rows, dim, nn::Init::uniform(0.5));
}

/** Two rows of inputs "a" (2 slots, bags of 2, 0, 1 and 3 keys) and "b" (1 slot, one key each). */
data::Batch two_inputs() {
  data::Batch batch;
  batch.rows = 2;
  batch.sparse.push_back({.name = "a",
                          .slot_num = 2,
                          .row_offsets = make({5}, kInt64, {0, 2, 2, 3, 6}),
                          .keys = make({6}, kInt64, {10, 12, 12, 15, 15, 19})});
  batch.sparse.push_back(
      {.name = "b", .slot_num = 1, .row_offsets = make({3}, kInt64, {0, 1, 2}), .keys = make({2}, kInt64, {12, 17})});
  return batch;
}

/** One step; the loss gives element i of every lookup's result the gradient (i % 5 - 1). */
void train(EmbeddingCollection& all, const data::Batch& batch, int64_t step) {
  std::vector<Tensor> rows;
  all.find_rows(batch, NewKeys::Insert, rows);
  Tensor loss;
  for (size_t l = 0; l < all.lookups().size(); ++l) {
    const Tensor vectors = all.look_up(l, batch, rows);
    std::vector<double> grad(static_cast<size_t>(vectors.numel()));
    for (size_t i = 0; i < grad.size(); ++i) grad[i] = static_cast<double>(i % 5) - 1;
    const Tensor part = sum(mul(vectors, make(vectors.sizes().to_vector(), kFloat32, grad)));
    loss = loss.defined() ? add(loss, part) : part;
  }
  loss.backward();
  all.update(0.1, step);
}

TEST(EmbeddingCollection, AGradientThatIsNotOfRows) {
  EmbeddingCollection all;
  all.add_lookup({"x", all.add_table(table_of("t", 10, 10, 3), options_of(Rule::Sgd)), "a", BagMode::Sum, 2});
  ASSERT_TRUE(all.allocate(1, {}, [] { return true; }));
  const Tensor weight = all.tables()[0]->weight();
  sum(weight).backward();
  TERCEL_EXPECT_THROW(all.update(0.1, 1), RuntimeError, "embedding table 't': expected a gradient of rows");
  EXPECT_FALSE(gradient_of(weight).defined());
  TERCEL_EXPECT_THROW(all.allocate(1, {}, [] { return true; }), RuntimeError,
                      "embedding table 't': it has rows already");
}

TEST(EmbeddingCollection, WeightsOfKeysScaleTheirVectors) {
  EmbeddingCollection all;
  all.add_lookup({"x", all.add_table(table_of("t", 10, 10, 3), options_of(Rule::Sgd)), "a", BagMode::Sum, 2});
  ASSERT_TRUE(all.allocate(1, {}, [] { return true; }));
  const std::vector<double> before = values_of(all.tables()[0]->weight());
  data::Batch batch = two_inputs();
  batch.sparse[0].key_weights = make({6}, kFloat32, {1, 0.5, -2, 3, 1, 0.25});
  std::vector<Tensor> rows;
  all.find_rows(batch, NewKeys::Insert, rows);
  const Tensor vectors = all.look_up(0, batch, rows);
  EXPECT_NEAR(values_of(vectors)[0], before[0] + 0.5 * before[2 * 3], 1e-6);
  EXPECT_NEAR(values_of(vectors)[6], -2 * before[2 * 3], 1e-6);
  sum(vectors).backward();
  all.update(0.1, 1);
  // Key 12 occurs with weights 0.5 and -2, key 19 with 0.25, key 11 never.
  const std::vector<double> after = values_of(all.tables()[0]->weight());
  EXPECT_NEAR(after[2 * 3] - before[2 * 3], -0.1 * (0.5 - 2), 1e-6);
  EXPECT_NEAR(after[9 * 3] - before[9 * 3], -0.1 * 0.25, 1e-6);
  EXPECT_EQ(after[3], before[3]);
}

TEST(EmbeddingCollection, TwoLookupsTrainOneTable) {
  constexpr int64_t kFirst = 10, kRows = 10, kDim = 3;
  EmbeddingCollection all;
  const size_t table = all.add_table(table_of("shared", kFirst, kRows, kDim), options_of(Rule::Sgd));
  all.add_lookup({"sum", table, "a", BagMode::Sum, 2});
  all.add_lookup({"mean", table, "a", BagMode::Mean, 2});
  all.add_lookup({"other", table, "b", BagMode::Sum, 1});
  ASSERT_TRUE(all.allocate(1, {}, [] { return true; }));
  const data::Batch batch = two_inputs();
  std::vector<double> expected = values_of(all.tables()[0]->weight());
  for (const Lookup& lookup : all.lookups()) {
    const std::vector<double> offsets = values_of(batch.input(lookup.input).row_offsets),
                              keys = values_of(batch.input(lookup.input).keys);
    for (size_t bag = 0; bag + 1 < offsets.size(); ++bag)
      for (auto i = static_cast<size_t>(offsets[bag]); i < static_cast<size_t>(offsets[bag + 1]); ++i)
        for (size_t c = 0; c < kDim; ++c) {
          const double share = lookup.combiner == BagMode::Mean ? 1 / (offsets[bag + 1] - offsets[bag]) : 1;
          expected[static_cast<size_t>(keys[i] - kFirst) * kDim + c] -=
              0.1 * share * (static_cast<double>((bag * kDim + c) % 5) - 1);
        }
  }
  train(all, batch, 1);
  const std::vector<double> found = values_of(all.tables()[0]->weight());
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-6) << i;
}

TEST(EmbeddingCollection, TablesOfOneInputTrainAsIfTheyWereAlone) {
  // Three tables read "a": two have the same first key and share rows, whatever their size, dim, rule and combiner.
  struct Case {
    const char* name;
    int64_t first_key, rows, dim;
    Rule rule;
    BagMode combiner;
  };
  const Case cases[] = {{"narrow", 10, 10, 1, Rule::AdaGrad, BagMode::Sum},
                        {"wide", 10, 30, 16, Rule::Adam, BagMode::Mean},
                        {"other", 4, 20, 4, Rule::MomentumSgd, BagMode::Sum}};
  const auto add = [](EmbeddingCollection& to, const Case& c) {
    to.add_lookup(
        {c.name, to.add_table(table_of(c.name, c.first_key, c.rows, c.dim), options_of(c.rule)), "a", c.combiner, 2});
  };
  EmbeddingCollection together;
  for (const Case& c : cases) add(together, c);
  ASSERT_TRUE(together.allocate(1, {}, [] { return true; }));
  const data::Batch batch = two_inputs();
  std::vector<Tensor> rows;
  together.find_rows(batch, NewKeys::Refuse, rows);
  EXPECT_EQ(rows.size(), 2u) << "one for each input and first key";
  for (int64_t step = 1; step <= 3; ++step) train(together, batch, step);
  for (size_t t = 0; t < 3; ++t) {
    EmbeddingCollection alone;
    add(alone, cases[t]);
    ASSERT_TRUE(alone.allocate(1, {}, [] { return true; }));
    for (int64_t step = 1; step <= 3; ++step) train(alone, batch, step);
    EXPECT_EQ(bytes_of(alone.tables()[0]->weight()), bytes_of(together.tables()[t]->weight())) << cases[t].name;
    for (size_t k = 0; k < alone.tables()[0]->store().states().size(); ++k)
      EXPECT_EQ(bytes_of(alone.tables()[0]->store().states()[k]), bytes_of(together.tables()[t]->store().states()[k]));
  }
}

TEST(EmbeddingCollection, AStepHoldsNothingOfTheBatch) {
  EmbeddingCollection all;
  all.add_lookup({"e", all.add_table(table_of("e", 0, 20, 2), options_of(Rule::Adam)), "a", BagMode::Sum, 2});
  ASSERT_TRUE(all.allocate(1, {}, [] { return true; }));
  const data::Batch batch = two_inputs();
  const auto uses = batch.sparse[0].keys.storage().use_count();
  train(all, batch, 1);
  EXPECT_EQ(batch.sparse[0].keys.storage().use_count(), uses) << "the reader may reuse the tensor";
}

TEST(EmbeddingCollection, Errors) {
  EmbeddingCollection all;
  TERCEL_EXPECT_THROW(all.add_lookup({"e", 0, "a", BagMode::Sum, 2}), RuntimeError, "lookup 'e': there is no table 0");
  all.add_lookup({"e", all.add_table(table_of("e", 0, 20, 2), options_of(Rule::Sgd)), "a", BagMode::Sum, 2});
  ASSERT_TRUE(all.allocate(1, {}, [] { return true; }));
  std::vector<Tensor> rows;
  data::Batch batch = two_inputs();
  batch.sparse[0].order = data::BagOrder::SlotMajor;
  TERCEL_EXPECT_THROW(all.find_rows(batch, NewKeys::Refuse, rows), RuntimeError,
                      "embedding of input 'a': expected a batch of order sample_major, got slot_major");
  batch.sparse.clear();
  TERCEL_EXPECT_THROW(all.find_rows(batch, NewKeys::Refuse, rows), ConfigError, "a");
  OptimizerOptions wrong = options_of(Rule::Adam);
  wrong.epsilon = 0;
  EmbeddingCollection refused;
  refused.add_table(table_of("e", 0, 20, 2), wrong);
  TERCEL_EXPECT_THROW(refused.allocate(1, {}, [] { return true; }), ConfigError, "epsilon");
}

/** One input of 2 slots: bags of 2, 0, 1 and 2 keys. */
data::Batch ragged() {
  data::Batch batch;
  batch.rows = 2;
  batch.sparse.push_back({.name = "a",
                          .slot_num = 2,
                          .row_offsets = make({5}, kInt64, {0, 2, 2, 3, 5}),
                          .keys = make({5}, kInt64, {1, 3, 0, 3, 3})});
  return batch;
}

TEST(EmbeddingCollection, VectorsSideBySideHaveZerosForMissingKeys) {
  EmbeddingCollection all;
  const size_t table = all.add_table(table_of("t", 0, 4, 2), options_of(Rule::Sgd));
  const size_t lookup = all.add_lookup({"l", table, "a", BagMode::Sum, 2, /*places=*/2});
  ASSERT_TRUE(all.allocate(1, {}, [] { return true; }));
  const Tensor& weight = all.tables()[0]->weight();
  const std::vector<double> before = values_of(weight);
  std::vector<Tensor> rows;
  all.find_rows(ragged(), NewKeys::Insert, rows);
  const Tensor vectors = all.look_up(lookup, ragged(), rows);
  EXPECT_EQ(vectors.sizes(), IntSpan({2, 2, 4}));
  const auto w = [&before](int64_t key, int64_t column) { return before[static_cast<size_t>(2 * key + column)]; };
  EXPECT_EQ(values_of(vectors), (std::vector<double>{w(1, 0), w(1, 1), w(3, 0), w(3, 1), 0, 0, 0, 0,  //
                                                     w(0, 0), w(0, 1), 0, 0, w(3, 0), w(3, 1), w(3, 0), w(3, 1)}));
  // The gradient of each element is its position: row 3 has three of them.
  std::vector<double> grad(16);
  for (size_t i = 0; i < grad.size(); ++i) grad[i] = static_cast<double>(i);
  sum(mul(vectors, make({2, 2, 4}, kFloat32, grad))).backward();
  all.update(1, 1);
  const std::vector<double> after = values_of(weight);
  const std::vector<double> expected = {8, 9, 0, 1, 0, 0, 2 + 12 + 14, 3 + 13 + 15};
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(before[i] - after[i], expected[i], 1e-5) << i;
}

TEST(EmbeddingCollection, VectorsSideBySideRefuseMoreKeysThanPlaces) {
  EmbeddingCollection all;
  const size_t table = all.add_table(table_of("t", 0, 4, 2), options_of(Rule::Sgd));
  const size_t lookup = all.add_lookup({"l", table, "a", BagMode::Sum, 2, /*places=*/1});
  ASSERT_TRUE(all.allocate(1, {}, [] { return true; }));
  std::vector<Tensor> rows;
  all.find_rows(ragged(), NewKeys::Refuse, rows);
  TERCEL_EXPECT_THROW(all.look_up(lookup, ragged(), rows), RuntimeError,
                      "lookup 'l': expected at most 1 keys in a slot, as its vectors are side by side, but got 2");
  data::Batch none;
  none.sparse.push_back(
      {.name = "a", .slot_num = 2, .row_offsets = make({1}, kInt64, {0}), .keys = make({0}, kInt64, {})});
  all.find_rows(none, NewKeys::Refuse, rows);
  EXPECT_EQ(all.look_up(lookup, none, rows).sizes(), IntSpan({0, 2, 2}));
}

}  // namespace
}  // namespace tercel::recsys
