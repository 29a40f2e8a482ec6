"""Linear algebra: factorizations, solutions, norms. Matrices are the last two dimensions, the others are a batch."""

from tercel import _C
from tercel._C import LinAlgError  # noqa: F401
from tercel._C._linalg import *  # noqa: F401,F403


def vander(x, *, N=None):  # noqa: N803
    """The powers 0 to N - 1 (N = n by default) of the elements of x [..., n]: [..., n, N]."""
    if x.dim() == 0 and N is None:
        raise RuntimeError("vander(): expected at least 1 dimension, or N")
    count = x.size(-1) if N is None else N
    if count <= 1:
        raise RuntimeError(f"N must be greater than 1, got {count}.")
    if x.dim() == 0:
        x = x.unsqueeze(0)
    if x.dtype is _C.bool or not (x.is_floating_point() or x.is_complex()):
        x = x.to(_C.int64)
    factors = _C.cat([_C.ones_like(x).unsqueeze(-1), x.unsqueeze(-1).expand(*x.shape, count - 1)], -1)
    return factors.cumprod(-1)
