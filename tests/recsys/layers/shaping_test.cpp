#include "tercel/recsys/layers/shaping.h"

#include "tests/recsys/layers/layer_support.h"

namespace tercel::recsys {
namespace {

TEST(ConcatLayer, JoinsAlongItsAxis) {
  const Tensor a = make({2, 1}, kFloat64, {1, 2}), b = make({2, 2}, kFloat64, {10, 11, 20, 21});
  Built layer("Concat", {{1}, {2}, {1}});
  expect_near(values_of(layer.run({a, b, a})), {1, 10, 11, 1, 2, 20, 21, 2});
  EXPECT_TRUE(layer.gradients({a, b, numbers({2, 1})}));
  const Tensor c = make({1, 2, 1}, kFloat64, {1, 2}), d = make({1, 2, 2}, kFloat64, {3, 4, 5, 6});
  Built last("Concat", {{2, 1}, {2, 2}}, R"({"axis": 2})");
  EXPECT_EQ(last.layer->tops()[0], TensorShape({2, 3}));
  expect_near(values_of(last.run({c, d})), {1, 3, 4, 2, 5, 6});
  const Tensor e = make({1, 1, 2}, kFloat64, {7, 8});
  Built slots("Concat", {{2, 2}, {1, 2}});
  EXPECT_EQ(slots.layer->tops()[0], TensorShape({3, 2}));
  expect_near(values_of(slots.run({d, e})), {3, 4, 5, 6, 7, 8});
  EXPECT_TRUE(slots.gradients({d, e}));
  refuses("Concat", {{2, 1}, {2, 2}}, "{}",
          "[Concat x] expected inputs that differ in axis 1 only but got [batch, 2, 1], [batch, 2, 2]");
  refuses("Concat", {{2}, {2, 2}}, "{}", "but got [batch, 2], [batch, 2, 2]");
  refuses("Concat", {{2}}, R"({"axis": 2})", "[Concat x] expected inputs with an axis 2 but got [batch, 2]");
}

TEST(SliceLayer, CopiesRangesThatMayOverlap) {
  const Tensor x = make({2, 4}, kFloat64, {1, 2, 3, 4, 5, 6, 7, 8});
  Built layer("Slice", {{4}}, R"({"ranges": [[0, 2], [1, 4], [3, 4]]})");
  const std::vector<Tensor> tops = layer.forward({x});
  ASSERT_EQ(tops.size(), 3u);
  expect_near(values_of(tops[0]), {1, 2, 5, 6});
  expect_near(values_of(tops[1]), {2, 3, 4, 6, 7, 8});
  expect_near(values_of(tops[2]), {4, 8});
  for (size_t top = 0; top < 3; ++top) EXPECT_TRUE(layer.gradients({x}, top));
  Built deep("Slice", {{2, 3}}, R"({"ranges": [[1, 3]]})");
  expect_near(values_of(deep.run({make({1, 2, 3}, kFloat64, {1, 2, 3, 4, 5, 6})})), {2, 3, 5, 6});
  refuses("Slice", {{4}}, R"({"ranges": [[0, 2], [2, 5]]})",
          "[Slice x] range [2, 5] is not a valid [first, end) within the 4 columns of [batch, 4]");
  refuses("Slice", {{4}}, R"({"ranges": [[2, 2]]})", "[Slice x] range [2, 2]");
  refuses("Slice", {{4}}, R"({"ranges": [[2]]})", "[Slice x] range [2]");
  refuses("Slice", {{4}}, R"({"ranges": []})", "ranges");
  refuses("Slice", {{4}}, R"({"ranges": [[-1, 2]]})", "ranges");
  refuses("Slice", {{4}, {4}}, R"({"ranges": [[0, 2]]})", "but got [batch, 4], [batch, 4]");
}

TEST(ReshapeLayer, KeepsRowsApart) {
  const Tensor x = numbers({2, 3, 4});
  const auto shape_of = [](const char* options, const TensorShape& bottom) {
    return Built("Reshape", {bottom}, options).layer->tops()[0];
  };
  EXPECT_EQ(shape_of("{}", {3, 4}), TensorShape({12}));
  EXPECT_EQ(shape_of(R"({"leading_dim": 12})", {3, 4}), TensorShape({12}));
  EXPECT_EQ(shape_of(R"({"leading_dim": 2, "time_step": 6})", {3, 4}), TensorShape({6, 2}));
  EXPECT_EQ(shape_of(R"({"shape": [-1, 2, 6]})", {3, 4}), TensorShape({2, 6}));
  EXPECT_EQ(shape_of(R"({"selected": [2, 0]})", {3, 4}), TensorShape({8}));
  EXPECT_EQ(shape_of(R"({"selected": [2, 0], "shape": [-1, 2, 4]})", {3, 4}), TensorShape({2, 4}));
  for (const char* options : {"{}", R"({"leading_dim": 2, "time_step": 6})", R"({"shape": [-1, 2, 6]})"}) {
    Built layer("Reshape", {{3, 4}}, options);
    EXPECT_EQ(values_of(layer.run({x})), values_of(x));
    EXPECT_TRUE(layer.gradients({x}));
  }
  Built selected("Reshape", {{3, 2}}, R"({"selected": [2, 0, 2]})");
  const Tensor y = make({2, 3, 2}, kFloat64, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  expect_near(values_of(selected.run({y})), {5, 6, 1, 2, 5, 6, 11, 12, 7, 8, 11, 12});
  EXPECT_TRUE(selected.gradients({y}));
}

TEST(ReshapeLayer, FoldsAndUnfoldsSamples) {
  const auto shape_of = [](const char* options, const TensorShape& bottom) {
    return Built("Reshape", {bottom}, options).layer->tops()[0];
  };
  EXPECT_EQ(shape_of(R"({"leading_dim": 4})", {3, 4}), TensorShape::with_rows({4}, 3));
  EXPECT_EQ(shape_of(R"({"leading_dim": 2})", {3, 4}), TensorShape::with_rows({2}, 6));
  EXPECT_EQ(shape_of(R"({"leading_dim": 2, "time_step": 3})", {3, 4}), TensorShape::with_rows({3, 2}, 2));
  EXPECT_EQ(shape_of(R"({"shape": [-1, 4]})", {3, 4}), TensorShape::with_rows({4}, 3));
  EXPECT_EQ(shape_of(R"({"selected": [2, 0], "leading_dim": 4})", {3, 4}), TensorShape::with_rows({4}, 2));
  EXPECT_EQ(shape_of(R"({"leading_dim": 15})", TensorShape::with_rows({5}, 3)), TensorShape({15}));
  EXPECT_EQ(shape_of(R"({"leading_dim": 10})", TensorShape::with_rows({5}, 6)), TensorShape::with_rows({10}, 3));
  EXPECT_EQ(shape_of(R"({"leading_dim": 5, "time_step": 3})", TensorShape::with_rows({5}, 3)), TensorShape({3, 5}));
  EXPECT_EQ(shape_of("{}", TensorShape::with_rows({2, 5}, 3)), TensorShape::with_rows({10}, 3))
      << "without options rows stay";
  for (const char* options : {R"({"leading_dim": 4})", R"({"leading_dim": 2, "time_step": 3})"}) {
    const Tensor x = numbers({2, 3, 4});
    Built layer("Reshape", {{3, 4}}, options);
    EXPECT_EQ(values_of(layer.run({x})), values_of(x));
    EXPECT_TRUE(layer.gradients({x}));
  }
  const Tensor folded = numbers({6, 5});
  Built unfold("Reshape", {TensorShape::with_rows({5}, 3)}, R"({"leading_dim": 15})");
  EXPECT_EQ(values_of(unfold.run({folded})), values_of(folded));
  EXPECT_TRUE(unfold.gradients({folded}));
}

TEST(ReshapeLayer, Refusals) {
  refuses(
      "Reshape", {{3, 4}}, R"({"leading_dim": 5})",
      "[Reshape x] expected an input whose samples can be divided into rows of the shape [5] but got [batch, 3, 4]");
  refuses("Reshape", {{3, 4}}, R"({"leading_dim": 24})", "rows of the shape [24] but got [batch, 3, 4]");
  refuses("Reshape", {{3, 4}}, R"({"leading_dim": 5, "time_step": 2})", "rows of the shape [2, 5] but got");
  refuses("Reshape", {TensorShape::with_rows({4}, 3)}, R"({"leading_dim": 8})",
          "samples can be divided into rows of the shape [8] but got [batch * 3, 4]");
  refuses("Reshape", {{3, 4}}, R"({"shape": [-1, 5]})",
          "an input whose samples can be divided into rows of the shape [5] but got [batch, 3, 4]");
  for (const char* shape : {"[2, 12]", "[-1]", "[-1, -1]", "[-1, 0]", "[-1, 3, -4]"})
    refuses(
        "Reshape", {{3, 4}}, (std::string("{\"shape\": ") + shape + "}").c_str(),
        (std::string("[Reshape x] shape starts with -1, followed by sizes of at least 1, but is ") + shape).c_str());
  // A large product, and one that overflows to 0, by which nothing can be divided.
  refuses("Reshape", {{3, 4}}, R"({"shape": [-1, 4294967296, 4]})", "rows of the shape [4294967296, 4] but got");
  refuses("Reshape", {{3, 4}}, R"({"leading_dim": 4294967296, "time_step": 4294967296})",
          "[Reshape x] expected an input whose samples can be divided into rows of the shape [4294967296, 4294967296]");
  refuses("Reshape", {{3, 4}}, R"({"time_step": 4})", "[Reshape x] time_step needs a leading_dim");
  refuses("Reshape", {{3, 4}}, R"({"leading_dim": 4, "shape": [-1, 4]})",
          "[Reshape x] expected leading_dim or shape, not both");
  refuses("Reshape", {{3, 4}}, R"({"selected": [3]})", "[Reshape x] slot 3 of an input of 3 slots");
  refuses("Reshape", {{4}}, R"({"selected": [0]})",
          "an input [batch, slots, n] to select slots from but got [batch, 4]");
  refuses("Reshape", {{4}, {4}}, "{}", "one input");
}

}  // namespace
}  // namespace tercel::recsys
