#include "tercel/recsys/hugectr/sparse_tensor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <vector>

#include "tercel/core/sparse_data.h"
#include "tercel/data/batch.h"
#include "tercel/ops/factories/factories.h"
#include "tests/data/norm_data.h"
#include "tests/support/errors.h"

namespace tercel::recsys::hugectr {
namespace {

template <class T>
Tensor2<T> typed(std::initializer_list<T> elements) {
  Tensor t = empty({static_cast<int64_t>(elements.size())}, scalar_type_of<T>());
  std::copy(elements.begin(), elements.end(), t.data<T>());
  return Tensor2<T>(t);
}

TEST(SparseTensor, HoldsValuesAndRowOffsets) {
  const Tensor2<int64_t> keys = typed<int64_t>({4, 5, 1, 2, 3, 5, 1, 3, 2, 0}), offsets = typed<int64_t>({0, 4, 7, 9});
  const SparseTensor<int64_t> sparse({3, 4}, keys, offsets, std::make_shared<int64_t>(9));
  EXPECT_EQ(sparse.get_dimensions(), IntSpan({3, 4}));
  EXPECT_EQ(sparse.nnz(), 9);
  EXPECT_EQ(sparse.max_nnz(), 10);
  EXPECT_EQ(sparse.rowoffset_count(), 4);
  EXPECT_EQ(sparse.get_value_ptr(), keys.get_ptr());
  EXPECT_EQ(sparse.get_rowoffset_ptr(), offsets.get_ptr());
  EXPECT_TRUE(sparse.get_value_tensor().tensor().is_same(keys.tensor()));
  EXPECT_TRUE(sparse.get_rowoffset_tensor().tensor().is_same(offsets.tensor()));
}

TEST(SparseTensor, CopiesShareTheCounter) {
  const SparseTensor<int32_t> sparse({1, 2}, typed<int32_t>({7, 8}), typed<int32_t>({0, 2}),
                                     std::make_shared<int64_t>(0));
  const SparseTensorBag bag = sparse.shrink();
  const auto again = SparseTensor<int32_t>::stretch_from(bag);
  *sparse.get_nnz_ptr() = 2;
  EXPECT_EQ(again.nnz(), 2);
  EXPECT_EQ(bag.nnz(), 2);
  EXPECT_EQ(bag.dtype(), kInt32);
  EXPECT_EQ(again.get_value_ptr(), sparse.get_value_ptr());
  *sparse.get_nnz_ptr() = 3;
  TERCEL_EXPECT_THROW(again.nnz(), RuntimeError,
                      "SparseTensor: expected a number of values in [0, 2], but the counter is 3");
  TERCEL_EXPECT_THROW(SparseTensor<int64_t>::stretch_from(bag), TypeError,
                      "SparseTensor::stretch_from: expected elements of int64, found int32");
}

TEST(SparseTensor, RefusesPartsThatDoNotFit) {
  const Tensor2<int64_t> keys = typed<int64_t>({1, 2}), offsets = typed<int64_t>({0, 1, 2});
  const auto counter = std::make_shared<int64_t>(2);
  using Sparse = SparseTensor<int64_t>;
  EXPECT_EQ(Sparse({1, 2}, keys, offsets, counter).rowoffset_count(), 3);  // a sample of two slots
  TERCEL_EXPECT_THROW(Sparse({3, 2}, keys, offsets, counter), RuntimeError,
                      "SparseTensor: expected row offsets for a number of slots of 3 samples, and one more, but got 3");
  TERCEL_EXPECT_THROW(Sparse({0, 2}, keys, offsets, counter), RuntimeError, "slots of 0 samples");
  TERCEL_EXPECT_THROW(Sparse({}, keys, offsets, counter), RuntimeError, "expected sizes [samples, most keys");
  TERCEL_EXPECT_THROW(Sparse({2, 2}, keys, offsets, nullptr), RuntimeError, "expected a counter of values");
  TERCEL_EXPECT_THROW(Sparse({2, 2}, keys, offsets, std::make_shared<int64_t>(-1)), RuntimeError, "is -1");
  TERCEL_EXPECT_THROW(Sparse({2, 2}, Tensor2<int64_t>(empty({1, 2}, kInt64)), offsets, counter), RuntimeError,
                      "but got sizes [1, 2] and [3]");
  TERCEL_EXPECT_THROW(Sparse({2, 2}, keys, Tensor2<int64_t>(empty({0}, kInt64)), counter), RuntimeError, "but got 0");
  TERCEL_EXPECT_THROW(SparseTensorBag({2, 2}, keys.shrink(), typed<int32_t>({0, 1, 2}).shrink(), counter), TypeError,
                      "SparseTensor: row offsets: expected elements of int64, found int32");
  TERCEL_EXPECT_THROW(Sparse().nnz(), RuntimeError, "SparseTensor: there are no tensors");
  TERCEL_EXPECT_THROW(Sparse().get_value_ptr(), TypeError, "there is no tensor");
}

/** The first batch, of 8 rows, of rows with slots of up to 2, 3 and 1 keys. */
data::Batch first_batch(bool ragged, data::ReaderOptions options = {}) {
  const tercel::test::TemporaryFolder folder;
  const data::Schema schema = data::test::make_schema(1, {2, 3, 1});
  const data::test::Rows rows = data::test::make_rows(schema, 8, ragged);
  const data::Dataset dataset =
      data::test::put_dataset(folder, schema, rows, data::KeyType::I64, data::CheckMode::None, {8});
  options.batch_size = 8;
  data::BatchReader reader(dataset, data::PartName::Train, options);
  data::Batch batch;
  EXPECT_TRUE(reader.next(batch));
  return batch;
}

TEST(SparseTensor, OfABatchWithoutCopying) {
  const data::Batch batch = first_batch(/*ragged=*/true);
  const data::SparseBatch& input = batch.sparse[0];
  const SparseTensor<int64_t> sparse(input);
  EXPECT_TRUE(sparse.get_value_tensor().tensor().is_same(input.keys));
  EXPECT_TRUE(sparse.get_rowoffset_tensor().tensor().is_same(input.row_offsets));
  EXPECT_EQ(sparse.nnz(), input.keys.numel());
  EXPECT_EQ(sparse.max_nnz(), input.keys.numel());
  EXPECT_EQ(sparse.rowoffset_count(), 8 * 3 + 1);
  int64_t most = 0;
  const int64_t* const offsets = input.row_offsets.data<int64_t>();
  for (int64_t row = 0; row < 8; ++row) most = std::max(most, offsets[3 * row + 3] - offsets[3 * row]);
  ASSERT_GT(most, 1);
  EXPECT_EQ(sparse.get_dimensions(), IntSpan({8, most}));
  TERCEL_EXPECT_THROW(SparseTensor<int32_t>{input}, TypeError, "SparseTensor: expected elements of int32, found int64");
  data::SparseBatch weighted = input;
  weighted.key_weights = ones(input.keys.numel());
  TERCEL_EXPECT_THROW(SparseTensor<int64_t>{weighted}, RuntimeError, "SparseTensor: it has no weights");
}

TEST(SparseTensor, AsACsrTensor) {
  const Tensor2<int64_t> keys = typed<int64_t>({4, 5, 1, 2, 3, 5, 1, 3, 2, 99}), offsets = typed<int64_t>({0, 4, 7, 9});
  const SparseTensor<int64_t> sparse({3, 4}, keys, offsets, std::make_shared<int64_t>(9));
  const Tensor csr = sparse.csr_tensor(6);
  EXPECT_EQ(csr.layout(), Layout::SparseCsr);
  EXPECT_EQ(csr.sizes(), IntSpan({3, 6}));
  const SparseData& parts = *csr.impl().sparse();
  EXPECT_EQ(parts.indices.data_ptr(), offsets.tensor().data_ptr());
  EXPECT_EQ(parts.plain_indices.sizes(), IntSpan({9}));  // of the values in use
  EXPECT_EQ(parts.plain_indices.data<int64_t>(), keys.get_ptr());
  EXPECT_EQ(parts.values.data<float>()[8], 1);
  TERCEL_EXPECT_THROW(sparse.csr_tensor(5), IndexError, "csr_tensor: expected keys in [0, 5), but key number 1 is 5");
  *sparse.get_nnz_ptr() = 8;
  TERCEL_EXPECT_THROW(sparse.csr_tensor(6), IndexError, "expected row offsets from 0 to 8");
  EXPECT_THROW(SparseTensor<int64_t>().csr_tensor(6), RuntimeError);
}

TEST(SparseTensor, KeepsTheKeysOfItsBatch) {
  const tercel::test::TemporaryFolder folder;
  const data::Schema schema = data::test::make_schema(1, {2, 3, 1});
  const data::test::Rows rows = data::test::make_rows(schema, 24, /*ragged=*/true);
  const data::Dataset dataset =
      data::test::put_dataset(folder, schema, rows, data::KeyType::I64, data::CheckMode::None, {24});
  data::ReaderOptions options;
  options.batch_size = 4;
  data::BatchReader reader(dataset, data::PartName::Train, options);
  data::Batch batch;
  std::vector<SparseTensor<int64_t>> kept;
  while (reader.next(batch)) kept.emplace_back(batch.sparse[0]);
  ASSERT_EQ(kept.size(), 6u);
  std::vector<int64_t> keys;
  for (const SparseTensor<int64_t>& sparse : kept)
    keys.insert(keys.end(), sparse.get_value_ptr(), sparse.get_value_ptr() + sparse.nnz());
  EXPECT_EQ(keys, rows.keys);
}

TEST(SparseTensor, OfABatchOfFullSlotsAndNarrowKeys) {
  data::ReaderOptions options;
  options.narrow_keys = true;
  options.inputs = {{"wide", 2}, {"one", 1}};
  const data::Batch batch = first_batch(/*ragged=*/false, options);
  const SparseTensor<int32_t> wide(batch.input("wide")), one(batch.input("one"));
  EXPECT_EQ(wide.get_dimensions(), IntSpan({8, 5}));
  EXPECT_EQ(one.get_dimensions(), IntSpan({8, 1}));
  EXPECT_EQ(wide.get_value_ptr(), batch.input("wide").keys.data<int32_t>());
  EXPECT_EQ(SparseTensorBag(batch.input("one")).dtype(), kInt32);
}

TEST(SparseTensor, OfNoBatch) {
  data::ReaderOptions options;
  options.bag_order = data::BagOrder::SlotMajor;
  const data::Batch batch = first_batch(/*ragged=*/true, options);
  TERCEL_EXPECT_THROW(SparseTensorBag{batch.sparse[0]}, RuntimeError, "in slot-major order");
  TERCEL_EXPECT_THROW(SparseTensorBag{data::SparseBatch()}, RuntimeError, "expected a tensor");
  data::SparseBatch odd = first_batch(/*ragged=*/true).sparse[0];
  odd.slot_num = 7;
  TERCEL_EXPECT_THROW(
      SparseTensorBag{odd}, RuntimeError,
      "SparseTensor: expected row offsets for a number of rows of 7 slots, and one more, but 'keys' has 25");
  odd.slot_num = 0;
  TERCEL_EXPECT_THROW(SparseTensorBag{odd}, RuntimeError, "rows of 0 slots");
  odd.slot_num = 1;
  odd.row_offsets = empty({0}, kInt64);
  TERCEL_EXPECT_THROW(SparseTensorBag{odd}, RuntimeError, "rows of 1 slots, and one more, but 'keys' has 0");
}

}  // namespace
}  // namespace tercel::recsys::hugectr
