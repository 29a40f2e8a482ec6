#include "tercel/ops/sort/search.h"

#include <cfloat>
#include <cmath>
#include <limits>

#include "tercel/ops/factories/factories.h"
#include "tercel/ops/reduce/histogram.h"
#include "tercel/ops/reduce/segment_reduce.h"
#include "tercel/util/parallel.h"
#include "tests/ops/conformance.h"
#include "tests/ops/sort/search_rows.h"
#include "tests/support/errors.h"

namespace tercel::test {

INSTANTIATE_TEST_SUITE_P(Search, Conformance, ::testing::ValuesIn(search_rows()), row_name);

namespace {

using Values = std::vector<double>;
const double kNan = std::numeric_limits<double>::quiet_NaN();
const double kInf = std::numeric_limits<double>::infinity();

Tensor vector(const Values& values, ScalarType dtype = kFloat32) {
  return make({static_cast<int64_t>(values.size())}, dtype, values);
}

}  // namespace

TEST(Search, SidesSortersAndSpecialValues) {
  const Tensor s = vector({1, 3, 3, 5});
  EXPECT_EQ(values_of(searchsorted(s, vector({3, 0, 9, kNan}))), (Values{1, 0, 4, 4}));
  EXPECT_EQ(values_of(searchsorted(s, vector({3, 5}), true, false, "right")), (Values{3, 4}));
  EXPECT_EQ(searchsorted(s, vector({3}), true).dtype(), kInt32);
  EXPECT_EQ(searchsorted(s, 3).item<int64_t>(), 1);
  EXPECT_EQ(searchsorted(vector({1, 3, 5}, kInt64), 2.5).item<int64_t>(), 1);
  EXPECT_EQ(bucketize(4, s, false, true).item<int64_t>(), 3);
  const Tensor sorter = vector({2, 0, 1}, kInt64);
  EXPECT_EQ(values_of(searchsorted(vector({5, 7, 1}), vector({6}), false, false, {}, sorter)), (Values{2}));
  EXPECT_EQ(values_of(searchsorted(vector({1, INT32_MAX}, kInt64), vector({2.5}))), (Values{1}));
  EXPECT_EQ(searchsorted(zeros({2, 0}), zeros({2, 3})).sizes().to_vector(), (Sizes{2, 3}));
}

TEST(Search, Errors) {
  const Tensor s = vector({1, 2});
  TERCEL_EXPECT_THROW(searchsorted(s, s, false, true, "left"), RuntimeError,
                      "side and right can't be set to opposites, got side of left while right was True");
  TERCEL_EXPECT_THROW(searchsorted(s, s, false, false, "up"), RuntimeError,
                      "side can only be 'left' or 'right' but got up");
  TERCEL_EXPECT_THROW(searchsorted(zeros({2, 3}), zeros({3, 3})), RuntimeError,
                      "the first N-1 dimensions of boundaries tensor and input value tensor must match");
  TERCEL_EXPECT_THROW(searchsorted(zeros({2, 3}), 1), RuntimeError,
                      "input value can be a scalar only when boundaries tensor dimension is 1");
  TERCEL_EXPECT_THROW(searchsorted(s, s, false, false, {}, vector({0, 7}, kInt64)), RuntimeError,
                      "sorter index out of range");
  TERCEL_EXPECT_THROW(searchsorted(s, s, false, false, {}, s), RuntimeError, "sorter must be a tensor of long dtype");
  EXPECT_EQ(message_of<RuntimeError>([&] {
              bucketize(s, zeros({2, 2}));
            }),
            "boundaries tensor must be 1 dimension, but got dim(2)");
}

TEST(Search, Isin) {
  EXPECT_EQ(values_of(isin(vector({1, 2, 3}), vector({3, 1}), false, true)), (Values{0, 1, 0}));
  EXPECT_EQ(values_of(isin(vector({kNan, 2}), vector({kNan, 2}))), (Values{0, 1}));
  EXPECT_EQ(values_of(isin(vector({1, 2}), zeros({0}))), (Values{0, 0}));
  EXPECT_EQ(values_of(isin(vector({1, 2}), 2)), (Values{0, 1}));
  EXPECT_EQ(values_of(isin(2.5, vector({2}, kInt64))), (Values{0}));
}

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

// Bin edges are exact, whichever way a quotient is rounded.
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

TEST(SegmentReduce, EmptySegmentsOffsetsAndAxes) {
  const Tensor x = vector({1, 2, 3, 4}), lengths = vector({1, 0, 3}, kInt64);
  EXPECT_EQ(values_of(segment_reduce(x, "sum", lengths)), (Values{1, 0, 9}));
  EXPECT_EQ(values_of(segment_reduce(x, "max", lengths)), (Values{1, -kInf, 4}));
  EXPECT_EQ(values_of(segment_reduce(x, "prod", lengths)), (Values{1, 1, 24}));
  const Values means = values_of(segment_reduce(x, "mean", lengths));
  EXPECT_TRUE(means[0] == 1 && std::isnan(means[1]) && means[2] == 3);
  EXPECT_EQ(values_of(segment_reduce(x, "mean", lengths, {}, {}, 0, false, 6)), (Values{7, 6, 5}));
  EXPECT_EQ(values_of(segment_reduce(x, "min", {}, {}, vector({0, 1, 1, 4}, kInt64))), (Values{1, kInf, 2}));
  EXPECT_EQ(values_of(segment_reduce(make({2, 3}, kFloat32, {1, 2, 3, 4, 5, 6}), "sum",
                                     make({2, 2}, kInt64, {1, 2, 3, 0}), {}, {}, 1)),
            (Values{1, 5, 15, 0}));
  TERCEL_EXPECT_THROW(segment_reduce(x, "sum", vector({1, 2}, kInt64)), RuntimeError, "to sum to data.size");
  EXPECT_EQ(values_of(segment_reduce(x, "sum", vector({1, 2}, kInt64), {}, {}, 0, true)), (Values{1, 5}));
  TERCEL_EXPECT_THROW(segment_reduce(x, "sum", vector({9}, kInt64), {}, {}, 0, true), RuntimeError, "to sum to");
  TERCEL_EXPECT_THROW(segment_reduce(x, "sum", vector({-1, 5}, kInt64)), RuntimeError,
                      "lengths contains negative value!");
  TERCEL_EXPECT_THROW(segment_reduce(x, "sum"), RuntimeError, "Either lengths or offsets must be defined.");
  TERCEL_EXPECT_THROW(segment_reduce(x, "middle", lengths), RuntimeError, "reduce argument must be either");
}

}  // namespace tercel::test
