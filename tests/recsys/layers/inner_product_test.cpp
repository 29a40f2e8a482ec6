#include "tercel/recsys/layers/inner_product.h"

#include <cmath>

#include "tests/recsys/layers/layer_support.h"

namespace tercel::recsys {
namespace {

TEST(InnerProductLayer, ValuesAndGradients) {
  Built layer("InnerProduct", {{3}}, R"({"fc_param": {"num_output": 2}})");
  const Tensor x = numbers({4, 3});
  const Values w = layer.parameter("weight"), b = layer.parameter("bias"), in = values_of(x);
  ASSERT_EQ(w.size(), 6u);
  Values expected;
  for (size_t r = 0; r < 4; ++r)
    for (size_t k = 0; k < 2; ++k) {
      double sum = b[k];
      for (size_t i = 0; i < 3; ++i) sum += in[r * 3 + i] * w[i * 2 + k];
      expected.push_back(sum);
    }
  expect_near(values_of(layer.run({x})), expected);
  EXPECT_TRUE(layer.gradients({x}));
  // Rows of a matrix for each sample.
  Built steps("InnerProduct", {{2, 3}}, R"({"fc_param": {"num_output": 2}})");
  expect_near(values_of(steps.run({test::make({2, 2, 3}, kFloat64, in)})), expected);
  EXPECT_TRUE(steps.gradients({numbers({2, 2, 3})}));
}

TEST(InnerProductLayer, Refusals) {
  refuses("InnerProduct", {{3}, {3}}, R"({"fc_param": {"num_output": 2}})",
          "[InnerProduct x] expected one input [batch, ..., n] but got [batch, 3], [batch, 3]");
  refuses("InnerProduct", {{}}, R"({"fc_param": {"num_output": 2}})", "but got [batch]");
  refuses("InnerProduct", {{3}}, R"({"fc_param": {}})", "'fc_param.num_output'");
  refuses("InnerProduct", {{3}}, "{}", "'fc_param'");
  refuses("InnerProduct", {{3}}, R"({"fc_param": {"num_output": 0}})", "[InnerProduct x]");
  refuses("InnerProduct", {{3}}, R"({"fc_param": {"num_output": 2, "weight_init": "Xavier"}})", "XavierUniform");
}

TEST(InnerProductLayer, InitialValues) {
  const auto weights = [](const char* init) {
    const std::string options = std::string(R"({"fc_param": {"num_output": 2000, "weight_init": ")") + init +
                                R"(", "bias_init": ")" + init + "\"}}";
    return std::make_unique<Built>("InnerProduct", Shapes{{30}}, options.c_str());
  };
  // HugeCTR's formulas with n = 30 and k = 2000.
  expect_normal(weights("Default")->parameter("weight"), std::sqrt(2.0 / 2030) / 0.87962566);
  expect_normal(weights("Default")->parameter("bias"), std::sqrt(1.0 / 2000));
  expect_uniform(weights("Uniform")->parameter("weight"), 1.0 / 2030);
  expect_uniform(weights("Uniform")->parameter("bias"), 1.0 / 2000);
  expect_normal(weights("XavierNorm")->parameter("weight"), std::sqrt(2.0 / 2030) / 0.87962566);
  expect_uniform(weights("XavierUniform")->parameter("weight"), std::sqrt(6.0 / 2030));
  expect_uniform(weights("XavierUniform")->parameter("bias"), std::sqrt(6.0 / 2000));
  EXPECT_EQ(largest_of(weights("Zero")->parameter("weight")), 0);
  EXPECT_EQ(largest_of(weights("Zero")->parameter("bias")), 0);
}

}  // namespace
}  // namespace tercel::recsys
