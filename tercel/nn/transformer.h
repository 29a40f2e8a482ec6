// Multi-head attention and transformers. Names, shapes and initial values are torch.nn's.
//
// Sequences are [length, n, embed] (with batch_first [n, length, embed]); n may be missing everywhere. A mask is
// bool (true masks out) or numbers added to the scores: attn_mask [length, source], or one for each of n * heads;
// key_padding_mask [n, source]. Undefined means no mask.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "tercel/nn/layers.h"
#include "tercel/nn/module.h"
#include "tercel/util/function_ref.h"

namespace tercel::nn {

/** Options of an attention besides its sizes. */
struct AttentionOptions {
  double dropout = 0;
  bool bias = true;
  /** Append a learnt key and value; append a key and value of zeros. */
  bool add_bias_kv = false, add_zero_attn = false;
  /** The sizes of keys and values if they are not embed_dim. */
  std::optional<int64_t> kdim{}, vdim{};
  bool batch_first = false;
};
/** Results of attention; the weights [n, length, source] are averaged over heads. */
struct OutputAndWeights {
  Tensor output, weights;
};
/** softmax(q k^T / sqrt(depth)) v in num_heads parts of embed_dim, between projections of query, key and value. */
class TERCEL_API MultiheadAttention final : public Module {
 public:
  /** ValueError unless num_heads divides embed_dim. */
  MultiheadAttention(int64_t embed_dim, int64_t num_heads, const AttentionOptions& options = {});
  /** Self-attention. */
  Tensor forward(const Tensor& x) override { return forward(x, x, x, {}, false).output; }
  /** The weights are undefined without need_weights. RuntimeError for sizes that do not match. */
  OutputAndWeights forward(const Tensor& query, const Tensor& key, const Tensor& value,
                           const Tensor& key_padding_mask = {}, bool need_weights = true, const Tensor& attn_mask = {},
                           bool average_attn_weights = true);
  const char* name() const override { return "MultiheadAttention"; }
  Tensor in_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight, in_proj_bias, bias_k, bias_v;
  std::shared_ptr<Linear> out_proj;

 private:
  void check(const Tensor& query, const Tensor& key, const Tensor& value) const;
  /** The mask to add to the scores [n, heads, length, source]; undefined if there is none. */
  Tensor mask_for(IntSpan scores, const Tensor& key_padding_mask, const Tensor& attn_mask, const Tensor& like) const;

  int64_t embed_, heads_;
  AttentionOptions options_;
};

/** Options of a transformer's layers besides their sizes. */
struct TransformerOptions {
  int64_t dim_feedforward = 2048;
  double dropout = 0.1;
  enum class Activation : uint8_t { Relu, Gelu } activation = Activation::Relu;
  double layer_norm_eps = 1e-5;
  bool batch_first = false, norm_first = false, bias = true;
};

namespace detail {
/** Common base of both kinds of layer: attentions, two Linear layers, residual connections and norms. */
class TERCEL_API TransformerLayer : public Module {
 protected:
  TransformerLayer(int64_t d_model, int64_t nhead, const TransformerOptions& options, bool decoder);
  /** Applies the attentions, then the Linear layers: x + part(norm(x)), or norm(x + part(x)). */
  Tensor through(Tensor x, Span<FunctionRef<Tensor(const Tensor& x)>> attentions);

  std::shared_ptr<MultiheadAttention> self_attn_, multihead_attn_;

 private:
  std::shared_ptr<Linear> linear1_, linear2_;
  std::shared_ptr<Dropout> dropout_;
  std::vector<std::shared_ptr<LayerNorm>> norms_;
  std::vector<std::shared_ptr<Dropout>> dropouts_;
  TransformerOptions options_;
};
}  // namespace detail

/** Self-attention, then two Linear layers with an activation, each with a residual connection and a norm. */
class TERCEL_API TransformerEncoderLayer final : public detail::TransformerLayer {
 public:
  TransformerEncoderLayer(int64_t d_model, int64_t nhead, const TransformerOptions& options = {})
      : TransformerLayer(d_model, nhead, options, false) {}
  Tensor forward(const Tensor& src) override { return forward(src, {}); }
  Tensor forward(const Tensor& src, const Tensor& src_mask, const Tensor& src_key_padding_mask = {});
  const char* name() const override { return "TransformerEncoderLayer"; }
};

/** Masks of a decoder. */
struct DecoderMasks {
  Tensor tgt{}, memory{}, tgt_key_padding{}, memory_key_padding{};
};
/** Self-attention, attention to the encoder's output, two Linear layers, each with a residual connection and a norm.
 */
class TERCEL_API TransformerDecoderLayer final : public detail::TransformerLayer {
 public:
  TransformerDecoderLayer(int64_t d_model, int64_t nhead, const TransformerOptions& options = {})
      : TransformerLayer(d_model, nhead, options, true) {}
  using Module::forward;
  Tensor forward(const Tensor& tgt, const Tensor& memory, const DecoderMasks& masks = {});
  const char* name() const override { return "TransformerDecoderLayer"; }
};

/** num_layers layers in sequence, then a norm if given. */
class TERCEL_API TransformerEncoder final : public Module {
 public:
  TransformerEncoder(int64_t d_model, int64_t nhead, int64_t num_layers, const TransformerOptions& options = {},
                     bool with_norm = false);
  Tensor forward(const Tensor& src) override { return forward(src, {}); }
  Tensor forward(const Tensor& src, const Tensor& mask, const Tensor& src_key_padding_mask = {});
  const char* name() const override { return "TransformerEncoder"; }

 private:
  std::vector<std::shared_ptr<TransformerEncoderLayer>> layers_;
  std::shared_ptr<LayerNorm> norm_;
};
/** The same of decoder layers. */
class TERCEL_API TransformerDecoder final : public Module {
 public:
  TransformerDecoder(int64_t d_model, int64_t nhead, int64_t num_layers, const TransformerOptions& options = {},
                     bool with_norm = false);
  using Module::forward;
  Tensor forward(const Tensor& tgt, const Tensor& memory, const DecoderMasks& masks = {});
  const char* name() const override { return "TransformerDecoder"; }

 private:
  std::vector<std::shared_ptr<TransformerDecoderLayer>> layers_;
  std::shared_ptr<LayerNorm> norm_;
};

/** An encoder of src [source, n, d_model], and a decoder of tgt [target, n, d_model] that attends to its output. */
class TERCEL_API Transformer final : public Module {
 public:
  Transformer(int64_t d_model = 512, int64_t nhead = 8, int64_t num_encoder_layers = 6, int64_t num_decoder_layers = 6,
              const TransformerOptions& options = {});
  using Module::forward;
  /** RuntimeError unless both have d_model features and the same number of sequences. */
  Tensor forward(const Tensor& src, const Tensor& tgt, const Tensor& src_mask = {},
                 const Tensor& src_key_padding_mask = {}, const DecoderMasks& masks = {});
  const char* name() const override { return "Transformer"; }
  /** A causal mask [size, size] to add to scores: -infinity for later positions, 0 elsewhere. */
  static Tensor generate_square_subsequent_mask(int64_t size, TensorOptions options = {});

 private:
  std::shared_ptr<TransformerEncoder> encoder_;
  std::shared_ptr<TransformerDecoder> decoder_;
  int64_t d_model_;
  bool batch_first_;
};

}  // namespace tercel::nn
