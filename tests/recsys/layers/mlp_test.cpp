#include "tercel/recsys/layers/mlp.h"

#include <cmath>

#include "tests/recsys/layers/layer_support.h"

namespace tercel::recsys {
namespace {

TEST(MlpLayer, ValuesAndGradients) {
  Built layer("MLP", {{3}}, R"({"mlp_param": {"num_outputs": [4, 5, 2], "activations": ["Relu", "Non", "Relu"],
                                 "biases": [true, false, true]}})");
  ASSERT_EQ(layer.parameters.entries().size(), 5u);
  const Tensor x = numbers({6, 3});
  Values h = values_of(x);
  size_t in = 3;
  for (const size_t i : {0, 1, 2}) {
    const size_t out = i == 0 ? 4 : i == 1 ? 5 : 2;
    const std::string name = std::to_string(i);
    const Values w = layer.parameter(name + ".weight");
    const Values b = i == 1 ? Values(out, 0.0) : layer.parameter(name + ".bias");
    Values next;
    for (size_t r = 0; r < 6; ++r)
      for (size_t k = 0; k < out; ++k) {
        double sum = b[k];
        for (size_t j = 0; j < in; ++j) sum += h[r * in + j] * w[j * out + k];
        next.push_back(i == 1 ? sum : std::max(sum, 0.0));
      }
    h = next;
    in = out;
  }
  expect_near(values_of(layer.run({x})), h);
  EXPECT_GT(largest_of(h), 0);
  EXPECT_TRUE(layer.gradients({x}));
}

TEST(MlpLayer, OptionsForAllLayersAtOnce) {
  Built one("MLP", {{3}}, R"({"mlp_param": {"num_output": 2}})");
  EXPECT_EQ(one.parameters.entries().size(), 2u);
  EXPECT_EQ(one.layer->tops()[0].sizes[0], 2);
  for (const double y : values_of(one.run({numbers({50, 3})}))) EXPECT_GE(y, 0) << "Relu by default";
  Built none("MLP", {{3}}, R"({"mlp_param": {"num_outputs": [4, 2], "use_bias": false, "activation": "Non"}})");
  EXPECT_EQ(none.parameters.entries().size(), 2u);
  const Values plus = values_of(none.run({make({1, 3}, kFloat64, {1, 2, 3})}));
  const Values minus = values_of(none.run({make({1, 3}, kFloat64, {-1, -2, -3})}));
  expect_near(minus, {-plus[0], -plus[1]});
  EXPECT_EQ(largest_of(none.parameter("0.weight")) <= std::sqrt(1.0 / 3), true);
}

TEST(MlpLayer, InitialValues) {
  Built layer("MLP", {{40}}, R"({"mlp_param": {"num_outputs": [300, 200]}})");
  expect_uniform(layer.parameter("0.weight"), std::sqrt(1.0 / 40));
  expect_uniform(layer.parameter("0.bias"), std::sqrt(1.0 / 40));
  expect_uniform(layer.parameter("1.weight"), std::sqrt(1.0 / 300));
  Built xavier("MLP", {{40}},
               R"({"mlp_param": {"num_outputs": [300], "weight_init": "XavierUniform", "bias_init": "Zero"}})");
  expect_uniform(xavier.parameter("0.weight"), std::sqrt(6.0 / 340));
  EXPECT_EQ(largest_of(xavier.parameter("0.bias")), 0);
}

TEST(MlpLayer, Refusals) {
  refuses("MLP", {{2, 3}}, R"({"mlp_param": {"num_outputs": [4]}})",
          "[MLP x] expected one input [batch, n] but got [batch, 2, 3]");
  refuses("MLP", {{3}}, R"({"mlp_param": {}})", "[MLP x] num_outputs is missing");
  refuses("MLP", {{3}}, R"({"mlp_param": {"num_outputs": [4, 0]}})", "num_outputs[1]");
  refuses("MLP", {{3}}, R"({"mlp_param": {"num_outputs": [4, 4], "activations": ["Relu"]}})",
          "[MLP x] expected 2 activations, one a layer, but got 1");
  refuses("MLP", {{3}}, R"({"mlp_param": {"num_outputs": [4], "biases": [true, true]}})",
          "[MLP x] expected 1 biases, one a layer, but got 2");
  refuses("MLP", {{3}}, R"({"mlp_param": {"num_outputs": [4], "activation": "Tanh"}})", "Tanh");
}

}  // namespace
}  // namespace tercel::recsys
