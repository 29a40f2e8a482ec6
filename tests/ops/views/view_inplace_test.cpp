#include "tercel/ops/views/view_inplace.h"

#include "tercel/autograd/autograd.h"
#include "tercel/core/context.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/views/views.h"
#include "tests/support/errors.h"
#include "tests/support/gradcheck.h"

namespace tercel::test {

namespace {

using Inputs = const std::vector<Tensor>&;

Tensor leaf(const Sizes& sizes) {
  Tensor x = random(sizes, kFloat64, -1, 1, 7);
  x.requires_grad_();
  return x;
}

TEST(ViewInplace, SizesStridesAndVersion) {
  const Tensor x = arange(6).view({2, 3});
  const uint32_t before = x.version();
  EXPECT_TRUE(t_(x).is_same(x));
  EXPECT_EQ(x.sizes(), IntSpan({3, 2}));
  EXPECT_EQ(x.strides(), IntSpan({1, 3}));
  EXPECT_EQ(x.version(), before + 1);
  EXPECT_EQ(unsqueeze_(x, 0).sizes(), IntSpan({1, 3, 2}));
  EXPECT_EQ(unsqueeze_(x, -1).sizes(), IntSpan({1, 3, 2, 1}));
  EXPECT_EQ(squeeze_(x, 1).sizes(), IntSpan({1, 3, 2, 1}));
  EXPECT_EQ(squeeze_(x, {0, -1}).sizes(), IntSpan({3, 2}));
  EXPECT_EQ(swapaxes_(x, 0, 1).sizes(), IntSpan({2, 3}));
  EXPECT_EQ(swapdims_(x, 0, 1).sizes(), IntSpan({3, 2}));
  EXPECT_EQ(squeeze_(unsqueeze_(x, 1)).sizes(), IntSpan({3, 2}));
  EXPECT_EQ(values_of(as_strided_(x, {2}, {2}, 1)), (std::vector<double>{1, 3}));
  EXPECT_EQ(values_of(as_strided_(x, {2}, {1})), (std::vector<double>{1, 2}));
}

TEST(ViewInplace, Gradients) {
  EXPECT_TRUE(gradcheck([](Inputs in) { return mul(t_(mul(in[0], 2.0)), in[1]); }, {leaf({2, 3}), leaf({3, 2})}));
  EXPECT_TRUE(gradcheck([](Inputs in) { return transpose_(mul(in[0], 2.0), 0, -1); }, {leaf({2, 3, 2})}));
  EXPECT_TRUE(gradcheck([](Inputs in) { return squeeze_(unsqueeze_(mul(in[0], 2.0), 1)); }, {leaf({2, 3})}));
  EXPECT_TRUE(gradcheck([](Inputs in) { return as_strided_(mul(in[0], 2.0), {2, 2}, {1, 1}, 1); }, {leaf({4})}));
}

// The base's elements do not move, so its gradient must not depend on the view's new shape.
TEST(ViewInplace, OfAViewLeavesTheBase) {
  EXPECT_TRUE(gradcheck(
      [](Inputs in) {
        const Tensor base = mul(in[0], 2.0), part = narrow(base, 0, 1, 2);
        t_(part);
        EXPECT_EQ(part.sizes(), IntSpan({3, 2}));
        EXPECT_EQ(base.sizes(), IntSpan({4, 3}));
        return add(mul(part, in[1]), sum(base));
      },
      {leaf({4, 3}), leaf({3, 2})}));
  // Changed in place through the transposed view, then read through the base.
  EXPECT_TRUE(gradcheck(
      [](Inputs in) {
        const Tensor base = mul(in[0], 2.0), part = narrow(base, 0, 1, 2);
        t_(part);
        mul_(part, in[1]);
        return mul(base, base);
      },
      {leaf({4, 3}), leaf({3, 2})}));
  // The base is transposed in place under a view.
  EXPECT_TRUE(gradcheck(
      [](Inputs in) {
        const Tensor base = mul(in[0], 2.0), part = narrow(base, 0, 1, 2);
        t_(base);
        mul_(part, in[1]);
        return mul(base, t(in[0]));
      },
      {leaf({4, 3}), leaf({2, 3})}));
}

TEST(ViewInplace, WhatIsRefused) {
  const Tensor x = leaf({2, 3});
  TERCEL_EXPECT_THROW(t_(x), RuntimeError,
                      "a leaf Variable that requires grad is being used in an in-place operation.");
  EXPECT_EQ(x.sizes(), IntSpan({2, 3}));
  const Tensor row = x[0];
  TERCEL_EXPECT_THROW(unsqueeze_(row, 0), RuntimeError, "a view of a leaf Variable that requires grad");
  const std::vector<Tensor> parts = split(mul(x, 2.0), 1);
  TERCEL_EXPECT_THROW(t_(parts[0]), RuntimeError, "is a view and is being modified inplace.");
  TERCEL_EXPECT_THROW(t_(empty({2, 2, 2})), RuntimeError, "t_() expects a tensor with <= 2 dimensions, but self is 3D");
  TERCEL_EXPECT_THROW(as_strided_(arange(3), {4}, {1}), RuntimeError, "out of bounds for storage of size 24");
  TERCEL_EXPECT_THROW(squeeze_(arange(3), {0, -1}), RuntimeError, "dim 0 appears multiple times in the list of dims");
  const NoGradGuard no_grad;
  EXPECT_EQ(t_(x).sizes(), IntSpan({3, 2}));
}

TEST(ViewInplace, DetachedTensorsChangeAlone) {
  const Tensor x = leaf({2, 3});
  for (const Tensor& seen : {x.detach(), x.data()}) {
    EXPECT_EQ(t_(seen).sizes(), IntSpan({3, 2}));
    EXPECT_EQ(unsqueeze_(seen, 0).sizes(), IntSpan({1, 3, 2}));
    EXPECT_EQ(transpose_(seen, 1, 2).sizes(), IntSpan({1, 2, 3}));
    EXPECT_EQ(squeeze_(seen).sizes(), IntSpan({2, 3}));
    EXPECT_EQ(x.sizes(), IntSpan({2, 3}));
    EXPECT_EQ(seen.data_ptr(), x.data_ptr());
  }
  set_detach_allows_metadata_change(false);
  const Tensor fixed = x.detach();
  set_detach_allows_metadata_change(true);
  TERCEL_EXPECT_THROW(t_(fixed), RuntimeError, "is not allowed on a Tensor created from .data or .detach()");
  EXPECT_EQ(fixed.sizes(), IntSpan({2, 3}));
}

TEST(ViewInplace, WhatWasSavedIsTooOld) {
  const Tensor x = leaf({2, 3}), y = mul(x, 2.0), z = sum(mul(y, y));
  t_(y);
  TERCEL_EXPECT_THROW(z.backward(), RuntimeError, "has been modified by an inplace operation");
}

}  // namespace
}  // namespace tercel::test
