// The compressed interaction network of xDeepFM.
#pragma once

#include <vector>

#include "tercel/recsys/layers/initializer.h"
#include "tercel/recsys/layers/layer.h"
#include "tercel/util/options.h"

namespace tercel::recsys {

struct CompressedInteractionOptions {
  std::vector<int64_t> num_outputs;
  Initializer weight_init = Initializer::Default;

  static constexpr auto fields() {
    return option_list(
        option_field<&CompressedInteractionOptions::num_outputs>(
            "num_outputs", "number of vectors that each layer makes", at_least(1), at_most(1 << 24), required()),
        option_field<&CompressedInteractionOptions::weight_init>("weight_init", "initial weights"));
  }
};

/**
 * CIN (Lian et al., "xDeepFM", 2018) without activations: vectors [B, F, d] -> [B, sum of num_outputs]. Layer l makes
 * the vectors x_l[h] = sum over i, j of w_l[h, i, j] (x_(l-1)[i] * x_0[j]), x_0 being the input; the output has the
 * sum of the d elements of each vector of each layer. Parameters l.weight [vectors before, num_outputs * F].
 */
class CompressedInteraction final : public Layer {
 public:
  using Options = CompressedInteractionOptions;
  CompressedInteraction(const Options& options, BuildContext& context);
  void forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext& context) override;

 private:
  struct Sublayer {
    size_t weight;
    int64_t vectors;
  };
  nn::ParameterArena& parameters_;
  std::vector<Sublayer> layers_;
  std::vector<Tensor> sums_;  // of a step; the vector keeps its memory
};

}  // namespace tercel::recsys
