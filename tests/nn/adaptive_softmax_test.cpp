#include "tercel/nn/adaptive_softmax.h"

#include <gtest/gtest.h>

#include "tercel/autograd/autograd.h"
#include "tercel/core/generator.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/index/gather.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/views/views.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace tercel::nn {
namespace {

using test::make;
using test::random;
using test::values_of;

void expect_close(const Tensor& got, const Tensor& want) {
  const std::vector<double> a = values_of(got), b = values_of(want);
  ASSERT_EQ(got.sizes(), want.sizes());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-5) << i;
}

TEST(AdaptiveSoftmax, RowsAreThoseOfAllClasses) {
  manual_seed(2);
  AdaptiveLogSoftmaxWithLoss layer(16, 20, {5, 10, 15}, {.div_value = 2, .head_bias = true});
  EXPECT_EQ(layer.named_parameters()[0].first, "head.weight");
  EXPECT_EQ(layer.state_dict().size(), 8u);
  EXPECT_EQ(layer.state_dict().back().second.sizes(), IntSpan({5, 2}));
  const Tensor x = random({9, 16}, kFloat32, -2, 2, 1);
  const Tensor target = make({9}, kInt64, {0, 4, 5, 19, 7, 12, 14, 2, 9});
  const Tensor all = layer.log_prob(x);
  expect_close(sum(exp(all), 1), ones(9));
  const auto [output, loss] = layer(x, target);
  expect_close(output, squeeze(gather(all, 1, unsqueeze(target, 1)), 1));
  expect_close(loss, neg(mean(output)));
  EXPECT_EQ(values_of(layer.predict(x)), values_of(argmax(all, 1)));
  loss.backward();
  for (const auto& [name, parameter] : layer.named_parameters()) EXPECT_TRUE(parameter.grad().defined()) << name;
  const auto one = layer(x.select(0, 3), target.select(0, 3));
  EXPECT_EQ(one.output.dim(), 0);
  expect_close(one.output, output.select(0, 3));
}

TEST(AdaptiveSoftmax, PredictionsInTheHeadAlone) {
  AdaptiveLogSoftmaxWithLoss layer(2, 4, {2}, {.div_value = 1, .head_bias = true});
  const NoGradGuard no_grad;
  for (const Tensor& p : layer.parameters()) p.zero_();
  layer.parameters()[1].copy_(make({3}, kFloat32, {0, 5, 0}));
  EXPECT_EQ(values_of(layer.predict(ones({2, 2}))), (std::vector<double>{1, 1}));
}

TEST(AdaptiveSoftmax, Refusals) {
  TERCEL_EXPECT_THROW(AdaptiveLogSoftmaxWithLoss(4, 8, {}), ValueError,
                      "cutoffs should be a sequence of length larger than 0");
  for (const auto& cutoffs : std::vector<std::vector<int64_t>>{{3, 3}, {0, 2}, {5, 4}, {8}})
    TERCEL_EXPECT_THROW(AdaptiveLogSoftmaxWithLoss(4, 8, cutoffs), ValueError,
                        "cutoffs should be a sequence of unique, positive integers sorted in an increasing order");
  AdaptiveLogSoftmaxWithLoss layer(4, 8, {2});
  const Tensor x = ones({3, 4});
  TERCEL_EXPECT_THROW(layer(x, zeros({3, 1}, kInt64)), RuntimeError,
                      "0D or 1D target tensor expected, multi-target not supported");
  TERCEL_EXPECT_THROW(layer(x, zeros(2, kInt64)), RuntimeError,
                      "Input and target should have the same size in the batch dimension.");
  TERCEL_EXPECT_THROW(layer(ones(4), zeros(4, kInt64)), RuntimeError,
                      "1D target tensor expects 2D input tensors, but found inputs with size [4]");
  TERCEL_EXPECT_THROW(layer(x, full({3}, 8, kInt64)), RuntimeError,
                      "Target values should be in [0, 7], but values in range [8, 8] were found. ");
  EXPECT_EQ(layer(zeros({0, 4}), zeros(0, kInt64)).output.sizes(), IntSpan({0}));
}

}  // namespace
}  // namespace tercel::nn
