// Layers of pairwise interactions.
#pragma once

#include "tercel/recsys/layers/activations.h"
#include "tercel/recsys/layers/layer.h"

namespace tercel::recsys {

/**
 * Dot products of DLRM (Naumov et al., 2019): mlp [B, d], embeddings [B, S, d] -> [B, d + S (S + 1) / 2 + 1]: the mlp's
 * row, the products of all pairs of the S + 1 vectors (row i with j < i, row by row), and a zero.
 */
class Interaction final : public Layer {
 public:
  using Options = NoOptions;
  Interaction(const Options& options, BuildContext& context);
  void forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext& context) override;
};

struct FmOrder2Options {
  int64_t out_dim = 0;

  static constexpr auto fields() {
    return option_list(option_field<&FmOrder2Options::out_dim>("out_dim", "width d of a field's vector", at_least(1),
                                                               at_most(1 << 24), required()));
  }
};

/** The second-order term of a factorization machine (Rendle, 2010): [B, S * d] -> [B, d], 0.5 ((sum v)^2 - sum v^2). */
class FmOrder2 final : public Layer {
 public:
  using Options = FmOrder2Options;
  FmOrder2(const Options& options, BuildContext& context);
  void forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext& context) override;

 private:
  int64_t dim_;
};

}  // namespace tercel::recsys
