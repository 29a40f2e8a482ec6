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

TEST(EluLayer, ValuesAndGradients) {
  const Tensor x = make({2, 3}, kFloat64, {-2, -0.5, 0.25, 1, 30, -30});
  for (const double alpha : {1.0, 0.25, 0.0}) {
    Built layer("ELU", {{3}}, (R"({"elu_param": {"alpha": )" + std::to_string(alpha) + "}}").c_str());
    Values expected;
    for (const double v : values_of(x)) expected.push_back(v > 0 ? v : alpha * (std::exp(v) - 1));
    expect_near(values_of(layer.run({x})), expected);
    EXPECT_TRUE(layer.gradients({x})) << alpha;
  }
  expect_near(values_of(Built("ELU", {{1}}).run({make({1, 1}, kFloat64, {-1})})), {std::exp(-1) - 1});
  refuses("ELU", {{3}}, R"({"elu_param": {"alpha": -1}})", "alpha");
  refuses("ELU", {{3}, {3}}, "{}", "[ELU x] expected one input");
}

TEST(CastLayer, IsItsInput) {
  const Tensor x = numbers({2, 3, 4});
  Built layer("Cast", {{3, 4}});
  EXPECT_EQ(values_of(layer.run({x})), values_of(x));
  EXPECT_TRUE(layer.gradients({x}));
  refuses("Cast", {{3}, {3}}, "{}", "[Cast x] expected one input");
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
  EXPECT_EQ(values_of(layer.run({x}, false)), values_of(x)) << "evaluation changes nothing";
  refuses("Dropout", {{3}}, R"({"rate": 1})", "rate");
  refuses("Dropout", {{3}}, R"({"rate": -0.1})", "rate");
  refuses("Dropout", {{3}, {3}}, "{}", "[Dropout x] expected one input");
}

TEST(DropoutLayer, AMaskIsAFunctionOfSeedLayerStepRowAndColumn) {
  // A row of 7 columns in each of two rows of a sample: 14 columns, so that parts begin anywhere in a group of words.
  const Shapes shapes = {TensorShape::with_rows({7}, 2)};
  Built layer("Dropout", shapes);
  const auto ones = [](int64_t samples) {
    return make({2 * samples, 7}, kFloat64, Values(static_cast<size_t>(14 * samples), 1.0));
  };
  const Values whole = values_of(layer.run({ones(40)}));
  EXPECT_EQ(values_of(layer.run({ones(40)})), whole) << "no state";
  for (const int64_t first : {1, 9, 20, 39}) {  // the parts of two ranks
    Values parts = values_of(layer.run({ones(first)}));
    layer.context.first_row = first;
    for (const double v : values_of(layer.run({ones(40 - first)}))) parts.push_back(v);
    layer.context.first_row = 0;
    EXPECT_EQ(parts, whole) << first;
  }
  EXPECT_TRUE(values_of(layer.run({ones(0)})).empty()) << "the part of a rank may be empty";

  const auto same = [&whole](const Values& other) {
    int64_t count = 0;
    for (size_t i = 0; i < whole.size(); ++i) count += whole[i] == other[i] ? 1 : 0;
    return static_cast<double>(count) / static_cast<double>(whole.size());
  };
  layer.context.step = 2;
  EXPECT_NEAR(same(values_of(layer.run({ones(40)}))), 0.5, 0.1) << "another step";
  layer.context.step = 1;
  layer.context.seed = 8;
  EXPECT_NEAR(same(values_of(layer.run({ones(40)}))), 0.5, 0.1) << "another seed";
  Built other("Dropout", shapes, "{}", 1, "y");
  EXPECT_NEAR(same(values_of(other.run({ones(40)}))), 0.5, 0.1) << "another layer";
}

}  // namespace
}  // namespace tercel::recsys
