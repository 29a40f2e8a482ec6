"""Special functions: of PyTorch's module of that name, what the library has."""

from tercel._C._special import *  # noqa: F401,F403
