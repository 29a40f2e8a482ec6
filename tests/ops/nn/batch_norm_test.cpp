#include "tercel/ops/nn/batch_norm.h"

#include "tercel/autograd/autograd.h"
#include "tercel/ops/common/copy.h"
#include "tercel/util/parallel.h"
#include "tests/ops/conformance.h"
#include "tests/ops/nn/batch_norm_rows.h"

namespace tercel::test {

INSTANTIATE_TEST_SUITE_P(BatchNorm, Conformance, ::testing::ValuesIn(batch_norm_rows()), row_name);

TEST(BatchNorm, RunningStatisticsMove) {
  const Tensor x = make({2, 1}, kFloat32, {1, 3});
  Tensor mean = make({1}, kFloat32, {10}), var = make({1}, kFloat32, {20});
  BatchNormOptions options;
  options.training = true;
  options.momentum = 0.25;
  batch_norm(x, mean, var, {}, {}, options);
  EXPECT_EQ(values_of(mean), (std::vector<double>{0.75 * 10 + 0.25 * 2}));
  EXPECT_EQ(values_of(var), (std::vector<double>{0.75 * 20 + 0.25 * 2}));
  const uint32_t version = mean.version();
  options.training = false;
  batch_norm(x, mean, var, {}, {}, options);
  EXPECT_EQ(mean.version(), version);
}

TEST(BatchNorm, LargeMeansKeepTheirVariance) {
  // Squares of the elements would lose the variance in float32.
  std::vector<double> values;
  for (int i = 0; i < 3000; ++i) values.push_back(10000 + (i % 2 == 0 ? 1 : -1));
  BatchNormOptions options;
  options.training = true;
  const std::vector<double> got = values_of(batch_norm(make({3000, 1}, kFloat32, values), {}, {}, {}, {}, options));
  EXPECT_NEAR(got[0], 1, 1e-4);
  EXPECT_NEAR(got[1], -1, 1e-4);
}

TEST(BatchNorm, WrongOperands) {
  BatchNormOptions training;
  training.training = true;
  const Tensor x = empty({4, 3}), three = empty({3});
  EXPECT_THROW(batch_norm(x, {}, {}), RuntimeError);
  EXPECT_THROW(batch_norm(empty({1, 3}), {}, {}, {}, {}, training), RuntimeError);
  EXPECT_THROW(batch_norm(empty({4}), {}, {}, {}, {}, training), RuntimeError);
  EXPECT_THROW(batch_norm(x, empty({2}), three), RuntimeError);
  EXPECT_THROW(batch_norm(x, three, three, empty({4})), RuntimeError);
  EXPECT_THROW(batch_norm(empty({4, 3}, kInt64), three, three), RuntimeError);
  EXPECT_EQ(batch_norm(empty({0, 3}), three, three).sizes(), IntSpan({0, 3}));
  EXPECT_EQ(batch_norm(empty({4, 0}), {}, {}, {}, {}, training).sizes(), IntSpan({4, 0}));
  EXPECT_EQ(batch_norm(empty({4, 0, 2}), {}, {}, {}, {}, training).sizes(), IntSpan({4, 0, 2}));
}

namespace {

struct Results {
  Tensor out;
  std::vector<Gradient> gradients;
};

Results run(const Tensor& x, bool training, bool twice) {
  const int64_t channels = x.size(1);
  const Tensor mean = random({channels}, kFloat32, -1, 1, 1), var = random({channels}, kFloat32, 1, 2, 2);
  const Tensor input = x.detach().requires_grad_(), w = random({channels}, x.dtype(), -1, 1, 3).requires_grad_(),
               b = random({channels}, x.dtype(), -1, 1, 4).requires_grad_();
  BatchNormOptions options;
  options.training = training;
  const Tensor out = batch_norm(input, mean, var, w, b, options);
  return {out, grad({out}, {input, w, b}, {random(x.sizes().to_vector(), x.dtype(), -1, 1, 5)}, std::nullopt, twice)};
}

}  // namespace

TEST(BatchNorm, BothOrdersOfMemoryHaveTheSameBits) {
  for (const ScalarType dtype : {kFloat32, kFloat64, kBFloat16})
    for (const Sizes& sizes : {Sizes{2, 70, 61, 70}, Sizes{3, 5, 2, 3}, Sizes{2, 17, 3, 4, 5}})
      for (const bool training : {false, true}) {
        const MemoryFormat format = sizes.size() == 4 ? MemoryFormat::ChannelsLast : MemoryFormat::ChannelsLast3d;
        const Tensor x = random(sizes, dtype, -1, 3, 7);
        const Results first = run(x, training, false), last = run(clone(x, format), training, false);
        EXPECT_TRUE(first.out.is_contiguous());
        EXPECT_TRUE(last.out.is_contiguous(format));
        EXPECT_TRUE(last.gradients[0].values.is_contiguous(format));
        EXPECT_TRUE(bytes_of(first.out) == bytes_of(last.out));
        for (size_t i = 0; i < 3; ++i)
          EXPECT_TRUE(bytes_of(first.gradients[i].values) == bytes_of(last.gradients[i].values)) << i;
      }
}

TEST(BatchNorm, GradientsAreThoseOfOps) {
  for (const Sizes& sizes : {Sizes{200, 37}, Sizes{3, 20, 70, 61}})
    for (const bool training : {false, true}) {
      const Tensor x = random(sizes, kFloat64, -1, 3, 7);
      const Results got = run(x, training, false), want = run(x, training, true);
      for (size_t i = 0; i < 3; ++i) {
        const std::vector<double> a = values_of(got.gradients[i].values), b = values_of(want.gradients[i].values);
        ASSERT_EQ(a.size(), b.size());
        for (size_t j = 0; j < a.size(); ++j) ASSERT_NEAR(a[j], b[j], 1e-9) << i << " " << j;
      }
    }
}

TEST(BatchNormThreads, SameBitsForAnyNumberOfThreads) {
  const int64_t before = num_threads();
  BatchNormOptions options;
  options.training = true;
  const Tensor x = random({600, 700}, kFloat32, -1, 1, 3);
  set_num_threads(1);
  const std::string want = bytes_of(batch_norm(x, {}, {}, {}, {}, options));
  set_num_threads(3);
  EXPECT_TRUE(bytes_of(batch_norm(x, {}, {}, {}, {}, options)) == want);
  set_num_threads(before);
}

}  // namespace tercel::test
