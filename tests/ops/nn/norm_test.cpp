#include "tercel/ops/nn/norm.h"

#include <functional>

#include "tercel/autograd/autograd.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/views/views.h"
#include "tercel/util/parallel.h"
#include "tests/ops/conformance.h"
#include "tests/ops/nn/norm_rows.h"
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

namespace {

/** Gradients by the kernel and, with create_graph, by ops. */
void expect_same_gradients(const std::vector<Tensor>& inputs, const std::function<Tensor()>& run) {
  const Tensor out = run(), weight = random(out.sizes().to_vector(), out.dtype(), -1, 1, 9);
  const std::vector<Gradient> want = grad({out}, inputs, {weight}, std::nullopt, true),
                              got = grad({run()}, inputs, {weight});
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::vector<double> a = values_of(got[i].values), b = values_of(want[i].values);
    ASSERT_EQ(a.size(), b.size());
    for (size_t j = 0; j < a.size(); ++j) ASSERT_NEAR(a[j], b[j], 1e-10) << i << " " << j;
  }
}

Tensor leaf(const Sizes& sizes, uint64_t seed) { return random(sizes, kFloat64, -1, 1, seed).requires_grad_(); }

}  // namespace

TEST(Norm, GradientsOverManyRows) {
  const Tensor x = leaf({301, 37}, 1), w = leaf({37}, 2), b = leaf({37}, 3);
  expect_same_gradients({x, w, b}, [&] { return layer_norm(x, {37}, w, b); });
  expect_same_gradients({w, b}, [&] { return layer_norm(x, {37}, w, b); });
  expect_same_gradients({x, b}, [&] { return layer_norm(x, {37}, {}, b); });
  expect_same_gradients({x}, [&] { return layer_norm(x, {37}); });
  expect_same_gradients({x, w}, [&] { return rms_norm(x, {37}, w); });
  expect_same_gradients({x}, [&] { return rms_norm(x, {37}); });
  // Groups of each sample, with one element per channel and with several.
  const Tensor matrix = leaf({300, 12}, 4), images = leaf({9, 12, 5, 7}, 5), scale = leaf({12}, 6),
               shift = leaf({12}, 7);
  for (const Tensor& t : {matrix, images}) {
    expect_same_gradients({t, scale, shift}, [&] { return group_norm(t, 3, scale, shift); });
    expect_same_gradients({t, shift}, [&] { return group_norm(t, 3, {}, shift); });
    expect_same_gradients({scale}, [&] { return group_norm(t, 3, scale); });
  }
}

TEST(NormThreads, SameBitsForAnyNumberOfThreads) {
  const int64_t before = num_threads();
  const Tensor x = random({3001, 70}, kFloat32, -1, 1, 1).requires_grad_(),
               w = random({70}, kFloat32, -1, 1, 2).requires_grad_(), g = random({3001, 70}, kFloat32, -1, 1, 3);
  std::vector<std::string> bytes;
  for (const int64_t threads : {1, 3}) {
    set_num_threads(threads);
    const Tensor out = layer_norm(x, {70}, w);
    const std::vector<Gradient> got = grad({out}, {x, w}, {g});
    bytes.push_back(bytes_of(out) + bytes_of(got[0].values) + bytes_of(got[1].values));
  }
  set_num_threads(before);
  EXPECT_TRUE(bytes[0] == bytes[1]);
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
