// Layers that add, multiply and sum.
#pragma once

#include "tercel/recsys/layers/activations.h"
#include "tercel/recsys/layers/initializer.h"
#include "tercel/recsys/layers/layer.h"

namespace tercel::recsys {

/** The sum of inputs of one shape. */
class Add final : public Layer {
 public:
  using Options = NoOptions;
  Add(const Options& options, BuildContext& context);
  void forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext& context) override;
};

/** The product, element by element, of two or more inputs of one shape. */
class ElementwiseMultiply final : public Layer {
 public:
  using Options = NoOptions;
  ElementwiseMultiply(const Options& options, BuildContext& context);
  void forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext& context) override;
};

/** The first of two inputs of one shape minus the second. */
class Sub final : public Layer {
 public:
  using Options = NoOptions;
  Sub(const Options& options, BuildContext& context);
  void forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext& context) override;
};

struct ReductionOptions {
  int64_t axis = 1;

  static constexpr auto fields() {
    return option_list(
        option_field<&ReductionOptions::axis>("axis", "dimension to reduce, 0 being the batch", at_least(1)));
  }
};

/** A layer that reduces one dimension, which is kept with size 1. */
class ReductionLayer : public Layer {
 protected:
  ReductionLayer(const ReductionOptions& options, const BuildContext& context);
  int64_t axis() const { return axis_; }

 private:
  int64_t axis_;
};

/** Sums over one dimension, which is kept with size 1. */
class ReduceSum final : public ReductionLayer {
 public:
  using Options = ReductionOptions;
  ReduceSum(const Options& options, BuildContext& context) : ReductionLayer(options, context) {}
  void forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext& context) override;
};

/** The mean over one dimension, which is kept with size 1. */
class ReduceMean final : public ReductionLayer {
 public:
  using Options = ReductionOptions;
  ReduceMean(const Options& options, BuildContext& context) : ReductionLayer(options, context) {}
  void forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext& context) override;
};

struct WeightMultiplyOptions {
  std::vector<int64_t> weight_dims;
  Initializer weight_init = Initializer::Default;

  static constexpr auto fields() {
    return option_list(option_field<&WeightMultiplyOptions::weight_dims>("weight_dims", "[slots, d]", at_least(0),
                                                                         at_most(1 << 24), required()),
                       option_field<&WeightMultiplyOptions::weight_init>("weight_init", "initial weights"));
  }
};

/** [B, S] -> [B, S * d]: out[b, s * d + j] = x[b, s] * weight[s, j]. Parameter weight [S, d]. */
class WeightMultiply final : public Layer {
 public:
  using Options = WeightMultiplyOptions;
  WeightMultiply(const Options& options, BuildContext& context);
  void forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext& context) override;

 private:
  nn::ParameterArena& parameters_;
  size_t weight_;
};

}  // namespace tercel::recsys
