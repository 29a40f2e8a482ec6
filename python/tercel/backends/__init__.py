"""PyTorch's backends: Tercel uses none of them, so all report that they are not available."""

__all__ = ["cpu", "cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp"]


def __getattr__(name):
    if name not in __all__:
        raise AttributeError(f"module 'tercel.backends' has no attribute '{name}'")
    from importlib import import_module
    return import_module(f"tercel.backends.{name}")
