"""Tensors of other libraries in this process, and ours for them, without a copy: DLPack.

numpy.from_dlpack(tensor) and tercel.from_dlpack(array) are all that most programs need.
"""

from typing import Any, Optional, Tuple

from tercel import _C
from tercel._C import Tensor

__all__ = ["from_dlpack", "to_dlpack"]

_CPU = 1  # kDLCPU
_PINNED = 3  # kDLCUDAHost, which is memory of the CPU too
_VERSION = (1, 1)


def to_dlpack(tensor: Tensor) -> Any:
    """A capsule "dltensor" of the tensor, which somebody may take once. BufferError for what cannot be exported."""
    return _C._to_dlpack(tensor, False, False)


def _dlpack(self, *, stream=None, max_version=None, dl_device=None, copy=None):
    """
    A capsule for another library: "dltensor_versioned" where it understands DLPack 1.0 (max_version), else "dltensor".

    copy=True gives it elements of its own. BufferError for a tensor that requires a gradient, is not on the CPU, or has
    elements that DLPack has not, and for another device than the CPU.
    """
    if stream is not None and type(stream) is not int:
        raise TypeError("stream must be ``int`` or ``none``")
    if stream not in (None, -1):
        raise BufferError("stream must be None for a tensor on the CPU")
    if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
        raise BufferError(f"cannot export a tensor on {self.device} to the DLPack device {tuple(dl_device)}")
    if copy not in (None, True, False):
        raise TypeError(f"argument 'copy' must be None, True or False, not {type(copy).__name__}")
    if max_version is not None and max_version[0] >= 1:
        return _C._to_dlpack(self, True, bool(copy))
    return _C._to_dlpack(self.clone() if copy and not self.requires_grad else self, False, False)


def _dlpack_device(self):
    """(kDLCPU, 0)."""
    if self.device.type != "cpu":
        raise BufferError(f"DLPack export of a tensor on {self.device} is not supported")
    return _CPU, 0


Tensor.__dlpack__ = _dlpack
Tensor.__dlpack_device__ = _dlpack_device
_dlpack.__name__, _dlpack_device.__name__ = "__dlpack__", "__dlpack_device__"


def _is_capsule(x: Any) -> bool:
    return type(x).__name__ == "PyCapsule"


def _ask(producer: Any, copy: Optional[bool]) -> Tuple[Any, bool]:
    """(the producer's capsule, whether it has heard of `copy`)."""
    newest: Any = {"max_version": _VERSION} if copy is None else {"max_version": _VERSION, "copy": copy}
    try:
        return producer.__dlpack__(**newest), True
    except TypeError:
        # A producer from before DLPack 1.0 knows none of these arguments.
        return producer.__dlpack__(), False


def from_dlpack(x: Any, /, *, device: Any = None, copy: Optional[bool] = None) -> Tensor:
    """
    The tensor of another library, over the same memory.

    `x` has __dlpack__, or is a capsule, which then is used up. What is read-only is copied; copy=True copies always,
    copy=False never: BufferError then where it must be. BufferError for memory of other devices, RuntimeError for
    elements that Tercel has not, negative strides, and capsules that have been used.
    """
    if device is not None and _C.device(device).type != "cpu":
        raise BufferError(f"tensors come to the CPU, not to {device}")
    if _is_capsule(x):
        taken: Tensor = _C._from_dlpack(x, copy)
        return taken
    if not hasattr(x, "__dlpack__"):
        raise TypeError(f"from_dlpack: expected an object with __dlpack__ or a capsule, not {type(x).__name__}")
    if hasattr(x, "__dlpack_device__"):
        kind = int(x.__dlpack_device__()[0])
        if kind not in (_CPU, _PINNED):
            raise BufferError(f"from_dlpack: expected memory of the CPU (device type 1) but got device type {kind}")
    capsule, asked = _ask(x, copy)
    # Whoever has been asked for a copy, and knew what that is, has made one.
    taken = _C._from_dlpack(capsule, None if asked and copy else copy)
    return taken
