#include "tercel/recsys/row_ids.h"

#include <gtest/gtest.h>

#include <vector>

#include "tercel/util/error.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace tercel::recsys {
namespace {

using tercel::test::make;
using Names = std::vector<std::string>;

data::Schema schema() {
  data::Schema schema;
  schema.dense_dim = 2;
  schema.dense_names = {"age", "price"};
  schema.slots = {{"a", 0, 0, 1}, {"many", 0, 0, 3}};
  schema.columns = {{"user", data::ColumnType::I64}, {"time", data::ColumnType::F32}};
  return schema;
}
const std::vector<data::SparseInput> kInputs = {{"first", 1}, {"second", 1}};

/** Two rows; the second has no key in slot a. */
data::Batch batch() {
  data::Batch batch;
  batch.rows = 2;
  batch.dense = make({2, 2}, kFloat32, {1, 2, 3, 4});
  batch.sparse = {{"first", 1, 0, data::BagOrder::SampleMajor, make({3}, kInt64, {0, 1, 1}), make({1}, kInt64, {9})}};
  batch.columns = {{"user", make({2}, kInt64, {5, -6})}, {"time", make({2}, kFloat32, {0.5, 0.25})}};
  return batch;
}

RowIds ids(const char* name) { return RowIds(schema(), kInputs, name, "predict"); }

TEST(RowIds, OfSlotsDenseValuesAndColumns) {
  const data::Batch rows = batch();
  for (const char* name : {"a", "user"}) {
    RowIds of = ids(name);
    EXPECT_EQ(of.type(), data::ValueType::I64);
    const data::TableValues found = of.read(rows);
    EXPECT_EQ(found.integers.to_vector(),
              name[0] == 'a' ? (std::vector<int64_t>{9, RowKeys::kNone}) : (std::vector<int64_t>{5, -6}));
    EXPECT_TRUE(found.floats.empty() && found.texts.empty());
  }
  for (const char* name : {"price", "time"}) {
    RowIds of = ids(name);
    EXPECT_EQ(of.type(), data::ValueType::F32);
    EXPECT_EQ(of.read(rows).floats.to_vector(),
              name[0] == 'p' ? (std::vector<float>{2, 4}) : (std::vector<float>{0.5, 0.25}));
  }
  EXPECT_EQ(ids("a").columns(), Names());
  EXPECT_EQ(ids("price").columns(), Names());
  EXPECT_EQ(ids("user").columns(), Names{"user"});
  EXPECT_EQ(ids("time").columns(), Names{"time"});
}

TEST(RowIds, MistakesAreNamed) {
  TERCEL_EXPECT_THROW(
      ids("usr"), ConfigError,
      "predict: unknown slot or column 'usr'; did you mean 'user'? known: a, many, user, age, price, time");
  TERCEL_EXPECT_THROW(ids("many"), ConfigError, "slot 'many' has up to 3 keys in a row");
  data::Batch rows = batch();
  rows.columns.clear();
  RowIds time = ids("time");
  TERCEL_EXPECT_THROW(time.read(rows), ConfigError, "the batch has no column 'time'");
}

}  // namespace
}  // namespace tercel::recsys
