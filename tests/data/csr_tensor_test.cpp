#include "tercel/data/csr_tensor.h"

#include <gtest/gtest.h>

#include <vector>

#include "tercel/core/sparse_data.h"
#include "tercel/data/batch_reader.h"
#include "tests/data/memory_format.h"
#include "tests/data/norm_data.h"
#include "tests/support/errors.h"

namespace tercel::data::test {
namespace {

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
    EXPECT_TRUE(parts->indices.is_same(input.row_offsets));
    EXPECT_TRUE(parts->plain_indices.is_same(input.keys));
    EXPECT_EQ(parts->values.sizes(), input.keys.sizes());
    EXPECT_EQ(parts->sparse_dim, 2);
    EXPECT_EQ(parts->dense_dim, 0);
    for (int64_t i = 0; i < input.keys.numel(); ++i) ASSERT_EQ(parts->values.data<float>()[i], 1) << i;
  }
}

TEST(CsrTensor, IsTheSumOfABag) {
  SparseBatch batch;
  batch.slot_num = 1;
  const auto put = [](std::initializer_list<int64_t> elements) {
    Tensor t = empty({static_cast<int64_t>(elements.size())}, kInt64);
    std::copy(elements.begin(), elements.end(), t.data<int64_t>());
    return t;
  };
  batch.row_offsets = put({0, 3, 3, 4});
  batch.keys = put({2, 0, 2, 1});
  using Matrix = std::vector<std::vector<float>>;
  EXPECT_EQ(dense(csr_tensor(batch, 3)), (Matrix{{1, 0, 2}, {0, 0, 0}, {0, 1, 0}}));
  batch.key_weights = empty({4}, kFloat32);
  for (int i = 0; i < 4; ++i) batch.key_weights.data<float>()[i] = 0.5f * static_cast<float>(i);
  const Tensor weighted = csr_tensor(batch, 3);
  EXPECT_TRUE(weighted.impl().sparse()->values.is_same(batch.key_weights));
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
  batch.name = "clicks";
  const int64_t last = batch.keys.numel() - 1;
  batch.keys.data<int64_t>()[last] = 200;
  TERCEL_EXPECT_THROW(csr_tensor(batch, 200), IndexError,
                      "csr_tensor: expected keys in [0, 200), but key " + std::to_string(last) + " of 'clicks' is 200");
  batch.keys.data<int64_t>()[last] = -1;
  TERCEL_EXPECT_THROW(csr_tensor(batch, 200), IndexError, "is -1");
  TERCEL_EXPECT_THROW(csr_tensor(SparseBatch(), 2), RuntimeError, "csr_tensor: expected a tensor for argument");
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
