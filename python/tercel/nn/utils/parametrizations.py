"""Parametrizations that are often wanted; see parametrize.py."""

from tercel import _C
from tercel.nn.module import Module
from tercel.nn.utils import parametrize
from tercel.nn.utils.spectral_norm import _as_matrix, _default_dim, _power_steps, _singular_vectors, _unit
from tercel.nn.utils.weight_norm import _length

__all__ = ["spectral_norm", "weight_norm"]


class _WeightNorm(Module):
    """g v / |v|"""

    def __init__(self, dim=0):
        super().__init__()
        self.dim = None if dim == -1 else dim

    def forward(self, weight_g, weight_v):
        return weight_v * (weight_g / _length(weight_v, self.dim))

    def right_inverse(self, weight):
        return _length(weight, self.dim), weight


def weight_norm(module, name="weight", dim=0):
    """Makes the parameter g v / |v| of original0, its norm along the dimension (or of all, if None), and original1."""
    return parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)


class _SpectralNorm(Module):
    """A weight over its largest singular value; a vector over its length."""

    def __init__(self, weight, n_power_iterations=1, dim=0, eps=1e-12):
        super().__init__()
        dims = weight.dim()
        if not -dims <= dim < dims:
            raise IndexError(f"Dimension out of range (expected to be in range of [-{dims}, {dims - 1}] but got {dim})")
        if n_power_iterations <= 0:
            raise ValueError("Expected n_power_iterations to be positive, but got "
                             f"n_power_iterations={n_power_iterations}")
        self.dim, self.eps, self.n_power_iterations = dim % dims, eps, n_power_iterations
        if dims > 1:
            matrix = _as_matrix(weight.detach(), self.dim)
            u, v = _singular_vectors(matrix, eps)
            self.register_buffer("_u", u)
            self.register_buffer("_v", v)
            _power_steps(matrix.t(), v, u, 15, eps)  # a good start, for who never trains

    def forward(self, weight):
        if weight.dim() == 1:
            return _unit(weight, self.eps)
        matrix = _as_matrix(weight, self.dim)
        if self.training:
            # Of the two vectors u moves first here, v first in the spectral norm by hooks: as in PyTorch.
            _power_steps(matrix.detach().t(), self._v, self._u, self.n_power_iterations, self.eps)
        u, v = self._u.clone(), self._v.clone()  # a later call moves the buffers, which backward must not see
        return weight / _C.dot(u, matrix.mv(v))

    def right_inverse(self, value):
        return value


def spectral_norm(module, name="weight", n_power_iterations=1, eps=1e-12, dim=None):
    """Divides the parameter by its largest singular value, as a matrix whose rows are slices along the dimension."""
    if not hasattr(module, name):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    made = _SpectralNorm(getattr(module, name), n_power_iterations, _default_dim(module, dim), eps)
    return parametrize.register_parametrization(module, name, made)
