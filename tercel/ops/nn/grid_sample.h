// Images read at any positions.
#pragma once

#include <array>

#include "tercel/core/tensor.h"
#include "tercel/util/enum_names.h"

namespace tercel {

/** How a value between pixels is made. */
enum class GridMode : uint8_t { Bilinear, Nearest, Bicubic };
constexpr auto enum_names(GridMode) {
  return std::to_array<EnumName<GridMode>>(
      {{GridMode::Bilinear, "bilinear"}, {GridMode::Nearest, "nearest"}, {GridMode::Bicubic, "bicubic"}});
}
/** What lies outside: zeros, the nearest pixel of the border, or the image mirrored there. */
enum class GridPadding : uint8_t { Zeros, Border, Reflection };
constexpr auto enum_names(GridPadding) {
  return std::to_array<EnumName<GridPadding>>(
      {{GridPadding::Zeros, "zeros"}, {GridPadding::Border, "border"}, {GridPadding::Reflection, "reflection"}});
}

/**
 * x [n, channels, height, width] at grid [n, out height, out width, 2] of positions (x, y), -1 to 1 from edge to edge,
 * or with align_corners from the middle of the first pixel to that of the last: [n, channels, out...]. With one
 * dimension more, [n, channels, depth, ...] and positions (x, y, z); Bicubic is for images alone.
 */
TERCEL_OP_API(autocast_f32)
Tensor grid_sample(const Tensor& x, const Tensor& grid, GridMode mode = GridMode::Bilinear,
                   GridPadding padding = GridPadding::Zeros, bool align_corners = false);
/**
 * The grid that theta [n, 2, 3], an affine map of positions, makes for a result of the sizes [n, channels, height,
 * width]; or theta [n, 3, 4] and one dimension more.
 */
TERCEL_OP_API(autocast_lower) Tensor affine_grid(const Tensor& theta, IntSpan size, bool align_corners = false);

}  // namespace tercel
