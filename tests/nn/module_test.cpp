#include "tercel/nn/module.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tercel/autograd/autograd.h"
#include "tercel/nn/layers.h"
#include "tercel/nn/parameter_arena.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/activation.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/linalg/products.h"
#include "tercel/ops/nn/batch_norm.h"
#include "tercel/ops/nn/conv.h"
#include "tercel/ops/nn/dropout.h"
#include "tercel/ops/nn/linear.h"
#include "tercel/ops/nn/norm.h"
#include "tercel/ops/random/random.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/reduce/var_std.h"
#include "tercel/ops/views/views.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace tercel::nn {
namespace {

using test::bytes_of;
using test::values_of;

std::shared_ptr<Sequential> small_net() {
  return std::make_shared<Sequential>(std::make_shared<Conv2d>(1, 3, IntSpan({3})), std::make_shared<BatchNorm2d>(3),
                                      std::make_shared<ReLU>(), std::make_shared<MaxPool2d>(2),
                                      std::make_shared<Flatten>(), std::make_shared<Linear>(12, 5));
}

std::vector<std::string> names_of(const NamedTensors& named) {
  std::vector<std::string> names;
  for (const auto& entry : named) names.push_back(entry.first);
  return names;
}

TEST(Module, NamesParametersAndBuffersAsPyTorchDoes) {
  const auto net = small_net();
  EXPECT_EQ(names_of(net->named_parameters()),
            (std::vector<std::string>{"0.weight", "0.bias", "1.weight", "1.bias", "5.weight", "5.bias"}));
  EXPECT_EQ(names_of(net->named_buffers()),
            (std::vector<std::string>{"1.running_mean", "1.running_var", "1.num_batches_tracked"}));
  EXPECT_EQ(net->state_dict().size(), 9u);
  for (const Tensor& p : net->parameters()) EXPECT_TRUE(p.requires_grad() && p.is_leaf());
  EXPECT_EQ((*net)(zeros({2, 1, 6, 6})).sizes(), IntSpan({2, 5}));
}

TEST(Layers, TransposedConvolutions) {
  ConvTranspose1d one(4, 6, 3, {.stride = 2, .padding = 1, .output_padding = 1, .groups = 2});
  EXPECT_EQ(one.weight.sizes(), IntSpan({4, 3, 3}));
  const Tensor line = randn({2, 4, 5});
  EXPECT_EQ(bytes_of(one(line)), bytes_of(conv_transpose1d(line, one.weight, one.bias, {2}, {1}, {1}, 2)));
  ConvTranspose2d two(2, 3, {3, 2}, {.stride = {2, 1}, .bias = false});
  const Tensor image = randn({1, 2, 4, 4});
  EXPECT_EQ(bytes_of(two(image)), bytes_of(conv_transpose2d(image, two.weight, {}, {2, 1})));
  EXPECT_EQ(bytes_of(two.forward(image, {10, 5})),
            bytes_of(conv_transpose2d(image, two.weight, {}, {2, 1}, {0}, {1, 0})));
  TERCEL_EXPECT_THROW(two.forward(image, {11, 5}), ValueError,
                      "requested an output size of [11, 5], but valid sizes of dimension 0 range from 9 to 10");
  ConvTranspose3d three(1, 1, 2);
  EXPECT_EQ(three(ones({1, 1, 2, 2, 2})).sizes(), IntSpan({1, 1, 3, 3, 3}));
  EXPECT_STREQ(three.name(), "ConvTranspose3d");
  TERCEL_EXPECT_THROW(Conv2d(1, 1, {2, 2, 2}), ValueError, "kernel_size must be one number or 2 but got [2, 2, 2]");
  EXPECT_EQ(Conv1d(1, 2, 3)(ones({1, 1, 5})).sizes(), IntSpan({1, 2, 3}));
}

TEST(Layers, NormsOfInstances) {
  const Tensor x = randn({3, 2, 4, 5});
  InstanceNorm2d plain(2), tracked(2, {.momentum = 0.5, .affine = true, .track_running_stats = true});
  EXPECT_TRUE(plain.state_dict().empty());
  EXPECT_EQ(bytes_of(plain(x)), bytes_of(instance_norm(x)));
  EXPECT_EQ(bytes_of(plain(select(x, 0, 0))), bytes_of(select(instance_norm(x.narrow(0, 0, 1)), 0, 0)));
  const Tensor mean = zeros({2}), var = ones({2});
  EXPECT_EQ(bytes_of(tracked(x)), bytes_of(instance_norm(x, mean, var, ones({2}), zeros({2}), true, 0.5)));
  EXPECT_EQ(bytes_of(tracked.running_mean), bytes_of(mean));
  tracked.eval();
  EXPECT_EQ(bytes_of(tracked(x)), bytes_of(instance_norm(x, mean, var, ones({2}), zeros({2}), false, 0.5)));
  EXPECT_EQ(tracked.state_dict().size(), 5u);
  TERCEL_EXPECT_THROW(plain(ones({2})), ValueError, "expected 3D or 4D input (got 1D input)");
  TERCEL_EXPECT_THROW(tracked(ones({1, 3, 4, 4})), ValueError,
                      "expected input's size at dim=1 to match num_features (2)");
  EXPECT_EQ(InstanceNorm1d(2)(randn({3, 2, 4})).sizes(), IntSpan({3, 2, 4}));
  EXPECT_EQ(InstanceNorm3d(2)(randn({2, 4, 4, 4})).sizes(), IntSpan({2, 4, 4, 4}));
  BatchNorm3d volumes(2);
  EXPECT_EQ(volumes(randn({3, 2, 2, 2, 2})).sizes(), IntSpan({3, 2, 2, 2, 2}));
  TERCEL_EXPECT_THROW(volumes(x), ValueError, "expected 5D input (got 4D input)");
  RMSNorm rms({4, 5}, 1e-3);
  EXPECT_EQ(bytes_of(rms(x)), bytes_of(rms_norm(x, {4, 5}, ones({4, 5}), 1e-3)));
}

TEST(Layers, WithParametersOfTheirOwn) {
  PReLU slope(3, 0.5);
  const Tensor x = randn({2, 3, 4});
  EXPECT_EQ(bytes_of(slope(x)), bytes_of(prelu(x, full({3}, 0.5, kFloat32))));
  EXPECT_EQ(values_of(PReLU().weight), (std::vector<double>{0.25}));
  Bilinear both(3, 4, 5);
  const Tensor a = randn({2, 3}), b = randn({2, 4});
  EXPECT_EQ(bytes_of(both(a, b)), bytes_of(bilinear(a, b, both.weight, both.bias)));
  EXPECT_EQ(names_of(both.named_parameters()), (std::vector<std::string>{"weight", "bias"}));
}

TEST(Layers, ChannelsAreLeftOutAsAWhole) {
  manual_seed(1);
  Dropout2d layer(0.5);
  const std::vector<double> sums = values_of(layer(ones({8, 8, 3, 3})).sum({2, 3}));
  int64_t zeros = 0;
  for (const double s : sums) {
    EXPECT_TRUE(s == 0 || s == 18);
    zeros += s == 0;
  }
  EXPECT_GT(zeros, 10);
  EXPECT_LT(zeros, 54);
  layer.eval();
  const Tensor x = ones({2, 3, 3});
  EXPECT_TRUE(layer(x).is_same(x));
  EXPECT_EQ(Dropout1d(0)(ones({2, 3})).sizes(), IntSpan({2, 3}));
  TERCEL_EXPECT_THROW(Dropout3d()(x), RuntimeError, "Dropout3d: Expected 4D or 5D input, but received a 3D input");
  TERCEL_EXPECT_THROW(Dropout1d(2), ValueError, "dropout probability has to be between 0 and 1, but got 2");
}

TEST(Module, ListsAndDictsOfModules) {
  struct Net final : Module {
    Net() {
      blocks = register_module("blocks",
                               std::make_shared<ModuleList>(std::make_shared<Linear>(2, 3), std::make_shared<ReLU>()));
      heads = register_module("heads", std::make_shared<ModuleDict>());
      heads->insert("a", std::make_shared<Linear>(3, 1));
    }
    Tensor forward(const Tensor& x) override {
      Tensor out = x;
      for (size_t i = 0; i < blocks->size(); ++i) out = (*blocks)[i]->forward(out);
      return (*heads)["a"]->forward(out);
    }
    std::shared_ptr<ModuleList> blocks;
    std::shared_ptr<ModuleDict> heads;
  } net;
  EXPECT_STREQ(net.name(), "Module");
  EXPECT_EQ(names_of(net.named_parameters()),
            (std::vector<std::string>{"blocks.0.weight", "blocks.0.bias", "heads.a.weight", "heads.a.bias"}));
  EXPECT_EQ(net(ones({4, 2})).sizes(), IntSpan({4, 1}));
  EXPECT_TRUE(net.heads->contains("a"));
  EXPECT_FALSE(net.heads->contains("b"));
  TERCEL_EXPECT_THROW(static_cast<void>((*net.blocks)[2]), IndexError,
                      "ModuleList: index 2 is out of range for 2 modules");
  TERCEL_EXPECT_THROW(static_cast<void>((*net.heads)["b"]), IndexError, "no module is named 'b'");
  EXPECT_THROW(net.blocks->forward(ones({2})), NotImplementedError);
}

TEST(Containers, Parameters) {
  ParameterList list({ones({2}), zeros({3})});
  list.append(full({1}, 4.0));
  EXPECT_EQ(names_of(list.named_parameters()), (std::vector<std::string>{"0", "1", "2"}));
  EXPECT_EQ(values_of(list[2]), (std::vector<double>{4}));
  EXPECT_TRUE(list[0].requires_grad());
  TERCEL_EXPECT_THROW(static_cast<void>(list[3]), IndexError,
                      "ParameterList: index 3 is out of range for 3 parameters");
  ParameterDict dict({{"left", ones({2})}});
  dict.insert("right", zeros({1}));
  EXPECT_EQ(dict.size(), 2u);
  EXPECT_TRUE(dict.contains("right"));
  EXPECT_FALSE(dict.contains("0"));
  EXPECT_TRUE(dict["left"].is_same(dict.parameters()[0]));
  TERCEL_EXPECT_THROW(static_cast<void>(dict["up"]), IndexError, "ParameterDict: no parameter is named 'up'");
  TERCEL_EXPECT_THROW(dict.insert("left", ones({1})), RuntimeError, "attribute 'left' already exists");
}

// Klambauer's constants: dropped elements become -1.758..., shifted and scaled to mean 0, variance 1.
TEST(Layers, AlphaDropoutKeepsMeanAndVariance) {
  manual_seed(1);
  const Tensor x = randn({200, 500});
  AlphaDropout layer(0.3);
  const Tensor y = layer(x);
  EXPECT_NEAR(mean(y).item<double>(), 0, 0.02);
  EXPECT_NEAR(var(y).item<double>(), 1, 0.02);
  const double scale = 1 / std::sqrt((1.7580993408473766 * 1.7580993408473766 * 0.3 + 1) * 0.7);
  const double low = scale * -1.7580993408473766 * 0.7, moved = scale * 1.7580993408473766 * 0.3;
  const std::vector<double> from = values_of(x), to = values_of(y);
  int64_t dropped = 0;
  for (size_t i = 0; i < from.size(); ++i) {
    const bool kept = std::abs(to[i] - (from[i] * scale + moved)) < 1e-5;
    EXPECT_TRUE(kept || std::abs(to[i] - low) < 1e-5) << i << " " << from[i] << " " << to[i];
    dropped += !kept;
  }
  EXPECT_NEAR(static_cast<double>(dropped) / static_cast<double>(from.size()), 0.3, 0.01);

  FeatureAlphaDropout channels(0.5);
  const Tensor whole = channels(ones({8, 8, 3, 3}));
  EXPECT_EQ(bytes_of(amax(whole, {2, 3})), bytes_of(amin(whole, {2, 3})));
  EXPECT_GT(max(whole).item<double>(), min(whole).item<double>());
  channels.eval();
  EXPECT_TRUE(channels(x).is_same(x));
  TERCEL_EXPECT_THROW(AlphaDropout(-1), ValueError, "dropout probability has to be between 0 and 1, but got -1");
  TERCEL_EXPECT_THROW(alpha_dropout(x, 2), RuntimeError, "dropout probability has to be between 0 and 1, but got 2");
  TERCEL_EXPECT_THROW(feature_dropout(ones({3})), RuntimeError,
                      "Feature dropout requires at least 2 dimensions in the input");
  EXPECT_EQ(values_of(alpha_dropout(ones({2}), 1)), (std::vector<double>{0, 0}));
}

TEST(Module, StateDictRoundTrip) {
  const auto from = small_net(), to = small_net();
  (*from)(randn({4, 1, 6, 6}));
  const Tensor x = randn({2, 1, 6, 6});
  from->eval();
  to->eval();
  EXPECT_NE(bytes_of((*from)(x)), bytes_of((*to)(x)));
  to->load_state_dict(from->state_dict());
  EXPECT_EQ(bytes_of((*from)(x)), bytes_of((*to)(x)));
  EXPECT_EQ(values_of(to->state_dict()[6].second), (std::vector<double>{1}));
}

TEST(Module, LoadingRefusesWhatDoesNotFitAndChangesNothing) {
  Sequential net(std::make_shared<Linear>(2, 1));
  const std::string before = bytes_of(net.parameters()[0]);
  NamedTensors state = {{"0.weight", zeros({1, 3})}, {"0.extra", zeros({1})}};
  const std::string message = test::message_of([&] { net.load_state_dict(state); });
  EXPECT_EQ(message,
            "Error(s) in loading state_dict for Sequential:"
            "\n\tUnexpected key(s) in state_dict: \"0.extra\". "
            "\n\tMissing key(s) in state_dict: \"0.bias\". "
            "\n\tsize mismatch for 0.weight: copying a param with shape [1, 3] from checkpoint, the shape in current "
            "model is [1, 2].");
  EXPECT_EQ(bytes_of(net.parameters()[0]), before);
  state[0].second = ones({1, 2});
  const IncompatibleKeys keys = net.load_state_dict(state, false);
  EXPECT_EQ(keys.missing_keys, std::vector<std::string>{"0.bias"});
  EXPECT_EQ(keys.unexpected_keys, std::vector<std::string>{"0.extra"});
  EXPECT_EQ(values_of(net.parameters()[0]), (std::vector<double>{1, 1}));
}

TEST(Module, TrainAndEvalReachAll) {
  const auto net = std::make_shared<Sequential>(std::make_shared<Dropout>(0.5), small_net());
  EXPECT_TRUE(net->is_training());
  net->eval();
  int seen = 0;
  net->apply([&](Module& m) {
    EXPECT_FALSE(m.is_training());
    ++seen;
  });
  EXPECT_EQ(seen, 9);
  const Tensor x = ones({100});
  EXPECT_EQ(bytes_of(Dropout(0.5)(x)) == bytes_of(x), false);
}

TEST(Module, ConversionIsSeenByEveryHolder) {
  Linear layer(3, 2);
  const Tensor held = layer.weight;
  layer.to(kFloat64);
  EXPECT_EQ(held.dtype(), kFloat64);
  layer(ones({1, 3}, kFloat64)).sum().backward();
  EXPECT_EQ(held.grad().dtype(), kFloat64);
  EXPECT_EQ(values_of(held.grad()), std::vector<double>(6, 1));
  layer.zero_grad();
  EXPECT_FALSE(held.grad().defined());
  EXPECT_THROW(layer.to(kInt64), TypeError);
}

TEST(Module, ParametersMayLieInAnArena) {
  struct Scale final : Module {
    explicit Scale(const ParameterArena& arena) : factor(register_parameter("factor", arena[0])) {}
    Tensor forward(const Tensor& x) override { return mul(x, factor); }
    const char* name() const override { return "Scale"; }
    Tensor factor;
  };
  ParameterArena arena;
  arena.reserve("factor", {3}, Init::constant(2));
  arena.allocate(default_generator());
  Scale scale(arena);
  scale(ones({3})).sum().backward();
  EXPECT_EQ(values_of(arena.gradients())[0], 1);
  scale.load_state_dict({{"factor", zeros({3})}});
  EXPECT_EQ(values_of(arena.weights())[2], 0);
}

TEST(Module, Refusals) {
  struct Bad final : Module {
    using Module::register_parameter;
    const char* name() const override { return "Bad"; }
  };
  Bad bad;
  bad.register_parameter("w", zeros({1}));
  TERCEL_EXPECT_THROW(bad.register_parameter("w", zeros({1})), RuntimeError, "attribute 'w' already exists");
  TERCEL_EXPECT_THROW(bad.register_parameter("a.b", zeros({1})), RuntimeError, "can't contain \".\"");
  TERCEL_EXPECT_THROW(bad.register_parameter("", zeros({1})), RuntimeError, "can't be empty string");
  TERCEL_EXPECT_THROW(bad(zeros({1})), NotImplementedError,
                      "Module [Bad] is missing the required \"forward\" function");
  TERCEL_EXPECT_THROW(BatchNorm2d(3)(zeros({2, 3})), ValueError, "expected 4D input (got 2D input)");
  TERCEL_EXPECT_THROW(Dropout(2), ValueError, "dropout probability has to be between 0 and 1, but got 2");
  TERCEL_EXPECT_THROW(Embedding(3, 2, 5), ValueError, "Padding_idx must be within num_embeddings");
}

TEST(Layers, FunctionsOfTheirNames) {
  const Tensor x = test::make({1, 1, 2, 2}, kFloat32, {-1, 2, -3, 4});
  EXPECT_EQ(values_of(ReLU()(x)), (std::vector<double>{0, 2, 0, 4}));
  EXPECT_EQ(values_of(Identity()(x)), values_of(x));
  EXPECT_EQ(values_of(MaxPool2d(2)(x)), std::vector<double>{4});
  EXPECT_EQ(values_of(AvgPool2d(1, 2)(x)), std::vector<double>{-1});
  EXPECT_EQ(values_of(AdaptiveAvgPool2d(1)(x)), std::vector<double>{0.5});
  EXPECT_EQ(Flatten()(x).sizes(), IntSpan({1, 4}));
  EXPECT_NEAR(values_of(Softmax(3)(x))[1], 1 / (1 + std::exp(-3.0)), 1e-6);
  EXPECT_NEAR(values_of(Sigmoid()(x))[3], 1 / (1 + std::exp(-4.0)), 1e-6);
  EXPECT_NEAR(values_of(Tanh()(x))[0], std::tanh(-1.0), 1e-6);
  EXPECT_NEAR(values_of(SiLU()(x))[1], 2 / (1 + std::exp(-2.0)), 1e-6);
  EXPECT_NEAR(values_of(GELU()(x))[1], 1.9544997, 1e-5);
}

TEST(Layers, EmbeddingsLookUpRows) {
  Embedding layer(4, 2, 1);
  EXPECT_EQ(values_of(layer(tensor({1}))), (std::vector<double>{0, 0}));
  EmbeddingBag bag(4, 2);
  const std::vector<double> w = values_of(bag.weight), got = values_of(bag(tensor({{0, 3}})));
  EXPECT_NEAR(got[0], (w[0] + w[6]) / 2, 1e-6);
  EXPECT_EQ(bag.forward(tensor({0, 3, 1}), tensor({0, 1})).sizes(), IntSpan({2, 2}));
}

}  // namespace
}  // namespace tercel::nn
