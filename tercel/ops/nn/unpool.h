// Max unpooling and fractional max pooling.
//
// x is [n, channels, spatial...] or, without a batch, [channels, spatial...]. One-element lists apply to every spatial
// dimension. Indices are flat pixel indices within a channel, as from max_pool2d_with_indices(). Wrong sizes raise
// RuntimeError with PyTorch's message.
#pragma once

#include "tercel/core/tensor.h"
#include "tercel/ops/common/values_and_indices.h"

namespace tercel {

/**
 * Puts each element where max_pool1d() found it, and zeros elsewhere. output_size (spatial or all sizes) defaults to
 * the windows' span; others must give as many windows (ValueError). An empty stride is the kernel's size.
 */
TERCEL_OP_API(python_nn, autocast_f32)
Tensor max_unpool1d(const Tensor& x, const Tensor& indices, IntSpan kernel_size, IntSpan stride = {},
                    IntSpan padding = {0}, IntSpan output_size = {});
TERCEL_OP_API(python_nn, autocast_f32)
Tensor max_unpool2d(const Tensor& x, const Tensor& indices, IntSpan kernel_size, IntSpan stride = {},
                    IntSpan padding = {0}, IntSpan output_size = {});
TERCEL_OP_API(python_nn, autocast_f32)
Tensor max_unpool3d(const Tensor& x, const Tensor& indices, IntSpan kernel_size, IntSpan stride = {},
                    IntSpan padding = {0}, IntSpan output_size = {});

/**
 * The maximum of each randomly placed window (Graham, Fractional Max-Pooling). random_samples [n, channels, dimensions]
 * in [0, 1) determine the positions; they are drawn unless given.
 */
TERCEL_OP_API(autocast_f32)
Tensor fractional_max_pool2d(const Tensor& x, IntSpan kernel_size, IntSpan output_size,
                             const Tensor& random_samples = {});
TERCEL_OP_API(autocast_f32)
Tensor fractional_max_pool3d(const Tensor& x, IntSpan kernel_size, IntSpan output_size,
                             const Tensor& random_samples = {});
/** The same with the flat index of each maximum. */
TERCEL_API ValuesAndIndices fractional_max_pool2d_with_indices(const Tensor& x, IntSpan kernel_size,
                                                               IntSpan output_size, const Tensor& random_samples = {});
TERCEL_API ValuesAndIndices fractional_max_pool3d_with_indices(const Tensor& x, IntSpan kernel_size,
                                                               IntSpan output_size, const Tensor& random_samples = {});

}  // namespace tercel
