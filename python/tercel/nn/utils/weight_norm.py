"""Weight normalization: weights as direction and norm (Salimans and Kingma, Weight Normalization)."""

from tercel.nn.parameter import Parameter, is_lazy
from tercel.nn.utils._computed import ComputedWeight


def _length(v, dim):
    """The norm of each slice along a dimension, with size 1 in the others; without a dimension, the norm of all of v."""
    if dim is None:
        return v.norm()
    slices = v.transpose(0, dim)
    sizes = [1] * v.dim()
    sizes[dim] = v.size(dim)
    return slices.reshape(slices.size(0), -1).norm(2, 1).view(sizes)


class WeightNorm(ComputedWeight):
    """Computes g v / |v|; see Note [Computed weights] in _computed.py."""

    kind = "weight_norm"

    def __init__(self, name, dim):
        super().__init__(name)
        self.dim = None if dim == -1 else dim

    def compute_weight(self, module):
        v = getattr(module, self.name + "_v")
        return v * (getattr(module, self.name + "_g") / _length(v, self.dim))

    def restore(self, module):
        """The current weight as a parameter."""
        weight = self.compute_weight(module).detach()
        for name in (self.name, self.name + "_g", self.name + "_v"):
            delattr(module, name)
        module.register_parameter(self.name, Parameter(weight))


def weight_norm(module, name="weight", dim=0):
    """Makes the parameter g v / |v| with g = name_g, the norm per slice (or of all, if dim is None), and v = name_v."""
    WeightNorm.check_free(module, name)
    hook = WeightNorm(name, dim)
    weight = getattr(module, name)
    if is_lazy(weight):
        raise ValueError("The module passed to `WeightNorm` can't have uninitialized parameters. Make sure to run the "
                         "dummy forward before applying weight normalization")
    del module._parameters[name]
    module.register_parameter(name + "_g", Parameter(_length(weight.detach(), hook.dim)))
    module.register_parameter(name + "_v", Parameter(weight.detach()))
    setattr(module, name, hook.compute_weight(module))
    hook.hang_on(module)
    return module


def remove_weight_norm(module, name="weight"):
    """Makes the weight a parameter again, with its current value."""
    return WeightNorm.take_away(module, name)
