#include "tercel/ops/views/pad.h"

#include "tercel/ops/factories/factories.h"
#include "tercel/ops/views/views.h"
#include "tests/ops/conformance.h"
#include "tests/ops/views/pad_rows.h"
#include "tests/support/errors.h"

namespace tercel::test {

INSTANTIATE_TEST_SUITE_P(Pad, Conformance, ::testing::ValuesIn(pad_rows()), row_name);

namespace {

using Values = std::vector<double>;
constexpr int64_t kHuge = int64_t{1} << 62;

TEST(Pad, ValuesAndErrors) {
  const Tensor x = arange(3).view({1, 3});
  EXPECT_EQ(values_of(pad(x, {1, 1}, "constant", 7)), (Values{7, 0, 1, 2, 7}));
  EXPECT_EQ(values_of(constant_pad_nd(x, {-4, 3})), (Values{0, 0}));
  EXPECT_EQ(pad(x, {}).sizes(), IntSpan({1, 3}));
  EXPECT_EQ(pad(empty({0, 3}), {1, 1, 2, 0}).sizes(), IntSpan({2, 5}));
  EXPECT_EQ(pad(x, {-1, -2}).sizes(), IntSpan({1, 0}));
  EXPECT_EQ(pad(empty({0, 2, 3}), {1, 1}, "reflect").sizes(), IntSpan({0, 2, 5}));
  TERCEL_EXPECT_THROW(pad(x, {1}), RuntimeError, "Padding length must be divisible by 2");
  TERCEL_EXPECT_THROW(pad(x, {1, 1, 1, 1, 1, 1}), RuntimeError, "Padding length too large");
  TERCEL_EXPECT_THROW(pad(x, {1, 1}, "mirror"), NotImplementedError, "Unrecognised padding mode mirror");
  TERCEL_EXPECT_THROW(pad(x, {1, 1}, "reflect", 2), RuntimeError,
                      "Padding mode \"reflect\" doesn't take in value argument");
  TERCEL_EXPECT_THROW(pad(x, {0, 0, 1, 1}, "reflect"), NotImplementedError,
                      "Only 2D, 3D, 4D, 5D padding with non-constant padding are supported for now");
  TERCEL_EXPECT_THROW(pad(x, {3, 0}, "reflect"), RuntimeError,
                      "Argument #4: Padding size should be less than the corresponding input dimension, but got: "
                      "padding (3, 0) at dimension 1 of input [1, 3]");
  TERCEL_EXPECT_THROW(pad(x, {0, 4}, "circular"), RuntimeError, "Padding value causes wrapping around more than once.");
  TERCEL_EXPECT_THROW(pad(empty({2, 0}), {1, 0}, "replicate"), RuntimeError, "with elements to replicate");
  TERCEL_EXPECT_THROW(pad(x, {kHuge, kHuge}, "replicate"), RuntimeError, "does not fit 64 bits");
  TERCEL_EXPECT_THROW(constant_pad_nd(x, {1}), RuntimeError, "Length of pad must be even but instead it equals 1");
  TERCEL_EXPECT_THROW(constant_pad_nd(x, {1, 1, 1, 1, 1, 1}), RuntimeError,
                      "Length of pad should be no more than twice the number of dimensions of the input.");
  TERCEL_EXPECT_THROW(constant_pad_nd(x, {-2, -2}), RuntimeError,
                      "The input size 3, plus negative padding -2 and -2 resulted in a negative output size, which is "
                      "invalid. Check dimension 1 of your input.");
  TERCEL_EXPECT_THROW(constant_pad_nd(x, {kHuge, kHuge}), RuntimeError, "");
  TERCEL_EXPECT_THROW(constant_pad_nd(x, {INT64_MIN, INT64_MAX}), RuntimeError, "");
}

}  // namespace

}  // namespace tercel::test
