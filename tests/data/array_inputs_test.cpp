#include "tercel/data/array_inputs.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tercel/util/error.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace tercel::data {
namespace {

using tercel::test::make;
using tercel::test::values_of;
using Values = std::vector<double>;

/** 2 dense values; s0 and s1 of 10 keys, s2 of 100 with up to 3 keys a row, from 20 on. */
Schema schema_of() {
  Schema schema;
  schema.dense_dim = 2;
  schema.slots = {{"s0", 10, 0, 1}, {"s1", 10, 10, 1}, {"s2", 100, 20, 3}};
  return schema;
}

const std::vector<SparseInput> kInputs = {{"pair", 2, {}, 0}, {"many", 1, {}, 0}};

Tensor keys(const std::vector<int64_t>& sizes, const Values& values, ScalarType dtype = kInt64) {
  return make(sizes, dtype, values);
}

Tensor strided(const Tensor& t, IntSpan sizes, IntSpan strides) {
  return Tensor(make_intrusive<TensorImpl>(t.storage(), t.dtype(), sizes, strides, 0));
}

/** Inputs that fit, of 2 rows. */
std::vector<ArrayInput> good() {
  return {{"x", make({2, 2}, kFloat32, {1, 2, 3, 4})},
          {"pair", keys({2, 2}, {3, 11, 4, 12})},
          {"many", keys({2, 3}, {20, 21, 22, 119, 20, 20})}};
}

Batch batch_of(const std::vector<ArrayInput>& arrays) { return batch_from_arrays(arrays, schema_of(), kInputs, "x"); }

template <class E = ValueError>
void refuses(const std::vector<ArrayInput>& arrays, const std::string& text) {
  TERCEL_EXPECT_THROW(batch_of(arrays), E, text);
}

/** `good()` with another array, or without one if its values are undefined. */
std::vector<ArrayInput> with(const ArrayInput& changed) {
  std::vector<ArrayInput> arrays = good();
  for (ArrayInput& array : arrays)
    if (array.name == changed.name) array = changed;
  std::erase_if(arrays, [](const ArrayInput& array) { return !array.values.defined(); });
  return arrays;
}

TEST(ArrayInputs, BySparseInput) {
  const Batch batch = batch_of(good());
  EXPECT_EQ(batch.rows, 2);
  EXPECT_EQ(batch.global_rows, 2);
  EXPECT_FALSE(batch.labels.defined());
  EXPECT_EQ(batch.dense.dtype(), kFloat32);
  EXPECT_EQ(values_of(batch.dense), (Values{1, 2, 3, 4}));
  const SparseBatch &pair = batch.input("pair"), &many = batch.input("many");
  EXPECT_EQ(pair.slot_num, 2);
  EXPECT_EQ(pair.hotness, 1);
  EXPECT_EQ(values_of(pair.row_offsets), (Values{0, 1, 2, 3, 4}));
  EXPECT_EQ(values_of(pair.keys), (Values{3, 11, 4, 12}));
  EXPECT_EQ(many.hotness, 3);
  EXPECT_EQ(values_of(many.row_offsets), (Values{0, 3, 6}));
}

TEST(ArrayInputs, BySlotInAnyOrderDtypeAndStride) {
  std::vector<ArrayInput> arrays = {
      {"s2", keys({4}, {30, 31, 32, 33}, kInt32), keys({3}, {0, 1, 4}, kInt32)},
      {"s1", keys({2, 1}, {11, 12}, kInt32)},
      {"x", strided(make({2, 2}, kFloat64, {1, 3, 2, 4}), {2, 2}, {1, 2})},
      {"s0", strided(keys({2, 2}, {3, 9, 4, 9}), {2}, {2})},
  };
  const Batch batch = batch_of(arrays);
  EXPECT_EQ(values_of(batch.dense), (Values{1, 2, 3, 4}));
  EXPECT_EQ(values_of(batch.input("pair").keys), (Values{3, 11, 4, 12}));
  EXPECT_EQ(batch.input("pair").hotness, 1);
  EXPECT_EQ(batch.input("many").hotness, 0) << "rows differ";
  EXPECT_EQ(values_of(batch.input("many").row_offsets), (Values{0, 1, 4}));
  EXPECT_EQ(values_of(batch.input("many").keys), (Values{30, 31, 32, 33}));
}

TEST(ArrayInputs, RowOffsetsOfSeveralSlots) {
  const Batch batch = batch_of(with({"pair", keys({3}, {3, 4, 12}), keys({5}, {0, 1, 1, 2, 3})}));
  EXPECT_EQ(values_of(batch.input("pair").row_offsets), (Values{0, 1, 1, 2, 3})) << "row 0 has no key in s1";
  EXPECT_EQ(batch.input("pair").hotness, 0);
  const Batch threes = batch_of(with({"pair", keys({2, 2, 1}, {3, 11, 4, 12})}));
  EXPECT_EQ(values_of(threes.input("pair").keys), (Values{3, 11, 4, 12}));
}

TEST(ArrayInputs, NoRows) {
  const Batch batch = batch_of({{"x", make({0, 2}, kFloat32, {})},
                                {"pair", make({0, 2}, kInt64, {})},
                                {"many", make({0}, kInt64, {}), keys({1}, {0})}});
  EXPECT_EQ(batch.rows, 0);
  EXPECT_EQ(values_of(batch.input("pair").row_offsets), (Values{0}));
}

TEST(ArrayInputs, SchemasWithoutDenseValues) {
  Schema schema = schema_of();
  schema.dense_dim = 0;
  std::vector<ArrayInput> arrays = good();
  arrays.erase(arrays.begin());
  const Batch batch = batch_from_arrays(arrays, schema, kInputs, "x");
  EXPECT_EQ(batch.dense.sizes(), IntSpan({2, 0}));
  arrays.push_back({"x", make({2, 0}, kFloat32, {})});
  EXPECT_EQ(batch_from_arrays(arrays, schema, kInputs, "x").rows, 2);
  TERCEL_EXPECT_THROW(batch_from_arrays({}, Schema{}, {}, "x"), ValueError, "batch: no inputs are given");
}

TEST(ArrayInputs, AnInputIsMeantWhereASlotHasItsName) {
  Schema schema = schema_of();
  schema.slots[0].name = "many";
  EXPECT_EQ(values_of(batch_from_arrays(good(), schema, kInputs, "x").input("pair").keys), (Values{3, 11, 4, 12}));
}

TEST(ArrayInputs, Names) {
  refuses(with({"x", {}}), "input 'x' [batch, 2] is missing");
  refuses(with({"pair", {}}), "input 'pair' is missing, and so are those of its slots ('s0' ...)");
  std::vector<ArrayInput> arrays = with({"pair", {}});
  arrays.push_back({"s0", keys({2}, {1, 2})});
  refuses(arrays, "input 's1' is missing");
  refuses(with({"many", {}}), "input 'many' is missing; give it, or its slot 's2'");
  Schema same = schema_of();
  same.slots[2].name = "many";
  const std::string text = test::message_of<ValueError>([&] {
    batch_from_arrays(with({"many", {}}), same, kInputs, "x");
  });
  EXPECT_EQ(text, "input 'many' is missing");
  arrays = good();
  arrays.push_back({"s1", keys({2}, {11, 12})});
  refuses(arrays, "input 's1' is given, and so is input 'pair', which contains it");
  arrays = good();
  arrays.push_back(arrays[1]);
  refuses(arrays, "input 'pair' is given twice");
  arrays = good();
  arrays.push_back({"mny", keys({2}, {11, 12})});
  refuses(arrays, "unknown input 'mny'; did you mean 'many'?");
}

TEST(ArrayInputs, ShapesAndDtypes) {
  refuses(with({"x", make({2, 3}, kFloat32, {1, 2, 3, 4, 5, 6})}),
          "input 'x': expected [batch, 2] without row offsets but got [2, 3]");
  refuses(with({"x", make({4}, kFloat32, {1, 2, 3, 4})}), "but got [4]");
  refuses(with({"x", make({3, 2}, kFloat32, {1, 2, 3, 4, 5, 6})}), "input 'pair' has 2 rows but input 'x' has 3");
  refuses(with({"pair", keys({2, 3}, {1, 2, 3, 4, 5, 6})}),
          "input 'pair': expected keys [batch, 2] or [batch, 2, n], or [nnz] with row offsets, but got [2, 3]");
  refuses(with({"pair", keys({4}, {1, 2, 3, 4})}), "but got [4]");
  refuses(with({"many", keys({2, 2, 1}, {20, 20, 20, 20})}),
          "input 'many': expected keys [batch] or [batch, n], or [nnz] with row offsets, but got [2, 2, 1]");
  refuses<TypeError>(with({"x", make({2, 2}, kBool, {1, 1, 1, 1})}),
                     "input 'x': expected values of float32, float64, int32 or int64 but got bool");
  refuses<TypeError>(with({"many", make({2}, kFloat32, {20, 20})}),
                     "input 'many': expected keys of int32 or int64 but got float32");
  const auto ragged = [](const Values& offsets, ScalarType dtype = kInt64) {
    return with({"many", keys({3}, {20, 21, 22}), keys({static_cast<int64_t>(offsets.size())}, offsets, dtype)});
  };
  EXPECT_NO_THROW(batch_of(ragged({0, 0, 3})));
  refuses(ragged({0, 3}), "input 'many' has 1 rows but input 'x' has 2");
  refuses(ragged({}), "input 'many': expected a multiple of 1 and one more row offsets, for 1 slot, but got 0");
  for (const Values& bad : {Values{0, 2, 2}, {1, 2, 3}, {0, 4, 3}, {0, 2, 4}, {-1, 2, 3}})
    refuses(ragged(bad), "input 'many': expected ascending row offsets from 0 to 3, the number of keys");
  refuses<TypeError>(ragged({0, 1, 3}, kFloat32), "input 'many': expected row offsets of int32 or int64");
  refuses(with({"pair", keys({4}, {1, 11, 2, 12}), keys({4}, {0, 1, 2, 4})}),
          "expected a multiple of 2 and one more row offsets, for 2 slots, but got 4");
  refuses(with({"many", keys({2, 1}, {20, 20}), keys({3}, {0, 1, 2})}),
          "input 'many': expected keys [nnz] and row offsets, but got [2, 1] and [3]");
}

TEST(ArrayInputs, ValuesAndKeys) {
  refuses(with({"x", make({2, 2}, kFloat32, {1, 2, 3, std::nan("")})}),
          "input 'x': row 1: expected dense value 1 to be a finite number but got nan");
  refuses(with({"x", make({2, 2}, kFloat64, {1, 2, 1e300, 3})}), "input 'x': row 1: expected dense value 0");
  refuses(with({"pair", keys({2, 2}, {3, 11, 4, 20})}),
          "input 'pair': row 1: expected a key from 10 to 19 in slot 1 ('s1') but got 20");
  refuses(with({"pair", keys({2, 2}, {-1, 11, 4, 12})}),
          "row 0: expected a key from 0 to 9 in slot 0 ('s0') but got -1");
  refuses(with({"many", keys({2, 4}, {20, 20, 20, 20, 20, 20, 20, 20})}),
          "input 'many': row 0: expected 0 to 3 keys in slot 2 ('s2') but got 4");
  // Slots without a size are limited by their table.
  Schema schema = schema_of();
  schema.slots[2] = {"s2", 0, 0, 3};
  const std::vector<SparseInput> inputs = {{"pair", 2, {}, 0}, {"many", 1, "embedding", 100}};
  TERCEL_EXPECT_THROW(
      batch_from_arrays(good(), schema, inputs, "x"), ValueError,
      "input 'many': row 1: expected a key from 0 to 99 in slot 2 ('s2') of table 'embedding' but got 119");
}

TEST(ArrayInputs, WeightsOfKeys) {
  Schema schema = schema_of();
  schema.slots[1].weighted = schema.slots[2].weighted = true;
  const auto made = [&](const ArrayInput& changed) { return batch_from_arrays(with(changed), schema, kInputs, "x"); };
  const Tensor values = keys({2, 3}, {20, 21, 22, 119, 20, 20});
  const Batch regular = made({"many", values, {}, make({2, 3}, kFloat64, {1, 2, 3, 4, 5, 0.5})});
  EXPECT_EQ(values_of(regular.input("many").key_weights), (Values{1, 2, 3, 4, 5, 0.5}));
  EXPECT_FALSE(regular.input("pair").key_weights.defined());
  const Batch ragged = made({"many", keys({2}, {20, 21}), keys({3}, {0, 2, 2}), make({2}, kFloat32, {-1, 0.25})});
  EXPECT_EQ(values_of(ragged.input("many").key_weights), (Values{-1, 0.25}));
  // By slot: those of the others weigh 1.
  std::vector<ArrayInput> by_slot = with({"pair", {}});
  by_slot.push_back({"s0", keys({2}, {3, 4})});
  by_slot.push_back({"s1", keys({2}, {11, 12}), {}, make({2}, kFloat32, {0.5, 2})});
  EXPECT_EQ(values_of(batch_from_arrays(by_slot, schema, kInputs, "x").input("pair").key_weights),
            (Values{1, 0.5, 1, 2}));

  TERCEL_EXPECT_THROW(made({"many", values, {}, make({3, 2}, kFloat32, {1, 2, 3, 4, 5, 6})}), ValueError,
                      "input 'many': expected a weight for each key, [2, 3], but got [3, 2]");
  TERCEL_EXPECT_THROW(made({"many", values, {}, make({2, 3}, kFloat32, {1, 2, 3, 4, HUGE_VAL, 6})}), ValueError,
                      "input 'many': row 1: expected weights that are finite numbers but got inf");
  TERCEL_EXPECT_THROW(made({"pair", keys({2, 2}, {3, 11, 4, 12}), {}, make({2, 2}, kFloat32, {1, 1, 1, 1})}),
                      ValueError,
                      "input 'pair': row 0: expected no weights, as keys of slot 's0' have none in the dataset");
  TERCEL_EXPECT_THROW(made({"many", values, {}, make({2, 3}, kBool, {1, 1, 1, 1, 1, 1})}), TypeError, "weights");
}

}  // namespace
}  // namespace tercel::data
