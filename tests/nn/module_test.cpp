#include "tercel/nn/module.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tercel/autograd/autograd.h"
#include "tercel/nn/layers.h"
#include "tercel/nn/parameter_arena.h"
#include "tercel/ops/binary.h"
#include "tercel/ops/copy.h"
#include "tercel/ops/factories.h"
#include "tercel/ops/linear.h"
#include "tercel/ops/random.h"
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
  arena.allocate(kFloat32, default_generator());
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
