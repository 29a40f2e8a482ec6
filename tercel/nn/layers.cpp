#include "tercel/nn/layers.h"

#include <cmath>

#include "tercel/autograd/grad_mode.h"
#include "tercel/nn/init_functions.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/activation.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/embedding/embedding.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/linalg/products.h"
#include "tercel/ops/nn/batch_norm.h"
#include "tercel/ops/nn/linear.h"
#include "tercel/ops/nn/norm.h"
#include "tercel/ops/nn/pool.h"
#include "tercel/ops/nn/softmax.h"
#include "tercel/ops/views/views.h"

namespace tercel::nn {

namespace {

// Uniform in +-1 / sqrt(fan in), as in PyTorch.
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

void check_dims(const Tensor& x, int64_t least, int64_t most) {
  if (x.dim() >= least && x.dim() <= most) return;
  const std::string ranks = least == most ? str_cat({least, "D"}) : str_cat({least, "D or ", most, "D"});
  throw_error<ValueError>({"expected ", ranks, " input (got ", x.dim(), "D input)"});
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

double detail::checked_share(double p) {
  TERCEL_CHECK(p >= 0 && p <= 1, ValueError, "dropout probability has to be between 0 and 1, but got ", p);
  return p;
}
Dropout::Dropout(double p) : p_(detail::checked_share(p)) {}
Tensor Dropout::forward(const Tensor& x) { return dropout(x, p_, is_training()); }

Tensor detail::drop_channels(const char* layer, const Tensor& x, double p, bool training, int64_t dims) {
  TERCEL_CHECK(x.dim() == dims + 1 || x.dim() == dims + 2, RuntimeError, layer, ": Expected ", dims + 1, "D or ",
               dims + 2, "D input, but received a ", x.dim(), "D input");
  if (!training) return x;
  DimVector sizes(x.sizes());
  for (size_t d = sizes.size() - static_cast<size_t>(dims); d < sizes.size(); ++d) sizes[d] = 1;
  return mul(x, dropout(ones(sizes, TensorOptions(x.dtype(), x.device())), p));
}

PReLU::PReLU(int64_t num_parameters, double init)
    : weight(register_parameter("weight", full({num_parameters}, init, kFloat32))) {}
Tensor PReLU::forward(const Tensor& x) { return prelu(x, weight); }

Bilinear::Bilinear(int64_t in1_features, int64_t in2_features, int64_t out_features, bool with_bias) {
  const auto fan_in = static_cast<double>(in1_features);
  weight = register_parameter("weight", start({out_features, in1_features, in2_features}, fan_in));
  bias = register_parameter("bias", with_bias ? start({out_features}, fan_in) : Tensor());
}
Tensor Bilinear::forward(const Tensor& a, const Tensor& b) { return bilinear(a, b, weight, bias); }

LayerNorm::LayerNorm(IntSpan normalized_shape, double eps, bool affine, bool with_bias)
    : weight(register_parameter("weight", affine ? ones(normalized_shape) : Tensor())),
      bias(register_parameter("bias", affine && with_bias ? zeros(normalized_shape) : Tensor())),
      shape_(normalized_shape.to_vector()),
      eps_(eps) {}
Tensor LayerNorm::forward(const Tensor& x) { return layer_norm(x, shape_, weight, bias, eps_); }

RMSNorm::RMSNorm(IntSpan normalized_shape, std::optional<double> eps, bool affine)
    : weight(register_parameter("weight", affine ? ones(normalized_shape) : Tensor())),
      shape_(normalized_shape.to_vector()),
      eps_(eps) {}
Tensor RMSNorm::forward(const Tensor& x) { return rms_norm(x, shape_, weight, eps_); }

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
  check_dims(x, least_dims_, most_dims_);
  if (is_training()) {
    const NoGradGuard no_grad;
    add_(num_batches_tracked, 1);
  }
  return batch_norm(x, running_mean, running_var, weight, bias,
                    {.training = is_training(), .momentum = momentum_, .eps = eps_});
}

InstanceNorm::InstanceNorm(int64_t channels, InstanceNormOptions options, int64_t dims)
    : weight(register_parameter("weight", options.affine ? ones({channels}) : Tensor())),
      bias(register_parameter("bias", options.affine ? zeros({channels}) : Tensor())),
      channels_(channels),
      dims_(dims),
      options_(options) {
  if (!options.track_running_stats) return;
  running_mean = register_buffer("running_mean", zeros({channels}));
  running_var = register_buffer("running_var", ones({channels}));
  num_batches_tracked = register_buffer("num_batches_tracked", zeros({}, kInt64));
}
Tensor InstanceNorm::forward(const Tensor& input) {
  check_dims(input, dims_ + 1, dims_ + 2);
  const bool alone = input.dim() == dims_ + 1;  // one sample, without a batch
  const Tensor x = alone ? unsqueeze(input, 0) : input;
  TERCEL_CHECK(!options_.affine || x.size(1) == channels_, ValueError, "expected input's size at dim=", alone ? 0 : 1,
               " to match num_features (", channels_, "), but got: ", x.size(1), ".");
  const Tensor out = instance_norm(x, running_mean, running_var, weight, bias,
                                   is_training() || !options_.track_running_stats, options_.momentum, options_.eps);
  return alone ? squeeze(out, 0) : out;
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
