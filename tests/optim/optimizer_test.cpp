#include "tercel/optim/optimizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "tercel/core/dispatch.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/views/views.h"
#include "tercel/util/parallel.h"
#include "tests/optim/rule_reference.h"
#include "tests/support/errors.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/tensors.h"

namespace tercel::optim {
namespace {

using test::bytes_of;
using test::make;
using test::random;
using test::values_of;

constexpr Rule kRules[] = {Rule::Sgd,     Rule::MomentumSgd,    Rule::Nesterov, Rule::Adam, Rule::AdamW,
                           Rule::AdaGrad, Rule::RowWiseAdaGrad, Rule::RmsProp,  Rule::Ftrl};

/** Options with every number nonzero. */
OptimizerOptions options_of(Rule rule) {
  OptimizerOptions options;
  options.type = rule;
  options.beta1 = 0.8;
  options.beta2 = 0.97;
  options.epsilon = 1e-6;
  options.initial_accu_value = 0.02;
  options.momentum_factor = 0.85;
  options.alpha = 0.95;
  options.weight_decay = 0.3;
  options.beta = 0.5;
  options.lambda1 = 0.3;
  options.lambda2 = 0.1;
  return options;
}

std::vector<CpuIsa> isas() {
  std::vector<CpuIsa> all;
  for (const CpuIsa isa : {CpuIsa::Generic, CpuIsa::Avx2, CpuIsa::Avx512})
    if (isa <= best_cpu_isa()) all.push_back(isa);
  return all;
}

/** Restores instruction set and threads. */
class Optimizers : public ::testing::Test {
 protected:
  ~Optimizers() override {
    set_cpu_isa(isa_);
    set_num_threads(threads_);
  }

 private:
  CpuIsa isa_ = cpu_isa();
  int64_t threads_ = num_threads();
};
using OptimizerThreads = Optimizers;

/** Weight and states, as bytes. */
std::string bytes_of(const Tensor& weight, const Optimizer& optimizer) {
  std::string all = bytes_of(weight);
  for (const Tensor& state : optimizer.states()) all += bytes_of(state);
  return all;
}

void expect_near(const Tensor& found, const std::vector<double>& expected, double tolerance, const std::string& what) {
  const std::vector<double> values = values_of(found);
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < values.size(); ++i)
    ASSERT_NEAR(values[i], expected[i], tolerance * (1 + std::abs(expected[i]))) << what << ", element " << i;
}

/** Gradients that are sometimes 0, sometimes large. */
std::vector<double> gradient_values(size_t n, std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  std::vector<double> g(n);
  for (double& v : g) v = random() % 5 == 0 ? 0 : normal(random) * (random() % 7 == 0 ? 10 : 1);
  return g;
}

TEST_F(Optimizers, DenseStepsFollowTheFormulas) {
  constexpr size_t kElements = 77;  // whole vectors and a tail, for each instruction set
  for (const CpuIsa isa : isas())
    for (const Rule rule : kRules)
      for (const ScalarType dtype : {kFloat32, kFloat64}) {
        set_cpu_isa(isa);
        const std::string what = str_cat({to_string(rule), " ", to_string(dtype), " ", to_string(isa)});
        const OptimizerOptions options = options_of(rule);
        const Tensor weight = random({kElements}, dtype, -1, 1, 5);
        Optimizer optimizer(options, weight);
        RuleReference reference(options, values_of(weight));
        std::mt19937_64 source(11);
        for (int64_t step = 1; step <= 400; ++step) {
          const double rate = 0.01 * (1 + static_cast<double>(step % 3));
          const Tensor gradient = make({kElements}, dtype, gradient_values(kElements, source));
          const std::vector<double> g = values_of(gradient);
          for (size_t i = 0; i < kElements; ++i) reference.step(i, g[i], rate, static_cast<double>(step));
          optimizer.update_dense(gradient, rate, step);
        }
        // Ftrl's weights are differences of large sums, and 0 on one side of a threshold.
        const double tolerance = dtype == kFloat64 ? 1e-11 : rule == Rule::Ftrl ? 2e-3 : 1e-4;
        expect_near(weight, reference.w, tolerance, what);
        const std::vector<double>* states[] = {&reference.a, &reference.b};
        ASSERT_EQ(optimizer.states().size(), Optimizer::state_names(rule).size());
        for (size_t k = 0; k < optimizer.states().size(); ++k)
          expect_near(optimizer.states()[k], *states[k], tolerance, what + ", state");
      }
}

TEST_F(Optimizers, RowStepsFollowTheFormulas) {
  constexpr int64_t kRows = 23, kDim = 5, kLookups = 40;
  for (const CpuIsa isa : isas())
    for (const Rule rule : kRules) {
      set_cpu_isa(isa);
      const OptimizerOptions options = options_of(rule);
      const Tensor table = random({kRows, kDim}, kFloat64, -1, 1, 6);
      Optimizer optimizer(options, table);
      RuleReference reference(options, values_of(table));
      std::mt19937_64 source(12);
      for (int64_t step = 1; step <= 200; ++step) {
        // Any order, with duplicates; other rows do not change, nor do their states.
        std::vector<double> rows(kLookups);
        for (double& row : rows) row = static_cast<double>(source() % (kRows - 3));
        const std::vector<double> values = gradient_values(kLookups * kDim, source);
        std::vector<double> sums(kRows * kDim, 0.0);
        for (size_t i = 0; i < kLookups; ++i)
          for (size_t j = 0; j < kDim; ++j) sums[static_cast<size_t>(rows[i]) * kDim + j] += values[i * kDim + j];
        for (size_t r = 0; r < kRows; ++r)
          if (std::find(rows.begin(), rows.end(), static_cast<double>(r)) != rows.end())
            for (size_t j = r * kDim; j < (r + 1) * kDim; ++j)
              reference.step(j, sums[j], 0.02, static_cast<double>(step));
        optimizer.update_rows({make({kLookups, kDim}, kFloat64, values), make({kLookups}, kInt64, rows)}, 0.02, step);
      }
      expect_near(table, reference.w, 1e-11, str_cat({to_string(rule), " ", to_string(isa)}));
    }
}

// The result for an element depends on neither the kind of step, nor the instruction set, nor its position in a vector.
TEST_F(Optimizers, RowStepIsDenseStepBitForBit) {
  for (const Rule rule : kRules)
    for (const ScalarType dtype : {kFloat32, kFloat64})
      for (const int64_t dim : {1, 3, 16, 17, 200}) {
        constexpr int64_t kRows = 37;
        std::vector<std::string> results;
        for (const CpuIsa isa : isas())
          for (const bool by_rows : {false, true}) {
            set_cpu_isa(isa);
            const Tensor weight = random({kRows, dim}, dtype, -1, 1, 8);
            Optimizer optimizer(options_of(rule), weight);
            std::vector<double> order(kRows);
            for (size_t r = 0; r < kRows; ++r) order[r] = static_cast<double>(r);
            std::mt19937_64 source(13);
            for (int64_t step = 1; step <= 20; ++step) {
              const Tensor gradient = random({kRows, dim}, dtype, -1, 1, 100 + static_cast<uint64_t>(step));
              if (by_rows) {
                std::shuffle(order.begin(), order.end(), source);
                const std::vector<double> values = values_of(gradient);
                std::vector<double> shuffled;
                for (const double r : order) {
                  const auto first = values.begin() + static_cast<int64_t>(r) * dim;
                  shuffled.insert(shuffled.end(), first, first + dim);
                }
                optimizer.update_rows({make({kRows, dim}, dtype, shuffled), make({kRows}, kInt64, order)}, 0.01, step);
              } else {
                optimizer.update_dense(gradient, 0.01, step);
              }
            }
            results.push_back(bytes_of(weight, optimizer));
          }
        for (const std::string& result : results)
          ASSERT_EQ(result, results[0]) << to_string(rule) << " " << to_string(dtype) << " dim " << dim;
      }
}

TEST_F(Optimizers, StepsOnPartsAreThoseOfTheWhole) {
  constexpr int64_t kElements = 1000;
  const std::vector<ElementRange> parts = {{0, 3}, {16, 16}, {17, 500}, {992, kElements}};
  for (const Rule rule : kRules) {
    SCOPED_TRACE(to_string(rule));
    const Tensor start = random({kElements}, kFloat32, -1, 1, 3);
    const Tensor whole = start.clone(), some = start.clone();
    Optimizer all(options_of(rule), whole), partial(options_of(rule), some);
    for (int64_t step = 1; step <= 3; ++step) {
      const Tensor gradient = random({kElements}, kFloat32, -2, 2, 10 + static_cast<uint64_t>(step));
      all.update_dense(gradient, 0.1, step);
      partial.update_dense(gradient, 0.1, step, parts);
    }
    std::vector<Tensor> found = partial.states(), expected = all.states();
    found.push_back(some);
    expected.push_back(whole);
    Optimizer untouched(options_of(rule), start);
    std::vector<Tensor> before = untouched.states();
    before.push_back(start);
    for (size_t t = 0; t < found.size(); ++t) {
      const std::vector<double> now = values_of(found[t]), moved = values_of(expected[t]), old = values_of(before[t]);
      for (int64_t i = 0; i < kElements; ++i) {
        const bool in_part = std::any_of(parts.begin(), parts.end(),
                                         [i](const ElementRange& part) { return part.begin <= i && i < part.end; });
        const auto e = static_cast<size_t>(i);
        ASSERT_EQ(now[e], in_part ? moved[e] : old[e]) << "tensor " << t << ", element " << i;
      }
    }
    const std::string state = bytes_of(some, partial);
    const Tensor gradient = ones({kElements});
    partial.update_dense(gradient, 0.1, 4, {});
    for (const ElementRange& part : {ElementRange{-1, 3}, {7, 9}, {15, 14}, {8, kElements + 1}})
      TERCEL_EXPECT_THROW(
          partial.update_dense(gradient, 0.1, 4, {ElementRange{0, 8}, part}), RuntimeError,
          str_cat({"optimizer: elements [", part.begin, ", ", part.end, ") are not in those from 8 on of "}));
    EXPECT_EQ(bytes_of(some, partial), state);
    EXPECT_TRUE(partial.is_finite());
    partial.update_dense(mul(gradient, INFINITY), 0.1, 4, {ElementRange{40, 41}});
    EXPECT_FALSE(partial.is_finite()) << "what is stored is looked at";
    partial.forget_nonfinite();
    EXPECT_TRUE(partial.is_finite());
  }
  const Tensor square = ones({4, 4});
  Optimizer optimizer(options_of(Rule::Sgd), square);
  TERCEL_EXPECT_THROW(optimizer.update_dense(ones({4, 4}), 0.1, 1, {ElementRange{0, 8}}), RuntimeError,
                      "expected a parameter with one dimension");
}

TEST_F(OptimizerThreads, ResultsDoNotDependOnThreads) {
  for (const Rule rule : kRules) {
    std::string dense, rows;
    for (const int64_t threads : {1, 2, 3, 7}) {
      set_num_threads(threads);
      const Tensor arena = random({300'001}, kFloat32, -1, 1, 1);
      Optimizer dense_optimizer(options_of(rule), arena);
      const Tensor table = random({9'000, 4}, kFloat32, -1, 1, 2);
      Optimizer row_optimizer(options_of(rule), table);
      for (int64_t step = 1; step <= 2; ++step) {
        dense_optimizer.update_dense(random({300'001}, kFloat32, -1, 1, 3), 0.01, step);
        row_optimizer.update_rows({random({30'000, 4}, kFloat32, -1, 1, 4), random({30'000}, kInt64, 0, 8'999, 5)},
                                  0.01, step);
      }
      if (dense.empty()) dense = bytes_of(arena, dense_optimizer), rows = bytes_of(table, row_optimizer);
      EXPECT_EQ(bytes_of(arena, dense_optimizer), dense) << to_string(rule) << ", " << threads << " threads";
      EXPECT_EQ(bytes_of(table, row_optimizer), rows) << to_string(rule) << ", " << threads << " threads";
    }
  }
}

TEST_F(Optimizers, FtrlKeepsSmallSumsAtZero) {
  OptimizerOptions options;
  options.type = Rule::Ftrl;
  options.lambda1 = 2;
  const Tensor weight = make({3}, kFloat32, {0, 0, 0});
  Optimizer optimizer(options, weight);
  // z ends at 1.5, -1.5 and 6, and only the last passes lambda1.
  for (int64_t step = 1; step <= 3; ++step) optimizer.update_dense(make({3}, kFloat32, {0.5, -0.5, 2}), 0.1, step);
  const std::vector<double> w = values_of(weight);
  EXPECT_EQ(w[0], 0);
  EXPECT_EQ(w[1], 0);
  EXPECT_LT(w[2], -0.05);
}

TEST_F(Optimizers, ARateOfZeroMakesNoNan) {
  for (const Rule rule : kRules) {
    const Tensor weight = random({20}, kFloat32, -1, 1, 1), table = random({4, 5}, kFloat32, -1, 1, 1);
    Optimizer dense(options_of(rule), weight), rows(options_of(rule), table);
    for (int64_t step = 1; step <= 3; ++step) {
      const double rate = step == 1 ? 0.1 : 0;  // as at the end of a schedule
      dense.update_dense(random({20}, kFloat32, -1, 1, 2), rate, step);
      rows.update_rows({random({2, 5}, kFloat32, -1, 1, 3), make({2}, kInt64, {1, 3})}, rate, step);
    }
    for (const Tensor& t : {weight, table})
      for (const double v : values_of(t)) EXPECT_TRUE(std::isfinite(v)) << to_string(rule);
  }
}

// Gaps of an arena and weights of dead units have zero gradients: they must not change.
TEST_F(Optimizers, NoGradientNoChange) {
  for (const Rule rule : kRules) {
    if (rule == Rule::AdamW || rule == Rule::Ftrl) continue;  // which change weights without a gradient
    OptimizerOptions options;
    options.type = rule;
    const Tensor weight = random({40}, kFloat32, -1, 1, 1);
    const std::string before = bytes_of(weight);
    Optimizer optimizer(options, weight);
    for (int64_t step = 1; step <= 5; ++step)
      optimizer.update_dense(make({40}, kFloat32, std::vector<double>(40)), 1, step);
    EXPECT_EQ(bytes_of(weight), before) << to_string(rule);
  }
}

// Subnormal moments would remain and slow down every later step.
TEST_F(Optimizers, MomentsOfDeadUnitsEndAtZero) {
  for (const CpuIsa isa : isas())
    for (const Rule rule : {Rule::MomentumSgd, Rule::Nesterov, Rule::Adam, Rule::AdamW}) {
      set_cpu_isa(isa);
      OptimizerOptions options;
      options.type = rule;
      const Tensor weight = random({21}, kFloat32, -1, 1, 1), table = random({3, 7}, kFloat32, -1, 1, 1);
      Optimizer dense(options, weight), rows(options, table);
      for (int64_t step = 1; step <= 1200; ++step) {
        const Tensor g = make({21}, kFloat32, std::vector<double>(21, step == 1 ? 1 : 0));
        dense.update_dense(g, 0.01, step);
        rows.update_rows({make({3, 7}, kFloat32, values_of(g)), make({3}, kInt64, {0, 1, 2})}, 0.01, step);
      }
      for (const Tensor& moment : {dense.states()[0], rows.states()[0]})
        for (const double v : values_of(moment)) EXPECT_EQ(v, 0) << to_string(rule) << " " << to_string(isa);
      volatile float least = 1.17549435e-38f;
      EXPECT_NE(least / 2, 0) << "a step does not change the caller's floating-point mode";
    }
}

// At every position in a vector, in the weight or only in a state; permanently.
TEST_F(Optimizers, WhatIsStoredIsFiniteOrIsNot) {
  constexpr int64_t kRows = 3, kDim = 21;
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInf = std::numeric_limits<double>::infinity();
  for (const CpuIsa isa : isas())
    for (const Rule rule : kRules)
      for (const ScalarType dtype : {kFloat32, kFloat64})
        for (const double bad : {0.5, kNan, kInf, -kInf})
          for (int64_t at = 0; at < kDim; ++at) {
            set_cpu_isa(isa);
            const Tensor weight = random({kDim}, dtype, -1, 1, 1), table = random({kRows, kDim}, dtype, -1, 1, 1);
            Optimizer dense(options_of(rule), weight), rows(options_of(rule), table);
            EXPECT_TRUE(dense.is_finite() && rows.is_finite());
            std::vector<double> g(kDim, 0.25), good = g;
            g[static_cast<size_t>(at)] = bad;
            for (int64_t step = 1; step <= 2; ++step) {
              const std::vector<double>& values = step == 1 ? g : good;
              dense.update_dense(make({kDim}, dtype, values), 0.01, step);
              rows.update_rows({make({1, kDim}, dtype, values), make({1}, kInt64, {1})}, 0.01, step);
              const bool finite = bad == 0.5;
              ASSERT_EQ(dense.is_finite(), finite)
                  << to_string(rule) << " " << to_string(isa) << " " << bad << " " << at;
              ASSERT_EQ(rows.is_finite(), finite)
                  << to_string(rule) << " " << to_string(isa) << " " << bad << " " << at;
            }
          }
  // An overflowing square is in the state only; the weight does not show it.
  for (const CpuIsa isa : isas())
    for (const Rule rule : {Rule::Adam, Rule::AdaGrad, Rule::RmsProp}) {
      set_cpu_isa(isa);
      const Tensor weight = random({kDim}, kFloat32, -1, 1, 1);
      Optimizer dense(options_of(rule), weight);
      dense.update_dense(make({kDim}, kFloat32, std::vector<double>(kDim, 1e30)), 0.01, 1);
      for (const double w : values_of(weight)) EXPECT_TRUE(std::isfinite(w));
      EXPECT_FALSE(dense.is_finite());
    }
  // Large numbers are finite even if their sum would overflow.
  const Tensor weight = make({kDim}, kFloat32, std::vector<double>(kDim, 3e38));
  Optimizer dense(options_of(Rule::MomentumSgd), weight);
  for (int64_t i = 0; i < kDim; ++i) dense.states()[0].data<float>()[i] = -3e38f;
  dense.update_dense(make({kDim}, kFloat32, std::vector<double>(kDim)), 0.01, 1);
  EXPECT_TRUE(dense.is_finite());
}

TEST_F(OptimizerThreads, OneThreadsValuesTellOfAll) {
  constexpr int64_t kElements = 1 << 17;
  set_num_threads(2);
  for (const int64_t at : {int64_t{0}, kElements / 2 - 1, kElements - 1}) {
    const Tensor weight = random({kElements}, kFloat32, -1, 1, 1), g = random({kElements}, kFloat32, -1, 1, 2);
    g.data<float>()[at] = std::numeric_limits<float>::infinity();
    Optimizer optimizer(options_of(Rule::Sgd), weight);
    optimizer.update_dense(g, 0.01, 1);
    EXPECT_FALSE(optimizer.is_finite()) << at;
  }
}

TEST_F(Optimizers, ChangesAreCountedAsChanges) {
  const Tensor table = random({4, 2}, kFloat32, -1, 1, 1);
  Optimizer optimizer(options_of(Rule::Adam), table);
  const uint32_t before = table.version(), state = optimizer.states()[0].version();
  optimizer.update_rows({random({1, 2}, kFloat32, -1, 1, 1), make({1}, kInt64, {2})}, 0.1, 1);
  EXPECT_EQ(table.version(), before + 1);
  EXPECT_EQ(optimizer.states()[0].version(), state + 1);
  optimizer.update_dense(random({4, 2}, kFloat32, -1, 1, 1), 0.1, 2);
  EXPECT_EQ(table.version(), before + 2);
}

TEST_F(Optimizers, StatesHaveNamesAndStarts) {
  const Tensor weight = random({2, 3}, kFloat64, -1, 1, 1);
  const std::vector<std::vector<std::string>> names = {
      {}, {"momentum"}, {"momentum"}, {"m", "v"}, {"m", "v"}, {"accumulator"}, {"accumulator"}, {"square"}, {"n", "z"}};
  for (size_t r = 0; r < std::size(kRules); ++r) {
    const Optimizer optimizer(options_of(kRules[r]), weight);
    const Span<const char*> found = Optimizer::state_names(kRules[r]);
    EXPECT_EQ(std::vector<std::string>(found.begin(), found.end()), names[r]);
    ASSERT_EQ(optimizer.states().size(), names[r].size());
    for (const Tensor& state : optimizer.states()) {
      EXPECT_EQ(state.sizes(), weight.sizes());
      EXPECT_EQ(state.dtype(), kFloat64);
      EXPECT_FALSE(state.requires_grad());
      for (const double v : values_of(state)) EXPECT_EQ(v, names[r][0] == "accumulator" ? 0.02 : 0);
    }
  }
}

TEST_F(Optimizers, NothingToDo) {
  Optimizer arena(options_of(Rule::Adam), empty({0}, kFloat32));
  arena.update_dense(empty({0}, kFloat32), 0.1, 1);
  const Tensor table = random({4, 2}, kFloat32, -1, 1, 1);
  const std::string before = bytes_of(table);
  Optimizer optimizer(options_of(Rule::AdaGrad), table);
  optimizer.update_rows({empty({0, 2}, kFloat32), empty({0}, kInt64)}, 0.1, 1);
  EXPECT_EQ(bytes_of(table), before);
  Optimizer narrow(options_of(Rule::AdaGrad), empty({4, 0}, kFloat32));
  narrow.update_rows({empty({2, 0}, kFloat32), make({2}, kInt64, {3, 1})}, 0.1, 1);
}

TEST_F(Optimizers, DenseErrors) {
  const Tensor weight = random({2, 3}, kFloat32, -1, 1, 1);
  Optimizer optimizer(options_of(Rule::Sgd), weight);
  const Tensor fits = random({2, 3}, kFloat32, -1, 1, 1);
  TERCEL_EXPECT_THROW(optimizer.update_dense(random({3, 2}, kFloat32, -1, 1, 1), 0.1, 1), RuntimeError,
                      "optimizer: gradient [3, 2] float32 on cpu does not fit parameter [2, 3] float32 on cpu");
  TERCEL_EXPECT_THROW(optimizer.update_dense(random({2, 3}, kFloat64, -1, 1, 1), 0.1, 1), RuntimeError, "does not fit");
  TERCEL_EXPECT_THROW(optimizer.update_dense(placed(fits, test::Placement::Transposed), 0.1, 1), RuntimeError,
                      "does not fit");
  TERCEL_EXPECT_THROW(optimizer.update_dense(Tensor(), 0.1, 1), RuntimeError, "gradient an undefined tensor");
  TERCEL_EXPECT_THROW(optimizer.update_dense(fits, 0.1, 0), RuntimeError, "expected a step of at least 1");
  TERCEL_EXPECT_THROW(optimizer.update_dense(fits, -0.1, 1), RuntimeError, "got step 1 and -0.1");
  TERCEL_EXPECT_THROW(optimizer.update_dense(fits, std::nan(""), 1), RuntimeError, "got step 1 and nan");
}

TEST_F(Optimizers, RowErrorsChangeNothing) {
  const Tensor table = random({4, 2}, kFloat32, -1, 1, 1);
  Optimizer optimizer(options_of(Rule::AdaGrad), table);
  const std::string before = bytes_of(table, optimizer);
  const auto update = [&](const Tensor& values, const Tensor& rows) { optimizer.update_rows({values, rows}, 0.1, 1); };
  const Tensor two = random({2, 2}, kFloat32, -1, 1, 1);
  TERCEL_EXPECT_THROW(update(two, make({2}, kInt64, {1, 4})), IndexError,
                      "optimizer: row 4 is out of range for [4, 2] float32 on cpu");
  TERCEL_EXPECT_THROW(update(two, make({2}, kInt64, {1, -1})), IndexError, "row -1 is out of range");
  TERCEL_EXPECT_THROW(update(random({2, 3}, kFloat32, -1, 1, 1), make({2}, kInt64, {1, 2})), RuntimeError,
                      "optimizer: gradient rows [2, 3] float32 on cpu do not fit parameter [4, 2] float32 on cpu");
  TERCEL_EXPECT_THROW(update(random({2, 2}, kFloat64, -1, 1, 1), make({2}, kInt64, {1, 2})), RuntimeError,
                      "do not fit");
  TERCEL_EXPECT_THROW(update(two, make({3}, kInt64, {1, 2, 3})), RuntimeError, "expected values [3, ...]");
  TERCEL_EXPECT_THROW(update(two, Tensor()), RuntimeError, "do not fit");
  TERCEL_EXPECT_THROW(update(Tensor(), make({2}, kInt64, {1, 2})), RuntimeError, "do not fit");
  TERCEL_EXPECT_THROW(update(make({}, kFloat32, {1}), make({1}, kInt64, {1})), RuntimeError, "do not fit");
  EXPECT_EQ(bytes_of(table, optimizer), before);
}

// The sums of this many rows are several blocks: a bad row in the last one must be found before the first is updated.
TEST_F(Optimizers, ABadRowAmongManyChangesNothing) {
  constexpr int64_t kRows = 9000, kDim = 1024;
  const Tensor table = random({kRows, kDim}, kFloat32, -1, 1, 1);
  Optimizer optimizer(options_of(Rule::Sgd), table);
  const std::string before = bytes_of(table, optimizer);
  const Tensor rows = arange(1, kRows + 1, 1, kInt64);
  const Gradient gradient{ones({1, kDim}), rows, zeros({kRows}, kInt64)};
  TERCEL_EXPECT_THROW(optimizer.update_rows(gradient, 0.1, 1), IndexError, "optimizer: row 9000 is out of range");
  EXPECT_EQ(bytes_of(table, optimizer), before);
}

TEST_F(Optimizers, ATableWithoutRowsHasNothingToUpdate) {
  const Tensor table = empty({0, 3}), state = empty({0, 3});
  Optimizer optimizer(options_of(Rule::AdaGrad), table, {state});
  optimizer.update_rows({empty({0, 3}), empty({0}, kInt64)}, 0.1, 1);
  EXPECT_TRUE(optimizer.is_finite());
}

TEST_F(Optimizers, ParameterErrors) {
  const OptimizerOptions options = options_of(Rule::Adam);
  TERCEL_EXPECT_THROW(Optimizer(options, Tensor()), RuntimeError, "optimizer: expected a tensor");
  TERCEL_EXPECT_THROW(Optimizer(options, random({3}, kFloat16, 0, 1, 1)), RuntimeError,
                      "optimizer: expected a parameter of float32 or float64 but got [3] float16 on cpu");
  TERCEL_EXPECT_THROW(Optimizer(options, placed(random({2, 3}, kFloat32, 0, 1, 1), test::Placement::Transposed)),
                      RuntimeError, "is not contiguous");
  OptimizerOptions wrong = options;
  wrong.epsilon = 0;  // 0 / (sqrt(0) + 0)
  TERCEL_EXPECT_THROW(Optimizer(wrong, random({3}, kFloat32, 0, 1, 1)), ConfigError,
                      "[optimizer] option 'epsilon': expected at least 1e-30, found 0");

  test::FailingAllocator allocator;
  const Tensor weight = random({3}, kFloat32, 0, 1, 1);
  const test::ScopedAllocator scope(allocator);
  allocator.fail_call(2);
  TERCEL_EXPECT_THROW(Optimizer(options, weight), OutOfMemoryError, "optimizer: Adam's 'v': ");
}

TEST_F(Optimizers, StatesOfTheCallerMayBeSideBySideWithTheWeight) {
  constexpr int64_t kRows = 9, kDim = 5;
  for (const Rule rule : kRules) {
    if (rule == Rule::RowWiseAdaGrad) continue;  // whose state is a number for a row
    const OptimizerOptions options = options_of(rule);
    const auto states = static_cast<int64_t>(Optimizer::state_names(rule).size());
    const Tensor block = full({kRows, kDim * (1 + states)}, Optimizer::initial_state(options));
    const Tensor weight = random({kRows, kDim}, kFloat32, -1, 1, 3), inside = block.narrow(1, 0, kDim);
    copy_(inside, weight);
    std::vector<Tensor> parts;
    for (int64_t k = 1; k <= states; ++k) parts.push_back(block.narrow(1, k * kDim, kDim));
    Optimizer apart(options, weight), together(options, inside, parts);
    for (int64_t step = 1; step <= 4; ++step) {
      const Gradient rows{random({6, kDim}, kFloat32, -1, 1, static_cast<uint64_t>(step)),
                          make({6}, kInt64, {8, 2, 0, 2, 5, 8})};
      const Tensor dense = random({kRows, kDim}, kFloat32, -1, 1, 20 + static_cast<uint64_t>(step));
      UniqueRows unique;
      apart.update_rows(rows, 0.1, step);
      together.update_rows(rows, 0.1, step, unique);
      apart.update_dense(dense, 0.1, step);
      together.update_dense(dense, 0.1, step);
    }
    EXPECT_EQ(bytes_of(inside, together), bytes_of(weight, apart)) << to_string(rule);
  }
}

TEST_F(Optimizers, StatesOfTheCallerMustFit) {
  const OptimizerOptions options = options_of(Rule::Adam);
  const Tensor weight = random({3, 2}, kFloat32, 0, 1, 1), m = zeros({3, 2});
  TERCEL_EXPECT_THROW(Optimizer(options, weight, {m}), RuntimeError, "optimizer: Adam has 2 states, got 1");
  TERCEL_EXPECT_THROW(Optimizer(options, weight, {m, zeros({2, 3})}), RuntimeError,
                      "optimizer: Adam's 'v' [2, 3] float32 on cpu does not fit the parameter [3, 2] float32 on cpu");
  TERCEL_EXPECT_THROW(Optimizer(options, weight, {zeros({3, 2}, kFloat64), m}), RuntimeError, "Adam's 'm'");
  TERCEL_EXPECT_THROW(Optimizer(options, weight, {m, Tensor()}), RuntimeError, "Adam's 'v'");
  TERCEL_EXPECT_THROW(Optimizer(options, placed(weight, test::Placement::Transposed), {m, m}), RuntimeError,
                      "optimizer: the rows of the parameter [3, 2] float32");
}

}  // namespace
}  // namespace tercel::optim
