#include "tercel/ops/sparse/tensorflow.h"

#include <gtest/gtest.h>

#include "tercel/ops/ops.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace tercel::test {
namespace {

tensorflow::SparseTensor sparse_of(std::initializer_list<std::pair<int64_t, int64_t>> entries) {
  std::vector<int64_t> indices;
  std::vector<float> values;
  for (const auto& [row, column] : entries) {
    indices.insert(indices.end(), {row, column});
    values.push_back(static_cast<float>(values.size() + 1));
  }
  const auto n = static_cast<int64_t>(values.size());
  return {tensor(indices).view({n, 2}), tensor(values), tensor({3, 4})};
}

std::vector<float> elements(const Tensor& x) {
  const Tensor flat = contiguous(x).view({-1});
  return {flat.data<float>(), flat.data<float>() + flat.numel()};
}

std::string message_of(const tensorflow::SparseTensor& x, bool validate = true) {
  try {
    x.to_dense(0, validate);
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

// The example of TensorFlow's documentation of sparse tensors in a program: three entries on the diagonal.
TEST(TensorFlowSparse, HasADenseFormWithADefaultValue) {
  const Tensor indices = tensor({0, 0, 1, 1, 2, 2}).view({3, 2});
  const tensorflow::SparseTensor x(indices, tensor({1.0f, 2.0f, 3.0f}), tensor({3, 3}));
  EXPECT_EQ(elements(x.to_dense()), (std::vector<float>{1, 0, 0, 0, 2, 0, 0, 0, 3}));
  EXPECT_EQ(elements(x.to_dense(-1)), (std::vector<float>{1, -1, -1, -1, 2, -1, -1, -1, 3}));
  EXPECT_EQ(x.to_dense().sizes(), (Sizes{3, 3}));
  EXPECT_EQ(x.values().data_ptr(), x.values().detach().data_ptr());
}

TEST(TensorFlowSparse, WantsEntriesInOrderAndOnce) {
  EXPECT_EQ(message_of(sparse_of({{0, 1}, {2, 0}})), "none");
  EXPECT_EQ(message_of(sparse_of({{2, 0}, {1, 3}})),
            "indices[1] = [1, 3] is out of order. Many sparse ops require sorted indices. Use `reorder` to create a "
            "correctly ordered copy.");
  EXPECT_EQ(message_of(sparse_of({{0, 1}, {2, 0}, {2, 0}})), "indices[2] = [2, 0] is repeated");
  EXPECT_EQ(message_of(sparse_of({{2, 0}, {1, 3}, {2, 0}}), false), "none");
  EXPECT_THROW(sparse_of({{3, 0}}).to_dense(0, false), IndexError);
  EXPECT_THROW(sparse_of({{0, -1}}).to_dense(), IndexError);
}

TEST(TensorFlowSparse, TheLastEntryCountsUnlessChecked) {
  const Tensor dense = sparse_of({{1, 1}, {0, 0}, {1, 1}}).to_dense(0, false);
  EXPECT_EQ(elements(dense.select(0, 1)), (std::vector<float>{0, 3, 0, 0}));
}

TEST(TensorFlowSparse, ReordersStably) {
  const tensorflow::SparseTensor x = sparse_of({{2, 1}, {0, 3}, {2, 1}, {0, 0}}).reorder();
  EXPECT_EQ(elements(x.values()), (std::vector<float>{4, 2, 1, 3}));
  EXPECT_TRUE(equal(x.indices(), tensor({0, 0, 0, 3, 2, 1, 2, 1}).view({4, 2})));
  EXPECT_EQ(message_of(x), "indices[3] = [2, 1] is repeated");
}

TEST(TensorFlowSparse, ConvertsToCooAndBack) {
  const Tensor coo = sparse_of({{2, 1}, {0, 3}, {2, 1}}).to_coo();
  EXPECT_TRUE(is_coalesced(coo));
  EXPECT_EQ(elements(_values(coo)), (std::vector<float>{2, 4}));
  const tensorflow::SparseTensor back(coo);
  EXPECT_TRUE(equal(back.indices(), tensor({0, 3, 2, 1}).view({2, 2})));
  EXPECT_TRUE(equal(back.dense_shape(), tensor({3, 4})));
  EXPECT_TRUE(equal(back.to_dense(), coo.to_dense()));
}

TEST(TensorFlowSparse, WithoutEntriesOrDimensions) {
  const tensorflow::SparseTensor none(zeros({0, 2}, kInt64), zeros({0}), tensor({2, 2}));
  EXPECT_EQ(elements(none.to_dense(7)), (std::vector<float>{7, 7, 7, 7}));
  EXPECT_EQ(none.reorder().values().numel(), 0);
  const tensorflow::SparseTensor number(zeros({1, 0}, kInt64), ones({1}), zeros({0}, kInt64));
  EXPECT_EQ(elements(number.to_dense()), (std::vector<float>{1}));
}

TEST(TensorFlowSparse, RefusesPartsThatDoNotFit) {
  const Tensor indices = zeros({2, 2}, kInt64), values = ones({2}), shape = tensor({3, 3});
  EXPECT_THROW(tensorflow::SparseTensor(zeros({2}, kInt64), values, shape), RuntimeError);
  EXPECT_THROW(tensorflow::SparseTensor(zeros({2, 2}), values, shape), RuntimeError);
  EXPECT_THROW(tensorflow::SparseTensor(indices, ones({3}), shape), RuntimeError);
  EXPECT_THROW(tensorflow::SparseTensor(indices, ones({2, 1}), shape), RuntimeError);
  EXPECT_THROW(tensorflow::SparseTensor(indices, values, tensor({3, 3, 3})), RuntimeError);
  EXPECT_THROW(tensorflow::SparseTensor(indices, values, tensor({3, -3})), RuntimeError);
  EXPECT_THROW(tensorflow::SparseTensor{values}, RuntimeError);
}

}  // namespace
}  // namespace tercel::test
