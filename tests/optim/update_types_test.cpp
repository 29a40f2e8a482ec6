// Rows of tables by update type and rule, against the formulas in double arithmetic.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <set>
#include <utility>

#include "tercel/core/dispatch.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/random/random.h"
#include "tercel/ops/views/views.h"
#include "tercel/optim/optimizer.h"
#include "tercel/util/parallel.h"
#include "tests/optim/rule_reference.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace tercel::optim {
namespace {

using test::bytes_of;
using test::make;
using test::random;
using test::values_of;

constexpr Rule kRules[] = {Rule::Sgd,     Rule::MomentumSgd,    Rule::Nesterov, Rule::Adam, Rule::AdamW,
                           Rule::AdaGrad, Rule::RowWiseAdaGrad, Rule::RmsProp,  Rule::Ftrl};
constexpr int64_t kRows = 40, kDim = 5;

OptimizerOptions options_of(Rule rule, UpdateType type) {
  OptimizerOptions options;
  options.type = rule;
  options.update_type = type;
  options.initial_accu_value = 0.02;
  options.beta = 0.5;
  options.lambda1 = 0.1;
  options.lr_scale = 0.5;
  options.l1 = 0.01;
  options.l2 = 0.03;
  return options;
}

/** Restores instruction set and threads. */
class UpdateTypes : public ::testing::Test {
 protected:
  ~UpdateTypes() override {
    set_cpu_isa(isa_);
    set_num_threads(threads_);
  }

 private:
  CpuIsa isa_ = cpu_isa();
  int64_t threads_ = num_threads();
};
using UpdateTypeThreads = UpdateTypes;

/** A gradient of rows with repetitions; every fifth batch is empty. */
struct Rows {
  Tensor values, rows;
  std::vector<double> sums = std::vector<double>(kRows * kDim, 0);
  std::set<size_t> used;

  Gradient gradient() const { return {values, rows}; }
};

Rows rows_of(int64_t step, ScalarType dtype) {
  std::mt19937_64 source(static_cast<uint64_t>(step));
  std::normal_distribution<double> normal;
  const int64_t n = step % 5 == 0 ? 0 : 17;
  std::vector<double> rows(static_cast<size_t>(n)), values(static_cast<size_t>(n * kDim));
  for (double& row : rows) row = static_cast<double>(source() % (kRows / 2));
  for (double& value : values) value = normal(source);
  Rows all;
  all.values = make({n, kDim}, dtype, values);
  all.rows = make({n}, kInt64, rows);
  const std::vector<double> stored = values_of(all.values);
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto row = static_cast<size_t>(rows[i]);
    all.used.insert(row);
    for (size_t j = 0; j < kDim; ++j) all.sums[row * kDim + j] += stored[i * kDim + j];
  }
  return all;
}

void expect_near(const Tensor& found, const std::vector<double>& expected, double tolerance, const std::string& what) {
  const std::vector<double> values = values_of(found);
  for (size_t i = 0; i < values.size(); ++i)
    ASSERT_NEAR(values[i], expected[i], tolerance * (1 + std::abs(expected[i]))) << what << ", element " << i;
}

TEST_F(UpdateTypes, EveryRuleFollowsItsFormula) {
  for (const UpdateType type : {UpdateType::Local, UpdateType::Global})
    for (const Rule rule : kRules)
      for (const ScalarType dtype : {kFloat32, kFloat64}) {
        const std::string what = str_cat({to_string(rule), " ", to_string(type), " ", to_string(dtype)});
        const OptimizerOptions options = options_of(rule, type);
        const Tensor table = random({kRows, kDim}, dtype, -1, 1, 6);
        Optimizer optimizer(options, table, ParameterKind::Table);
        RuleReference reference(options, values_of(table));
        // Of the others, a step without a gradient changes nothing, or nothing is what HugeCTR defines.
        const bool drifts = rule == Rule::MomentumSgd || rule == Rule::Nesterov || rule == Rule::Adam ||
                            rule == Rule::AdamW || rule == Rule::RmsProp;
        for (int64_t step = 1; step <= 23; ++step) {
          const Rows rows = rows_of(step, dtype);
          const double rate = 0.02 * static_cast<double>(1 + step % 3);
          for (size_t r = 0; r < kRows; ++r) {
            const bool uses = rows.used.contains(r);
            if (!uses && !(type == UpdateType::Global && drifts)) continue;
            const std::vector<double> g(rows.sums.begin() + static_cast<int64_t>(r) * kDim,
                                        rows.sums.begin() + static_cast<int64_t>(r + 1) * kDim);
            if (rule == Rule::RowWiseAdaGrad) {
              reference.step_of_row(r, g, rate);
              continue;
            }
            for (size_t j = 0; j < kDim; ++j) reference.step(r * kDim + j, g[j], rate, static_cast<double>(step), uses);
          }
          optimizer.update_rows(rows.gradient(), rate, step);
        }
        const double tolerance = dtype == kFloat64 ? 1e-11 : 2e-4;
        expect_near(table, reference.w, tolerance, what);
        const std::vector<double>* const states[] = {&reference.a, &reference.b};
        ASSERT_EQ(optimizer.states().size(), Optimizer::state_names(rule).size());
        for (size_t k = 0; k < optimizer.states().size(); ++k)
          expect_near(optimizer.states()[k], *states[k], tolerance, what + ", state");
        EXPECT_TRUE(optimizer.is_finite());
      }
}

TEST_F(UpdateTypes, RowWiseStatesHaveANumberForARow) {
  const OptimizerOptions options = options_of(Rule::RowWiseAdaGrad, UpdateType::Local);
  EXPECT_EQ(Optimizer::row_states(options), 1u);
  const Tensor table = random({kRows, kDim}, kFloat32, -1, 1, 6);
  const Optimizer of_table(options, table, ParameterKind::Table), of_dense(options, table);
  EXPECT_EQ(of_table.states()[0].sizes(), IntSpan({kRows, 1}));
  EXPECT_EQ(of_dense.states()[0].sizes(), IntSpan({kRows, kDim}));
  for (const double x : values_of(of_table.states()[0])) EXPECT_FLOAT_EQ(static_cast<float>(x), 0.02F);
  TERCEL_EXPECT_THROW(Optimizer(options, table, {zeros({kRows, kDim})}), RuntimeError,
                      "optimizer: RowWiseAdaGrad's 'accumulator' [40, 5] float32 on cpu does not fit the parameter");
  const Optimizer lazy(options_of(Rule::Adam, UpdateType::LazyGlobal), table, ParameterKind::Table);
  ASSERT_EQ(lazy.states().size(), 3u);
  EXPECT_EQ(lazy.states()[2].sizes(), IntSpan({kRows, 1}));
}

TEST_F(UpdateTypes, RowWiseIsTheSameOnEveryInstructionSet) {
  for (const int64_t dim : {1, 3, 16, 17, 200})
    for (const ScalarType dtype : {kFloat32, kFloat64})
      for (const double l2 : {0.0, 0.1}) {
        std::string expected;
        for (const CpuIsa isa : {CpuIsa::Generic, CpuIsa::Avx2, CpuIsa::Avx512}) {
          if (isa > best_cpu_isa()) continue;
          set_cpu_isa(isa);
          OptimizerOptions options = options_of(Rule::RowWiseAdaGrad, UpdateType::Local);
          options.l2 = l2;
          options.l1 = 0;
          const Tensor table = random({30, dim}, dtype, -1, 1, 8);
          Optimizer optimizer(options, table, ParameterKind::Table);
          for (int64_t step = 1; step <= 5; ++step)
            optimizer.update_rows({random({50, dim}, dtype, -1, 1, static_cast<uint64_t>(step)),
                                   random({50}, kInt64, 0, 29, 70 + static_cast<uint64_t>(step))},
                                  0.1, step);
          const std::string found = bytes_of(table) + bytes_of(optimizer.states()[0]);
          if (expected.empty()) expected = found;
          EXPECT_TRUE(found == expected) << dim << " " << to_string(dtype) << " " << to_string(isa);
        }
      }
}

TEST_F(UpdateTypeThreads, ResultsDoNotDependOnThreads) {
  const Tensor first = random({60'000, 4}, kFloat32, -1, 1, 2), values = random({30'000, 4}, kFloat32, -1, 1, 4);
  const Tensor rows[] = {random({30'000}, kInt64, 0, 59'999, 5), random({30'000}, kInt64, 0, 59'999, 6)};
  for (const UpdateType type : {UpdateType::Local, UpdateType::Global, UpdateType::LazyGlobal})
    for (const Rule rule : {Rule::Adam, Rule::Nesterov, Rule::RowWiseAdaGrad, Rule::RmsProp}) {
      if (type == UpdateType::LazyGlobal && rule != Rule::Adam) continue;
      std::string expected;
      for (const int64_t threads : {1, 2, 3, 7}) {
        set_num_threads(threads);
        const Tensor table = first.clone();
        Optimizer optimizer(options_of(rule, type), table, ParameterKind::Table);
        for (int64_t step = 1; step <= 3; ++step) optimizer.update_rows({values, rows[step % 2]}, 0.01, step);
        std::string found = bytes_of(table);
        for (const Tensor& state : optimizer.states()) found += bytes_of(state);
        if (expected.empty()) expected = found;
        EXPECT_TRUE(found == expected) << to_string(rule) << " " << to_string(type) << ", " << threads << " threads";
      }
    }
}

// Rows of several blocks of UniqueRows, and those before, between and behind them.
TEST_F(UpdateTypes, GlobalIsADenseStepOfTheWholeTable) {
  constexpr int64_t kMany = 9'500, kWide = 1024;
  OptimizerOptions options = options_of(Rule::Adam, UpdateType::Global);
  options.l1 = options.l2 = 0;  // which rows without a gradient do not have
  const Tensor table = rand({kMany, kWide}), dense = table.clone();
  Optimizer global(options, table, ParameterKind::Table), whole(options, dense);
  for (int64_t step = 1; step <= 2; ++step) {
    // All rows but the first 7, each 100th, and the last 30.
    std::vector<double> rows;
    for (int64_t r = 7; r < kMany - 30; ++r)
      if (r % 100 != 0) rows.push_back(static_cast<double>(r));
    const auto n = static_cast<int64_t>(rows.size());
    const Gradient gradient{rand({n, kWide}), make({n}, kInt64, rows)};
    global.update_rows(gradient, 0.01, step);
    whole.update_dense(dense_gradient(gradient, table.sizes()), 0.01, step);
  }
  EXPECT_TRUE(bytes_of(table) == bytes_of(dense));
  for (size_t k = 0; k < 2; ++k) EXPECT_TRUE(bytes_of(global.states()[k]) == bytes_of(whole.states()[k]));
}

/** Tables trained with Global and LazyGlobal; after the last step every row is used once. */
void expect_lazy_is_global(OptimizerOptions options, ScalarType dtype, int64_t steps, int64_t lookups,
                           double tolerance) {
  constexpr int64_t kMany = 300;
  const std::string what = str_cat({to_string(dtype), ", ", steps, " steps of ", lookups, ", beta1 ", options.beta1,
                                    ", beta2 ", options.beta2, ", epsilon ", options.epsilon});
  const Tensor eager_table = random({kMany, kDim}, dtype, -1, 1, 1), lazy_table = eager_table.clone();
  options.type = Rule::Adam;
  options.update_type = UpdateType::Global;
  Optimizer eager(options, eager_table, ParameterKind::Table);
  options.update_type = UpdateType::LazyGlobal;
  Optimizer lazy(options, lazy_table, ParameterKind::Table);
  std::mt19937_64 source(3);
  for (int64_t step = 1; step <= steps; ++step) {
    std::vector<double> rows;
    if (step == steps)
      for (int64_t r = 0; r < kMany; ++r) rows.push_back(static_cast<double>(r));
    else  // the first rows often, the last ones hardly ever
      for (int64_t i = 0; i < lookups; ++i) {
        const double u = static_cast<double>(source() % 1'000'000) * 1e-6;
        rows.push_back(std::floor(kMany * u * u * u));
      }
    const auto n = static_cast<int64_t>(rows.size());
    const Gradient gradient{random({n, kDim}, dtype, -0.1, 0.1, static_cast<uint64_t>(step)), make({n}, kInt64, rows)};
    // A schedule, with a pause.
    const double rate = step % 50 == 7 ? 0 : 0.01 / (1 + 0.001 * static_cast<double>(step));
    eager.update_rows(gradient, rate, step);
    lazy.update_rows(gradient, rate, step);
  }
  const std::vector<double> expected = values_of(eager_table), found = values_of(lazy_table);
  for (size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(found[i], expected[i], tolerance) << what << ", " << i;
  for (size_t k = 0; k < 2; ++k)
    expect_near(lazy.states()[k], values_of(eager.states()[k]), dtype == kFloat64 ? 1e-12 : 1e-5, what + ", state");
  EXPECT_TRUE(lazy.is_finite());
}

TEST_F(UpdateTypes, LazyGlobalCatchesUpWithGlobal) {
  OptimizerOptions options;
  // Far more steps than there are rates in the history.
  expect_lazy_is_global(options, kFloat64, 3000, 1, 1e-6);
  expect_lazy_is_global(options, kFloat32, 3000, 1, 2e-5);
  expect_lazy_is_global(options, kFloat32, 40, 20, 1e-6);
  expect_lazy_is_global(options, kFloat64, 1, 1, 1e-15);
  options.beta1 = 0.8;
  options.beta2 = 0.97;
  expect_lazy_is_global(options, kFloat64, 400, 2, 1e-5);
  options.beta1 = 0.9;
  options.beta2 = 0.95;
  expect_lazy_is_global(options, kFloat64, 200, 5, 1e-4);
  options.beta1 = 0;
  expect_lazy_is_global(options, kFloat64, 200, 5, 1e-12);
  options = {};
  options.epsilon = 0.05;  // as large as the root
  expect_lazy_is_global(options, kFloat64, 400, 2, 1e-6);
}

TEST_F(UpdateTypes, LazyGlobalContinuesWithTheSameBits) {
  constexpr int64_t kMany = 200;
  const OptimizerOptions options = options_of(Rule::Adam, UpdateType::LazyGlobal);
  const auto step_of = [](Optimizer& optimizer, int64_t step) {
    optimizer.update_rows({random({3, kDim}, kFloat32, -1, 1, static_cast<uint64_t>(step)),
                           random({3}, kInt64, 0, kMany - 1, 1000 + static_cast<uint64_t>(step))},
                          0.01 / static_cast<double>(step), step);
  };
  const Tensor whole_table = random({kMany, kDim}, kFloat32, -1, 1, 1);
  Optimizer whole(options, whole_table, ParameterKind::Table);
  for (int64_t step = 1; step <= 1500; ++step) step_of(whole, step);
  const Tensor table = whole_table.clone();
  std::vector<Tensor> states;
  for (const Tensor& state : whole.states()) states.push_back(state.clone());
  Optimizer resumed(options, table, states);
  std::copy_n(whole.history().data<double>(), whole.history().numel(), resumed.history().data<double>());
  for (int64_t step = 1501; step <= 1600; ++step) {
    step_of(whole, step);
    step_of(resumed, step);
  }
  EXPECT_EQ(bytes_of(table), bytes_of(whole_table));
  for (size_t k = 0; k < 3; ++k) EXPECT_EQ(bytes_of(states[k]), bytes_of(whole.states()[k]));
  EXPECT_EQ(bytes_of(resumed.history()), bytes_of(whole.history()));
  for (const double damaged : {-1.0, std::nan(""), 1e300}) {
    resumed.history().data<double>()[0] = damaged;
    TERCEL_EXPECT_THROW(step_of(resumed, 1601), DataError, "optimizer: history: expected the number of steps, found");
  }
}

TEST_F(UpdateTypes, LazyGlobalNoticesWhatIsNotFinite) {
  const Tensor table = random({3, kDim}, kFloat32, -1, 1, 1);
  Optimizer optimizer(options_of(Rule::Adam, UpdateType::LazyGlobal), table, ParameterKind::Table);
  const auto step_of = [&](double row, int64_t step) {
    optimizer.update_rows({ones({1, kDim}), make({1}, kInt64, {row})}, 0.1, step);
  };
  step_of(0, 1);
  step_of(1, 2);
  EXPECT_TRUE(optimizer.is_finite());
  optimizer.states()[0].data<float>()[0] = std::numeric_limits<float>::infinity();
  step_of(1, 3);
  EXPECT_TRUE(optimizer.is_finite()) << "row 0 is not used";
  step_of(0, 4);
  EXPECT_FALSE(optimizer.is_finite());
}

TEST_F(UpdateTypes, WhichRulesHaveThem) {
  for (const Rule rule : kRules) {
    check_update_type(options_of(rule, UpdateType::Local), "emb");
    check_update_type(options_of(rule, UpdateType::Global), "emb");
  }
  for (const Rule rule : {Rule::Sgd, Rule::Adam, Rule::AdaGrad, Rule::RowWiseAdaGrad, Rule::Ftrl})
    check_update_type(options_of(rule, UpdateType::LazyGlobal), "emb");
  for (const Rule rule : {Rule::MomentumSgd, Rule::Nesterov, Rule::AdamW, Rule::RmsProp}) {
    const std::string text = str_cat({"emb: update_type LazyGlobal is not available for ", to_string(rule),
                                      ", only for Adam; Global changes all rows"});
    TERCEL_EXPECT_THROW(check_update_type(options_of(rule, UpdateType::LazyGlobal), "emb"), ConfigError, text.c_str());
    TERCEL_EXPECT_THROW(Optimizer(options_of(rule, UpdateType::LazyGlobal), ones({2, 2}), ParameterKind::Table),
                        ConfigError, "optimizer: update_type LazyGlobal is not available");
    Optimizer dense(options_of(rule, UpdateType::LazyGlobal), ones({2, 2}));  // where it means nothing
    dense.update_dense(ones({2, 2}), 0.1, 1);
  }
  Optimizer lazy(options_of(Rule::Adam, UpdateType::LazyGlobal), ones({2, 2}), ParameterKind::Table);
  TERCEL_EXPECT_THROW(lazy.update_dense(ones({2, 2}), 0.1, 1), RuntimeError,
                      "optimizer: a table with update_type LazyGlobal takes gradients of rows");
}

TEST_F(UpdateTypes, TablesWithoutRowsOrColumns) {
  for (const UpdateType type : {UpdateType::Local, UpdateType::Global, UpdateType::LazyGlobal})
    for (const Rule rule : {Rule::Adam, Rule::RowWiseAdaGrad})
      for (const auto& [rows, dim] : {std::pair(0, 3), std::pair(3, 0)}) {
        Optimizer optimizer(options_of(rule, type), empty({rows, dim}), ParameterKind::Table);
        optimizer.update_rows({empty({0, dim}), empty({0}, kInt64)}, 0.1, 1);
        EXPECT_TRUE(optimizer.is_finite());
      }
}

}  // namespace
}  // namespace tercel::optim
