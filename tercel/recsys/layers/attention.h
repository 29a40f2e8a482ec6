// Layers of attention: masks of sequences, softmax, attention with several heads.
#pragma once

#include "tercel/recsys/layers/activations.h"
#include "tercel/recsys/layers/layer.h"
#include "tercel/util/options.h"

namespace tercel::recsys {

// Note [Masks of attention]
// A mask has 1 where attention is allowed and 0 where it is not. 10000 is subtracted from scores that are not, as in
// HugeCTR: a row in which nothing is allowed then has the softmax of its scores, not NaN. A mask has no gradient.

struct SequenceMaskOptions {
  int64_t max_sequence_len_from = 1;
  int64_t max_sequence_len_to = 1;

  static constexpr auto fields() {
    return option_list(option_field<&SequenceMaskOptions::max_sequence_len_from>(
                           "max_sequence_len_from", "longest sequence of queries, F", at_least(1), at_most(1 << 20)),
                       option_field<&SequenceMaskOptions::max_sequence_len_to>(
                           "max_sequence_len_to", "longest sequence of keys, T", at_least(1), at_most(1 << 20)));
  }
};

/**
 * Lengths of sequences [B, 1] and [B, 1] -> a mask [B, 1, F, T]: 1 where i is less than the first length and j less
 * than the second. It has no gradient.
 */
class SequenceMask final : public Layer {
 public:
  using Options = SequenceMaskOptions;
  SequenceMask(const Options& options, BuildContext& context);
  void allocate(const TensorOptions& place) override;
  void forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext& context) override;

 private:
  int64_t from_, to_;
  Tensor from_positions_, to_positions_;
};

/**
 * Vectors of a sequence [B, T, d] -> a mask [B, 1, 1, T]: 0 where all elements of a vector are 0, as those of the
 * places behind the end are that a lookup with combiner concat fills, else 1. It has no gradient.
 */
class PaddingMask final : public Layer {
 public:
  using Options = NoOptions;
  PaddingMask(const Options& options, BuildContext& context);
  void forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext& context) override;
};

struct SoftmaxOptions {
  double factor = 1;

  static constexpr auto fields() {
    return option_list(option_field<&SoftmaxOptions::factor>("factor", "factor of the scores"));
  }
};

/**
 * Softmax of factor * x over the last dimension of [B, ..., n]. A second input is a mask: Note [Masks of attention];
 * it has as many dimensions as the first, each of the same size or 1.
 */
class Softmax final : public Layer {
 public:
  using Options = SoftmaxOptions;
  Softmax(const Options& options, BuildContext& context);
  void forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext& context) override;

 private:
  double factor_;
};

struct MultiHeadAttentionOptions {
  int64_t num_attention_heads = 1;
  bool transpose_b = false;

  static constexpr auto fields() {
    return option_list(option_field<&MultiHeadAttentionOptions::num_attention_heads>(
                           "num_attention_heads", "parts of queries, keys and values that attend apart", at_least(1),
                           at_most(1 << 16)),
                       option_field<&MultiHeadAttentionOptions::transpose_b>(
                           "transpose_b", "of two inputs: whether they are queries and keys, else scores and values"));
  }
};

/**
 * Attention (Vaswani et al., "Attention is all you need", 2017) without projections: queries [B, F, H], keys
 * [B, T, H], values [B, T, W] and perhaps a mask [B, 1, F, T] -> [B, F, W]. Each head has consecutive columns of all:
 * softmax(q k^T / sqrt(H / heads)) v, with Note [Masks of attention]; of a mask each size may be 1.
 *
 * Its halves, on inputs with a dimension of heads: with transpose_b queries [B, heads, F, d] and keys [B, heads, T, d]
 * -> scores q k^T / sqrt(d) [B, heads, F, T]; without, weights [B, heads, F, T] and values [B, heads, T, d]
 * -> [B, F, heads * d].
 */
class MultiHeadAttention final : public Layer {
 public:
  using Options = MultiHeadAttentionOptions;
  MultiHeadAttention(const Options& options, BuildContext& context);
  void forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext& context) override;

 private:
  void build_whole(const BuildContext& context);
  void build_half(const BuildContext& context);
  /** [B, T, heads * d] -> [B, heads, T, d]. */
  Tensor split_heads(const Tensor& x) const;

  int64_t heads_;
  bool transposes_;
};

}  // namespace tercel::recsys
