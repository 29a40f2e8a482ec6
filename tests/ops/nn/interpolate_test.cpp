#include "tercel/ops/nn/interpolate.h"

#include "tercel/ops/factories/factories.h"
#include "tests/ops/conformance.h"
#include "tests/ops/nn/interpolate_rows.h"
#include "tests/support/errors.h"

namespace tercel::test {

INSTANTIATE_TEST_SUITE_P(Interpolate, Conformance, ::testing::ValuesIn(interpolate_rows()), row_name);

TEST(Interpolate, Errors) {
  const Tensor x = zeros({1, 3, 5, 5});
  InterpolateOptions options;
  TERCEL_EXPECT_THROW(interpolate(x, options), ValueError, "either size or scale_factor should be defined");
  options.size = {3};
  EXPECT_EQ(interpolate(x, options).sizes(), IntSpan({1, 3, 3, 3}));
  options.scale_factor = {2};
  TERCEL_EXPECT_THROW(interpolate(x, options), ValueError, "only one of size or scale_factor should be defined");
  options.scale_factor = {};
  options.align_corners = true;
  TERCEL_EXPECT_THROW(interpolate(x, options), ValueError, "align_corners option can only be set");
  options.mode = InterpolateMode::Linear;
  TERCEL_EXPECT_THROW(interpolate(x, options), NotImplementedError, "Got 4D input, but linear mode needs 3D input");
  options.mode = InterpolateMode::Bilinear;
  options.size = {0};
  TERCEL_EXPECT_THROW(interpolate(x, options), RuntimeError, "Input and output sizes should be greater than 0");
  TERCEL_EXPECT_THROW(pixel_shuffle(x, 2), RuntimeError, "input.size(-3)=3 is not divisible by 4");
  TERCEL_EXPECT_THROW(pixel_unshuffle(x, 2), RuntimeError, "input.size(-2)=5 is not divisible by 2");
  TERCEL_EXPECT_THROW(pixel_shuffle(x, 0), RuntimeError, "expects a positive upscale_factor, but got 0");
}

}  // namespace tercel::test
