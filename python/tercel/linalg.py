"""Linear algebra: factorizations, solutions, norms. Matrices are the last two dimensions, the others are a batch."""

from tercel._C import LinAlgError  # noqa: F401
from tercel._C._linalg import *  # noqa: F401,F403
