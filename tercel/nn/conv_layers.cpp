#include "tercel/nn/conv_layers.h"

#include <cmath>

#include "tercel/nn/init_functions.h"
#include "tercel/ops/nn/conv.h"

namespace tercel::nn {

namespace {

/** Sizes of a weight: channels, then the kernel; ValueError for invalid ones. */
DimVector kernel_sizes(int64_t dims, int64_t in_channels, int64_t out_channels, int64_t groups,
                       const SizeList& kernel_size, bool transposed) {
  TERCEL_CHECK(groups > 0, ValueError, "groups must be a positive integer");
  TERCEL_CHECK(in_channels % groups == 0, ValueError, "in_channels must be divisible by groups");
  TERCEL_CHECK(out_channels % groups == 0, ValueError, "out_channels must be divisible by groups");
  TERCEL_CHECK(kernel_size.size() == 1 || static_cast<int64_t>(kernel_size.size()) == dims, ValueError,
               "kernel_size must be one number or ", dims, " but got ", IntSpan(kernel_size));
  DimVector sizes{transposed ? in_channels : out_channels, (transposed ? out_channels : in_channels) / groups};
  for (int64_t d = 0; d < dims; ++d) sizes.push_back(kernel_size[static_cast<size_t>(d)]);
  return sizes;
}

/** Uniform in +-1 / sqrt(fan in), as in PyTorch; `kernel` has the weight's sizes. */
Tensor start(IntSpan sizes, IntSpan kernel) {
  const auto fan_in = static_cast<double>(numel_of(kernel.subspan(1, kernel.size() - 1)));
  const double bound = fan_in > 0 ? 1 / std::sqrt(fan_in) : 0;
  return init::uniform_(empty(sizes), -bound, bound);
}

}  // namespace

Conv::Conv(int64_t dims, int64_t in_channels, int64_t out_channels, const SizeList& kernel_size, ConvOptions options)
    : dims_(dims), options_(std::move(options)) {
  const DimVector sizes = kernel_sizes(dims, in_channels, out_channels, options_.groups, kernel_size, false);
  weight = register_parameter("weight", start(sizes, sizes));
  bias = register_parameter("bias", options_.bias ? start({out_channels}, sizes) : Tensor());
}
Tensor Conv::forward(const Tensor& x) {
  const ConvOptions& o = options_;
  if (dims_ == 1) return conv1d(x, weight, bias, o.stride, o.padding, o.dilation, o.groups);
  if (dims_ == 2) return conv2d(x, weight, bias, o.stride, o.padding, o.dilation, o.groups);
  return conv3d(x, weight, bias, o.stride, o.padding, o.dilation, o.groups);
}

ConvTranspose::ConvTranspose(int64_t dims, int64_t in_channels, int64_t out_channels, const SizeList& kernel_size,
                             ConvTransposeOptions options)
    : dims_(dims), options_(std::move(options)) {
  const DimVector sizes = kernel_sizes(dims, in_channels, out_channels, options_.groups, kernel_size, true);
  weight = register_parameter("weight", start(sizes, sizes));
  bias = register_parameter("bias", options_.bias ? start({out_channels}, sizes) : Tensor());
}
Tensor ConvTranspose::run(const Tensor& x, IntSpan output_padding) const {
  const ConvTransposeOptions& o = options_;
  const auto function = dims_ == 1 ? conv_transpose1d : dims_ == 2 ? conv_transpose2d : conv_transpose3d;
  return function(x, weight, bias, o.stride, o.padding, output_padding, o.groups, o.dilation);
}
Tensor ConvTranspose::forward(const Tensor& x) { return run(x, options_.output_padding); }
Tensor ConvTranspose::forward(const Tensor& x, IntSpan output_size) {
  const auto dims = static_cast<size_t>(dims_);
  TERCEL_CHECK(output_size.size() >= dims, ValueError, name(), ": expected an output size of ", dims,
               " numbers but got ", output_size);
  const IntSpan wanted = output_size.subspan(output_size.size() - dims, dims);
  DimVector extra;
  for (size_t d = 0; d < dims; ++d) {
    const int64_t stride = options_.stride[d], in = x.size(static_cast<int64_t>(d) - dims_);
    const int64_t least =
        (in - 1) * stride - 2 * options_.padding[d] + options_.dilation[d] * (weight.sizes()[d + 2] - 1) + 1;
    TERCEL_CHECK(least <= wanted[d] && wanted[d] < least + stride, ValueError, "requested an output size of ", wanted,
                 ", but valid sizes of dimension ", d, " range from ", least, " to ", least + stride - 1);
    extra.push_back(wanted[d] - least);
  }
  return run(x, extra);
}

}  // namespace tercel::nn
