#include "tercel/nn/layers.h"

#include <cmath>

#include "tercel/autograd/grad_mode.h"
#include "tercel/nn/init_functions.h"
#include "tercel/ops/batch_norm.h"
#include "tercel/ops/binary.h"
#include "tercel/ops/conv.h"
#include "tercel/ops/copy.h"
#include "tercel/ops/dropout.h"
#include "tercel/ops/factories.h"
#include "tercel/ops/linear.h"
#include "tercel/ops/norm.h"
#include "tercel/ops/pool.h"
#include "tercel/ops/softmax.h"
#include "tercel/ops/unary.h"
#include "tercel/ops/views.h"

namespace tercel::nn {

namespace {

// Uniform in +-1 / sqrt(fan in), as PyTorch's layers begin.
Tensor start(IntSpan sizes, double fan_in) {
  const double bound = fan_in > 0 ? 1 / std::sqrt(fan_in) : 0;
  return init::uniform_(empty(sizes), -bound, bound);
}

Tensor table(int64_t rows, int64_t dim, std::optional<int64_t> padding_idx) {
  const Tensor weight = init::normal_(empty({rows, dim}));
  if (padding_idx) {
    TERCEL_CHECK(*padding_idx >= -rows && *padding_idx < rows, ValueError, "Padding_idx must be within num_embeddings");
    zero_(select(weight, 0, *padding_idx));
  }
  return weight;
}

}  // namespace

Linear::Linear(int64_t in_features, int64_t out_features, bool with_bias)
    : weight(register_parameter("weight", start({out_features, in_features}, static_cast<double>(in_features)))),
      bias(register_parameter("bias", with_bias ? start({out_features}, static_cast<double>(in_features)) : Tensor())) {
}
Tensor Linear::forward(const Tensor& x) { return linear(x, weight, bias); }

Embedding::Embedding(int64_t num_embeddings, int64_t dim, std::optional<int64_t> padding_idx, bool sparse)
    : weight(register_parameter("weight", table(num_embeddings, dim, padding_idx))),
      padding_idx_(padding_idx),
      sparse_(sparse) {}
Tensor Embedding::forward(const Tensor& indices) { return embedding(weight, indices, padding_idx_, sparse_); }

EmbeddingBag::EmbeddingBag(int64_t num_embeddings, int64_t dim, const EmbeddingBagOptions& options)
    : weight(register_parameter("weight", table(num_embeddings, dim, options.padding_idx))), options_(options) {}
Tensor EmbeddingBag::forward(const Tensor& indices) { return embedding_bag(weight, indices, options_); }
Tensor EmbeddingBag::forward(const Tensor& indices, const Tensor& offsets, const Tensor& per_sample_weights) {
  return embedding_bag(weight, indices, offsets, options_, per_sample_weights);
}

Dropout::Dropout(double p) : p_(p) {
  TERCEL_CHECK(p >= 0 && p <= 1, ValueError, "dropout probability has to be between 0 and 1, but got ", p);
}
Tensor Dropout::forward(const Tensor& x) { return dropout(x, p_, is_training()); }

LayerNorm::LayerNorm(IntSpan normalized_shape, double eps, bool affine, bool with_bias)
    : weight(register_parameter("weight", affine ? ones(normalized_shape) : Tensor())),
      bias(register_parameter("bias", affine && with_bias ? zeros(normalized_shape) : Tensor())),
      shape_(normalized_shape.to_vector()),
      eps_(eps) {}
Tensor LayerNorm::forward(const Tensor& x) { return layer_norm(x, shape_, weight, bias, eps_); }

GroupNorm::GroupNorm(int64_t num_groups, int64_t num_channels, double eps, bool affine)
    : groups_(num_groups), eps_(eps) {
  TERCEL_CHECK(num_groups > 0 && num_channels % num_groups == 0, ValueError,
               "num_channels must be divisible by num_groups");
  weight = register_parameter("weight", affine ? ones({num_channels}) : Tensor());
  bias = register_parameter("bias", affine ? zeros({num_channels}) : Tensor());
}
Tensor GroupNorm::forward(const Tensor& x) { return group_norm(x, groups_, weight, bias, eps_); }

BatchNorm::BatchNorm(int64_t channels, double eps, double momentum, bool affine, int64_t least_dims, int64_t most_dims)
    : weight(register_parameter("weight", affine ? ones({channels}) : Tensor())),
      bias(register_parameter("bias", affine ? zeros({channels}) : Tensor())),
      running_mean(register_buffer("running_mean", zeros({channels}))),
      running_var(register_buffer("running_var", ones({channels}))),
      num_batches_tracked(register_buffer("num_batches_tracked", zeros({}, kInt64))),
      eps_(eps),
      momentum_(momentum),
      least_dims_(least_dims),
      most_dims_(most_dims) {}
Tensor BatchNorm::forward(const Tensor& x) {
  if (x.dim() < least_dims_ || x.dim() > most_dims_)
    throw_error<ValueError>(
        {"expected ", least_dims_ == most_dims_ ? "4D" : "2D or 3D", " input (got ", x.dim(), "D input)"});
  if (is_training()) {
    const NoGradGuard no_grad;
    add_(num_batches_tracked, 1);
  }
  return batch_norm(x, running_mean, running_var, weight, bias,
                    {.training = is_training(), .momentum = momentum_, .eps = eps_});
}

Conv::Conv(int64_t dims, int64_t in_channels, int64_t out_channels, IntSpan kernel_size, ConvOptions options)
    : dims_(dims), options_(std::move(options)) {
  TERCEL_CHECK(options_.groups > 0, ValueError, "groups must be a positive integer");
  TERCEL_CHECK(in_channels % options_.groups == 0, ValueError, "in_channels must be divisible by groups");
  TERCEL_CHECK(out_channels % options_.groups == 0, ValueError, "out_channels must be divisible by groups");
  TERCEL_CHECK(kernel_size.size() == 1 || static_cast<int64_t>(kernel_size.size()) == dims, ValueError,
               "kernel_size must be one number or ", dims, " but got ", kernel_size);
  DimVector sizes{out_channels, in_channels / options_.groups};
  auto fan_in = static_cast<double>(sizes[1]);
  for (int64_t d = 0; d < dims; ++d) {
    sizes.push_back(kernel_size[kernel_size.size() == 1 ? 0 : static_cast<size_t>(d)]);
    fan_in *= static_cast<double>(sizes.back());
  }
  weight = register_parameter("weight", start(sizes, fan_in));
  bias = register_parameter("bias", options_.bias ? start({out_channels}, fan_in) : Tensor());
}
Tensor Conv::forward(const Tensor& x) {
  const ConvOptions& o = options_;
  if (dims_ == 1) return conv1d(x, weight, bias, o.stride, o.padding, o.dilation, o.groups);
  if (dims_ == 2) return conv2d(x, weight, bias, o.stride, o.padding, o.dilation, o.groups);
  return conv3d(x, weight, bias, o.stride, o.padding, o.dilation, o.groups);
}

Tensor ReLU::forward(const Tensor& x) { return relu(x); }
Tensor GELU::forward(const Tensor& x) { return gelu(x); }
Tensor SiLU::forward(const Tensor& x) { return silu(x); }
Tensor Sigmoid::forward(const Tensor& x) { return sigmoid(x); }
Tensor Tanh::forward(const Tensor& x) { return tanh(x); }
Tensor Identity::forward(const Tensor& x) { return x; }
Tensor Softmax::forward(const Tensor& x) { return softmax(x, dim_); }
Tensor Flatten::forward(const Tensor& x) { return flatten(x, start_, end_); }
Tensor MaxPool2d::forward(const Tensor& x) { return max_pool2d(x, {kernel_}, {stride_}, {padding_}); }
Tensor AvgPool2d::forward(const Tensor& x) { return avg_pool2d(x, {kernel_}, {stride_}, {padding_}); }
Tensor AdaptiveAvgPool2d::forward(const Tensor& x) { return adaptive_avg_pool2d(x, {size_}); }

}  // namespace tercel::nn
