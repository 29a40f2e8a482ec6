"""Special functions: the part of torch.special that the library implements."""

from tercel._C._special import *  # noqa: F401,F403
