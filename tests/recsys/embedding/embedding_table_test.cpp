// What every embedding table does; a new kind of table is a line in tables().
#include "tercel/recsys/embedding/embedding_table.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <ostream>
#include <random>

#include "tercel/autograd/autograd.h"
#include "tercel/io/safetensors.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/embedding/row_gradient.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/views/views.h"
#include "tercel/recsys/embedding/embedding_collection.h"
#include "tercel/recsys/embedding/hashed_table.h"
#include "tercel/recsys/embedding/initialize_rows.h"
#include "tercel/recsys/embedding/static_table.h"
#include "tests/optim/rule_reference.h"
#include "tests/support/errors.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/tensors.h"
#include "tests/util/temporary_folder.h"

namespace tercel::recsys {
namespace {

using optim::Rule;
using test::bytes_of;
using test::make;
using test::values_of;

constexpr int64_t kDim = 5, kBatch = 6, kSlots = 2;
const nn::Init kInit = nn::Init::uniform(0.5);

/** A kind of table, with keys that it has, after they were inserted, and those that it refuses. */
struct Kind {
  const char* name;
  std::function<std::unique_ptr<EmbeddingTable>(const std::string& name, const nn::Init& init)> make;
  std::vector<int64_t> keys, missing;
};

void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

std::vector<int64_t> range(int64_t first, int64_t count) {
  std::vector<int64_t> keys;
  for (int64_t k = 0; k < count; ++k) keys.push_back(first + k);
  return keys;
}

Kind static_kind(const char* name, int64_t first, int64_t count) {
  const auto make = [=](const std::string& table, const nn::Init& init) {
    return std::make_unique<StaticTable>(table, first, count, kDim, init);
  };
  return {name, make, range(first, count), {first - 1, first + count, -1, INT64_MAX, INT64_MIN}};
}

Kind hashed_kind(const char* name, const HashedTableOptions& options) {
  const auto make = [=](const std::string& table, const nn::Init& init) {
    return std::make_unique<HashedTable>(table, kDim, init, options);
  };
  return {name, make, range(-11, 23), {}};
}

std::vector<Kind> fixed_kinds() {
  return {static_kind("StaticFromZero", 0, 23), static_kind("StaticFromKey", 1000, 23)};
}

std::vector<Kind> kinds() {
  std::vector<Kind> all = fixed_kinds();
  all.push_back(hashed_kind("Hashed", {}));
  all.push_back(hashed_kind("HashedWithEviction", {.capacity = 23, .eviction = Eviction::Frequency}));
  return all;
}

Tensor tensor_of(const std::vector<int64_t>& values, ScalarType dtype = kInt64) {
  return make({static_cast<int64_t>(values.size())}, dtype, std::vector<double>(values.begin(), values.end()));
}

/** A batch of bags with 0 to 3 keys each. */
data::Batch batch_of(const Kind& kind, uint64_t seed, ScalarType dtype = kInt64) {
  std::mt19937_64 random(seed);
  std::vector<int64_t> offsets = {0}, keys;
  for (int64_t bag = 0; bag < kBatch * kSlots; ++bag) {
    for (uint64_t n = random() % 4; n > 0; --n) keys.push_back(kind.keys[random() % kind.keys.size()]);
    offsets.push_back(static_cast<int64_t>(keys.size()));
  }
  data::Batch batch;
  batch.rows = kBatch;
  batch.sparse.push_back(
      {.name = "keys", .slot_num = kSlots, .row_offsets = tensor_of(offsets, dtype), .keys = tensor_of(keys, dtype)});
  return batch;
}

optim::OptimizerOptions options_of(Rule rule) {
  optim::OptimizerOptions options;
  options.type = rule;
  options.initial_accu_value = 0.02;
  options.beta = 0.5;
  options.lambda1 = 0.3;
  return options;
}

const auto kAlways = [] { return true; };

/** A collection of one table and one lookup of "keys". */
EmbeddingCollection collection_of(const Kind& kind, Rule rule = Rule::Sgd, BagMode combiner = BagMode::Sum,
                                  uint64_t seed = 1) {
  EmbeddingCollection all;
  all.add_lookup({"lookup", all.add_table(kind.make("table", kInit), options_of(rule)), "keys", combiner, kSlots});
  EXPECT_TRUE(all.allocate(seed, {}, kAlways));
  all.tables()[0]->find_rows(tensor_of(kind.keys), NewKeys::Insert);
  return all;
}

Tensor look_up(EmbeddingCollection& all, const data::Batch& batch, NewKeys new_keys = NewKeys::Refuse) {
  std::vector<Tensor> rows;
  all.find_rows(batch, new_keys, rows);
  return all.look_up(0, batch, rows);
}

/** The row of each key of a batch. */
std::vector<size_t> rows_of(EmbeddingCollection& all, const data::Batch& batch) {
  std::vector<size_t> rows;
  for (const double row : values_of(all.tables()[0]->find_rows(batch.sparse[0].keys, NewKeys::Refuse)))
    rows.push_back(static_cast<size_t>(row));
  return rows;
}

/** Calls f(bag, position, keys of the bag) for every key. */
template <class F>
void for_each_key(const data::Batch& batch, F f) {
  const std::vector<double> offsets = values_of(batch.sparse[0].row_offsets);
  for (size_t bag = 0; bag + 1 < offsets.size(); ++bag)
    for (auto i = static_cast<size_t>(offsets[bag]); i < static_cast<size_t>(offsets[bag + 1]); ++i)
      f(bag, i, offsets[bag + 1] - offsets[bag]);
}

class EmbeddingTables : public ::testing::TestWithParam<Kind> {};

TEST_P(EmbeddingTables, ALookupCombinesTheRowsOfEachBag) {
  for (const BagMode combiner : {BagMode::Sum, BagMode::Mean})
    for (const ScalarType dtype : {kInt64, kInt32}) {
      EmbeddingCollection all = collection_of(GetParam(), Rule::Sgd, combiner);
      const data::Batch batch = batch_of(GetParam(), 3, dtype);
      const std::vector<double> weight = values_of(all.tables()[0]->weight());
      const std::vector<size_t> rows = rows_of(all, batch);
      std::vector<double> expected(kBatch * kSlots * kDim, 0);
      for_each_key(batch, [&](size_t bag, size_t i, double count) {
        for (size_t c = 0; c < kDim; ++c)
          expected[bag * kDim + c] += weight[rows[i] * kDim + c] / (combiner == BagMode::Mean ? count : 1);
      });
      const Tensor found = look_up(all, batch);
      EXPECT_EQ(found.sizes(), IntSpan({kBatch, kSlots, kDim}));
      const std::vector<double> values = values_of(found);
      for (size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(values[i], expected[i], 1e-6);
    }
}

/** Gives every element of the lookup's result the gradient `grad`. */
void backward(const Tensor& vectors, const Tensor& grad) { sum(mul(vectors, grad)).backward(); }

/** The gradient of the whole table. */
std::vector<double> expected_gradient(EmbeddingCollection& all, const data::Batch& batch, const Tensor& grad) {
  const std::vector<double> g = values_of(grad);
  const std::vector<size_t> rows = rows_of(all, batch);
  std::vector<double> expected(static_cast<size_t>(all.tables()[0]->rows() * kDim), 0);
  const bool mean = all.lookups()[0].combiner == BagMode::Mean;
  for_each_key(batch, [&](size_t bag, size_t i, double count) {
    for (size_t c = 0; c < kDim; ++c) expected[rows[i] * kDim + c] += g[bag * kDim + c] / (mean ? count : 1);
  });
  return expected;
}

TEST_P(EmbeddingTables, TheGradientHasRows) {
  for (const BagMode combiner : {BagMode::Sum, BagMode::Mean}) {
    EmbeddingCollection all = collection_of(GetParam(), Rule::Sgd, combiner);
    const data::Batch batch = batch_of(GetParam(), 4);
    const Tensor grad = test::random({kBatch, kSlots, kDim}, kFloat32, -1, 1, 5);
    backward(look_up(all, batch), grad);
    const Tensor& weight = all.tables()[0]->weight();
    const Gradient found = gradient_of(weight);
    ASSERT_TRUE(found.is_rows());
    const std::vector<double> values = values_of(dense_gradient(found, weight.sizes()));
    const std::vector<double> expected = expected_gradient(all, batch, grad);
    for (size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(values[i], expected[i], 1e-5);
    all.clear_gradients();
    EXPECT_FALSE(gradient_of(weight).defined());
  }
}

TEST_P(EmbeddingTables, EachRuleUpdatesTheRowsOfABatchOnly) {
  for (const Rule rule : {Rule::Sgd, Rule::MomentumSgd, Rule::Nesterov, Rule::Adam, Rule::AdamW, Rule::AdaGrad,
                          Rule::RmsProp, Rule::Ftrl}) {
    EmbeddingCollection all = collection_of(GetParam(), rule);
    const EmbeddingTable& table = *all.tables()[0];
    optim::RuleReference reference(options_of(rule), values_of(table.weight()));
    for (int64_t step = 1; step <= 8; ++step) {
      const data::Batch batch = batch_of(GetParam(), 10 + static_cast<uint64_t>(step));
      const Tensor grad = test::random({kBatch, kSlots, kDim}, kFloat32, -1, 1, static_cast<uint64_t>(step));
      backward(look_up(all, batch, NewKeys::Insert), grad);
      const std::vector<double> g = expected_gradient(all, batch, grad);
      std::vector<bool> named(static_cast<size_t>(table.rows()), false);
      for (const size_t row : rows_of(all, batch)) named[row] = true;
      for (size_t i = 0; i < g.size(); ++i)
        if (named[i / kDim]) reference.step(i, g[i], 0.1, static_cast<double>(step));
      all.update(0.1, step);
      EXPECT_FALSE(gradient_of(table.weight()).defined());
    }
    const auto expect_near = [&](const Tensor& found, const std::vector<double>& expected) {
      const std::vector<double> values = values_of(found);
      ASSERT_EQ(values.size(), expected.size());
      for (size_t i = 0; i < values.size(); ++i) ASSERT_NEAR(values[i], expected[i], 1e-4) << to_string(rule);
    };
    expect_near(table.weight(), reference.w);
    ASSERT_EQ(table.store().states().size(), optim::Optimizer::state_names(rule).size());
    const std::vector<double>* states[] = {&reference.a, &reference.b};
    for (size_t k = 0; k < table.store().states().size(); ++k) expect_near(table.store().states()[k], *states[k]);
    EXPECT_TRUE(all.is_finite());
  }
}

TEST_P(EmbeddingTables, AStoredTableContinues) {
  const test::TemporaryFolder folder;
  const auto tensors = [](EmbeddingCollection& all) {
    const RowStore& rows = all.tables()[0]->store();
    return std::vector<io::NamedTensor>{{"weight", rows.weight()}, {"m", rows.states()[0]}, {"v", rows.states()[1]}};
  };
  const auto train = [&](EmbeddingCollection& all, int64_t first, int64_t last) {
    for (int64_t step = first; step <= last; ++step) {
      backward(look_up(all, batch_of(GetParam(), static_cast<uint64_t>(step)), NewKeys::Insert),
               test::random({kBatch, kSlots, kDim}, kFloat32, -1, 1, static_cast<uint64_t>(step)));
      all.update(0.1, step);
    }
  };
  EmbeddingCollection whole = collection_of(GetParam(), Rule::Adam);
  train(whole, 1, 3);
  io::write_safetensors(folder / "table", tensors(whole));
  const std::vector<Tensor> key_state = whole.tables()[0]->key_state();
  train(whole, 4, 6);
  EmbeddingCollection resumed = collection_of(GetParam(), Rule::Adam, BagMode::Sum, /*seed=*/2);
  resumed.tables()[0]->set_key_state(key_state);
  const io::SafetensorsReader reader(folder / "table");
  for (const io::NamedTensor& t : tensors(resumed)) reader.read_into(t);
  train(resumed, 4, 6);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(bytes_of(tensors(resumed)[i].tensor), bytes_of(tensors(whole)[i].tensor));

  // For prediction, the weight is that of the file.
  EmbeddingCollection mapped;
  mapped.add_lookup({"lookup", mapped.add_table(GetParam().make("table", kInit), {}), "keys", BagMode::Sum, kSlots});
  mapped.tables()[0]->set_key_state(key_state);
  const io::SafetensorsReader map(folder / "table", {.mmap = true});
  mapped.tables()[0]->set_weight(map.read(*map.find("weight")));
  EmbeddingCollection third = collection_of(GetParam(), Rule::Adam);
  train(third, 1, 3);
  const data::Batch batch = batch_of(GetParam(), 9);
  EXPECT_EQ(bytes_of(look_up(mapped, batch)), bytes_of(look_up(third, batch)));
  TERCEL_EXPECT_THROW(mapped.update(0.1, 1), RuntimeError, "without optimizer states cannot be trained");
  TERCEL_EXPECT_THROW(mapped.tables()[0]->set_weight(zeros({1, kDim})), RuntimeError,
                      "embedding table 'table': expected contiguous float32 or float64 [");
  TERCEL_EXPECT_THROW(mapped.tables()[0]->set_weight(zeros({mapped.tables()[0]->rows(), kDim})), RuntimeError,
                      "embedding table 'table': it has rows already");
}

TEST_P(EmbeddingTables, FirstValuesAreThoseOfTheKeys) {
  EmbeddingCollection all = collection_of(GetParam(), Rule::AdaGrad);
  EmbeddingTable& table = *all.tables()[0];
  const std::vector<double> rows = values_of(table.find_rows(tensor_of(GetParam().keys), NewKeys::Insert));
  for (size_t k = 0; k < GetParam().keys.size(); ++k) {
    const Tensor expected = empty({1, kDim});
    initialize_rows(expected, kInit, 1, "table", GetParam().keys[k]);
    EXPECT_EQ(bytes_of(table.weight().narrow(0, static_cast<int64_t>(rows[k]), 1)), bytes_of(expected));
  }
  for (const double x : values_of(table.store().states()[0])) ASSERT_FLOAT_EQ(static_cast<float>(x), 0.02F);
}

/** Tables whose keys are known when they are made. */
class FixedTables : public ::testing::TestWithParam<Kind> {};

TEST_P(FixedTables, AKeyWithoutARowIsAnError) {
  EmbeddingCollection all = collection_of(GetParam());
  for (const int64_t missing : GetParam().missing) {
    std::vector<int64_t> keys(kBatch * kSlots, GetParam().keys[0]);
    keys[3] = missing;
    data::Batch batch;
    batch.rows = kBatch;
    batch.sparse.push_back({.name = "keys",
                            .slot_num = kSlots,
                            .row_offsets = tensor_of(range(0, kBatch * kSlots + 1)),
                            .keys = empty({kBatch * kSlots}, kInt64)});
    std::copy(keys.begin(), keys.end(), batch.sparse[0].keys.data<int64_t>());
    const std::string text = str_cat({"embedding table 'table': no row for key ", missing, " (at position 3)"});
    TERCEL_EXPECT_THROW(look_up(all, batch), IndexError, text.c_str());
  }
}

TEST_P(FixedTables, LackOfMemoryNamesTableAndState) {
  test::FailingAllocator allocator;
  const test::ScopedAllocator scope(allocator);
  const char* expected[] = {
      "embedding table 'table' (23 rows of 5): empty: [23, 5] float32: out of memory",
      "embedding table 'table' (23 rows of 5): the optimizer's 'm': empty: [23, 5] float32: out of memory",
      "embedding table 'table' (23 rows of 5): the optimizer's 'v': empty: [23, 5] float32: out of memory"};
  for (int64_t n = 1; n <= 3; ++n) {
    const std::unique_ptr<EmbeddingTable> table = GetParam().make("table", kInit);
    allocator.fail_call(n);
    TERCEL_EXPECT_THROW(table->allocate(1, {optim::Optimizer::state_names(Rule::Adam), 0}, {}, kAlways),
                        OutOfMemoryError, expected[n - 1]);
    EXPECT_FALSE(table->weight().defined());
  }
}

TEST_P(EmbeddingTables, ValuesDoNotDependOnTheDtype) {
  const RowStates states{optim::Optimizer::state_names(Rule::Adam), 0.5};
  const std::unique_ptr<EmbeddingTable> narrow = GetParam().make("table", kInit),
                                        wide = GetParam().make("table", kInit);
  ASSERT_TRUE(narrow->allocate(3, states, {}, kAlways));
  ASSERT_TRUE(wide->allocate(3, states, kFloat64, kAlways));
  for (EmbeddingTable* table : {narrow.get(), wide.get()})
    table->find_rows(tensor_of(GetParam().keys), NewKeys::Insert);
  EXPECT_EQ(wide->weight().dtype(), kFloat64);
  EXPECT_EQ(values_of(wide->weight()), values_of(narrow->weight())) << "the same first values";
  for (const Tensor& state : wide->store().states()) {
    EXPECT_EQ(state.dtype(), kFloat64);
    for (const double x : values_of(state)) ASSERT_EQ(x, 0.5);
  }
}

TEST_P(FixedTables, AreWhereTheyShouldBe) {
  const RowStates states{optim::Optimizer::state_names(Rule::Adam), 0.5};
  const std::unique_ptr<EmbeddingTable> moved = GetParam().make("table", nn::Init::zero());
  TERCEL_EXPECT_THROW(moved->allocate(3, states, kCuda, kAlways), NotImplementedError, "no allocator for device cuda");
  test::HostAllocator memory(kCuda);
  const test::ScopedAllocator scope(memory, DeviceType::Cuda);
  ASSERT_TRUE(moved->allocate(3, states, kCuda, kAlways));
  EXPECT_EQ(moved->weight().device(), kCuda);
  for (const Tensor& state : moved->store().states()) EXPECT_EQ(state.device(), kCuda);
}

INSTANTIATE_TEST_SUITE_P(All, EmbeddingTables, ::testing::ValuesIn(kinds()),
                         [](const auto& param_info) { return std::string(param_info.param.name); });
INSTANTIATE_TEST_SUITE_P(All, FixedTables, ::testing::ValuesIn(fixed_kinds()),
                         [](const auto& param_info) { return std::string(param_info.param.name); });

TEST(StaticTable, IsInitialisedInPartsThatMayBeStopped) {
  constexpr int64_t kRows = (int64_t{1} << 21) + 5, kFew = 3;  // two parts
  const auto table = [] { return StaticTable("t", 7, kRows, kFew, nn::Init::normal(0.5)); };
  StaticTable whole = table(), stopped = table();
  ASSERT_TRUE(whole.allocate(7, {}, {}, kAlways));
  const Tensor expected = empty({kRows, kFew});
  initialize_rows(expected, nn::Init::normal(0.5), 7, "t", 7);
  EXPECT_TRUE(bytes_of(whole.weight()) == bytes_of(expected));
  int64_t asked = 0;
  EXPECT_FALSE(stopped.allocate(7, {}, {}, [&] { return ++asked < 2; }));
  EXPECT_EQ(asked, 2);
  EXPECT_FALSE(stopped.weight().defined());
}

}  // namespace
}  // namespace tercel::recsys
