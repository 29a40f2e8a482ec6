#include "tercel/ops/reduce/vector_norms.h"

#include <cmath>

#include "tercel/autograd/autograd.h"
#include "tercel/ops/factories/factories.h"
#include "tests/support/errors.h"
#include "tests/support/gradcheck.h"
#include "tests/support/tensors.h"

namespace tercel::test {

namespace {

using Values = std::vector<double>;
using Tensors = std::vector<Tensor>;

}  // namespace

TEST(VectorNorms, AnyOrder) {
  const Tensor x = make({2, 2}, kFloat64, {3, -4, 0, 1});
  EXPECT_EQ(values_of(norm(x, 0, {1})), (Values{2, 1}));
  EXPECT_EQ(values_of(norm(x, -HUGE_VAL, {1}, true)), (Values{3, 0}));
  EXPECT_DOUBLE_EQ(norm(x, 3).item<double>(), std::cbrt(27 + 64 + 1.0));
  EXPECT_DOUBLE_EQ(values_of(norm(x, 0.5, {0}))[1], 9);
  EXPECT_EQ(norm(zeros({0})).item<double>(), 0);
  EXPECT_THROW(norm(zeros({0}), -HUGE_VAL), RuntimeError);
  EXPECT_EQ(message_of<RuntimeError>([] { norm(zeros({2}, kInt64)); }),
            "norm(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: "
            "Long");
}

TEST(VectorNorms, GradientsAtZero) {
  for (const double p : {0., 1., 1.5, 2., 3., HUGE_VAL}) {
    Tensor x = make({3}, kFloat64, {0, 0, 0});
    x.requires_grad_();
    const Tensor out = norm(x, p);
    EXPECT_EQ(values_of(grad(Span<Tensor>(&out, 1), Span<Tensor>(&x, 1))[0].values), (Values{0, 0, 0})) << p;
  }
  Tensor x = make({2, 3}, kFloat64, {1, -2, 3, 0.5, 4, -1});
  x.requires_grad_();
  for (const double p : {-HUGE_VAL, 0.5, 1., 1.5, 2., 4., HUGE_VAL})
    EXPECT_TRUE(gradcheck([p](const Tensors& in) { return norm(in[0], p, {1}); }, {x})) << p;
}

TEST(VectorNorms, Renorm) {
  const Tensor x = make({2, 2}, kFloat32, {3, 4, 0.3, 0.4});
  const Values got = values_of(renorm(x, 2, 0, 1));
  EXPECT_NEAR(got[0], 0.6, 1e-6);
  EXPECT_FLOAT_EQ(static_cast<float>(got[2]), 0.3f);
  EXPECT_EQ(message_of<RuntimeError>([&] { renorm(x, 0, 0, 1); }), "renorm: non-positive-norm not supported");
  EXPECT_EQ(message_of<RuntimeError>([&] { renorm(x, 2, 0, -1); }), "renorm: expected maxnorm to be >= 0 but got -1");
  EXPECT_EQ(message_of<RuntimeError>([&] { renorm(zeros({2}), 2, 0, 1); }),
            "renorm: input needs at least 2 dimensions, got 1 dimensions");
}

}  // namespace tercel::test
