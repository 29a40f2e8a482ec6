#include "tercel/ops/norm.h"

#include "tercel/ops/factories.h"
#include "tercel/ops/views.h"
#include "tests/ops/conformance.h"
#include "tests/ops/norm_rows.h"
#include "tests/support/errors.h"

namespace tercel::test {

INSTANTIATE_TEST_SUITE_P(Norm, Conformance, ::testing::ValuesIn(norm_rows()), row_name);

TEST(Norm, LargeOffsetsKeepTheirVariance) {
  Tensor x = empty({1, 1000});
  for (int64_t i = 0; i < 1000; ++i) x.data<float>()[i] = 4096.0f + static_cast<float>(i % 2);
  for (const double v : values_of(layer_norm(x, {1000}))) EXPECT_NEAR(std::abs(v), 1, 1e-4);
}

TEST(InstanceNorm, RunningStatisticsMove) {
  const Tensor x = random({3, 2, 50}, kFloat32, 2, 4, 1), mean = zeros({2}), var = ones({2});
  instance_norm(x, mean, var, {}, {}, true, 0.5);
  for (const double v : values_of(mean)) EXPECT_NEAR(v, 1.5, 0.1);
  for (const double v : values_of(var)) EXPECT_NEAR(v, 0.5 + 0.5 / 3, 0.05);
  const std::vector<double> fixed = values_of(instance_norm(x, mean, var, {}, {}, false)), from = values_of(x);
  EXPECT_NEAR(fixed[0], (from[0] - values_of(mean)[0]) / std::sqrt(values_of(var)[0] + 1e-5), 1e-4);
}

TEST(Norm, Errors) {
  const Tensor x = zeros({2, 3});
  TERCEL_EXPECT_THROW(layer_norm(x, {4}), RuntimeError,
                      "Given normalized_shape=[4], expected input with shape [*, 4], but got input of size[2, 3]");
  TERCEL_EXPECT_THROW(layer_norm(x, {3}, zeros({4})), RuntimeError,
                      "Expected weight to be of same shape as normalized_shape, but got weight of shape [4]");
  TERCEL_EXPECT_THROW(layer_norm(x, {}), RuntimeError, "Expected normalized_shape to be at least 1-dimensional");
  TERCEL_EXPECT_THROW(layer_norm(zeros({2, 3}, kInt64), {3}), NotImplementedError, "not implemented for");
  TERCEL_EXPECT_THROW(
      group_norm(zeros({2, 3, 4}), 2), RuntimeError,
      "Expected number of channels in input to be divisible by num_groups, but got input of shape [2, 3, "
      "4] and num_groups=2");
  TERCEL_EXPECT_THROW(group_norm(x, 0), RuntimeError, "greater than 0");
  EXPECT_EQ(layer_norm(empty({0, 3}), {3}).sizes(), IntSpan({0, 3}));
  EXPECT_EQ(group_norm(empty({0, 4, 2}), 2).sizes(), IntSpan({0, 4, 2}));
}

}  // namespace tercel::test
