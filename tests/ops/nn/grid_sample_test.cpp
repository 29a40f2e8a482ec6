#include "tercel/ops/nn/grid_sample.h"

#include <cmath>
#include <limits>

#include "tests/ops/conformance.h"
#include "tests/ops/nn/grid_sample_rows.h"
#include "tests/support/errors.h"

namespace tercel::test {

INSTANTIATE_TEST_SUITE_P(GridSample, Conformance, ::testing::ValuesIn(grid_sample_rows()), row_name);

TEST(GridSample, PositionsThatAreNoPlaces) {
  const Tensor x = make({1, 1, 2, 2}, kFloat64, {1, 2, 3, 4});
  const double inf = std::numeric_limits<double>::infinity();
  const Tensor grid = make({1, 1, 3, 2}, kFloat64, {std::nan(""), 0, inf, 0, 1e300, -1e300});
  // As in PyTorch, interpolation at NaN gives NaN.
  const std::vector<double> between = values_of(grid_sample(x, grid));
  EXPECT_TRUE(std::isnan(between[0]) && std::isnan(between[1]));
  EXPECT_EQ(between[2], 0);
  EXPECT_EQ(values_of(grid_sample(x, grid, GridMode::Nearest)), (std::vector<double>{0, 0, 0}));
  EXPECT_EQ(values_of(grid_sample(x, grid, GridMode::Bilinear, GridPadding::Border))[2], 2);
}

TEST(GridSample, IdentityGivesTheImage) {
  const Tensor x = random({1, 2, 3, 5}, kFloat64, -1, 1, 1), theta = make({1, 2, 3}, kFloat64, {1, 0, 0, 0, 1, 0});
  for (const bool corners : {false, true}) {
    const std::vector<double> got = values_of(
        grid_sample(x, affine_grid(theta, {1, 2, 3, 5}, corners), GridMode::Bilinear, GridPadding::Zeros, corners));
    const std::vector<double> expected = values_of(x);
    for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-14);
  }
}

TEST(GridSample, Errors) {
  const Tensor x = random({1, 2, 3, 5}, kFloat32, -1, 1, 1), grid = random({1, 2, 2, 2}, kFloat32, -1, 1, 1);
  TERCEL_EXPECT_THROW(grid_sample(x, random({2, 2, 2, 2}, kFloat32, -1, 1, 1)), RuntimeError,
                      "expected grid and input to have same batch size");
  TERCEL_EXPECT_THROW(grid_sample(x, random({1, 2, 2, 3}, kFloat32, -1, 1, 1)), RuntimeError,
                      "expected grid to have size 2 in last dimension, but got grid with sizes [1, 2, 2, 3]");
  TERCEL_EXPECT_THROW(grid_sample(x, random({1, 2, 2, 2}, kFloat64, -1, 1, 1)), RuntimeError,
                      "expected input and grid to have same dtype");
  TERCEL_EXPECT_THROW(grid_sample(empty({1, 2, 0, 5}, kFloat32), grid), RuntimeError,
                      "expected input to have non-empty spatial dimensions");
  TERCEL_EXPECT_THROW(grid_sample(random({3, 5}, kFloat32, -1, 1, 1), grid), RuntimeError,
                      "expected 4D or 5D input and grid with same number of dimensions");
  TERCEL_EXPECT_THROW(affine_grid(random({1, 2, 3}, kFloat32, -1, 1, 1), (DimVector{1, 1, 2})), NotImplementedError,
                      "affine_grid only supports 4D and 5D sizes");
  TERCEL_EXPECT_THROW(affine_grid(random({1, 3, 3}, kFloat32, -1, 1, 1), (DimVector{1, 1, 2, 2})), ValueError,
                      "Expected a batch of 2D affine matrices of shape Nx2x3 for size [1, 1, 2, 2]. Got [1, 3, 3].");
  TERCEL_EXPECT_THROW(affine_grid(random({1, 2, 3}, kFloat32, -1, 1, 1), (DimVector{1, 1, 0, 2})), ValueError,
                      "Expected non-zero, positive output size.");
}

}  // namespace tercel::test
