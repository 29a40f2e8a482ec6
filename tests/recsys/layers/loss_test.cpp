#include "tercel/recsys/layers/loss.h"

#include <cmath>

#include "tests/recsys/layers/layer_support.h"

namespace tercel::recsys {
namespace {

TEST(LossLayer, IsTheStableMean) {
  Built layer("BinaryCrossEntropyLoss", {{1}, {1}});
  const Tensor x = make({6, 1}, kFloat64, {0, 2, -3, 0.5, 200, -200}), y = make({6, 1}, kFloat64, {0, 1, 0, 0, 1, 1});
  Values logits = values_of(x), labels = values_of(y);
  double sum = 0;
  for (size_t i = 0; i < 6; ++i)
    sum += std::log1p(std::exp(-std::abs(logits[i]))) + std::max(logits[i], 0.0) - logits[i] * labels[i];
  std::vector<Tensor> tops(1);
  layer.layer->forward(std::vector<Tensor>{x, y}, tops, {true, layer.generator});
  EXPECT_EQ(tops[0].dim(), 0);
  EXPECT_NEAR(values_of(tops[0])[0], sum / 6, 1e-12);
  Tensor leaf = make({6, 1}, kFloat64, logits);
  leaf.requires_grad_();
  EXPECT_TRUE(gradcheck(
      [&](const std::vector<Tensor>& inputs) {
        std::vector<Tensor> out(1);
        layer.layer->forward(std::vector<Tensor>{inputs[0], y}, out, {true, layer.generator});
        return out[0];
      },
      {leaf}));
  refuses("BinaryCrossEntropyLoss", {{1}}, "{}",
          "[BinaryCrossEntropyLoss x] expected a logit [batch, 1] and a label [batch, 1] but got [batch, 1]");
  refuses("BinaryCrossEntropyLoss", {{2}, {1}}, "{}", "but got [batch, 2], [batch, 1]");
  refuses("BinaryCrossEntropyLoss", {{2}, {2}}, "{}", "but got [batch, 2], [batch, 2]");
}

}  // namespace
}  // namespace tercel::recsys
