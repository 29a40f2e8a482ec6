"""Typed storages: the bytes of an UntypedStorage as numbers of a dtype.

Each untyped storage has one typed storage per dtype, for its whole life.
"""

import mmap
import operator
import os
import pickle
import sys
from collections.abc import Sequence

from tercel import _C
from tercel._C import UntypedStorage

__all__ = ["UntypedStorage", "TypedStorage", "from_file"]


def _bytes_of(storage):
    """The storage as a tensor of bytes, which supports the buffer protocol."""
    return _C.empty(0, dtype=_C.uint8).set_(storage, 0, (storage.nbytes(),), (1,))


def _rebuild_storage(data):
    """Restores a pickled storage: over the memory of a writable buffer, or a copy of a read-only one."""
    view = memoryview(data)
    if view.nbytes == 0:
        return UntypedStorage()
    if view.readonly:
        data = bytearray(data)
    return _C.frombuffer(data, dtype=_C.uint8).untyped_storage()


def _rebuild_typed_storage(untyped, dtype):
    return typed_storage(untyped, dtype)


def _reduce_storage(self, protocol):
    # From protocol 5 on the bytes can be out-of-band buffers: then they are not copied, and can no longer be resized.
    if protocol >= 5:
        return _rebuild_storage, (pickle.PickleBuffer(_bytes_of(self)),)
    return _rebuild_storage, (self._to_bytes(),)


def _deepcopy_storage(self, memo):
    copied = memo[id(self)] = self.clone()
    return copied


def _storage_str(self):
    """One byte per line, then a description."""
    lines = "\n ".join(str(byte) for byte in _bytes_of(self).tolist())
    return f" {lines}\n[{_C._package_name()}.storage.UntypedStorage(device={self.device}) of size {self.nbytes()}]"


def _untyped_method(function):
    setattr(UntypedStorage, function.__name__, function)
    return function


@_untyped_method
def tolist(self):
    """The bytes as a list of numbers."""
    return _bytes_of(self).tolist()


@_untyped_method
def __iter__(self):
    return iter(self.tolist())


@_untyped_method
def __copy__(self):
    return self.clone()


@_untyped_method
def __sizeof__(self):
    return object.__sizeof__(self) + self.nbytes()


@_untyped_method
def untyped(self):
    """The storage itself."""
    return self


@_untyped_method
def cpu(self):
    """The storage itself, since it is on the CPU."""
    return self


@_untyped_method
def element_size(self):
    """1: its elements are bytes."""
    return 1


@_untyped_method
def is_shared(self):
    """Whether the memory is shared between processes: always False."""
    return False


@_untyped_method
def is_pinned(self, device="cuda"):
    """Whether the memory is page-locked: always False."""
    return False


def _type_of_untyped(self, dtype=None, non_blocking=False):
    """Without an argument, the name of the class; with this class or its name, the storage itself."""
    return _to_class(self, dtype, UntypedStorage)


def _to_class(storage, wanted, own):
    if wanted is None:
        return f"{_C._package_name()}.{own.__name__}"
    name = wanted if isinstance(wanted, str) else wanted.__name__
    if name.rsplit(".", 1)[-1] == own.__name__:
        return storage
    matches = [dtype for dtype, cls in _classes.items() if cls.__name__ == name.rsplit(".", 1)[-1]]
    if not matches or own is UntypedStorage:
        raise RuntimeError(f"Expected a storage class for {own.__name__}, but got {wanted!r}")
    return storage._to(matches[0])


UntypedStorage.type = _type_of_untyped
UntypedStorage.__repr__ = UntypedStorage.__str__ = _storage_str
UntypedStorage.__reduce_ex__ = _reduce_storage
UntypedStorage.__deepcopy__ = _deepcopy_storage
UntypedStorage.__module__ = "tercel"
UntypedStorage.is_cuda = UntypedStorage.is_sparse = False


def from_file(filename, shared=None, size=0, *, dtype=None, layout=None, device=None, pin_memory=False,
              requires_grad=False):
    """
    A vector over the beginning of a file. Shared: writes go to the file, which is created or extended if needed;
    otherwise the file does not change.
    """
    dtype = dtype or _C.get_default_dtype()
    if not size:
        return _C.empty(0, dtype=dtype, device=device, requires_grad=requires_grad)
    length = size * dtype.itemsize
    with open(filename, "a+b" if shared else "rb") as file:
        there = os.fstat(file.fileno()).st_size
        if there < length:
            if not shared:
                raise RuntimeError(f"file <{filename}> size {there} is smaller than the required mapping size "
                                   f"{length}")
            file.truncate(length)
        with open(filename, "r+b" if shared else "rb") as mapped:
            memory = mmap.mmap(mapped.fileno(), length, access=mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY)
    return _C.frombuffer(memory, dtype=dtype, requires_grad=requires_grad)


def _from_file(cls, filename, shared=False, size=0):
    """A storage over the beginning of a file; shared: writes go to the file."""
    dtype = _C.uint8 if cls is UntypedStorage else cls.dtype
    memory = from_file(filename, shared, size, dtype=dtype).untyped_storage()
    return memory if cls is UntypedStorage else typed_storage(memory, dtype)


def _from_buffer(cls, buffer, byte_order="native", count=-1, offset=0, *, dtype=None):
    """A storage with a copy of a buffer's elements, in "big", "little" or "native" byte order."""
    dtype = (dtype or _C.uint8) if cls is UntypedStorage else cls.dtype
    if byte_order not in ("native", "little", "big"):
        raise ValueError(f"invalid byte_order '{byte_order}' (expected 'big', 'little', or 'native')")
    raw = memoryview(buffer).cast("B")
    if offset < 0 or (raw.nbytes and offset >= raw.nbytes):
        raise ValueError(f"offset must be non-negative and no greater than buffer length ({raw.nbytes}) , but got "
                         f"{offset}")
    if count < 0 and (raw.nbytes - offset) % dtype.itemsize:
        raise ValueError(f"buffer size ({raw.nbytes - offset}) must be a multiple of element size ({dtype.itemsize})")
    count = (raw.nbytes - offset) // dtype.itemsize if count < 0 else count
    if offset + count * dtype.itemsize > raw.nbytes:
        raise ValueError(f"buffer has only {raw.nbytes - offset} elements after offset {offset}, but specified a size "
                         f"of {count}")
    data = _C.tensor(raw[offset:offset + count * dtype.itemsize], dtype=_C.uint8)
    if byte_order not in ("native", sys.byteorder):
        part = dtype.itemsize // (2 if dtype.is_complex else 1)
        data = data.view(-1, part).flip(1).reshape(-1)
    if dtype is _C.bool:
        data = data != 0
    storage = data.untyped_storage()
    return storage if cls is UntypedStorage else typed_storage(storage, dtype)


UntypedStorage.from_file, UntypedStorage.from_buffer = classmethod(_from_file), classmethod(_from_buffer)


def typed_storage(untyped, dtype):
    """The typed storage over these bytes."""
    return _C._typed_twin(untyped, _classes[dtype])


class TypedStorage(_C._TypedStorage):
    """An array of numbers of one dtype, shared by all views of a tensor."""

    is_cuda = is_sparse = False
    dtype = None  # fixed for FloatStorage and similar classes

    def __new__(cls, *args, wrap_storage=None, dtype=None, device=None):
        wrong = f"{cls.__name__}.__new__ received an invalid combination of arguments. "
        fixed = cls.dtype
        if cls is _LegacyStorage:
            raise RuntimeError("Only child classes of _LegacyStorage can be instantiated")
        if fixed is not None and device is not None:
            raise RuntimeError(f"{wrong}Keyword argument 'device' cannot be specified")
        if fixed is not None and dtype is not None:
            raise RuntimeError(f"{wrong}Keyword argument 'dtype' cannot be specified")
        if dtype is not None and not isinstance(dtype, _C.dtype):
            raise TypeError(f"{wrong}Argument 'dtype' must be tercel.dtype, not {dtype.__class__.__name__}")
        dtype = fixed or dtype
        if wrap_storage is not None:
            if args:
                raise RuntimeError(f"{wrong}No positional arguments should be given when using 'wrap_storage'")
            if dtype is None:
                raise RuntimeError(f"{wrong}Argument 'dtype' must be specified")
            if not isinstance(wrap_storage, UntypedStorage):
                raise TypeError(f"{wrong}Argument 'wrap_storage' must be UntypedStorage, but got "
                                f"{wrap_storage.__class__.__name__}")
            if device is not None:
                raise RuntimeError(f"{wrong}Argument 'device' should not be specified when 'wrap_storage' is given")
            _C.empty(0, dtype=dtype).set_(wrap_storage)  # raises where elements of the dtype cannot lie
            return typed_storage(wrap_storage, dtype)
        if device is not None and _C.device(device).type != "cpu":
            raise RuntimeError(f"Storage device not recognized: expected cpu, but got {device}")
        if len(args) > 1:
            raise RuntimeError(f"{wrong}Too many positional arguments")
        dtype = dtype or _C.get_default_dtype()
        if not args:
            return typed_storage(UntypedStorage(), dtype)
        if hasattr(args[0], "__index__") and not isinstance(args[0], _C.Tensor):
            return typed_storage(UntypedStorage(operator.index(args[0]) * dtype.itemsize), dtype)
        if not isinstance(args[0], Sequence):
            raise TypeError(f"{wrong}Argument type not recognized: {args[0].__class__.__name__}")
        return typed_storage(_C.tensor(args[0], dtype=dtype).untyped_storage(), dtype)

    from_file, from_buffer = classmethod(_from_file), classmethod(_from_buffer)

    @property
    def device(self):
        """The device of the bytes."""
        return self._untyped_storage.device

    @property
    def _cdata(self):
        return self._untyped_storage._cdata

    def __reduce_ex__(self, protocol):
        return _rebuild_typed_storage, (self._untyped_storage, self.dtype)

    def untyped(self):
        """The bytes."""
        return self._untyped_storage

    def _tensor(self):
        return _C._legacy_tensor(self.dtype, self._untyped_storage)

    def __len__(self):
        return self._untyped_storage.nbytes() // self.dtype.itemsize

    def size(self):
        """The number of elements."""
        return len(self)

    def nbytes(self):
        """The number of bytes."""
        return self._untyped_storage.nbytes()

    def element_size(self):
        """The size of an element in bytes."""
        return self.dtype.itemsize

    def data_ptr(self):
        """The address of the first element."""
        return self._untyped_storage.data_ptr()

    def is_shared(self):
        """Whether the memory is shared between processes: always False."""
        return False

    def is_pinned(self, device="cuda"):
        """Whether the memory is page-locked: always False."""
        return False

    def cpu(self):
        """The storage itself, since it is on the CPU."""
        return self

    def pickle_storage_type(self):
        """The name of the class in a pickle."""
        return self.__class__.__name__

    def _get_legacy_storage_class(self):
        return self.__class__

    def __copy__(self):
        return self.clone()

    def __sizeof__(self):
        return object.__sizeof__(self) + self.nbytes()

    def _to(self, dtype):
        return typed_storage(self._tensor().to(dtype, copy=True).untyped_storage(), dtype)

    def resizable(self):
        """Whether resize_() is allowed."""
        return self._untyped_storage.resizable()

    def tolist(self):
        """The elements as a list of numbers."""
        return self._tensor().tolist()

    def __iter__(self):
        return iter(self.tolist())

    def _index(self, i):
        n = len(self)
        if not -n <= i < n:
            raise IndexError(f"index {i} out of range for storage of size {n}")
        return i + n if i < 0 else i

    def __getitem__(self, i):
        if isinstance(i, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        if not isinstance(i, int):
            raise RuntimeError(f"can't index a {self.__class__} with {i.__class__}")
        return self._tensor()[self._index(i)].item()

    def __setitem__(self, i, value):
        if not isinstance(i, (int, slice)):
            raise RuntimeError(f"can't index a {self.__class__} with {i.__class__}")
        if isinstance(value, (TypedStorage, UntypedStorage)):
            raise RuntimeError(f"cannot set item with value type {value.__class__}")
        self._tensor()[i if isinstance(i, slice) else self._index(i)] = value

    def fill_(self, value):
        """Sets every element."""
        self[:] = value
        return self

    def copy_(self, source, non_blocking=None):
        """Copies the elements of another storage, converted to this dtype."""
        self._tensor().copy_(source._tensor() if isinstance(source, TypedStorage) else _C.tensor(source))
        return self

    def resize_(self, size):
        """Changes the number of elements; new ones are uninitialised."""
        self._untyped_storage.resize_(size * self.dtype.itemsize)
        return self

    def clone(self):
        """A copy."""
        return typed_storage(self._untyped_storage.clone(), self.dtype)

    def __eq__(self, other):
        return self is other or (isinstance(other, TypedStorage) and self._cdata == other._cdata
                                 and self.dtype is other.dtype)

    def __hash__(self):
        return hash(self._cdata)

    def __str__(self):
        lines = "\n ".join(str(x) for x in self.tolist())
        name = f"{self.dtype._legacy_name}Storage"
        return f" {lines}\n[{_C._package_name()}.{name} of size {len(self)}]"

    __repr__ = __str__

    def type(self, dtype=None, non_blocking=False):
        """Without an argument, the name of the class; else the elements converted to the given class."""
        return _to_class(self, dtype, self.__class__)


class _LegacyStorage(TypedStorage):
    """FloatStorage and similar classes: storages of one dtype."""


def _conversion(name, dtype):
    def convert(self):
        return self._to(dtype)
    convert.__name__ = name
    convert.__doc__ = f"The elements as {dtype._name}, a copy."
    return convert


for _name, _dtype in {"double": _C.float64, "float": _C.float32, "half": _C.float16, "bfloat16": _C.bfloat16,
                      "long": _C.int64, "int": _C.int32, "short": _C.int16, "char": _C.int8, "byte": _C.uint8,
                      "bool": _C.bool, "complex_double": _C.complex128, "complex_float": _C.complex64}.items():
    setattr(TypedStorage, _name, _conversion(_name, _dtype))

_classes = {}

for _dtype in _C._dtypes():
    _name = f"{_dtype._legacy_name}Storage"
    _classes[_dtype] = globals()[_name] = type(_name, (_LegacyStorage,), {"__module__": "tercel", "dtype": _dtype})
    __all__.append(_name)
_storage_classes = {UntypedStorage, TypedStorage, *_classes.values()}


def _dtype_to_storage_type_map():
    return {dtype: cls.__name__ for dtype, cls in _classes.items()}


def _storage_type_to_dtype_map():
    return {cls.__name__: dtype for dtype, cls in _classes.items()}


def default_class():
    """The class of the default dtype's storages, which is tercel.Storage."""
    return _classes[_C.get_default_dtype()]
