#include "tercel/nn/transformer.h"

#include <cmath>
#include <limits>
#include <string>

#include "tercel/nn/init_functions.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/index/gather.h"
#include "tercel/ops/linalg/matmul.h"
#include "tercel/ops/nn/dropout.h"
#include "tercel/ops/nn/linear.h"
#include "tercel/ops/nn/softmax.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/views/cat.h"
#include "tercel/ops/views/diagonals.h"
#include "tercel/ops/views/pad.h"
#include "tercel/ops/views/permute.h"
#include "tercel/ops/views/slicing.h"
#include "tercel/ops/views/views.h"

namespace tercel::nn {

namespace {

constexpr double kForbidden = -std::numeric_limits<double>::infinity();

TensorOptions like(const Tensor& x) { return {x.dtype(), x.device()}; }

/** Converts a mask to additive form: -infinity where a bool mask is true. */
Tensor added(const char* name, const Tensor& mask, const Tensor& x) {
  if (!mask.defined() || mask.is_floating_point()) return mask;
  TERCEL_CHECK(mask.dtype() == kBool, RuntimeError, "only bool and floating types of ", name, " are supported");
  return masked_fill_(zeros(mask.sizes(), like(x)), mask, kForbidden);
}

Tensor turned(const Tensor& x) { return transpose(x, 0, 1); }

}  // namespace

MultiheadAttention::MultiheadAttention(int64_t embed_dim, int64_t num_heads, const AttentionOptions& options)
    : embed_(embed_dim), heads_(num_heads), options_(options) {
  TERCEL_CHECK(embed_dim > 0 && num_heads > 0, ValueError,
               "embed_dim and num_heads must be greater than 0, got embed_dim=", embed_dim,
               " and num_heads=", num_heads, " instead");
  TERCEL_CHECK(embed_dim % num_heads == 0, ValueError, "embed_dim must be divisible by num_heads");
  const int64_t kdim = options.kdim.value_or(embed_dim), vdim = options.vdim.value_or(embed_dim);
  const bool same = kdim == embed_dim && vdim == embed_dim;
  const auto weight = [](bool wanted, IntSpan sizes) {
    return wanted ? init::xavier_uniform_(empty(sizes)) : Tensor();
  };
  in_proj_weight = register_parameter("in_proj_weight", weight(same, {3 * embed_dim, embed_dim}));
  q_proj_weight = register_parameter("q_proj_weight", weight(!same, {embed_dim, embed_dim}));
  k_proj_weight = register_parameter("k_proj_weight", weight(!same, {embed_dim, kdim}));
  v_proj_weight = register_parameter("v_proj_weight", weight(!same, {embed_dim, vdim}));
  in_proj_bias = register_parameter("in_proj_bias", options.bias ? zeros({3 * embed_dim}) : Tensor());
  out_proj = register_module("out_proj", std::make_shared<Linear>(embed_dim, embed_dim, options.bias));
  if (options.bias) init::zeros_(out_proj->bias);
  const auto more = [&] { return options.add_bias_kv ? init::xavier_normal_(empty({1, 1, embed_dim})) : Tensor(); };
  bias_k = register_parameter("bias_k", more());
  bias_v = register_parameter("bias_v", more());
}

void MultiheadAttention::check(const Tensor& query, const Tensor& key, const Tensor& value) const {
  TERCEL_CHECK(query.dim() == 2 || query.dim() == 3, RuntimeError,
               "query should be unbatched 2D or batched 3D tensor but received ", query.dim(), "-D query tensor");
  TERCEL_CHECK(key.dim() == query.dim() && value.dim() == query.dim(), RuntimeError,
               "MultiheadAttention: expected key and value to be ", query.dim(), "-D as the query, but found ",
               key.dim(), "-D and ", value.dim(), "-D tensors respectively");
  TERCEL_CHECK(query.size(-1) == embed_, RuntimeError, "was expecting embedding dimension of ", embed_, ", but got ",
               query.size(-1));
  TERCEL_CHECK(key.size(0) == value.size(0) && key.size(1 - (key.dim() == 2)) == value.size(1 - (key.dim() == 2)),
               RuntimeError, "key shape ", key.sizes(), " does not match value shape ", value.sizes());
}

Tensor MultiheadAttention::mask_for(IntSpan scores, const Tensor& key_padding_mask, const Tensor& attn_mask,
                                    const Tensor& x) const {
  const int64_t n = scores[0], length = scores[2], source = scores[3];
  Tensor mask = added("attn_mask", attn_mask, x);
  if (mask.defined()) {
    const DimVector wanted = mask.dim() == 3 ? DimVector{n * heads_, length, source} : DimVector{length, source};
    TERCEL_CHECK(mask.sizes() == IntSpan(wanted), RuntimeError, "The shape of the ", mask.dim(), "D attn_mask is ",
                 mask.sizes(), ", but should be ", IntSpan(wanted), ".");
    mask = reshape(mask, {-1, mask.dim() == 3 ? heads_ : 1, length, source});
  }
  Tensor padding = added("key_padding_mask", key_padding_mask, x);
  if (!padding.defined()) return mask;
  const int64_t wanted[] = {n, source};
  TERCEL_CHECK(padding.sizes() == IntSpan(wanted), RuntimeError, "Expected key_padding_mask of sizes ", IntSpan(wanted),
               ", but got ", padding.sizes());
  padding = view(padding, {n, 1, 1, source});
  return mask.defined() ? add(mask, padding) : padding;
}

OutputAndWeights MultiheadAttention::forward(const Tensor& query, const Tensor& key, const Tensor& value,
                                             const Tensor& key_padding_mask, bool need_weights, const Tensor& attn_mask,
                                             bool average_attn_weights) {
  check(query, key, value);
  if (query.dim() == 2) {
    const auto batched = [&](const Tensor& x) { return unsqueeze(x, options_.batch_first ? 0 : 1); };
    const Tensor padding = key_padding_mask.defined() ? unsqueeze(key_padding_mask, 0) : key_padding_mask;
    const auto [output, weights] =
        forward(batched(query), batched(key), batched(value), padding, need_weights, attn_mask, average_attn_weights);
    return {squeeze(output, options_.batch_first ? 0 : 1), weights.defined() ? squeeze(weights, 0) : weights};
  }
  const auto in_order = [&](const Tensor& x) { return options_.batch_first ? turned(x) : x; };
  const Tensor operands[] = {in_order(query), in_order(key), in_order(value)};
  const Tensor separate[] = {q_proj_weight, k_proj_weight, v_proj_weight};
  const int64_t length = operands[0].size(0), n = operands[0].size(1), source = operands[1].size(0);
  Tensor projected[3];
  if (in_proj_weight.defined() && query.is_same(key) && key.is_same(value)) {
    const std::vector<Tensor> parts = chunk(linear(operands[0], in_proj_weight, in_proj_bias), 3, -1);
    std::copy(parts.begin(), parts.end(), projected);
  } else {
    for (int64_t i = 0; i < 3; ++i) {
      const Tensor weight = in_proj_weight.defined() ? narrow(in_proj_weight, 0, i * embed_, embed_) : separate[i];
      const Tensor bias = in_proj_bias.defined() ? narrow(in_proj_bias, 0, i * embed_, embed_) : Tensor();
      projected[i] = linear(operands[i], weight, bias);
    }
  }
  Tensor &q = projected[0], &k = projected[1], &v = projected[2];
  Tensor mask = mask_for({n, heads_, length, source}, key_padding_mask, attn_mask, q);
  // Appends keys and values that are never masked.
  const auto append = [&](const Tensor& more_k, const Tensor& more_v) {
    k = cat({k, expand(more_k, {1, n, embed_})});
    v = cat({v, expand(more_v, {1, n, embed_})});
    if (mask.defined()) mask = pad(mask, {0, 1});
  };
  if (bias_k.defined()) append(bias_k, bias_v);
  if (options_.add_zero_attn) append(zeros({1, 1, embed_}, like(k)), zeros({1, 1, embed_}, like(v)));

  const int64_t depth = embed_ / heads_;
  const auto heads = [&](const Tensor& x) {  // [n, heads, rows, depth]
    return permute(reshape(x, {x.size(0), n, heads_, depth}), {1, 2, 0, 3});
  };
  const double scale = 1 / std::sqrt(static_cast<double>(depth));
  Tensor scores = matmul(mul(heads(q), scale), transpose(heads(k), -2, -1));
  if (mask.defined()) scores = add(scores, mask);
  Tensor shares = softmax(scores, -1);
  // A fully masked position gets zeros.
  if (!need_weights && mask.defined())
    shares = masked_fill(shares, eq(amax(mask, {-1}, /*keepdim=*/true), kForbidden), 0);
  shares = dropout(shares, options_.dropout, is_training());
  const Tensor mixed = reshape(permute(matmul(shares, heads(v)), {2, 0, 1, 3}), {length, n, embed_});
  const Tensor output = in_order(out_proj->forward(mixed));
  if (!need_weights) return {output, {}};
  return {output, average_attn_weights ? mean(shares, {1}) : shares};
}

namespace detail {

TransformerLayer::TransformerLayer(int64_t d_model, int64_t nhead, const TransformerOptions& options, bool decoder)
    : options_(options) {
  const AttentionOptions attention{
      .dropout = options.dropout, .bias = options.bias, .batch_first = options.batch_first};
  self_attn_ = register_module("self_attn", std::make_shared<MultiheadAttention>(d_model, nhead, attention));
  if (decoder)
    multihead_attn_ =
        register_module("multihead_attn", std::make_shared<MultiheadAttention>(d_model, nhead, attention));
  linear1_ = register_module("linear1", std::make_shared<Linear>(d_model, options.dim_feedforward, options.bias));
  dropout_ = register_module("dropout", std::make_shared<Dropout>(options.dropout));
  linear2_ = register_module("linear2", std::make_shared<Linear>(options.dim_feedforward, d_model, options.bias));
  const int parts = decoder ? 3 : 2;
  for (int i = 1; i <= parts; ++i)
    norms_.push_back(register_module(
        "norm" + std::to_string(i),
        std::make_shared<LayerNorm>(IntSpan({d_model}), options.layer_norm_eps, /*affine=*/true, options.bias)));
  for (int i = 1; i <= parts; ++i)
    dropouts_.push_back(register_module("dropout" + std::to_string(i), std::make_shared<Dropout>(options.dropout)));
}

Tensor TransformerLayer::through(Tensor x, Span<FunctionRef<Tensor(const Tensor& x)>> attentions) {
  for (size_t i = 0; i < norms_.size(); ++i) {
    const auto part = [&](const Tensor& y) {
      if (i < attentions.size()) return attentions[i](y);
      const Tensor hidden = linear1_->forward(y);
      const bool relus = options_.activation == TransformerOptions::Activation::Relu;
      return linear2_->forward(dropout_->forward(relus ? relu(hidden) : gelu(hidden)));
    };
    x = options_.norm_first ? add(x, dropouts_[i]->forward(part(norms_[i]->forward(x))))
                            : norms_[i]->forward(add(x, dropouts_[i]->forward(part(x))));
  }
  return x;
}

}  // namespace detail

Tensor TransformerEncoderLayer::forward(const Tensor& src, const Tensor& src_mask, const Tensor& src_key_padding_mask) {
  const auto attend = [&](const Tensor& x) {
    return self_attn_->forward(x, x, x, src_key_padding_mask, false, src_mask).output;
  };
  return through(src, {attend});
}

Tensor TransformerDecoderLayer::forward(const Tensor& tgt, const Tensor& memory, const DecoderMasks& masks) {
  const auto attend = [&](const Tensor& x) {
    return self_attn_->forward(x, x, x, masks.tgt_key_padding, false, masks.tgt).output;
  };
  const auto look = [&](const Tensor& x) {
    return multihead_attn_->forward(x, memory, memory, masks.memory_key_padding, false, masks.memory).output;
  };
  return through(tgt, {attend, look});
}

namespace {

/** Layers that are named "layers.0" and so on. */
class Layers final : public Module {
 public:
  void push_back(const std::shared_ptr<Module>& layer) {
    register_module(std::to_string(named_children().size()), layer);
  }
  const char* name() const override { return "ModuleList"; }
};

template <class Layer>
std::shared_ptr<Layers> stack(std::vector<std::shared_ptr<Layer>>& layers, int64_t d_model, int64_t nhead,
                              int64_t count, const TransformerOptions& options) {
  auto list = std::make_shared<Layers>();
  for (int64_t i = 0; i < count; ++i) {
    layers.push_back(std::make_shared<Layer>(d_model, nhead, options));
    list->push_back(layers.back());
  }
  return list;
}

std::shared_ptr<LayerNorm> last_norm(int64_t d_model, const TransformerOptions& options) {
  return std::make_shared<LayerNorm>(IntSpan({d_model}), options.layer_norm_eps, /*affine=*/true, options.bias);
}

}  // namespace

TransformerEncoder::TransformerEncoder(int64_t d_model, int64_t nhead, int64_t num_layers,
                                       const TransformerOptions& options, bool with_norm) {
  register_module("layers", stack(layers_, d_model, nhead, num_layers, options));
  if (with_norm) norm_ = register_module("norm", last_norm(d_model, options));
}
Tensor TransformerEncoder::forward(const Tensor& src, const Tensor& mask, const Tensor& src_key_padding_mask) {
  Tensor x = src;
  for (const auto& layer : layers_) x = layer->forward(x, mask, src_key_padding_mask);
  return norm_ ? norm_->forward(x) : x;
}

TransformerDecoder::TransformerDecoder(int64_t d_model, int64_t nhead, int64_t num_layers,
                                       const TransformerOptions& options, bool with_norm) {
  register_module("layers", stack(layers_, d_model, nhead, num_layers, options));
  if (with_norm) norm_ = register_module("norm", last_norm(d_model, options));
}
Tensor TransformerDecoder::forward(const Tensor& tgt, const Tensor& memory, const DecoderMasks& masks) {
  Tensor x = tgt;
  for (const auto& layer : layers_) x = layer->forward(x, memory, masks);
  return norm_ ? norm_->forward(x) : x;
}

Transformer::Transformer(int64_t d_model, int64_t nhead, int64_t num_encoder_layers, int64_t num_decoder_layers,
                         const TransformerOptions& options)
    : encoder_(register_module(
          "encoder", std::make_shared<TransformerEncoder>(d_model, nhead, num_encoder_layers, options, true))),
      decoder_(register_module(
          "decoder", std::make_shared<TransformerDecoder>(d_model, nhead, num_decoder_layers, options, true))),
      d_model_(d_model),
      batch_first_(options.batch_first) {
  for (const Tensor& p : parameters())
    if (p.dim() > 1) init::xavier_uniform_(p);
}

Tensor Transformer::forward(const Tensor& src, const Tensor& tgt, const Tensor& src_mask,
                            const Tensor& src_key_padding_mask, const DecoderMasks& masks) {
  const int64_t batch = batch_first_ ? 0 : 1;
  TERCEL_CHECK(src.dim() != 3 || tgt.dim() != 3 || src.size(batch) == tgt.size(batch), RuntimeError,
               "the batch number of src and tgt must be equal");
  TERCEL_CHECK(src.size(-1) == d_model_ && tgt.size(-1) == d_model_, RuntimeError,
               "the feature number of src and tgt must be equal to d_model");
  return decoder_->forward(tgt, encoder_->forward(src, src_mask, src_key_padding_mask), masks);
}

Tensor Transformer::generate_square_subsequent_mask(int64_t size, TensorOptions options) {
  return triu(full({size, size}, kForbidden, options), 1);
}

}  // namespace tercel::nn
