"""What is not about tensors alone."""

from tercel.utils import dlpack  # noqa: F401
