#include "tercel/ops/sort/order_statistics.h"

#include <cmath>
#include <limits>

#include "tercel/autograd/autograd.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/index/gather.h"
#include "tercel/ops/sort/sort.h"
#include "tercel/ops/views/views.h"
#include "tercel/util/parallel.h"
#include "tests/ops/conformance.h"
#include "tests/ops/sort/order_statistics_rows.h"
#include "tests/support/errors.h"
#include "tests/support/gradcheck.h"

namespace tercel::test {

INSTANTIATE_TEST_SUITE_P(OrderStatistics, Conformance, ::testing::ValuesIn(order_statistics_rows()), row_name);

namespace {

using Values = std::vector<double>;
const double kNan = std::numeric_limits<double>::quiet_NaN();

Tensor vector(const Values& values, ScalarType dtype = kFloat32) {
  return make({static_cast<int64_t>(values.size())}, dtype, values);
}

// Three lines of different kinds.
Tensor lines_of(int64_t n, ScalarType t, int kind) {
  const double inf = std::numeric_limits<double>::infinity();
  const double special[] = {0.0, -0.0, 1, -1, is_floating(t) ? kNan : 2, is_floating(t) ? -inf : 3, 0.0};
  Values values;
  for (int64_t i = 0; i < n; ++i) values.push_back(kind == 0 ? 1 : special[(i * i + i / 3) % 7]);
  for (int64_t i = 0; i < n; ++i) values.push_back(static_cast<double>(kind == 0 ? i % 113 : (n - i) % 100));
  for (const double v : values_of(random({n}, t, -100, 100, static_cast<uint64_t>(n + kind)))) values.push_back(v);
  return make({3, n}, t, values);
}

std::vector<double> gradient_of(const Tensor& out, const Tensor& x) {
  return values_of(grad(Span<Tensor>(&out, 1), Span<Tensor>(&x, 1))[0].values);
}

}  // namespace

TEST(OrderStatistics, TopkOfManyShortLines) {
  for (const ScalarType t : {kFloat32, kFloat64, kBFloat16, kInt64, kInt32, kUInt8}) {
    for (const int64_t n : {1, 3, 10, 64, 256, 257}) {
      // Lines of special values, of only the type's lowest number, and of few different numbers.
      Values values;
      for (int64_t line = 0; line < 37; ++line)
        for (const double v : values_of(select(lines_of(n, t, line % 3 == 0 ? 1 : 0), 0, line % 3)))
          values.push_back(v);
      const Tensor x = make({37, n}, t, values);
      if (is_integral(t, false))
        fill_(select(x, 0, 5), t == kInt64 ? Scalar(std::numeric_limits<int64_t>::min()) : Scalar(0));
      for (const bool largest : {false, true}) {
        const ValuesAndIndices all = sort(x, 1, largest);
        for (const int64_t k : {1, 2, 3, 4, 5, 8, 10, 11}) {
          if (k > n) continue;
          const ValuesAndIndices top = topk(x, k, 1, largest);
          ASSERT_EQ(values_of(top.indices), values_of(narrow(all.indices, 1, 0, k)))
              << to_string(t) << " " << n << " " << k;
          ASSERT_EQ(bytes_of(top.values), bytes_of(contiguous(narrow(all.values, 1, 0, k))));
        }
      }
    }
  }
}

TEST(OrderStatistics, TopkIsTheBeginOfAStableSort) {
  for (const ScalarType t : all_types()) {
    const Tensor x = random({3000}, t, -5, 5, 7);
    for (const bool largest : {false, true}) {
      const ValuesAndIndices all = sort(x, 0, largest);
      for (const int64_t k : {0, 1, 2, 100, 1500, 3000}) {
        const ValuesAndIndices top = topk(x, k, 0, largest);
        ASSERT_EQ(values_of(top.indices), values_of(narrow(all.indices, 0, 0, k))) << to_string(t) << " " << k;
        ASSERT_EQ(bytes_of(top.values), bytes_of(narrow(all.values, 0, 0, k)));
      }
    }
  }
}

TEST(OrderStatistics, TopkOfLinesOfEveryLength) {
  for (const ScalarType t : {kFloat32, kFloat64, kBFloat16, kInt64, kUInt8}) {
    for (const int64_t n : {1, 2, 15, 16, 17, 33, 63, 64, 65, 127, 128, 129, 300, 1000, 4095, 4096, 4097, 9000}) {
      for (const int kind : {0, 1}) {
        const Tensor x = lines_of(n, t, kind);
        for (const bool largest : {false, true}) {
          const ValuesAndIndices all = sort(x, 1, largest);
          for (const int64_t k : {1, 2, 3, 10, 31, 33, 100, 128, 129, 500, 1100}) {
            if (k > n) continue;
            SCOPED_TRACE(::testing::Message() << to_string(t) << " " << k << " of " << n << ", kind " << kind);
            const ValuesAndIndices top = topk(x, k, 1, largest);
            ASSERT_EQ(values_of(top.indices), values_of(narrow(all.indices, 1, 0, k)));
            ASSERT_EQ(bytes_of(top.values), bytes_of(narrow(all.values, 1, 0, k)));
            const ValuesAndIndices unsorted = topk(x, k, 1, largest, false);
            ASSERT_EQ(values_of(sort(unsorted.indices, 1).values), values_of(sort(top.indices, 1).values));
            ASSERT_EQ(bytes_of(gather(x, 1, unsorted.indices)), bytes_of(unsorted.values));
          }
        }
      }
    }
  }
}

TEST(OrderStatistics, RanksInLinesOfEveryLength) {
  for (const ScalarType t : {kFloat32, kFloat64, kFloat16, kInt64, kInt32, kBool}) {
    for (const int64_t n : {1, 2, 16, 17, 127, 128, 129, 1000, 8192, 8193, 20'000}) {
      for (const int kind : {0, 1}) {
        const Tensor x = lines_of(n, t, kind);
        const ValuesAndIndices all = sort(x, 1);
        for (const int64_t k : {int64_t{1}, int64_t{2}, n / 3, n - 1, n}) {
          if (k < 1 || k > n) continue;
          SCOPED_TRACE(::testing::Message() << to_string(t) << " " << k << " of " << n << ", kind " << kind);
          const ValuesAndIndices got = kthvalue(x, k, 1);
          ASSERT_EQ(values_of(got.indices), values_of(select(all.indices, 1, k - 1)));
          ASSERT_EQ(bytes_of(got.values), bytes_of(select(all.values, 1, k - 1)));
        }
        const Values columns = values_of(median(transpose(x, 0, 1), 0).values), rows = values_of(median(x, 1).values);
        for (const int64_t line : {0, 1, 2}) {
          const Values sorted = values_of(select(all.values, 0, line));
          const double want = std::isnan(sorted.back()) ? kNan : sorted[static_cast<size_t>((n - 1) / 2)];
          for (const Values& got : {columns, rows}) {
            const double value = got[static_cast<size_t>(line)];
            ASSERT_TRUE(value == want || (std::isnan(value) && std::isnan(want))) << value << " for " << want;
          }
        }
      }
    }
  }
}

TEST(OrderStatisticsThreads, SameForAnyNumberOfThreads) {
  const int64_t before = num_threads();
  const Tensor x = random({40, 3000}, kFloat32, -1, 1, 9);
  std::vector<std::string> got;
  for (const int64_t threads : {1, 3}) {
    set_num_threads(threads);
    got.push_back(bytes_of(topk(x, 20).indices) + bytes_of(topk(x, 300).indices) + bytes_of(kthvalue(x, 77).indices) +
                  bytes_of(mode(x, 1).indices));
  }
  set_num_threads(before);
  EXPECT_EQ(got[0], got[1]);
}

TEST(OrderStatistics, TopkSpecialValues) {
  const Tensor x = vector({1, kNan, 3, -kNan, 2});
  EXPECT_EQ(values_of(topk(x, 3).indices), (Values{1, 3, 2}));
  EXPECT_EQ(values_of(topk(x, 3, 0, false).indices), (Values{0, 4, 2}));
  EXPECT_EQ(topk(scalar_tensor(4.5), 1).values.item<double>(), 4.5);
  EXPECT_EQ(topk(zeros({2, 0}), 0).values.sizes().to_vector(), (Sizes{2, 0}));
  EXPECT_EQ(topk(zeros({0, 3}), 2).values.sizes().to_vector(), (Sizes{0, 2}));
  EXPECT_EQ(message_of<RuntimeError>([] { topk(zeros({3}), 4); }), "selected index k out of range");
  EXPECT_EQ(message_of<RuntimeError>([] { topk(zeros({3}), -1); }), "selected index k out of range");
}

TEST(OrderStatistics, KthvalueErrors) {
  EXPECT_EQ(message_of<RuntimeError>([] {
              kthvalue(zeros({2, 3}), 4);
            }),
            "kthvalue(): selected number k out of range for dimension 1");
  EXPECT_EQ(message_of<RuntimeError>([] {
              kthvalue(zeros({2, 3}), 0, 0);
            }),
            "kthvalue(): selected number k out of range for dimension 0");
  EXPECT_EQ(message_of<IndexError>([] {
              kthvalue(zeros({2, 0}), 1);
            }),
            "kthvalue(): Expected reduction dim 1 to have non-zero size.");
  EXPECT_EQ(kthvalue(scalar_tensor(4.5), 1).indices.dim(), 0);
}

TEST(OrderStatistics, MedianWithNan) {
  const Tensor x = make({2, 4}, kFloat32, {4, kNan, 1, kNan, 3, 1, 2, 5});
  const ValuesAndIndices rows = median(x, 1);
  EXPECT_TRUE(std::isnan(values_of(rows.values)[0]));
  EXPECT_EQ(values_of(rows.indices), (Values{1, 2}));
  EXPECT_EQ(values_of(nanmedian(x, 1).values), (Values{1, 2}));
  EXPECT_TRUE(std::isnan(median(x).item<double>()));
  EXPECT_EQ(nanmedian(x).item<double>(), 2);
  EXPECT_TRUE(std::isnan(nanmedian(vector({kNan, kNan})).item<double>()));
  EXPECT_TRUE(std::isnan(median(zeros({0})).item<double>()));
  EXPECT_EQ(median(vector({3, 1, 2, 4}, kInt32)).item<int64_t>(), 2);
  EXPECT_EQ(message_of<IndexError>([] {
              median(zeros({0, 2}), 0);
            }),
            "median(): Expected reduction dim 0 to have non-zero size.");
}

TEST(OrderStatistics, MedianGradients) {
  Tensor x = vector({2, 1, 2, 7, 2}, kFloat64);
  x.requires_grad_();
  EXPECT_EQ(gradient_of(median(x), x), (Values{1 / 3., 0, 1 / 3., 0, 1 / 3.}));
  EXPECT_EQ(gradient_of(median(x, 0).values, x), (Values{0, 0, 1, 0, 0}));
}

TEST(OrderStatistics, ModeTakesTheSmallestAndItsLastPlace) {
  const ValuesAndIndices got = mode(vector({3, 1, 3, 1, 2}));
  EXPECT_EQ(got.values.item<double>(), 1);
  EXPECT_EQ(got.indices.item<int64_t>(), 3);
  EXPECT_EQ(mode(make({2, 3}, kInt64, {5, 5, 1, 0, 0, 9}), 1, true).values.sizes().to_vector(), (Sizes{2, 1}));
  TERCEL_EXPECT_THROW(mode(zeros({0})), IndexError, "mode(): Expected reduction dim 0 to have non-zero size.");
}

TEST(OrderStatistics, QuantileInterpolations) {
  const Tensor x = vector({4, 1, 3, 2}, kFloat64);
  EXPECT_DOUBLE_EQ(quantile(x, 0.4).item<double>(), 2.2);
  EXPECT_EQ(quantile(x, 0.4, {}, false, "lower").item<double>(), 2);
  EXPECT_EQ(quantile(x, 0.4, {}, false, "higher").item<double>(), 3);
  EXPECT_EQ(quantile(x, 0.4, {}, false, "midpoint").item<double>(), 2.5);
  EXPECT_EQ(quantile(x, 0.4, {}, false, "nearest").item<double>(), 2);
  EXPECT_EQ(quantile(x, 0.5, {}, false, "nearest").item<double>(), 3);  // rank 1.5: ties to even
}

TEST(OrderStatistics, QuantileShapesAndNan) {
  const Tensor x = make({2, 3}, kFloat64, {1, 2, 3, 4, kNan, 8}), q = vector({0, 0.5, 1}, kFloat64);
  const Tensor rows = quantile(x, q, 1);
  EXPECT_EQ(rows.sizes().to_vector(), (Sizes{3, 2}));
  EXPECT_EQ(values_of(select(rows, 1, 0)), (Values{1, 2, 3}));
  EXPECT_TRUE(std::isnan(values_of(select(rows, 1, 1))[0]));
  EXPECT_EQ(values_of(nanquantile(x, q, 1)), (Values{1, 4, 2, 6, 3, 8}));
  EXPECT_EQ(quantile(x, q, 0, true).sizes().to_vector(), (Sizes{3, 1, 3}));
  EXPECT_EQ(quantile(x, q, {}, true).sizes().to_vector(), (Sizes{3, 1, 1}));
  EXPECT_EQ(quantile(x, 0.5, {}, true).sizes().to_vector(), (Sizes{1, 1}));
  EXPECT_EQ(quantile(x, 0.5, 0).sizes().to_vector(), (Sizes{3}));
  EXPECT_EQ(quantile(scalar_tensor(3.5), 0.5).item<double>(), 3.5);
  EXPECT_TRUE(std::isnan(nanquantile(vector({kNan, kNan}), 0.5).item<double>()));
}

TEST(OrderStatistics, QuantileErrors) {
  const Tensor x = zeros({3});
  EXPECT_EQ(message_of<RuntimeError>([] { quantile(zeros({0}), 0.5); }), "quantile() input tensor must be non-empty");
  EXPECT_EQ(message_of<RuntimeError>([&] {
              quantile(x, zeros({2, 2}));
            }),
            "quantile() q must be a scalar or 1D tensor");
  EXPECT_EQ(message_of<RuntimeError>([] { quantile(vector({1}, kInt64), 0.5); }),
            "quantile() input tensor must be either float or double dtype");
  EXPECT_EQ(message_of<RuntimeError>([&] { quantile(x, vector({0.5}, kFloat64)); }),
            "quantile() q tensor must be same dtype as the input tensor");
  EXPECT_EQ(message_of<RuntimeError>([&] { quantile(x, 1.5); }),
            "quantile() q must be in the range [0, 1] but got 1.5");
  EXPECT_EQ(message_of<RuntimeError>([&] { quantile(x, vector({1.5}, kFloat32)); }),
            "quantile() q values must be in the range [0, 1]");
  EXPECT_EQ(message_of<RuntimeError>([&] { quantile(x, 0.5, {}, false, "cubic"); }),
            "quantile() interpolation must be one of linear, lower, higher, midpoint or nearest, but got cubic");
}

}  // namespace tercel::test
