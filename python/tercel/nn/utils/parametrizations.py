"""Common parametrizations; see parametrize.py."""

from tercel import _C
from tercel import linalg as _linalg
from tercel._C import Tensor
from tercel.nn.module import Module
from tercel.nn.utils import parametrize
from tercel.nn.utils.spectral_norm import _as_matrix, _default_dim, _power_steps, _singular_vectors, _unit
from tercel.nn.utils.weight_norm import _length

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


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
    """Makes the parameter g v / |v|, with g = original0, the norm per slice (or of all, if dim is None), v = original1."""
    return parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)


class _SpectralNorm(Module):
    """Divides a weight by its largest singular value, and a vector by its norm."""

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
            _power_steps(matrix.t(), v, u, 15, eps)  # a good estimate, for modules that are never trained

    def forward(self, weight):
        if weight.dim() == 1:
            return _unit(weight, self.eps)
        matrix = _as_matrix(weight, self.dim)
        if self.training:
            # u is updated before v here, and v before u in spectral_norm.py, as in PyTorch.
            _power_steps(matrix.detach().t(), self._v, self._u, self.n_power_iterations, self.eps)
        u, v = self._u.clone(), self._v.clone()  # copies, since a later call updates the buffers in place
        return weight / _C.dot(u, matrix.mv(v))

    def right_inverse(self, value):
        return value


def spectral_norm(module, name="weight", n_power_iterations=1, eps=1e-12, dim=None):
    """Divides the parameter by its largest singular value, as a matrix whose rows are slices along the dimension."""
    if not hasattr(module, name):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    made = _SpectralNorm(getattr(module, name), n_power_iterations, _default_dim(module, dim), eps)
    return parametrize.register_parametrization(module, name, made)


_ORTHOGONAL_MAPS = ("matrix_exp", "cayley", "householder")


def _made_orthogonal(a):
    """The Q factor with signs chosen closest to a: equal to a if a has orthonormal columns."""
    reflectors, tau = _C.geqrf(a)
    return _linalg.householder_product(reflectors, tau) * reflectors.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


def _has_orthonormal_columns(q):
    unit = _C.eye(q.size(-1), dtype=q.dtype, device=q.device)
    return _C.allclose(q.mH @ q, unit, atol=10 * q.size(-2) * _C.finfo(q.dtype).eps)


class _Orthogonal(Module):
    """Maps any matrix to one with orthonormal columns, or rows if it is wide.

    `base`, if any, is a matrix that the result is multiplied by: assigning a value sets the base.
    """

    def __init__(self, weight, orthogonal_map, use_trivialization=True):
        super().__init__()
        if weight.is_complex() and orthogonal_map == "householder":
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape, self.orthogonal_map, self.use_trivialization = weight.shape, orthogonal_map, use_trivialization
        if use_trivialization:
            self.register_buffer("base", None)

    def _square(self, x):
        """The first k columns of an orthogonal matrix, computed from the lower triangle of x [..., n, k]."""
        n, k = x.shape[-2:]
        x = x.tril()
        if n != k:
            x = _C.cat([x, x.new_zeros(n, n - k).expand(*x.shape[:-2], -1, -1)], -1)
        skew = x - x.mH
        if self.orthogonal_map == "matrix_exp":
            q = _C.matrix_exp(skew)
        else:
            unit = _C.eye(n, dtype=skew.dtype, device=skew.device)
            q = _linalg.solve(_C.add(unit, skew, alpha=-0.5), _C.add(unit, skew, alpha=0.5))
        return q[..., :k]

    def forward(self, weight):
        wide = weight.size(-2) < weight.size(-1)
        x = weight.mT if wide else weight
        if self.orthogonal_map == "householder":
            reflectors = x.tril(-1)
            tau = 2.0 / (1.0 + (reflectors * reflectors).sum(-2))
            # The diagonal contains signs.
            q = _linalg.householder_product(reflectors, tau) * x.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)
        else:
            q = self._square(x)
        if self.use_trivialization and self.base is not None:
            q = self.base @ q
        return q.mT if wide else q

    def right_inverse(self, value):
        if value.shape != self.shape:
            raise ValueError(f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape "
                             f"{value.shape}.")
        wide = value.size(-2) < value.size(-1)
        q = value.mT if wide else value
        n, k = q.shape[-2:]
        if not self.use_trivialization:
            if self.orthogonal_map != "householder":
                raise NotImplementedError("It is not possible to assign to the matrix exponential or the Cayley "
                                          "parametrizations when use_trivialization=False.")
            reflectors, tau = _C.geqrf(q)
            diagonal = reflectors.diagonal(dim1=-2, dim2=-1)
            diagonal.copy_(_C.where(tau == 0.0, -diagonal.sign(), diagonal.sign()))
            return reflectors.mT if wide else reflectors
        if n == k:
            q = q.clone() if _has_orthonormal_columns(q) else _made_orthogonal(q)
        else:  # any columns that complete it to a square matrix
            more = _C.randn(*q.shape[:-2], n, n - k, dtype=q.dtype, device=q.device)
            q = _made_orthogonal(_C.cat([q, more], -1))
        self.base = q
        # All maps turn this into the identity.
        start = _C.zeros_like(value)
        start.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
        return start


def orthogonal(module, name="weight", orthogonal_map=None, *, use_trivialization=True):
    """Makes a matrix [..., m, n] orthogonal (unitary if complex): orthonormal columns, or rows if m < n.

    orthogonal_map: "matrix_exp" or "cayley" of a skew-symmetric matrix, or "householder" reflections; by default matrix_exp
    for square or complex matrices, else householder. use_trivialization: whether to store a base matrix; without it values
    can be assigned only with householder.
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if weight.dim() < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.dim()} dimensions.")
    if orthogonal_map is None:
        square = weight.size(-2) == weight.size(-1) or weight.is_complex()
        orthogonal_map = "matrix_exp" if square else "householder"
    if orthogonal_map not in _ORTHOGONAL_MAPS:
        raise ValueError('orthogonal_map has to be one of "matrix_exp", "cayley", "householder". '
                         f"Got: {orthogonal_map}")
    made = _Orthogonal(weight, orthogonal_map, use_trivialization)
    return parametrize.register_parametrization(module, name, made, unsafe=True)
