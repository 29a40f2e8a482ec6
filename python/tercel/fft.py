"""Discrete Fourier transforms: PyTorch's torch.fft."""

from tercel._C._fft import *  # noqa: F401,F403
