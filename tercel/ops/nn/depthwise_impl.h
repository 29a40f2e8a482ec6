// Depthwise convolutions, channels-last, on raw memory: images and channels are distributed over threads.
#pragma once

#include <cstdint>

#include "tercel/ops/nn/conv_plan_impl.h"
#include "tercel/ops/nn/depthwise_kernels.h"

namespace tercel {

/** For float and double; operands as for ConvPlan. */
template <class T>
class Depthwise {
 public:
  static bool fits(const ConvPlan& plan) {
    return plan.channels_last && plan.groups == plan.channels && plan.outputs == plan.channels;
  }

  explicit Depthwise(const ConvPlan& plan);

  void forward(const T* x, const T* weight, const T* bias, T* y) const;
  /** Gradient of x, from that of y. */
  void input(const T* y, const T* weight, T* x) const;
  /** Gradient of weight. */
  void weight(const T* x, const T* y, T* weight) const;

 private:
  static constexpr int64_t kPartChannels = 64;

  ConvBuffer<T> weight_by_tap(const T* weight) const;
  /** Calls fn(image, first channel, end channel) for all parts. */
  template <class Fn>
  void for_each_part(Fn fn) const;

  const ConvPlan& plan_;
  const DepthwiseLoop loop_;
  const int64_t in_size_, out_size_;  // elements of an image
  int64_t part_ = 1, parts_ = 1;      // channels that a thread computes at once, and the number of such parts
};

extern template class Depthwise<float>;
extern template class Depthwise<double>;

}  // namespace tercel
