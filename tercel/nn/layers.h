// Layers with parameters, and layers that depend on training mode. Names, shapes and initial values are torch.nn's.
#pragma once

#include <optional>
#include <vector>

#include "tercel/nn/conv_layers.h"  // IWYU pragma: export
#include "tercel/nn/module.h"
#include "tercel/ops/embedding/embedding_bag.h"
#include "tercel/ops/nn/dropout.h"

namespace tercel::nn {

/** linear(): weight [out, in], bias [out]. */
class TERCEL_API Linear final : public Module {
 public:
  Linear(int64_t in_features, int64_t out_features, bool with_bias = true);
  Tensor forward(const Tensor& x) override;
  const char* name() const override { return "Linear"; }
  Tensor weight, bias;
};

/** embedding(): weight [num_embeddings, dim], standard normal, zero at padding_idx. */
class TERCEL_API Embedding final : public Module {
 public:
  Embedding(int64_t num_embeddings, int64_t dim, std::optional<int64_t> padding_idx = {}, bool sparse = false);
  Tensor forward(const Tensor& indices) override;
  const char* name() const override { return "Embedding"; }
  Tensor weight;

 private:
  std::optional<int64_t> padding_idx_;
  bool sparse_;
};

/** embedding_bag(). */
class TERCEL_API EmbeddingBag final : public Module {
 public:
  EmbeddingBag(int64_t num_embeddings, int64_t dim, const EmbeddingBagOptions& options = {});
  /** Each row of indices is a bag. */
  Tensor forward(const Tensor& indices) override;
  Tensor forward(const Tensor& indices, const Tensor& offsets, const Tensor& per_sample_weights = {});
  const char* name() const override { return "EmbeddingBag"; }
  Tensor weight;

 private:
  EmbeddingBagOptions options_;
};

/** dropout() while training. */
class TERCEL_API Dropout final : public Module {
 public:
  explicit Dropout(double p = 0.5);
  Tensor forward(const Tensor& x) override;
  const char* name() const override { return "Dropout"; }

 private:
  double p_;
};

#define TERCEL_CHANNEL_DROPOUT(Name, dims)                                                                        \
  class TERCEL_API Name final : public Module {                                                                   \
   public:                                                                                                        \
    explicit Name(double p = 0.5) : p_(detail::checked_share(p)) {}                                               \
    Tensor forward(const Tensor& x) override { return detail::drop_channels(#Name, x, p_, is_training(), dims); } \
    const char* name() const override { return #Name; }                                                           \
                                                                                                                  \
   private:                                                                                                       \
    double p_;                                                                                                    \
  };
namespace detail {
/** p; ValueError unless it is in [0, 1]. */
TERCEL_API double checked_share(double p);
TERCEL_API Tensor drop_channels(const char* layer, const Tensor& x, double p, bool training, int64_t dims);
}  // namespace detail
/** In training, zeroes whole channels of x [n, channels, spatial...] or [channels, spatial...] with probability p.
 */
TERCEL_CHANNEL_DROPOUT(Dropout1d, 1)
TERCEL_CHANNEL_DROPOUT(Dropout2d, 2)
TERCEL_CHANNEL_DROPOUT(Dropout3d, 3)
#undef TERCEL_CHANNEL_DROPOUT

#define TERCEL_ALPHA_DROPOUT(Name, function)                                                    \
  class TERCEL_API Name final : public Module {                                                 \
   public:                                                                                      \
    explicit Name(double p = 0.5) : p_(detail::checked_share(p)) {}                             \
    Tensor forward(const Tensor& x) override { return tercel::function(x, p_, is_training()); } \
    const char* name() const override { return #Name; }                                         \
                                                                                                \
   private:                                                                                     \
    double p_;                                                                                  \
  };
/** alpha_dropout() and feature_alpha_dropout() while training. */
TERCEL_ALPHA_DROPOUT(AlphaDropout, alpha_dropout)
TERCEL_ALPHA_DROPOUT(FeatureAlphaDropout, feature_alpha_dropout)
#undef TERCEL_ALPHA_DROPOUT

/** prelu(): weight [1], or one for each channel. */
class TERCEL_API PReLU final : public Module {
 public:
  explicit PReLU(int64_t num_parameters = 1, double init = 0.25);
  Tensor forward(const Tensor& x) override;
  const char* name() const override { return "PReLU"; }
  Tensor weight;
};

/** bilinear(): weight [out, in1, in2], bias [out]. */
class TERCEL_API Bilinear final : public Module {
 public:
  Bilinear(int64_t in1_features, int64_t in2_features, int64_t out_features, bool with_bias = true);
  using Module::forward;
  Tensor forward(const Tensor& a, const Tensor& b);
  Tensor operator()(const Tensor& a, const Tensor& b) { return forward(a, b); }
  const char* name() const override { return "Bilinear"; }
  Tensor weight, bias;
};

/** layer_norm(): weight and bias of normalized_shape. */
class TERCEL_API LayerNorm final : public Module {
 public:
  explicit LayerNorm(IntSpan normalized_shape, double eps = 1e-5, bool affine = true, bool with_bias = true);
  Tensor forward(const Tensor& x) override;
  const char* name() const override { return "LayerNorm"; }
  Tensor weight, bias;

 private:
  std::vector<int64_t> shape_;
  double eps_;
};

/** rms_norm(): weight of normalized_shape. */
class TERCEL_API RMSNorm final : public Module {
 public:
  explicit RMSNorm(IntSpan normalized_shape, std::optional<double> eps = {}, bool affine = true);
  Tensor forward(const Tensor& x) override;
  const char* name() const override { return "RMSNorm"; }
  Tensor weight;

 private:
  std::vector<int64_t> shape_;
  std::optional<double> eps_;
};

/** group_norm(): weight and bias [channels]. */
class TERCEL_API GroupNorm final : public Module {
 public:
  GroupNorm(int64_t num_groups, int64_t num_channels, double eps = 1e-5, bool affine = true);
  Tensor forward(const Tensor& x) override;
  const char* name() const override { return "GroupNorm"; }
  Tensor weight, bias;

 private:
  int64_t groups_;
  double eps_;
};

/** batch_norm() with running statistics: uses the batch's in training, the running ones in evaluation. */
class TERCEL_API BatchNorm : public Module {
 public:
  Tensor forward(const Tensor& x) override;
  Tensor weight, bias, running_mean, running_var, num_batches_tracked;

 protected:
  BatchNorm(int64_t channels, double eps, double momentum, bool affine, int64_t least_dims, int64_t most_dims);

 private:
  double eps_, momentum_;
  int64_t least_dims_, most_dims_;
};
#define TERCEL_BATCH_NORM(Name, least_dims, most_dims)                                            \
  class TERCEL_API Name final : public BatchNorm {                                                \
   public:                                                                                        \
    explicit Name(int64_t channels, double eps = 1e-5, double momentum = 0.1, bool affine = true) \
        : BatchNorm(channels, eps, momentum, affine, least_dims, most_dims) {}                    \
    const char* name() const override { return #Name; }                                           \
  };
/** For x [n, channels] or [n, channels, length]; with height and width; with a depth as well. */
TERCEL_BATCH_NORM(BatchNorm1d, 2, 3)
TERCEL_BATCH_NORM(BatchNorm2d, 4, 4)
TERCEL_BATCH_NORM(BatchNorm3d, 5, 5)
#undef TERCEL_BATCH_NORM

/** Options of instance_norm() besides the channels. */
struct InstanceNormOptions {
  double eps = 1e-5, momentum = 0.1;
  bool affine = false;
  /** Keeps running statistics, and normalises with them in evaluation. */
  bool track_running_stats = false;
};
/** instance_norm(). */
class TERCEL_API InstanceNorm : public Module {
 public:
  Tensor forward(const Tensor& x) override;
  Tensor weight, bias, running_mean, running_var, num_batches_tracked;

 protected:
  InstanceNorm(int64_t channels, InstanceNormOptions options, int64_t dims);

 private:
  int64_t channels_, dims_;
  InstanceNormOptions options_;
};
#define TERCEL_INSTANCE_NORM(Name, dims)                                                                         \
  class TERCEL_API Name final : public InstanceNorm {                                                            \
   public:                                                                                                       \
    explicit Name(int64_t channels, InstanceNormOptions options = {}) : InstanceNorm(channels, options, dims) {} \
    const char* name() const override { return #Name; }                                                          \
  };
/** For x [n, channels, spatial...] or [channels, spatial...]. */
TERCEL_INSTANCE_NORM(InstanceNorm1d, 1)
TERCEL_INSTANCE_NORM(InstanceNorm2d, 2)
TERCEL_INSTANCE_NORM(InstanceNorm3d, 3)
#undef TERCEL_INSTANCE_NORM

#define TERCEL_FUNCTION_LAYER(Name)                     \
  class TERCEL_API Name final : public Module {         \
   public:                                              \
    Tensor forward(const Tensor& x) override;           \
    const char* name() const override { return #Name; } \
  };
/** The functions of those names. */
TERCEL_FUNCTION_LAYER(ReLU)
TERCEL_FUNCTION_LAYER(GELU)
TERCEL_FUNCTION_LAYER(SiLU)
TERCEL_FUNCTION_LAYER(Sigmoid)
TERCEL_FUNCTION_LAYER(Tanh)
TERCEL_FUNCTION_LAYER(Identity)
#undef TERCEL_FUNCTION_LAYER

/** softmax() along a dimension. */
class TERCEL_API Softmax final : public Module {
 public:
  explicit Softmax(int64_t dim) : dim_(dim) {}
  Tensor forward(const Tensor& x) override;
  const char* name() const override { return "Softmax"; }

 private:
  int64_t dim_;
};

/** flatten(), by default all dimensions but the batch. */
class TERCEL_API Flatten final : public Module {
 public:
  explicit Flatten(int64_t start_dim = 1, int64_t end_dim = -1) : start_(start_dim), end_(end_dim) {}
  Tensor forward(const Tensor& x) override;
  const char* name() const override { return "Flatten"; }

 private:
  int64_t start_, end_;
};

#define TERCEL_POOL_LAYER(Name)                                                                   \
  class TERCEL_API Name final : public Module {                                                   \
   public:                                                                                        \
    explicit Name(int64_t kernel_size, int64_t stride = 0, int64_t padding = 0)                   \
        : kernel_(kernel_size), stride_(stride == 0 ? kernel_size : stride), padding_(padding) {} \
    Tensor forward(const Tensor& x) override;                                                     \
    const char* name() const override { return #Name; }                                           \
                                                                                                  \
   private:                                                                                       \
    int64_t kernel_, stride_, padding_;                                                           \
  };
/** Pooling with square windows; a stride of 0 means the kernel's size. */
TERCEL_POOL_LAYER(MaxPool2d)
TERCEL_POOL_LAYER(AvgPool2d)
#undef TERCEL_POOL_LAYER

/** adaptive_avg_pool2d() to a square. */
class TERCEL_API AdaptiveAvgPool2d final : public Module {
 public:
  explicit AdaptiveAvgPool2d(int64_t output_size) : size_(output_size) {}
  Tensor forward(const Tensor& x) override;
  const char* name() const override { return "AdaptiveAvgPool2d"; }

 private:
  int64_t size_;
};

}  // namespace tercel::nn
