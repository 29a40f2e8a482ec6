// Layers without parameters: activations, windows, borders, places. They hold nothing but what a function is called
// with; names, arguments and defaults are torch.nn's.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "tercel/nn/module.h"
#include "tercel/ops/activation.h"
#include "tercel/ops/conv.h"
#include "tercel/ops/interpolate.h"
#include "tercel/ops/pad.h"
#include "tercel/ops/pool.h"
#include "tercel/ops/similarity.h"
#include "tercel/ops/softmax.h"
#include "tercel/ops/unary.h"
#include "tercel/ops/views.h"

namespace tercel::nn {

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

/** The activations of these names, of activation.h and unary.h. */
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

/** Numbers of a window; lists of one number hold for every dimension, no stride is the window's size. */
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

namespace detail {
/** One number for both ends of every dimension, or pad()'s list itself; ValueError for another length. */
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

#undef TERCEL_LAYER0
#undef TERCEL_LAYER1
#undef TERCEL_LAYER2
#undef TERCEL_WINDOW_LAYER
#undef TERCEL_MAX_LAYER
#undef TERCEL_AVERAGE_LAYER
#undef TERCEL_BORDER_LAYER
#undef TERCEL_CONSTANT_BORDER_LAYER

}  // namespace tercel::nn
