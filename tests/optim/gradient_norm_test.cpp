// Norms of gradients, and steps with clipped ones.
#include "tercel/optim/gradient_norm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tercel/core/dispatch.h"
#include "tercel/ops/factories/factories.h"
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

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double squares_of(const Tensor& t, double limit) {
  double sum = 0;
  for (const double x : values_of(t)) sum += std::pow(std::min(std::abs(x), limit), 2);
  return sum;
}

TEST(GradientNorm, IsThatOfAllTogether) {
  for (const ScalarType dtype : {kFloat32, kFloat64})
    for (const double limit : {kInfinity, 0.5}) {
      GradientNorm norm;
      double expected = 0;
      for (int round = 0; round < 2; ++round) {
        norm.clear(limit);
        EXPECT_EQ(norm.value(), 0);
        expected = 0;
        for (const int64_t n : {0, 1, 15, 16, 17, 1000, 50'001}) {
          const Tensor part = random({n}, dtype, -1, 1, static_cast<uint64_t>(n) + 1);
          norm.add(part);
          expected += squares_of(part, limit);
        }
      }
      EXPECT_NEAR(norm.value(), std::sqrt(expected), 1e-12 * expected) << to_string(dtype) << " " << limit;
    }
}

TEST(GradientNorm, AddsUpEqualRows) {
  GradientNorm norm;
  UniqueRows unique;
  // Rows 3 (twice) and 1: sums (4, -1) and (0, 2).
  norm.add_rows({make({3, 2}, kFloat32, {1, 1, 0, 2, 3, -2}), make({3}, kInt64, {3, 1, 3})}, unique);
  EXPECT_DOUBLE_EQ(norm.value(), std::sqrt(16.0 + 1 + 4));
  norm.add(make({1}, kFloat64, {2}));
  EXPECT_DOUBLE_EQ(norm.value(), 5);
  norm.clear(1.5);
  norm.add_rows({make({3, 2}, kFloat32, {1, 1, 0, 2, 3, -2}), make({3}, kInt64, {3, 1, 3})}, unique);
  EXPECT_DOUBLE_EQ(norm.value(), std::sqrt(1.5 * 1.5 + 1 + 1.5 * 1.5));
}

TEST(GradientNorm, IsNotFiniteIfAnElementIsNot) {
  for (const double bad : {std::nan(""), kInfinity, -kInfinity})
    for (const int64_t at : {0, 20, 40}) {
      const Tensor values = random({41}, kFloat32, -1, 1, 1);
      values.data<float>()[at] = static_cast<float>(bad);
      GradientNorm norm;
      norm.add(values);
      EXPECT_FALSE(std::isfinite(norm.value()));
      norm.clear(1);
      norm.add(values);
      EXPECT_EQ(std::isnan(norm.value()), std::isnan(bad)) << "a limit makes infinities finite, but not NaN";
    }
  GradientNorm norm;
  norm.add(full({5}, 1e30, kFloat32));  // whose squares float32 does not have
  EXPECT_TRUE(std::isfinite(norm.value()));
}

TEST(GradientNormThreads, DependsOnNothingElse) {
  const CpuIsa isa_before = cpu_isa();
  const int64_t threads_before = num_threads();
  const Tensor dense = random({1'000'003}, kFloat32, -1, 1, 1);
  const Gradient rows{random({60'000, 8}, kFloat32, -1, 1, 2), random({60'000}, kInt64, 0, 30'000, 3)};
  double expected = 0;
  for (const CpuIsa isa : {CpuIsa::Generic, CpuIsa::Avx2, CpuIsa::Avx512})
    for (const int64_t threads : {1, 2, 3, 7}) {
      if (isa > best_cpu_isa()) continue;
      set_cpu_isa(isa);
      set_num_threads(threads);
      GradientNorm norm;
      UniqueRows unique;
      norm.add(dense);
      norm.add_rows(rows, unique);
      if (expected == 0) expected = norm.value();
      EXPECT_EQ(norm.value(), expected) << to_string(isa) << ", " << threads << " threads";
    }
  set_cpu_isa(isa_before);
  set_num_threads(threads_before);
}

TEST(GradientNorm, RefusesOtherTensors) {
  GradientNorm norm;
  TERCEL_EXPECT_THROW(norm.add(zeros({2}, kInt64)), RuntimeError, "norm of gradients: expected contiguous float32");
  TERCEL_EXPECT_THROW(norm.add(Tensor()), RuntimeError, "norm of gradients: expected contiguous float32");
  EXPECT_EQ(clip_scale(4, 2), 0.5);
  EXPECT_EQ(clip_scale(2, 2), 1);
  EXPECT_EQ(clip_scale(0, 2), 1);
}

TEST(GradientClip, IsAppliedBeforeRegularisationAndRule) {
  constexpr int64_t kRows = 9, kDim = 7;
  for (const Rule rule : {Rule::Sgd, Rule::Adam, Rule::RowWiseAdaGrad, Rule::Nesterov, Rule::Ftrl})
    for (const GradientClip clip : {GradientClip{0.4, 1}, GradientClip{kInfinity, 0.3}, GradientClip{0.4, 0.3}}) {
      OptimizerOptions options;
      options.type = rule;
      options.l2 = 0.1;
      options.l1 = 0.05;
      const Tensor table = random({kRows, kDim}, kFloat64, -1, 1, 1), dense = random({kDim}, kFloat64, -1, 1, 2);
      Optimizer of_table(options, table, ParameterKind::Table), of_dense(options, dense);
      RuleReference rows(options, values_of(table)), elements(options, values_of(dense));
      of_table.set_clip(clip);
      of_dense.set_clip(clip);
      const auto clipped = [&clip](double g) { return clip.scale * std::clamp(g, -clip.limit, clip.limit); };
      for (int64_t step = 1; step <= 20; ++step) {
        const Tensor values = random({kRows, kDim}, kFloat64, -1, 1, 10 + static_cast<uint64_t>(step));
        const std::vector<double> g = values_of(values);
        of_table.update_rows({values, arange(kRows)}, 0.1, step);
        of_dense.update_dense(values.select(0, 3).contiguous(), 0.1, step);
        for (size_t r = 0; r < kRows; ++r) {
          std::vector<double> row(kDim);
          for (size_t j = 0; j < kDim; ++j) row[j] = clipped(g[r * kDim + j]);
          if (rule == Rule::RowWiseAdaGrad) {
            rows.step_of_row(r, row, 0.1);
          } else {
            for (size_t j = 0; j < kDim; ++j) rows.step(r * kDim + j, row[j], 0.1, static_cast<double>(step));
          }
          for (size_t j = 0; r == 3 && j < kDim; ++j) elements.step(j, row[j], 0.1, static_cast<double>(step));
        }
      }
      const std::vector<double> found = values_of(table), found_dense = values_of(dense);
      for (size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], rows.w[i], 1e-12) << to_string(rule);
      for (size_t i = 0; i < found_dense.size(); ++i)
        ASSERT_NEAR(found_dense[i], elements.w[i], 1e-12) << to_string(rule);
    }
}

}  // namespace
}  // namespace tercel::optim
