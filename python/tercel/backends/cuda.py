"""NVIDIA's GPUs: not used."""


class matmul:
    """How exact products of matrices are there."""

    allow_tf32 = False
    allow_fp16_reduced_precision_reduction = False
    allow_bf16_reduced_precision_reduction = False


def is_built():
    """Never."""
    return False
