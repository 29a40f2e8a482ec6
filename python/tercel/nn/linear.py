"""Linear layers and embeddings."""

import math

from tercel import _C
from tercel.nn import functional as F
from tercel.nn import init
from tercel.nn.module import Module
from tercel.nn.parameter import Parameter, _bias

__all__ = ["Identity", "Linear", "Bilinear", "Embedding", "EmbeddingBag", "Flatten", "Unflatten"]


class Identity(Module):
    """Returns its input; accepts any arguments."""

    def __init__(self, *args, **kwargs):
        super().__init__()

    def forward(self, input):  # noqa: A002
        return input


class Linear(Module):
    """x weight^T + bias: weight [out, in], bias [out]."""

    def __init__(self, in_features, out_features, bias=True, device=None, dtype=None):
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = Parameter(_C.empty(out_features, in_features, device=device, dtype=dtype))
        self.register_parameter("bias", _bias(bias, out_features, device, dtype))
        self.reset_parameters()

    def reset_parameters(self):
        """Initializes the parameters again, with the global generator."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input):  # noqa: A002
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self):
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class Bilinear(Module):
    """x1^T weight x2 + bias: weight [out, in1, in2]."""

    def __init__(self, in1_features, in2_features, out_features, bias=True, device=None, dtype=None):
        super().__init__()
        if in1_features <= 0:
            raise ValueError(f"in1_features must be > 0, but got {in1_features}")
        self.in1_features, self.in2_features, self.out_features = in1_features, in2_features, out_features
        self.weight = Parameter(_C.empty(out_features, in1_features, in2_features, device=device, dtype=dtype))
        self.register_parameter("bias", _bias(bias, out_features, device, dtype))
        self.reset_parameters()

    def reset_parameters(self):
        """Initializes the parameters again, with the global generator."""
        bound = 1 / math.sqrt(self.in1_features)
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1, input2):
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self):
        return (f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
                f"out_features={self.out_features}, bias={self.bias is not None}")


def _row_of_padding(padding_idx, rows):
    if padding_idx is None:
        return None
    if not -rows <= padding_idx < rows:
        raise AssertionError("Padding_idx must be within num_embeddings")
    return padding_idx % rows


class _Table(Module):
    def __init__(self, num_embeddings, embedding_dim, padding_idx, weight, freeze, device, dtype, max_norm, norm_type,
                 scale_grad_by_freq, sparse):
        super().__init__()
        self.max_norm, self.norm_type = max_norm, norm_type
        self.scale_grad_by_freq, self.sparse = scale_grad_by_freq, sparse
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.padding_idx = _row_of_padding(padding_idx, num_embeddings)
        if weight is not None and list(weight.shape) != [num_embeddings, embedding_dim]:
            raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
        given = weight is not None
        if not given:
            weight = _C.empty(num_embeddings, embedding_dim, device=device, dtype=dtype)
        self.weight = Parameter(weight, requires_grad=not freeze)
        if not given:
            self.reset_parameters()

    def reset_parameters(self):
        init.normal_(self.weight)
        if self.padding_idx is not None:
            init.zeros_(self.weight.detach()[self.padding_idx])

    def _text(self, padding=""):
        text = f"{self.num_embeddings}, {self.embedding_dim}{padding}"
        for name, default in (("max_norm", None), ("norm_type", 2), ("scale_grad_by_freq", False)):
            value = getattr(self, name)
            if value != default:
                text += f", {name}={value}"
        return text

    @classmethod
    def _from(cls, embeddings, freeze, **options):
        if embeddings.dim() != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        rows, cols = embeddings.shape
        return cls(rows, cols, _weight=embeddings, _freeze=freeze, **options)


class Embedding(_Table):
    """Rows of weight [num_embeddings, embedding_dim] by index."""

    def __init__(self, num_embeddings, embedding_dim, padding_idx=None, max_norm=None, norm_type=2.0,
                 scale_grad_by_freq=False, sparse=False, _weight=None, _freeze=False, device=None, dtype=None):
        super().__init__(num_embeddings, embedding_dim, padding_idx, _weight, _freeze, device, dtype, max_norm,
                         norm_type, scale_grad_by_freq, sparse)

    @classmethod
    def from_pretrained(cls, embeddings, freeze=True, padding_idx=None, max_norm=None, norm_type=2.0,
                        scale_grad_by_freq=False, sparse=False):
        """An embedding with the given rows, which are not trained unless freeze is False."""
        return cls._from(embeddings, freeze, padding_idx=padding_idx, max_norm=max_norm, norm_type=norm_type,
                         scale_grad_by_freq=scale_grad_by_freq, sparse=sparse)

    def forward(self, input):  # noqa: A002
        return F.embedding(input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq,
                           self.sparse)

    def extra_repr(self):
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return self._text(padding) + (", sparse=True" if self.sparse else "")


class EmbeddingBag(_Table):
    """Sums, means or maxima of rows per bag."""

    def __init__(self, num_embeddings, embedding_dim, max_norm=None, norm_type=2.0, scale_grad_by_freq=False,
                 mode="mean", sparse=False, _weight=None, include_last_offset=False, padding_idx=None, device=None,
                 dtype=None, _freeze=False):
        super().__init__(num_embeddings, embedding_dim, padding_idx, _weight, _freeze, device, dtype, max_norm,
                         norm_type, scale_grad_by_freq, sparse)
        self.mode, self.include_last_offset = mode, include_last_offset

    @classmethod
    def from_pretrained(cls, embeddings, freeze=True, max_norm=None, norm_type=2.0, scale_grad_by_freq=False,
                        mode="mean", sparse=False, include_last_offset=False, padding_idx=None):
        """An embedding with the given rows, which are not trained unless freeze is False."""
        return cls._from(embeddings, freeze, max_norm=max_norm, norm_type=norm_type,
                         scale_grad_by_freq=scale_grad_by_freq, mode=mode, sparse=sparse,
                         include_last_offset=include_last_offset, padding_idx=padding_idx)

    def forward(self, input, offsets=None, per_sample_weights=None):  # noqa: A002
        return F.embedding_bag(input, self.weight, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq,
                               self.mode, self.sparse, per_sample_weights, self.include_last_offset, self.padding_idx)

    def extra_repr(self):
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return self._text() + f", mode={self.mode!r}" + padding


class Flatten(Module):
    """Merges several dimensions into one; all but the batch's by default."""

    def __init__(self, start_dim=1, end_dim=-1):
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input):  # noqa: A002
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self):
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Splits a dimension into several."""

    def __init__(self, dim, unflattened_size):
        super().__init__()
        if not isinstance(dim, int):
            raise TypeError("dim must be an int: named dimensions are not supported")
        self.dim, self.unflattened_size = dim, unflattened_size

    def forward(self, input):  # noqa: A002
        dim = self.dim % input.dim()
        return input.reshape((*input.shape[:dim], *self.unflattened_size, *input.shape[dim + 1:]))

    def extra_repr(self):
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
