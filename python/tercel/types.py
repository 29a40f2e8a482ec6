"""Types for annotations, under PyTorch's names."""

import builtins
from typing import List, Sequence, Tuple, Union

from tercel import _C
from tercel._C import Size, Tensor

_TensorOrTensors = Union[Tensor, Sequence[Tensor]]
_int = builtins.int
_float = builtins.float
_bool = builtins.bool
_complex = builtins.complex
_dtype = _C.dtype
_device = _C.device
_layout = _C.layout
_size = Union[Size, List[int], Tuple[int, ...]]

Number = Union[builtins.int, builtins.float, builtins.bool]
Device = Union[_C.device, str, builtins.int, None]
Storage = _C.UntypedStorage

__all__ = ["Device", "Number", "Size", "Storage"]
