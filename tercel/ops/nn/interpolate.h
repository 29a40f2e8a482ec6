// Images of another size.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "tercel/core/tensor.h"
#include "tercel/util/enum_names.h"

namespace tercel {

/** How a pixel between pixels is made. Nearest rounds down, as PyTorch always did; NearestExact takes the middle. */
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
  /** Spatial sizes of the result, one number or one for each dimension; or, instead, factors. */
  std::vector<int64_t> size;
  std::vector<double> scale_factor;
  InterpolateMode mode = InterpolateMode::Nearest;
  /** Corner pixels stand on corner pixels, not corners on corners; for the linear and cubic modes. */
  std::optional<bool> align_corners;
  /** Positions are calculated from the sizes, not from the factors. */
  bool recompute_scale_factor = false;
  /** A smaller result takes all pixels into account (bilinear and bicubic modes of images). */
  bool antialias = false;
};

/** x [n, channels, spatial...] (1 to 3 dimensions) in another size; a channels-last x gives such a result. */
TERCEL_API Tensor interpolate(const Tensor& x, const InterpolateOptions& options);

/** [..., c * r * r, h, w] as [..., c, h * r, w * r]: r * r channels become a block of pixels. */
TERCEL_OP_API(python, python_nn) Tensor pixel_shuffle(const Tensor& x, int64_t upscale_factor);
/** The reverse. */
TERCEL_OP_API(python, python_nn) Tensor pixel_unshuffle(const Tensor& x, int64_t downscale_factor);

}  // namespace tercel
