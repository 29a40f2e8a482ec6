"""Activations as modules."""

from tercel import _C
from tercel.nn import functional as F
from tercel.nn import init
from tercel.nn.module import Module
from tercel.nn.parameter import Parameter

__all__ = ["ReLU", "ReLU6", "Hardtanh", "LeakyReLU", "PReLU", "ELU", "SELU", "CELU", "GELU", "SiLU", "Mish", "Sigmoid",
           "LogSigmoid", "Hardsigmoid", "Hardswish", "Tanh", "Tanhshrink", "Hardshrink", "Softshrink", "Threshold",
           "Softplus", "Softsign", "GLU", "Softmax", "Softmax2d", "LogSoftmax", "Softmin", "CosineSimilarity",
           "PairwiseDistance", "RReLU"]


class _Plain(Module):
    """Applies the function of the same name."""

    _function = None

    def forward(self, input):  # noqa: A002
        return self._function(input)


def _plain(name, function):
    return type(name, (_Plain,), {"__doc__": _Plain.__doc__, "__module__": __name__, "_function": staticmethod(function)})


Sigmoid, Tanh, Softsign = _plain("Sigmoid", F.sigmoid), _plain("Tanh", F.tanh), _plain("Softsign", F.softsign)
LogSigmoid, Tanhshrink = _plain("LogSigmoid", F.logsigmoid), _plain("Tanhshrink", F.tanhshrink)


class _InPlace(Module):
    """Applies the function of the same name, optionally in place."""

    _function = None

    def __init__(self, inplace=False):
        super().__init__()
        self.inplace = inplace

    def forward(self, input):  # noqa: A002
        return self._function(input, self.inplace)

    def extra_repr(self):
        return "inplace=True" if self.inplace else ""


def _in_place(name, function):
    return type(name, (_InPlace,), {"__doc__": function.__doc__, "__module__": __name__,
                                    "_function": staticmethod(function)})


ReLU, SiLU, Mish, SELU = (_in_place(name, function) for name, function in (
    ("ReLU", F.relu), ("SiLU", F.silu), ("Mish", F.mish), ("SELU", F.selu)))
Hardsigmoid, Hardswish = _in_place("Hardsigmoid", F.hardsigmoid), _in_place("Hardswish", F.hardswish)


class Hardtanh(Module):
    """x clamped to [min_val, max_val]."""

    def __init__(self, min_val=-1.0, max_val=1.0, inplace=False):
        super().__init__()
        if min_val > max_val:
            raise ValueError("min_val cannot be greater than max_val")
        self.min_val, self.max_val, self.inplace = min_val, max_val, inplace

    def forward(self, input):  # noqa: A002
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self):
        return f"min_val={self.min_val}, max_val={self.max_val}" + (", inplace=True" if self.inplace else "")


class ReLU6(Hardtanh):
    """min(max(x, 0), 6)"""

    def __init__(self, inplace=False):
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self):
        return "inplace=True" if self.inplace else ""


class LeakyReLU(Module):
    """x for x > 0, negative_slope * x otherwise."""

    def __init__(self, negative_slope=0.01, inplace=False):
        super().__init__()
        self.negative_slope, self.inplace = negative_slope, inplace

    def forward(self, input):  # noqa: A002
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self):
        return f"negative_slope={self.negative_slope}" + (", inplace=True" if self.inplace else "")


class RReLU(Module):
    """x for x >= 0, slope * x otherwise; slope is random per element in training, else the mean of lower and upper."""

    def __init__(self, lower=1.0 / 8, upper=1.0 / 3, inplace=False):
        super().__init__()
        self.lower, self.upper, self.inplace = lower, upper, inplace

    def forward(self, input):  # noqa: A002
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self):
        return f"lower={self.lower}, upper={self.upper}" + (", inplace=True" if self.inplace else "")


class PReLU(Module):
    """x for x > 0, weight * x otherwise; the weight is a parameter."""

    def __init__(self, num_parameters=1, init=0.25, device=None, dtype=None):
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        self.weight = Parameter(_C.empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self):
        """Initializes the parameters again."""
        init.constant_(self.weight, self.init)

    def forward(self, input):  # noqa: A002
        return F.prelu(input, self.weight)

    def extra_repr(self):
        return f"num_parameters={self.num_parameters}"


class _Unit(Module):
    """Applies the function of the same name: x for x > 0, approaching -alpha below."""

    _function = None

    def __init__(self, alpha=1.0, inplace=False):
        super().__init__()
        self.alpha, self.inplace = alpha, inplace

    def forward(self, input):  # noqa: A002
        return self._function(input, self.alpha, self.inplace)

    def extra_repr(self):
        return f"alpha={self.alpha}" + (", inplace=True" if self.inplace else "")


class ELU(_Unit):
    """x for x > 0, alpha * (exp(x) - 1) otherwise."""

    _function = staticmethod(F.elu)


class CELU(_Unit):
    """x for x > 0, alpha * (exp(x / alpha) - 1) otherwise."""

    _function = staticmethod(F.celu)


class _Shrink(Module):
    """Applies the function of the same name."""

    _function = None

    def __init__(self, lambd=0.5):
        super().__init__()
        self.lambd = lambd

    def forward(self, input):  # noqa: A002
        return self._function(input, self.lambd)

    def extra_repr(self):
        return str(self.lambd)


class Hardshrink(_Shrink):
    """x, or 0 where |x| <= lambd."""

    _function = staticmethod(F.hardshrink)


class Softshrink(_Shrink):
    """x shrunk towards 0 by lambd."""

    _function = staticmethod(F.softshrink)


class Threshold(Module):
    """x where x > threshold, value elsewhere."""

    def __init__(self, threshold, value, inplace=False):
        super().__init__()
        self.threshold, self.value, self.inplace = threshold, value, inplace

    def forward(self, input):  # noqa: A002
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self):
        return f"threshold={self.threshold}, value={self.value}" + (", inplace=True" if self.inplace else "")


class GELU(Module):
    """x times the standard normal distribution function of x."""

    def __init__(self, approximate="none"):
        super().__init__()
        self.approximate = approximate

    def forward(self, input):  # noqa: A002
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self):
        return f"approximate={self.approximate!r}"


class Softplus(Module):
    """log(1 + exp(beta x)) / beta; x itself where beta x exceeds the threshold."""

    def __init__(self, beta=1.0, threshold=20.0):
        super().__init__()
        self.beta, self.threshold = beta, threshold

    def forward(self, input):  # noqa: A002
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self):
        return f"beta={self.beta}, threshold={self.threshold}"


class _AlongDim(Module):
    """Applies the function of the same name along a dimension."""

    _function = None

    def __init__(self, dim=None):
        super().__init__()
        self.dim = dim

    def forward(self, input):  # noqa: A002
        return self._function(input, self.dim)

    def extra_repr(self):
        return f"dim={self.dim}"


class Softmax(_AlongDim):
    """exp(x) / sum(exp(x)) along a dimension."""

    _function = staticmethod(F.softmax)


class Softmax2d(Module):
    """Softmax over the channels of an image."""

    def forward(self, input):  # noqa: A002
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead")
        return F.softmax(input, -3)


class LogSoftmax(_AlongDim):
    """The logarithm of Softmax."""

    _function = staticmethod(F.log_softmax)

    def extra_repr(self):
        return ""


class Softmin(_AlongDim):
    """Softmax of -x."""

    _function = staticmethod(F.softmin)


class GLU(_AlongDim):
    """The first half of a dimension times the sigmoid of the second."""

    _function = staticmethod(F.glu)

    def __init__(self, dim=-1):
        super().__init__(dim)


class CosineSimilarity(Module):
    """a b / (|a| |b|) along a dimension."""

    def __init__(self, dim=1, eps=1e-8):
        super().__init__()
        self.dim, self.eps = dim, eps

    def forward(self, x1, x2):
        return F.cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(Module):
    """The p-norm of a - b along the last dimension."""

    def __init__(self, p=2.0, eps=1e-6, keepdim=False):
        super().__init__()
        self.norm, self.eps, self.keepdim = p, eps, keepdim

    def forward(self, x1, x2):
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)
