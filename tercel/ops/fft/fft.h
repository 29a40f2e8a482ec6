// Discrete Fourier transforms, as in torch.fft.
//
// Forward transforms sum x_j exp(-2 pi i j k / n), inverse ones x_j exp(+2 pi i j k / n). `norm` selects the scaling:
// "backward" divides inverse transforms by n, "forward" divides forward transforms by n, "ortho" divides both by
// sqrt(n). float32, float64 and their complex types; integers are transformed in float32 (NotImplementedError for
// 16-bit floats). `n`, or `s` for several dimensions, is the length to which x is first trimmed or zero-padded. Names,
// defaults and errors are PyTorch's.
#pragma once

#include <optional>
#include <string_view>

#include "tercel/core/tensor.h"

namespace tercel::fft {

using Length = std::optional<int64_t>;
/** Fourier transform of n points along a dimension (x is trimmed or zero-padded), and its inverse. */
TERCEL_OP_API(out, autocast_f32)
Tensor fft(const Tensor& x, Length n = std::nullopt, int64_t dim = -1, std::string_view norm = "backward");
TERCEL_OP_API(out, autocast_f32)
Tensor ifft(const Tensor& x, Length n = std::nullopt, int64_t dim = -1, std::string_view norm = "backward");
/** Transform of real x: the first n / 2 + 1 points; the others are their conjugates. */
TERCEL_OP_API(out, autocast_f32)
Tensor rfft(const Tensor& x, Length n = std::nullopt, int64_t dim = -1, std::string_view norm = "backward");
/** Inverse of rfft(); n is the length of the real result, by default 2 (size - 1). */
TERCEL_OP_API(out, autocast_f32)
Tensor irfft(const Tensor& x, Length n = std::nullopt, int64_t dim = -1, std::string_view norm = "backward");
/** Forward transform of a Hermitian-symmetric signal, given by its first n / 2 + 1 points; the result is real. */
TERCEL_OP_API(out, autocast_f32)
Tensor hfft(const Tensor& x, Length n = std::nullopt, int64_t dim = -1, std::string_view norm = "backward");
/** Inverse of hfft(). */
TERCEL_OP_API(out, autocast_f32)
Tensor ihfft(const Tensor& x, Length n = std::nullopt, int64_t dim = -1, std::string_view norm = "backward");

/** Dimensions to transform and their lengths; without dims, the last s.size() dimensions, or all. */
struct Axes {
  std::optional<DimVector> s, dim;
};
/** The last two dimensions. */
TERCEL_API Axes last_two();
/** Transforms along several dimensions. */
TERCEL_OP_API(out, autocast_f32)
Tensor fftn(const Tensor& x, const Axes& axes = {}, std::string_view norm = "backward");
TERCEL_OP_API(out, autocast_f32)
Tensor ifftn(const Tensor& x, const Axes& axes = {}, std::string_view norm = "backward");
/** rfft() along the last of the dimensions, and fft() along the others. */
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

/** Frequencies of the points for sample spacing d: 0, 1, ..., -2, -1 divided by n d. */
TERCEL_OP_API(out) Tensor fftfreq(int64_t n, double d = 1, TensorOptions options = {});
/** Frequencies of rfft(): 0, 1, ..., n / 2 divided by n d. */
TERCEL_OP_API(out) Tensor rfftfreq(int64_t n, double d = 1, TensorOptions options = {});
/** Rotates the points so that frequency 0 is in the middle, along `dim` (all by default). */
TERCEL_OP_API(python) Tensor fftshift(const Tensor& x, const std::optional<DimVector>& dim = std::nullopt);
/** Inverse of fftshift(). */
TERCEL_OP_API(python) Tensor ifftshift(const Tensor& x, const std::optional<DimVector>& dim = std::nullopt);

}  // namespace tercel::fft
