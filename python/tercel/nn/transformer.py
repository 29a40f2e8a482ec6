"""Transformers (Vaswani et al., Attention is all you need)."""

import copy

from tercel import _C
from tercel.nn import functional as F
from tercel.nn import init
from tercel.nn.attention import MultiheadAttention
from tercel.nn.containers import ModuleList
from tercel.nn.linear import Linear
from tercel.nn.module import Module
from tercel.nn.norm import Dropout, LayerNorm

__all__ = ["Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder",
           "TransformerEncoderLayer"]


class _Layer(Module):
    """Base of encoder and decoder layers: residual blocks with normalization after or before each."""

    def __init__(self, attentions, d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first,
                 norm_first, bias, device, dtype):
        super().__init__()
        options = {"device": device, "dtype": dtype}
        for name in attentions:
            setattr(self, name, MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, **options))
        self.linear1 = Linear(d_model, dim_feedforward, bias, **options)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, **options)
        self.norm_first = norm_first
        blocks = range(1, len(attentions) + 2)
        for i in blocks:
            setattr(self, f"norm{i}", LayerNorm(d_model, layer_norm_eps, bias=bias, **options))
        for i in blocks:
            setattr(self, f"dropout{i}", Dropout(dropout))
        if isinstance(activation, str):
            if activation not in ("relu", "gelu"):
                raise RuntimeError(f"activation should be relu/gelu, not {activation}")
            activation = getattr(F, activation)
        self.activation = activation

    def _feed(self, x):
        return self.linear2(self.dropout(self.activation(self.linear1(x))))

    def _through(self, x, blocks):
        for i, block in enumerate(blocks, 1):
            norm, dropout = getattr(self, f"norm{i}"), getattr(self, f"dropout{i}")
            x = x + dropout(block(norm(x))) if self.norm_first else norm(x + dropout(block(x)))
        return x


class TransformerEncoderLayer(_Layer):
    """Self-attention, then two Linear layers with an activation between; each is a residual block with normalization."""

    def __init__(self, d_model, nhead, dim_feedforward=2048, dropout=0.1, activation=F.relu, layer_norm_eps=1e-5,
                 batch_first=False, norm_first=False, bias=True, device=None, dtype=None):
        super().__init__(("self_attn",), d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps,
                         batch_first, norm_first, bias, device, dtype)

    def forward(self, src, src_mask=None, src_key_padding_mask=None, is_causal=False):
        def attend(x):
            return self.self_attn(x, x, x, key_padding_mask=src_key_padding_mask, need_weights=False,
                                  attn_mask=src_mask, is_causal=is_causal)[0]

        return self._through(src, (attend, self._feed))


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to the encoder's output, two Linear layers; each is a residual block with normalization."""

    def __init__(self, d_model, nhead, dim_feedforward=2048, dropout=0.1, activation=F.relu, layer_norm_eps=1e-5,
                 batch_first=False, norm_first=False, bias=True, device=None, dtype=None):
        super().__init__(("self_attn", "multihead_attn"), d_model, nhead, dim_feedforward, dropout, activation,
                         layer_norm_eps, batch_first, norm_first, bias, device, dtype)

    def forward(self, tgt, memory, tgt_mask=None, memory_mask=None, tgt_key_padding_mask=None,
                memory_key_padding_mask=None, tgt_is_causal=False, memory_is_causal=False):
        def attend(x):
            return self.self_attn(x, x, x, key_padding_mask=tgt_key_padding_mask, need_weights=False,
                                  attn_mask=tgt_mask, is_causal=tgt_is_causal)[0]

        def look(x):
            return self.multihead_attn(x, memory, memory, key_padding_mask=memory_key_padding_mask,
                                       need_weights=False, attn_mask=memory_mask, is_causal=memory_is_causal)[0]

        return self._through(tgt, (attend, look, self._feed))


class _Stack(Module):
    """A stack of copies of a layer, with an optional final normalization."""

    def __init__(self, layer, num_layers, norm):
        super().__init__()
        self.layers = ModuleList([copy.deepcopy(layer) for _ in range(num_layers)])
        self.num_layers = num_layers
        self.norm = norm

    def _through(self, x, *args, **kwargs):
        for layer in self.layers:
            x = layer(x, *args, **kwargs)
        return x if self.norm is None else self.norm(x)


class TransformerEncoder(_Stack):
    """A stack of num_layers copies of a layer, then the norm, if any.

    enable_nested_tensor and mask_check have no effect: there are no nested tensors, so padding is computed like other
    positions.
    """

    def __init__(self, encoder_layer, num_layers, norm=None, enable_nested_tensor=True, mask_check=True):
        super().__init__(encoder_layer, num_layers, norm)
        self.enable_nested_tensor, self.use_nested_tensor, self.mask_check = enable_nested_tensor, False, mask_check

    def forward(self, src, mask=None, src_key_padding_mask=None, is_causal=None):
        return self._through(src, src_mask=mask, src_key_padding_mask=src_key_padding_mask, is_causal=bool(is_causal))


class TransformerDecoder(_Stack):
    """A stack of num_layers copies of a layer, then the norm, if any."""

    def __init__(self, decoder_layer, num_layers, norm=None):
        super().__init__(decoder_layer, num_layers, norm)

    def forward(self, tgt, memory, tgt_mask=None, memory_mask=None, tgt_key_padding_mask=None,
                memory_key_padding_mask=None, tgt_is_causal=None, memory_is_causal=False):
        return self._through(tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask,
                             tgt_key_padding_mask=tgt_key_padding_mask,
                             memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=bool(tgt_is_causal),
                             memory_is_causal=memory_is_causal)


class Transformer(Module):
    """An encoder of src [source, n, d_model] and a decoder of tgt [target, n, d_model] that attends to its result.

    With batch_first, n is the first dimension; both may be unbatched. Masks are as in MultiheadAttention.
    """

    def __init__(self, d_model=512, nhead=8, num_encoder_layers=6, num_decoder_layers=6, dim_feedforward=2048,
                 dropout=0.1, activation=F.relu, custom_encoder=None, custom_decoder=None, layer_norm_eps=1e-5,
                 batch_first=False, norm_first=False, bias=True, device=None, dtype=None):
        super().__init__()
        options = {"device": device, "dtype": dtype}
        layer = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias)

        def norm():
            return LayerNorm(d_model, layer_norm_eps, bias=bias, **options)

        if custom_encoder is None:
            custom_encoder = TransformerEncoder(TransformerEncoderLayer(*layer, **options), num_encoder_layers, norm())
        self.encoder = custom_encoder
        if custom_decoder is None:
            custom_decoder = TransformerDecoder(TransformerDecoderLayer(*layer, **options), num_decoder_layers, norm())
        self.decoder = custom_decoder
        self._reset_parameters()
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

    def _reset_parameters(self):
        for p in self.parameters():
            if p.dim() > 1:
                init.xavier_uniform_(p)

    def forward(self, src, tgt, src_mask=None, tgt_mask=None, memory_mask=None, src_key_padding_mask=None,
                tgt_key_padding_mask=None, memory_key_padding_mask=None, src_is_causal=None, tgt_is_causal=None,
                memory_is_causal=False):
        batch = 0 if self.batch_first else 1
        if src.dim() == 3 and src.size(batch) != tgt.size(batch):
            raise RuntimeError("the batch number of src and tgt must be equal")
        if src.size(-1) != self.d_model or tgt.size(-1) != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask,
                            tgt_key_padding_mask=tgt_key_padding_mask,
                            memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal,
                            memory_is_causal=memory_is_causal)

    @staticmethod
    def generate_square_subsequent_mask(sz, device=None, dtype=None):
        """A causal mask [sz, sz] to add to scores: -inf for later positions, 0 elsewhere."""
        return _C.full((sz, sz), float("-inf"), dtype=dtype, device=device).triu(1)
