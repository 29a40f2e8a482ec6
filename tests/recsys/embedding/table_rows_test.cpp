// Keys and vectors out of tables and into them.
#include "tercel/recsys/embedding/table_rows.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "tercel/ops/factories/factories.h"
#include "tercel/ops/views/views.h"
#include "tercel/recsys/embedding/hashed_table.h"
#include "tercel/recsys/embedding/static_table.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace tercel::recsys {
namespace {

using test::bytes_of;
using Numbers = std::vector<int64_t>;

const nn::Init kInit = nn::Init::uniform(0.5);
constexpr int64_t kDim = 2;

Tensor keys_of(const Numbers& values) {
  Tensor t = empty({static_cast<int64_t>(values.size())}, kInt64);
  std::copy(values.begin(), values.end(), t.data<int64_t>());
  return t;
}

Numbers numbers(const Tensor& t) { return {t.data<int64_t>(), t.data<int64_t>() + t.numel()}; }

void allocate(EmbeddingTable& table) {
  ASSERT_TRUE(table.allocate(1, {}, {}, [] { return true; }));
}

/** [n, kDim]: 0.5, 1.5, ... */
Tensor vectors_of(int64_t n) {
  Tensor t = empty({n, kDim}, kFloat32);
  for (int64_t i = 0; i < n * kDim; ++i) t.data<float>()[i] = static_cast<float>(i) + 0.5F;
  return t;
}

std::vector<float> vector_of(EmbeddingTable& table, int64_t key) {
  const int64_t row = numbers(table.find_rows(keys_of({key}), NewKeys::Refuse))[0];
  const float* const first = table.weight().data<float>() + row * kDim;
  return {first, first + kDim};
}

TEST(TableRows, OfARangeOfKeys) {
  StaticTable table("items", 10, 4, kDim, kInit);
  allocate(table);
  const KeyRows all = rows_of_keys(table);
  EXPECT_EQ(numbers(all.keys), (Numbers{10, 11, 12, 13}));
  EXPECT_EQ(numbers(all.rows), (Numbers{0, 1, 2, 3}));
  const std::vector<float> before = vector_of(table, 11);
  set_vectors(table, keys_of({13, 10}), vectors_of(2));
  EXPECT_EQ(vector_of(table, 13), (std::vector<float>{0.5F, 1.5F}));
  EXPECT_EQ(vector_of(table, 10), (std::vector<float>{2.5F, 3.5F}));
  EXPECT_EQ(vector_of(table, 11), before);
}

TEST(TableRows, OfATableThatGrows) {
  HashedTable table("items", kDim, kInit, {.admission = 3});
  allocate(table);
  set_vectors(table, keys_of({7, -5, INT64_MAX, 0}), vectors_of(4));  // three occurrences are not needed
  const KeyRows all = rows_of_keys(table);
  EXPECT_EQ(numbers(all.keys), (Numbers{-5, 0, 7, INT64_MAX}));
  EXPECT_EQ(numbers(all.rows), (Numbers{2, 4, 1, 3}));
  EXPECT_EQ(vector_of(table, 0), (std::vector<float>{6.5F, 7.5F}));
  EXPECT_EQ(vector_of(table, 8), (std::vector<float>{0, 0}));  // without a row: the default value
}

TEST(TableRows, EvictedKeysAreNotAmongThem) {
  HashedTable table("items", kDim, kInit, {.capacity = 3, .eviction = Eviction::Age});
  allocate(table);
  for (const int64_t key : {1, 2, 3, 4}) table.find_rows(keys_of({key}), NewKeys::Insert);
  EXPECT_EQ(numbers(rows_of_keys(table).keys), (Numbers{2, 3, 4}));
}

TEST(TableRows, ADoubleIsRoundedAndNothingIsNothing) {
  StaticTable table("items", 0, 2, kDim, kInit);
  allocate(table);
  set_vectors(table, keys_of({1}), full({1, kDim}, 0.1, kFloat64));
  EXPECT_EQ(vector_of(table, 1), (std::vector<float>{0.1F, 0.1F}));
  set_vectors(table, keys_of({}), empty({0, kDim}, kFloat32));
}

TEST(TableRows, RefusesWhatDoesNotFitAndChangesNothing) {
  StaticTable table("items", 0, 3, kDim, kInit);
  allocate(table);
  const auto before = bytes_of(table.weight().detach());
  TERCEL_EXPECT_THROW(set_vectors(table, keys_of({1, 3}), vectors_of(2)), IndexError, "items");
  TERCEL_EXPECT_THROW(set_vectors(table, keys_of({1, 1}), vectors_of(2)), ValueError, "key 1 occurs twice");
  TERCEL_EXPECT_THROW(set_vectors(table, keys_of({1}), vectors_of(2)), ValueError,
                      "embedding table 'items': expected vectors [1, 2] of float32 or float64, found [2, 2]");
  TERCEL_EXPECT_THROW(set_vectors(table, zeros({1}, kFloat32), vectors_of(1)), ValueError,
                      "expected keys [n] of int64");
  const Tensor infinite = vectors_of(2);
  infinite.data<float>()[3] = std::numeric_limits<float>::infinity();
  TERCEL_EXPECT_THROW(set_vectors(table, keys_of({0, 2}), infinite), ValueError, "the vector of key 2 has inf");
  EXPECT_EQ(bytes_of(table.weight().detach()), before);

  HashedTable full_table("users", kDim, kInit, {.capacity = 2});
  allocate(full_table);
  TERCEL_EXPECT_THROW(set_vectors(full_table, keys_of({1, 2, 3}), vectors_of(3)), RuntimeError, "users");
  EXPECT_EQ(rows_of_keys(full_table).keys.numel(), 0);
  Tensor weight = full_table.weight();
  weight.requires_grad_(false);
  set_vectors(full_table, keys_of({5}), vectors_of(1));  // a frozen table takes vectors, too
  EXPECT_EQ(vector_of(full_table, 5), (std::vector<float>{0.5F, 1.5F}));
}

}  // namespace
}  // namespace tercel::recsys
