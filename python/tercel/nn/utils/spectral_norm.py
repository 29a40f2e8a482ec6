"""Spectral normalization (Miyato et al., Spectral Normalization for Generative Adversarial Networks)."""

from tercel import _C
from tercel._C import _nn
from tercel.autograd import no_grad
from tercel.nn import conv
from tercel.nn.parameter import Parameter, is_lazy
from tercel.nn.utils._computed import ComputedWeight


def _as_matrix(weight, dim):
    """Slices along the dimension as rows."""
    return weight.movedim(dim, 0).reshape(weight.size(dim), -1)


def _unit(x, eps):
    return _nn.normalize(x, 2.0, 0, eps)


def _singular_vectors(matrix, eps):
    """Initial unit vectors."""
    return [_unit(matrix.new_empty(size).normal_(0, 1), eps) for size in matrix.shape]


@no_grad()
def _power_steps(matrix, u, v, steps, eps):
    """Updates u and v, in place, towards the singular vectors of the largest singular value."""
    for _ in range(steps):
        v.copy_(_unit(matrix.t().mv(u), eps))
        u.copy_(_unit(matrix.mv(v), eps))


def _default_dim(module, dim):
    """The dimension; that of the outputs by default."""
    transposed = (conv.ConvTranspose1d, conv.ConvTranspose2d, conv.ConvTranspose3d)
    return dim if dim is not None else 1 if isinstance(module, transposed) else 0


class SpectralNorm(ComputedWeight):
    """Divides a weight by its largest singular value; see Note [Computed weights] in _computed.py.

    The singular vectors u and v are buffers; every call in training improves them by power iteration.
    """

    kind = "spectral_norm"
    _version = 1

    def __init__(self, name="weight", n_power_iterations=1, dim=0, eps=1e-12):
        super().__init__(name)
        if n_power_iterations <= 0:
            raise ValueError("Expected n_power_iterations to be positive, but got "
                             f"n_power_iterations={n_power_iterations}")
        self.n_power_iterations, self.dim, self.eps = n_power_iterations, dim, eps

    def compute_weight(self, module):
        return self._normalized(module, module.training)

    def _normalized(self, module, move):
        weight = getattr(module, self.name + "_orig")
        u, v = getattr(module, self.name + "_u"), getattr(module, self.name + "_v")
        matrix = _as_matrix(weight, self.dim)
        if move:
            _power_steps(matrix, u, v, self.n_power_iterations, self.eps)
            u, v = u.clone(), v.clone()  # copies, since a later call updates the buffers in place
        return weight / _C.dot(u, matrix.mv(v))

    def hang_on(self, module):
        super().hang_on(module)
        self.handles.append(module.register_state_dict_post_hook(self.note_version))

    def note_version(self, module, state_dict, prefix, local_metadata):
        """PyTorch's version mark of states that contain v as well as u."""
        local_metadata.setdefault("spectral_norm", {})[self.name + ".version"] = self._version

    def restore(self, module):
        """The current weight as a parameter."""
        with no_grad():
            weight = self._normalized(module, move=False).detach()
        for suffix in ("", "_u", "_v", "_orig"):
            delattr(module, self.name + suffix)
        module.register_parameter(self.name, Parameter(weight))


def spectral_norm(module, name="weight", n_power_iterations=1, eps=1e-12, dim=None):
    """Divides the parameter by its largest singular value, as a matrix whose rows are slices along the dimension.

    The parameter is renamed to name_orig; the dimension is that of the outputs by default.
    """
    SpectralNorm.check_free(module, name)
    hook = SpectralNorm(name, n_power_iterations, _default_dim(module, dim), eps)
    weight = module._parameters[name]
    if weight is None:
        raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
    if is_lazy(weight):
        raise ValueError("The module passed to `SpectralNorm` can't have uninitialized parameters. Make sure to run "
                         "the dummy forward before applying spectral normalization")
    u, v = _singular_vectors(_as_matrix(weight.detach(), hook.dim), eps)
    del module._parameters[name]
    module.register_parameter(name + "_orig", weight)
    setattr(module, name, weight.detach())
    module.register_buffer(name + "_u", u)
    module.register_buffer(name + "_v", v)
    hook.hang_on(module)
    return module


def remove_spectral_norm(module, name="weight"):
    """Makes the weight a parameter again, with its current value."""
    return SpectralNorm.take_away(module, name)
