// Loss layers.
#pragma once

#include <array>
#include <cstdint>
#include <tuple>

#include "tercel/ops/nn/loss.h"
#include "tercel/recsys/layers/layer.h"
#include "tercel/util/enum_names.h"
#include "tercel/util/options.h"

namespace tercel::recsys {

/** HugeCTR's regularisation of all dense weights, which is an option of losses. */
enum class Regularizer : uint8_t { None, L1, L2 };
constexpr auto enum_names(Regularizer) {
  return std::to_array<EnumName<Regularizer>>(
      {{Regularizer::None, "None"}, {Regularizer::L1, "L1"}, {Regularizer::L2, "L2"}});
}

/** Options of every loss layer. */
struct LossOptions {
  double weight = 1;
  Regularizer regularizer = Regularizer::None;
  double regularizer_lambda = 0;

  static constexpr auto fields() {
    return std::tuple(Field{"weight", &LossOptions::weight, "factor of the loss and its gradient", at_least(0)},
                      Field{"regularizer", &LossOptions::regularizer, "of all dense weights"},
                      Field{"regularizer_lambda", &LossOptions::regularizer_lambda,
                            "its strength, divided by solver.batchsize; also as `lambda`", at_least(0)});
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
  double weight() const { return options_.weight; }
  const LossOptions& options() const { return options_; }
  void forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext& context) final;

 protected:
  /** ConfigError unless there are two inputs [B, 1]. */
  LossLayer(const LossOptions& options, const BuildContext& context);
  /** The loss of every logit, reduced to a scalar. */
  virtual Tensor reduced(const Tensor& logits, const Tensor& labels, Reduction reduction) const = 0;

 private:
  LossOptions options_;
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
