#include "tercel/ops/sort/search.h"

#include <cfloat>
#include <cmath>
#include <limits>

#include "tercel/ops/factories/factories.h"
#include "tercel/util/parallel.h"
#include "tests/ops/conformance.h"
#include "tests/ops/sort/search_rows.h"
#include "tests/support/errors.h"

namespace tercel::test {

INSTANTIATE_TEST_SUITE_P(Search, Conformance, ::testing::ValuesIn(search_rows()), row_name);

namespace {

using Values = std::vector<double>;
const double kNan = std::numeric_limits<double>::quiet_NaN();

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

}  // namespace tercel::test
