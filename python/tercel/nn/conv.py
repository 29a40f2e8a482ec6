"""Convolutions and pooling."""

import math

from tercel import _C
from tercel.nn import functional as F
from tercel.nn import init
from tercel.nn.module import Module
from tercel.nn.parameter import Parameter, _bias

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "MaxPool1d",
           "MaxPool2d", "MaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d", "AdaptiveAvgPool1d", "AdaptiveAvgPool2d",
           "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d", "AdaptiveMaxPool3d", "Unfold", "Fold",
           "Upsample", "PixelShuffle", "PixelUnshuffle", "LPPool1d", "LPPool2d", "LPPool3d", "MaxUnpool1d", "MaxUnpool2d",
           "MaxUnpool3d"]


def _tuple(value, count):
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * count


class _ConvNd(Module):
    _dims = 0
    _transposed = False
    _modes = ("zeros", "reflect", "replicate", "circular")

    def _make(self, in_channels, out_channels, kernel_size, stride, padding, dilation, output_padding, groups, bias,
              padding_mode, device, dtype):
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups != 0:
            raise ValueError("out_channels must be divisible by groups")
        if padding_mode not in self._modes:
            if self._transposed:
                raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
            raise ValueError(f"padding_mode must be one of {self._modes}, but got padding_mode='{padding_mode}'")
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ValueError(f"Invalid padding string {padding!r}, should be one of {{'same', 'valid'}}")
            if padding == "same" and any(s != 1 for s in _tuple(stride, self._dims)):
                raise ValueError("padding='same' is not supported for strided convolutions")
        self.in_channels, self.out_channels, self.groups, self.padding_mode = (in_channels, out_channels, groups,
                                                                               padding_mode)
        self.kernel_size, self.stride = _tuple(kernel_size, self._dims), _tuple(stride, self._dims)
        self.padding = padding if isinstance(padding, str) else _tuple(padding, self._dims)
        self.dilation, self.output_padding = _tuple(dilation, self._dims), _tuple(output_padding, self._dims)
        channels = ((in_channels, out_channels // groups) if self._transposed
                    else (out_channels, in_channels // groups))
        self.weight = Parameter(_C.empty((*channels, *self.kernel_size), device=device, dtype=dtype))
        self.register_parameter("bias", _bias(bias, out_channels, device, dtype))
        self.reset_parameters()

    def reset_parameters(self):
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            if fan_in != 0:
                init.uniform_(self.bias, -1 / math.sqrt(fan_in), 1 / math.sqrt(fan_in))

    def extra_repr(self):
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        if self.padding != (0,) * self._dims:
            text += f", padding={self.padding}"
        if self.dilation != (1,) * self._dims:
            text += f", dilation={self.dilation}"
        if self.output_padding != (0,) * self._dims:
            text += f", output_padding={self.output_padding}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        return text + (f", padding_mode={self.padding_mode}" if self.padding_mode != "zeros" else "")


class _Conv(_ConvNd):
    """A convolution: weight [out, in / groups, kernel...], bias [out]. padding may be "same" or "valid"."""

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True,
                 padding_mode="zeros", device=None, dtype=None):
        super().__init__()
        self._make(in_channels, out_channels, kernel_size, stride, padding, dilation, 0, groups, bias, padding_mode,
                   device, dtype)

    def _border(self):
        """The padding in the order of pad(), from the last dimension on."""
        border = []
        for d in reversed(range(self._dims)):
            if self.padding == "same":
                total = self.dilation[d] * (self.kernel_size[d] - 1)
                border += [total // 2, total - total // 2]
            else:
                border += [0 if self.padding == "valid" else self.padding[d]] * 2
        return border

    def _conv_forward(self, input, weight, bias):  # noqa: A002
        """forward() with another weight and bias; layers derived from PyTorch's call it."""
        padding = self.padding
        if self.padding_mode != "zeros":
            input, padding = F.pad(input, self._border(), self.padding_mode), 0  # noqa: A001
        return getattr(F, f"conv{self._dims}d")(input, weight, bias, self.stride, padding, self.dilation, self.groups)

    def forward(self, input):  # noqa: A002
        return self._conv_forward(input, self.weight, self.bias)


class _ConvTranspose(_ConvNd):
    """A transposed convolution: weight [in, out / groups, kernel...], bias [out]."""

    _transposed = True
    _modes = ("zeros",)

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1,
                 bias=True, dilation=1, padding_mode="zeros", device=None, dtype=None):
        super().__init__()
        self._make(in_channels, out_channels, kernel_size, stride, padding, dilation, output_padding, groups, bias,
                   padding_mode, device, dtype)

    def forward(self, input, output_size=None):  # noqa: A002
        extra = self.output_padding if output_size is None else self._extra(input, output_size)
        return getattr(F, f"conv_transpose{self._dims}d")(input, self.weight, self.bias, self.stride, self.padding,
                                                          extra, self.groups, self.dilation)

    def _extra(self, x, output_size):
        """The output padding for a result of the given size."""
        wanted = list(output_size)[-self._dims:]
        extra = []
        for d, size in enumerate(wanted):
            least = ((x.size(d - self._dims) - 1) * self.stride[d] - 2 * self.padding[d]
                     + self.dilation[d] * (self.kernel_size[d] - 1) + 1)
            if not least <= size < least + self.stride[d]:
                raise ValueError(f"requested an output size of {wanted}, but valid sizes of dimension {d} range from "
                                 f"{least} to {least + self.stride[d] - 1}")
            extra.append(size - least)
        return extra


class _MaxPool(Module):
    """The maximum of each window; the stride defaults to the kernel size."""

    def __init__(self, kernel_size, stride=None, padding=0, dilation=1, return_indices=False, ceil_mode=False):
        super().__init__()
        self.kernel_size, self.stride = kernel_size, kernel_size if stride is None else stride
        self.padding, self.dilation, self.return_indices, self.ceil_mode = padding, dilation, return_indices, ceil_mode

    def forward(self, input):  # noqa: A002
        return getattr(F, f"max_pool{self._dims}d")(input, self.kernel_size, self.stride, self.padding, self.dilation,
                                                    self.ceil_mode, self.return_indices)

    def extra_repr(self):
        return (f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
                f"dilation={self.dilation}, ceil_mode={self.ceil_mode}")


class _AvgPool(Module):
    """The mean of each window; the stride defaults to the kernel size."""

    def __init__(self, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True,
                 divisor_override=None):
        super().__init__()
        self.kernel_size, self.stride = kernel_size, kernel_size if stride is None else stride
        self.padding, self.ceil_mode, self.count_include_pad = padding, ceil_mode, count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input):  # noqa: A002
        divisor = {} if self.divisor_override is None else {"divisor_override": self.divisor_override}
        return getattr(F, f"avg_pool{self._dims}d")(input, self.kernel_size, self.stride, self.padding, self.ceil_mode,
                                                    self.count_include_pad, **divisor)

    def extra_repr(self):
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _AdaptivePool(Module):
    """Pooling over output_size windows of nearly equal size."""

    _kind = ""

    def __init__(self, output_size, return_indices=False):
        super().__init__()
        self.output_size, self.return_indices = output_size, return_indices

    def forward(self, input):  # noqa: A002
        return getattr(F, f"adaptive_{self._kind}_pool{self._dims}d")(input, self.output_size, self.return_indices)

    def extra_repr(self):
        return f"output_size={self.output_size}"


class _LPPool(Module):
    """The p-norm of each window; the stride defaults to the kernel size."""

    def __init__(self, norm_type, kernel_size, stride=None, ceil_mode=False):
        super().__init__()
        self.norm_type, self.kernel_size, self.stride, self.ceil_mode = norm_type, kernel_size, stride, ceil_mode

    def forward(self, input):  # noqa: A002
        return getattr(F, f"lp_pool{self._dims}d")(input, float(self.norm_type), self.kernel_size, self.stride,
                                                   self.ceil_mode)

    def extra_repr(self):
        return (f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
                f"ceil_mode={self.ceil_mode}")


class _MaxUnpool(Module):
    """The inverse of MaxPool: puts values back at their indices, with zeros elsewhere."""

    def __init__(self, kernel_size, stride=None, padding=0):
        super().__init__()
        self.kernel_size = _tuple(kernel_size, self._dims)
        self.stride = self.kernel_size if stride is None else _tuple(stride, self._dims)
        self.padding = _tuple(padding, self._dims)

    def forward(self, input, indices, output_size=None):  # noqa: A002
        return getattr(F, f"max_unpool{self._dims}d")(input, indices, self.kernel_size, self.stride, self.padding,
                                                      output_size)

    def extra_repr(self):
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


def _family(base, name, **fields):
    """Makes the classes of one to three dimensions."""
    return [type(f"{name}{dims}d", (base,), {"__doc__": base.__doc__, "__module__": __name__, "_dims": dims, **fields})
            for dims in (1, 2, 3)]


Conv1d, Conv2d, Conv3d = _family(_Conv, "Conv")
ConvTranspose1d, ConvTranspose2d, ConvTranspose3d = _family(_ConvTranspose, "ConvTranspose")
MaxPool1d, MaxPool2d, MaxPool3d = _family(_MaxPool, "MaxPool")
LPPool1d, LPPool2d, LPPool3d = _family(_LPPool, "LPPool")
MaxUnpool1d, MaxUnpool2d, MaxUnpool3d = _family(_MaxUnpool, "MaxUnpool")
AvgPool1d, AvgPool2d, AvgPool3d = _family(_AvgPool, "AvgPool")
AdaptiveAvgPool1d, AdaptiveAvgPool2d, AdaptiveAvgPool3d = _family(_AdaptivePool, "AdaptiveAvgPool", _kind="avg")
AdaptiveMaxPool1d, AdaptiveMaxPool2d, AdaptiveMaxPool3d = _family(_AdaptivePool, "AdaptiveMaxPool", _kind="max")


class Unfold(Module):
    """Every patch of an image as a column."""

    def __init__(self, kernel_size, dilation=1, padding=0, stride=1):
        super().__init__()
        self.kernel_size, self.dilation, self.padding, self.stride = kernel_size, dilation, padding, stride

    def forward(self, input):  # noqa: A002
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self):
        return (f"kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, "
                f"stride={self.stride}")


class Fold(Module):
    """The reverse of Unfold: sums overlapping patches."""

    def __init__(self, output_size, kernel_size, dilation=1, padding=0, stride=1):
        super().__init__()
        self.output_size, self.kernel_size = output_size, kernel_size
        self.dilation, self.padding, self.stride = dilation, padding, stride

    def forward(self, input):  # noqa: A002
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self):
        return (f"output_size={self.output_size}, kernel_size={self.kernel_size}, dilation={self.dilation}, "
                f"padding={self.padding}, stride={self.stride}")


class Upsample(Module):
    """interpolate() to a size or by a scale factor."""

    def __init__(self, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None):
        super().__init__()
        self.size, self.mode = size, mode
        several = isinstance(scale_factor, (tuple, list))
        self.scale_factor = tuple(map(float, scale_factor)) if several else float(scale_factor) if scale_factor else None
        self.align_corners, self.recompute_scale_factor = align_corners, recompute_scale_factor

    def forward(self, input):  # noqa: A002
        return F.interpolate(input, self.size, self.scale_factor, self.mode, self.align_corners,
                             self.recompute_scale_factor)

    def extra_repr(self):
        first = f"scale_factor={self.scale_factor}" if self.scale_factor is not None else f"size={self.size}"
        return f"{first}, mode={self.mode!r}"


class PixelShuffle(Module):
    """Rearranges channels to blocks of pixels."""

    def __init__(self, upscale_factor):
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input):  # noqa: A002
        return F.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self):
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """The reverse of PixelShuffle."""

    def __init__(self, downscale_factor):
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input):  # noqa: A002
        return F.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self):
        return f"downscale_factor={self.downscale_factor}"
