#include "tercel/recsys/layers/selection.h"

#include "tests/recsys/layers/layer_support.h"

namespace tercel::recsys {
namespace {

TEST(SelectLayer, PicksPositionsOfADimension) {
  const Tensor x = make({2, 3, 2}, kFloat64, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  Built slots("Select", {{3, 2}}, R"({"dim": 1, "index": [2, 0, 2]})");
  Built columns("Select", {{3, 2}}, R"({"dim": 2, "index": [1]})");
  EXPECT_EQ(slots.layer->tops()[0], TensorShape({3, 2}));
  EXPECT_EQ(columns.layer->tops()[0], TensorShape({3, 1}));
  expect_near(values_of(slots.run({x})), {5, 6, 1, 2, 5, 6, 11, 12, 7, 8, 11, 12});
  expect_near(values_of(columns.run({x})), {2, 4, 6, 8, 10, 12});
  EXPECT_TRUE(slots.gradients({x})) << "a position that comes twice has the sum";
  EXPECT_TRUE(columns.gradients({x}));
  EXPECT_TRUE(slots.gradients({numbers({1, 3, 2})}));
}

TEST(GatherLayer, PicksColumns) {
  const Tensor x = make({2, 4}, kFloat64, {1, 2, 3, 4, 5, 6, 7, 8});
  Built layer("Gather", {{4}}, R"({"indices": [3, 1, 1]})");
  expect_near(values_of(layer.run({x})), {4, 2, 2, 8, 6, 6});
  EXPECT_TRUE(layer.gradients({x}));
  Built deep("Gather", {{2, 2}}, R"({"indices": [1]})");
  EXPECT_EQ(deep.layer->tops()[0], TensorShape({2, 1}));
  expect_near(values_of(deep.run({make({1, 2, 2}, kFloat64, {1, 2, 3, 4})})), {2, 4});
}

TEST(SelectionLayers, WorkInFloat32) {
  for (const char* type : {"Select", "Gather"}) {
    Built layer(type, {{3}}, type[0] == 'S' ? R"({"dim": 1, "index": [2, 0]})" : R"({"indices": [2, 0]})");
    layer.layer->allocate(kFloat32);
    std::vector<Tensor> tops(1);
    Tensor x = make({2, 3}, kFloat32, {1, 2, 3, 4, 5, 6});
    x.requires_grad_();
    layer.layer->forward(std::vector<Tensor>{x}, tops, layer.context);
    EXPECT_EQ(tops[0].dtype(), kFloat32);
    EXPECT_EQ(values_of(tops[0]), (Values{3, 1, 6, 4}));
    tops[0].sum().backward();
    EXPECT_EQ(values_of(x.grad()), (Values{1, 0, 1, 1, 0, 1}));
  }
}

TEST(SelectionLayers, Refusals) {
  refuses("Select", {{3, 2}}, R"({"dim": 0, "index": [0]})", "dim");
  refuses("Select", {{3, 2}}, R"({"dim": 3, "index": [0]})",
          "[Select x] expected one input with a dimension 3 but got [batch, 3, 2]");
  refuses("Select", {{3, 2}}, R"({"dim": 1, "index": [0, 3]})",
          "[Select x] position 3 of 3 in dimension 1 of [batch, 3, 2]");
  refuses("Select", {{3, 2}}, R"({"dim": 1, "index": []})", "index");
  refuses("Select", {{3, 2}}, R"({"dim": 1, "index": [-1]})", "index");
  refuses("Select", {{3, 2}}, R"({"index": [0]})", "dim");
  refuses("Gather", {{4}}, R"({"indices": [4]})", "[Gather x] position 4 of 4 in dimension 1 of [batch, 4]");
  refuses("Gather", {{4}}, "{}", "indices");
  refuses("Gather", {{4}, {4}}, R"({"indices": [1]})", "but got [batch, 4], [batch, 4]");
  refuses("Gather", {{}}, R"({"indices": [1]})", "but got [batch]");
}

}  // namespace
}  // namespace tercel::recsys
