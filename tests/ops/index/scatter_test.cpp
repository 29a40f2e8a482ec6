#include "tercel/ops/index/scatter.h"

#include "tercel/autograd/autograd.h"
#include "tercel/ops/ops.h"
#include "tests/ops/conformance.h"
#include "tests/ops/index/scatter_rows.h"
#include "tests/support/errors.h"
#include "tests/support/gradcheck.h"

namespace tercel::test {

INSTANTIATE_TEST_SUITE_P(Scatter, Conformance, ::testing::ValuesIn(scatter_rows()), row_name);
INSTANTIATE_TEST_SUITE_P(IndexReduce, Conformance, ::testing::ValuesIn(index_reduce_rows()), row_name);

TEST(Scatter, WrongArgumentsAreNamedAndChangeNothing) {
  const Tensor x = make({3, 2}, kFloat32, {1, 2, 3, 4, 5, 6}), before = clone(x);
  const Tensor index = make({2, 2}, kInt64, {0, 2, 1, 3}), source = ones({2, 2});
  EXPECT_EQ(message_of<RuntimeError>([&] { scatter_add_(x, 0, index, source); }),
            "index 3 is out of bounds for dimension 0 with size 3");
  EXPECT_THROW(scatter_(x, 0, make({1, 1}, kInt64, {-1}), 1), RuntimeError);
  EXPECT_THROW(scatter_(x, 0, make({1, 3}, kInt64, {0, 0, 0}), 1), RuntimeError);
  EXPECT_THROW(scatter_(x, 0, make({2}, kInt64, {0, 0}), 1), RuntimeError);
  EXPECT_THROW(scatter_(x, 0, make({1, 1}, kFloat32, {0}), 1), RuntimeError);
  EXPECT_THROW(scatter_(x, 2, make({1, 1}, kInt64, {0}), 1), IndexError);
  EXPECT_THROW(scatter_(x, 0, make({3, 1}, kInt64, {0, 0, 0}), source), RuntimeError);
  EXPECT_THROW(scatter_(x, 0, make({1, 1}, kInt64, {0}), ones({1, 1}, kFloat64)), RuntimeError);
  EXPECT_THROW(scatter_(x, 0, make({1, 1}, kInt64, {0}), x), RuntimeError);
  EXPECT_THROW(index_reduce_(x, 0, make({2}, kInt64, {0, 1}), ones({3, 2}), ScatterReduction::Mean), RuntimeError);
  EXPECT_THROW(parse_scatter_reduction("max"), RuntimeError);
  EXPECT_EQ(parse_scatter_reduction("amax"), ScatterReduction::Maximum);
  EXPECT_EQ(values_of(x), values_of(before));
}

TEST(Scatter, LastValueStandsAndNanStays) {
  const Tensor index = make({4}, kInt64, {1, 1, 0, 1}), source = make({4}, kFloat32, {1, 2, 3, 4});
  EXPECT_EQ(values_of(scatter(zeros({3}), 0, index, source)), (std::vector<double>{3, 4, 0}));
  EXPECT_EQ(values_of(scatter(zeros({3}), 0, index, 7)), (std::vector<double>{7, 7, 0}));
  const Tensor nan = make({2}, kFloat32, {1, NAN}), first = make({2}, kInt64, {0, 0});
  EXPECT_TRUE(std::isnan(values_of(scatter_reduce(zeros({1}), 0, first, nan, ScatterReduction::Maximum))[0]));
  EXPECT_EQ(values_of(scatter_reduce(make({2}, kInt64, {7, 8}), 0, first, make({2}, kInt64, {3, 4}),
                                     ScatterReduction::Mean, false)),
            (std::vector<double>{3, 8}));
}

TEST(Scatter, GradientOfAProductWithZeros) {
  const Tensor x = make({2}, kFloat64, {2, 0}).requires_grad_(),
               source = make({3}, kFloat64, {0, 3, 5}).requires_grad_();
  sum(scatter_reduce(x, 0, make({3}, kInt64, {0, 0, 1}), source, ScatterReduction::Product)).backward();
  EXPECT_EQ(values_of(x.grad()), (std::vector<double>{0, 5}));
  EXPECT_EQ(values_of(source.grad()), (std::vector<double>{6, 0, 0}));
}

TEST(Scatter, SecondGradientOfAProductWithZeros) {
  // One zero, two, three and none at a place.
  const Tensor index = make({9}, kInt64, {0, 0, 1, 1, 1, 2, 2, 2, 3});
  const Tensor x = make({4}, kFloat64, {2, 0, 0, 3}).requires_grad_();
  const Tensor source = make({9}, kFloat64, {0, 3, 0, 5, 7, 0, 0, 2, 4}).requires_grad_();
  for (const bool include_self : {true, false})
    EXPECT_TRUE(gradgradcheck(
        [&](const std::vector<Tensor>& in) {
          return scatter_reduce(in[0], 0, index, in[1], ScatterReduction::Product, include_self);
        },
        {x, source}));
}

TEST(Scatter, GradientsOfEqualLargestElementsAreShared) {
  const Tensor x = make({1}, kFloat64, {4}).requires_grad_(), source = make({3}, kFloat64, {4, 1, 4}).requires_grad_();
  sum(scatter_reduce(x, 0, zeros({3}, kInt64), source, ScatterReduction::Maximum) * 3).backward();
  EXPECT_EQ(values_of(x.grad()), (std::vector<double>{1}));
  EXPECT_EQ(values_of(source.grad()), (std::vector<double>{1, 0, 1}));
}

}  // namespace tercel::test
