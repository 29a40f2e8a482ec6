// Pooling undone, and pooling by windows of random places.
//
// x is [n, channels, spatial...] or, without a batch, [channels, spatial...]. Lists of one number hold for every
// spatial dimension. Indices are the numbers of pixels of their channel, as max_pool2d_with_indices() gives them. Wrong
// sizes are a RuntimeError with PyTorch's sentence.
#pragma once

#include "tercel/core/tensor.h"
#include "tercel/ops/common/values_and_indices.h"

namespace tercel {

/**
 * Each element where max_pool1d() found it, zeros elsewhere. output_size, spatial or with all dimensions, is by default
 * what the windows span; another one must have as many windows (ValueError). An empty stride is the kernel's size.
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
 * The largest of each window of random place (Graham, Fractional Max-Pooling). random_samples [n, channels, dimensions]
 * in [0, 1) place the windows; they are drawn unless given.
 */
TERCEL_OP_API(autocast_f32)
Tensor fractional_max_pool2d(const Tensor& x, IntSpan kernel_size, IntSpan output_size,
                             const Tensor& random_samples = {});
TERCEL_OP_API(autocast_f32)
Tensor fractional_max_pool3d(const Tensor& x, IntSpan kernel_size, IntSpan output_size,
                             const Tensor& random_samples = {});
/** The same, and where each stood. */
TERCEL_API ValuesAndIndices fractional_max_pool2d_with_indices(const Tensor& x, IntSpan kernel_size,
                                                               IntSpan output_size, const Tensor& random_samples = {});
TERCEL_API ValuesAndIndices fractional_max_pool3d_with_indices(const Tensor& x, IntSpan kernel_size,
                                                               IntSpan output_size, const Tensor& random_samples = {});

}  // namespace tercel
