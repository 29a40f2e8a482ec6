#include "tercel/recsys/layers/interaction.h"

#include "tests/recsys/layers/layer_support.h"

namespace tercel::recsys {
namespace {

TEST(InteractionLayer, OrderAndWidth) {
  Built layer("Interaction", {{2}, {3, 2}});
  EXPECT_EQ(layer.layer->tops()[0].sizes[0], 2 + 6 + 1) << "the row, 4 * 3 / 2 products, a zero";
  // Vectors whose products tell them apart: z0 = (1, 10), z1 = (2, 20) ...
  const Tensor mlp = make({1, 2}, kFloat64, {1, 10}), emb = make({1, 3, 2}, kFloat64, {2, 20, 3, 30, 4, 40});
  const auto dot = [](double i, double j) { return i * j * 101; };
  expect_near(values_of(layer.run({mlp, emb})),
              {1, 10, dot(2, 1), dot(3, 1), dot(3, 2), dot(4, 1), dot(4, 2), dot(4, 3), 0});
  EXPECT_TRUE(layer.gradients({numbers({3, 2}), numbers({3, 3, 2}, 2)}));
  // Without a first row: the vectors, then their products.
  Built alone("Interaction", {{3, 2}});
  EXPECT_EQ(alone.layer->tops()[0].sizes[0], 6 + 3 + 1);
  expect_near(values_of(alone.run({emb})), {2, 20, 3, 30, 4, 40, dot(3, 2), dot(4, 2), dot(4, 3), 0});
  EXPECT_TRUE(alone.gradients({numbers({3, 3, 2}, 2)}));
}

TEST(InteractionLayer, Refusals) {
  refuses("Interaction", {{2}}, "{}",
          "[Interaction x] expected inputs [batch, d] and [batch, slots, d], or the second alone, but got [batch, 2]");
  refuses("Interaction", {{2}, {3, 4}}, "{}", "but got [batch, 2], [batch, 3, 4]");
  refuses("Interaction", {{3, 2}, {2}}, "{}", "but got [batch, 3, 2], [batch, 2]");
}

}  // namespace
}  // namespace tercel::recsys
