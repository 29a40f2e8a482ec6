#include "tercel/recsys/layers/grouped_inner_product.h"

#include "tests/recsys/layers/layer_support.h"

namespace tercel::recsys {
namespace {

TEST(GroupedInnerProductLayer, EachGroupHasItsOwnWeights) {
  constexpr size_t kGroups = 3, kIn = 2, kOut = 4;
  Built layer("GroupedInnerProduct", {{kGroups, kIn}}, R"({"fc_param": {"num_output": 4}})");
  for (const int64_t rows : {1, 5}) {
    const Tensor x = numbers({rows, kGroups, kIn});
    const Values v = values_of(x), w = layer.parameter("weight"), b = layer.parameter("bias");
    ASSERT_EQ(w.size(), kGroups * kIn * kOut);
    ASSERT_EQ(b.size(), kGroups * kOut);
    Values expected;
    for (size_t row = 0; row < static_cast<size_t>(rows) * kGroups; ++row)
      for (size_t o = 0; o < kOut; ++o) {
        const size_t g = row % kGroups;
        double sum = b[g * kOut + o];
        for (size_t i = 0; i < kIn; ++i) sum += v[row * kIn + i] * w[(g * kIn + i) * kOut + o];
        expected.push_back(sum);
      }
    expect_near(values_of(layer.run({x})), expected);
    EXPECT_TRUE(layer.gradients({x}));
  }
}

TEST(GroupedInnerProductLayer, InitialValuesAndRefusals) {
  Built layer("GroupedInnerProduct", {{20, 30}}, R"({"fc_param": {"num_output": 10}})");
  expect_normal(layer.parameter("weight"), std::sqrt(2.0 / 40) / 0.87962566);
  refuses("GroupedInnerProduct", {{6}}, R"({"fc_param": {"num_output": 4}})",
          "[GroupedInnerProduct x] expected one input [batch, groups, n] but got [batch, 6]");
  refuses("GroupedInnerProduct", {{3, 2}}, R"({"fc_param": {"num_output": 0}})", "num_output");
}

}  // namespace
}  // namespace tercel::recsys
