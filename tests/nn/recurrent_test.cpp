#include "tercel/nn/recurrent.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tercel/autograd/autograd.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/views/permute.h"
#include "tercel/ops/views/slicing.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace tercel::nn {
namespace {

using test::bytes_of;
using test::random;
using test::values_of;

std::vector<std::string> names_of(const Module& module) {
  std::vector<std::string> names;
  for (const auto& entry : module.named_parameters()) names.push_back(entry.first);
  return names;
}

TEST(Recurrent, ParametersHaveTorchsNamesAndSizes) {
  LSTM lstm(3, 4, {.num_layers = 2, .bidirectional = true, .proj_size = 2});
  const auto named = lstm.named_parameters();
  ASSERT_EQ(named.size(), 20u);
  EXPECT_EQ(names_of(lstm)[5], "weight_ih_l0_reverse");
  EXPECT_EQ(names_of(lstm)[14], "weight_hr_l1");
  EXPECT_EQ(named[0].second.sizes(), IntSpan({16, 3}));
  EXPECT_EQ(named[1].second.sizes(), IntSpan({16, 2}));
  EXPECT_EQ(named[4].second.sizes(), IntSpan({2, 4}));
  EXPECT_EQ(named[10].second.sizes(), IntSpan({16, 4}));
  GRU gru(3, 4, {.bias = false});
  EXPECT_EQ(names_of(gru), (std::vector<std::string>{"weight_ih_l0", "weight_hh_l0"}));
  for (const Tensor& p : lstm.parameters())
    for (const double value : values_of(p)) EXPECT_LE(std::abs(value), 0.5);
}

TEST(Recurrent, LayersAreTheOps) {
  const Tensor x = random({5, 2, 3}, kFloat32, -1, 1, 1), h = random({2, 2, 4}, kFloat32, -1, 1, 2);
  const Tensor c = random({2, 2, 4}, kFloat32, -1, 1, 3), none = zeros({2, 2, 4});
  const RecurrentOptions options{.train = true, .bidirectional = true};
  RNN rnn(3, 4, {.bidirectional = true}), relu(3, 4, {.bidirectional = true}, RNN::Nonlinearity::Relu);
  GRU gru(3, 4, {.bidirectional = true});
  LSTM lstm(3, 4, {.bidirectional = true});
  EXPECT_EQ(bytes_of(rnn(x)), bytes_of(rnn_tanh(x, none, rnn.parameters(), options).output));
  EXPECT_EQ(bytes_of(rnn.forward(x, h).h), bytes_of(rnn_tanh(x, h, rnn.parameters(), options).h));
  EXPECT_EQ(bytes_of(relu.forward(x, h).output), bytes_of(rnn_relu(x, h, relu.parameters(), options).output));
  EXPECT_EQ(bytes_of(gru.forward(x, h).output), bytes_of(tercel::gru(x, h, gru.parameters(), options).output));
  const OutputAndStates got = lstm.forward(x, h, c), want = tercel::lstm(x, h, c, lstm.parameters(), options);
  EXPECT_EQ(bytes_of(got.output), bytes_of(want.output));
  EXPECT_EQ(bytes_of(got.h), bytes_of(want.h));
  EXPECT_EQ(bytes_of(got.c), bytes_of(want.c));
  EXPECT_EQ(bytes_of(lstm.forward(x, {}, {}).output), bytes_of(lstm(x)));
}

TEST(Recurrent, BatchFirstAndOneSequence) {
  GRU gru(3, 4), batch_first(3, 4, {.batch_first = true});
  batch_first.load_state_dict(gru.state_dict());
  const Tensor x = random({5, 2, 3}, kFloat32, -1, 1, 1);
  const Tensor want = gru(x);
  EXPECT_EQ(bytes_of(batch_first(transpose(x, 0, 1))), bytes_of(transpose(want, 0, 1)));
  const Tensor one = select(x, 1, 1);
  const OutputAndStates single = gru.forward(one, zeros({1, 4}));
  EXPECT_EQ(bytes_of(single.output), bytes_of(select(want, 1, 1)));
  EXPECT_EQ(bytes_of(batch_first(one)), bytes_of(single.output));
  EXPECT_EQ(single.h.sizes(), IntSpan({1, 4}));
  LSTM lstm(3, 4);
  const OutputAndStates states = lstm.forward(one, {}, {});
  EXPECT_EQ(states.c.sizes(), IntSpan({1, 4}));
}

TEST(Recurrent, DropoutActsWhileTraining) {
  GRU gru(3, 4, {.num_layers = 2, .dropout = 0.5});
  const Tensor x = random({5, 2, 3}, kFloat32, -1, 1, 1);
  EXPECT_NE(bytes_of(gru(x)), bytes_of(gru(x)));
  gru.eval();
  EXPECT_EQ(bytes_of(gru(x)), bytes_of(gru(x)));
}

TEST(Recurrent, CellsAreStepsOfLayers) {
  RNNCell rnn(3, 4);
  GRUCell gru(3, 4);
  LSTMCell lstm(3, 4, /*bias=*/false);
  EXPECT_EQ(names_of(rnn), (std::vector<std::string>{"weight_ih", "weight_hh", "bias_ih", "bias_hh"}));
  EXPECT_EQ(names_of(lstm), (std::vector<std::string>{"weight_ih", "weight_hh"}));
  EXPECT_EQ(lstm.weight_ih.sizes(), IntSpan({16, 3}));
  const Tensor x = random({2, 3}, kFloat32, -1, 1, 1), h = random({2, 4}, kFloat32, -1, 1, 2), none = zeros({2, 4});
  EXPECT_EQ(bytes_of(rnn.forward(x, h)),
            bytes_of(rnn_tanh_cell(x, h, {rnn.weight_ih, rnn.weight_hh, rnn.bias_ih, rnn.bias_hh})));
  EXPECT_EQ(bytes_of(gru(x)), bytes_of(gru.forward(x, none)));
  EXPECT_EQ(bytes_of(gru.forward(x, h)),
            bytes_of(gru_cell(x, h, {gru.weight_ih, gru.weight_hh, gru.bias_ih, gru.bias_hh})));
  const HiddenAndCell got = lstm.forward(x, h, none), want = lstm_cell(x, h, none, {lstm.weight_ih, lstm.weight_hh});
  EXPECT_EQ(bytes_of(got.h), bytes_of(want.h));
  EXPECT_EQ(bytes_of(got.c), bytes_of(want.c));
  EXPECT_EQ(lstm(x).sizes(), IntSpan({2, 4}));
  EXPECT_EQ(rnn(select(x, 0, 0)).sizes(), IntSpan({4}));
}

TEST(Recurrent, GradientsReachEveryWeight) {
  LSTM lstm(3, 4, {.num_layers = 2, .bidirectional = true});
  lstm(random({5, 2, 3}, kFloat32, -1, 1, 1)).sum().backward();
  for (const auto& [name, p] : lstm.named_parameters()) EXPECT_TRUE(p.grad().defined()) << name;
}

TEST(Recurrent, Errors) {
  TERCEL_EXPECT_THROW(GRU(3, 0), ValueError, "hidden_size must be greater than zero");
  TERCEL_EXPECT_THROW(GRU(3, 4, {.num_layers = 0}), ValueError, "num_layers must be greater than zero");
  TERCEL_EXPECT_THROW(GRU(3, 4, {.dropout = 2}), ValueError, "dropout should be a number in range [0, 1]");
  TERCEL_EXPECT_THROW(LSTM(3, 4, {.proj_size = 4}), ValueError, "proj_size has to be smaller than hidden_size");
  TERCEL_EXPECT_THROW(LSTM(3, 4, {.proj_size = -1}), ValueError, "proj_size should be a positive integer or zero");
  TERCEL_EXPECT_THROW(GRU(3, 4, {.proj_size = 2}), ValueError, "only an LSTM has projections");
  GRU gru(3, 4);
  TERCEL_EXPECT_THROW(gru(zeros({3})), RuntimeError, "GRU: Expected input to be 2-D or 3-D but received 1-D tensor");
  TERCEL_EXPECT_THROW(gru(zeros({5, 2, 3}, kFloat64)), ValueError, "does not match weight dtype (float32)");
  TERCEL_EXPECT_THROW(gru(zeros({5, 2, 4})), RuntimeError,
                      "input.size(-1) must be equal to input_size. Expected 3, got 4");
  TERCEL_EXPECT_THROW(gru.forward(zeros({5, 2, 3}), zeros({1, 3, 4})), RuntimeError,
                      "Expected hidden size [1, 2, 4], got [1, 3, 4]");
  LSTM lstm(3, 4);
  TERCEL_EXPECT_THROW(lstm.forward(zeros({5, 2, 3}), {}, zeros({1, 2, 3})), RuntimeError,
                      "Expected hidden[1] size [1, 2, 4], got [1, 2, 3]");
  TERCEL_EXPECT_THROW(GRUCell(3, 0), ValueError, "hidden_size must be greater than zero");
}

}  // namespace
}  // namespace tercel::nn
