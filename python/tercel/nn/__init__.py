"""Neural networks: modules, layers, parameter initialization, and stateless functions."""

from tercel.nn import functional, grad, init, utils  # noqa: F401
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
from tercel.nn.parallel import DataParallel  # noqa: F401
from tercel.nn.parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter  # noqa: F401
from tercel.nn.rnn import *  # noqa: F401,F403
from tercel.nn.sampling import *  # noqa: F401,F403
from tercel.nn.transformer import *  # noqa: F401,F403
from tercel.nn import modules  # noqa: F401,E402
