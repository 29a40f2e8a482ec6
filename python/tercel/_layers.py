"""Layers without state that are also functions of tercel itself."""

from tercel._C import _nn

__all__ = ["conv_tbc", "grid_sampler", "grid_sampler_2d", "grid_sampler_3d"]

_GRID_MODES = ("bilinear", "nearest", "bicubic")
_GRID_PADDING = ("zeros", "border", "reflection")


def conv_tbc(input, weight, bias, pad=0):  # noqa: A002
    """A convolution over time: input [time, batch, in], weight [kernel, in, out], bias [out]; zero padding at both ends."""
    if input.dim() != 3:
        raise RuntimeError("Input must have 3 dims: time, batch, in_channel")
    if weight.dim() != 3:
        raise RuntimeError("Weight tensor must have 3 dims: kernel_width, in_channels, out_channels.")
    if bias.dim() != 1:
        raise RuntimeError("Bias must be 1-D")
    if input.size(2) != weight.size(1):
        raise RuntimeError("Input dim 2 (input channels) is not == dim 1 in the weight tensor")
    if weight.size(2) != bias.size(0):
        raise RuntimeError("Bias size must equal dim 2 in the weight tensor (output channels).")
    return _nn.conv1d(input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad).permute(2, 0, 1)


def grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners):  # noqa: A002
    """nn.functional.grid_sample() with numeric modes: bilinear, nearest, bicubic; zeros, border, reflection."""
    return _nn.grid_sample(input, grid, _GRID_MODES[interpolation_mode], _GRID_PADDING[padding_mode], align_corners)


def _grid_sampler(dims):
    def sampler(input, grid, interpolation_mode, padding_mode, align_corners):  # noqa: A002
        if input.dim() != dims + 2:
            raise RuntimeError(f"grid_sampler_{dims}d(): expected {dims + 2}D input, but got sizes {list(input.shape)}")
        return grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners)

    sampler.__name__ = sampler.__qualname__ = f"grid_sampler_{dims}d"
    sampler.__doc__ = f"grid_sampler() of input [n, channels, {'depth, ' if dims == 3 else ''}height, width]."
    return sampler


grid_sampler_2d, grid_sampler_3d = map(_grid_sampler, (2, 3))
