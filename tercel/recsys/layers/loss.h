// Loss layers.
#pragma once

#include <tuple>

#include "tercel/ops/nn/loss.h"
#include "tercel/recsys/layers/layer.h"
#include "tercel/util/options.h"

namespace tercel::recsys {

/** Options of every loss layer. */
struct LossOptions {
  double weight = 1;

  static constexpr auto fields() {
    return std::tuple(Field{"weight", &LossOptions::weight, "factor of the loss and its gradient", at_least(0)});
  }
};

/**
 * Logits [B, 1] and labels [B, 1], of one row per sample, -> a scalar: the mean over the samples, times the weight.
 * Where the batch is a part of a larger one, its losses are divided by the samples of that, so that the losses and
 * gradients of all parts add up to those of the whole.
 *
 * A loss layer implements reduced() and is a head of the model; nothing else is needed for it.
 */
class TERCEL_API LossLayer : public Layer {
 public:
  double weight() const { return weight_; }
  void forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext& context) final;

 protected:
  /** ConfigError unless there are two inputs [B, 1]. */
  LossLayer(const LossOptions& options, const BuildContext& context);
  /** The loss of every logit, reduced to a scalar. */
  virtual Tensor reduced(const Tensor& logits, const Tensor& labels, Reduction reduction) const = 0;

 private:
  double weight_;
};

/** The binary cross entropy of logits and labels. The probability is the sigmoid of the logit. */
class BinaryCrossEntropyLoss final : public LossLayer {
 public:
  using Options = LossOptions;
  BinaryCrossEntropyLoss(const Options& options, const BuildContext& context) : LossLayer(options, context) {}

 private:
  Tensor reduced(const Tensor& logits, const Tensor& labels, Reduction reduction) const override;
};

}  // namespace tercel::recsys
