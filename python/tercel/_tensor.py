"""The methods of Tensor that are written in Python, and functions that combine others."""

from copy import deepcopy

from tercel import _C
from tercel._C import Tensor
from tercel._tensor_str import tensor_str
from tercel.storage import TypedStorage, typed_storage
from tercel.utils.hooks import RemovableHandle

__all__ = ["is_tensor", "is_storage", "typename", "unique", "unique_consecutive", "tensor_types"]


def _method(function):
    setattr(Tensor, function.__name__, function)
    return function


@_method
def __repr__(self, *, tensor_contents=None):
    return tensor_str(self, tensor_contents)


@_method
def __format__(self, spec):
    if self.dim() == 0 and type(self) is Tensor:
        return self.item().__format__(spec)
    return object.__format__(self, spec)


@_method
def __array__(self, dtype=None, copy=None):
    array = self.numpy()
    if dtype is not None and array.dtype != dtype:
        return array.astype(dtype)
    return array.copy() if copy else array


@_method
def __array_wrap__(self, array, context=None, return_scalar=False):
    if array.dtype == bool:
        array = array.astype("uint8")
    return _C.from_numpy(array)


@_method
def __contains__(self, element):
    if isinstance(element, (Tensor, int, float, complex, bool)):
        return (element == self).any().item()
    raise RuntimeError(
        f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}."
    )


@_method
def __complex__(self):
    if self.numel() != 1:
        raise ValueError("only one element tensors can be converted to Python scalars")
    return complex(self.item())


@_method
def __reversed__(self):
    if self.dim() == 0:
        return self
    return _C.index_select(self, 0, _C.arange(self.size(0) - 1, -1, -1))


_COMPRESSED = (_C.sparse_csr, _C.sparse_csc, _C.sparse_bsr, _C.sparse_bsc)


@_method
def __deepcopy__(self, memo):
    if id(self) in memo:
        return memo[id(self)]
    if not self.is_leaf:
        raise RuntimeError("Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol "
                           "at the moment.")
    if self.is_sparse or self.layout in _COMPRESSED:
        result = self.detach().clone().requires_grad_(self.requires_grad)
        return _finish_copy(self, result if type(self) is Tensor
                            else _C._make_subclass(type(self), result, self.requires_grad), memo)
    # Tensors that share a storage still share one afterwards: the memo finds the storage's copy.
    result = _rebuild(type(self), deepcopy(self.untyped_storage(), memo), self.dtype, self.storage_offset(),
                      tuple(self.size()), self.stride(), self.requires_grad, {})
    return _finish_copy(self, result, memo)


def _finish_copy(self, result, memo):
    memo[id(self)] = result
    if self.grad is not None:
        result.grad = deepcopy(self.grad, memo)
    for name, value in self.__dict__.items():
        setattr(result, name, deepcopy(value, memo))
    return result


def _rebuild(cls, storage, dtype, offset, size, stride, requires_grad, attributes):
    """A tensor of a class over a storage; called by pickles."""
    result = _C.empty(0, dtype=dtype)
    result.set_(storage, offset, size, stride)
    if cls is not Tensor:
        result = _C._make_subclass(cls, result)
    result.requires_grad_(requires_grad)
    result.__dict__.update(attributes)
    return result


def _rebuild_sparse(cls, indices, values, size, coalesced, requires_grad, attributes):
    """A COO tensor of a class; called by pickles."""
    result = _C._sparse_coo_tensor(indices, values, size, is_coalesced=coalesced)
    if cls is not Tensor:
        result = _C._make_subclass(cls, result)
    result.requires_grad_(requires_grad)
    result.__dict__.update(attributes)
    return result


def _rebuild_compressed(cls, layout, compressed, plain, values, size, requires_grad, attributes):
    """A tensor of a compressed layout and a class; called by pickles."""
    result = _C._sparse_compressed_tensor(compressed, plain, values, size, layout)
    if cls is not Tensor:
        result = _C._make_subclass(cls, result)
    result.requires_grad_(requires_grad)
    result.__dict__.update(attributes)
    return result


@_method
def __reduce_ex__(self, protocol):
    if self.is_sparse:
        return _rebuild_sparse, (type(self), self._indices(), self._values(), tuple(self.size()), self.is_coalesced(),
                                 self.requires_grad, dict(self.__dict__))
    if self.layout in _COMPRESSED:
        by_rows = self.layout in (_C.sparse_csr, _C.sparse_bsr)
        compressed, plain = ((self.crow_indices(), self.col_indices()) if by_rows else
                             (self.ccol_indices(), self.row_indices()))
        return _rebuild_compressed, (type(self), self.layout, compressed, plain, self.detach().values(),
                                     tuple(self.size()), self.requires_grad, dict(self.__dict__))
    # The storage is a separate object: a pickle contains it once for all its tensors, and copy.copy() shares it.
    return _rebuild, (type(self), self.untyped_storage(), self.dtype, self.storage_offset(), tuple(self.size()),
                      self.stride(), self.requires_grad, dict(self.__dict__))


@_method
def backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None):
    """Adds the gradients of this scalar to the .grad of every leaf that it depends on."""
    from tercel import autograd
    autograd.backward(self, gradient, retain_graph, create_graph, inputs=inputs)


@_method
def register_hook(self, hook):
    """Calls hook(gradient) whenever backward has computed this tensor's gradient; its result, if any, replaces it."""
    return RemovableHandle(_C._add_hook(self, hook))


@_method
def register_post_accumulate_grad_hook(self, hook):
    """Calls hook(self) whenever backward has accumulated into this leaf's .grad."""
    return RemovableHandle(_C._add_leaf_hook(self, hook))


@_method
def as_subclass(self, cls):
    """The tensor as an object of a subclass, over the same memory."""
    return _C._as_subclass(cls, self)


_API_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")


@_method
def __array_namespace__(self, *, api_version=None):
    """The functions of the Python array API standard."""
    if api_version is not None and api_version not in _API_VERSIONS:
        raise ValueError(f"expected a version of the array API of {', '.join(_API_VERSIONS)}, but got {api_version!r}")
    from tercel import array_api
    return array_api


@_method
def to_device(self, device, /, *, stream=None):
    """The tensor on a device; the array API's name of to()."""
    if stream is not None:
        raise ValueError(f"to_device: expected no stream, but got {stream!r}")
    return self.to(device)


@_method
def storage(self):
    """The storage with the dtype of the tensor."""
    return typed_storage(self.untyped_storage(), self.dtype)


def _type_method(self, dtype=None, non_blocking=False):
    """Without an argument, the name of the legacy tensor type; else the tensor converted to a dtype."""
    if dtype is None:
        return f"{_C._package_name()}.{'sparse.' if self.is_sparse else ''}{self.dtype._legacy_name}Tensor"
    if isinstance(dtype, str):
        dtype = dtype.rsplit(".", 1)[-1]
        matches = [d for d in _C._dtypes() if d._legacy_name + "Tensor" == dtype]
        if not matches:
            raise ValueError(f"invalid type: '{dtype}'")
        dtype = matches[0]
    elif isinstance(dtype, _LegacyType):
        dtype = dtype.dtype
    elif dtype is Tensor:
        dtype = _C.get_default_dtype()
    return self.to(dtype)


Tensor.type = _type_method


@_method
def new_tensor(self, data, *, dtype=None, device=None, requires_grad=False):
    """A tensor of data, by default of this dtype."""
    return _C.tensor(data, dtype=dtype or self.dtype, device=device, requires_grad=requires_grad)


@_method
def new(self, *args, **kwargs):
    """A tensor made by the constructor of this dtype's legacy tensor type."""
    if self.is_sparse:
        from tercel._sparse import _legacy_coo_tensor
        return _legacy_coo_tensor("SparseTensor.new", self.dtype, *args, **kwargs)
    if self.layout is not _C.strided:
        raise RuntimeError(f"new: not implemented for layout {self.layout}")
    return _C._legacy_tensor(self.dtype, *args, **kwargs)


@_method
def smm(self, mat):
    """tercel.smm()."""
    from tercel._sparse import smm as product
    return product(self, mat)


@_method
def sspaddmm(self, mat1, mat2, *, beta=1, alpha=1):
    """tercel.sspaddmm()."""
    from tercel._sparse import sspaddmm as product
    return product(self, mat1, mat2, beta=beta, alpha=alpha)


@_method
def storage_type(self):
    """The class of the typed storage."""
    return type(self.storage())


def _check_has_storage(x):
    if x.layout is not _C.strided:
        raise NotImplementedError(f"Cannot access storage of Sparse{'' if x.is_sparse else 'Csr'}TensorImpl")


@_method
def is_shared(self):
    """Whether the memory is shared between processes: always False. NotImplementedError unless strided."""
    _check_has_storage(self)
    return False


@_method
def share_memory_(self):
    """NotImplementedError: memory cannot be shared; tensors are copied when they are sent to other processes."""
    _check_has_storage(self)
    raise NotImplementedError("share_memory_: memory is not shared between processes; send tensors through a Queue or Pipe")


@_method
def cuda(self, device=None, non_blocking=False, memory_format=None):
    """Raises AssertionError: there is no GPU."""
    raise AssertionError("cuda(): Tercel not compiled with CUDA enabled")


@_method
def pin_memory(self, device=None):
    """Raises RuntimeError: page-locked memory needs a GPU."""
    raise RuntimeError("pin_memory(): expected a GPU that can access the memory, but found none")


def _unique(x, inverse, counts, dim, consecutive):
    parts = _C._unique(x, inverse, counts, dim, consecutive)
    result = tuple(part for part, wanted in zip(parts, (True, inverse, counts)) if wanted)
    return result if len(result) > 1 else result[0]


@_method
def unique(self, sorted=True, return_inverse=False, return_counts=False, dim=None):  # noqa: A002
    """The unique values, or slices, in ascending order; optionally with inverse indices and counts."""
    return _unique(self, return_inverse, return_counts, dim, False)


@_method
def unique_consecutive(self, return_inverse=False, return_counts=False, dim=None):
    """The first of each run of equal values, or slices; optionally with inverse indices and the lengths of runs."""
    return _unique(self, return_inverse, return_counts, dim, True)


def _map_in_place(name, self, others, function):
    """self = function(each of self, of the others)"""
    for i, other in enumerate((self, *others)):
        if isinstance(other, Tensor) and other.requires_grad:
            raise RuntimeError(f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() "
                               "instead.")
    for i, other in enumerate(others):
        if not isinstance(other, Tensor):
            raise TypeError(f"{name}(): argument 'other' (position {i + 1}) must be Tensor, not {type(other).__name__}")
        if other.dtype is not self.dtype:
            raise TypeError(f"{name}: expected tercel.{self.dtype._legacy_name}Tensor for 'other' "
                            f"(got tercel.{other.dtype._legacy_name}Tensor)")
    if not callable(function):
        raise TypeError(f"{type(function).__name__!r} object is not callable")
    rows = [t.expand(self.shape).reshape(-1).tolist() for t in (self, *others)]
    values = [function(*row) for row in zip(*rows)]
    for value in values:
        if isinstance(value, (str, bytes)):
            raise TypeError(f"{name}: the function must return numbers, not {type(value).__name__}")
    kind = bool if self.dtype is _C.bool else complex if self.is_complex() else float if self.is_floating_point() else int
    return self.copy_(_C.tensor([kind(value) for value in values], dtype=self.dtype).view(self.shape))


@_method
def apply_(self, callable):  # noqa: A002
    """Replaces each element x by function(x), in place. Slow, as are map_() and map2_()."""
    return _map_in_place("apply_", self, (), callable)


@_method
def map_(self, tensor, callable):  # noqa: A002
    """Replaces each element by function(element, other's element), in place."""
    return _map_in_place("map_", self, (tensor,), callable)


@_method
def map2_(self, x, y, callable):  # noqa: A002
    """Replaces each element by function(element, elements of two other tensors), in place."""
    return _map_in_place("map2_", self, (x, y), callable)


for _one in ("ipu", "maia", "mps", "mtia", "nested", "vulkan", "xla", "xpu"):
    setattr(Tensor, f"is_{_one}", False)  # kinds of tensors that are not supported
Tensor.__div__, Tensor.__rdiv__, Tensor.__idiv__ = Tensor.__truediv__, Tensor.__rtruediv__, Tensor.__itruediv__
_C._TensorBase = _C.TensorBase = Tensor  # one class serves as both
Tensor._make_subclass = staticmethod(_C._make_subclass)
Tensor.__array_priority__ = 1000
Tensor.__module__ = "tercel"
_C.Node.__doc__ = "A recorded operation: the type of a tensor's grad_fn."


class _LegacyType:
    """FloatTensor and similar types: constructors of one dtype, and types for isinstance()."""

    is_cuda = is_sparse = False
    layout = _C.strided

    def __init__(self, dtype):
        self.dtype = dtype
        self.__name__ = f"{dtype._legacy_name}Tensor"

    def __call__(self, *args, **kwargs):
        return _C._legacy_tensor(self.dtype, *args, **kwargs)

    def __instancecheck__(self, other):
        return isinstance(other, Tensor) and other.dtype is self.dtype and other.layout is self.layout

    def __mro_entries__(self, bases):
        raise TypeError(f"type 'tercel.{self.__name__}' is not an acceptable base type")

    def __repr__(self):
        return f"<class '{_C._package_name()}.{self.__name__}'>"


tensor_types = {}
for _one in _C._dtypes():
    _type = _LegacyType(_one)
    globals()[_type.__name__] = tensor_types[_type.__name__] = _type
    __all__.append(_type.__name__)
_tensor_classes = set(tensor_types.values())
del _one, _type


def is_tensor(obj):
    """Whether the object is a Tensor."""
    return isinstance(obj, Tensor)


def is_storage(obj):
    """Whether the object is a storage."""
    return isinstance(obj, (TypedStorage, _C.UntypedStorage))


def typename(obj):
    """The name of a class or function, or of an object's class; for a tensor, its legacy tensor type."""
    if isinstance(obj, Tensor):
        return obj.type()
    named = obj if hasattr(obj, "__qualname__") else type(obj)
    module = named.__module__
    return named.__qualname__ if module in (None, "builtins") else f"{module}.{named.__qualname__}"

