"""Tensors with PyTorch's semantics.

Operations are functions of this module and methods of Tensor; both are defined in tercel._C, which is written in C++.
Python code is used where speed does not matter: printing, typed storages, contexts that enable or disable recording.
"""

from tercel import _C
from tercel._C import *  # noqa: F401,F403
from tercel._layers import *  # noqa: F401,F403
from tercel._C import (Size, Tensor, UntypedStorage, _assert_async, _debug_has_internal_overlap,  # noqa: F401
                       _mkldnn, _sparse_broadcast_to, device, dtype, layout, memory_format)
from tercel import autograd, fft, linalg  # noqa: F401
from tercel._tensor import *  # noqa: F401,F403
from tercel._tensor import _tensor_classes  # noqa: F401
from tercel._tensor_str import set_printoptions  # noqa: F401
from tercel.autograd import enable_grad, inference_mode, no_grad, set_grad_enabled  # noqa: F401
from tercel.functional import *  # noqa: F401,F403
from tercel._linear_algebra import *  # noqa: F401,F403
from tercel._lowrank import *  # noqa: F401,F403
from tercel._nn_functions import *  # noqa: F401,F403
from tercel._sparse import *  # noqa: F401,F403
from tercel._sparse import (_convert_indices_from_coo_to_csr, _convert_indices_from_csr_to_coo,  # noqa: F401
                            _validate_compressed_sparse_indices, _validate_sparse_compressed_tensor_args,
                            _validate_sparse_coo_tensor_args)
from tercel.random import fork_rng, get_rng_state, initial_seed, manual_seed, seed, set_rng_state  # noqa: F401
from tercel.settings import *  # noqa: F401,F403
from tercel.storage import *  # noqa: F401,F403
from tercel.storage import _storage_classes  # noqa: F401
from tercel import arrow, io, safetensors, sparse, special, utils  # noqa: F401
from tercel.arrow import from_arrow as from_arrow
from tercel.serialization import load as load, save as save
from tercel.utils.dlpack import from_dlpack as from_dlpack

from math import e, inf, nan, pi  # noqa: F401,E402
from typing import TYPE_CHECKING  # noqa: E402

if TYPE_CHECKING:
    from tercel import (amp, array_api, backends, compiler, cpu, cuda, data, distributed, jit, masked,  # noqa: F401
                        multiprocessing, nn, optim, overrides, profiler, recsys, return_types, signal, testing,
                        torch_version, types, version)

for _type in (device, dtype, layout, memory_format):
    _type.__module__ = "tercel"
del _type
newaxis = None
__version__ = _C._version()

# Modules that are imported on first use, to keep `import tercel` fast.
_LATER = frozenset((
    "__config__", "_dynamo", "amp", "array_api", "backends", "compiler", "cpu", "cuda", "data", "distributed", "jit",
    "masked", "multiprocessing", "nn", "optim", "overrides", "profiler", "recsys", "return_types",
    "signal", "testing", "torch_version", "types", "version"))


def __getattr__(name):
    if name in _LATER:
        from importlib import import_module
        return import_module(f"tercel.{name}")
    if name == "compile":
        return __getattr__("compiler").compile
    if name in ("autocast", "GradScaler"):
        return getattr(__getattr__("amp"), name)
    if name.startswith("_foreach_"):
        from tercel import _foreach
        return getattr(_foreach, name)
    if name == "Storage":
        return storage.default_class()  # noqa: F405
    raise AttributeError(f"module 'tercel' has no attribute '{name}'")
