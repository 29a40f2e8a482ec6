"""Storages with a dtype: the bytes of an UntypedStorage as numbers.

There is one typed storage of a dtype for each untyped one, as long as somebody holds it.
"""

import pickle
import weakref

from tercel import _C
from tercel._C import UntypedStorage

__all__ = ["UntypedStorage", "TypedStorage"]


def _bytes_of(storage):
    """The storage as a tensor of bytes, whose memory Python sees."""
    return _C.empty(0, dtype=_C.uint8).set_(storage, 0, (storage.nbytes(),), (1,))


def _rebuild_storage(data):
    """The storage that was pickled: over memory that may be written to, a copy of other bytes."""
    view = memoryview(data)
    if view.nbytes == 0:
        return UntypedStorage()
    if view.readonly:
        data = bytearray(data)
    return _C.frombuffer(data, dtype=_C.uint8).untyped_storage()


def _rebuild_typed_storage(untyped, dtype):
    return typed_storage(untyped, dtype)


def _reduce_storage(self, protocol):
    # From protocol 5 on the bytes may stay out of the pickle: then they are not even copied, and can grow no more.
    if protocol >= 5:
        return _rebuild_storage, (pickle.PickleBuffer(_bytes_of(self)),)
    return _rebuild_storage, (self._to_bytes(),)


def _deepcopy_storage(self, memo):
    copied = memo[id(self)] = self.clone()
    return copied


def _storage_str(self):
    """A byte a line, then what it is."""
    lines = "\n ".join(str(byte) for byte in _bytes_of(self).tolist())
    return f" {lines}\n[tercel.storage.UntypedStorage(device={self.device}) of size {self.nbytes()}]"


UntypedStorage.__repr__ = UntypedStorage.__str__ = _storage_str
UntypedStorage.__reduce_ex__ = _reduce_storage
UntypedStorage.__deepcopy__ = _deepcopy_storage
UntypedStorage.__module__ = "tercel"


def typed_storage(untyped, dtype):
    """The typed storage over these bytes."""
    twins = untyped.__dict__.setdefault("_typed", {})
    twin = twins.get(dtype, lambda: None)()
    if twin is None:
        twin = object.__new__(_classes[dtype])
        twin._untyped_storage, twin.dtype = untyped, dtype
        twins[dtype] = weakref.ref(twin)
    return twin


class TypedStorage:
    """Numbers of one dtype in a row, without sizes: what all views of a tensor share."""

    _own_dtype = None

    def __new__(cls, *args, wrap_storage=None, dtype=None, device=None):
        dtype = cls._own_dtype or dtype or _C.get_default_dtype()
        if wrap_storage is not None:
            return typed_storage(wrap_storage, dtype)
        if not args:
            return typed_storage(UntypedStorage(), dtype)
        if isinstance(args[0], int):
            return typed_storage(UntypedStorage(args[0] * dtype.itemsize), dtype)
        return typed_storage(_C.tensor(list(args[0]), dtype=dtype).untyped_storage(), dtype)

    @property
    def device(self):
        """Where the bytes are."""
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
        """The bytes of an element."""
        return self.dtype.itemsize

    def data_ptr(self):
        """The address of the first element."""
        return self._untyped_storage.data_ptr()

    def is_shared(self):
        """Whether other processes see it: never."""
        return False

    def resizable(self):
        """Whether it may grow or shrink."""
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
            raise RuntimeError(f"can't index a {type(self)} with {type(i)}")
        return self._tensor()[self._index(i)].item()

    def __setitem__(self, i, value):
        if not isinstance(i, (int, slice)):
            raise RuntimeError(f"can't index a {type(self)} with {type(i)}")
        self._tensor()[i if isinstance(i, slice) else self._index(i)] = value

    def fill_(self, value):
        """Sets every element."""
        self._tensor().fill_(value)
        return self

    def copy_(self, source, non_blocking=None):
        """Takes the elements of another storage, converted."""
        self._tensor().copy_(source._tensor() if isinstance(source, TypedStorage) else _C.tensor(source))
        return self

    def resize_(self, size):
        """Another number of elements; new ones are not initialised."""
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
        return f" {lines}\n[tercel.{name} of size {len(self)}]"

    __repr__ = __str__

    def type(self):
        """The name of the class, or the storage in another dtype."""
        return f"tercel.{self.dtype._legacy_name}Storage"


_classes = {}

for _dtype in _C._dtypes():
    _name = f"{_dtype._legacy_name}Storage"
    _classes[_dtype] = globals()[_name] = type(_name, (TypedStorage,), {"__module__": "tercel", "_own_dtype": _dtype})
    __all__.append(_name)
_storage_classes = {UntypedStorage, TypedStorage, *_classes.values()}


def default_class():
    """The class of the default dtype's storages, which is tercel.Storage."""
    return _classes[_C.get_default_dtype()]
