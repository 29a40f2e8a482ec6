"""Multi-head attention."""

import contextlib
import enum

from tercel import _C
from tercel.nn import functional as F
from tercel.nn import init
from tercel.nn.linear import Linear
from tercel.nn.module import Module
from tercel.nn.parameter import Parameter, _bias

__all__ = ["MultiheadAttention", "SDPBackend", "sdpa_kernel"]


class SDPBackend(enum.IntEnum):
    """PyTorch's names of implementations of scaled_dot_product_attention()."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextlib.contextmanager
def sdpa_kernel(backends, set_priority=False):
    """A context that selects allowed implementations; it has no effect, since there is only one."""
    several = isinstance(backends, (list, tuple))
    if not several and not isinstance(backends, SDPBackend):
        raise AssertionError("Backend must be an instance of SDPBackend or a list of SDPBackend instances, got "
                             + type(backends).__name__)
    for backend in backends if several else (backends,):
        if not isinstance(backend, SDPBackend):
            raise AssertionError(f"Backend must be an instance of SDPBackend, got {type(backend).__name__}")
    yield {}


class NonDynamicallyQuantizableLinear(Linear):
    """A Linear with the class name that PyTorch prints."""


class MultiheadAttention(Module):
    """Attention between projections of query, key and value, with embed_dim split into num_heads heads.

    Weights: in_proj_weight [3 * embed_dim, embed_dim], or q_proj_weight, k_proj_weight and v_proj_weight if key and value
    have other sizes (kdim, vdim).
    """

    def __init__(self, embed_dim, num_heads, dropout=0.0, bias=True, add_bias_kv=False, add_zero_attn=False, kdim=None,
                 vdim=None, batch_first=False, device=None, dtype=None):
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and "
                             f"num_heads={num_heads} instead")
        if embed_dim % num_heads:
            raise AssertionError("embed_dim must be divisible by num_heads")
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self.dropout, self.batch_first, self.add_zero_attn = dropout, batch_first, add_zero_attn
        self._qkv_same_embed_dim = self.kdim == self.vdim == embed_dim

        def weight(*sizes):
            return Parameter(_C.empty(sizes, device=device, dtype=dtype))

        same = self._qkv_same_embed_dim
        self.register_parameter("in_proj_weight", weight(3 * embed_dim, embed_dim) if same else None)
        for name, width in (("q", embed_dim), ("k", self.kdim), ("v", self.vdim)):
            self.register_parameter(f"{name}_proj_weight", None if same else weight(embed_dim, width))
        self.register_parameter("in_proj_bias", _bias(bias, 3 * embed_dim, device, dtype))
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias, device, dtype)
        for name in ("bias_k", "bias_v"):
            self.register_parameter(name, weight(1, 1, embed_dim) if add_bias_kv else None)
        self._reset_parameters()

    def _reset_parameters(self):
        for name in ("in", "q", "k", "v"):
            weight = getattr(self, f"{name}_proj_weight")
            if weight is not None:
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
            init.zeros_(self.out_proj.bias)
        if self.bias_k is not None:
            init.xavier_normal_(self.bias_k)
            init.xavier_normal_(self.bias_v)

    def forward(self, query, key, value, key_padding_mask=None, need_weights=True, attn_mask=None,
                average_attn_weights=True, is_causal=False):
        turn = self.batch_first and query.dim() == 3
        if turn:
            # A tensor used as query, key and value stays one tensor: its projections are then a single product.
            turned = {id(x): x.transpose(0, 1) for x in (query, key, value)}
            query, key, value = (turned[id(x)] for x in (query, key, value))
        output, weights = F.multi_head_attention_forward(
            query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias, self.bias_k,
            self.bias_v, self.add_zero_attn, self.dropout, self.out_proj.weight, self.out_proj.bias, self.training,
            key_padding_mask, need_weights, attn_mask, not self._qkv_same_embed_dim, self.q_proj_weight,
            self.k_proj_weight, self.v_proj_weight, average_attn_weights=average_attn_weights, is_causal=is_causal)
        return output.transpose(0, 1) if turn else output, weights
