"""Pooling by windows of random places (Graham, Fractional Max-Pooling)."""

import math

from tercel import _C

_SIDES = ("time", "height", "width")


def _starts(samples, size, out, window):
    """Where the windows of a dimension begin [n, channels, out], by one number in [0, 1) for each channel."""
    last = _C.full((*samples.shape, 1), size - window, dtype=_C.int64)
    if out == 1:
        return last
    step = (size - window) / (out - 1)
    at = _C.arange(out - 1, dtype=samples.dtype) + samples.unsqueeze(-1)
    return _C.cat([(at * step).long() - (samples.unsqueeze(-1) * step).long(), last], -1)


def _check(name, x, window, out, samples):
    dims = len(window)
    if x.dim() not in (dims + 1, dims + 2):
        raise RuntimeError(f"{name}(): Expected {dims + 1}D or {dims + 2}D tensor, but got: {list(x.shape)}")
    for d in range(x.dim() - dims - 1, x.dim()):
        if x.size(d) == 0:
            raise RuntimeError(f"{name}(): Expected input to have non-zero size for non-batch dimensions, but got"
                               f"{list(x.shape)} with dimension {d} being empty.")
    if min(window) <= 0:
        raise RuntimeError(f"{name}(): kernel size should be greater than zero, but got {'x'.join(map(str, window))}")
    if min(out) <= 0:
        raise RuntimeError(f"{name}(): output size should be greater than zero, but got {'x'.join(map(str, out))}")
    for side, size, width, count in zip(_SIDES[-dims:], x.shape[-dims:], window, out):
        if count + width - 1 > size:
            raise RuntimeError(f"{name}(): pool {side} {width} too large relative to input {side} {size}")
    n = x.size(0) if x.dim() == dims + 2 else 1
    if samples.dtype is not x.dtype:
        raise RuntimeError("Expect _random_samples to have the same dtype as input")
    if samples.dim() != 3:
        raise RuntimeError(f"Expect _random_samples to have 3 dimensions, got {samples.dim()}")
    if samples.size(0) < n:
        raise RuntimeError("Expect _random_samples.size(0) no less than input batch size.")
    if samples.size(1) != x.size(-dims - 1):
        raise RuntimeError("Expect _random_samples.size(1) equals to input channel size.")
    if samples.size(2) != dims:
        raise RuntimeError(f"Expect _random_samples.size(2) equals to {dims}; got {samples.size(2)}.")


def _with_indices(dims):
    name = f"fractional_max_pool{dims}d"

    def pool(input, kernel_size, output_size=None, output_ratio=None, return_indices=False,  # noqa: A002
             _random_samples=None):
        """The largest of each window of random place, and where it stood among the channel's pixels."""
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
        window = list(kernel_size) if isinstance(kernel_size, (tuple, list)) else [kernel_size] * dims
        if output_size is None:
            ratios = output_ratio if isinstance(output_ratio, (tuple, list)) else [output_ratio] * dims
            output_size = [int(input.size(d - dims) * ratio) for d, ratio in enumerate(ratios)]
        out = list(output_size) if isinstance(output_size, (tuple, list)) else [output_size] * dims
        lead = (1, *input.shape[:1]) if input.dim() == dims + 1 else tuple(input.shape[:2])
        samples = _random_samples
        if samples is None:
            samples = _C.rand(lead[0], input.size(-dims - 1), dims, dtype=input.dtype, device=input.device)
        _check(name, input, window, out, samples)
        sizes = list(input.shape[-dims:])
        at = _C.zeros((*lead, 1, 1), dtype=_C.int64)  # [n, channels, windows, pixels of each]
        for d in range(dims):
            # PyTorch's order of the numbers: in two dimensions the width's comes first.
            number = samples[:lead[0], :, dims - 1 - d if dims == 2 else d]
            places = _starts(number, sizes[d], out[d], window[d]).unsqueeze(-1) + _C.arange(window[d])
            windows, pixels = at.size(2) * out[d], at.size(3) * window[d]
            at = (at[:, :, :, None, :, None] * sizes[d] + places[:, :, None, :, None, :]).reshape(*lead, windows, pixels)
        flat = input.reshape(*lead, math.prod(sizes))
        values = flat.detach().gather(-1, at.flatten(-2)).view(at.shape)
        indices = at.gather(-1, values.argmax(-1, keepdim=True)).squeeze(-1)
        shape = (*input.shape[:-dims], *out)
        return flat.gather(-1, indices).view(shape), indices.view(shape)

    pool.__name__ = pool.__qualname__ = f"{name}_with_indices"
    return pool


def _plain(dims, with_indices):
    def pool(input, kernel_size, output_size=None, output_ratio=None, return_indices=False,  # noqa: A002
             _random_samples=None):
        """The largest of each window of random place; with return_indices also where it stood.

        The result has output_size pixels, or output_ratio of the input's; _random_samples [n, channels, dimensions]
        in [0, 1) places the windows.
        """
        result = with_indices(input, kernel_size, output_size, output_ratio, True, _random_samples)
        return result if return_indices else result[0]

    pool.__name__ = pool.__qualname__ = f"fractional_max_pool{dims}d"
    return pool


fractional_max_pool2d_with_indices, fractional_max_pool3d_with_indices = map(_with_indices, (2, 3))
fractional_max_pool2d = _plain(2, fractional_max_pool2d_with_indices)
fractional_max_pool3d = _plain(3, fractional_max_pool3d_with_indices)
