"""NVIDIA's GPUs: not used."""


class matmul:
    """Precision settings of matrix products on a GPU."""

    allow_tf32 = False
    allow_fp16_reduced_precision_reduction = False
    allow_bf16_reduced_precision_reduction = False


def is_built():
    """Never."""
    return False


def preferred_linalg_library(backend=None):
    """The library that PyTorch would prefer for linear algebra on a GPU: always "default"."""
    if backend not in (None, "default", "cusolver", "magma"):
        raise RuntimeError(f"Unknown input value. Choose from: default, cusolver, magma; but got {backend!r}")
    return "default"
