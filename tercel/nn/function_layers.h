// Layers without parameters: activations, pooling, padding, reshaping. They hold only the arguments of a function;
// names, arguments and defaults are torch.nn's.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "tercel/nn/module.h"
#include "tercel/ops/elementwise/activation.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/nn/conv.h"
#include "tercel/ops/nn/interpolate.h"
#include "tercel/ops/nn/norm.h"
#include "tercel/ops/nn/pool.h"
#include "tercel/ops/nn/similarity.h"
#include "tercel/ops/nn/softmax.h"
#include "tercel/ops/nn/unpool.h"
#include "tercel/ops/views/flip_roll_repeat.h"
#include "tercel/ops/views/pad.h"
#include "tercel/ops/views/views.h"

namespace tercel::nn {

namespace detail {
/** ValueError unless x is [n, channels, height, width] or lacks n. */
TERCEL_API void check_images(const char* layer, const Tensor& x);
/** The p-norm of each window. */
TERCEL_API Tensor lp_pool(const Tensor& x, double p, const std::vector<int64_t>& kernel_size,
                          const std::vector<int64_t>& stride, bool ceil_mode, int64_t dims);
}  // namespace detail

#define TERCEL_LAYER0(Name, call)                             \
  class TERCEL_API Name final : public Module {               \
   public:                                                    \
    Tensor forward(const Tensor& x) override { return call; } \
    const char* name() const override { return #Name; }       \
  };
#define TERCEL_LAYER1(Name, Type, a, fallback, call)          \
  class TERCEL_API Name final : public Module {               \
   public:                                                    \
    explicit Name(Type a fallback) : a##_(std::move(a)) {}    \
    Tensor forward(const Tensor& x) override { return call; } \
    const char* name() const override { return #Name; }       \
                                                              \
   private:                                                   \
    Type a##_;                                                \
  };
#define TERCEL_LAYER2(Name, TypeA, a, fallback_a, TypeB, b, fallback_b, call)                         \
  class TERCEL_API Name final : public Module {                                                       \
   public:                                                                                            \
    explicit Name(TypeA a fallback_a, TypeB b fallback_b) : a##_(std::move(a)), b##_(std::move(b)) {} \
    Tensor forward(const Tensor& x) override { return call; }                                         \
    const char* name() const override { return #Name; }                                               \
                                                                                                      \
   private:                                                                                           \
    TypeA a##_;                                                                                       \
    TypeB b##_;                                                                                       \
  };

/** Activations of activation.h and unary.h. */
TERCEL_LAYER0(Hardsigmoid, hardsigmoid(x))
TERCEL_LAYER0(Hardswish, hardswish(x))
TERCEL_LAYER0(LogSigmoid, logsigmoid(x))
TERCEL_LAYER0(Mish, mish(x))
TERCEL_LAYER0(ReLU6, relu6(x))
TERCEL_LAYER0(SELU, selu(x))
TERCEL_LAYER0(Softsign, softsign(x))
TERCEL_LAYER0(Tanhshrink, tanhshrink(x))
TERCEL_LAYER1(CELU, double, alpha, = 1, celu(x, alpha_))
TERCEL_LAYER1(ELU, double, alpha, = 1, elu(x, alpha_))
TERCEL_LAYER1(GLU, int64_t, dim, = -1, glu(x, dim_))
TERCEL_LAYER1(Hardshrink, double, lambd, = 0.5, hardshrink(x, lambd_))
TERCEL_LAYER1(LeakyReLU, double, negative_slope, = 0.01, leaky_relu(x, negative_slope_))
TERCEL_LAYER1(LogSoftmax, int64_t, dim, , log_softmax(x, dim_))
TERCEL_LAYER1(Softmin, int64_t, dim, , softmax(neg(x), dim_))
TERCEL_LAYER1(Softshrink, double, lambd, = 0.5, softshrink(x, lambd_))
TERCEL_LAYER2(Hardtanh, double, min_val, = -1, double, max_val, = 1, hardtanh(x, min_val_, max_val_))
TERCEL_LAYER2(Softplus, double, beta, = 1, double, threshold, = 20, softplus(x, beta_, threshold_))
TERCEL_LAYER2(Threshold, double, limit, , double, value, , threshold(x, limit_, value_))

/** softmax() over the channels of images. */
TERCEL_LAYER0(Softmax2d, (detail::check_images("Softmax2d", x), softmax(x, -3)))
/** rrelu(), with random slopes while training. */
TERCEL_LAYER2(RReLU, double, lower, = 1.0 / 8, double, upper, = 1.0 / 3, rrelu(x, lower_, upper_, is_training()))

/** Parameters of a window; lists of one number apply to every dimension, an empty stride means the window's size. */
struct WindowOptions {
  std::vector<int64_t> stride{}, padding{0}, dilation{1};
  bool ceil_mode = false;
  bool count_include_pad = true;  ///< of averages
};
#define TERCEL_WINDOW_LAYER(Name, call) \
  TERCEL_LAYER2(Name, std::vector<int64_t>, kernel_size, , WindowOptions, options, = {}, call)
#define TERCEL_MAX_LAYER(Name, function) \
  TERCEL_WINDOW_LAYER(                   \
      Name, function(x, kernel_size_, options_.stride, options_.padding, options_.dilation, options_.ceil_mode))
#define TERCEL_AVERAGE_LAYER(Name, function)                                                                 \
  TERCEL_WINDOW_LAYER(Name, function(x, kernel_size_, options_.stride, options_.padding, options_.ceil_mode, \
                                     options_.count_include_pad))
/** Pooling, of pool.h; the 2d ones of square windows are in layers.h. */
TERCEL_MAX_LAYER(MaxPool1d, max_pool1d)
TERCEL_MAX_LAYER(MaxPool3d, max_pool3d)
TERCEL_AVERAGE_LAYER(AvgPool1d, avg_pool1d)
TERCEL_AVERAGE_LAYER(AvgPool3d, avg_pool3d)
TERCEL_LAYER1(AdaptiveAvgPool1d, std::vector<int64_t>, output_size, , adaptive_avg_pool1d(x, output_size_))
TERCEL_LAYER1(AdaptiveAvgPool3d, std::vector<int64_t>, output_size, , adaptive_avg_pool3d(x, output_size_))
TERCEL_LAYER1(AdaptiveMaxPool1d, std::vector<int64_t>, output_size, , adaptive_max_pool1d(x, output_size_).values)
TERCEL_LAYER1(AdaptiveMaxPool2d, std::vector<int64_t>, output_size, , adaptive_max_pool2d(x, output_size_).values)
TERCEL_LAYER1(AdaptiveMaxPool3d, std::vector<int64_t>, output_size, , adaptive_max_pool3d(x, output_size_).values)

/** The p-norm of windows. */
#define TERCEL_LP_LAYER(Name, dims)                                                                                    \
  class TERCEL_API Name final : public Module {                                                                        \
   public:                                                                                                             \
    Name(double norm_type, std::vector<int64_t> kernel_size, std::vector<int64_t> stride = {}, bool ceil_mode = false) \
        : norm_type_(norm_type),                                                                                       \
          kernel_size_(std::move(kernel_size)),                                                                        \
          stride_(std::move(stride)),                                                                                  \
          ceil_mode_(ceil_mode) {}                                                                                     \
    Tensor forward(const Tensor& x) override {                                                                         \
      return detail::lp_pool(x, norm_type_, kernel_size_, stride_, ceil_mode_, dims);                                  \
    }                                                                                                                  \
    const char* name() const override { return #Name; }                                                                \
                                                                                                                       \
   private:                                                                                                            \
    double norm_type_;                                                                                                 \
    std::vector<int64_t> kernel_size_, stride_;                                                                        \
    bool ceil_mode_;                                                                                                   \
  };
TERCEL_LP_LAYER(LPPool1d, 1)
TERCEL_LP_LAYER(LPPool2d, 2)
TERCEL_LP_LAYER(LPPool3d, 3)
#define TERCEL_UNPOOL_LAYER(Name, function)                                                                 \
  class TERCEL_API Name final : public Module {                                                             \
   public:                                                                                                  \
    explicit Name(std::vector<int64_t> kernel_size, std::vector<int64_t> stride = {},                       \
                  std::vector<int64_t> padding = {0})                                                       \
        : kernel_size_(std::move(kernel_size)), stride_(std::move(stride)), padding_(std::move(padding)) {} \
    using Module::forward;                                                                                  \
    Tensor forward(const Tensor& x, const Tensor& indices, IntSpan output_size = {}) {                      \
      return function(x, indices, kernel_size_, stride_, padding_, output_size);                            \
    }                                                                                                       \
    Tensor operator()(const Tensor& x, const Tensor& indices, IntSpan output_size = {}) {                   \
      return forward(x, indices, output_size);                                                              \
    }                                                                                                       \
    const char* name() const override { return #Name; }                                                     \
                                                                                                            \
   private:                                                                                                 \
    std::vector<int64_t> kernel_size_, stride_, padding_;                                                   \
  };
/** Inverse of pooling with indices, of unpool.h. */
TERCEL_UNPOOL_LAYER(MaxUnpool1d, max_unpool1d)
TERCEL_UNPOOL_LAYER(MaxUnpool2d, max_unpool2d)
TERCEL_UNPOOL_LAYER(MaxUnpool3d, max_unpool3d)
/** Pooling with random windows, of unpool.h. */
TERCEL_LAYER2(FractionalMaxPool2d, std::vector<int64_t>, kernel_size, , std::vector<int64_t>, output_size, ,
              fractional_max_pool2d(x, kernel_size_, output_size_))
TERCEL_LAYER2(FractionalMaxPool3d, std::vector<int64_t>, kernel_size, , std::vector<int64_t>, output_size, ,
              fractional_max_pool3d(x, kernel_size_, output_size_))

namespace detail {
/** One number for both ends of every dimension, or pad()'s list; ValueError for another length. */
TERCEL_API std::vector<int64_t> borders(const char* layer, std::vector<int64_t> padding, int64_t dims);
}  // namespace detail
#define TERCEL_BORDER_LAYER(Name, dims, call)                                                                   \
  class TERCEL_API Name final : public Module {                                                                 \
   public:                                                                                                      \
    explicit Name(std::vector<int64_t> padding) : padding_(detail::borders(#Name, std::move(padding), dims)) {} \
    Tensor forward(const Tensor& x) override { return call; }                                                   \
    const char* name() const override { return #Name; }                                                         \
                                                                                                                \
   private:                                                                                                     \
    std::vector<int64_t> padding_;                                                                              \
  };
#define TERCEL_CONSTANT_BORDER_LAYER(Name, dims)                                              \
  class TERCEL_API Name final : public Module {                                               \
   public:                                                                                    \
    Name(std::vector<int64_t> padding, double value)                                          \
        : padding_(detail::borders(#Name, std::move(padding), dims)), value_(value) {}        \
    Tensor forward(const Tensor& x) override { return pad(x, padding_, "constant", value_); } \
    const char* name() const override { return #Name; }                                       \
                                                                                              \
   private:                                                                                   \
    std::vector<int64_t> padding_;                                                            \
    double value_;                                                                            \
  };
/** pad(), with one number for all ends, or its list. */
TERCEL_BORDER_LAYER(ZeroPad1d, 1, pad(x, padding_))
TERCEL_BORDER_LAYER(ZeroPad2d, 2, pad(x, padding_))
TERCEL_BORDER_LAYER(ZeroPad3d, 3, pad(x, padding_))
TERCEL_BORDER_LAYER(ReflectionPad1d, 1, pad(x, padding_, "reflect"))
TERCEL_BORDER_LAYER(ReflectionPad2d, 2, pad(x, padding_, "reflect"))
TERCEL_BORDER_LAYER(ReflectionPad3d, 3, pad(x, padding_, "reflect"))
TERCEL_BORDER_LAYER(ReplicationPad1d, 1, pad(x, padding_, "replicate"))
TERCEL_BORDER_LAYER(ReplicationPad2d, 2, pad(x, padding_, "replicate"))
TERCEL_BORDER_LAYER(ReplicationPad3d, 3, pad(x, padding_, "replicate"))
TERCEL_BORDER_LAYER(CircularPad1d, 1, pad(x, padding_, "circular"))
TERCEL_BORDER_LAYER(CircularPad2d, 2, pad(x, padding_, "circular"))
TERCEL_BORDER_LAYER(CircularPad3d, 3, pad(x, padding_, "circular"))
TERCEL_CONSTANT_BORDER_LAYER(ConstantPad1d, 1)
TERCEL_CONSTANT_BORDER_LAYER(ConstantPad2d, 2)
TERCEL_CONSTANT_BORDER_LAYER(ConstantPad3d, 3)

/** unflatten(), interpolate(), pixel_shuffle() and pixel_unshuffle(). */
TERCEL_LAYER2(Unflatten, int64_t, dim, , std::vector<int64_t>, sizes, , unflatten(x, dim_, sizes_))
TERCEL_LAYER1(Upsample, InterpolateOptions, options, , interpolate(x, options_))
TERCEL_LAYER1(PixelShuffle, int64_t, upscale_factor, , pixel_shuffle(x, upscale_factor_))
TERCEL_LAYER1(PixelUnshuffle, int64_t, downscale_factor, , pixel_unshuffle(x, downscale_factor_))

/** channel_shuffle() and local_response_norm(). */
TERCEL_LAYER1(ChannelShuffle, int64_t, groups, , channel_shuffle(x, groups_))
class TERCEL_API LocalResponseNorm final : public Module {
 public:
  explicit LocalResponseNorm(int64_t size, double alpha = 1e-4, double beta = 0.75, double k = 1)
      : size_(size), alpha_(alpha), beta_(beta), k_(k) {}
  Tensor forward(const Tensor& x) override { return local_response_norm(x, size_, alpha_, beta_, k_); }
  const char* name() const override { return "LocalResponseNorm"; }

 private:
  int64_t size_;
  double alpha_, beta_, k_;
};

/** x [n, channels, height, width] divided by the mean of squares of adjacent channels, as in Caffe, with two bugs of
 * PyTorch: the first channel stays in all later sums, an even size omits a channel. ValueError unless 4-D. */
class TERCEL_API CrossMapLRN2d final : public Module {
 public:
  explicit CrossMapLRN2d(int64_t size, double alpha = 1e-4, double beta = 0.75, double k = 1)
      : size_(size), alpha_(alpha), beta_(beta), k_(k) {}
  Tensor forward(const Tensor& x) override;
  const char* name() const override { return "CrossMapLRN2d"; }

 private:
  int64_t size_;
  double alpha_, beta_, k_;
};

/** Parameters of patches; lists of one number apply to every dimension. */
struct PatchOptions {
  std::vector<int64_t> dilation{1}, padding{0}, stride{1};
};
/** im2col(), and col2im() to output_size. */
TERCEL_LAYER2(Unfold, std::vector<int64_t>, kernel_size, , PatchOptions, options, = {},
              im2col(x, kernel_size_, options_.dilation, options_.padding, options_.stride))
class TERCEL_API Fold final : public Module {
 public:
  Fold(std::vector<int64_t> output_size, std::vector<int64_t> kernel_size, PatchOptions options = {})
      : output_size_(std::move(output_size)), kernel_size_(std::move(kernel_size)), options_(std::move(options)) {}
  Tensor forward(const Tensor& x) override {
    return col2im(x, output_size_, kernel_size_, options_.dilation, options_.padding, options_.stride);
  }
  const char* name() const override { return "Fold"; }

 private:
  std::vector<int64_t> output_size_, kernel_size_;
  PatchOptions options_;
};

#define TERCEL_LAYER_OF_TWO(Name, call)                                \
  using Module::forward;                                               \
  Tensor forward(const Tensor& a, const Tensor& b) { return call; }    \
  Tensor operator()(const Tensor& a, const Tensor& b) { return call; } \
  const char* name() const override { return #Name; }
/** cosine_similarity() and pairwise_distance() of two tensors. */
class TERCEL_API CosineSimilarity final : public Module {
 public:
  explicit CosineSimilarity(int64_t dim = 1, double eps = 1e-8) : dim_(dim), eps_(eps) {}
  TERCEL_LAYER_OF_TWO(CosineSimilarity, cosine_similarity(a, b, dim_, eps_))

 private:
  int64_t dim_;
  double eps_;
};
class TERCEL_API PairwiseDistance final : public Module {
 public:
  explicit PairwiseDistance(double p = 2, double eps = 1e-6, bool keepdim = false)
      : p_(p), eps_(eps), keepdim_(keepdim) {}
  TERCEL_LAYER_OF_TWO(PairwiseDistance, pairwise_distance(a, b, p_, eps_, keepdim_))

 private:
  double p_, eps_;
  bool keepdim_;
};

#undef TERCEL_LAYER_OF_TWO
#undef TERCEL_LP_LAYER
#undef TERCEL_UNPOOL_LAYER
#undef TERCEL_LAYER0
#undef TERCEL_LAYER1
#undef TERCEL_LAYER2
#undef TERCEL_WINDOW_LAYER
#undef TERCEL_MAX_LAYER
#undef TERCEL_AVERAGE_LAYER
#undef TERCEL_BORDER_LAYER
#undef TERCEL_CONSTANT_BORDER_LAYER

}  // namespace tercel::nn
