"""Parameter initialization. Each function fills a tensor in place, without recording, and returns it."""

import math
import warnings

from tercel import _C
from tercel._C import _nn
from tercel.autograd import no_grad

_LINEAR = ("linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "sigmoid")


def calculate_gain(nonlinearity, param=None):
    """The factor for the standard deviation that compensates for a nonlinearity."""
    if nonlinearity in _LINEAR:
        return 1
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        if param is None:
            param = 0.01
        elif isinstance(param, bool) or not isinstance(param, (int, float)):
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + param**2))
    if nonlinearity == "selu":
        return 3.0 / 4
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


@no_grad()
def uniform_(tensor, a=0.0, b=1.0, generator=None):
    """Uniform random numbers in [a, b)."""
    return tensor.uniform_(a, b, generator=generator)


@no_grad()
def normal_(tensor, mean=0.0, std=1.0, generator=None):
    """Normal random numbers with a mean and a standard deviation."""
    return tensor.normal_(mean, std, generator=generator)


@no_grad()
def trunc_normal_(tensor, mean=0.0, std=1.0, a=-2.0, b=2.0):
    """Normal random numbers truncated to [a, b]."""
    _nn._trunc_normal_(tensor, mean, std, a, b)
    return tensor


@no_grad()
def constant_(tensor, val):
    """Fills with a value."""
    return tensor.fill_(val)


def ones_(tensor):
    """Ones."""
    return constant_(tensor, 1.0)


def zeros_(tensor):
    """Zeros."""
    return constant_(tensor, 0.0)


@no_grad()
def eye_(tensor):
    """Ones on the diagonal of a matrix."""
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    return tensor.copy_(_C.eye(*tensor.shape))


@no_grad()
def dirac_(tensor, groups=1):
    """The weight of a convolution that is the identity."""
    _nn._dirac_(tensor, groups)
    return tensor


def _calculate_fan_in_and_fan_out(tensor):
    if tensor.dim() < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    window = math.prod(tensor.shape[2:])
    return tensor.size(1) * window, tensor.size(0) * window


def xavier_uniform_(tensor, gain=1.0, generator=None):
    """Uniform random numbers with variance 2 gain^2 / (fan_in + fan_out)."""
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    bound = gain * math.sqrt(6.0 / (fan_in + fan_out))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor, gain=1.0, generator=None):
    """Normal random numbers with standard deviation gain * sqrt(2 / (fan_in + fan_out))."""
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / (fan_in + fan_out)), generator)


def _calculate_correct_fan(tensor, mode):
    modes = ["fan_in", "fan_out"]
    if mode.lower() not in modes:
        raise ValueError(f"Mode {mode} not supported, please use one of {modes}")
    return _calculate_fan_in_and_fan_out(tensor)[modes.index(mode.lower())]


def kaiming_uniform_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    """Uniform random numbers with variance gain^2 / fan; a is the slope of a leaky ReLU."""
    if 0 in tensor.shape:
        return tensor
    std = calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))
    return uniform_(tensor, -math.sqrt(3.0) * std, math.sqrt(3.0) * std, generator)


def kaiming_normal_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    """Normal random numbers with standard deviation gain / sqrt(fan); mode selects fan_in or fan_out."""
    if 0 in tensor.shape:
        return tensor
    std = calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))
    return normal_(tensor, 0.0, std, generator)


@no_grad()
def orthogonal_(tensor, gain=1):
    """A (semi-)orthogonal matrix times gain: orthonormal rows, or columns if there are more rows."""
    _nn._orthogonal_(tensor, gain)
    return tensor


@no_grad()
def sparse_(tensor, sparsity, std=0.01, generator=None):
    """Normal random numbers, with a fraction `sparsity` of each column set to zero."""
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    tensor.normal_(0, std, generator=generator)
    for column in range(columns):
        tensor[_C.randperm(rows)[:zeros], column] = 0
    return tensor


def _deprecated(function):
    new = function.__name__
    old = new[:-1]

    def deprecated(*args, **kwargs):
        warnings.warn(f"`nn.init.{old}` is now deprecated in favor of `nn.init.{new}`.", FutureWarning, stacklevel=2)
        return function(*args, **kwargs)

    deprecated.__name__ = deprecated.__qualname__ = old
    deprecated.__doc__ = f"Deprecated alias of {new}()."
    return deprecated


uniform, normal, constant, eye, dirac, orthogonal, sparse = map(_deprecated, (
    uniform_, normal_, constant_, eye_, dirac_, orthogonal_, sparse_))
xavier_uniform, xavier_normal, kaiming_uniform, kaiming_normal = map(_deprecated, (
    xavier_uniform_, xavier_normal_, kaiming_uniform_, kaiming_normal_))
