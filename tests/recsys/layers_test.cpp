// Every layer separately: shapes, values compared with plain loops, gradients with central differences, errors.
#include "tercel/recsys/layers/layers_impl.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tercel/recsys/layers/initializer.h"
#include "tercel/util/error.h"
#include "tests/support/errors.h"
#include "tests/support/gradcheck.h"
#include "tests/support/tensors.h"

namespace tercel::recsys {
namespace {

using test::gradcheck;
using test::make;
using test::random;
using test::Sizes;
using test::values_of;
using Values = std::vector<double>;
using Shapes = std::vector<FeatureShape>;

/** A layer called "x", built from JSON for inputs of those shapes. */
class Built {
 public:
  Built(std::string_view type, const Shapes& bottoms, const char* options = "{}", uint64_t seed = 1) {
    BuildContext context{type, "x", bottoms, parameters};
    Json resolved = Json::object();
    for (const LayerEntry& entry : layer_entries())
      if (entry.type == type) layer = entry.make(parse_json(options, "options", JsonErrors::Config), context, resolved);
    if (!layer) throw std::runtime_error("no such layer");
    Generator init(seed);
    parameters.allocate(kFloat64, init);
  }

  std::vector<Tensor> forward(const std::vector<Tensor>& bottoms, bool training = true) {
    std::vector<Tensor> tops(layer->tops().size());
    layer->forward(bottoms, tops, {training, generator});
    for (size_t i = 0; i < tops.size(); ++i) {
      DimVector sizes;
      if (!layer->tops()[i].empty()) sizes.push_back(bottoms[0].size(0));
      for (const int64_t size : layer->tops()[i]) sizes.push_back(size);
      EXPECT_EQ(IntSpan(tops[i].sizes()), IntSpan(sizes)) << "the output does not have the declared shape";
    }
    return tops;
  }
  Tensor run(const std::vector<Tensor>& bottoms, bool training = true) { return forward(bottoms, training)[0]; }

  Values parameter(const std::string& name) {
    for (const auto& entry : parameters.entries())
      if (entry.name == "x." + name) return values_of(entry.tensor);
    ADD_FAILURE() << "no parameter " << name;
    return {};
  }

  /** Backward of output `top` with respect to all inputs (those that are floating) and all parameters. */
  ::testing::AssertionResult gradients(const std::vector<Tensor>& bottoms, size_t top = 0) {
    std::vector<Tensor> all = bottoms;
    for (Tensor& t : all) t.requires_grad_();
    for (const auto& entry : parameters.entries()) all.push_back(entry.tensor);
    const size_t n = bottoms.size();
    return gradcheck(
        [&](const std::vector<Tensor>& inputs) {
          return forward(std::vector<Tensor>(inputs.begin(), inputs.begin() + static_cast<int64_t>(n)))[top];
        },
        all);
  }

  nn::ParameterArena parameters;
  std::unique_ptr<Layer> layer;
  Generator generator{7};
};

Tensor numbers(const Sizes& sizes, uint64_t seed = 1, double low = -1, double high = 1) {
  return random(sizes, kFloat64, low, high, seed);
}

void expect_near(const Values& found, const Values& expected, double tolerance = 1e-12) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i)
    ASSERT_NEAR(found[i], expected[i], tolerance * std::max(1.0, std::abs(expected[i]))) << "element " << i;
}

void refuses(std::string_view type, const Shapes& bottoms, const char* options, const char* text) {
  TERCEL_EXPECT_THROW(Built(type, bottoms, options), ConfigError, text);
}

TEST(Layers, EveryOneIsTestedHere) {
  // A new layer needs its tests below, and then its name here.
  const char* tested[] = {"Add",       "BatchNorm",     "BinaryCrossEntropyLoss",
                          "Concat",    "Dropout",       "ElementwiseMultiply",
                          "FmOrder2",  "InnerProduct",  "Interaction",
                          "MLP",       "MultiCross",    "ReLU",
                          "ReduceSum", "Reshape",       "Sigmoid",
                          "Slice",     "WeightMultiply"};
  std::vector<std::string> listed, expected(std::begin(tested), std::end(tested));
  for (const LayerEntry& entry : layer_entries()) listed.emplace_back(entry.type);
  EXPECT_EQ(listed, expected);
}

TEST(Layers, UnknownOptionsSuggestTheNearest) {
  refuses("ReduceSum", {{3}}, R"({"axes": 1})", "[ReduceSum x] unknown option 'axes'; did you mean 'axis'?");
  refuses("InnerProduct", {{3}}, R"({"fc_param": {"num_outputs": 4}})", "did you mean 'num_output'?");
  refuses("MLP", {{3}}, R"({"mlp_param": {"num_output": 4, "activatoin": "Relu"}})", "did you mean 'activation'?");
  refuses("MultiCross", {{3}}, R"({"mc_param": {"num_layer": 4}})", "did you mean 'num_layers'?");
  refuses("Dropout", {{3}}, R"({"rat": 0.1})", "did you mean 'rate'?");
  refuses("ReLU", {{3}}, R"({"alpha": 0.1})", "[ReLU x] unknown option 'alpha'");
  EXPECT_NO_THROW(Built("ReLU", {{3}}, R"({"type": "ReLU", "bottom": "a", "top": "x"})")) << "the graph's own keys";
}

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

double mean_of(const Values& v) {
  double sum = 0;
  for (const double x : v) sum += x;
  return sum / static_cast<double>(v.size());
}
double deviation_of(const Values& v) {
  const double mean = mean_of(v);
  double sum = 0;
  for (const double x : v) sum += (x - mean) * (x - mean);
  return std::sqrt(sum / static_cast<double>(v.size()));
}
double largest_of(const Values& v) {
  double largest = 0;
  for (const double x : v) largest = std::max(largest, std::abs(x));
  return largest;
}

/** Checks that values are uniform in +-bound: they come close to it, never exceed it, and have its deviation. */
void expect_uniform(const Values& v, double bound) {
  EXPECT_LE(largest_of(v), bound * (1 + 1e-9));
  EXPECT_GT(largest_of(v), 0.98 * bound);
  EXPECT_NEAR(deviation_of(v), bound / std::sqrt(3), 0.05 * bound);
}
void expect_normal(const Values& v, double stddev) {
  EXPECT_NEAR(deviation_of(v), stddev, 0.05 * stddev);
  EXPECT_NEAR(mean_of(v), 0, 0.1 * stddev);
  EXPECT_GT(largest_of(v), 2.5 * stddev) << "a normal distribution has tails";
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
  EXPECT_EQ(one.layer->tops()[0][0], 2);
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

TEST(InteractionLayer, OrderAndWidth) {
  Built layer("Interaction", {{2}, {3, 2}});
  EXPECT_EQ(layer.layer->tops()[0][0], 2 + 6 + 1) << "the row, 4 * 3 / 2 products, a zero";
  // Vectors with distinct products: z0 = (1, 10), z1 = (2, 20) ...
  const Tensor mlp = make({1, 2}, kFloat64, {1, 10}), emb = make({1, 3, 2}, kFloat64, {2, 20, 3, 30, 4, 40});
  const auto dot = [](double i, double j) { return i * j * 101; };
  expect_near(values_of(layer.run({mlp, emb})),
              {1, 10, dot(2, 1), dot(3, 1), dot(3, 2), dot(4, 1), dot(4, 2), dot(4, 3), 0});
  EXPECT_TRUE(layer.gradients({numbers({3, 2}), numbers({3, 3, 2}, 2)}));
  // Without a first row: the vectors, then their products.
  Built alone("Interaction", {{3, 2}});
  EXPECT_EQ(alone.layer->tops()[0][0], 6 + 3 + 1);
  expect_near(values_of(alone.run({emb})), {2, 20, 3, 30, 4, 40, dot(3, 2), dot(4, 2), dot(4, 3), 0});
  EXPECT_TRUE(alone.gradients({numbers({3, 3, 2}, 2)}));
}

TEST(InteractionLayer, Refusals) {
  refuses("Interaction", {{2}}, "{}",
          "[Interaction x] expected inputs [batch, d] and [batch, slots, d], or the second alone, but got [batch, 2]");
  refuses("Interaction", {{2}, {3, 4}}, "{}", "but got [batch, 2], [batch, 3, 4]");
  refuses("Interaction", {{3, 2}, {2}}, "{}", "but got [batch, 3, 2], [batch, 2]");
}

TEST(FmOrder2Layer, ValuesAndGradients) {
  Built layer("FmOrder2", {{6}}, R"({"out_dim": 2})");
  const Tensor x = numbers({4, 6});
  const Values v = values_of(x);
  Values expected;
  for (size_t r = 0; r < 4; ++r)
    for (size_t j = 0; j < 2; ++j) {  // all pairs of the 3 fields
      const double a = v[r * 6 + j], b = v[r * 6 + 2 + j], c = v[r * 6 + 4 + j];
      expected.push_back(a * b + a * c + b * c);
    }
  expect_near(values_of(layer.run({x})), expected);
  EXPECT_TRUE(layer.gradients({x}));
}

TEST(FmOrder2Layer, Refusals) {
  refuses("FmOrder2", {{7}}, R"({"out_dim": 2})",
          "[FmOrder2 x] expected one input [batch, slots * 2] but got [batch, 7]");
  refuses("FmOrder2", {{3, 2}}, R"({"out_dim": 2})", "but got [batch, 3, 2]");
  refuses("FmOrder2", {{6}}, "{}", "out_dim");
}

TEST(WeightMultiplyLayer, ValuesAndGradients) {
  Built layer("WeightMultiply", {{3}}, R"({"weight_dims": [3, 2]})");
  const Tensor x = numbers({4, 3});
  const Values v = values_of(x), w = layer.parameter("weight");
  Values expected;
  for (size_t r = 0; r < 4; ++r)
    for (size_t s = 0; s < 3; ++s)
      for (size_t j = 0; j < 2; ++j) expected.push_back(v[r * 3 + s] * w[s * 2 + j]);
  expect_near(values_of(layer.run({x})), expected);
  EXPECT_TRUE(layer.gradients({x}));
}

TEST(WeightMultiplyLayer, InitialValuesAndRefusals) {
  expect_uniform(Built("WeightMultiply", {{30}}, R"({"weight_dims": [30, 50]})").parameter("weight"),
                 std::sqrt(6.0 / 80));
  EXPECT_EQ(
      largest_of(
          Built("WeightMultiply", {{3}}, R"({"weight_dims": [3, 2], "weight_init": "Zero"})").parameter("weight")),
      0);
  expect_normal(
      Built("WeightMultiply", {{30}}, R"({"weight_dims": [30, 50], "weight_init": "XavierNorm"})").parameter("weight"),
      std::sqrt(2.0 / 80) / 0.87962566);
  refuses("WeightMultiply", {{4}}, R"({"weight_dims": [3, 2]})",
          "[WeightMultiply x] expected one input [batch, 3] but got [batch, 4]");
  refuses("WeightMultiply", {{3}}, R"({"weight_dims": [3]})", "[WeightMultiply x] weight_dims is [slots, d], not [3]");
  refuses("WeightMultiply", {{3}}, "{}", "weight_dims");
}

TEST(ElementwiseLayers, ValuesAndGradients) {
  const Tensor a = numbers({2, 3}, 1), b = numbers({2, 3}, 2), c = numbers({2, 3}, 3);
  const Values x = values_of(a), y = values_of(b), z = values_of(c);
  Values sum, product;
  for (size_t i = 0; i < 6; ++i) {
    sum.push_back(x[i] + y[i] + z[i]);
    product.push_back(x[i] * y[i] * z[i]);
  }
  Built add("Add", {{3}, {3}, {3}}), mul("ElementwiseMultiply", {{3}, {3}, {3}});
  expect_near(values_of(add.run({a, b, c})), sum);
  expect_near(values_of(mul.run({a, b, c})), product);
  EXPECT_TRUE(add.gradients({a, b, c}));
  EXPECT_TRUE(mul.gradients({a, b, c}));
  expect_near(values_of(Built("Add", {{3}}).run({a})), x);
  refuses("ElementwiseMultiply", {{3}}, "{}",
          "[ElementwiseMultiply x] expected two or more inputs of one shape but got [batch, 3]");
  for (const char* type : {"Add", "ElementwiseMultiply"}) {
    const std::string start = std::string("[") + type + " x] expected " + (type[0] == 'A' ? "" : "two or more ") +
                              "inputs of one shape but got ";
    refuses(type, {{3}, {3, 1}}, "{}", (start + "[batch, 3], [batch, 3, 1]").c_str());
    refuses(type, {{3}, {3}, {4}}, "{}", (start + "[batch, 3], [batch, 3], [batch, 4]").c_str());
  }
}

TEST(ReduceSumLayer, AxesStayWithSizeOne) {
  const Tensor x = make({2, 2, 3}, kFloat64, {1, 2, 3, 4, 5, 6, 10, 20, 30, 40, 50, 60});
  Built one("ReduceSum", {{2, 3}}, R"({"axis": 1})"), two("ReduceSum", {{2, 3}}, R"({"axis": 2})");
  EXPECT_EQ(IntSpan(one.layer->tops()[0]), IntSpan({1, 3}));
  EXPECT_EQ(IntSpan(two.layer->tops()[0]), IntSpan({2, 1}));
  expect_near(values_of(one.run({x})), {5, 7, 9, 50, 70, 90});
  expect_near(values_of(two.run({x})), {6, 15, 60, 150});
  EXPECT_TRUE(one.gradients({x}));
  EXPECT_TRUE(two.gradients({x}));
  expect_near(values_of(Built("ReduceSum", {{3}}).run({make({2, 3}, kFloat64, {1, 2, 3, 4, 5, 6})})), {6, 15});
  refuses("ReduceSum", {{3}}, R"({"axis": 2})", "[ReduceSum x] expected one input with an axis 2 but got [batch, 3]");
  refuses("ReduceSum", {{3}}, R"({"axis": 0})", "axis");
}

TEST(ConcatLayer, JoinsAlongItsAxis) {
  const Tensor a = make({2, 1}, kFloat64, {1, 2}), b = make({2, 2}, kFloat64, {10, 11, 20, 21});
  Built layer("Concat", {{1}, {2}, {1}});
  expect_near(values_of(layer.run({a, b, a})), {1, 10, 11, 1, 2, 20, 21, 2});
  EXPECT_TRUE(layer.gradients({a, b, numbers({2, 1})}));
  const Tensor c = make({1, 2, 1}, kFloat64, {1, 2}), d = make({1, 2, 2}, kFloat64, {3, 4, 5, 6});
  Built last("Concat", {{2, 1}, {2, 2}}, R"({"axis": 2})");
  EXPECT_EQ(IntSpan(last.layer->tops()[0]), IntSpan({2, 3}));
  expect_near(values_of(last.run({c, d})), {1, 3, 4, 2, 5, 6});
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
  const auto shape_of = [](const char* options, const FeatureShape& bottom) {
    return Built("Reshape", {bottom}, options).layer->tops()[0];
  };
  EXPECT_EQ(IntSpan(shape_of("{}", {3, 4})), IntSpan({12}));
  EXPECT_EQ(IntSpan(shape_of(R"({"leading_dim": 12})", {3, 4})), IntSpan({12}));
  EXPECT_EQ(IntSpan(shape_of(R"({"leading_dim": 2, "time_step": 6})", {3, 4})), IntSpan({6, 2}));
  EXPECT_EQ(IntSpan(shape_of(R"({"shape": [-1, 2, 6]})", {3, 4})), IntSpan({2, 6}));
  EXPECT_EQ(IntSpan(shape_of(R"({"selected": [2, 0]})", {3, 4})), IntSpan({8}));
  EXPECT_EQ(IntSpan(shape_of(R"({"selected": [2, 0], "shape": [-1, 2, 4]})", {3, 4})), IntSpan({2, 4}));
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

TEST(ReshapeLayer, Refusals) {
  refuses("Reshape", {{3, 4}}, R"({"leading_dim": 4})",
          "[Reshape x] expected an input with 4 elements in a row but got [batch, 3, 4]");
  refuses("Reshape", {{3, 4}}, R"({"leading_dim": 5, "time_step": 2})", "10 elements in a row");
  refuses("Reshape", {{3, 4}}, R"({"shape": [-1, 5]})", "an input whose rows have the shape [-1, 5]");
  refuses("Reshape", {{3, 4}}, R"({"shape": [2, 12]})", "[2, 12]");
  refuses("Reshape", {{3, 4}}, R"({"shape": [-1]})", "[-1]");
  refuses("Reshape", {{3, 4}}, R"({"shape": [-1, -1]})", "[-1, -1]");
  refuses("Reshape", {{3, 4}}, R"({"shape": [-1, 4294967296, 4]})", "[-1, 4294967296, 4]");
  refuses("Reshape", {{3, 4}}, R"({"selected": [3]})", "[Reshape x] slot 3 of an input of 3 slots");
  refuses("Reshape", {{4}}, R"({"selected": [0]})",
          "an input [batch, slots, n] to select slots from but got [batch, 4]");
  refuses("Reshape", {{4}, {4}}, "{}", "one input");
}

TEST(ActivationLayers, ValuesAndGradients) {
  const Tensor x = make({2, 3}, kFloat64, {-2, -0.5, 0.25, 1, 30, -30});
  Built relu("ReLU", {{3}}), sigmoid("Sigmoid", {{3}});
  expect_near(values_of(relu.run({x})), {0, 0, 0.25, 1, 30, 0});
  Values expected;
  for (const double v : values_of(x)) expected.push_back(1 / (1 + std::exp(-v)));
  expect_near(values_of(sigmoid.run({x})), expected);
  EXPECT_TRUE(relu.gradients({x}));
  EXPECT_TRUE(sigmoid.gradients({x}));
  refuses("ReLU", {{3}, {3}}, "{}", "[ReLU x] expected one input but got [batch, 3], [batch, 3]");
  refuses("Sigmoid", {{3}, {3}}, "{}", "[Sigmoid x] expected one input");
}

TEST(DropoutLayer, ZeroesItsShareAndScalesTheRest) {
  Built layer("Dropout", {{100}}, R"({"rate": 0.3})");
  const Tensor x = make({200, 100}, kFloat64, Values(20000, 2.0));
  int64_t zeros = 0;
  for (const double y : values_of(layer.run({x}))) {
    if (y == 0)
      ++zeros;
    else
      ASSERT_NEAR(y, 2 / 0.7, 1e-6);
  }
  EXPECT_NEAR(static_cast<double>(zeros) / 20000, 0.3, 0.02);
  EXPECT_NE(values_of(layer.run({x})), values_of(layer.run({x}))) << "each step draws new numbers";
  EXPECT_EQ(values_of(layer.run({x}, false)), values_of(x)) << "evaluation changes nothing";
  const uint64_t before = layer.generator.state().offset;
  layer.run({x}, false);
  EXPECT_EQ(layer.generator.state().offset, before) << "and draws nothing";
  refuses("Dropout", {{3}}, R"({"rate": 1})", "rate");
  refuses("Dropout", {{3}}, R"({"rate": -0.1})", "rate");
  refuses("Dropout", {{3}, {3}}, "{}", "[Dropout x] expected one input");
}

TEST(BatchNormLayer, ValuesOfTheBatchAndOfTheRunningStatistics) {
  Built layer("BatchNorm", {{2}}, R"({"bn_param": {"factor": 0.25, "eps": 0.01}})");
  const Tensor x = numbers({5, 2}, 1, -1, 3);
  const Values v = values_of(x);
  double mean[2] = {}, var[2] = {};
  for (size_t i = 0; i < 10; ++i) mean[i % 2] += v[i] / 5;
  for (size_t i = 0; i < 10; ++i) var[i % 2] += (v[i] - mean[i % 2]) * (v[i] - mean[i % 2]) / 5;
  Values expected;
  for (size_t i = 0; i < 10; ++i) expected.push_back((v[i] - mean[i % 2]) / std::sqrt(var[i % 2] + 0.01));
  expect_near(values_of(layer.run({x})), expected);

  const auto buffers = layer.layer->buffers();
  ASSERT_EQ(buffers.size(), 2u);
  EXPECT_EQ(buffers[0].first, "x.running_mean");
  EXPECT_EQ(buffers[1].first, "x.running_var");
  const Values running_mean = values_of(buffers[0].second), running_var = values_of(buffers[1].second);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_NEAR(running_mean[i], 0.25 * mean[i], 1e-6);
    // 0.75 of the initial 1, and the batch's variance: of the sample, with 5 rows 5/4 of the other, or the plain one.
    EXPECT_TRUE(std::abs(running_var[i] - (0.75 + 0.25 * var[i] * 5 / 4)) < 1e-6 ||
                std::abs(running_var[i] - (0.75 + 0.25 * var[i])) < 1e-6)
        << running_var[i] << ", variance " << var[i];
  }
  Values evaluated;
  for (size_t i = 0; i < 10; ++i)
    evaluated.push_back((v[i] - running_mean[i % 2]) / std::sqrt(running_var[i % 2] + 0.01));
  expect_near(values_of(layer.run({x}, false)), evaluated, 1e-6);
  EXPECT_EQ(values_of(layer.layer->buffers()[0].second), running_mean) << "evaluation does not change them";
  EXPECT_TRUE(layer.gradients({x}));
}

TEST(BatchNormLayer, OptionsAndRefusals) {
  Built last("BatchNorm", {{2}});
  last.run({make({2, 2}, kFloat64, {1, 10, 3, 30})});
  expect_near(values_of(last.layer->buffers()[0].second), {2, 20}, 1e-6);
  EXPECT_EQ(last.parameter("gamma"), (Values{1, 1}));
  EXPECT_EQ(last.parameter("beta"), (Values{0, 0}));
  EXPECT_EQ(Built("BatchNorm", {{2}}, R"({"bn_param": {"gamma_init": "Zero"}})").parameter("gamma"), (Values{0, 0}));
  refuses("BatchNorm", {{2, 3}}, "{}", "[BatchNorm x] expected one input [batch, n] but got [batch, 2, 3]");
  refuses("BatchNorm", {{2}}, R"({"bn_param": {"factor": 1.5}})", "factor");
  refuses("BatchNorm", {{2}}, R"({"bn_param": {"eps": 0}})", "eps");
}

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
