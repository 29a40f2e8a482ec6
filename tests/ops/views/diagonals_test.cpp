#include "tercel/ops/views/diagonals.h"

#include "tests/ops/conformance.h"
#include "tests/ops/views/diagonals_rows.h"
#include "tests/support/errors.h"

namespace tercel::test {

INSTANTIATE_TEST_SUITE_P(Diagonals, Conformance, ::testing::ValuesIn(diagonals_rows()), row_name);

TEST(Diagonals, DiagonalIsAView) {
  const Tensor x = make({2, 3}, kFloat32, {1, 2, 3, 4, 5, 6});
  diagonal(x, 1).zero_();
  EXPECT_EQ(values_of(x), (std::vector<double>{1, 0, 3, 4, 5, 0}));
}

TEST(Diagonals, OutsideOfTheMatrixThereIsNone) {
  const Tensor x = random({2, 3}, kFloat32, -1, 1, 1);
  for (const int64_t offset : {int64_t{3}, int64_t{-2}, INT64_MAX, INT64_MIN})
    EXPECT_EQ(diagonal(x, offset).sizes(), IntSpan({0})) << offset;
  EXPECT_EQ(diagonal(x, 2).sizes(), IntSpan({1}));
  EXPECT_EQ(values_of(tril(x, INT64_MAX)), values_of(x));
  EXPECT_EQ(values_of(tril(x, INT64_MIN)), std::vector<double>(6, 0));
  EXPECT_EQ(values_of(triu(x, INT64_MIN)), values_of(x));
  EXPECT_EQ(values_of(triu(x, INT64_MAX)), std::vector<double>(6, 0));
}

TEST(Diagonals, Batches) {
  const Tensor x = random({2, 3, 4}, kFloat64, -1, 1, 2);
  EXPECT_EQ(diagonal(x, 0, 0, 2).sizes(), IntSpan({3, 2}));
  EXPECT_EQ(diag_embed(x).sizes(), IntSpan({2, 3, 4, 4}));
  EXPECT_EQ(diag_embed(x, 1, 0, 2).sizes(), IntSpan({5, 2, 5, 3}));
  EXPECT_EQ(values_of(diagonal(diag_embed(x, -2), -2, -2, -1)), values_of(x));
  EXPECT_EQ(values_of(tril(x).select(0, 1)), values_of(tril(x.select(0, 1))));
  EXPECT_EQ(tril(empty({0, 3})).sizes(), IntSpan({0, 3}));
  EXPECT_EQ(triu(empty({2, 3, 0})).sizes(), IntSpan({2, 3, 0}));
}

TEST(Diagonals, WrongOperands) {
  const Tensor x = empty({2, 3});
  TERCEL_EXPECT_THROW(diagonal(x, 0, 1, -1), RuntimeError, "diagonal dimensions cannot be identical 1, -1");
  TERCEL_EXPECT_THROW(diagonal(x, 0, 0, 2), IndexError, "Dimension out of range");
  TERCEL_EXPECT_THROW(diagonal(empty({3})), IndexError, "Dimension out of range");
  TERCEL_EXPECT_THROW(diag(empty({2, 2, 2})), RuntimeError, "diag(): Supports 1D or 2D tensors. Got 3D");
  TERCEL_EXPECT_THROW(diag_embed(empty({3}), INT64_MAX), RuntimeError, "out of range");
  TERCEL_EXPECT_THROW(trace(empty({3})), RuntimeError, "trace: expected a matrix, but got tensor with dim 1");
  TERCEL_EXPECT_THROW(tril(empty({3})), RuntimeError, "tril: input tensor must have at least 2 dimensions");
  EXPECT_EQ(tril_out(empty({3, 5}), x).sizes(), x.sizes());
}

TEST(Diagonals, IndicesOfTriangles) {
  using Values = std::vector<double>;
  constexpr int64_t kHuge = int64_t{1} << 62;
  EXPECT_EQ(values_of(tril_indices(3, 3)), (Values{0, 1, 1, 2, 2, 2, 0, 0, 1, 0, 1, 2}));
  EXPECT_EQ(values_of(triu_indices(2, 3, 1)), (Values{0, 0, 1, 1, 2, 2}));
  EXPECT_EQ(tril_indices(3, 2, -5).sizes(), IntSpan({2, 0}));
  EXPECT_EQ(triu_indices(2, 2, INT64_MIN, kInt32).sizes(), IntSpan({2, 4}));
  EXPECT_EQ(triu_indices(0, kHuge).sizes(), IntSpan({2, 0}));
  TERCEL_EXPECT_THROW(tril_indices(-1, 2), RuntimeError, "row must be non-negative, got-1");
  TERCEL_EXPECT_THROW(triu_indices(kHuge, 4), RuntimeError, "");
  TERCEL_EXPECT_THROW(triu_indices(1, 4, 0, kFloat32), NotImplementedError, "not implemented for 'Float'");
}

}  // namespace tercel::test
