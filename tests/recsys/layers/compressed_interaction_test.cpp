#include "tercel/recsys/layers/compressed_interaction.h"

#include "tests/recsys/layers/layer_support.h"

namespace tercel::recsys {
namespace {

TEST(CompressedInteractionLayer, TwoLayersAsInThePaper) {
  constexpr size_t kRows = 4, kFields = 3, kWidth = 2;
  constexpr size_t kOutputs[] = {2, 4};
  Built layer("CompressedInteraction", {{kFields, kWidth}}, R"({"num_outputs": [2, 4]})");
  const Tensor x = numbers({kRows, kFields, kWidth});
  const Values x0 = values_of(x);
  Values expected(kRows * 6);
  for (size_t r = 0; r < kRows; ++r) {
    Values before(x0.begin() + static_cast<int64_t>(r * kFields * kWidth),
                  x0.begin() + static_cast<int64_t>((r + 1) * kFields * kWidth));
    const Values first = before;
    size_t column = r * 6;
    for (const size_t l : {0, 1}) {
      const Values w = layer.parameter(std::to_string(l) + ".weight");
      const size_t vectors = before.size() / kWidth;
      ASSERT_EQ(w.size(), vectors * kOutputs[l] * kFields);
      Values next(kOutputs[l] * kWidth);
      for (size_t h = 0; h < kOutputs[l]; ++h, ++column)
        for (size_t e = 0; e < kWidth; ++e) {
          for (size_t i = 0; i < vectors; ++i)
            for (size_t j = 0; j < kFields; ++j)
              next[h * kWidth + e] +=
                  w[(i * kOutputs[l] + h) * kFields + j] * before[i * kWidth + e] * first[j * kWidth + e];
          expected[column] += next[h * kWidth + e];
        }
      before = next;
    }
  }
  expect_near(values_of(layer.run({x})), expected);
  EXPECT_TRUE(layer.gradients({x}));
  EXPECT_TRUE(layer.gradients({numbers({1, kFields, kWidth})}));
}

TEST(CompressedInteractionLayer, InitialValuesAndRefusals) {
  Built layer("CompressedInteraction", {{30, 4}}, R"({"num_outputs": [50]})");
  expect_normal(layer.parameter("0.weight"), std::sqrt(2.0 / (30 * 30 + 50)) / 0.87962566);
  refuses("CompressedInteraction", {{6}}, R"({"num_outputs": [2]})",
          "[CompressedInteraction x] expected one input [batch, fields, d] but got [batch, 6]");
  refuses("CompressedInteraction", {{3, 2}}, R"({"num_outputs": []})", "num_outputs");
  refuses("CompressedInteraction", {{3, 2}}, R"({"num_outputs": [0]})", "num_outputs");
  refuses("CompressedInteraction", {{3, 2}}, "{}", "num_outputs");
}

}  // namespace
}  // namespace tercel::recsys
