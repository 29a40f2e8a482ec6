#include "tercel/optim/apply_rule.h"

#include <gtest/gtest.h>

#include <limits>

#include "tercel/autograd/grad_mode.h"
#include "tercel/core/dispatch.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/embedding/row_gradient.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/views/slicing.h"
#include "tercel/ops/views/views.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace tercel::optim {
namespace {

using test::bytes_of;
using test::make;
using test::random;
using test::values_of;

constexpr int kRules = Rules::kSize;

RuleId rule_at(int i) { return static_cast<RuleId>(i); }

/** Options with every number nonzero. */
Step<double> some_step() {
  return {.rate = 0.02,
          .beta1 = 0.8,
          .rest1 = 0.2,
          .beta2 = 0.97,
          .rest2 = 0.03,
          .epsilon = 1e-6,
          .inverse_rate = 50,
          .beta = 0.5,
          .lambda1 = 0.3,
          .lambda2 = 0.1,
          .scale = -1,
          .decay = 0.01,
          .shrink = 0.99};
}

/** States without negative square roots: large second moments, small means. */
std::vector<Tensor> states_of(RuleId rule, const test::Sizes& sizes, ScalarType dtype) {
  std::vector<Tensor> states;
  for (int k = 0; k < num_states(rule); ++k)
    states.push_back(random(sizes, dtype, k != 1 || rule == RuleId::Adam || rule == RuleId::AdamAmsgrad ? 0.5 : 0, 0.6,
                            20 + static_cast<uint64_t>(k)));
  return states;
}

std::string all_bytes(const Tensor& weight, Span<Tensor> states) {
  std::string all = bytes_of(contiguous(weight));
  for (const Tensor& state : states) all += bytes_of(contiguous(state));
  return all;
}

class RuleSteps : public ::testing::Test {
 protected:
  ~RuleSteps() override { set_cpu_isa(isa_); }

 private:
  CpuIsa isa_ = cpu_isa();
};

// A row store keeps a row's weight and states adjacent, with further columns; rows have 7 or 300 elements.
TEST_F(RuleSteps, OfARowStoreAreThoseOfTensorsOfTheirOwn) {
  constexpr int64_t kRows = 9;
  for (int i = 0; i < kRules; ++i)
    for (const ScalarType dtype : {kFloat32, kFloat64})
      for (const int64_t dim : {7, 300})
        for (const bool by_rows : {false, true}) {
          const RuleId rule = rule_at(i);
          std::vector<std::string> results;
          for (const bool one_store : {false, true})
            for (const CpuIsa isa : {CpuIsa::Generic, CpuIsa::Avx2, CpuIsa::Avx512}) {
              if (isa > best_cpu_isa()) continue;
              set_cpu_isa(isa);
              Tensor weight = random({kRows, dim}, dtype, -1, 1, 1);
              std::vector<Tensor> states = states_of(rule, {kRows, dim}, dtype);
              if (one_store) {
                const Tensor store = zeros({kRows, 4 * dim + 3}, dtype);
                const auto part = [&](const Tensor& t, int64_t place) {
                  const Tensor at = narrow(store, 1, place * dim, dim);
                  copy_(at, t);
                  return at;
                };
                weight = part(weight, 0);
                for (size_t k = 0; k < states.size(); ++k) states[k] = part(states[k], static_cast<int64_t>(k) + 1);
              }
              const Gradient gradient = by_rows
                                            ? Gradient{random({3, dim}, dtype, -1, 1, 2), make({3}, kInt64, {1, 4, 8})}
                                            : Gradient{random({kRows, dim}, dtype, -1, 1, 2), Tensor()};
              check_rule_operands("test", rule, weight, states, gradient);
              EXPECT_TRUE(apply_rule("test", rule, some_step(), weight, states, gradient));
              results.push_back(all_bytes(weight, states));
            }
          for (const std::string& result : results)
            ASSERT_EQ(result, results[0]) << "rule " << i << " " << to_string(dtype) << " dim " << dim;
        }
}

// As if all were converted to float32 (float64 if the weight is), and the results converted back once.
TEST_F(RuleSteps, HaveADtypeForEachOperand) {
  struct Dtypes {
    ScalarType weight, state, gradient;
  };
  for (int i = 0; i < kRules; ++i)
    for (const Dtypes d : {Dtypes{kBFloat16, kFloat32, kBFloat16}, Dtypes{kFloat16, kFloat32, kFloat32},
                           Dtypes{kFloat16, kFloat16, kFloat16}, Dtypes{kFloat32, kBFloat16, kFloat64},
                           Dtypes{kFloat64, kFloat32, kFloat32}})
      for (const bool by_rows : {false, true}) {
        const RuleId rule = rule_at(i);
        constexpr int64_t kRows = 5, kDim = 261;
        const Tensor weight = random({kRows, kDim}, d.weight, -1, 1, 1);
        const std::vector<Tensor> states = states_of(rule, {kRows, kDim}, d.state);
        Gradient gradient{random({by_rows ? 2 : kRows, kDim}, d.gradient, -1, 1, 2),
                          by_rows ? make({2}, kInt64, {0, 3}) : Tensor()};
        const ScalarType computed = d.weight == kFloat64 ? kFloat64 : kFloat32;
        const Tensor wide = to(weight, computed, true);
        std::vector<Tensor> wide_states;
        for (const Tensor& state : states) wide_states.push_back(to(state, computed, true));
        EXPECT_TRUE(apply_rule("test", rule, some_step(), weight, states, gradient));
        gradient.values = to(gradient.values, computed);
        apply_rule("test", rule, some_step(), wide, wide_states, gradient);
        EXPECT_EQ(bytes_of(weight), bytes_of(to(wide, d.weight))) << "rule " << i << " " << to_string(d.weight);
        for (size_t k = 0; k < states.size(); ++k)
          EXPECT_EQ(bytes_of(states[k]), bytes_of(to(wide_states[k], d.state))) << "rule " << i << " state " << k;
      }
}

TEST_F(RuleSteps, HaveAnyStrides) {
  const Tensor gradient = random({6, 5, 2}, kFloat32, -1, 1, 2);
  for (const RuleId rule : {RuleId::Sgd, RuleId::AdamAmsgrad, RuleId::RmsPropCenteredMomentum}) {
    const Tensor plain = random({6, 5, 2}, kFloat32, -1, 1, 1);
    const std::vector<Tensor> plain_states = states_of(rule, {6, 5, 2}, kFloat32);
    for (const test::Placement placement : test::placements()) {
      const Tensor expected = clone(plain), weight = test::placed(clone(plain), placement);
      std::vector<Tensor> expected_states, states;
      for (const Tensor& state : plain_states) {
        expected_states.push_back(clone(state));
        states.push_back(test::placed(clone(state), placement));
      }
      apply_rule("test", rule, some_step(), expected, expected_states, {gradient, Tensor()});
      apply_rule("test", rule, some_step(), weight, states, {gradient, Tensor()});
      EXPECT_EQ(all_bytes(weight, states), all_bytes(expected, expected_states));
    }
    const Tensor spread = clone(plain), expected = clone(plain), one = random({1, 5, 1}, kFloat32, -1, 1, 3);
    std::vector<Tensor> spread_states, expected_states;
    for (const Tensor& state : plain_states)
      spread_states.push_back(clone(state)), expected_states.push_back(clone(state));
    apply_rule("test", rule, some_step(), spread, spread_states, {expand(one, {6, 5, 2}), Tensor()});
    apply_rule("test", rule, some_step(), expected, expected_states, {contiguous(expand(one, {6, 5, 2})), Tensor()});
    EXPECT_EQ(all_bytes(spread, spread_states), all_bytes(expected, expected_states));
  }
}

TEST_F(RuleSteps, OfComplexNumbersAreStepsOfTheirParts) {
  const Tensor pairs = random({4, 2}, kFloat32, -1, 1, 1), g = random({4, 2}, kFloat32, -1, 1, 2);
  const Tensor z = from_blob(pairs.data_ptr(), {4}, kComplex64), expected = clone(pairs);
  const Tensor gz = from_blob(g.data_ptr(), {4}, kComplex64), state = zeros({4}, kComplex64), parts = zeros({4, 2});
  check_rule_operands("test", RuleId::AdaGrad, z, state, {gz, Tensor()});
  apply_rule("test", RuleId::AdaGrad, some_step(), z, state, {gz, Tensor()});
  apply_rule("test", RuleId::AdaGrad, some_step(), expected, parts, {g, Tensor()});
  EXPECT_EQ(bytes_of(pairs), bytes_of(expected));
}

TEST_F(RuleSteps, TellOfInfinityThatANarrowDtypeMakes) {
  const Tensor weight = make({3}, kFloat16, {1, 60000, 1});
  Step<double> step;
  step.rate = 1;
  EXPECT_TRUE(apply_rule("test", RuleId::Sgd, step, weight, {}, {make({3}, kFloat16, {0, 0, -1}), Tensor()}));
  EXPECT_FALSE(apply_rule("test", RuleId::Sgd, step, weight, {}, {make({3}, kFloat16, {0, -60000, 0}), Tensor()}));
}

TEST_F(RuleSteps, ErrorsNameTheOperand) {
  const Tensor weight = zeros({2, 3}), state = zeros({2, 3});
  const auto check = [](RuleId rule, const Tensor& w, Span<Tensor> states, const Gradient& g) {
    check_rule_operands("Name", rule, w, states, g);
  };
  TERCEL_EXPECT_THROW(check(RuleId::Adam, weight, state, {weight, Tensor()}), RuntimeError,
                      "Name: expected 2 states of a parameter, got 1");
  TERCEL_EXPECT_THROW(check(RuleId::Momentum, weight, zeros({3, 2}), {weight, Tensor()}), RuntimeError,
                      "Name: state [3, 2] float32 on cpu does not fit parameter [2, 3] float32 on cpu");
  TERCEL_EXPECT_THROW(check(RuleId::Sgd, weight, {}, {zeros({3}), Tensor()}), RuntimeError,
                      "Name: gradient [3] float32 on cpu does not fit parameter [2, 3] float32 on cpu");
  TERCEL_EXPECT_THROW(check(RuleId::Sgd, weight, {}, {zeros({2, 3}, kComplex64), Tensor()}), RuntimeError,
                      "does not fit parameter");
  TERCEL_EXPECT_THROW(check(RuleId::Sgd, zeros({2}, kInt64), {}, {zeros({2}, kInt64), Tensor()}), NotImplementedError,
                      "Name: expected a floating or complex parameter, got [2] int64 on cpu");
  TERCEL_EXPECT_THROW(apply_rule("Name", RuleId::Sgd, some_step(), weight, {}, {zeros({1, 3}), make({1}, kInt64, {2})}),
                      IndexError, "Name: row 2 is out of range for [2, 3] float32 on cpu");
}

TEST(RuleOperands, InfiniteWeightsStayInfinite) {
  // Without decay, also if another part of prepare() is used.
  Step<double> step = some_step();
  step.decay = 0;
  const Tensor weight = make({2}, kFloat64, {-INFINITY, 1});
  apply_rule("SGD", RuleId::Sgd, step, weight, {}, {make({2}, kFloat64, {0, 1}), {}});
  EXPECT_EQ(values_of(weight)[0], -INFINITY);
}

TEST(RuleOperands, MemoryThatIsSharedIsRefused) {
  const auto check = [](const Tensor& weight, const Tensor& gradient, Span<Tensor> states, RuleId rule) {
    check_rule_operands("SGD", rule, weight, states, {gradient, {}});
  };
  const Tensor all = random({6}, kFloat32, 0, 1, 1), front = slice(all, 0, 0, 5), back = slice(all, 0, 1, 6);
  TERCEL_EXPECT_THROW(check(front, back, {}, RuleId::Sgd), RuntimeError, "single memory location");
  EXPECT_NO_THROW(check(front, front, {}, RuleId::Sgd));
  TERCEL_EXPECT_THROW(check(front, zeros({5}), {front}, RuleId::Momentum), RuntimeError, "single memory location");
  TERCEL_EXPECT_THROW(check(expand(all, {3, 6}), zeros({3, 6}), {}, RuleId::Sgd), RuntimeError,
                      "more than one element of the written-to tensor");
}

TEST(RuleOperands, InferenceTensorsAreRefused) {
  Tensor weight;
  {
    const InferenceMode mode;
    weight = ones({2});
  }
  TERCEL_EXPECT_THROW(check_rule_operands("SGD", RuleId::Sgd, weight, {}, {ones({2}), {}}), RuntimeError,
                      "Inplace update to inference tensor outside InferenceMode");
}

}  // namespace
}  // namespace tercel::optim
