// Products of matrices that each sample has.
#pragma once

#include "tercel/recsys/layers/activations.h"
#include "tercel/recsys/layers/layer.h"

namespace tercel::recsys {

// Note [Products of samples]
// HugeCTR multiplies 2-D tensors whole, so that a row of one sample meets those of all others. Here a matrix belongs to
// a sample: its rows are the sample's rows (Note [Rows of samples]).
/**
 * The product of two inputs, in one of these forms:
 * - [B, m, n] and [B, n, k] -> [B, m, k], and [B, h, m, n] and [B, h, n, k] -> [B, h, m, k];
 * - rows of samples, [B * m, n] and [B * n, k] -> [B * m, k], and [B * m, n] and [B * n, g, h] -> [B * m, g, h];
 * - [B * m, n] and [B, n, k] -> [B, m, k].
 * ConfigError for anything else.
 */
class MatrixMultiply final : public Layer {
 public:
  using Options = NoOptions;
  MatrixMultiply(const Options& options, BuildContext& context);
  void forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext& context) override;

 private:
  bool by_sample_ = false;  // the inputs have to be viewed as [B, m_, n_] and [B, n_, columns of the product]
  int64_t m_ = 0, n_ = 0;
};

}  // namespace tercel::recsys
