#include "tercel/ops/reduce/histogram.h"

#include <cfloat>
#include <cmath>
#include <limits>

#include "tercel/ops/factories/factories.h"
#include "tercel/ops/sort/search.h"
#include "tercel/util/parallel.h"
#include "tests/ops/conformance.h"
#include "tests/ops/reduce/histogram_rows.h"
#include "tests/support/errors.h"

namespace tercel::test {

INSTANTIATE_TEST_SUITE_P(Histogram, Conformance, ::testing::ValuesIn(histogram_rows()), row_name);

namespace {

using Values = std::vector<double>;
const double kNan = std::numeric_limits<double>::quiet_NaN();
const double kInf = std::numeric_limits<double>::infinity();

Tensor vector(const Values& values, ScalarType dtype = kFloat32) {
  return make({static_cast<int64_t>(values.size())}, dtype, values);
}

}  // namespace

TEST(Histogram, Bincount) {
  EXPECT_EQ(values_of(bincount(vector({4, 3, 6, 3, 4}, kInt32))), (Values{0, 0, 0, 2, 2, 0, 1}));
  EXPECT_EQ(bincount(vector({1}, kInt64), vector({0.5})).dtype(), kFloat32);
  EXPECT_EQ(bincount(vector({1}, kInt64), vector({5}, kInt32)).dtype(), kFloat64);
  EXPECT_EQ(values_of(bincount(zeros({0}, kInt64), {}, 2)), (Values{0, 0}));
  for (const Tensor& x : {vector({-1}, kInt64), zeros({2, 2}, kInt64)})
    EXPECT_EQ(message_of<RuntimeError>([&] { bincount(x); }),
              "bincount only supports 1-d non-negative integral inputs.");
  EXPECT_EQ(message_of<RuntimeError>([] { bincount(vector({1}, kInt64), zeros({2})); }),
            "weights should be 1-d and have the same length as input");
  EXPECT_EQ(message_of<RuntimeError>([] { bincount(vector({1}, kInt64), {}, -1); }), "minlength should be >= 0");
  EXPECT_THROW(bincount(vector({1})), NotImplementedError);
  EXPECT_THROW(bincount(full({1}, INT64_MAX)), RuntimeError);
}

TEST(Histogram, Histc) {
  EXPECT_EQ(values_of(histc(vector({1, 2, 1}), 4, 0, 3)), (Values{0, 2, 1, 0}));
  EXPECT_EQ(values_of(histc(vector({1, 5, 3, kNan, 9}), 2, 1, 5)), (Values{1, 2}));
  EXPECT_EQ(values_of(histc(vector({2, 2}), 2)), (Values{0, 2}));
  EXPECT_EQ(values_of(histc(vector({1, 5, 3}), 2)), (Values{1, 2}));
  EXPECT_EQ(values_of(histc(zeros({0}), 2)), (Values{0, 0}));
  EXPECT_EQ(message_of<RuntimeError>([] { histc(zeros({2}), 2, 3, 1); }),
            "histc(): max must be larger than min, but got min 3 and max 1");
  TERCEL_EXPECT_THROW(histc(vector({1, kInf}), 2), RuntimeError, "is not finite");
  TERCEL_EXPECT_THROW(histc(zeros({2}), 0), RuntimeError, "bins must be > 0");
  EXPECT_THROW(histc(vector({1}, kInt64)), NotImplementedError);
}

TEST(Histogram, HistcOfExtremeRanges) {
  for (const ScalarType dtype : {kFloat32, kFloat64}) {
    SCOPED_TRACE(to_string(dtype));
    const double largest = dtype == kFloat32 ? 3.4028234663852886e38 : DBL_MAX;
    EXPECT_EQ(values_of(histc(vector({0, 1e-40, 2e-40}, dtype), 3)), (Values{1, 1, 1}));
    EXPECT_EQ(values_of(histc(vector({0, 0.6 * largest, largest}, dtype), 4)), (Values{1, 0, 1, 1}));
    EXPECT_EQ(values_of(histc(vector({-largest, -0.9 * largest, 0, largest}, dtype), 4)), (Values{2, 0, 1, 1}));
    EXPECT_EQ(values_of(histc(vector({-kInf, kInf, kNan, 1}, dtype), 2, -largest, largest)), (Values{0, 1}));
    // Too narrow for the dtype: the values in it are all the same.
    EXPECT_EQ(values_of(histc(vector({1e20, 1e20}, dtype), 4)), (Values{0, 0, 2, 0}));
  }
  EXPECT_EQ(values_of(histc(vector({0, 1, 0}), 3, 0, 1e-50)), (Values{2, 0, 0}));
  EXPECT_EQ(values_of(histc(vector({2, 1, 3}), 3, 2, 2.00000000001)), (Values{1, 0, 0}));
  EXPECT_EQ(values_of(histc(vector({1e10, 2}), 4, 1e10 - 1, 1e10 + 1)), (Values{0, 0, 1, 0}));
  TERCEL_EXPECT_THROW(histc(vector({1, 2}), 3, 0, 1e300), RuntimeError, "cannot be converted to type float");
}

// The largest x of one bin is the smallest of the next, whichever way a quotient is rounded.
TEST(Histogram, HistcAtTheEdgesOfBins) {
  const Tensor x = linspace(0.1, 1.3, 61, TensorOptions(kFloat32));
  const std::vector<double> values = values_of(x);
  Values want(60, 0);
  const float low = 0.1f, high = 1.3f;
  for (const double value : values) {
    const float part = (static_cast<float>(value) - low) * 60.0f / (high - low);
    ++want[static_cast<size_t>(std::min(part, 59.0f))];
  }
  EXPECT_EQ(values_of(histc(x, 60, 0.1, 1.3)), want);
}

TEST(Histogram, EdgesWeightsAndDensity) {
  const Tensor x = vector({1, 2, 1, 4});
  const Histogram plain = histogram(x, vector({0, 1, 2, 4}));
  EXPECT_EQ(values_of(plain.hist), (Values{0, 2, 2}));
  EXPECT_EQ(values_of(plain.bin_edges), (Values{0, 1, 2, 4}));
  EXPECT_EQ(values_of(histogram(x, vector({0, 1, 2, 4}), vector({1, 10, 2, 3})).hist), (Values{0, 3, 13}));
  EXPECT_EQ(values_of(histogram(x, vector({0, 1, 2, 4}), {}, true).hist), (Values{0, 0.5, 0.25}));
  EXPECT_EQ(values_of(histogram(x, 3).bin_edges), (Values{1, 2, 3, 4}));
  EXPECT_EQ(values_of(histogram(x, 3).hist), (Values{2, 1, 1}));
  TERCEL_EXPECT_THROW(histogram(x, 0), RuntimeError, "bins must be > 0");
  TERCEL_EXPECT_THROW(histogram(x, 2, std::pair<double, double>{3, 1}), RuntimeError, "min should not exceed max");
}

TEST(HistogramThreads, SameForAnyNumber) {
  const int64_t before = num_threads();
  const Tensor x = random({300'000}, kInt64, 0, 999, 1), y = random({300'000}, kFloat32, -1, 1, 2);
  set_num_threads(1);
  const std::string want = bytes_of(bincount(x)) + bytes_of(histc(y)) + bytes_of(bucketize(y, vector({-0.5, 0, 0.5})));
  for (const int64_t threads : {2, 5}) {
    set_num_threads(threads);
    EXPECT_TRUE(bytes_of(bincount(x)) + bytes_of(histc(y)) + bytes_of(bucketize(y, vector({-0.5, 0, 0.5}))) == want);
  }
  set_num_threads(before);
}

TEST(HistogramDd, CountsPointsInBoxes) {
  const Tensor points = make({4, 2}, kFloat64, {0, 1, 2, 1, 2, 3, 9, 9});
  const HistogramDd even = histogramdd(points, {2, 1}, {0.0, 2.0, 1.0, 3.0});
  EXPECT_EQ(even.hist.sizes(), IntSpan({2, 1}));
  EXPECT_EQ(values_of(even.hist), (std::vector<double>{1, 2}));
  EXPECT_EQ(values_of(even.bin_edges[0]), (std::vector<double>{0, 1, 2}));
  EXPECT_EQ(values_of(even.bin_edges[1]), (std::vector<double>{1, 3}));
  EXPECT_EQ(bytes_of(histogramdd(points, 2).hist), bytes_of(histogramdd(points, {2, 2}).hist));
  EXPECT_EQ(values_of(histogramdd(points, 1).hist), (std::vector<double>{4}));
}

TEST(HistogramDd, WeightsAndDensity) {
  const Tensor points = make({2, 2, 2}, kFloat64, {0.5, 0.5, 1.5, 0.5, 1.5, 0.5, 3, 0.5}),
               weight = make({2, 2}, kFloat64, {1, 2, 4, 8});
  const std::vector<Tensor> edges{make({3}, kFloat64, {0, 1, 2}), make({2}, kFloat64, {0, 4})};
  EXPECT_EQ(values_of(histogramdd(points, edges, weight).hist), (std::vector<double>{1, 6}));
  // Of 7, in boxes of 1 x 4.
  EXPECT_EQ(values_of(histogramdd(points, edges, weight, true).hist), (std::vector<double>{1.0 / 4 / 7, 6.0 / 4 / 7}));
  EXPECT_EQ(values_of(histogramdd(empty({0, 2}), 1).bin_edges[0]), (std::vector<double>{0, 1}));
}

TEST(HistogramDd, Errors) {
  const Tensor points = ones({3, 2});
  TERCEL_EXPECT_THROW(histogramdd(ones({3}), 2), RuntimeError, "at least 2 dimensions, but got 1");
  TERCEL_EXPECT_THROW(histogramdd(points, IntSpan({2})), RuntimeError, "expected 2 sequences of bin edges");
  TERCEL_EXPECT_THROW(histogramdd(points, 2, {0.0, 1.0}), RuntimeError, "range should have 4 elements, but got 2");
  TERCEL_EXPECT_THROW(histogramdd(points, 2, {1.0, 0.0, 0.0, 1.0}), RuntimeError, "min should not exceed max");
  TERCEL_EXPECT_THROW(histogramdd(points, {2, 0}), RuntimeError, "bins must be > 0");
  TERCEL_EXPECT_THROW(histogramdd(arange(4).view({2, 2}), 2), NotImplementedError, "not implemented for 'Long'");
  TERCEL_EXPECT_THROW(histogramdd(points, {ones({1}), ones({2})}), RuntimeError, "at least 2 bin edges");
}

}  // namespace tercel::test
