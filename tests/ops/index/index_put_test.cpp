#include "tercel/ops/index/index_put.h"

#include "tercel/ops/ops.h"

#include "tests/ops/conformance.h"
#include "tests/ops/index/index_put_rows.h"
#include "tests/support/errors.h"

namespace tercel::test {

INSTANTIATE_TEST_SUITE_P(IndexPut, Conformance, ::testing::ValuesIn(index_put_rows()), row_name);

TEST(IndexPut, WrongArgumentsAreNamedAndChangeNothing) {
  const Tensor x = make({3, 2}, kFloat32, {1, 2, 3, 4, 5, 6}), two = make({2}, kInt64, {0, 2});
  const Tensor source = make({2, 2}, kFloat32, {1, 2, 3, 4}), before = clone(x);
  EXPECT_EQ(message_of<IndexError>([&] {
              index_add_(x, 0, make({2}, kInt64, {0, 3}), source);
            }),
            "index 3 is out of bounds for dimension 0 with size 3");
  EXPECT_EQ(message_of<IndexError>([&] {
              index_add_(x, 0, make({2}, kInt64, {0, -1}), source);
            }),
            "index_add_(): index -1 is out of bounds for dimension 0 with size 3");
  EXPECT_THROW(index_add_(x, 0, make({2}, kFloat32, {0, 1}), source), RuntimeError);
  EXPECT_THROW(index_add_(x, 1, two, source), RuntimeError);
  EXPECT_THROW(index_add_(x, 0, make({3}, kInt64, {0, 1, 2}), source), RuntimeError);
  EXPECT_THROW(index_add_(x, 0, make({1, 2}, kInt64, {0, 1}), source), RuntimeError);
  EXPECT_THROW(index_add_(x, 0, two, to(source, kFloat64)), RuntimeError);
  EXPECT_THROW(index_copy_(x, 0, two, make({2, 3}, kFloat32, {1, 2, 3, 4, 5, 6})), RuntimeError);
  EXPECT_THROW(index_copy_(x, 0, two, make({1, 2}, kFloat32, {1, 2})), IndexError);
  EXPECT_THROW(index_copy_(x, 0, two, make({}, kFloat32, {1})), IndexError);
  EXPECT_THROW(index_fill_(x, 0, two, source), RuntimeError);
  EXPECT_THROW(index_fill_(x, 2, two, 1), IndexError);
  EXPECT_EQ(message_of<IndexError>([&] { put_(x, make({1}, kInt64, {6}), make({1}, kFloat32, {1})); }),
            "out of range: tried to access index 6 on a tensor of 6 elements.");
  EXPECT_THROW(put_(x, two, make({1}, kFloat32, {1})), RuntimeError);
  EXPECT_THROW(put_(empty({0}), make({1}, kInt64, {0}), make({1}, kFloat32, {1})), IndexError);
  EXPECT_THROW(take(x, make({1}, kInt64, {-7})), IndexError);
  EXPECT_THROW(take(empty({0}), make({1}, kInt64, {0})), IndexError);
  EXPECT_THROW(take_along_dim(x, two, 0), RuntimeError);
  EXPECT_THROW(masked_scatter_(x, x > 2, make({3}, kFloat32, {1, 2, 3})), RuntimeError);
  EXPECT_THROW(masked_scatter_(x, two, source), RuntimeError);
  EXPECT_EQ(values_of(x), values_of(before));
}

TEST(IndexPut, WithoutDimensionsAndEmpty) {
  const Tensor number = make({}, kFloat32, {4}), zero = make({}, kInt64, {0}), one = make({}, kFloat32, {1});
  EXPECT_EQ(values_of(index_add(number, 0, zero, one)), (std::vector<double>{5}));
  EXPECT_EQ(values_of(index_copy(number, 0, zero, one)), (std::vector<double>{1}));
  EXPECT_EQ(values_of(index_fill(number, 0, zero, 7)), (std::vector<double>{7}));
  EXPECT_EQ(values_of(put(number, zero, one)), (std::vector<double>{1}));
  EXPECT_EQ(values_of(take(number, make({2}, kInt64, {0, -1}))), (std::vector<double>{4, 4}));
  EXPECT_EQ(take(empty({0}), empty({0, 3}, kInt64)).sizes(), IntSpan({0, 3}));
  EXPECT_EQ(values_of(index_fill(make({2}, kInt64, {1, 2}), 0, make({1}, kInt64, {-1}), 9)),
            (std::vector<double>{1, 9}));
  EXPECT_EQ(values_of(take_along_dim(make({2, 2}, kFloat32, {4, 3, 2, 1}), make({2}, kInt64, {3, 0}))),
            (std::vector<double>{1, 4}));
}

TEST(IndexPut, PutIntoATransposedTensorCountsInItsOwnOrder) {
  const Tensor x = transpose(zeros({2, 3}), 0, 1);
  put_(x, make({3}, kInt64, {0, 1, -1}), make({3}, kFloat32, {1, 2, 3}));
  EXPECT_EQ(values_of(x), (std::vector<double>{1, 2, 0, 0, 0, 3}));
}

}  // namespace tercel::test
