#include "tercel/ops/views/permute.h"

#include "tests/ops/conformance.h"
#include "tests/ops/views/permute_rows.h"
#include "tests/support/errors.h"

namespace tercel::test {

INSTANTIATE_TEST_SUITE_P(Permute, Conformance, ::testing::ValuesIn(permute_rows()), row_name);

TEST(Permute, Errors) {
  const Tensor x = empty({2, 3, 4}), vector = empty({3});
  TERCEL_EXPECT_THROW(permute(x, {0, 1}), RuntimeError, "input.dim() = 3 is not equal to len(dims) = 2");
  TERCEL_EXPECT_THROW(
      movedim(x, {0, 1}, {2}), RuntimeError,
      "movedim: Invalid source or destination dims: source ([0, 1] dims) should contain the same number "
      "of dims as destination ([2] dims)");
  TERCEL_EXPECT_THROW(movedim(x, {0, -3}, {1, 2}), RuntimeError, "movedim: repeated dim in `source` ([0, -3])");
  TERCEL_EXPECT_THROW(movedim(x, {0, 1}, {1, 1}), RuntimeError, "movedim: repeated dim in `destination` ([1, 1])");
  TERCEL_EXPECT_THROW(movedim(x, 3, 0), IndexError, "Dimension out of range (expected to be in range of [-3, 2]");
  TERCEL_EXPECT_THROW(mT(vector), RuntimeError,
                      "tensor.mT is only supported on matrices or batches of matrices. Got 1-D tensor.");
  TERCEL_EXPECT_THROW(mH(vector), RuntimeError, "tensor.mH is only supported on matrices or batches of matrices.");
  TERCEL_EXPECT_THROW(adjoint(vector), RuntimeError, "adjoint() is only supported on matrices or batches of matrices.");
  TERCEL_EXPECT_THROW(matrix_H(x), RuntimeError,
                      "tensor.H is only supported on matrices (2-D tensors). Got 3-D tensor.");
}

TEST(Permute, WithoutDimensions) {
  const Tensor x = empty({});
  for (const Tensor& y : {mT(x), mH(x), matrix_H(x), numpy_T(x), movedim(x, 0, -1), swapaxes(x, 0, -1)}) {
    EXPECT_EQ(y.dim(), 0);
    EXPECT_TRUE(y.is_alias_of(x));
  }
}

}  // namespace tercel::test
