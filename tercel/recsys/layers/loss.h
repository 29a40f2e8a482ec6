// Loss layers.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tercel/ops/nn/loss.h"
#include "tercel/recsys/layers/layer.h"
#include "tercel/recsys/layers/loss_kind.h"
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
    return option_list(
        option_field<&LossOptions::weight>("weight", "factor of the loss and its gradient", at_least(0)),
        option_field<&LossOptions::regularizer>("regularizer", "of all dense weights"),
        option_field<&LossOptions::regularizer_lambda>(
            "regularizer_lambda", "its strength, divided by solver.batchsize; also as `lambda`", at_least(0)));
  }
};

/**
 * Logits [B, n] and labels, both of one row per sample, -> a scalar: the mean over the samples, times the weight.
 * Where the batch is a part of a larger one, its losses are divided by the samples of that, so that the losses and
 * gradients of all parts add up to those of the whole. Weights of samples multiply their losses; the divisor is the
 * number of samples all the same, as in PyTorch's binary_cross_entropy().
 *
 * A loss layer checks the shapes of its inputs, says what its logits and labels mean, implements reduced() and is a
 * head of the model; nothing else is needed for it.
 */
class TERCEL_API LossLayer : public Layer {
 public:
  double weight() const { return options_.weight; }
  const LossOptions& options() const { return options_; }
  /** What the logits mean. */
  virtual LossKind kind() const = 0;
  /** Whether all labels are 0 or 1, which readers then check; else the layer checks them. */
  virtual bool has_binary_labels() const = 0;
  void forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext& context) final;

 protected:
  LossLayer(const LossOptions& options, const BuildContext& context);
  /** The sum or the mean of the rows' losses, each times its weight; weights are [B] or undefined. */
  virtual Tensor reduced(const Tensor& logits, const Tensor& labels, const Tensor& weights,
                         Reduction reduction) const = 0;
  /** Whether there are two inputs [batch, a] and [batch, b] of one row per sample. */
  static bool has_columns(const BuildContext& context);
  /** DataError that starts with "[MultiCrossEntropyLoss loss]" and names the row. */
  [[noreturn]] void refuse_label(std::string_view expected, double found, int64_t row) const;

 private:
  std::string where_;
  LossOptions options_;
};

/** The binary cross entropy of logits [B, 1] and labels [B, 1]. The probability is the sigmoid of the logit. */
class BinaryCrossEntropyLoss final : public LossLayer {
 public:
  using Options = LossOptions;
  BinaryCrossEntropyLoss(const Options& options, const BuildContext& context);
  LossKind kind() const override { return LossKind::Binary; }
  bool has_binary_labels() const override { return true; }

 private:
  Tensor reduced(const Tensor& logits, const Tensor& labels, const Tensor& weights, Reduction reduction) const override;
};

/**
 * The cross entropy of logits [B, n] of n classes, at least 2: -log of the softmax at the row's class. Labels are
 * numbers of classes [B, 1], 0 to n - 1 (of two classes, 1 from 0.5 on), or the share of each class, such as one-hot
 * rows, [B, n]. DataError in forward() for other labels.
 */
class CrossEntropyLoss final : public LossLayer {
 public:
  using Options = LossOptions;
  CrossEntropyLoss(const Options& options, const BuildContext& context);
  LossKind kind() const override { return LossKind::Classes; }
  bool has_binary_labels() const override { return classes_ == 2 && !has_shares_; }

 private:
  Tensor reduced(const Tensor& logits, const Tensor& labels, const Tensor& weights, Reduction reduction) const override;
  /** Numbers of classes, int64 [B]. */
  Tensor class_numbers(const Tensor& labels) const;
  void check_shares(const Tensor& labels) const;

  int64_t classes_;
  bool has_shares_;
};

struct MultiCrossEntropyLossOptions : LossOptions {
  std::vector<double> target_weight;

  static constexpr auto fields() {
    return option_list(option_field<&MultiCrossEntropyLossOptions::target_weight>(
                           "target_weight", "factor of each column's losses; none: 1 of each", at_least(0)),
                       LossOptions::fields());
  }
};

/**
 * Binary cross entropies of logits [B, n] and labels [B, n], each times its column's factor: their sum divided by
 * B * n. A label below -0.5 is unknown and adds nothing, but is counted. DataError in forward() for other labels that
 * are not in [0, 1].
 */
class MultiCrossEntropyLoss final : public LossLayer {
 public:
  using Options = MultiCrossEntropyLossOptions;
  MultiCrossEntropyLoss(const Options& options, const BuildContext& context);
  LossKind kind() const override { return LossKind::Columns; }
  bool has_binary_labels() const override { return false; }
  void allocate(const TensorOptions& place) override;

 private:
  Tensor reduced(const Tensor& logits, const Tensor& labels, const Tensor& weights, Reduction reduction) const override;

  std::vector<double> target_weight_;
  Tensor factors_;
};

}  // namespace tercel::recsys
