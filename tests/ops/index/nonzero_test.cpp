#include "tercel/ops/index/nonzero.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tercel/ops/factories/factories.h"
#include "tercel/ops/index/subscript.h"
#include "tercel/ops/views/views.h"
#include "tests/support/tensors.h"

namespace tercel::test {

namespace {

Sizes sizes_of(const Tensor& t) { return t.sizes().to_vector(); }

}  // namespace

TEST(Nonzero, IndicesInRowMajorOrder) {
  const Tensor x = make({2, 3}, kFloat32, {0, 1.5, 0, -2, 0, NAN});
  EXPECT_EQ(sizes_of(nonzero(x)), (Sizes{3, 2}));
  EXPECT_EQ(values_of(nonzero(x)), (std::vector<double>{0, 1, 1, 0, 1, 2}));
  EXPECT_EQ(values_of(nonzero(transpose(x, 0, 1))), (std::vector<double>{0, 1, 1, 0, 2, 1}));
  EXPECT_EQ(values_of(nonzero_tuple(x)[1]), (std::vector<double>{1, 0, 2}));
  EXPECT_EQ(sizes_of(nonzero(make({}, kInt32, {3}))), (Sizes{1, 0}));
  EXPECT_EQ(sizes_of(nonzero(make({}, kInt32, {0}))), (Sizes{0, 0}));
  EXPECT_EQ(nonzero_tuple(make({}, kInt32, {3})).size(), 1u);
  EXPECT_EQ(sizes_of(nonzero(zeros({0, 4}))), (Sizes{0, 2}));
  EXPECT_EQ(sizes_of(argwhere(x)), (Sizes{3, 2}));
}

TEST(Nonzero, AgreesWithALoopOnALargeTensor) {
  const Tensor x = random({37, 11, 431}, kInt32, 0, 3, 5);
  const std::vector<double> values = values_of(x);
  std::vector<double> expected;
  for (size_t i = 0; i < values.size(); ++i)
    if (values[i] != 0)
      for (const size_t part : {i / (11 * 431), i / 431 % 11, i % 431}) expected.push_back(static_cast<double>(part));
  EXPECT_EQ(values_of(nonzero(x)), expected);
}

TEST(MaskedSelect, Broadcasts) {
  const Tensor x = make({2, 3}, kFloat32, {1, 2, 3, 4, 5, 6}), mask = make({3}, kBool, {1, 0, 1});
  EXPECT_EQ(values_of(masked_select(x, mask)), (std::vector<double>{1, 3, 4, 6}));
  EXPECT_EQ(values_of(masked_select(x.index({0}), make({2, 1}, kBool, {0, 1}))), (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(values_of(masked_select(make({}, kFloat32, {3}), make({}, kBool, {1}))), (std::vector<double>{3}));
  EXPECT_THROW(masked_select(x, make({3}, kInt64, {1, 0, 1})), RuntimeError);
  EXPECT_THROW(masked_select(x, make({2}, kBool, {1, 0})), RuntimeError);
}

}  // namespace tercel::test
