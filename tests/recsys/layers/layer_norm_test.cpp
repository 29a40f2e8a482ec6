#include "tercel/recsys/layers/layer_norm.h"

#include <cmath>

#include "tests/recsys/layers/layer_support.h"

namespace tercel::recsys {
namespace {

/** The formula for rows of n, with scale and shift. */
Values normalized(const Values& x, size_t n, double eps, const Values& gamma, const Values& beta) {
  Values out;
  for (size_t row = 0; row < x.size(); row += n) {
    double mean = 0, var = 0;
    for (size_t i = 0; i < n; ++i) mean += x[row + i] / static_cast<double>(n);
    for (size_t i = 0; i < n; ++i) var += (x[row + i] - mean) * (x[row + i] - mean) / static_cast<double>(n);
    for (size_t i = 0; i < n; ++i) out.push_back((x[row + i] - mean) / std::sqrt(var + eps) * gamma[i] + beta[i]);
  }
  return out;
}

TEST(LayerNormLayer, ValuesAndGradients) {
  const std::vector<Sizes> shapes = {{3, 4}, {1, 4}, {2, 3, 4}, {2, 2, 3, 4}};
  for (const Sizes& sizes : shapes) {
    Built layer("LayerNorm", {TensorShape(DimVector(IntSpan(sizes.data() + 1, sizes.size() - 1)))},
                R"({"ln_param": {"eps": 0.01}})");
    layer.parameters.entries()[0].tensor.detach().copy_(make({4}, kFloat64, {1, -2, 0.5, 3}));
    layer.parameters.entries()[1].tensor.detach().copy_(make({4}, kFloat64, {0, 1, -1, 2}));
    const Tensor x = numbers(sizes, 3, -2, 5);
    expect_near(values_of(layer.run({x})), normalized(values_of(x), 4, 0.01, {1, -2, 0.5, 3}, {0, 1, -1, 2}));
    EXPECT_TRUE(layer.gradients({x}));
  }
}

TEST(LayerNormLayer, OptionsOrderAndRefusals) {
  Built layer("LayerNorm", {{2, 3}});
  ASSERT_EQ(layer.parameters.entries().size(), 2u);
  EXPECT_EQ(layer.parameters.entries()[0].name, "x.gamma") << "HugeCTR's order";
  EXPECT_EQ(layer.parameters.entries()[1].name, "x.beta");
  EXPECT_EQ(layer.parameter("gamma"), (Values{1, 1, 1}));
  EXPECT_EQ(layer.parameter("beta"), (Values{0, 0, 0}));
  EXPECT_EQ(Built("LayerNorm", {{3}}, R"({"ln_param": {"gamma_init": "Zero"}})").parameter("gamma"), (Values{0, 0, 0}));
  // A single column has no variance: what remains is beta.
  EXPECT_EQ(values_of(Built("LayerNorm", {{1}}).run({numbers({2, 1})})), (Values{0, 0}));
  refuses("LayerNorm", {{}}, "{}", "[LayerNorm x] expected one input [batch, ..., n] but got [batch]");
  refuses("LayerNorm", {{3}, {3}}, "{}", "but got [batch, 3], [batch, 3]");
  refuses("LayerNorm", {{3}}, R"({"ln_param": {"eps": 0}})", "eps");
  refuses("LayerNorm", {{3}}, R"({"ln_param": {"factor": 1}})", "factor");
}

}  // namespace
}  // namespace tercel::recsys
