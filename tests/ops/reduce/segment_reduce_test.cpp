#include "tercel/ops/reduce/segment_reduce.h"

#include <cmath>
#include <limits>

#include "tests/ops/conformance.h"
#include "tests/ops/reduce/segment_reduce_rows.h"
#include "tests/support/errors.h"

namespace tercel::test {

INSTANTIATE_TEST_SUITE_P(SegmentReduce, Conformance, ::testing::ValuesIn(segment_reduce_rows()), row_name);

namespace {

using Values = std::vector<double>;
const double kInf = std::numeric_limits<double>::infinity();

Tensor vector(const Values& values, ScalarType dtype = kFloat32) {
  return make({static_cast<int64_t>(values.size())}, dtype, values);
}

}  // namespace

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
