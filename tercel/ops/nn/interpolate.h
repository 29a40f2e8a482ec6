// Resizing of images, and pixel shuffle.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "tercel/core/tensor.h"
#include "tercel/util/enum_names.h"

namespace tercel {

/** Interpolation of pixels. Nearest rounds positions down, as PyTorch always did; NearestExact uses pixel centres. */
enum class InterpolateMode : uint8_t { Nearest, NearestExact, Linear, Bilinear, Trilinear, Bicubic, Area };
constexpr auto enum_names(InterpolateMode) {
  return std::to_array<EnumName<InterpolateMode>>({{InterpolateMode::Nearest, "nearest"},
                                                   {InterpolateMode::NearestExact, "nearest-exact"},
                                                   {InterpolateMode::Linear, "linear"},
                                                   {InterpolateMode::Bilinear, "bilinear"},
                                                   {InterpolateMode::Trilinear, "trilinear"},
                                                   {InterpolateMode::Bicubic, "bicubic"},
                                                   {InterpolateMode::Area, "area"}});
}

struct InterpolateOptions {
  /** Spatial sizes of the result, one number or one per dimension; alternatively scale factors. */
  std::vector<int64_t> size;
  std::vector<double> scale_factor;
  InterpolateMode mode = InterpolateMode::Nearest;
  /** Aligns the centres of corner pixels instead of the image's corners; for linear and cubic modes. */
  std::optional<bool> align_corners;
  /** Computes positions from the sizes instead of the factors. */
  bool recompute_scale_factor = false;
  /** When shrinking, average over all pixels (bilinear and bicubic modes of images). */
  bool antialias = false;
};

/** Resizes x [n, channels, spatial...] (1 to 3 spatial dimensions); a channels-last x gives a channels-last result. */
TERCEL_API Tensor interpolate(const Tensor& x, const InterpolateOptions& options);

/** [..., c * r * r, h, w] to [..., c, h * r, w * r]: r * r channels become a block of pixels. */
TERCEL_OP_API(python, python_nn) Tensor pixel_shuffle(const Tensor& x, int64_t upscale_factor);
/** The reverse of pixel_shuffle(). */
TERCEL_OP_API(python, python_nn) Tensor pixel_unshuffle(const Tensor& x, int64_t downscale_factor);

}  // namespace tercel
