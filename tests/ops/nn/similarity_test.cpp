#include "tercel/ops/nn/similarity.h"

#include "tercel/ops/factories/factories.h"
#include "tests/ops/conformance.h"
#include "tests/ops/nn/similarity_rows.h"
#include "tests/support/errors.h"

namespace tercel::test {

INSTANTIATE_TEST_SUITE_P(Similarity, Conformance, ::testing::ValuesIn(similarity_rows()), row_name);

TEST(Similarity, Errors) {
  TERCEL_EXPECT_THROW(glu(zeros({2, 3})), RuntimeError, "Halving dimension must be even, but dimension 1 is size 3");
  TERCEL_EXPECT_THROW(one_hot(make({1}, kInt64, {-1})), RuntimeError, "Class values must be non-negative.");
  TERCEL_EXPECT_THROW(one_hot(make({1}, kInt64, {3}), 2), RuntimeError,
                      "Class values must be smaller than num_classes.");
}

}  // namespace tercel::test
