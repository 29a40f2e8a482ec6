#include "python/src/tensor_object.h"

#include <array>
#include <new>
#include <vector>

#include "python/src/autograd.h"
#include "python/src/storage.h"
#include "tercel/autograd/autograd_meta.h"

namespace tercel::python {

PyTypeObject* tensor_type = nullptr;

namespace {

TensorObject* cast(PyObject* o) { return reinterpret_cast<TensorObject*>(o); }
PyObject* cast(TensorObject* o) { return reinterpret_cast<PyObject*>(o); }

/** Free list of plain objects: this allocation is half of the cost of a small operation. */
struct FreeList {
  static constexpr size_t kMost = 256;
  std::array<TensorObject*, kMost> objects;
  size_t count = 0;
};
FreeList g_free;

/** False once the interpreter shuts down: no thread may then wait for the GIL. */
bool g_alive = false;

TensorObject* allocate_plain() {
  if (g_free.count > 0) [[likely]] {
    TensorObject* object = g_free.objects[--g_free.count];
    PyObject_Init(cast(object), tensor_type);
    return object;
  }
  return PyObject_GC_New(TensorObject, tensor_type);
}

/** Transfers the object to its tensor if C++ owns the tensor and the object has state that would be lost. */
bool leave_to_tensor(TensorObject* self) {
  if (self->owned_by_tensor || !self->tensor.defined()) return false;
  TensorImpl* impl = &self->tensor.impl();
  if (raw::use_count(impl) == 1) return false;
  if (!self->dict && !self->weak_references && Py_TYPE(self) == tensor_type) return false;
  Py_SET_REFCNT(cast(self), 1);
  self->owned_by_tensor = true;
  raw::decref(impl);  // may be the last reference: the tensor then releases the object at once
  return true;
}

/** Attributes in __slots__ of subclasses, which only the subclass's deallocator would free. */
void clear_slots(PyObject* self) {
  for (PyTypeObject* type = Py_TYPE(self); type != tensor_type && type; type = type->tp_base)
    for (PyMemberDef* member = type->tp_members; member && member->name; ++member)
      if (member->type == T_OBJECT_EX && (member->flags & READONLY) == 0) {
        auto** slot = reinterpret_cast<PyObject**>(reinterpret_cast<char*>(self) + member->offset);
        Py_CLEAR(*slot);
      }
}

/** The deallocator of Tensor and, through __init_subclass__, of its subclasses: Note [One object per tensor]. */
void dealloc(PyObject* o) {
  TensorObject* self = cast(o);
  if (leave_to_tensor(self)) return;
  PyTypeObject* type = Py_TYPE(o);
  const bool plain = type == tensor_type;
  if (!plain && type->tp_finalize && PyObject_CallFinalizerFromDealloc(o) < 0) return;
  if (!plain || self->tracked) PyObject_GC_UnTrack(o);
  delete self->leaf_hooks;
  if (self->tensor.defined()) self->tensor.impl().set_peer(nullptr);
  if (self->weak_references) PyObject_ClearWeakRefs(o);
  if (!plain) clear_slots(o);
  Py_CLEAR(self->dict);
  Py_CLEAR(self->context);
  self->tensor.~Tensor();
  if (plain && g_free.count < FreeList::kMost) [[likely]]
    g_free.objects[g_free.count++] = self;
  else
    type->tp_free(o);
  Py_DECREF(type);
}

/** Called when a tensor or a storage that owns its object is destroyed. */
void drop_object(void* peer) noexcept {
  if (!g_alive || interpreter_ends()) return;  // nothing is freed during shutdown
  const WithGil scope;
  // A weak reference or a finalizer may still reach the object: it is left with an undefined tensor.
  if (is_storage_object(peer)) {
    disown_storage(peer);
  } else {
    auto* self = static_cast<TensorObject*>(peer);
    new (&self->tensor) Tensor(make_intrusive<TensorImpl>(create_storage(kCpu), kFloat32, IntSpan{0}));
    self->tensor.impl().set_peer(self);
    self->owned_by_tensor = false;
  }
  Py_DECREF(static_cast<PyObject*>(peer));
}

int traverse(PyObject* o, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(o));
  TensorObject* self = cast(o);
  Py_VISIT(self->context);
  // A tensor that C++ also owns is not garbage.
  if (self->tensor.use_count() > 1) return 0;
  Py_VISIT(self->dict);
  if (self->leaf_hooks)
    if (const int result = self->leaf_hooks->show(visit, arg); result != 0) return result;
  if (self->context && self->tensor.defined()) {
    const AutogradMeta* meta = autograd_meta(self->tensor);
    // The node's reference. Other threads may use the tensor without the GIL, so the node's address is compared and the
    // node is not dereferenced.
    if (meta && owns_context_alone(meta->grad_fn.get(), self->context)) Py_VISIT(self->context);
  }
  return 0;
}

int clear(PyObject* o) {
  Py_CLEAR(cast(o)->dict);
  Py_CLEAR(cast(o)->context);
  return 0;
}

/** See Note [Tracking]. */
int set_attribute(PyObject* o, PyObject* name, PyObject* value) {
  const int result = PyObject_GenericSetAttr(o, name, value);
  if (cast(o)->dict) track(o);
  return result;
}

PyObject* get_dict(PyObject* o, void*) {
  PyObject* dict = PyObject_GenericGetDict(o, nullptr);
  if (dict) track(o);
  return dict;
}

int set_dict(PyObject* o, PyObject* dict, void*) {
  const int result = PyObject_GenericSetDict(o, dict, nullptr);
  if (cast(o)->dict) track(o);
  return result;
}

PyObject* init_subclass(PyObject* type, PyObject*) {
  reinterpret_cast<PyTypeObject*>(type)->tp_dealloc = dealloc;
  Py_RETURN_NONE;
}

PyObject* stop_dropping(PyObject*, PyObject*) {
  g_alive = false;
  Py_RETURN_NONE;
}

/** The existing object of the tensor, as a new reference. */
PyObject* existing(TensorObject* object, TensorImpl& impl) {
  if (object->owned_by_tensor) {
    object->owned_by_tensor = false;
    raw::incref(&impl);
    return cast(object);  // takes over the tensor's reference
  }
  return Py_NewRef(cast(object));
}

/**
 * For an object reached through a weak reference while its tensor owned it: from here on the object owns the tensor
 * again, and outlives C++'s use of it.
 */
PyObject* fix_weak_reference(PyObject* o, PyObject*) {
  TensorObject* self = cast(o);
  if (self->owned_by_tensor) Py_DECREF(existing(self, self->tensor.impl()));
  Py_RETURN_NONE;
}

PyMemberDef g_members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(TensorObject, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(TensorObject, weak_references), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};
PyMethodDef g_methods[] = {
    {"_fix_weakref", fix_weak_reference, METH_NOARGS, nullptr},
    {"__init_subclass__", init_subclass, METH_NOARGS | METH_CLASS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyMethodDef g_stop = {"_stop_dropping", stop_dropping, METH_NOARGS, nullptr};

}  // namespace

const Tensor& to_tensor(nb::handle o, std::string_view what) {
  TERCEL_CHECK(is_tensor(o.ptr()), TypeError, what, ": expected a Tensor, not ", Py_TYPE(o.ptr())->tp_name);
  return tensor_of(o.ptr());
}

void track(PyObject* tensor) {
  cast(tensor)->tracked = true;
  if (!PyObject_GC_IsTracked(tensor)) PyObject_GC_Track(tensor);
}

HookReferences& leaf_hooks(PyObject* tensor) {
  HookReferences*& hooks = cast(tensor)->leaf_hooks;
  if (!hooks) hooks = new HookReferences;
  return *hooks;
}

PyObject* wrap(Tensor tensor) {
  if (!tensor.defined()) return Py_NewRef(Py_None);
  TensorImpl& impl = tensor.impl();
  if (void* peer = impl.peer()) return existing(static_cast<TensorObject*>(peer), impl);
  TensorObject* self = allocate_plain();
  if (!self) [[unlikely]]
    raise_pending();
  new (&self->tensor) Tensor(std::move(tensor));
  self->dict = nullptr;
  self->weak_references = nullptr;
  self->context = nullptr;
  self->owned_by_tensor = self->tracked = false;
  self->leaf_hooks = nullptr;
  impl.set_peer(self);
  return cast(self);
}

PyObject* wrap_result(Tensor tensor, PyObject* context) {
  PyObject* object = wrap(std::move(tensor));
  Py_XSETREF(cast(object)->context, Py_NewRef(context));
  track(object);
  return object;
}

PyObject* wrap_as(PyTypeObject* type, Tensor tensor) {
  if (type == tensor_type) return wrap(std::move(tensor));
  TensorImpl& impl = tensor.impl();
  if (void* peer = impl.peer()) {
    auto* object = static_cast<TensorObject*>(peer);
    TERCEL_CHECK(PyType_IsSubtype(Py_TYPE(object), type), TypeError, "Creating a new Tensor subclass ", type->tp_name,
                 " but the raw Tensor object is already associated to a python object of type ",
                 Py_TYPE(object)->tp_name);
    return existing(object, impl);
  }
  auto* self = reinterpret_cast<TensorObject*>(own(type->tp_alloc(type, 0)).release().ptr());
  new (&self->tensor) Tensor(std::move(tensor));
  impl.set_peer(self);
  return cast(self);
}

PyObject* wrap_tuple(Span<Tensor> tensors) {
  nb::object tuple = own(PyTuple_New(static_cast<Py_ssize_t>(tensors.size())));
  for (size_t i = 0; i < tensors.size(); ++i)
    PyTuple_SET_ITEM(tuple.ptr(), static_cast<Py_ssize_t>(i), wrap(tensors[i]));
  return tuple.release().ptr();
}

void register_tensor(nb::module_& m) {
  std::vector<PyGetSetDef> attributes;
  attributes.push_back({"__dict__", get_dict, set_dict, nullptr, nullptr});
  for (const PyGetSetDef* a = tensor_attributes(); a->name; ++a) attributes.push_back(*a);
  attributes.push_back({});
  auto* kept = new std::vector<PyGetSetDef>(std::move(attributes));  // the type refers to them forever

  std::vector<PyType_Slot> slots = {
      {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
      {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
      {Py_tp_clear, reinterpret_cast<void*>(clear)},
      {Py_tp_setattro, reinterpret_cast<void*>(set_attribute)},
      {Py_tp_new, reinterpret_cast<void*>(tensor_new)},
      {Py_tp_members, g_members},
      {Py_tp_methods, g_methods},
      {Py_tp_getset, kept->data()},
      {Py_tp_doc, const_cast<char*>("An n-dimensional array of numbers of one dtype.")},
  };
  for (const auto& more : {tensor_operators(), tensor_item_slots(), tensor_buffer_slots()})
    slots.insert(slots.end(), more.begin(), more.end());
  slots.push_back({0, nullptr});
  PyType_Spec spec = {"tercel.Tensor", sizeof(TensorObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots.data()};
  tensor_type = make_type(m, &spec);
  tensor_type->tp_name = "Tensor";  // as in Python's error messages; __module__ is in the dict

  g_alive = true;
  set_peer_deleter(drop_object);
  nb::module_::import_("atexit").attr("register")(own(PyCFunction_New(&g_stop, nullptr)));
}

}  // namespace tercel::python
