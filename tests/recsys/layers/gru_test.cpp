#include "tercel/recsys/layers/gru.h"

#include <cmath>

#include "tercel/util/parallel.h"
#include "tests/recsys/layers/layer_support.h"

namespace tercel::recsys {
namespace {

/**
 * States of all steps of one sample by the formula, from weights in one block in the order of cuDNN's weight space: the
 * matrices W_r, W_z, W_n [k, v], then R_r, R_z, R_n [k, k], then b_r, b_z, b_n [k].
 */
Values states_of(const double* x, const Values& packed, size_t steps, size_t v, size_t k) {
  const double *w = packed.data(), *r = w + 3 * k * v, *b = r + 3 * k * k;
  const auto sum_of = [](const double* row, const double* vector, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; ++i) sum += row[i] * vector[i];
    return sum;
  };
  const auto sigmoid_of = [](double y) { return 1 / (1 + std::exp(-y)); };
  Values h(k, 0.0), all;
  for (size_t t = 0; t < steps; ++t) {
    const double* const step = x + t * v;
    Values next(k);
    for (size_t i = 0; i < k; ++i) {
      const double reset = sigmoid_of(sum_of(w + i * v, step, v) + sum_of(r + i * k, h.data(), k) + b[i]);
      const double update =
          sigmoid_of(sum_of(w + (k + i) * v, step, v) + sum_of(r + (k + i) * k, h.data(), k) + b[k + i]);
      const double fresh = std::tanh(sum_of(w + (2 * k + i) * v, step, v) + b[2 * k + i] +
                                     reset * sum_of(r + (2 * k + i) * k, h.data(), k));
      next[i] = (1 - update) * fresh + update * h[i];
    }
    h = next;
    all.insert(all.end(), h.begin(), h.end());
  }
  return all;
}

/** All parameters in the order in which files have them. */
Values packed_parameters(Built& layer) {
  Values all;
  for (const auto& entry : layer.parameters.entries())
    for (const double value : values_of(entry.tensor)) all.push_back(value);
  return all;
}

TEST(GruLayer, IsTheFormulaOverAllStepsInCudnnsOrder) {
  for (const int64_t batch : {1, 4})
    for (const int64_t steps : {1, 2, 7}) {
      SCOPED_TRACE(std::to_string(batch) + " rows, " + std::to_string(steps) + " steps");
      Built last("GRU", {{steps, 3}}, R"({"gru_param": {"num_output": 2}})");
      Built all("GRU", {{steps, 3}}, R"({"gru_param": {"num_output": 2, "sequence": true}})");
      EXPECT_EQ(last.layer->tops()[0], TensorShape({2}));
      EXPECT_EQ(all.layer->tops()[0], TensorShape({steps, 2}));
      const Values packed = packed_parameters(last);
      ASSERT_EQ(packed.size(), 3u * 2 * (3 + 2 + 1));
      const Tensor x = numbers({batch, steps, 3}, 3, -2, 2);
      const Values in = values_of(x);
      Values expected, ends;
      for (int64_t s = 0; s < batch; ++s) {
        const Values states = states_of(in.data() + s * steps * 3, packed, static_cast<size_t>(steps), 3, 2);
        expected.insert(expected.end(), states.begin(), states.end());
        ends.insert(ends.end(), states.end() - 2, states.end());
      }
      expect_near(values_of(last.run({x})), ends);
      expect_near(values_of(all.run({x})), expected);
      EXPECT_TRUE(last.gradients({x})) << "also of the input, at every step";
      EXPECT_TRUE(all.gradients({x}));
    }
}

TEST(GruLayer, TakesRowsThatHaveTheStepsOneAfterTheOther) {
  const Tensor x = numbers({2, 4, 3});
  Built deep("GRU", {{4, 3}}, R"({"gru_param": {"num_output": 5}})");
  for (const char* sizes : {R"("SeqLength": 4)", R"("vector_size": 3)", R"("SeqLength": 4, "vector_size": 3)",
                            R"("SeqLength": 4, "vector_size": 3, "batchsize": 64)"}) {
    Built flat("GRU", {{12}}, (std::string(R"({"gru_param": {"num_output": 5, )") + sizes + "}}").c_str());
    EXPECT_EQ(values_of(flat.run({x.reshape({2, 12})})), values_of(deep.run({x}))) << sizes;
  }
}

TEST(GruLayerThreads, SameBitsWithAnyNumberOfThreads) {
  Built layer("GRU", {{6, 8}}, R"({"gru_param": {"num_output": 16}})");
  const Tensor x = numbers({300, 6, 8});
  const int64_t before = num_threads();
  set_num_threads(1);
  const Values one = values_of(layer.run({x}));
  set_num_threads(3);
  EXPECT_EQ(values_of(layer.run({x})), one);
  set_num_threads(before);
}

TEST(GruLayer, NamesInitialValuesAndRefusals) {
  Built layer("GRU", {{2, 100}}, R"({"gru_param": {"num_output": 64}})");
  ASSERT_EQ(layer.parameters.entries().size(), 3u);
  EXPECT_EQ(layer.parameters.entries()[0].name, "x.weight_ih");
  EXPECT_EQ(layer.parameters.entries()[1].name, "x.weight_hh");
  EXPECT_EQ(layer.parameters.entries()[2].name, "x.bias");
  for (const char* name : {"weight_ih", "weight_hh"}) expect_uniform(layer.parameter(name), 1.0 / 8);
  EXPECT_LE(largest_of(layer.parameter("bias")), 1.0 / 8);
  Built zero("GRU", {{2, 3}}, R"({"gru_param": {"num_output": 4, "weight_init": "Zero", "bias_init": "Zero"}})");
  EXPECT_EQ(largest_of(values_of(zero.run({numbers({2, 2, 3})}))), 0);
  refuses("GRU", {{12}}, R"({"gru_param": {"num_output": 2}})",
          "[GRU x] SeqLength or vector_size is needed to divide [batch, 12] into steps");
  refuses("GRU", {{12}}, R"({"gru_param": {"num_output": 2, "SeqLength": 5}})",
          "[GRU x] expected an input of SeqLength 5 steps of vector_size 2 but got [batch, 12]");
  refuses("GRU", {{12}}, R"({"gru_param": {"num_output": 2, "vector_size": 24}})", "but got [batch, 12]");
  refuses("GRU", {{4, 3}}, R"({"gru_param": {"num_output": 2, "SeqLength": 3}})",
          "[GRU x] expected an input of SeqLength 3 steps of vector_size 3 but got [batch, 4, 3]");
  refuses("GRU", {{12}}, R"({"gru_param": {"num_output": 2, "SeqLength": 9223372036854775807, "vector_size": 2}})",
          "but got [batch, 12]");
  refuses("GRU", {{2, 2, 3}}, R"({"gru_param": {"num_output": 2}})",
          "[GRU x] expected one input [batch, steps, n] or [batch, steps * n] but got [batch, 2, 2, 3]");
  refuses("GRU", {{4, 3}}, R"({"gru_param": {}})", "num_output");
  refuses("GRU", {{4, 3}}, "{}", "gru_param");
}

}  // namespace
}  // namespace tercel::recsys
