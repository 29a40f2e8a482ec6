#include "tercel/ops/views/view_scatter.h"

#include "tercel/ops/factories/factories.h"
#include "tests/ops/conformance.h"
#include "tests/ops/views/view_copies_rows.h"
#include "tests/ops/views/view_scatter_rows.h"
#include "tests/support/errors.h"

namespace tercel::test {

INSTANTIATE_TEST_SUITE_P(ViewCopies, Conformance, ::testing::ValuesIn(view_copies_rows()), row_name);
INSTANTIATE_TEST_SUITE_P(ViewScatter, Conformance, ::testing::ValuesIn(view_scatter_rows()), row_name);

TEST(ViewScatter, Errors) {
  const Tensor x = empty({4, 5});
  TERCEL_EXPECT_THROW(select_scatter(x, empty({4}), 0, 1), RuntimeError,
                      "expected src to have a size equal to the slice of self. src size = [4], slice size = [5]");
  TERCEL_EXPECT_THROW(slice_scatter(x, empty({4, 5}), 0, 1), RuntimeError, "slice size = [3, 5]");
  TERCEL_EXPECT_THROW(as_strided_scatter(x, empty({2}), {2}, {1}, 19), RuntimeError, "out of bounds for storage");
}

TEST(ViewScatter, CopiesKeepOffsetAndStrides) {
  const Tensor x = arange(20), column = as_strided(x, {4}, {5}, 2);
  const Tensor y = as_strided_scatter(column, tensor({-1, -2}), {2}, {5});
  EXPECT_EQ(y.strides(), column.strides());
  EXPECT_EQ(y.storage_offset(), 2);
  EXPECT_EQ(values_of(y), (std::vector<double>{-1, -2, 12, 17}));
  EXPECT_EQ(values_of(column), (std::vector<double>{2, 7, 12, 17}));
}

}  // namespace tercel::test
