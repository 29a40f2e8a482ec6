#include "tercel/recsys/layers/sample_rows.h"

#include "tests/recsys/layers/layer_support.h"

namespace tercel::recsys {
namespace {

TEST(ScaleLayer, RepeatsRowsOrElements) {
  const Tensor x = make({2, 2}, kFloat64, {1, 2, 3, 4});
  Built rows("Scale", {{2}}, R"({"scale_param": {"axis": 1, "factor": 3}})");
  Built elements("Scale", {{2}}, R"({"scale_param": {"axis": 0, "factor": 3.0}})");
  EXPECT_EQ(rows.layer->tops()[0], TensorShape::with_rows({2}, 3));
  EXPECT_EQ(elements.layer->tops()[0], TensorShape({6}));
  expect_near(values_of(rows.run({x})), {1, 2, 1, 2, 1, 2, 3, 4, 3, 4, 3, 4});
  expect_near(values_of(elements.run({x})), {1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4});
  EXPECT_TRUE(rows.gradients({x}));
  EXPECT_TRUE(elements.gradients({x}));
  EXPECT_TRUE(rows.gradients({numbers({1, 2})}));
}

TEST(ScaleLayer, GradientIsTheSumOverTheCopies) {
  for (const auto& [axis, expected] : {std::pair<const char*, Values>{"1", {9, 12, 27, 30}}, {"0", {6, 15, 24, 33}}}) {
    Built layer("Scale", {{2}}, (std::string(R"({"scale_param": {"factor": 3, "axis": )") + axis + "}}").c_str());
    Tensor x = make({2, 2}, kFloat64, {0, 0, 0, 0});
    x.requires_grad_();
    const Tensor y = layer.run({x});
    y.backward(make(Sizes(y.sizes().begin(), y.sizes().end()), kFloat64, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}));
    EXPECT_EQ(values_of(x.grad()), expected) << "HugeCTR takes that of the first copy; axis " << axis;
  }
}

TEST(ScaleLayer, FoldedRowsAndRefusals) {
  Built folded("Scale", {TensorShape::with_rows({2}, 5)}, R"({"scale_param": {"factor": 3}})");
  EXPECT_EQ(folded.layer->tops()[0], TensorShape::with_rows({2}, 15));
  refuses("Scale", {{2, 3}}, "{}", "[Scale x] expected one input [batch, n] but got [batch, 2, 3]");
  refuses("Scale", {{2}}, R"({"scale_param": {"axis": 2}})", "axis");
  refuses("Scale", {{2}}, R"({"scale_param": {"factor": 0}})", "factor");
  refuses("Scale", {{2}}, R"({"scale_param": {"factor": 1.5}})", "factor");
}

TEST(FusedReshapeConcatLayer, DividesHistoryAndTarget) {
  // Two samples of three slots, of widths 2 and 1.
  const Tensor a = make({2, 3, 2}, kFloat64, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  const Tensor b = make({2, 3, 1}, kFloat64, {-1, -2, -3, -4, -5, -6});
  Built layer("FusedReshapeConcat", {{3, 2}, {3, 1}});
  EXPECT_EQ(layer.layer->tops()[0], TensorShape::with_rows({3}, 2));
  EXPECT_EQ(layer.layer->tops()[1], TensorShape({3}));
  const std::vector<Tensor> tops = layer.forward({a, b});
  expect_near(values_of(tops[0]), {1, 2, -1, 3, 4, -2, 7, 8, -4, 9, 10, -5});
  expect_near(values_of(tops[1]), {5, 6, -3, 11, 12, -6});
  EXPECT_TRUE(layer.gradients({a, b}, 0));
  EXPECT_TRUE(layer.gradients({a, b}, 1));
  EXPECT_TRUE(layer.gradients({numbers({1, 3, 2}), numbers({1, 3, 1})}));
  refuses("FusedReshapeConcat", {{3, 2}, {2, 2}}, "{}",
          "[FusedReshapeConcat x] expected inputs [batch, slots, d] of equally many slots, at least 2: a history and a "
          "target but got [batch, 3, 2], [batch, 2, 2]");
  refuses("FusedReshapeConcat", {{1, 2}}, "{}", "but got [batch, 1, 2]");
  refuses("FusedReshapeConcat", {{6}}, "{}", "but got [batch, 6]");
}

TEST(FusedReshapeConcatGeneralLayer, MakesEachSlotARow) {
  const Tensor a = make({2, 2, 2}, kFloat64, {1, 2, 3, 4, 5, 6, 7, 8}), b = make({2, 2, 1}, kFloat64, {-1, -2, -3, -4});
  Built layer("FusedReshapeConcatGeneral", {{2, 2}, {2, 1}}), one("FusedReshapeConcatGeneral", {{1, 2}});
  EXPECT_EQ(layer.layer->tops()[0], TensorShape::with_rows({3}, 2));
  EXPECT_EQ(one.layer->tops()[0], TensorShape({2}));
  expect_near(values_of(layer.run({a, b})), {1, 2, -1, 3, 4, -2, 5, 6, -3, 7, 8, -4});
  EXPECT_TRUE(layer.gradients({a, b}));
  refuses("FusedReshapeConcatGeneral", {{3, 2}, {2, 2}}, "{}", "but got [batch, 3, 2], [batch, 2, 2]");
}

}  // namespace
}  // namespace tercel::recsys
