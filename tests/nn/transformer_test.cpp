#include "tercel/nn/transformer.h"

#include <gtest/gtest.h>

#include <limits>

#include "tercel/autograd/autograd.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/nn/attention.h"
#include "tercel/ops/nn/linear.h"
#include "tercel/ops/nn/norm.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/views/cat.h"
#include "tercel/ops/views/permute.h"
#include "tercel/ops/views/slicing.h"
#include "tercel/ops/views/views.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace tercel::nn {
namespace {

using test::bytes_of;
using test::make;
using test::random;
using test::values_of;

void expect_close(const Tensor& got, const Tensor& want, double tolerance = 1e-5) {
  ASSERT_EQ(got.sizes(), want.sizes());
  const auto g = values_of(got), w = values_of(want);
  for (size_t i = 0; i < g.size(); ++i) ASSERT_NEAR(g[i], w[i], tolerance) << "element " << i;
}

std::vector<std::string> names_of(const Module& module) {
  std::vector<std::string> names;
  for (const auto& entry : module.named_parameters()) names.push_back(entry.first);
  return names;
}

/** [rows, n, embed] -> [n, heads, rows, depth]. */
Tensor in_heads(const Tensor& x, int64_t heads) {
  return permute(reshape(x, {x.size(0), x.size(1), heads, x.size(2) / heads}), {1, 2, 0, 3});
}

/** The same by the op that does the middle of it. */
Tensor reference(MultiheadAttention& a, const Tensor& q, const Tensor& k, const Tensor& v, int64_t heads,
                 const Tensor& mask = {}) {
  const auto w = chunk(a.in_proj_weight, 3), b = chunk(a.in_proj_bias, 3);
  const Tensor mixed =
      scaled_dot_product_attention(in_heads(linear(q, w[0], b[0]), heads), in_heads(linear(k, w[1], b[1]), heads),
                                   in_heads(linear(v, w[2], b[2]), heads), mask);
  return a.out_proj->forward(reshape(permute(mixed, {2, 0, 1, 3}), q.sizes()));
}

TEST(MultiheadAttention, IsScaledDotProductAttentionBetweenProjections) {
  MultiheadAttention attention(6, 2);
  EXPECT_EQ(names_of(attention),
            (std::vector<std::string>{"in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias"}));
  for (const double zero : values_of(attention.in_proj_bias)) EXPECT_EQ(zero, 0);
  add_(attention.in_proj_bias.data(), random({18}, kFloat32, -1, 1, 9));
  const Tensor q = random({4, 3, 6}, kFloat32, -1, 1, 1), k = random({5, 3, 6}, kFloat32, -1, 1, 2);
  const Tensor v = random({5, 3, 6}, kFloat32, -1, 1, 3);
  const OutputAndWeights got = attention.forward(q, k, v);
  expect_close(got.output, reference(attention, q, k, v, 2));
  expect_close(sum(got.weights, {-1}), ones({3, 4}));
  EXPECT_EQ(attention.forward(q, k, v, {}, true, {}, false).weights.sizes(), IntSpan({3, 2, 4, 5}));
  EXPECT_FALSE(attention.forward(q, k, v, {}, false).weights.defined());
  expect_close(attention(q), reference(attention, q, q, q, 2));
}

TEST(MultiheadAttention, Masks) {
  MultiheadAttention attention(6, 2);
  const Tensor x = random({3, 2, 6}, kFloat32, -1, 1, 1);
  const Tensor later = make({3, 3}, kBool, {0, 1, 1, 0, 0, 1, 0, 0, 0});
  const OutputAndWeights causal = attention.forward(x, x, x, {}, true, later);
  expect_close(causal.output, reference(attention, x, x, x, 2, logical_not(later)));
  expect_close(attention.forward(x, x, x, {}, false, Transformer::generate_square_subsequent_mask(3)).output,
               causal.output);
  const Tensor of_each = expand(unsqueeze(later, 0), {4, 3, 3});
  expect_close(attention.forward(x, x, x, {}, true, of_each).output, causal.output);
  const Tensor padding = make({2, 3}, kBool, {0, 0, 1, 0, 0, 0});
  const Tensor weights = attention.forward(x, x, x, padding, true, later).weights;
  for (int64_t row = 0; row < 3; ++row) EXPECT_EQ(weights[0][row][2].item<float>(), 0);
  EXPECT_GT(weights[1][2][2].item<float>(), 0);
  // A fully masked position gets only the last layer's bias.
  const Tensor all = ones({2, 3}, kBool);
  expect_close(attention.forward(x, x, x, all, false).output, zeros({3, 2, 6}));
}

TEST(MultiheadAttention, BatchFirstAndWithoutBatch) {
  MultiheadAttention attention(6, 3), batch_first(6, 3, {.batch_first = true});
  batch_first.load_state_dict(attention.state_dict());
  const Tensor x = random({4, 2, 6}, kFloat32, -1, 1, 1), y = random({5, 2, 6}, kFloat32, -1, 1, 2);
  const Tensor want = attention.forward(x, y, y).output;
  expect_close(batch_first.forward(transpose(x, 0, 1), transpose(y, 0, 1), transpose(y, 0, 1)).output,
               transpose(want, 0, 1));
  const Tensor one = select(x, 1, 0), other = select(y, 1, 0);
  const OutputAndWeights single = attention.forward(one, other, other);
  expect_close(single.output, select(want, 1, 0));
  EXPECT_EQ(single.weights.sizes(), IntSpan({4, 5}));
  expect_close(batch_first.forward(one, other, other).output, single.output);
  const Tensor padding = make({5}, kBool, {0, 0, 0, 0, 1});
  EXPECT_EQ(attention.forward(one, other, other, padding).weights[0][4].item<float>(), 0);
}

TEST(MultiheadAttention, OtherSizesAndOneMoreKey) {
  MultiheadAttention attention(6, 2, {.add_bias_kv = true, .add_zero_attn = true, .kdim = 4, .vdim = 5});
  EXPECT_EQ(names_of(attention),
            (std::vector<std::string>{"q_proj_weight", "k_proj_weight", "v_proj_weight", "in_proj_bias", "bias_k",
                                      "bias_v", "out_proj.weight", "out_proj.bias"}));
  const Tensor q = random({3, 2, 6}, kFloat32, -1, 1, 1), k = random({4, 2, 4}, kFloat32, -1, 1, 2);
  const Tensor v = random({4, 2, 5}, kFloat32, -1, 1, 3);
  const OutputAndWeights got = attention.forward(q, k, v, ones({2, 4}, kBool));
  EXPECT_EQ(got.output.sizes(), IntSpan({3, 2, 6}));
  EXPECT_EQ(got.weights.sizes(), IntSpan({2, 3, 6}));
  // The source is masked; the appended keys are not.
  expect_close(sum(narrow(got.weights, -1, 4, 2), {-1}), ones({2, 3}));
  got.output.sum().backward();
  for (const auto& [name, p] : attention.named_parameters()) EXPECT_TRUE(p.grad().defined()) << name;
}

TEST(MultiheadAttention, Errors) {
  TERCEL_EXPECT_THROW(MultiheadAttention(6, 4), ValueError, "embed_dim must be divisible by num_heads");
  TERCEL_EXPECT_THROW(MultiheadAttention(6, 0), ValueError, "embed_dim and num_heads must be greater than 0");
  MultiheadAttention attention(6, 2);
  const Tensor x = zeros({3, 2, 6});
  TERCEL_EXPECT_THROW(attention(zeros({6})), RuntimeError, "query should be unbatched 2D or batched 3D tensor");
  TERCEL_EXPECT_THROW(attention(zeros({3, 2, 4})), RuntimeError, "was expecting embedding dimension of 6, but got 4");
  TERCEL_EXPECT_THROW(attention.forward(x, zeros({3, 6}), x), RuntimeError, "expected key and value to be 3-D");
  TERCEL_EXPECT_THROW(attention.forward(x, x, zeros({4, 2, 6})), RuntimeError, "does not match value shape [4, 2, 6]");
  TERCEL_EXPECT_THROW(attention.forward(x, x, x, {}, true, zeros({3, 4})), RuntimeError,
                      "The shape of the 2D attn_mask is [3, 4], but should be [3, 3].");
  TERCEL_EXPECT_THROW(attention.forward(x, x, x, zeros({3, 3})), RuntimeError,
                      "Expected key_padding_mask of sizes [2, 3], but got [3, 3]");
  TERCEL_EXPECT_THROW(attention.forward(x, x, x, {}, true, zeros({3, 3}, kInt64)), RuntimeError,
                      "only bool and floating types of attn_mask are supported");
}

/** The parts of a layer by their names. */
Tensor of(const Module& module, const std::string& name) {
  for (const auto& [key, value] : module.named_parameters())
    if (key == name) return value;
  return {};
}

TEST(TransformerLayers, AreSumsOfPartsAndTheirInput) {
  TransformerEncoderLayer after(6, 2, {.dim_feedforward = 8, .dropout = 0});
  TransformerEncoderLayer before(
      6, 2,
      {.dim_feedforward = 8, .dropout = 0, .activation = TransformerOptions::Activation::Gelu, .norm_first = true});
  before.load_state_dict(after.state_dict());
  MultiheadAttention attention(6, 2);
  NamedTensors state;
  for (const auto& [name, value] : after.state_dict())
    if (name.starts_with("self_attn.")) state.emplace_back(name.substr(10), value);
  attention.load_state_dict(state);
  const auto norm = [&](const Tensor& x, const std::string& name) {
    return layer_norm(x, {6}, of(after, name + ".weight"), of(after, name + ".bias"));
  };
  const auto dense = [&](const Tensor& x, const std::string& name) {
    return linear(x, of(after, name + ".weight"), of(after, name + ".bias"));
  };
  const Tensor x = random({4, 3, 6}, kFloat32, -1, 1, 1);
  const Tensor a = norm(x + attention(x), "norm1");
  expect_close(after(x), norm(a + dense(relu(dense(a, "linear1")), "linear2"), "norm2"));
  const Tensor b = x + attention(norm(x, "norm1"));
  expect_close(before(x), b + dense(gelu(dense(norm(b, "norm2"), "linear1")), "linear2"));
}

TEST(TransformerLayers, DecodersLookAtTheMemory) {
  TransformerDecoderLayer layer(6, 2, {.dim_feedforward = 8});
  layer.eval();
  EXPECT_EQ(names_of(layer).size(), 18u);
  const Tensor x = random({4, 2, 6}, kFloat32, -1, 1, 1), memory = random({5, 2, 6}, kFloat32, -1, 1, 2);
  const Tensor want = layer.forward(x, memory);
  EXPECT_NE(bytes_of(layer.forward(x, memory + 1)), bytes_of(want));
  // Padding may have any values.
  const Tensor padding = make({2, 5}, kBool, {0, 0, 0, 0, 1, 0, 0, 0, 0, 1});
  const Tensor other = cat({narrow(memory, 0, 0, 4), narrow(memory, 0, 4, 1) + 3});
  expect_close(layer.forward(x, other, {.memory_key_padding = padding}),
               layer.forward(x, memory, {.memory_key_padding = padding}));
  TERCEL_EXPECT_THROW(layer(x), NotImplementedError, "");
}

TEST(Transformer, NamesAndSizes) {
  Transformer net(6, 2, 2, 1, {.dim_feedforward = 8, .dropout = 0});
  const auto names = names_of(net);
  EXPECT_EQ(names.front(), "encoder.layers.0.self_attn.in_proj_weight");
  EXPECT_EQ(names[12], "encoder.layers.1.self_attn.in_proj_weight");
  EXPECT_EQ(names[24], "encoder.norm.weight");
  EXPECT_EQ(names.back(), "decoder.norm.bias");
  const Tensor src = random({4, 3, 6}, kFloat32, -1, 1, 1), tgt = random({5, 3, 6}, kFloat32, -1, 1, 2);
  const Tensor out = net.forward(src, tgt);
  EXPECT_EQ(out.sizes(), IntSpan({5, 3, 6}));
  out.sum().backward();
  for (const auto& [name, p] : net.named_parameters()) EXPECT_TRUE(p.grad().defined()) << name;
  Transformer without_bias(6, 2, 1, 1, {.dim_feedforward = 8, .bias = false});
  for (const std::string& name : names_of(without_bias)) EXPECT_EQ(name.find("bias"), std::string::npos) << name;
}

TEST(Transformer, CausalMasksHideTheFuture) {
  Transformer net(6, 2, 1, 2, {.dim_feedforward = 8, .batch_first = true});
  net.eval();
  const Tensor src = random({2, 4, 6}, kFloat32, -1, 1, 1), tgt = random({2, 5, 6}, kFloat32, -1, 1, 2);
  const Tensor mask = Transformer::generate_square_subsequent_mask(5);
  EXPECT_EQ(mask[0][1].item<double>(), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(mask[1][0].item<double>(), 0);
  const Tensor later = cat({narrow(tgt, 1, 0, 3), narrow(tgt, 1, 3, 2) + 1}, 1);
  const Tensor a = net.forward(src, tgt, {}, {}, {.tgt = mask}), b = net.forward(src, later, {}, {}, {.tgt = mask});
  expect_close(narrow(a, 1, 0, 3), narrow(b, 1, 0, 3));
  EXPECT_NE(bytes_of(narrow(a, 1, 3, 2)), bytes_of(narrow(b, 1, 3, 2)));
}

TEST(Transformer, EncoderIsItsLayers) {
  TransformerEncoder encoder(6, 2, 2, {.dim_feedforward = 8, .dropout = 0});
  TransformerEncoderLayer layer(6, 2, {.dim_feedforward = 8, .dropout = 0});
  const Tensor x = random({4, 3, 6}, kFloat32, -1, 1, 1), mask = Transformer::generate_square_subsequent_mask(4);
  Tensor want = x;
  for (const char* number : {"0", "1"}) {
    NamedTensors state;
    const std::string prefix = std::string("layers.") + number + ".";
    for (const auto& [name, value] : encoder.state_dict())
      if (name.starts_with(prefix)) state.emplace_back(name.substr(prefix.size()), value);
    layer.load_state_dict(state);
    want = layer.forward(want, mask);
  }
  expect_close(encoder.forward(x, mask), want);
}

TEST(Transformer, Errors) {
  Transformer net(6, 2, 1, 1, {.dim_feedforward = 8});
  TERCEL_EXPECT_THROW(net.forward(zeros({4, 3, 6}), zeros({5, 2, 6})), RuntimeError,
                      "the batch number of src and tgt must be equal");
  TERCEL_EXPECT_THROW(net.forward(zeros({4, 3, 5}), zeros({5, 3, 6})), RuntimeError,
                      "the feature number of src and tgt must be equal to d_model");
}

}  // namespace
}  // namespace tercel::nn
