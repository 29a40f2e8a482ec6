// Sampling of images at arbitrary positions.
#pragma once

#include <array>

#include "tercel/core/tensor.h"
#include "tercel/util/enum_names.h"

namespace tercel {

/** Interpolation between pixels. */
enum class GridMode : uint8_t { Bilinear, Nearest, Bicubic };
constexpr auto enum_names(GridMode) {
  return std::to_array<EnumName<GridMode>>(
      {{GridMode::Bilinear, "bilinear"}, {GridMode::Nearest, "nearest"}, {GridMode::Bicubic, "bicubic"}});
}
/** Values outside the image: zeros, the nearest border pixel, or the image reflected at its border. */
enum class GridPadding : uint8_t { Zeros, Border, Reflection };
constexpr auto enum_names(GridPadding) {
  return std::to_array<EnumName<GridPadding>>(
      {{GridPadding::Zeros, "zeros"}, {GridPadding::Border, "border"}, {GridPadding::Reflection, "reflection"}});
}

/**
 * Samples x [n, channels, height, width] at grid [n, out height, out width, 2] of positions (x, y), from -1 to 1
 * between the image's edges, or with align_corners between the centres of the first and last pixel: [n, channels,
 * out...]. Volumes [n, channels, depth, ...] have positions (x, y, z); Bicubic is for images only.
 */
TERCEL_OP_API(autocast_f32)
Tensor grid_sample(const Tensor& x, const Tensor& grid, GridMode mode = GridMode::Bilinear,
                   GridPadding padding = GridPadding::Zeros, bool align_corners = false);
/**
 * The grid that an affine map theta [n, 2, 3] gives for a result of sizes [n, channels, height, width]; or theta [n, 3,
 * 4] with one dimension more.
 */
TERCEL_OP_API(autocast_lower) Tensor affine_grid(const Tensor& theta, IntSpan size, bool align_corners = false);

}  // namespace tercel
