"""All layers under PyTorch's module paths, as in `from tercel.nn.modules.batchnorm import _BatchNorm`."""

import sys
import types

from tercel.nn import (activation, adaptive, attention, containers, conv, lazy, linear, loss, module, norm, padding, rnn,
                       sampling, transformer)
from tercel.nn.activation import *  # noqa: F401,F403
from tercel.nn.adaptive import *  # noqa: F401,F403
from tercel.nn.attention import MultiheadAttention  # noqa: F401
from tercel.nn.containers import *  # noqa: F401,F403
from tercel.nn.conv import *  # noqa: F401,F403
from tercel.nn.lazy import *  # noqa: F401,F403
from tercel.nn.linear import *  # noqa: F401,F403
from tercel.nn.loss import *  # noqa: F401,F403
from tercel.nn.module import Module  # noqa: F401
from tercel.nn.norm import *  # noqa: F401,F403
from tercel.nn.padding import *  # noqa: F401,F403
from tercel.nn.rnn import *  # noqa: F401,F403
from tercel.nn.sampling import *  # noqa: F401,F403
from tercel.nn.transformer import *  # noqa: F401,F403

# PyTorch's files and the modules that define their classes here; the last of several has precedence.
_FILES = {
    "activation": (attention, activation), "adaptive": (adaptive,), "batchnorm": (lazy, norm), "channelshuffle": (sampling,),
    "container": (containers,), "conv": (lazy, conv), "distance": (activation,), "dropout": (norm,), "flatten": (linear,),
    "fold": (conv,), "instancenorm": (lazy, norm), "lazy": (lazy,), "linear": (lazy, linear), "loss": (loss,),
    "module": (module,), "normalization": (norm,), "padding": (padding,), "pixelshuffle": (conv,), "pooling": (sampling, conv),
    "rnn": (rnn,), "sparse": (linear,), "transformer": (transformer,), "upsampling": (sampling, conv),
}
for _name, _files in _FILES.items():
    _file = _files[-1]
    if len(_files) > 1:
        _file = types.ModuleType(f"{__name__}.{_name}")
        for _part in _files:
            vars(_file).update({**vars(_part), "__name__": _file.__name__})
    globals()[_name] = sys.modules[f"{__name__}.{_name}"] = _file
