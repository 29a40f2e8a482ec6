#include "tercel/ops/nn/softmax.h"

#include "tercel/autograd/autograd.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/views/views.h"
#include "tercel/util/parallel.h"
#include "tests/ops/conformance.h"
#include "tests/ops/nn/softmax_rows.h"
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

TEST(Softmax, LongColumnsWhoseMaximumComesLate) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  constexpr int64_t kRows = 700, kColumns = 301, kKinds = 10;
  for (const ScalarType t : {kFloat32, kFloat64, kBFloat16}) {
    std::vector<double> values;
    for (int64_t r = 0; r < kRows; ++r)
      for (int64_t c = 0; c < kColumns; ++c) {
        const double up = static_cast<double>(r) / 64, wave = static_cast<double>((r * 7 + c) % 13) / 4;
        const double kinds[kKinds] = {up,
                                      -up,
                                      wave - 300,
                                      r < 300 ? -inf : wave - 200,
                                      64 * up,
                                      wave,
                                      -inf,
                                      r == 650 ? inf : wave,
                                      r == 9 ? nan : up,
                                      r == 699 ? 500 : wave};
        values.push_back(kinds[c % kKinds]);
      }
    const Tensor x = make({kRows, kColumns}, t, values);
    for (const bool log : {false, true}) {
      const auto of = [log](const Tensor& input, int64_t dim) {
        return log ? log_softmax(input, dim) : softmax(input, dim);
      };
      const std::vector<double> got = values_of(of(x, 0)), want = values_of(transpose(of(transpose(x, 0, 1), 1), 0, 1));
      const double tolerance = t == kFloat64 ? 1e-14 : t == kFloat32 ? 2e-6 : 1e-2;
      for (size_t i = 0; i < want.size(); ++i) {
        const int64_t kind = static_cast<int64_t>(i) % kColumns % kKinds;
        if (std::isnan(want[i])) {
          ASSERT_TRUE(std::isnan(got[i]) && kind >= 6 && kind <= 8) << i;
        } else if (got[i] != want[i]) {
          ASSERT_NEAR(got[i], want[i], tolerance * std::abs(want[i]) + (log ? tolerance : 1e-40))
              << to_string(t) << " " << i;
        }
      }
    }
  }
}

TEST(Softmax, ResultsBeyondTheCachesHaveTheSameBits) {
  // 36 MB; lines begin anywhere in a cache line.
  const Tensor x = random({9001, 1007}, kFloat32, -4, 4, 7), g = random({9001, 1007}, kFloat32, -1, 1, 8);
  for (const bool log : {false, true}) {
    for (const int64_t dim : {0, 1}) {
      const auto both = [log, dim](const Tensor& input, const Tensor& gradient) {
        Tensor leaf = contiguous(input).detach();
        leaf.requires_grad_();
        const Tensor out = log ? log_softmax(leaf, dim) : softmax(leaf, dim);
        return std::vector<Tensor>{
            out.detach(), grad(Span<Tensor>(&out, 1), Span<Tensor>(&leaf, 1), Span<Tensor>(&gradient, 1))[0].values};
      };
      const auto part = [dim](const Tensor& t) { return narrow(t, 1 - dim, 100, 700); };
      const std::vector<Tensor> whole = both(x, g), some = both(part(x), contiguous(part(g)));
      for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(bytes_of(part(whole[i])) == bytes_of(some[i])) << log << dim << i;
    }
  }
}

TEST(Softmax, RowsOfEveryLength) {
  for (const ScalarType t : {kFloat32, kFloat64}) {
    for (const int64_t n : {1, 2, 7, 8, 9, 15, 16, 17, 31, 100, 129, 1000, 20'000}) {
      const Tensor x = random({n > 1000 ? 3 : 37, n}, t, -5, 5, static_cast<uint64_t>(n));
      for (const bool log : {false, true}) {
        const std::vector<double> want = values_of(softmax_reference(x, 1, log));
        const std::vector<double> got = values_of(log ? log_softmax(x, 1) : softmax(x, 1));
        const double tolerance = t == kFloat64 ? 1e-14 : 2e-6;
        for (size_t i = 0; i < want.size(); ++i)
          ASSERT_NEAR(got[i], want[i], tolerance * std::max(1.0, std::abs(want[i]))) << n;
      }
    }
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

}  // namespace tercel::test
