"""PyTorch's API for modules on several devices, of which there is one here, and in several processes."""

from collections import abc

from tercel import _C
from tercel.nn._distributed import DistributedDataParallel
from tercel.nn.module import Module

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel", "gather", "parallel_apply", "replicate", "scatter"]


class DataParallel(Module):
    """Calls its child `module`, as PyTorch's class does without a GPU."""

    def __init__(self, module, device_ids=None, output_device=None, dim=0):
        super().__init__()
        self.module, self.dim, self.device_ids = module, dim, []

    def forward(self, *inputs, **kwargs):
        return self.module(*inputs, **kwargs)


def data_parallel(module, inputs, device_ids=None, output_device=None, dim=0, module_kwargs=None):
    """Calls module(*inputs, **module_kwargs), as PyTorch's function does without a GPU."""
    inputs = inputs if isinstance(inputs, tuple) else (inputs,)
    return module(*inputs, **(module_kwargs or {}))


def _refuse(name, devices):
    for device in devices:
        kind = _C.device(device).type if isinstance(device, (str, _C.device)) else "cuda"
        if kind == "cpu":
            raise ValueError(f"{name}: Expected a non cpu device, but got: {kind}")
        raise RuntimeError(f"{name}: there is no {kind} device")


def replicate(network, devices, detach=False):
    """A copy of the module for each device: none for no devices; ValueError for the CPU, RuntimeError for others."""
    _refuse("replicate", devices)
    return []


def scatter(inputs, target_gpus, dim=0):
    """Tuples, lists and dicts with what is no tensor, once for each device; errors as those of replicate() for tensors."""
    if isinstance(inputs, _C.Tensor):
        _refuse("scatter", target_gpus)
        return []
    if isinstance(inputs, (list, tuple)) and len(inputs) > 0:
        rows = zip(*(scatter(value, target_gpus, dim) for value in inputs))
        return [type(inputs)(*row) if hasattr(inputs, "_fields") else type(inputs)(row) for row in rows]
    if isinstance(inputs, abc.Mapping) and len(inputs) > 0:
        return [type(inputs)(row) for row in zip(*(scatter(item, target_gpus, dim) for item in inputs.items()))]
    return [inputs for _ in target_gpus]


def gather(outputs, target_device, dim=0):
    """None of Nones; AssertionError for tensors, as there is one device."""
    if outputs[0] is None:
        return None
    raise AssertionError("Gather function not implemented for CPU tensors")


def parallel_apply(modules, inputs, kwargs_tup=None, devices=None):
    """ValueError for the CPU, RuntimeError for devices that there are none of."""
    if len(modules) != len(inputs):
        raise AssertionError(f"The number of modules {len(modules)} is not equal to the number of inputs {len(inputs)}")
    _refuse("parallel_apply", devices or ["cuda"])
