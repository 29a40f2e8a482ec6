// Convolutions as modules. Names, shapes and initial values are torch.nn's.
#pragma once

#include <utility>

#include "tercel/nn/module.h"
#include "tercel/nn/size_list.h"

namespace tercel::nn {

/** Parameters of a convolution; lists of one number apply to every dimension. */
struct ConvOptions {
  SizeList stride{1}, padding{0}, dilation{1};
  int64_t groups = 1;
  bool bias = true;
};
/** A convolution: weight [out, in / groups, kernel...], bias [out]. */
class TERCEL_API Conv : public Module {
 public:
  Tensor forward(const Tensor& x) override;
  Tensor weight, bias;

 protected:
  Conv(int64_t dims, int64_t in_channels, int64_t out_channels, const SizeList& kernel_size, ConvOptions options);

 private:
  int64_t dims_;
  ConvOptions options_;
};
#define TERCEL_CONV_LAYER(Name, dims)                                                                      \
  class TERCEL_API Name final : public Conv {                                                              \
   public:                                                                                                 \
    Name(int64_t in_channels, int64_t out_channels, const SizeList& kernel_size, ConvOptions options = {}) \
        : Conv(dims, in_channels, out_channels, kernel_size, std::move(options)) {}                        \
    const char* name() const override { return #Name; }                                                    \
  };
TERCEL_CONV_LAYER(Conv1d, 1)
TERCEL_CONV_LAYER(Conv2d, 2)
TERCEL_CONV_LAYER(Conv3d, 3)
#undef TERCEL_CONV_LAYER

/** Parameters of a transposed convolution. */
struct ConvTransposeOptions {
  SizeList stride{1}, padding{0}, output_padding{0};
  int64_t groups = 1;
  bool bias = true;
  SizeList dilation{1};
};
/** A transposed convolution: weight [in, out / groups, kernel...], bias [out]. */
class TERCEL_API ConvTranspose : public Module {
 public:
  Tensor forward(const Tensor& x) override;
  /** With the spatial sizes of the result, which are ambiguous for a stride above 1; ValueError for impossible ones. */
  Tensor forward(const Tensor& x, IntSpan output_size);
  Tensor weight, bias;

 protected:
  ConvTranspose(int64_t dims, int64_t in_channels, int64_t out_channels, const SizeList& kernel_size,
                ConvTransposeOptions options);

 private:
  Tensor run(const Tensor& x, IntSpan output_padding) const;

  int64_t dims_;
  ConvTransposeOptions options_;
};
#define TERCEL_CONV_TRANSPOSE_LAYER(Name, dims)                                                                     \
  class TERCEL_API Name final : public ConvTranspose {                                                              \
   public:                                                                                                          \
    Name(int64_t in_channels, int64_t out_channels, const SizeList& kernel_size, ConvTransposeOptions options = {}) \
        : ConvTranspose(dims, in_channels, out_channels, kernel_size, std::move(options)) {}                        \
    const char* name() const override { return #Name; }                                                             \
  };
TERCEL_CONV_TRANSPOSE_LAYER(ConvTranspose1d, 1)
TERCEL_CONV_TRANSPOSE_LAYER(ConvTranspose2d, 2)
TERCEL_CONV_TRANSPOSE_LAYER(ConvTranspose3d, 3)
#undef TERCEL_CONV_TRANSPOSE_LAYER

}  // namespace tercel::nn
