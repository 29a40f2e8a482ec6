#include "tercel/ops/join.h"

#include "tercel/autograd/autograd.h"
#include "tercel/util/parallel.h"
#include "tests/ops/conformance.h"
#include "tests/ops/join_rows.h"
#include "tests/support/errors.h"

namespace tercel::test {

INSTANTIATE_TEST_SUITE_P(Join, Conformance, ::testing::ValuesIn(join_rows()), row_name);

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
  EXPECT_EQ(message_of<ValueError>([&] { cat({}); }), "cat(): expected a non-empty list of Tensors");
  EXPECT_EQ(message_of<ValueError>([&] {
              cat({x, empty({2})});
            }),
            "cat(): Tensors must have same number of dimensions: got 2 and 1");
  EXPECT_EQ(
      message_of<ValueError>([&] {
        cat({x, x, empty({3, 3})}, 1);
      }),
      "cat(): Sizes of tensors must match except in dimension 1. Expected size 2 but got size 3 for tensor number 2 "
      "in the list.");
  EXPECT_EQ(message_of<ValueError>([&] {
              cat({empty({}), empty({})});
            }),
            "cat(): zero-dimensional tensor (at position 0) cannot be concatenated");
  EXPECT_THROW(cat({x, x}, 2), IndexError);
  EXPECT_THROW(stack({x, empty({3, 2})}), ValueError);
  EXPECT_THROW(stack({x}, 3), IndexError);
  EXPECT_THROW(cat({x, Tensor()}), ValueError);
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
