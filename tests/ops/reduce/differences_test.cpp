#include "tercel/ops/reduce/differences.h"

#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/factories/factories.h"
#include "tests/ops/conformance.h"
#include "tests/ops/reduce/differences_rows.h"
#include "tests/support/errors.h"

namespace tercel::test {

INSTANTIATE_TEST_SUITE_P(Differences, Conformance, ::testing::ValuesIn(differences_rows()), row_name);

namespace {

using Values = std::vector<double>;

Tensor vector(const Values& values, ScalarType dtype = kFloat32) {
  return make({static_cast<int64_t>(values.size())}, dtype, values);
}

}  // namespace

TEST(Differences, DiffJoinsAndOrders) {
  const Tensor x = vector({1, 4, 9, 16});
  EXPECT_EQ(values_of(diff(x, 0)), (Values{1, 4, 9, 16}));
  EXPECT_EQ(values_of(diff(x, 3)), (Values{0}));
  EXPECT_EQ(diff(x, 9).sizes().to_vector(), (Sizes{0}));
  EXPECT_EQ(values_of(diff(x, 1, 0, vector({0}), vector({25, 36}))), (Values{1, 3, 5, 7, 9, 11}));
  EXPECT_EQ(values_of(diff(vector({1, 0, 0, 1}, kBool))), (Values{1, 0, 1}));
  EXPECT_EQ(values_of(diff(vector({3, 1}, kUInt8))), (Values{254}));
}

TEST(Differences, DiffErrors) {
  EXPECT_EQ(message_of<RuntimeError>([] { diff(scalar_tensor(1)); }),
            "diff expects input to be at least one-dimensional");
  EXPECT_EQ(message_of<RuntimeError>([] { diff(zeros({3}), -1); }), "order must be non-negative but got -1");
  EXPECT_EQ(message_of<RuntimeError>([] {
              diff(zeros({3, 2}), 1, 0, zeros({2}));
            }),
            "diff expects prepend or append to be the same dimension as input");
  EXPECT_EQ(
      message_of<RuntimeError>([] {
        diff(zeros({3, 2}), 1, 0, zeros({1, 3}));
      }),
      "diff expects the shape of tensor to prepend or append to match that of input except along the differencing "
      "dimension; input.size(1) = 2, but got tensor.size(1) = 3");
}

TEST(Differences, Integrals) {
  EXPECT_EQ(values_of(trapezoid(vector({1, 5, 10}))), (Values{10.5}));
  EXPECT_EQ(values_of(trapezoid(vector({1, 5, 10}), vector({1, 3, 6}))), (Values{28.5}));
  EXPECT_EQ(values_of(cumulative_trapezoid(vector({1, 5, 10}), 2)), (Values{6, 21}));
  EXPECT_EQ(values_of(trapezoid(vector({1, 5, 10}, kInt64))), (Values{10.5}));
  EXPECT_EQ(values_of(trapezoid(zeros({2, 0}))), (Values{0, 0}));
  EXPECT_EQ(values_of(trapezoid(zeros({2, 1}))), (Values{0, 0}));
  const Tensor x = make({2, 2}, kFloat32, {0, 1, 0, 3});
  EXPECT_EQ(values_of(trapezoid(vector({1, 3}), x)), (Values{2, 6}));
  TERCEL_EXPECT_THROW(trapezoid(zeros({3}), zeros({2})), RuntimeError,
                      "There must be one `x` value for each sample point");
}

TEST(Differences, Gradients) {
  const Tensor x = vector({1, 4, 9, 16, 25}, kFloat64);
  EXPECT_EQ(values_of(gradient(x)[0]), (Values{3, 4, 6, 8, 9}));
  // Second-order differences are exact for a parabola.
  EXPECT_EQ(values_of(gradient(x, 1, {}, 2)[0]), (Values{2, 4, 6, 8, 10}));
  const Tensor places = vector({0, 1, 3, 4, 8}, kFloat64), squares = mul(places, places);
  const std::vector<double> got = values_of(gradient(squares, Span<Tensor>(&places, 1), {}, 2)[0]);
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], 2 * values_of(places)[i], 1e-12);
  EXPECT_NEAR(values_of(gradient(squares, Span<Tensor>(&places, 1))[0])[2], 6, 1e-12);
  EXPECT_EQ(gradient(zeros({3, 4})).size(), 2u);
  const double both[] = {1, 2};
  EXPECT_EQ(values_of(gradient(make({2, 2}, kFloat32, {0, 4, 1, 5}), Span<double>(both, 2))[1]), (Values{2, 2, 2, 2}));
  TERCEL_EXPECT_THROW(gradient(zeros({1})), RuntimeError, "expected each dimension size to be at least edge_order+1");
  TERCEL_EXPECT_THROW(gradient(zeros({4}), 1, {}, 3), RuntimeError,
                      "only supports edge_order=1 and edge_order=2, but got 3");
  TERCEL_EXPECT_THROW(gradient(zeros({4}), Span<double>(both, 2)), RuntimeError, "a list of length 1");
}

}  // namespace tercel::test
