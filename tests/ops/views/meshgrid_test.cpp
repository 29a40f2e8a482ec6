#include "tercel/ops/views/meshgrid.h"

#include "tercel/ops/factories/factories.h"
#include "tercel/ops/views/views.h"
#include "tests/ops/conformance.h"
#include "tests/ops/views/meshgrid_rows.h"
#include "tests/support/errors.h"

namespace tercel::test {

INSTANTIATE_TEST_SUITE_P(Meshgrid, Conformance, ::testing::ValuesIn(meshgrid_rows()), row_name);

namespace {

using Values = std::vector<double>;

TEST(Meshgrid, ShapesAndErrors) {
  const Tensor a = arange(2), b = arange(3), m = empty({2, 2});
  EXPECT_EQ(meshgrid({a, b})[1].sizes(), IntSpan({2, 3}));
  EXPECT_EQ(meshgrid({a, b}, "xy")[1].sizes(), IntSpan({3, 2}));
  EXPECT_EQ(values_of(meshgrid({a, b}, "xy")[1]), (Values{0, 0, 1, 1, 2, 2}));
  EXPECT_TRUE(meshgrid({a, b})[0].is_alias_of(a));
  EXPECT_EQ(meshgrid({scalar_tensor(int64_t{1}), b})[0].sizes(), IntSpan({1, 3}));
  TERCEL_EXPECT_THROW(meshgrid({}), RuntimeError, "meshgrid() expects a non-empty list of tensors");
  TERCEL_EXPECT_THROW(meshgrid({a}, "yx"), RuntimeError,
                      "meshgrid(): indexing must be one of \"xy\" or \"ij\", but received: yx");
  TERCEL_EXPECT_THROW(meshgrid({m}), RuntimeError, "Expected 0D or 1D tensor in the tensor list but got:");
  TERCEL_EXPECT_THROW(meshgrid({a, zeros({2})}), RuntimeError, "meshgrid() expects all tensors to have the same dtype");
  EXPECT_TRUE(cartesian_prod({a}).is_same(a));
  EXPECT_EQ(values_of(cartesian_prod({a, b})), (Values{0, 0, 0, 1, 0, 2, 1, 0, 1, 1, 1, 2}));
  TERCEL_EXPECT_THROW(cartesian_prod({a, m}), RuntimeError, "Expect a 1D vector, but got shape [2, 2]");

  EXPECT_EQ(values_of(combinations(b, 2, true)), (Values{0, 0, 0, 1, 0, 2, 1, 1, 1, 2, 2, 2}));
  EXPECT_EQ(combinations(arange(20), 18).sizes(), IntSpan({190, 18}));
  EXPECT_EQ(combinations(b, 4).sizes(), IntSpan({0, 4}));
  EXPECT_EQ(combinations(b, 0).sizes(), IntSpan({0}));
  EXPECT_EQ(combinations(empty({0}), 2, true).sizes(), IntSpan({0, 2}));
  TERCEL_EXPECT_THROW(combinations(m), RuntimeError, "Expect a 1D vector, but got shape [2, 2]");
  TERCEL_EXPECT_THROW(combinations(b, -1), RuntimeError, "Expect a non-negative number, but got -1");
  TERCEL_EXPECT_THROW(combinations(arange(1000), 500), RuntimeError, "are too many");
  TERCEL_EXPECT_THROW(combinations(b, INT64_MAX, true), RuntimeError, "are too many");

  EXPECT_EQ(values_of(vander(tensor({2, 3}))), (Values{2, 1, 3, 1}));
  EXPECT_EQ(values_of(vander(tensor({2, 3}, kInt8), 3, true)), (Values{1, 2, 4, 1, 3, 9}));
  EXPECT_EQ(vander(tensor({2, 3}, kInt8)).dtype(), kInt64);
  EXPECT_EQ(vander(b, 0).sizes(), IntSpan({3, 0}));
  TERCEL_EXPECT_THROW(vander(m), RuntimeError, "x must be a one-dimensional tensor.");
  TERCEL_EXPECT_THROW(vander(a, -1), RuntimeError, "N must be non-negative.");
}

}  // namespace

}  // namespace tercel::test
