// tercel.UntypedStorage: the bytes that tensors share; and the base of TypedStorage, which is written in Python
// (tercel/storage.py).
//
// Each storage has one object, as tensors do (Note [One object per tensor]). The storage always takes it over when the
// last Python reference goes.
//
// Note [Typed twins]
// A storage has one typed storage per dtype for its whole life, so that id(x.storage()) identifies storages. A typed
// storage owns the untyped one, which therefore cannot own it in return. As with tensors, ownership flips: when the
// last reference to a typed storage goes and the untyped one is still in use, the untyped one owns it from then on.

#include <cstring>

#include "python/src/convert.h"
#include "python/src/storage.h"

namespace tercel::python {

namespace {

struct TypedObject;

struct StorageObject {
  PyObject_HEAD Storage storage;
  PyObject* dict;
  PyObject* weak_references;
  TypedObject* twins;
  bool owned_by_storage;
};

/** See Note [Typed twins]. */
struct TypedObject {
  PyObject_HEAD StorageObject* untyped;
  TypedObject* next;  // next twin of the same storage
  PyObject* dict;
  PyObject* weak_references;
  bool kept;  // owned by the untyped storage's object, and does not own it
};

PyTypeObject *g_type = nullptr, *g_typed_type = nullptr;

StorageObject* cast(PyObject* o) { return reinterpret_cast<StorageObject*>(o); }
TypedObject* cast_typed(PyObject* o) { return reinterpret_cast<TypedObject*>(o); }
template <class Object>
PyObject* cast(Object* o) {
  return reinterpret_cast<PyObject*>(o);
}

PyObject* wrap_storage(const Storage& storage) {
  if (void* peer = storage->peer()) {
    auto* object = static_cast<StorageObject*>(peer);
    if (!object->owned_by_storage) return Py_NewRef(cast(object));
    object->owned_by_storage = false;
    raw::incref(storage.get());
    return cast(object);
  }
  PyObject* self = own(g_type->tp_alloc(g_type, 0)).release().ptr();
  new (&cast(self)->storage) Storage(storage);
  storage->set_peer(self);
  return self;
}

void drop_twins(StorageObject* self) {
  while (TypedObject* twin = self->twins) {
    self->twins = twin->next;
    twin->untyped = nullptr;
    Py_DECREF(cast(twin));
  }
}

void dealloc(PyObject* o) {
  StorageObject* self = cast(o);
  if (!self->owned_by_storage && self->storage && self->storage.use_count() > 1) {
    Py_SET_REFCNT(o, 1);
    self->owned_by_storage = true;
    raw::decref(self->storage.get());
    return;
  }
  PyTypeObject* type = Py_TYPE(o);
  if (self->storage) self->storage->set_peer(nullptr);
  drop_twins(self);
  if (self->weak_references) PyObject_ClearWeakRefs(o);
  Py_CLEAR(self->dict);
  self->storage.~Storage();
  type->tp_free(o);
  Py_DECREF(type);
}

/** Makes a twin of the storage whose reference this is. */
void attach(TypedObject* twin, PyObject* untyped) {
  twin->untyped = cast(untyped);
  twin->next = twin->untyped->twins;
  twin->untyped->twins = twin;
}
void detach(TypedObject* twin) {
  TypedObject** place = &twin->untyped->twins;
  while (*place != twin) place = &(*place)->next;
  *place = twin->next;
}

/** Transfers the twin to its storage if that is still in use elsewhere. */
bool leave_to_untyped(TypedObject* self) {
  if (!self->untyped || self->kept) return false;
  if (Py_REFCNT(cast(self->untyped)) == 1 && self->untyped->storage.use_count() == 1) return false;
  Py_SET_REFCNT(cast(self), 1);
  self->kept = true;
  Py_DECREF(cast(self->untyped));  // may be the last reference: the storage then drops its twins at once
  return true;
}

void dealloc_typed(PyObject* o) {
  TypedObject* self = cast_typed(o);
  if (leave_to_untyped(self)) return;
  PyTypeObject* type = Py_TYPE(o);
  if (self->untyped) detach(self);
  if (self->weak_references) PyObject_ClearWeakRefs(o);
  Py_CLEAR(self->dict);
  Py_XDECREF(cast(self->untyped));
  type->tp_free(o);
  Py_DECREF(type);
}

/** The bytes of a typed storage. A typed storage reached through a weak reference owns them from here on, if any. */
PyObject* get_untyped(PyObject* o, void*) {
  return at_border([&] {
    TypedObject* self = cast_typed(o);
    if (self->kept && self->untyped) {
      wrap_storage(self->untyped->storage);  // the reference is the twin's own
      self->kept = false;
      Py_DECREF(o);
    } else if (!self->untyped) {
      attach(self, wrap_storage(create_storage(kCpu)));
      self->kept = false;
    }
    return Py_NewRef(cast(self->untyped));
  });
}

/** The storage's twin of a class, which it may have already. */
nb::object typed_twin(nb::handle untyped, nb::handle cls) {
  auto* type = reinterpret_cast<PyTypeObject*>(cls.ptr());
  TERCEL_CHECK(Py_TYPE(untyped.ptr()) == g_type && PyType_Check(cls.ptr()) && PyType_IsSubtype(type, g_typed_type),
               TypeError, "expected a tercel.UntypedStorage and a class of typed storages");
  for (TypedObject* twin = cast(untyped.ptr())->twins; twin; twin = twin->next) {
    if (Py_TYPE(cast(twin)) != type) continue;
    if (!twin->kept) return nb::borrow(cast(twin));
    twin->kept = false;
    Py_INCREF(untyped.ptr());
    return nb::steal(cast(twin));  // with the reference that the storage held
  }
  nb::object fresh = own(type->tp_alloc(type, 0));
  attach(cast_typed(fresh.ptr()), Py_NewRef(untyped.ptr()));
  return fresh;
}

int64_t size_of(PyObject* o) { return static_cast<int64_t>(cast(o)->storage->nbytes()); }
uint8_t* bytes_of(PyObject* o) { return static_cast<uint8_t*>(cast(o)->storage->data()); }

// The functions below convert their arguments before they read address and size: __index__ may resize the storage.

int64_t byte_index(PyObject* self, PyObject* key) {
  TERCEL_CHECK(is_int_like(key), TypeError, "can't index a tercel.UntypedStorage with ", Py_TYPE(key)->tp_name);
  const int64_t i = to_int(key), n = size_of(self);
  TERCEL_CHECK(i >= -n && i < n, IndexError, "index ", i, " out of range for storage of size ", n);
  return i < 0 ? i + n : i;
}

Py_ssize_t length(PyObject* self) { return static_cast<Py_ssize_t>(size_of(self)); }

struct Bytes {
  Py_ssize_t start, length;
};
/** The bytes of a slice; RuntimeError unless its step is 1. */
Bytes bytes_in(PyObject* self, PyObject* slice) {
  Py_ssize_t start = 0, stop = 0, step = 0;
  if (PySlice_Unpack(slice, &start, &stop, &step) < 0) raise_pending();
  const Py_ssize_t count = PySlice_AdjustIndices(length(self), &start, &stop, step);
  TERCEL_CHECK(step == 1, RuntimeError, "Trying to slice with a step of ", step, ", but only a step of 1 is supported");
  return {start, count};
}

/** A storage that shares some of the bytes; the original can no longer be resized. */
PyObject* part_of(PyObject* self, Bytes part) {
  const Storage& whole = cast(self)->storage;
  whole->set_resizable(false);
  DataPtr block(
      bytes_of(self) + part.start, new Storage(whole), [](void* kept) { delete static_cast<Storage*>(kept); },
      whole->device());
  return wrap_storage(make_intrusive<StorageImpl>(static_cast<size_t>(part.length), std::move(block), nullptr, false));
}

PyObject* get_item(PyObject* self, PyObject* key) {
  return at_border([&]() -> PyObject* {
    if (PySlice_Check(key)) return part_of(self, bytes_in(self, key));
    const int64_t at = byte_index(self, key);
    return PyLong_FromLong(bytes_of(self)[at]);
  });
}
int set_item(PyObject* self, PyObject* key, PyObject* value) {
  return at_border<int>(-1, [&] {
    TERCEL_CHECK(value, TypeError, "a storage does not support deleting items");
    TERCEL_CHECK(is_int_like(value), TypeError, "can only set storage content with a int, but got ",
                 Py_TYPE(value)->tp_name, " instead");
    const int64_t byte = to_int(value);
    TERCEL_CHECK(byte >= -128 && byte < 256, RuntimeError,
                 "value cannot be converted to type uint8_t without overflow");
    if (PySlice_Check(key)) {
      const Bytes part = bytes_in(self, key);
      if (part.length > 0)
        std::memset(bytes_of(self) + part.start, static_cast<int>(byte), static_cast<size_t>(part.length));
      return 0;
    }
    const int64_t at = byte_index(self, key);
    bytes_of(self)[at] = static_cast<uint8_t>(byte);
    return 0;
  });
}

PyObject* nbytes(PyObject* self, PyObject*) { return PyLong_FromLongLong(size_of(self)); }
PyObject* data_ptr(PyObject* self, PyObject*) { return PyLong_FromVoidPtr(cast(self)->storage->data()); }
PyObject* get_cdata(PyObject* self, void*) { return PyLong_FromVoidPtr(cast(self)->storage.get()); }
PyObject* get_device(PyObject* self, void*) {
  return at_border([&] { return from_device(cast(self)->storage->device()); });
}
PyObject* resizable(PyObject* self, PyObject*) { return PyBool_FromLong(cast(self)->storage->resizable()); }
PyObject* resize(PyObject* self, PyObject* size) {
  return at_border([&] {
    const int64_t n = to_int(size);
    TERCEL_CHECK(n >= 0, RuntimeError, "a storage cannot have ", n, " bytes");
    cast(self)->storage->resize_bytes(static_cast<size_t>(n));
    return Py_NewRef(self);
  });
}
PyObject* fill(PyObject* self, PyObject* value) {
  return at_border([&] {
    const auto byte = static_cast<int>(to_int(value));
    if (size_of(self) > 0) std::memset(bytes_of(self), byte, static_cast<size_t>(size_of(self)));
    return Py_NewRef(self);
  });
}
PyObject* copy(PyObject* self, PyObject* other) {
  return at_border([&] {
    TERCEL_CHECK(is_storage(other), TypeError, "expected a tercel.UntypedStorage, but got ", Py_TYPE(other)->tp_name);
    const Storage& source = to_storage(other);
    TERCEL_CHECK(static_cast<int64_t>(source->nbytes()) == size_of(self), RuntimeError,
                 "size does not match, self was ", size_of(self), " bytes but src was ", source->nbytes(), " bytes");
    if (size_of(self) > 0) std::memmove(bytes_of(self), source->data(), static_cast<size_t>(size_of(self)));
    return Py_NewRef(self);
  });
}
PyObject* to_bytes(PyObject* self, PyObject*) {
  return PyBytes_FromStringAndSize(reinterpret_cast<const char*>(bytes_of(self)), length(self));
}
PyObject* clone_storage(PyObject* self, PyObject*) {
  return at_border([&] {
    const Storage fresh = create_storage(kCpu);
    fresh->resize_bytes(static_cast<size_t>(size_of(self)));
    if (size_of(self) > 0) std::memcpy(fresh->data(), bytes_of(self), static_cast<size_t>(size_of(self)));
    return wrap_storage(fresh);
  });
}

/** UntypedStorage(), of a number of bytes, or of a sequence of bytes; accepts device="cpu". */
PyObject* storage_new(PyTypeObject*, PyObject* args, PyObject* kwargs) {
  return at_border([&] {
    Device device = kCpu;
    PyObject *name = nullptr, *value = nullptr;
    for (Py_ssize_t i = 0; kwargs && PyDict_Next(kwargs, &i, &name, &value);) {
      TERCEL_CHECK(to_text(name) == "device", TypeError, "UntypedStorage() got an unexpected keyword argument '",
                   to_text(name), "'");
      if (value != Py_None) device = to_device(value);
    }
    TERCEL_CHECK(PyTuple_GET_SIZE(args) <= 1, TypeError, "UntypedStorage() takes at most 1 positional argument but ",
                 PyTuple_GET_SIZE(args), " were given");
    const Storage storage = create_storage(device);
    if (PyTuple_GET_SIZE(args) == 0) return wrap_storage(storage);
    PyObject* first = PyTuple_GET_ITEM(args, 0);
    if (is_int_like(first)) {
      const int64_t n = to_int(first);
      TERCEL_CHECK(n >= 0, RuntimeError, "Storage: a size cannot be negative: ", n);
      storage->resize_bytes(static_cast<size_t>(n));
      return wrap_storage(storage);
    }
    const nb::object list = own(PySequence_List(first));
    storage->resize_bytes(static_cast<size_t>(PyList_GET_SIZE(list.ptr())));
    for_each_item(list.ptr(), [&](PyObject* item, Py_ssize_t i) {
      static_cast<uint8_t*>(storage->data())[i] = static_cast<uint8_t>(to_int(item));
    });
    return wrap_storage(storage);
  });
}

PyMethodDef g_methods[] = {
    {"nbytes", nbytes, METH_NOARGS, "The number of bytes."},
    {"size", nbytes, METH_NOARGS, "The number of bytes."},
    {"data_ptr", data_ptr, METH_NOARGS, "The address of the first byte."},
    {"resizable", resizable, METH_NOARGS, "Whether resize_() is allowed."},
    {"resize_", resize, METH_O, "Changes the number of bytes; keeps the bytes that both sizes have."},
    {"fill_", fill, METH_O, "Sets every byte to a value."},
    {"copy_", copy, METH_O, "Copies the bytes of a storage of the same size."},
    {"_to_bytes", to_bytes, METH_NOARGS, "A copy as a bytes object."},
    {"clone", clone_storage, METH_NOARGS, "A copy."},
    {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef g_attributes[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {"_cdata", get_cdata, nullptr, nullptr, nullptr},
    {"device", get_device, nullptr, "The device of the bytes.", nullptr},
    {},
};
PyMemberDef g_members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(StorageObject, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(StorageObject, weak_references), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};
PyType_Slot g_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(storage_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
    {Py_tp_methods, g_methods},
    {Py_tp_doc, const_cast<char*>("A block of bytes that tensors are views of.")},
    {Py_tp_getset, g_attributes},
    {Py_tp_members, g_members},
    {Py_mp_length, reinterpret_cast<void*>(length)},
    {Py_mp_subscript, reinterpret_cast<void*>(get_item)},
    {Py_mp_ass_subscript, reinterpret_cast<void*>(set_item)},
    {0, nullptr},
};
PyType_Spec g_spec = {"tercel.UntypedStorage", sizeof(StorageObject), 0, Py_TPFLAGS_DEFAULT, g_slots};

PyGetSetDef g_typed_attributes[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {"_untyped_storage", get_untyped, nullptr, nullptr, nullptr},
    {},
};
PyMemberDef g_typed_members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(TypedObject, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(TypedObject, weak_references), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};
PyType_Slot g_typed_slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(dealloc_typed)},
    {Py_tp_getset, g_typed_attributes},
    {Py_tp_members, g_typed_members},
    {0, nullptr},
};
// Not tracked by the collector, like UntypedStorage; its subclasses have no further members.
PyType_Spec g_typed_spec = {"tercel._TypedStorage", sizeof(TypedObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                            g_typed_slots};

}  // namespace

bool is_storage(PyObject* o) { return Py_TYPE(o) == g_type || PyObject_TypeCheck(o, g_typed_type); }
const Storage& to_storage(PyObject* o) {
  if (Py_TYPE(o) == g_type) return cast(o)->storage;
  const nb::object untyped = own(get_untyped(o, nullptr));
  return cast(untyped.ptr())->storage;  // the typed storage keeps it
}
const Storage& storage_of_dtype(PyObject* o, ScalarType type) {
  if (Py_TYPE(o) != g_type) {
    const ScalarType own_type = to_dtype(nb::object(nb::borrow(o).attr("dtype")).ptr());
    TERCEL_CHECK(own_type == type, RuntimeError, "Expected a Storage of type ", legacy_name(type),
                 " or an UntypedStorage, but got type ", legacy_name(own_type), " for argument 1 'storage'");
  }
  return to_storage(o);
}
PyObject* from_storage(const Storage& storage) { return wrap_storage(storage); }

bool is_storage_object(void* peer) { return Py_TYPE(static_cast<PyObject*>(peer)) == g_type; }
void disown_storage(void* peer) {
  auto* self = static_cast<StorageObject*>(peer);
  new (&self->storage) Storage(create_storage(kCpu));
  self->storage->set_peer(self);
  self->owned_by_storage = false;
}

void register_storage(nb::module_& m) {
  g_type = make_type(m, &g_spec);
  g_typed_type = make_type(m, &g_typed_spec);
  m.def("_typed_twin", typed_twin, nb::arg("untyped"), nb::arg("cls"));
}

}  // namespace tercel::python
