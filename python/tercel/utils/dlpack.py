"""DLPack: exchange of tensors with other libraries in this process, without a copy.

Most programs need only numpy.from_dlpack(tensor) and tercel.from_dlpack(array).
"""

from typing import Any, Optional, Tuple

from tercel import _C
from tercel._C import Tensor

__all__ = ["from_dlpack", "to_dlpack"]

_CPU = 1  # kDLCPU
_PINNED = 3  # kDLCUDAHost, which is also CPU memory
_VERSION = (1, 1)


def to_dlpack(tensor: Tensor) -> Any:
    """A capsule "dltensor" of the tensor, which can be consumed once. BufferError if the tensor cannot be exported."""
    return _C._to_dlpack(tensor, False, False)


def _dlpack(self, *, stream=None, max_version=None, dl_device=None, copy=None):
    """
    A capsule for another library: "dltensor_versioned" if it supports DLPack 1.0 (max_version), else "dltensor".

    copy=True exports a copy. BufferError for a tensor that requires a gradient, is not on the CPU, or has a dtype that
    DLPack lacks, and for another device than the CPU.
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
    """(the producer's capsule, whether the producer supports `copy`)."""
    newest: Any = {"max_version": _VERSION} if copy is None else {"max_version": _VERSION, "copy": copy}
    try:
        return producer.__dlpack__(**newest), True
    except TypeError:
        # A producer from before DLPack 1.0 does not accept these arguments.
        return producer.__dlpack__(), False


def from_dlpack(x: Any, /, *, device: Any = None, copy: Optional[bool] = None) -> Tensor:
    """
    Imports a tensor of another library, over the same memory.

    `x` has __dlpack__, or is a capsule, which is consumed. Read-only memory is copied; copy=True always copies, copy=False
    raises BufferError if a copy is needed. BufferError for memory of other devices, RuntimeError for dtypes that Tercel
    lacks, negative strides, and consumed capsules.
    """
    if device is not None and _C.device(device).type != "cpu":
        raise BufferError(f"tensors can be imported to the CPU only, not to {device}")
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
    # A producer that supports `copy` has made the copy already.
    taken = _C._from_dlpack(capsule, None if asked and copy else copy)
    return taken
