#include "tercel/data/csr_tensor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <string>
#include <vector>

#include "tercel/core/sparse_data.h"
#include "tercel/data/batch_reader.h"
#include "tests/data/norm_data.h"
#include "tests/support/errors.h"
#include "tests/support/failing_allocator.h"

namespace tercel::data::test {
namespace {

Tensor put(std::initializer_list<int64_t> elements) {
  Tensor t = empty({static_cast<int64_t>(elements.size())}, kInt64);
  std::copy(elements.begin(), elements.end(), t.data<int64_t>());
  return t;
}

/** The first batch, of 8 rows, of rows with slots of up to 2 and 3 keys in [0, 200). */
Batch first_batch(ReaderOptions options = {}) {
  const TemporaryFolder folder;
  const Schema schema = make_schema(1, {2, 3});
  const Rows rows = make_rows(schema, 8, /*ragged=*/true);
  const Dataset dataset = put_dataset(folder, schema, rows, KeyType::I64, CheckMode::None, {8});
  options.batch_size = 8;
  BatchReader reader(dataset, PartName::Train, options);
  Batch batch;
  EXPECT_TRUE(reader.next(batch));
  return batch;
}

/** The matrix, element by element. */
std::vector<std::vector<float>> dense(const Tensor& csr) {
  const SparseData& parts = *csr.impl().sparse();
  std::vector<std::vector<float>> result;
  const int64_t* const offsets = parts.indices.data<int64_t>();
  for (int64_t row = 0; row < csr.size(0); ++row) {
    result.emplace_back(static_cast<size_t>(csr.size(1)));
    for (int64_t i = offsets[row]; i < offsets[row + 1]; ++i)
      result.back()[static_cast<size_t>(parts.plain_indices.data<int64_t>()[i])] += parts.values.data<float>()[i];
  }
  return result;
}

TEST(CsrTensor, SharesRowOffsetsAndKeys) {
  for (const BagOrder order : {BagOrder::SampleMajor, BagOrder::SlotMajor}) {
    ReaderOptions options;
    options.bag_order = order;
    const Batch batch = first_batch(options);
    const SparseBatch& input = batch.sparse[0];
    const Tensor csr = csr_tensor(input, 200);
    EXPECT_EQ(csr.layout(), Layout::SparseCsr);
    EXPECT_EQ(csr.sizes(), IntSpan({16, 200}));
    EXPECT_EQ(csr.dtype(), kFloat32);
    const SparseData* const parts = csr.impl().sparse();
    ASSERT_NE(parts, nullptr);
    EXPECT_EQ(parts->indices.data_ptr(), input.row_offsets.data_ptr());
    EXPECT_EQ(parts->plain_indices.data_ptr(), input.keys.data_ptr());
    EXPECT_EQ(parts->values.sizes(), input.keys.sizes());
    EXPECT_EQ(parts->sparse_dim, 2);
    EXPECT_EQ(parts->dense_dim, 0);
    for (int64_t i = 0; i < input.keys.numel(); ++i) ASSERT_EQ(parts->values.data<float>()[i], 1) << i;
  }
}

TEST(CsrTensor, IsTheSumOfABag) {
  SparseBatch batch;
  batch.slot_num = 1;
  batch.row_offsets = put({0, 3, 3, 4});
  batch.keys = put({2, 0, 2, 1});
  using Matrix = std::vector<std::vector<float>>;
  EXPECT_EQ(dense(csr_tensor(batch, 3)), (Matrix{{1, 0, 2}, {0, 0, 0}, {0, 1, 0}}));
  batch.key_weights = empty({4}, kFloat32);
  for (int i = 0; i < 4; ++i) batch.key_weights.data<float>()[i] = 0.5f * static_cast<float>(i);
  const Tensor weighted = csr_tensor(batch, 3);
  EXPECT_EQ(weighted.impl().sparse()->values.data_ptr(), batch.key_weights.data_ptr());
  EXPECT_EQ(dense(weighted), (Matrix{{0.5f, 0, 1}, {0, 0, 0}, {0, 1.5f, 0}}));
}

TEST(CsrTensor, NarrowKeys) {
  ReaderOptions options;
  options.narrow_keys = true;
  const Batch batch = first_batch(options);
  const Tensor csr = csr_tensor(batch.sparse[0], 200);
  EXPECT_EQ(csr.impl().sparse()->indices.dtype(), kInt32);
  EXPECT_EQ(csr.impl().sparse()->plain_indices.dtype(), kInt32);
}

TEST(CsrTensor, HasItsOwnVersion) {
  const Batch batch = first_batch();
  const Tensor csr = csr_tensor(batch.sparse[0], 200);
  const uint32_t keys = batch.sparse[0].keys.version();
  EXPECT_EQ(csr.version(), 0u);
  csr.impl().bump_version();
  EXPECT_EQ(csr.version(), 1u);
  EXPECT_EQ(batch.sparse[0].keys.version(), keys);
}

TEST(CsrTensor, RefusesKeysOutsideItsColumns) {
  SparseBatch batch = first_batch().sparse[0];
  const int64_t last = batch.keys.numel() - 1;
  batch.keys.data<int64_t>()[last] = 200;
  TERCEL_EXPECT_THROW(csr_tensor(batch, 200), IndexError,
                      "csr_tensor: expected keys in [0, 200), but key number " + std::to_string(last) + " is 200");
  batch.keys.data<int64_t>()[last] = -1;
  TERCEL_EXPECT_THROW(csr_tensor(batch, 200), IndexError, "is -1");
}

TEST(CsrTensor, RefusesRowOffsetsThatLeaveTheKeys) {
  const Tensor keys = put({1, 2, 3}), none;
  EXPECT_EQ(csr_tensor(put({0, 2, 2, 3}), keys, none, 4).sizes(), IntSpan({3, 4}));
  TERCEL_EXPECT_THROW(csr_tensor(put({0, 2}), keys, none, 4), IndexError,
                      "csr_tensor: expected row offsets from 0 to 3, the number of keys, but they are from 0 to 2");
  TERCEL_EXPECT_THROW(csr_tensor(put({1, 3}), keys, none, 4), IndexError, "from 1 to 3");
  TERCEL_EXPECT_THROW(csr_tensor(put({0, 5, 2, 3}), keys, none, 4), IndexError,
                      "csr_tensor: expected row offsets that do not fall, but number 1 is 5, and the next one 2");
  TERCEL_EXPECT_THROW(csr_tensor(put({}), keys, none, 4), RuntimeError, "csr_tensor: expected row_offsets [bags + 1]");
}

TEST(CsrTensor, RefusesOtherTensors) {
  const Tensor offsets = put({0, 2}), keys = put({1, 1}), none;
  TERCEL_EXPECT_THROW(csr_tensor(SparseBatch(), 2), RuntimeError, "csr_tensor: expected a tensor for argument");
  TERCEL_EXPECT_THROW(csr_tensor(offsets, empty({2}, kInt32), none, 2), RuntimeError,
                      "csr_tensor: expected row offsets of the keys' int32, but they are int64");
  TERCEL_EXPECT_THROW(csr_tensor(offsets, empty({1, 2}, kInt64), none, 2), RuntimeError, "csr_tensor: expected keys");
  TERCEL_EXPECT_THROW(csr_tensor(offsets, keys, empty({3}, kFloat32), 2), RuntimeError,
                      "csr_tensor: expected a weight for each of 2 keys, but got 3");
  const Tensor learned = empty({2}, kFloat32);
  learned.impl().set_requires_grad_flag(true);
  TERCEL_EXPECT_THROW(csr_tensor(offsets, keys, learned, 2), RuntimeError, "csr_tensor: it has no gradient");
  TERCEL_EXPECT_THROW(csr_tensor(empty({1}, kUInt32), empty({0}, kUInt32), none, 2), NotImplementedError, "uint32");
  tercel::test::HostAllocator device(kCuda);
  const tercel::test::ScopedAllocator scope(device, DeviceType::Cuda);
  TERCEL_EXPECT_THROW(csr_tensor(offsets, empty({2}, {kInt64, kCuda}), none, 2), RuntimeError, "on cpu");
}

TEST(CsrTensor, NoKeys) {
  SparseBatch batch;
  batch.row_offsets = empty({1}, kInt64);
  batch.row_offsets.data<int64_t>()[0] = 0;
  batch.keys = empty({0}, kInt64);
  const Tensor csr = csr_tensor(batch, 0);
  EXPECT_EQ(csr.sizes(), IntSpan({0, 0}));
  EXPECT_THROW(csr_tensor(batch, -1), RuntimeError);
}

}  // namespace
}  // namespace tercel::data::test
