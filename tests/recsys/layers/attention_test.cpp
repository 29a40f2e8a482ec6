#include "tercel/recsys/layers/attention.h"

#include <cmath>

#include "tests/recsys/layers/layer_support.h"

namespace tercel::recsys {
namespace {

/** Softmax of n scores. */
Values softmax_of(Values scores) {
  double sum = 0;
  for (double& s : scores) sum += s = std::exp(s);
  for (double& s : scores) s /= sum;
  return scores;
}

/** Attention of one sample, by its definition; the mask [F, T] may be empty. */
Values attention_of(const double* q, const double* k, const double* v, const Values& mask, size_t heads, size_t from,
                    size_t to, size_t width, size_t value_width) {
  Values out(from * value_width, 0.0);
  const size_t d = width / heads, dv = value_width / heads;
  for (size_t h = 0; h < heads; ++h)
    for (size_t i = 0; i < from; ++i) {
      Values scores;
      for (size_t j = 0; j < to; ++j) {
        double score = 0;
        for (size_t c = 0; c < d; ++c) score += q[i * width + h * d + c] * k[j * width + h * d + c];
        score /= std::sqrt(static_cast<double>(d));
        scores.push_back(mask.empty() ? score : score - 10000 * (1 - mask[i * to + j]));
      }
      const Values weights = softmax_of(scores);
      for (size_t j = 0; j < to; ++j)
        for (size_t c = 0; c < dv; ++c)
          out[i * value_width + h * dv + c] += weights[j] * v[j * value_width + h * dv + c];
    }
  return out;
}

TEST(PaddingMaskLayer, IsZeroWhereTheWholeVectorIs) {
  Built layer("PaddingMask", {{3, 2}});
  const Tensor x = make({2, 3, 2}, kFloat64, {1, 0, 0, 0, 0, -2, 0, 0, 3, 4, 0, 0});
  EXPECT_EQ(values_of(layer.run({x})), Values({1, 0, 1, 0, 1, 0}));
  EXPECT_FALSE(layer.run({make({1, 3, 2}, kFloat64, {1, 0, 0, 0, 0, -2}).requires_grad_()}).requires_grad());
  refuses("PaddingMask", {{6}}, "{}", "[PaddingMask x] expected one input [batch, T, d] but got [batch, 6]");
}

TEST(SequenceMaskLayer, IsOneBelowBothLengths) {
  Built layer("SequenceMask", {{1}, {1}}, R"({"max_sequence_len_from": 2, "max_sequence_len_to": 3})");
  EXPECT_EQ(layer.layer->tops()[0], TensorShape({1, 2, 3}));
  Tensor from = make({3, 1}, kFloat64, {1, 2, 0}), to = make({3, 1}, kFloat64, {2, 5, 3});
  const Tensor mask = layer.run({from, to});
  EXPECT_EQ(values_of(mask), (Values{1, 1, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(values_of(layer.run({make({1, 1}, kFloat64, {2}), make({1, 1}, kFloat64, {1})})),
            (Values{1, 0, 0, 1, 0, 0}));
  from.requires_grad_();
  EXPECT_FALSE(layer.run({from, to}).requires_grad());
  refuses("SequenceMask", {{1}}, "{}", "[SequenceMask x] expected two lengths [batch, 1] but got [batch, 1]");
  refuses("SequenceMask", {{1}, {2}}, "{}", "but got [batch, 1], [batch, 2]");
  refuses("SequenceMask", {{1}, {1}}, R"({"max_sequence_len_to": 0})", "max_sequence_len_to");
}

TEST(SoftmaxLayer, OfTheLastDimension) {
  const Tensor x = numbers({2, 2, 3}, 1, -3, 3);
  for (const double factor : {1.0, 0.5}) {
    const std::string options = "{\"factor\": " + std::to_string(factor) + "}";
    Built layer("Softmax", {{2, 3}}, options.c_str());
    Values expected;
    const Values v = values_of(x);
    for (size_t row = 0; row < 12; row += 3)
      for (const double p : softmax_of({factor * v[row], factor * v[row + 1], factor * v[row + 2]}))
        expected.push_back(p);
    expect_near(values_of(layer.run({x})), expected);
    EXPECT_TRUE(layer.gradients({x}));
  }
  expect_near(values_of(Built("Softmax", {{2}}).run({make({1, 2}, kFloat64, {1000, 1000})})), {0.5, 0.5});
  refuses("Softmax", {{}}, "{}", "[Softmax x] expected one input [batch, ..., n]");
  refuses("Softmax", {{2, 3}, {3}}, "{}", "but got [batch, 2, 3], [batch, 3]");
  refuses("Softmax", {{2, 3}, {2, 2}}, "{}", "but got [batch, 2, 3], [batch, 2, 2]");
  refuses("Softmax", {{3}, {3}, {3}}, "{}", "but got [batch, 3], [batch, 3], [batch, 3]");
}

TEST(SoftmaxLayer, AMaskForbidsPositions) {
  // Heads share a mask, of which each row is the same.
  Built layer("Softmax", {{2, 2, 3}, {1, 1, 3}}, R"({"factor": 2})");
  const Tensor x = numbers({2, 2, 2, 3}, 1, -3, 3);
  const Tensor mask = make({2, 1, 1, 3}, kFloat64, {1, 1, 0, 0, 0, 0});
  const Values v = values_of(x), m = values_of(mask), found = values_of(layer.run({x, mask}));
  Values expected;
  for (size_t row = 0; row < 8; ++row) {
    Values scores;
    for (size_t j = 0; j < 3; ++j) scores.push_back(2 * v[row * 3 + j] - 10000 * (1 - m[row / 4 * 3 + j]));
    if (row >= 4)  // all forbidden alike: as without a mask
      for (double& s : scores) s += 10000;
    for (const double p : softmax_of(scores)) expected.push_back(p);
  }
  expect_near(found, expected, 1e-9);
  EXPECT_EQ(found[2], 0) << "nothing of what is forbidden";
  double sum = 0;
  for (size_t j = 0; j < 3; ++j) sum += found[j];
  EXPECT_NEAR(sum, 1, 1e-15) << "HugeCTR adds 1e-6 to the denominator";
  EXPECT_TRUE(layer.gradients({x, mask}, 0, 1));
  Tensor constant = mask.clone();
  constant.requires_grad_();
  EXPECT_FALSE(layer.run({x.detach(), constant}).requires_grad()) << "a mask has no gradient";
  Built plain("Softmax", {{3}, {3}});
  expect_near(values_of(plain.run({make({1, 3}, kFloat64, {5, 1, 1}), make({1, 3}, kFloat64, {0, 1, 1})})),
              {0, 0.5, 0.5});
}

TEST(MultiHeadAttentionLayer, IsItsDefinition) {
  struct Case {
    size_t heads, from, to, width, value_width;
    bool masks;
  };
  for (const Case& c :
       {Case{1, 3, 3, 4, 4, false}, Case{2, 3, 3, 4, 4, true}, Case{2, 2, 3, 4, 6, true}, Case{4, 1, 2, 4, 4, false}})
    for (const int64_t batch : {1, 3}) {
      const auto n = [](size_t size) { return static_cast<int64_t>(size); };
      Shapes shapes = {{n(c.from), n(c.width)}, {n(c.to), n(c.width)}, {n(c.to), n(c.value_width)}};
      const Tensor q = numbers({batch, n(c.from), n(c.width)}, 1), k = numbers({batch, n(c.to), n(c.width)}, 2),
                   v = numbers({batch, n(c.to), n(c.value_width)}, 3);
      std::vector<Tensor> in = {q, k, v};
      Values mask_values;
      if (c.masks) {
        shapes.push_back({1, n(c.from), n(c.to)});
        for (int64_t i = 0; i < batch * n(c.from * c.to); ++i) mask_values.push_back(i % 5 == 1 ? 0 : 1);
        in.push_back(make({batch, 1, n(c.from), n(c.to)}, kFloat64, mask_values));
      }
      Built layer("MultiHeadAttention", shapes, ("{\"num_attention_heads\": " + std::to_string(c.heads) + "}").c_str());
      EXPECT_EQ(layer.layer->tops()[0], TensorShape({n(c.from), n(c.value_width)}));
      const Values a = values_of(q), b = values_of(k), d = values_of(v);
      Values expected;
      for (size_t s = 0; s < static_cast<size_t>(batch); ++s) {
        const size_t size = c.masks ? c.from * c.to : 0;
        const Values mask(mask_values.begin() + n(s * size), mask_values.begin() + n((s + 1) * size));
        const Values of_sample =
            attention_of(a.data() + s * c.from * c.width, b.data() + s * c.to * c.width,
                         d.data() + s * c.to * c.value_width, mask, c.heads, c.from, c.to, c.width, c.value_width);
        expected.insert(expected.end(), of_sample.begin(), of_sample.end());
      }
      expect_near(values_of(layer.run(in)), expected, 1e-9);
      EXPECT_TRUE(layer.gradients(in, 0, 3));
    }
}

TEST(MultiHeadAttentionLayer, ItsHalvesMakeTheWhole) {
  const Tensor q = numbers({2, 3, 4}, 1), k = numbers({2, 5, 4}, 2), v = numbers({2, 5, 4}, 3);
  const auto with_heads = [](const Tensor& x) { return x.reshape({2, x.size(1), 2, 2}).transpose(1, 2).contiguous(); };
  Built scores("MultiHeadAttention", {{2, 3, 2}, {2, 5, 2}}, R"({"transpose_b": true})");
  Built values("MultiHeadAttention", {{2, 3, 5}, {2, 5, 2}});
  Built whole("MultiHeadAttention", {{3, 4}, {5, 4}, {5, 4}}, R"({"num_attention_heads": 2, "transpose_b": true})");
  EXPECT_EQ(scores.layer->tops()[0], TensorShape({2, 3, 5}));
  EXPECT_EQ(values.layer->tops()[0], TensorShape({3, 4}));
  Built softmax("Softmax", {{2, 3, 5}});
  const Tensor weights = softmax.run({scores.run({with_heads(q), with_heads(k)})});
  expect_near(values_of(values.run({weights, with_heads(v)})), values_of(whole.run({q, k, v})));
  EXPECT_TRUE(scores.gradients({with_heads(q), with_heads(k)}));
  EXPECT_TRUE(values.gradients({weights.detach().contiguous(), with_heads(v)}));
}

TEST(MultiHeadAttentionLayer, Refusals) {
  refuses("MultiHeadAttention", {{3, 4}, {3, 4}, {3, 4}}, R"({"num_attention_heads": 3})",
          "[MultiHeadAttention x] 3 heads do not divide the 4 columns of [batch, 3, 4]");
  refuses("MultiHeadAttention", {{3, 4}, {3, 5}, {3, 4}}, "{}",
          "[MultiHeadAttention x] expected queries [batch, F, H], keys [batch, T, H], values [batch, T, W]");
  refuses("MultiHeadAttention", {{3, 4}, {3, 4}, {2, 4}}, "{}", "but got [batch, 3, 4], [batch, 3, 4], [batch, 2, 4]");
  refuses("MultiHeadAttention", {{3, 4}, {3, 4}, {3, 4}, {1, 3, 2}}, "{}", "[batch, 1, 3, 2]");
  refuses("MultiHeadAttention", {{3, 4}}, "{}", "but got [batch, 3, 4]");
  refuses("MultiHeadAttention", {{2, 3, 4}, {2, 5, 3}}, R"({"transpose_b": true})",
          "expected queries [batch, heads, F, d] and keys [batch, heads, T, d] but got");
  refuses("MultiHeadAttention", {{2, 3, 4}, {2, 5, 3}}, "{}",
          "expected weights [batch, heads, F, T] and values [batch, heads, T, d] but got");
  refuses("MultiHeadAttention", {{3, 4}, {3, 4}}, "{}", "but got [batch, 3, 4], [batch, 3, 4]");
}

}  // namespace
}  // namespace tercel::recsys
