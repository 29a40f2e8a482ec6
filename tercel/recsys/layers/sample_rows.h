// Layers that make several rows of a sample: Note [Rows of samples] in layer.h.
#pragma once

#include "tercel/recsys/layers/activations.h"
#include "tercel/recsys/layers/layer.h"
#include "tercel/util/options.h"

namespace tercel::recsys {

struct ScaleOptions {
  struct Parameters {
    int64_t axis = 1;
    int64_t factor = 1;

    static constexpr auto fields() {
      return option_list(
          option_field<&Parameters::axis>("axis", "1: repeat rows, 0: repeat each element of a row", at_least(0),
                                          at_most(1)),
          option_field<&Parameters::factor>("factor", "number of copies", at_least(1), at_most(1 << 24)));
    }
  };
  Parameters scale_param;

  static constexpr auto fields() {
    return option_list(option_field<&ScaleOptions::scale_param>("scale_param", "what is repeated, and how often"));
  }
};

/**
 * Copies: [B, n] -> [B * factor, n] where each row comes `factor` times (axis 1), or [B, n * factor] where each element
 * does (axis 0). The gradient of an element is the sum over its copies.
 */
class Scale final : public Layer {
 public:
  using Options = ScaleOptions;
  Scale(const Options& options, BuildContext& context);
  void forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext& context) override;

 private:
  int64_t axis_, factor_;
};

/**
 * The history and the target of DIN: inputs [B, S, d_i] -> [B * (S - 1), sum of d_i] and [B, sum of d_i]: all inputs
 * side by side, whose last slot is the second output and whose other slots are rows of the first.
 */
class FusedReshapeConcat final : public Layer {
 public:
  using Options = NoOptions;
  FusedReshapeConcat(const Options& options, BuildContext& context);
  void forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext& context) override;

 private:
  int64_t slots_, width_;
};

/** Inputs [B, S, d_i] side by side, each slot a row: -> [B * S, sum of d_i]. */
class FusedReshapeConcatGeneral final : public Layer {
 public:
  using Options = NoOptions;
  FusedReshapeConcatGeneral(const Options& options, BuildContext& context);
  void forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext& context) override;

 private:
  int64_t width_;
};

}  // namespace tercel::recsys
