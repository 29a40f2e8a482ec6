#include "tercel/ops/nn/recurrent.h"

#include "tercel/autograd/autograd.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/reduce/reduce.h"
#include "tests/ops/conformance.h"
#include "tests/ops/nn/recurrent_rows.h"
#include "tests/support/errors.h"

namespace tercel::test {

INSTANTIATE_TEST_SUITE_P(Recurrent, Conformance, ::testing::ValuesIn(recurrent_rows()), row_name);

namespace {

std::vector<Tensor> gru_weights(int64_t in, int64_t hidden) {
  std::vector<Tensor> out;
  for (const Sizes& sizes : {Sizes{3 * hidden, in}, {3 * hidden, hidden}, {3 * hidden}, {3 * hidden}})
    out.push_back(random(sizes, kFloat64, -1, 1, 7 + out.size()));
  return out;
}

}  // namespace

TEST(Recurrent, RecordingChangesNoBits) {
  const Tensor x = random({5, 3, 4}, kFloat64, -1, 1, 1), h = random({1, 3, 2}, kFloat64, -1, 1, 2);
  const std::vector<Tensor> weights = gru_weights(4, 2);
  const Tensor plain = gru(x, h, weights).output;
  const Tensor recorded = gru(x.detach().requires_grad_(), h, weights).output;
  EXPECT_TRUE(recorded.requires_grad());
  EXPECT_EQ(bytes_of(plain), bytes_of(recorded));
}

// One node, or with create_graph the component ops.
TEST(Recurrent, GradientsWithAndWithoutAGraphAgree) {
  using Layers = OutputAndStates (*)(const Tensor&, IntSpan, const Tensor&, Span<Tensor>, const RecurrentOptions&);
  for (const ScalarType t : {kFloat32, kFloat64}) {
    for (const int64_t hidden : {3, 37}) {
      // nullptr: lstm, which takes and returns one more state.
      for (const auto& kind : {std::pair<Layers, int64_t>{gru, 3}, {rnn_tanh, 1}, {rnn_relu, 1}, {nullptr, 4}}) {
        const Layers layers = kind.first;
        const int64_t gates = kind.second;
        RecurrentOptions options;
        options.bidirectional = true;
        std::vector<Tensor> leaves{random({9, 4}, t, -1, 1, 1), random({2, 4, hidden}, t, -1, 1, 2)};
        if (!layers) leaves.push_back(random({2, 4, hidden}, t, -1, 1, 3));
        const size_t first = leaves.size();
        for (uint64_t i = 0; i < 8; ++i) {
          const int64_t rows = gates * hidden;
          leaves.push_back(random(i % 4 == 0   ? Sizes{rows, 4}
                                  : i % 4 == 1 ? Sizes{rows, hidden}
                                               : Sizes{rows},
                                  t, -0.5, 0.5, 9 + i));
        }
        for (Tensor& leaf : leaves) leaf.requires_grad_();
        const Span<Tensor> weights(leaves.data() + first, 8);
        const DimVector sizes{4, 3, 2};
        const auto gradients = [&](bool create_graph) {
          const OutputAndStates out = layers ? layers(leaves[0], sizes, leaves[1], weights, options)
                                             : lstm(leaves[0], sizes, leaves[1], leaves[2], weights, options);
          Tensor total = add(sum(mul(out.output, out.output)), sum(out.h));
          if (!layers) total = add(total, sum(mul(out.c, out.c)));
          return grad(Span<Tensor>(&total, 1), leaves, {}, true, create_graph);
        };
        const std::vector<Gradient> plain = gradients(false), recorded = gradients(true);
        for (size_t i = 0; i < leaves.size(); ++i) {
          EXPECT_TRUE(recorded[i].values.requires_grad());
          const std::vector<double> a = values_of(plain[i].values), b = values_of(recorded[i].values);
          ASSERT_EQ(a.size(), b.size());
          for (size_t k = 0; k < a.size(); ++k) ASSERT_NEAR(a[k], b[k], t == kFloat32 ? 2e-4 : 1e-12) << i << " " << k;
        }
      }
    }
  }
}

TEST(Recurrent, DropoutIsBetweenLayersWhileTraining) {
  const Tensor x = random({2, 1, 4}, kFloat64, -1, 1, 1), h = random({2, 1, 2}, kFloat64, -1, 1, 2);
  std::vector<Tensor> weights = gru_weights(4, 2);
  for (const Tensor& w : gru_weights(2, 2)) weights.push_back(w);
  RecurrentOptions options;
  options.num_layers = 2;
  const Tensor whole = gru(x, h, weights, options).output;
  options.dropout = 1;
  EXPECT_EQ(bytes_of(gru(x, h, weights, options).output), bytes_of(whole));
  options.train = true;
  // The second layer sees zeros.
  const Tensor zeros_for = make({2, 1, 2}, kFloat64, {0, 0, 0, 0});
  const Tensor second = make({1, 1, 2}, kFloat64, {values_of(h)[2], values_of(h)[3]});
  EXPECT_EQ(values_of(gru(x, h, weights, options).output),
            values_of(gru(zeros_for, second, Span<Tensor>(weights.data() + 4, 4)).output));
}

TEST(Recurrent, Errors) {
  const Tensor x = random({5, 3, 4}, kFloat64, -1, 1, 1), h = random({1, 3, 2}, kFloat64, -1, 1, 2);
  const std::vector<Tensor> weights = gru_weights(4, 2);
  TERCEL_EXPECT_THROW((gru(x, h, Span<Tensor>(weights.data(), 3))), RuntimeError,
                      "gru: got an incorrect number of RNN parameters: expected 4 for 1 layers but got 3");
  TERCEL_EXPECT_THROW((gru(x, random({2, 3, 2}, kFloat64, -1, 1, 2), weights)), RuntimeError,
                      "gru: expected h [1, 3, 2] but got [2, 3, 2]");
  TERCEL_EXPECT_THROW((gru(random({5, 3, 3}, kFloat64, -1, 1, 1), h, weights)), RuntimeError,
                      "gru: expected weight_ih [6, 3] for a hidden size of 2 but got [6, 4]");
  TERCEL_EXPECT_THROW((gru(empty({0, 3, 4}, kFloat64), h, weights)), RuntimeError,
                      "Expected sequence length to be larger than 0 in RNN");
  TERCEL_EXPECT_THROW((gru(random({3, 4}, kFloat64, -1, 1, 1), (DimVector{1, 2}), h, weights)), RuntimeError,
                      "gru: expected batch_sizes that are positive and never rise but got [1, 2]");
  TERCEL_EXPECT_THROW((gru(random({4, 4}, kFloat64, -1, 1, 1), (DimVector{3, 2}), h, weights)), RuntimeError,
                      "gru: expected batch_sizes that add up to the 4 rows of the input but got [3, 2]");
  const CellWeights cell{weights[0], weights[1], weights[2], weights[3]};
  TERCEL_EXPECT_THROW((gru_cell(random({1, 3}, kFloat64, -1, 1, 1), random({1, 2}, kFloat64, -1, 1, 1), cell)),
                      RuntimeError, "input has inconsistent input_size: got 3 expected 4");
  TERCEL_EXPECT_THROW((gru_cell(random({1, 4}, kFloat64, -1, 1, 1), random({1, 3}, kFloat64, -1, 1, 1), cell)),
                      RuntimeError, "hidden0 has inconsistent hidden_size: got 3, expected 2");
  TERCEL_EXPECT_THROW((gru_cell(random({2, 4}, kFloat64, -1, 1, 1), random({3, 2}, kFloat64, -1, 1, 1), cell)),
                      RuntimeError, "Input batch size 2 doesn't match hidden0 batch size 3");
}

}  // namespace tercel::test
