#include "tercel/recsys/row_keys.h"

#include <gtest/gtest.h>

#include <vector>

#include "tercel/util/error.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace tercel::recsys {
namespace {

using tercel::test::make;

/** Slots a, b in input "first", c (of several keys) and d in inputs of their own, and two columns. */
data::Schema schema() {
  data::Schema schema;
  schema.slots = {{"a", 0, 0, 1}, {"b", 0, 0, 1}, {"c", 0, 0, 3}, {"d", 0, 0, 1}};
  schema.columns = {{"user", data::ColumnType::I64}, {"weight", data::ColumnType::F32}};
  return schema;
}
const std::vector<data::SparseInput> kInputs = {{"first", 2}, {"second", 1}, {"third", 1}};

/** Three rows; the second has no key in slot b. */
data::Batch batch(data::BagOrder order, ScalarType dtype) {
  data::Batch batch;
  batch.rows = 3;
  if (order == data::BagOrder::SampleMajor)
    batch.sparse = {
        {"first", 2, 0, order, make({7}, dtype, {0, 1, 2, 3, 3, 4, 5}), make({5}, dtype, {10, 20, 11, 12, 22})}};
  else
    batch.sparse = {
        {"first", 2, 0, order, make({7}, dtype, {0, 1, 2, 3, 4, 4, 5}), make({5}, dtype, {10, 11, 12, 20, 22})}};
  batch.sparse.push_back({"third", 1, 1, order, make({4}, dtype, {0, 1, 2, 3}), make({3}, dtype, {7, 8, 9})});
  batch.columns = {{"user", make({3}, kInt64, {5, -6, 7})}};
  return batch;
}

TEST(RowKeys, OfSlotsInputsAndColumns) {
  for (const auto order : {data::BagOrder::SampleMajor, data::BagOrder::SlotMajor})
    for (const ScalarType dtype : {kInt64, kInt32}) {
      const data::Batch rows = batch(order, dtype);
      const auto keys = [&](const char* name) {
        return RowKeys(schema(), kInputs, name, "group_by").read(rows).to_vector();
      };
      EXPECT_EQ(keys("a"), (std::vector<int64_t>{10, 11, 12}));
      EXPECT_EQ(keys("b"), (std::vector<int64_t>{20, RowKeys::kNone, 22}));
      EXPECT_EQ(keys("d"), (std::vector<int64_t>{7, 8, 9}));
      EXPECT_EQ(keys("third"), keys("d"));
      EXPECT_EQ(keys("user"), (std::vector<int64_t>{5, -6, 7}));
    }
}

TEST(RowKeys, MistakesAreNamed) {
  const auto of = [](const char* name) { return RowKeys(schema(), kInputs, name, "eval: group_by"); };
  TERCEL_EXPECT_THROW(of("usr"), ConfigError,
                      "eval: group_by: unknown slot or column of integers 'usr'; did you mean 'user'?");
  TERCEL_EXPECT_THROW(of("weight"), ConfigError, "unknown slot or column of integers 'weight'");
  TERCEL_EXPECT_THROW(of("first"), ConfigError, "unknown slot");
  TERCEL_EXPECT_THROW(of("c"), ConfigError, "slot 'c' has up to 3 keys in a row; expected one that has a single key");
  data::Batch rows = batch(data::BagOrder::SampleMajor, kInt64);
  rows.columns.clear();
  TERCEL_EXPECT_THROW(of("user").read(rows), ConfigError, "eval: group_by: the batch has no column 'user'");
  EXPECT_TRUE(of("user").is_column());
  EXPECT_FALSE(of("d").is_column());
}

}  // namespace
}  // namespace tercel::recsys
