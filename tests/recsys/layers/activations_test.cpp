#include "tercel/recsys/layers/activations.h"

#include <cmath>

#include "tests/recsys/layers/layer_support.h"

namespace tercel::recsys {
namespace {

TEST(ActivationLayers, ValuesAndGradients) {
  const Tensor x = make({2, 3}, kFloat64, {-2, -0.5, 0.25, 1, 30, -30});
  Built relu("ReLU", {{3}}), sigmoid("Sigmoid", {{3}});
  expect_near(values_of(relu.run({x})), {0, 0, 0.25, 1, 30, 0});
  Values expected;
  for (const double v : values_of(x)) expected.push_back(1 / (1 + std::exp(-v)));
  expect_near(values_of(sigmoid.run({x})), expected);
  EXPECT_TRUE(relu.gradients({x}));
  EXPECT_TRUE(sigmoid.gradients({x}));
  refuses("ReLU", {{3}, {3}}, "{}", "[ReLU x] expected one input but got [batch, 3], [batch, 3]");
  refuses("Sigmoid", {{3}, {3}}, "{}", "[Sigmoid x] expected one input");
}

TEST(DropoutLayer, ZeroesItsShareAndScalesTheRest) {
  Built layer("Dropout", {{100}}, R"({"rate": 0.3})");
  const Tensor x = make({200, 100}, kFloat64, Values(20000, 2.0));
  int64_t zeros = 0;
  for (const double y : values_of(layer.run({x}))) {
    if (y == 0)
      ++zeros;
    else
      ASSERT_NEAR(y, 2 / 0.7, 1e-6);
  }
  EXPECT_NEAR(static_cast<double>(zeros) / 20000, 0.3, 0.02);
  EXPECT_NE(values_of(layer.run({x})), values_of(layer.run({x}))) << "each step draws anew";
  EXPECT_EQ(values_of(layer.run({x}, false)), values_of(x)) << "evaluation changes nothing";
  const uint64_t before = layer.generator.state().offset;
  layer.run({x}, false);
  EXPECT_EQ(layer.generator.state().offset, before) << "and draws nothing";
  refuses("Dropout", {{3}}, R"({"rate": 1})", "rate");
  refuses("Dropout", {{3}}, R"({"rate": -0.1})", "rate");
  refuses("Dropout", {{3}, {3}}, "{}", "[Dropout x] expected one input");
}

}  // namespace
}  // namespace tercel::recsys
