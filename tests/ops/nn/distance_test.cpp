#include "tercel/ops/nn/distance.h"

#include "tercel/autograd/autograd.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/reduce/reduce.h"
#include "tests/ops/conformance.h"
#include "tests/ops/nn/distance_rows.h"
#include "tests/support/errors.h"

namespace tercel::test {

INSTANTIATE_TEST_SUITE_P(Distance, Conformance, ::testing::ValuesIn(distance_rows()), row_name);

TEST(Distance, Batches) {
  const Tensor a = random({2, 1, 5, 3}, kFloat32, -1, 1, 1), b = random({4, 6, 3}, kFloat32, -1, 1, 2);
  const Tensor out = cdist(a, b);
  EXPECT_EQ(out.sizes(), IntSpan({2, 4, 5, 6}));
  EXPECT_EQ(values_of(out.select(0, 1).select(0, 2)), values_of(cdist(a.select(0, 1).select(0, 0), b.select(0, 2))));
  EXPECT_EQ(values_of(cdist(empty({2, 0}), empty({3, 0}))), std::vector<double>(6, 0));
  EXPECT_EQ(cdist(empty({0, 4}), empty({3, 4})).sizes(), IntSpan({0, 3}));
}

TEST(Distance, ManyRowsGoThroughAProduct) {
  const Tensor a = random({40, 8}, kFloat64, -1, 1, 1);
  const std::vector<double> got = values_of(cdist(a, a)), want = values_of(cdist(a, a, 2, CdistMode::DoNotUseMm));
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-6);
}

TEST(Distance, SameRowsHaveAGradientOfZero) {
  for (const double p : {1.5, 2.0, 3.0}) {
    Tensor a = random({1, 4}, kFloat64, -1, 1, 1);
    a.requires_grad_();
    cdist(a, a.detach(), p).sum().backward();
    EXPECT_EQ(values_of(a.grad()), std::vector<double>(4, 0)) << p;
  }
}

TEST(Distance, WrongOperands) {
  const Tensor a = empty({2, 3});
  TERCEL_EXPECT_THROW(cdist(empty({3}), a), RuntimeError, "cdist only supports at least 2D tensors, X1 got: 1D");
  TERCEL_EXPECT_THROW(cdist(a, empty({2, 4})), RuntimeError,
                      "X1 and X2 must have the same number of columns. X1: 3 X2: 4");
  TERCEL_EXPECT_THROW(cdist(a, a, -1), RuntimeError, "cdist only supports non-negative p values");
  TERCEL_EXPECT_THROW(pdist(empty({3})), RuntimeError, "pdist only supports 2D tensors, got: 1D");
}

}  // namespace tercel::test
