// Layers with parameters, and those that remember whether they train. Names, shapes and initial values are torch.nn's.
#pragma once

#include <optional>
#include <vector>

#include "tercel/nn/module.h"
#include "tercel/ops/embedding_bag.h"

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

/** batch_norm() with running statistics: by the batch's while training, by the running ones else. */
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
/** For x [n, channels] or [n, channels, length]. */
class TERCEL_API BatchNorm1d final : public BatchNorm {
 public:
  explicit BatchNorm1d(int64_t channels, double eps = 1e-5, double momentum = 0.1, bool affine = true)
      : BatchNorm(channels, eps, momentum, affine, 2, 3) {}
  const char* name() const override { return "BatchNorm1d"; }
};
/** For x [n, channels, height, width]. */
class TERCEL_API BatchNorm2d final : public BatchNorm {
 public:
  explicit BatchNorm2d(int64_t channels, double eps = 1e-5, double momentum = 0.1, bool affine = true)
      : BatchNorm(channels, eps, momentum, affine, 4, 4) {}
  const char* name() const override { return "BatchNorm2d"; }
};

/** Numbers of a convolution; lists of one number hold for every dimension. */
struct ConvOptions {
  std::vector<int64_t> stride{1}, padding{0}, dilation{1};
  int64_t groups = 1;
  bool bias = true;
};
/** A convolution: weight [out, in / groups, kernel...], bias [out]. */
class TERCEL_API Conv : public Module {
 public:
  Tensor forward(const Tensor& x) override;
  Tensor weight, bias;

 protected:
  Conv(int64_t dims, int64_t in_channels, int64_t out_channels, IntSpan kernel_size, ConvOptions options);

 private:
  int64_t dims_;
  ConvOptions options_;
};
#define TERCEL_CONV_LAYER(Name, dims)                                                              \
  class TERCEL_API Name final : public Conv {                                                      \
   public:                                                                                         \
    Name(int64_t in_channels, int64_t out_channels, IntSpan kernel_size, ConvOptions options = {}) \
        : Conv(dims, in_channels, out_channels, kernel_size, std::move(options)) {}                \
    const char* name() const override { return #Name; }                                            \
  };
TERCEL_CONV_LAYER(Conv1d, 1)
TERCEL_CONV_LAYER(Conv2d, 2)
TERCEL_CONV_LAYER(Conv3d, 3)
#undef TERCEL_CONV_LAYER

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

/** flatten(), by default of all but the batch. */
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
/** Square windows; a stride of 0 is the kernel's size. */
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
