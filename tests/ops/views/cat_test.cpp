#include "tercel/ops/views/cat.h"

#include "tercel/autograd/autograd.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/views/views.h"
#include "tercel/util/parallel.h"
#include "tests/ops/conformance.h"
#include "tests/ops/views/cat_rows.h"
#include "tests/support/errors.h"

namespace tercel::test {

INSTANTIATE_TEST_SUITE_P(Cat, Conformance, ::testing::ValuesIn(cat_rows()), row_name);

TEST(Cat, RunsOfEveryLength) {
  std::vector<Tensor> parts;
  for (int64_t columns = 1; columns <= 70; ++columns) parts.push_back(random({130, columns}, kFloat32, -1, 1, 5));
  EXPECT_EQ(values_of(cat(parts, 1)), values_of(cat_reference(parts, 1)));
}

TEST(Cat, DtypesArePromoted) {
  const Tensor a = make({2}, kInt32, {1, 2}), b = make({1}, kFloat16, {0.5}), c = make({1}, kBool, {1});
  EXPECT_EQ(cat({a, b}).dtype(), kFloat16);
  EXPECT_EQ(values_of(cat({a, b, c})), (std::vector<double>{1, 2, 0.5, 1}));
  Tensor x = make({1}, kFloat32, {3});
  x.requires_grad_();
  const Tensor out = cat({x, make({1}, kFloat64, {1})});
  const Tensor ones = make({2}, kFloat64, {1, 1});
  EXPECT_EQ(grad(Span<Tensor>(&out, 1), Span<Tensor>(&x, 1), Span<Tensor>(&ones, 1))[0].values.dtype(), kFloat32);
}

TEST(Cat, EmptyVectorsArePassedOver) {
  const Tensor none = empty({0}), x = random({2, 3}, kFloat32, 0, 1, 1);
  EXPECT_EQ(bytes_of(cat({none, x, none}, 1)), bytes_of(x));
  EXPECT_EQ(cat({none, none}).sizes(), IntSpan({0}));
  EXPECT_EQ(cat({empty({2, 0}), x}, 1).sizes(), IntSpan({2, 3}));
  EXPECT_EQ(cat({empty({0, 3}), empty({0, 4})}, 1).sizes(), IntSpan({0, 7}));
}

TEST(Cat, GradientsAreViewsOfTheIncomingOne) {
  std::vector<Tensor> parts = {random({4, 2}, kFloat32, 0, 1, 1), random({4, 3}, kFloat32, 0, 1, 1)};
  for (Tensor& t : parts) t.requires_grad_();
  const Tensor out = cat(parts, 1), incoming = random({4, 5}, kFloat32, 0, 1, 2);
  const std::vector<Gradient> g = grad(Span<Tensor>(&out, 1), parts, Span<Tensor>(&incoming, 1));
  EXPECT_EQ(g[0].values.data_ptr(), incoming.data_ptr());
  EXPECT_EQ(g[1].values.strides(), IntSpan({5, 1}));
  EXPECT_TRUE(g[1].values.is_alias_of(incoming));
}

TEST(Cat, WhatDoesNotFitIsNamed) {
  const Tensor x = empty({2, 3});
  EXPECT_EQ(message_of<ValueError>([&] { cat({}); }),
            "cat(): expected a non-empty list of Tensors, but got an empty one");
  EXPECT_EQ(message_of<RuntimeError>([&] {
              cat({x, empty({2})});
            }),
            "cat(): Tensors must have same number of dimensions: got 2 and 1");
  EXPECT_EQ(
      message_of<RuntimeError>([&] {
        cat({x, x, empty({3, 3})}, 1);
      }),
      "cat(): Sizes of tensors must match except in dimension 1. Expected size 2 but got size 3 for tensor number 2 "
      "in the list.");
  EXPECT_EQ(message_of<RuntimeError>([&] {
              cat({empty({}), empty({})});
            }),
            "cat(): zero-dimensional tensor (at position 0) cannot be concatenated");
  EXPECT_THROW(cat({x, x}, 2), IndexError);
  EXPECT_THROW(stack({x, empty({3, 2})}), RuntimeError);
  EXPECT_THROW(stack({x}, 3), IndexError);
  EXPECT_THROW(cat({x, Tensor()}), RuntimeError);
}

TEST(Cat, IntoAnotherTensor) {
  const Tensor a = make({2}, kInt32, {1, 2}), b = make({1}, kInt32, {3});
  const Tensor out = empty({3}, kFloat64);
  EXPECT_TRUE(cat_out(out, {a, b}).is_same(out));
  EXPECT_EQ(values_of(out), (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(out.version(), 1u);
  EXPECT_EQ(cat_out(empty({2}, kInt32), {a, b}).sizes(), IntSpan({3}));
  TERCEL_EXPECT_THROW(cat_out(empty({3}, kBool), {a, b}), RuntimeError,
                      "cat(): input types can't be cast to the desired output type Bool");
  TERCEL_EXPECT_THROW(cat_out(a, {a}), RuntimeError,
                      "unsupported operation: some elements of the input tensor and the written-to tensor refer to a "
                      "single memory location.");
  const Tensor x = make({3}, kInt32, {1, 2, 3});
  TERCEL_EXPECT_THROW(cat_out(x, {narrow(x, 0, 1, 2), b}), RuntimeError, "refer to a single memory location.");
  Tensor leaf = zeros({2});
  leaf.requires_grad_();
  TERCEL_EXPECT_THROW(cat_out(empty({2}), {leaf}), RuntimeError,
                      "cat(): functions with out=... arguments don't support automatic differentiation");
}

TEST(Stacks, Errors) {
  const Tensor x = empty({2, 3});
  TERCEL_EXPECT_THROW(stack({}), RuntimeError, "stack expects a non-empty TensorList");
  TERCEL_EXPECT_THROW(hstack({}), RuntimeError, "hstack expects a non-empty TensorList");
  TERCEL_EXPECT_THROW(vstack({}), RuntimeError, "vstack expects a non-empty TensorList");
  TERCEL_EXPECT_THROW(dstack({}), RuntimeError, "dstack expects a non-empty TensorList");
  TERCEL_EXPECT_THROW(column_stack({}), RuntimeError, "column_stack expects a non-empty TensorList");
  TERCEL_EXPECT_THROW(stack({x, empty({3, 2})}), RuntimeError,
                      "stack expects each tensor to be equal size, but got [2, 3] at entry 0 and [3, 2] at entry 1");
  TERCEL_EXPECT_THROW(hstack({x, empty({3, 2})}), RuntimeError,
                      "Sizes of tensors must match except in dimension 1. Expected size 2 but got size 3 for tensor "
                      "number 1 in the list.");
  const Tensor huge = expand(empty({1, 1}), {int64_t{1} << 62, 1});
  TERCEL_EXPECT_THROW(cat({huge, huge}), RuntimeError, "add up to more than 64 bits hold");
  TERCEL_EXPECT_THROW(block_diag({x, empty({1, 1, 1})}), RuntimeError,
                      "block_diag(): Input tensors must have 2 or fewer dimensions. Input 1 has 3 dimensions");
  EXPECT_EQ(block_diag({}).sizes(), IntSpan({1, 0}));
  EXPECT_EQ(block_diag({make({1}, kInt32, {1}), make({1}, kFloat64, {2})}).dtype(), kFloat64);
}

TEST(SplitCopy, PiecesOwnTheirMemory) {
  const Tensor x = random({5, 4}, kFloat32, 0, 1, 1);
  const std::vector<Tensor> pieces = split_copy(x, 2);
  ASSERT_EQ(pieces.size(), 3u);
  EXPECT_EQ(pieces[2].sizes(), IntSpan({1, 4}));
  for (const Tensor& piece : pieces) {
    EXPECT_FALSE(piece.is_alias_of(x));
    EXPECT_TRUE(piece.is_contiguous());
  }
}

TEST(CatThreads, LargeResults) {
  const int64_t before = num_threads();
  set_num_threads(3);
  const std::vector<Tensor> wide = {random({2000, 40}, kFloat32, 0, 1, 1), random({2000, 300}, kFloat32, 0, 1, 2)};
  EXPECT_EQ(values_of(cat(wide, 1)), values_of(cat_reference(wide, 1)));
  const std::vector<Tensor> flat = {random({700'000}, kFloat32, 0, 1, 1), random({5}, kFloat32, 0, 1, 2)};
  EXPECT_EQ(values_of(cat(flat)), values_of(cat_reference(flat, 0)));
  set_num_threads(before);
}

}  // namespace tercel::test
