#include "tercel/recsys/layers/arithmetic.h"

#include <cmath>

#include "tests/recsys/layers/layer_support.h"

namespace tercel::recsys {
namespace {

TEST(FmOrder2Layer, ValuesAndGradients) {
  Built layer("FmOrder2", {{6}}, R"({"out_dim": 2})");
  const Tensor x = numbers({4, 6});
  const Values v = values_of(x);
  Values expected;
  for (size_t r = 0; r < 4; ++r)
    for (size_t j = 0; j < 2; ++j) {  // all pairs of the 3 fields
      const double a = v[r * 6 + j], b = v[r * 6 + 2 + j], c = v[r * 6 + 4 + j];
      expected.push_back(a * b + a * c + b * c);
    }
  expect_near(values_of(layer.run({x})), expected);
  EXPECT_TRUE(layer.gradients({x}));
}

TEST(FmOrder2Layer, Refusals) {
  refuses("FmOrder2", {{7}}, R"({"out_dim": 2})",
          "[FmOrder2 x] expected one input [batch, slots * 2] but got [batch, 7]");
  refuses("FmOrder2", {{3, 2}}, R"({"out_dim": 2})", "but got [batch, 3, 2]");
  refuses("FmOrder2", {{6}}, "{}", "out_dim");
}

TEST(WeightMultiplyLayer, ValuesAndGradients) {
  Built layer("WeightMultiply", {{3}}, R"({"weight_dims": [3, 2]})");
  const Tensor x = numbers({4, 3});
  const Values v = values_of(x), w = layer.parameter("weight");
  Values expected;
  for (size_t r = 0; r < 4; ++r)
    for (size_t s = 0; s < 3; ++s)
      for (size_t j = 0; j < 2; ++j) expected.push_back(v[r * 3 + s] * w[s * 2 + j]);
  expect_near(values_of(layer.run({x})), expected);
  EXPECT_TRUE(layer.gradients({x}));
}

TEST(WeightMultiplyLayer, InitialValuesAndRefusals) {
  expect_uniform(Built("WeightMultiply", {{30}}, R"({"weight_dims": [30, 50]})").parameter("weight"),
                 std::sqrt(6.0 / 80));
  EXPECT_EQ(
      largest_of(
          Built("WeightMultiply", {{3}}, R"({"weight_dims": [3, 2], "weight_init": "Zero"})").parameter("weight")),
      0);
  expect_normal(
      Built("WeightMultiply", {{30}}, R"({"weight_dims": [30, 50], "weight_init": "XavierNorm"})").parameter("weight"),
      std::sqrt(2.0 / 80) / 0.87962566);
  refuses("WeightMultiply", {{4}}, R"({"weight_dims": [3, 2]})",
          "[WeightMultiply x] expected one input [batch, 3] but got [batch, 4]");
  refuses("WeightMultiply", {{3}}, R"({"weight_dims": [3]})", "[WeightMultiply x] weight_dims is [slots, d], not [3]");
  refuses("WeightMultiply", {{3}}, "{}", "weight_dims");
}

TEST(ElementwiseLayers, ValuesAndGradients) {
  const Tensor a = numbers({2, 3}, 1), b = numbers({2, 3}, 2), c = numbers({2, 3}, 3);
  const Values x = values_of(a), y = values_of(b), z = values_of(c);
  Values sum, product;
  for (size_t i = 0; i < 6; ++i) {
    sum.push_back(x[i] + y[i] + z[i]);
    product.push_back(x[i] * y[i] * z[i]);
  }
  Built add("Add", {{3}, {3}, {3}}), mul("ElementwiseMultiply", {{3}, {3}, {3}});
  expect_near(values_of(add.run({a, b, c})), sum);
  expect_near(values_of(mul.run({a, b, c})), product);
  EXPECT_TRUE(add.gradients({a, b, c}));
  EXPECT_TRUE(mul.gradients({a, b, c}));
  expect_near(values_of(Built("Add", {{3}}).run({a})), x);
  refuses("ElementwiseMultiply", {{3}}, "{}",
          "[ElementwiseMultiply x] expected two or more inputs of one shape but got [batch, 3]");
  for (const char* type : {"Add", "ElementwiseMultiply"}) {
    const std::string start = std::string("[") + type + " x] expected " + (type[0] == 'A' ? "" : "two or more ") +
                              "inputs of one shape but got ";
    refuses(type, {{3}, {3, 1}}, "{}", (start + "[batch, 3], [batch, 3, 1]").c_str());
    refuses(type, {{3}, {3}, {4}}, "{}", (start + "[batch, 3], [batch, 3], [batch, 4]").c_str());
  }
}

TEST(SubLayer, IsTheFirstMinusTheSecond) {
  const Tensor a = numbers({2, 3}, 1), b = numbers({2, 3}, 2);
  const Values x = values_of(a), y = values_of(b);
  Values expected;
  for (size_t i = 0; i < 6; ++i) expected.push_back(x[i] - y[i]);
  Built layer("Sub", {{3}, {3}});
  expect_near(values_of(layer.run({a, b})), expected);
  EXPECT_TRUE(layer.gradients({a, b}));
  refuses("Sub", {{3}}, "{}", "[Sub x] expected two inputs of one shape but got [batch, 3]");
  refuses("Sub", {{3}, {3}, {3}}, "{}", "[Sub x] expected two inputs of one shape but got [batch, 3], [batch, 3], ");
  refuses("Sub", {{3}, {4}}, "{}", "[Sub x] expected two inputs of one shape but got [batch, 3], [batch, 4]");
}

TEST(ReduceMeanLayer, AxesStayWithSizeOne) {
  const Tensor x = make({2, 2, 3}, kFloat64, {1, 2, 3, 4, 5, 6, 10, 20, 30, 40, 50, 60});
  Built one("ReduceMean", {{2, 3}}, R"({"axis": 1})"), two("ReduceMean", {{2, 3}}, R"({"axis": 2})");
  EXPECT_EQ(one.layer->tops()[0], TensorShape({1, 3}));
  EXPECT_EQ(two.layer->tops()[0], TensorShape({2, 1}));
  expect_near(values_of(one.run({x})), {2.5, 3.5, 4.5, 25, 35, 45});
  expect_near(values_of(two.run({x})), {2, 5, 20, 50});
  EXPECT_TRUE(one.gradients({x}));
  EXPECT_TRUE(two.gradients({x}));
  expect_near(values_of(Built("ReduceMean", {{3}}).run({make({1, 3}, kFloat64, {1, 2, 6})})), {3});
  refuses("ReduceMean", {{3}}, R"({"axis": 2})", "[ReduceMean x] expected one input with an axis 2 but got [batch, 3]");
  refuses("ReduceMean", {{3}}, R"({"axis": 0})", "axis");
}

TEST(ReduceSumLayer, AxesStayWithSizeOne) {
  const Tensor x = make({2, 2, 3}, kFloat64, {1, 2, 3, 4, 5, 6, 10, 20, 30, 40, 50, 60});
  Built one("ReduceSum", {{2, 3}}, R"({"axis": 1})"), two("ReduceSum", {{2, 3}}, R"({"axis": 2})");
  EXPECT_EQ(one.layer->tops()[0], TensorShape({1, 3}));
  EXPECT_EQ(two.layer->tops()[0], TensorShape({2, 1}));
  expect_near(values_of(one.run({x})), {5, 7, 9, 50, 70, 90});
  expect_near(values_of(two.run({x})), {6, 15, 60, 150});
  EXPECT_TRUE(one.gradients({x}));
  EXPECT_TRUE(two.gradients({x}));
  expect_near(values_of(Built("ReduceSum", {{3}}).run({make({2, 3}, kFloat64, {1, 2, 3, 4, 5, 6})})), {6, 15});
  refuses("ReduceSum", {{3}}, R"({"axis": 2})", "[ReduceSum x] expected one input with an axis 2 but got [batch, 3]");
  refuses("ReduceSum", {{3}}, R"({"axis": 0})", "axis");
}

}  // namespace
}  // namespace tercel::recsys
