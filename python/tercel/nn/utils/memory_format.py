"""Memory formats of convolution weights."""

from tercel.nn import conv


def _convert(module, memory_format, layers, dims):
    for part in module.modules():
        if isinstance(part, layers) and part.weight.dim() == dims:
            part.weight.data = part.weight.detach().clone().contiguous(memory_format=memory_format)
    return module


def convert_conv2d_weight_memory_format(module, memory_format):
    """Converts the weights of all Conv2d and ConvTranspose2d to a memory format; returns the module."""
    return _convert(module, memory_format, (conv.Conv2d, conv.ConvTranspose2d), 4)


def convert_conv3d_weight_memory_format(module, memory_format):
    """Converts the weights of all Conv3d and ConvTranspose3d to a memory format; returns the module."""
    return _convert(module, memory_format, (conv.Conv3d, conv.ConvTranspose3d), 5)
