// Convolutions on raw memory: see conv_plan.cpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tercel/core/allocator.h"
#include "tercel/core/tensor.h"
#include "tercel/ops/nn/conv_kernels.h"

namespace tercel {

/**
 * The sizes of one convolution from an image of `in` pixels to one of `out`, whichever of them is computed. Tensors are
 * dense, [n, channels, in...], [n, outputs, out...] and weight [outputs, channels / groups, kernel...], all in
 * row-major order or all channels-last.
 */
struct ConvPlan {
  int64_t n = 0, channels = 0, outputs = 0, groups = 1;
  bool channels_last = false;
  int64_t in[3], kernel[3], out[3], stride[3], padding[3], dilation[3];

  int64_t window() const { return kernel[0] * kernel[1] * kernel[2]; }
  int64_t in_pixels() const { return in[0] * in[1] * in[2]; }
  int64_t out_pixels() const { return out[0] * out[1] * out[2]; }
  /**
   * Whether a window of one pixel sees pixel i from position i, and no pixel is left over: with one position the stride
   * is 1, whatever the user gave, and a transposed convolution's output_padding adds pixels that no position sees.
   */
  bool sees_all_once(int d) const { return stride[d] == 1 && padding[d] == 0 && in[d] == out[d]; }
};

/** Copies the plan's sizes to a kernel's arguments. */
template <class Loop>
Loop loop_of(const ConvPlan& plan, bool wide, int64_t channels) {
  Loop loop{};
  loop.wide = wide;
  loop.channels = channels;
  for (int d = 0; d < 3; ++d) {
    loop.in[d] = plan.in[d];
    loop.kernel[d] = plan.kernel[d];
    loop.out[d] = plan.out[d];
    loop.stride[d] = plan.stride[d];
    loop.padding[d] = plan.padding[d];
    loop.dilation[d] = plan.dilation[d];
  }
  return loop;
}

/** Scratch memory of a thread. */
template <class T>
struct ConvBuffer {
  DataPtr block;
  explicit ConvBuffer(int64_t count) : block(cpu_allocator().allocate(static_cast<size_t>(count) * sizeof(T))) {}
  T* get() const { return static_cast<T*>(block.get()); }
};

/** y = x * weight + bias; bias undefined or [outputs]. float32 or float64. */
void run_convolution(const ConvPlan& plan, const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& y);
/** Gradient of x, from that of y. */
void run_convolution_input(const ConvPlan& plan, const Tensor& y, const Tensor& weight, const Tensor& x);
/** Gradient of weight. */
void run_convolution_weight(const ConvPlan& plan, const Tensor& x, const Tensor& y, const Tensor& weight);

/** im2col, columns [n, channels * window, patches] of x, row-major; and col2im, which adds columns to their pixels. */
void run_im2col(const ConvPlan& plan, const Tensor& x, const Tensor& columns);
void run_col2im(const ConvPlan& plan, const Tensor& columns, const Tensor& x);

}  // namespace tercel
