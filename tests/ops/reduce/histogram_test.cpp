#include "tercel/ops/reduce/histogram.h"

#include <gtest/gtest.h>

#include "tercel/ops/factories/factories.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace tercel::test {

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
