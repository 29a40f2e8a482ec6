"""Lazy layers, which infer the number of features or channels from their first input."""

from tercel import _C
from tercel.autograd import no_grad
from tercel.nn import conv, linear, norm
from tercel.nn.module import Module
from tercel.nn.parameter import UninitializedBuffer, UninitializedParameter, is_lazy

__all__ = ["LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d", "LazyConv1d", "LazyConv2d", "LazyConv3d",
           "LazyConvTranspose1d", "LazyConvTranspose2d", "LazyConvTranspose3d", "LazyInstanceNorm1d",
           "LazyInstanceNorm2d", "LazyInstanceNorm3d", "LazyLinear"]


class LazyModuleMixin(Module):
    """Mixin for modules whose parameters get their sizes from the first input.

    A subclass has UninitializedParameters and materializes them in initialize_parameters(), which is called with the
    arguments of the first call. The module's class then becomes cls_to_become, unless that is None.
    """

    cls_to_become: "type | None" = None

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._initialize_hook = self.register_forward_pre_hook(self._infer_parameters, with_kwargs=True)

    def _infer_parameters(self, module, args, kwargs=None):
        self.initialize_parameters(*args, **(kwargs or {}))
        if self.has_uninitialized_params():
            raise RuntimeError(f"module {self._get_name()} has not been fully initialized")
        self._initialize_hook.remove()
        del self._initialize_hook
        if self.cls_to_become is not None:
            self.__class__ = self.cls_to_become

    def initialize_parameters(self, *args, **kwargs):
        """Materializes the parameters from the arguments of the first forward(); subclasses override it."""
        raise NotImplementedError(f"initialize_parameters is not implemented for {type(self).__name__}")

    def has_uninitialized_params(self):
        """Whether the module itself, without its children, has uninitialized parameters or buffers."""
        return any(is_lazy(t) for t in (*self._parameters.values(), *self._buffers.values()))

    def _apply(self, fn):
        waiting = [name for name, buffer in self._buffers.items() if is_lazy(buffer)]
        super()._apply(fn)
        for name in waiting:
            like = self._buffers[name]
            self._buffers[name] = UninitializedBuffer(device=like.device, dtype=like.dtype)
        return self

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        for name, value in (*self._parameters.items(), *self._buffers.items()):
            if is_lazy(value) and prefix + name in destination:
                destination[prefix + name] = value

    def _load_one(self, name, own, key, state_dict, *rest):
        given = state_dict.get(key)
        if is_lazy(own) and given is not None:
            if is_lazy(given):
                return
            own.materialize(given.shape)
        super()._load_one(name, own, key, state_dict, *rest)


class _LazyLayer(LazyModuleMixin):
    _measured = ""  # the attribute that is inferred from the first input

    def reset_parameters(self):
        """Initializes the parameters again if they have sizes; else does nothing."""
        if not self.has_uninitialized_params() and getattr(self, self._measured) != 0:
            super().reset_parameters()

    def _later(self, parameters, buffers=(), **options):
        """The uninitialized parameters and buffers."""
        for name in parameters:
            setattr(self, name, UninitializedParameter(**options))
        for name in buffers:
            setattr(self, name, UninitializedBuffer(**options))

    def _materialize(self, **shapes):
        """Allocates and initializes those of the named parameters that the module has."""
        if self.has_uninitialized_params():
            with no_grad():
                for name, shape in shapes.items():
                    if is_lazy(getattr(self, name)):
                        getattr(self, name).materialize(shape)
                self.reset_parameters()


class LazyLinear(_LazyLayer, linear.Linear):
    """Linear whose in_features is the last size of the first input."""

    cls_to_become = linear.Linear
    _measured = "in_features"

    def __init__(self, out_features, bias=True, device=None, dtype=None):
        super().__init__(0, 0, False)
        self.out_features = out_features
        self._later(("weight", "bias") if bias else ("weight",), device=device, dtype=dtype)

    def initialize_parameters(self, input):  # noqa: A002
        """Sets in_features to the size of the last dimension."""
        if self.has_uninitialized_params():
            self.in_features = input.shape[-1]
            self._materialize(weight=(self.out_features, self.in_features), bias=(self.out_features,))
        elif self.in_features == 0:  # a state dict has set the values
            if input.shape[-1] != self.weight.shape[-1]:
                raise AssertionError(f"The in_features inferred from input: {input.shape[-1]} is not equal to "
                                     f"in_features from self.weight: {self.weight.shape[-1]}")
            self.in_features = input.shape[-1]


class _LazyConvNd(_LazyLayer):
    _measured = "in_channels"

    def _wait(self, out_channels, bias, options):
        self.out_channels = out_channels
        self._later(("weight", "bias") if bias else ("weight",), **options)

    def initialize_parameters(self, input, *args, **kwargs):  # noqa: A002
        """Sets in_channels to the size of the dimension before the pixels."""
        alone, batched = self._dims + 1, self._dims + 2
        if input.dim() not in (alone, batched):
            raise RuntimeError(f"Expected {alone}D (unbatched) or {batched}D (batched) input to {type(self).__name__}, "
                               f"but got input of size: {input.shape}")
        if self.in_channels != 0:
            return
        if input.shape[-alone] % self.groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        self.in_channels = input.shape[-alone]
        if self._transposed:
            channels = self.in_channels, self.out_channels // self.groups
        else:
            channels = self.out_channels, self.in_channels // self.groups
        self._materialize(weight=(*channels, *self.kernel_size), bias=(self.out_channels,))


class _LazyConv(_LazyConvNd):
    """A convolution whose in_channels is that of the first input."""

    def __init__(self, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True,
                 padding_mode="zeros", device=None, dtype=None):
        super().__init__(0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode)
        self._wait(out_channels, bias, {"device": device, "dtype": dtype})


class _LazyConvTranspose(_LazyConvNd):
    """A transposed convolution whose in_channels is that of the first input."""

    def __init__(self, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, bias=True,
                 dilation=1, padding_mode="zeros", device=None, dtype=None):
        super().__init__(0, 0, kernel_size, stride, padding, output_padding, groups, False, dilation, padding_mode)
        self._wait(out_channels, bias, {"device": device, "dtype": dtype})


class _LazyNorm(_LazyLayer):
    """A normalization with running statistics whose num_features is that of the first input."""

    _measured = "num_features"

    def __init__(self, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, device=None, dtype=None):
        super().__init__(0, eps, momentum, False, False)
        self.affine, self.track_running_stats = affine, track_running_stats
        self._later(("weight", "bias") if affine else (),
                    ("running_mean", "running_var") if track_running_stats else (), device=device, dtype=dtype)
        if track_running_stats:
            self.num_batches_tracked = _C.tensor(0, dtype=_C.int64)

    def initialize_parameters(self, input):  # noqa: A002
        """Sets num_features to the number of channels."""
        self._check_input_dim(input)
        if self.num_features == 0:
            alone = isinstance(self, norm._InstanceNorm) and input.dim() == self._ranks[0]
            self.num_features = input.shape[0 if alone else 1]
            self._materialize(**{name: (self.num_features,) for name in
                                 ("weight", "bias", "running_mean", "running_var")})


def _family(base, module, name):
    """Makes the lazy classes of one to three dimensions."""
    for dims in (1, 2, 3):
        made = getattr(module, f"{name}{dims}d")
        fields = {"__doc__": base.__doc__, "__module__": __name__, "cls_to_become": made}
        yield type(f"Lazy{name}{dims}d", (base, made), fields)


LazyConv1d, LazyConv2d, LazyConv3d = _family(_LazyConv, conv, "Conv")
LazyConvTranspose1d, LazyConvTranspose2d, LazyConvTranspose3d = _family(_LazyConvTranspose, conv, "ConvTranspose")
LazyBatchNorm1d, LazyBatchNorm2d, LazyBatchNorm3d = _family(_LazyNorm, norm, "BatchNorm")
LazyInstanceNorm1d, LazyInstanceNorm2d, LazyInstanceNorm3d = _family(_LazyNorm, norm, "InstanceNorm")
