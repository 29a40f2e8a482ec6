// A fully connected layer for each of several vectors, such as those of tasks.
#pragma once

#include "tercel/recsys/layers/inner_product.h"

namespace tercel::recsys {

/**
 * [B, G, n] -> [B, G, num_output]: x[:, g] W[g] + b[g], where InnerProduct has one W for all g. Parameters weight
 * [G, n, num_output], bias [G, 1, num_output], with the initial values of InnerProduct.
 */
class GroupedInnerProduct final : public Layer {
 public:
  using Options = InnerProductOptions;
  GroupedInnerProduct(const Options& options, BuildContext& context);
  void forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext& context) override;

 private:
  nn::ParameterArena& parameters_;
  size_t weight_, bias_;
};

}  // namespace tercel::recsys
