#include "tercel/recsys/layers/multi_cross.h"

#include <cmath>

#include "tests/recsys/layers/layer_support.h"

namespace tercel::recsys {
namespace {

TEST(MultiCrossLayer, VectorsOfTheFirstDcn) {
  Built layer("MultiCross", {{4}}, R"({"mc_param": {"num_layers": 3, "bias_init": "Uniform"}})");
  const Tensor x = numbers({5, 4});
  const Values x0 = values_of(x);
  Values h = x0;
  for (const size_t l : {0, 1, 2}) {
    const Values w = layer.parameter(std::to_string(l) + ".weight"), b = layer.parameter(std::to_string(l) + ".bias");
    EXPECT_GT(largest_of(b), 0);
    Values next;
    for (size_t r = 0; r < 5; ++r) {
      double dot = 0;
      for (size_t i = 0; i < 4; ++i) dot += h[r * 4 + i] * w[i];
      for (size_t i = 0; i < 4; ++i) next.push_back(x0[r * 4 + i] * dot + b[i] + h[r * 4 + i]);
    }
    h = next;
  }
  expect_near(values_of(layer.run({x})), h);
  EXPECT_TRUE(layer.gradients({x}));
}

TEST(MultiCrossLayer, LowRankMatricesOfTheSecondDcn) {
  Built layer("MultiCross", {{4}}, R"({"mc_param": {"num_layers": 2, "projection_dim": 3, "bias_init": "Uniform"}})");
  const Tensor x = numbers({5, 4});
  const Values x0 = values_of(x);
  Values h = x0;
  for (const size_t l : {0, 1}) {
    const std::string name = std::to_string(l);
    const Values u = layer.parameter(name + ".u"), v = layer.parameter(name + ".v"),
                 b = layer.parameter(name + ".bias");
    ASSERT_EQ(u.size(), 12u);
    Values next;
    for (size_t r = 0; r < 5; ++r) {
      double p[3] = {};
      for (size_t j = 0; j < 3; ++j)
        for (size_t i = 0; i < 4; ++i) p[j] += h[r * 4 + i] * u[i * 3 + j];
      for (size_t i = 0; i < 4; ++i) {
        double sum = b[i];
        for (size_t j = 0; j < 3; ++j) sum += p[j] * v[j * 4 + i];
        next.push_back(x0[r * 4 + i] * sum + h[r * 4 + i]);
      }
    }
    h = next;
  }
  expect_near(values_of(layer.run({x})), h);
  EXPECT_TRUE(layer.gradients({x}));
}

TEST(MultiCrossLayer, InitialValuesAndRefusals) {
  Built vectors("MultiCross", {{5000}}, R"({"mc_param": {"num_layers": 1}})");
  expect_normal(vectors.parameter("0.weight"), std::sqrt(2.0 / 5001));
  EXPECT_EQ(largest_of(vectors.parameter("0.bias")), 0);
  Built matrices("MultiCross", {{100}}, R"({"mc_param": {"num_layers": 1, "projection_dim": 60}})");
  expect_normal(matrices.parameter("0.u"), std::sqrt(2.0 / 160));
  expect_normal(matrices.parameter("0.v"), std::sqrt(2.0 / 160));
  refuses("MultiCross", {{2, 3}}, R"({"mc_param": {"num_layers": 1}})",
          "[MultiCross x] expected one input [batch, n] but got [batch, 2, 3]");
  refuses("MultiCross", {{3}}, R"({"mc_param": {"num_layers": 0}})", "num_layers");
  refuses("MultiCross", {{3}}, R"({"mc_param": {"num_layers": 1, "projection_dim": -1}})", "projection_dim");
}

}  // namespace
}  // namespace tercel::recsys
