"""Normalization and dropout."""

from tercel import _C
from tercel.nn import functional as F
from tercel.nn import init
from tercel.nn.module import Module
from tercel.nn.parameter import Parameter

__all__ = ["BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d",
           "LayerNorm", "RMSNorm", "GroupNorm", "LocalResponseNorm", "CrossMapLRN2d", "Dropout",
           "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout"]


class _AffineNorm(Module):
    """weight of ones and bias of zeros, or neither."""

    def _make(self, shape, weight, bias, device, dtype):
        for name, wanted in (("weight", weight), ("bias", bias)):
            value = Parameter(_C.empty(shape, device=device, dtype=dtype)) if wanted else None
            self.register_parameter(name, value)

    def reset_parameters(self):
        if self.weight is not None:
            init.ones_(self.weight)
        if getattr(self, "bias", None) is not None:
            init.zeros_(self.bias)


class _RunningNorm(_AffineNorm):
    _version = 2
    _ranks = ()  # allowed numbers of dimensions of an input

    def __init__(self, num_features, eps, momentum, affine, track_running_stats, device, dtype, bias):
        super().__init__()
        self.num_features, self.eps, self.momentum, self.affine = num_features, eps, momentum, affine
        self.track_running_stats = track_running_stats
        self._make((num_features,), affine, affine and bias, device, dtype)
        if track_running_stats:
            self.register_buffer("running_mean", _C.zeros(num_features, device=device, dtype=dtype))
            self.register_buffer("running_var", _C.ones(num_features, device=device, dtype=dtype))
            self.register_buffer("num_batches_tracked", _C.tensor(0, dtype=_C.int64))
        else:
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                self.register_buffer(name, None)
        self.reset_parameters()

    def reset_running_stats(self):
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self):
        self.reset_running_stats()
        super().reset_parameters()

    def _check_input_dim(self, x):
        if x.dim() not in self._ranks:
            ranks = " or ".join(f"{r}D" for r in self._ranks)
            raise ValueError(f"expected {ranks} input (got {x.dim()}D input)")

    def extra_repr(self):
        return (f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
                f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}")


class _BatchNorm(_RunningNorm):
    """Normalizes by the batch's statistics in training, which update the running ones; by the running ones otherwise."""

    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, device=None,
                 dtype=None, *, bias=True):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias)

    def forward(self, input):  # noqa: A002
        self._check_input_dim(input)
        momentum = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:  # the mean of all batches
                momentum = 1.0 / self.num_batches_tracked.item()
        by_batch = self.training or self.running_mean is None
        keep = not self.training or self.track_running_stats
        return F.batch_norm(input, self.running_mean if keep else None, self.running_var if keep else None,
                            self.weight, self.bias, by_batch, momentum, self.eps)

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, *rest):
        # Before version 2 there was no num_batches_tracked.
        if (local_metadata.get("version") or 1) < 2 and self.track_running_stats:
            state_dict.setdefault(prefix + "num_batches_tracked", _C.tensor(0, dtype=_C.int64))
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)


class BatchNorm1d(_BatchNorm):
    __doc__ = _BatchNorm.__doc__
    _ranks = (2, 3)


class BatchNorm2d(_BatchNorm):
    __doc__ = _BatchNorm.__doc__
    _ranks = (4,)


class BatchNorm3d(_BatchNorm):
    __doc__ = _BatchNorm.__doc__
    _ranks = (5,)


class _InstanceNorm(_RunningNorm):
    """Normalizes each channel of each sample by its own mean and variance."""

    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=False, track_running_stats=False, device=None,
                 dtype=None, *, bias=True):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias)

    def forward(self, input):  # noqa: A002
        self._check_input_dim(input)
        alone = input.dim() == self._ranks[0]  # one sample, without a batch
        x = input.unsqueeze(0) if alone else input
        if x.size(1) != self.num_features and self.affine:
            raise ValueError(f"expected input's size at dim={0 if alone else 1} to match num_features "
                             f"({self.num_features}), but got: {x.size(1)}.")
        result = F.instance_norm(x, self.running_mean, self.running_var, self.weight, self.bias,
                                 self.training or not self.track_running_stats,
                                 0.0 if self.momentum is None else self.momentum, self.eps)
        return result.squeeze(0) if alone else result


class InstanceNorm1d(_InstanceNorm):
    __doc__ = _InstanceNorm.__doc__
    _ranks = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    __doc__ = _InstanceNorm.__doc__
    _ranks = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    __doc__ = _InstanceNorm.__doc__
    _ranks = (4, 5)


def _shape_of(normalized_shape):
    return (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)


class LayerNorm(_AffineNorm):
    """Normalizes over the last dimensions, whose sizes are normalized_shape."""

    def __init__(self, normalized_shape, eps=1e-5, elementwise_affine=True, bias=True, device=None, dtype=None):
        super().__init__()
        self.normalized_shape, self.eps, self.elementwise_affine = _shape_of(normalized_shape), eps, elementwise_affine
        self._make(self.normalized_shape, elementwise_affine, elementwise_affine and bias, device, dtype)
        self.reset_parameters()

    def forward(self, input):  # noqa: A002
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self):
        return (f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
                f"bias={self.bias is not None}")


class RMSNorm(_AffineNorm):
    """Divides by the root mean square over the last dimensions, without subtracting a mean and without a bias."""

    def __init__(self, normalized_shape, eps=None, elementwise_affine=True, device=None, dtype=None):
        super().__init__()
        self.normalized_shape, self.eps, self.elementwise_affine = _shape_of(normalized_shape), eps, elementwise_affine
        weight = _C.empty(self.normalized_shape, device=device, dtype=dtype)
        self.register_parameter("weight", Parameter(weight) if elementwise_affine else None)
        self.reset_parameters()

    def forward(self, input):  # noqa: A002
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self):
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(_AffineNorm):
    """Normalizes over groups of channels of each sample."""

    def __init__(self, num_groups, num_channels, eps=1e-5, affine=True, device=None, dtype=None, *, bias=True):
        super().__init__()
        if num_channels % num_groups != 0:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        self._make((num_channels,), affine, affine and bias, device, dtype)
        self.reset_parameters()

    def forward(self, input):  # noqa: A002
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self):
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, bias={self.bias is not None}"


class LocalResponseNorm(Module):
    """Normalizes by the mean of squares over neighbouring channels."""

    def __init__(self, size, alpha=1e-4, beta=0.75, k=1.0):
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, input):  # noqa: A002
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self):
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class CrossMapLRN2d(Module):
    """Caffe's normalization by the mean of squares over neighbouring channels of images [n, channels, height, width].

    As in PyTorch, the first channel remains in the sums of all later channels, and an even size covers one channel less.
    LocalResponseNorm has neither property.
    """

    def __init__(self, size, alpha=1e-4, beta=0.75, k=1):
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, input):  # noqa: A002
        if input.dim() != 4:
            raise ValueError(f"CrossMapLRN2d: Expected input to be 4D, got {input.dim()}D instead.")
        reach, channels = (self.size - 1) // 2, input.size(1)
        squares = F.pad(input.square(), (0, 0, 0, 0, reach, reach))
        total = sum(squares.narrow(1, i, channels) for i in range(2 * reach + 1))
        later = (_C.arange(channels) > reach).to(input.dtype).view(-1, 1, 1)
        total = total + later * input[:, :1].square()
        return input * (total * (self.alpha / self.size) + self.k) ** -self.beta

    def extra_repr(self):
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class Dropout(Module):
    """In training, zeroes elements with probability p and divides the others by 1 - p."""

    def __init__(self, p=0.5, inplace=False):
        super().__init__()
        if p < 0 or p > 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p, self.inplace = p, inplace

    def forward(self, input):  # noqa: A002
        return F.dropout(input, self.p, self.training, self.inplace)

    def extra_repr(self):
        return f"p={self.p}, inplace={self.inplace}"


class _ChannelDropout(Dropout):
    """In training, zeroes whole channels with probability p."""

    _function = None

    def forward(self, input):  # noqa: A002
        return self._function(input, self.p, self.training, self.inplace)


class Dropout1d(_ChannelDropout):
    __doc__ = _ChannelDropout.__doc__
    _function = staticmethod(F.dropout1d)


class Dropout2d(_ChannelDropout):
    __doc__ = _ChannelDropout.__doc__
    _function = staticmethod(F.dropout2d)


class Dropout3d(_ChannelDropout):
    __doc__ = _ChannelDropout.__doc__
    _function = staticmethod(F.dropout3d)


class AlphaDropout(Dropout):
    """Dropout for SELU: keeps mean and variance."""

    def forward(self, input):  # noqa: A002
        return F.alpha_dropout(input, self.p, self.training, self.inplace)


class FeatureAlphaDropout(Dropout):
    """AlphaDropout of whole channels."""

    def forward(self, input):  # noqa: A002
        return F.feature_alpha_dropout(input, self.p, self.training, self.inplace)
