// Discrete Fourier transforms: tercel.fft.
//
// Forward transforms multiply by exp(-2 pi i j k / n) and add up; inverse ones by exp(+2 pi i j k / n). `norm` divides
// the sums: "backward" those of inverse transforms by n, "forward" those of forward ones, "ortho" both by sqrt(n).
// float32, float64 and their complex types; integers are calculated in float32 (NotImplementedError for 16-bit floats).
// `n`, or `s` for several dimensions, is the length to which x is cut or padded with zeros before. Names, defaults and
// errors are PyTorch's.
#pragma once

#include <optional>
#include <string_view>

#include "tercel/core/tensor.h"

namespace tercel::fft {

using Length = std::optional<int64_t>;
/** The discrete Fourier transform of n points along a dimension (x cut or filled with zeros), and its inverse. */
TERCEL_OP_API(out, autocast_f32)
Tensor fft(const Tensor& x, Length n = std::nullopt, int64_t dim = -1, std::string_view norm = "backward");
TERCEL_OP_API(out, autocast_f32)
Tensor ifft(const Tensor& x, Length n = std::nullopt, int64_t dim = -1, std::string_view norm = "backward");
/** Of real x: the first n / 2 + 1 points, of which the others are the conjugates. */
TERCEL_OP_API(out, autocast_f32)
Tensor rfft(const Tensor& x, Length n = std::nullopt, int64_t dim = -1, std::string_view norm = "backward");
/** The inverse of rfft(); n is the length of the real result, 2 (size - 1) without it. */
TERCEL_OP_API(out, autocast_f32)
Tensor irfft(const Tensor& x, Length n = std::nullopt, int64_t dim = -1, std::string_view norm = "backward");
/** The forward transform of what is given by its first half, n / 2 + 1 points: real. */
TERCEL_OP_API(out, autocast_f32)
Tensor hfft(const Tensor& x, Length n = std::nullopt, int64_t dim = -1, std::string_view norm = "backward");
/** The inverse of hfft(). */
TERCEL_OP_API(out, autocast_f32)
Tensor ihfft(const Tensor& x, Length n = std::nullopt, int64_t dim = -1, std::string_view norm = "backward");

/** Dimensions to transform, and the lengths in them; none given: the last s.size() ones, or all. */
struct Axes {
  std::optional<DimVector> s, dim;
};
/** The last two dimensions. */
TERCEL_API Axes last_two();
/** The transforms along several dimensions. */
TERCEL_OP_API(out, autocast_f32)
Tensor fftn(const Tensor& x, const Axes& axes = {}, std::string_view norm = "backward");
TERCEL_OP_API(out, autocast_f32)
Tensor ifftn(const Tensor& x, const Axes& axes = {}, std::string_view norm = "backward");
/** rfft() of the last of the dimensions, and fft() of the others. */
TERCEL_OP_API(out, autocast_f32)
Tensor rfftn(const Tensor& x, const Axes& axes = {}, std::string_view norm = "backward");
TERCEL_OP_API(out, autocast_f32)
Tensor irfftn(const Tensor& x, const Axes& axes = {}, std::string_view norm = "backward");
TERCEL_OP_API(out) Tensor hfftn(const Tensor& x, const Axes& axes = {}, std::string_view norm = "backward");
TERCEL_OP_API(out) Tensor ihfftn(const Tensor& x, const Axes& axes = {}, std::string_view norm = "backward");
TERCEL_OP_API(out, autocast_f32)
Tensor fft2(const Tensor& x, const Axes& axes = last_two(), std::string_view norm = "backward");
TERCEL_OP_API(out, autocast_f32)
Tensor ifft2(const Tensor& x, const Axes& axes = last_two(), std::string_view norm = "backward");
TERCEL_OP_API(out, autocast_f32)
Tensor rfft2(const Tensor& x, const Axes& axes = last_two(), std::string_view norm = "backward");
TERCEL_OP_API(out, autocast_f32)
Tensor irfft2(const Tensor& x, const Axes& axes = last_two(), std::string_view norm = "backward");
TERCEL_OP_API(out) Tensor hfft2(const Tensor& x, const Axes& axes = last_two(), std::string_view norm = "backward");
TERCEL_OP_API(out) Tensor ihfft2(const Tensor& x, const Axes& axes = last_two(), std::string_view norm = "backward");

/** The frequencies of the points, for samples at a distance of d: 0, 1, ..., -2, -1 over n d. */
TERCEL_OP_API(out) Tensor fftfreq(int64_t n, double d = 1, TensorOptions options = {});
/** Those of rfft(): 0, 1, ..., n / 2 over n d. */
TERCEL_OP_API(out) Tensor rfftfreq(int64_t n, double d = 1, TensorOptions options = {});
/** Points turned so that the frequency 0 comes to the middle, along `dim` (none: all). */
TERCEL_OP_API(python) Tensor fftshift(const Tensor& x, const std::optional<DimVector>& dim = std::nullopt);
/** The inverse of fftshift(). */
TERCEL_OP_API(python) Tensor ifftshift(const Tensor& x, const std::optional<DimVector>& dim = std::nullopt);

}  // namespace tercel::fft
