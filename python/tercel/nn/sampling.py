"""Layers that resize images or reorder channels."""

from tercel.nn import functional as F
from tercel.nn.conv import Upsample, _tuple
from tercel.nn.module import Module

__all__ = ["ChannelShuffle", "FractionalMaxPool2d", "FractionalMaxPool3d", "UpsamplingBilinear2d",
           "UpsamplingNearest2d"]


class ChannelShuffle(Module):
    """Interleaves groups of channels: the first channel of each group, then the second of each, and so on."""

    def __init__(self, groups):
        super().__init__()
        self.groups = groups

    def forward(self, input):  # noqa: A002
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self):
        return f"groups={self.groups}"


class UpsamplingNearest2d(Upsample):
    """Resizes images with nearest-neighbour sampling."""

    def __init__(self, size=None, scale_factor=None):
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """Resizes images with bilinear interpolation and aligned corners."""

    def __init__(self, size=None, scale_factor=None):
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)


class _FractionalMaxPool(Module):
    _dims = 0

    def __init__(self, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None):
        super().__init__()
        self.kernel_size, self.return_indices = _tuple(kernel_size, self._dims), return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else _tuple(output_size, self._dims)
        self.output_ratio = None if output_ratio is None else _tuple(output_ratio, self._dims)
        if output_size is None and output_ratio is None:
            raise ValueError(f"{type(self).__name__} requires specifying either an output size, or a pooling ratio")
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if self.output_ratio is not None and not all(0 < ratio < 1 for ratio in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def forward(self, input):  # noqa: A002
        return getattr(F, f"fractional_max_pool{self._dims}d")(
            input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices, self._random_samples)


class FractionalMaxPool2d(_FractionalMaxPool):
    """The maximum of each window of an image; a fixed number of windows at random positions."""

    _dims = 2


class FractionalMaxPool3d(_FractionalMaxPool):
    """The maximum of each window of a volume; a fixed number of windows at random positions."""

    _dims = 3
