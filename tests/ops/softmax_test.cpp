#include "tercel/ops/softmax.h"

#include "tercel/ops/copy.h"
#include "tercel/util/parallel.h"
#include "tests/ops/conformance.h"
#include "tests/ops/softmax_rows.h"
#include "tests/support/errors.h"

namespace tercel::test {

INSTANTIATE_TEST_SUITE_P(Softmax, Conformance, ::testing::ValuesIn(softmax_rows()), row_name);

TEST(Softmax, LargeAndInfiniteNumbers) {
  const double inf = std::numeric_limits<double>::infinity();
  const Tensor x = make({2, 3}, kFloat32, {1e4, 1e4, -1e4, -inf, 0, -inf});
  EXPECT_EQ(values_of(softmax(x, 1)), (std::vector<double>{0.5, 0.5, 0, 0, 1, 0}));
  EXPECT_EQ(values_of(softmax(make({3, 1}, kFloat32, {-inf, 0, -inf}), 0)), (std::vector<double>{0, 1, 0}));
  const std::vector<double> logs = values_of(log_softmax(x, 1));
  EXPECT_NEAR(logs[0], -0.6931472, 1e-3);
  EXPECT_EQ(logs[3], -inf);
  EXPECT_EQ(logs[4], 0);
  for (const double v : values_of(softmax(make({2, 2}, kFloat32, {0, std::nan(""), 0, 1}), 1))) {
    static int i = 0;
    EXPECT_EQ(std::isnan(v), i++ < 2);
  }
}

TEST(Softmax, LongDimensionsAddUpToOne) {
  for (const int64_t dim : {0, 1}) {
    const Tensor x = random(dim == 0 ? Sizes{40'000, 21} : Sizes{3, 100'000}, kFloat32, -1, 1, 3);
    const std::vector<double> want = values_of(softmax_reference(x, dim, false)), got = values_of(softmax(x, dim));
    for (size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i], want[i], 1e-6 * want[i]) << i;
  }
}

TEST(Softmax, EmptyAndWithoutDimensions) {
  EXPECT_EQ(softmax(empty({0, 3}), 0).sizes(), IntSpan({0, 3}));
  EXPECT_EQ(softmax(empty({3, 0}), 1).sizes(), IntSpan({3, 0}));
  EXPECT_EQ(values_of(softmax(make({}, kFloat32, {7}), 0)), (std::vector<double>{1}));
  EXPECT_THROW(softmax(make({2}, kInt64, {1, 2}), 0), RuntimeError);
  EXPECT_THROW(softmax(empty({2}), 1), IndexError);
}

TEST(SoftmaxThreads, SameBitsForAnyNumberOfThreads) {
  const int64_t before = num_threads();
  const Tensor x = random({300, 500}, kFloat32, -3, 3, 5);
  set_num_threads(1);
  const std::string rows = bytes_of(softmax(x, 1)), columns = bytes_of(softmax(x, 0));
  set_num_threads(3);
  EXPECT_EQ(bytes_of(softmax(x, 1)), rows);
  EXPECT_EQ(bytes_of(softmax(x, 0)), columns);
  set_num_threads(before);
}

TEST(Softmax, InAnotherDtype) {
  EXPECT_EQ(softmax(make({2}, kInt64, {1, 1}), 0, kFloat64).dtype(), kFloat64);
  EXPECT_EQ(values_of(softmax(make({2}, kInt64, {1, 1}), 0, kFloat32)), (std::vector<double>{0.5, 0.5}));
  EXPECT_EQ(log_softmax(make({2}, kFloat16, {1, 1}), 0, kFloat32).dtype(), kFloat32);
  EXPECT_EQ(message_of<NotImplementedError>([] {
              softmax(make({2}, kInt64, {1, 1}), 0);
            }),
            "\"softmax_lastdim_kernel_impl\" not implemented for 'Long'");
}

TEST(Softmax, LogSumExpOfInfinities) {
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(values_of(logsumexp(make({2, 2}, kFloat64, {-inf, -inf, inf, 1}), {1})), (std::vector<double>{-inf, inf}));
  EXPECT_DOUBLE_EQ(logsumexp(make({2}, kFloat64, {1000, 1000}), {0}).item<double>(), 1000 + std::log(2.0));
  EXPECT_EQ(logsumexp(make({0}, kFloat64, {}), {0}).item<double>(), -inf);
  EXPECT_EQ(logsumexp(make({2}, kInt64, {1, 1}), {0}).dtype(), kFloat32);
}

}  // namespace tercel::test
