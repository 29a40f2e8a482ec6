// The pairs of field-aware factorization machines.
#pragma once

#include "tercel/recsys/layers/activations.h"
#include "tercel/recsys/layers/layer.h"

namespace tercel::recsys {

/**
 * The second-order term of a field-aware factorization machine (Juan et al., "Field-aware factorization machines for
 * CTR prediction", 2016): [B, F, F * k] -> [B, 1], the sum of v[i, j] . v[j, i] over pairs of fields i < j, where
 * v[i, j] [k], columns j * k to (j + 1) * k - 1 of row i, is the vector of field i for field j. Of one field it is 0.
 */
class FieldAwareInteraction final : public Layer {
 public:
  using Options = NoOptions;
  FieldAwareInteraction(const Options& options, BuildContext& context);
  void allocate(const TensorOptions& place) override;
  void forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext& context) override;

 private:
  int64_t fields_ = 0, width_ = 0;
  Tensor left_, right_;  // positions i * F + j and j * F + i of each pair
};

}  // namespace tercel::recsys
