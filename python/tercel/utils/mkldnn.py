"""Modules whose weights are packed once, for inference: Tensor.to_mkldnn()."""

from tercel.nn import functional as F
from tercel.nn.linear import Linear
from tercel.nn.module import Module

__all__ = ["MkldnnLinear", "to_mkldnn"]


class MkldnnLinear(Module):
    """A Linear layer with a packed weight: a copy without parameters, which is not trained.

    Its state dict, its pickles and its copies hold the weight as Linear's do, so they work on every processor.
    """

    def __init__(self, dense_module, dtype=None):
        super().__init__()
        dtype = dense_module.weight.dtype if dtype is None else dtype
        self.register_buffer("weight", dense_module.weight.detach().to_mkldnn(dtype))
        bias = dense_module.bias
        self.register_buffer("bias", None if bias is None else bias.detach().to(dtype, copy=True))
        self.train(dense_module.training)

    def forward(self, input):  # noqa: A002
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self):
        out_features, in_features = self.weight.shape
        return f"in_features={in_features}, out_features={out_features}, bias={self.bias is not None}"

    def _apply(self, fn):
        before = dict(self._buffers)
        try:
            self.weight = self.weight.to_dense()
            super()._apply(fn)
            self.weight = self.weight.to_mkldnn()
        except BaseException:  # such as of a dtype that cannot be packed
            self._buffers.update(before)
            raise
        return self

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "weight"] = self.weight.to_dense()

    def _load_one(self, name, own, key, state_dict, local_metadata, *rest):
        # Values are copied even if tensors are to be assigned: the weight is packed, and there are no parameters.
        local_metadata = {**local_metadata, "assign_to_params_buffers": False}
        value = own.to_dense() if name == "weight" else own
        super()._load_one(name, value, key, state_dict, local_metadata, *rest)
        if name == "weight":
            self.weight = value.to_mkldnn()

    def __getstate__(self):
        return {**self.__dict__, "_buffers": {**self._buffers, "weight": self.weight.to_dense()}}

    def __setstate__(self, state):
        self.__dict__.update(state)
        self.weight = self.weight.to_mkldnn()


def to_mkldnn(module, dtype=None):
    """Replaces each Linear in the module, or the module itself if it is one, by a MkldnnLinear; returns the module.

    dtype, float32 or float64, converts the weights. RuntimeError for weights of another dtype; other layers stay. A layer
    that occurs more than once is replaced by one MkldnnLinear.
    """
    done = {}

    def replace(module):
        if module not in done:
            done[module] = MkldnnLinear(module, dtype) if type(module) is Linear else module
            for name, child in module._modules.items():
                if child is not None:
                    setattr(module, name, replace(child))
        return done[module]

    return replace(module)
