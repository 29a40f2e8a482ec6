// Convolutions (cross-correlations, as usual in deep learning), and im2col and col2im.
//
// x is [n, channels, spatial...] or, without a batch, [channels, spatial...]. One-element lists apply to every spatial
// dimension. If x or weight is channels-last, so is the result, and the computation runs in that order too. 16-bit
// floats are calculated in float32. Wrong sizes raise RuntimeError with PyTorch's message. Matrix products come from
// gemm.cpp: no library is needed.
#pragma once

#include <array>

#include "tercel/core/tensor.h"
#include "tercel/util/enum_names.h"

namespace tercel {

/** weight [out, channels / groups, kernel...], bias [out] or undefined. */
TERCEL_OP_API(python, python_nn, autocast_lower)
Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, IntSpan stride = {1},
              IntSpan padding = {0}, IntSpan dilation = {1}, int64_t groups = 1);
TERCEL_OP_API(python, python_nn, autocast_lower)
Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, IntSpan stride = {1},
              IntSpan padding = {0}, IntSpan dilation = {1}, int64_t groups = 1);
TERCEL_OP_API(python, python_nn, autocast_lower)
Tensor conv3d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, IntSpan stride = {1},
              IntSpan padding = {0}, IntSpan dilation = {1}, int64_t groups = 1);
/** Padding by name: Valid is none; Same keeps the spatial sizes and requires a stride of 1 (RuntimeError). */
enum class NamedPadding : uint8_t { Valid, Same };
constexpr auto enum_names(NamedPadding) {
  return std::to_array<EnumName<NamedPadding>>({{NamedPadding::Valid, "valid"}, {NamedPadding::Same, "same"}});
}
TERCEL_OP_API(autocast_lower)
Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias, IntSpan stride, NamedPadding padding,
              IntSpan dilation = {1}, int64_t groups = 1);
TERCEL_OP_API(autocast_lower)
Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias, IntSpan stride, NamedPadding padding,
              IntSpan dilation = {1}, int64_t groups = 1);
TERCEL_OP_API(autocast_lower)
Tensor conv3d(const Tensor& x, const Tensor& weight, const Tensor& bias, IntSpan stride, NamedPadding padding,
              IntSpan dilation = {1}, int64_t groups = 1);

/** The gradient of a convolution with respect to its input, as an op: weight [channels, out / groups, kernel...]. */
TERCEL_OP_API(python, python_nn, autocast_lower)
Tensor conv_transpose1d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, IntSpan stride = {1},
                        IntSpan padding = {0}, IntSpan output_padding = {0}, int64_t groups = 1,
                        IntSpan dilation = {1});
TERCEL_OP_API(python, python_nn, autocast_lower)
Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, IntSpan stride = {1},
                        IntSpan padding = {0}, IntSpan output_padding = {0}, int64_t groups = 1,
                        IntSpan dilation = {1});
TERCEL_OP_API(python, python_nn, autocast_lower)
Tensor conv_transpose3d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, IntSpan stride = {1},
                        IntSpan padding = {0}, IntSpan output_padding = {0}, int64_t groups = 1,
                        IntSpan dilation = {1});

/** x [n, channels, height, width] -> one column per patch: [n, channels * window, patches]. */
TERCEL_OP_API(out)
Tensor im2col(const Tensor& x, IntSpan kernel_size, IntSpan dilation = {1}, IntSpan padding = {0},
              IntSpan stride = {1});
/** The reverse, with overlapping patches added: [n, channels * window, patches] -> [n, channels, output_size...]. */
TERCEL_OP_API(out)
Tensor col2im(const Tensor& x, IntSpan output_size, IntSpan kernel_size, IntSpan dilation = {1}, IntSpan padding = {0},
              IntSpan stride = {1});

}  // namespace tercel
