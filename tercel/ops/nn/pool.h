// Max and average pooling.
//
// x is [n, channels, spatial...] or, without a batch, [channels, spatial...]; a channels-last x gives a channels-last
// result. One-element lists apply to every spatial dimension; an empty stride is the kernel's size. 16-bit floats are
// calculated in float32. Wrong sizes raise RuntimeError with PyTorch's message.
#pragma once

#include <optional>

#include "tercel/core/tensor.h"
#include "tercel/ops/common/values_and_indices.h"

namespace tercel {

/** The maximum of each window; NaN if it contains one. Padding is ignored. ceil_mode keeps partial windows. */
TERCEL_OP_API(python, python_nn)
Tensor max_pool1d(const Tensor& x, IntSpan kernel_size, IntSpan stride = {}, IntSpan padding = {0},
                  IntSpan dilation = {1}, bool ceil_mode = false);
TERCEL_OP_API(python, python_nn)
Tensor max_pool2d(const Tensor& x, IntSpan kernel_size, IntSpan stride = {}, IntSpan padding = {0},
                  IntSpan dilation = {1}, bool ceil_mode = false);
TERCEL_OP_API(python, python_nn, autocast_f32)
Tensor max_pool3d(const Tensor& x, IntSpan kernel_size, IntSpan stride = {}, IntSpan padding = {0},
                  IntSpan dilation = {1}, bool ceil_mode = false);
/** The maximum of each window and its flat index in the image. */
TERCEL_OP_API(python, python_nn)
ValuesAndIndices max_pool1d_with_indices(const Tensor& x, IntSpan kernel_size, IntSpan stride = {},
                                         IntSpan padding = {0}, IntSpan dilation = {1}, bool ceil_mode = false);
TERCEL_OP_API(python, python_nn, out, no_python_out)
ValuesAndIndices max_pool2d_with_indices(const Tensor& x, IntSpan kernel_size, IntSpan stride = {},
                                         IntSpan padding = {0}, IntSpan dilation = {1}, bool ceil_mode = false);
TERCEL_OP_API(python, python_nn, out, no_python_out)
ValuesAndIndices max_pool3d_with_indices(const Tensor& x, IntSpan kernel_size, IntSpan stride = {},
                                         IntSpan padding = {0}, IntSpan dilation = {1}, bool ceil_mode = false);

/** The mean of each window. Padding counts as zeros if count_include_pad; divisor_override replaces the count. */
TERCEL_OP_API(python, python_nn)
Tensor avg_pool1d(const Tensor& x, IntSpan kernel_size, IntSpan stride = {}, IntSpan padding = {0},
                  bool ceil_mode = false, bool count_include_pad = true);
TERCEL_OP_API(python, python_nn, out)
Tensor avg_pool2d(const Tensor& x, IntSpan kernel_size, IntSpan stride = {}, IntSpan padding = {0},
                  bool ceil_mode = false, bool count_include_pad = true, std::optional<int64_t> divisor_override = {});
TERCEL_OP_API(python, python_nn, out, autocast_f32)
Tensor avg_pool3d(const Tensor& x, IntSpan kernel_size, IntSpan stride = {}, IntSpan padding = {0},
                  bool ceil_mode = false, bool count_include_pad = true, std::optional<int64_t> divisor_override = {});

/** The mean of each of output_size windows of nearly equal size. */
TERCEL_OP_API(python, python_nn) Tensor adaptive_avg_pool1d(const Tensor& x, IntSpan output_size);
TERCEL_OP_API(python, python_nn, out, no_python_out) Tensor adaptive_avg_pool2d(const Tensor& x, IntSpan output_size);
TERCEL_OP_API(python, python_nn, out, no_python_out, autocast_f32)
Tensor adaptive_avg_pool3d(const Tensor& x, IntSpan output_size);
/** The maximum of each of these windows and its flat index in the image. */
TERCEL_OP_API(python, python_nn) ValuesAndIndices adaptive_max_pool1d(const Tensor& x, IntSpan output_size);
TERCEL_OP_API(python, python_nn, out, no_python_out)
ValuesAndIndices adaptive_max_pool2d(const Tensor& x, IntSpan output_size);
TERCEL_OP_API(python, python_nn, out, no_python_out, autocast_f32)
ValuesAndIndices adaptive_max_pool3d(const Tensor& x, IntSpan output_size);

}  // namespace tercel
