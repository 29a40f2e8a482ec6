#include "tercel/recsys/layers/attention.h"

#include <cmath>

#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/linalg/matmul.h"
#include "tercel/ops/nn/softmax.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/views/permute.h"
#include "tercel/ops/views/views.h"

namespace tercel::recsys {

namespace {

/** Whether a mask of one shape applies to scores of the other. */
bool covers(const DimVector& mask, const DimVector& scores) {
  bool fits = mask.size() == scores.size();
  for (size_t d = 0; fits && d < mask.size(); ++d) fits = mask[d] == 1 || mask[d] == scores[d];
  return fits;
}

/** Softmax of the last dimension; the mask may be undefined. */
Tensor masked_softmax(const Tensor& scores, const Tensor& mask) {
  constexpr double kForbidden = 10000;
  if (!mask.defined()) return softmax(scores, -1);
  return softmax(add(scores, mul(sub(mask.detach(), 1), kForbidden)), -1);
}

/** [B, heads, F, d] -> [B, F, heads * d]. */
Tensor join_heads(const Tensor& x) {
  return reshape(transpose(x, 1, 2), {x.size(0), x.size(2), x.size(1) * x.size(3)});
}

/** q k^T / sqrt(d). */
Tensor scores_of(const Tensor& queries, const Tensor& keys) {
  return matmul(mul(queries, 1 / std::sqrt(static_cast<double>(queries.size(-1)))), transpose(keys, -2, -1));
}

}  // namespace

SequenceMask::SequenceMask(const Options& options, BuildContext& context)
    : Layer(context), from_(options.max_sequence_len_from), to_(options.max_sequence_len_to) {
  const TensorShape column = TensorShape::with_rows({1}, rows_per_sample());
  if (context.bottoms.size() != 2 || context.bottoms[0] != column || context.bottoms[1] != column)
    refuse_inputs(context, "two lengths [batch, 1]");
  add_top(DimVector{1, from_, to_});
}

void SequenceMask::allocate(const TensorOptions& place) {
  from_positions_ = arange(0, from_, 1, place);
  to_positions_ = arange(0, to_, 1, place);
}

void SequenceMask::forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext&) {
  const int64_t rows = bottoms[0].size(0);
  const Tensor from = to(lt(from_positions_, bottoms[0]), from_positions_.dtype());
  const Tensor there = to(lt(to_positions_, bottoms[1]), from_positions_.dtype());
  tops[0] = mul(view(from, {rows, 1, from_, 1}), view(there, {rows, 1, 1, to_}));
}

PaddingMask::PaddingMask(const Options&, BuildContext& context) : Layer(context) {
  if (context.bottoms.size() != 1 || context.bottoms[0].sizes.size() != 2)
    refuse_inputs(context, "one input [batch, T, d]");
  add_top(DimVector{1, 1, context.bottoms[0].sizes[0]});
}

void PaddingMask::forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext&) {
  const Tensor x = bottoms[0].detach();
  const Tensor there = to(any(ne(x, 0), {-1}), x.dtype());
  tops[0] = view(there, {x.size(0), 1, 1, x.size(1)});
}

Softmax::Softmax(const Options& options, BuildContext& context) : Layer(context), factor_(options.factor) {
  const size_t count = context.bottoms.size();
  if (count < 1 || count > 2 || context.bottoms[0].sizes.empty() ||
      (count == 2 && !covers(context.bottoms[1].sizes, context.bottoms[0].sizes)))
    refuse_inputs(context, "one input [batch, ..., n], and perhaps a mask of as many dimensions, of its sizes or 1,");
  add_top(context.bottoms[0].sizes);
}

void Softmax::forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext&) {
  const Tensor scores = factor_ == 1 ? bottoms[0] : mul(bottoms[0], factor_);
  tops[0] = masked_softmax(scores, bottoms.size() == 2 ? bottoms[1] : Tensor());
}

MultiHeadAttention::MultiHeadAttention(const Options& options, BuildContext& context)
    : Layer(context), heads_(options.num_attention_heads), transposes_(options.transpose_b) {
  if (context.bottoms.size() == 2)
    build_half(context);
  else
    build_whole(context);
}

void MultiHeadAttention::build_whole(const BuildContext& context) {
  const std::vector<TensorShape>& in = context.bottoms;
  bool fits = in.size() == 3 || in.size() == 4;
  for (size_t i = 0; fits && i < 3; ++i) fits = in[i].sizes.size() == 2;
  if (!fits || in[0].sizes[1] != in[1].sizes[1] || in[1].sizes[0] != in[2].sizes[0] ||
      (in.size() == 4 && !covers(in[3].sizes, {heads_, in[0].sizes[0], in[1].sizes[0]})))
    refuse_inputs(context,
                  "queries [batch, F, H], keys [batch, T, H], values [batch, T, W], and perhaps a mask [batch, 1, F, "
                  "T], or two inputs with a dimension of heads,");
  for (const TensorShape& bottom : {in[0], in[2]})
    TERCEL_CHECK(bottom.sizes[1] % heads_ == 0, ConfigError, "[MultiHeadAttention ", context.name, "] ", heads_,
                 " heads do not divide the ", bottom.sizes[1], " columns of ", shape_text(bottom));
  add_top(DimVector{in[0].sizes[0], in[2].sizes[1]});
}

void MultiHeadAttention::build_half(const BuildContext& context) {
  const DimVector &a = context.bottoms[0].sizes, &b = context.bottoms[1].sizes;
  const bool fits = a.size() == 3 && b.size() == 3 && a[0] == b[0];
  if (transposes_) {
    if (!fits || a[2] != b[2]) refuse_inputs(context, "queries [batch, heads, F, d] and keys [batch, heads, T, d]");
    add_top(DimVector{a[0], a[1], b[1]});
  } else {
    if (!fits || a[2] != b[1]) refuse_inputs(context, "weights [batch, heads, F, T] and values [batch, heads, T, d]");
    add_top(DimVector{a[1], a[0] * b[2]});
  }
}

Tensor MultiHeadAttention::split_heads(const Tensor& x) const {
  return transpose(reshape(x, {x.size(0), x.size(1), heads_, x.size(2) / heads_}), 1, 2);
}

void MultiHeadAttention::forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext&) {
  if (bottoms.size() == 2) {
    tops[0] = transposes_ ? scores_of(bottoms[0], bottoms[1]) : join_heads(matmul(bottoms[0], bottoms[1]));
    return;
  }
  const Tensor scores = scores_of(split_heads(bottoms[0]), split_heads(bottoms[1]));
  const Tensor weights = masked_softmax(scores, bottoms.size() == 4 ? bottoms[3] : Tensor());
  tops[0] = join_heads(matmul(weights, split_heads(bottoms[2])));
}

}  // namespace tercel::recsys
