// tercel.Tensor: the Python object that stands for a tensor, and the way from one to the other.
//
// Note [One object a tensor]
// A TensorImpl keeps a pointer to its Python object (Note [Peers] in core/peer.h), so the same tensor is the same
// object wherever it comes from. The object owns the tensor. When the last Python reference goes and C++ (a graph, a
// .grad, a list) still holds the tensor, an object that has nothing of its own simply dies; one that has attributes,
// weak references or a class of its own is left to the tensor (`owned_by_tensor`): it then holds one Python reference,
// which the tensor gives back when it dies, or which goes to the next who asks for the object.
//
// Note [Tracking]
// The cycle collector can only find something in a tensor that has attributes. So a plain tensor is allocated with room
// for the collector's header, but enters its lists only with its first attribute, or as the result of a function
// written in Python, or with a hook: that one's context may hold the result. The node owns the context; where the
// tensor alone owns the node, it is the tensor that tells the collector of that reference.
#pragma once

#include "python/src/python.h"
#include "tercel/core/tensor.h"

namespace tercel::python {

class HookReferences;

struct TensorObject {
  PyObject_HEAD Tensor tensor;
  PyObject* dict;
  PyObject* weak_references;
  PyObject* context;           ///< of the Python function whose result it is; null for nearly all
  HookReferences* leaf_hooks;  ///< null until there is one; owned
  bool owned_by_tensor;
  bool tracked;  ///< of plain objects; still so once the collector has cleared what it found
};

extern PyTypeObject* tensor_type;

inline bool is_tensor(PyObject* o) { return Py_TYPE(o) == tensor_type || PyType_IsSubtype(Py_TYPE(o), tensor_type); }
/** The tensor of an object that is_tensor(). */
inline const Tensor& tensor_of(PyObject* o) { return reinterpret_cast<TensorObject*>(o)->tensor; }

/** The tensor of any object; TypeError "what: expected a Tensor, not str" if it is none. */
const Tensor& to_tensor(nb::handle o, std::string_view what);

/** Shows the object to the cycle collector; see Note [Tracking]. */
void track(PyObject* tensor);
/** What the collector finds the leaf's hooks by. */
HookReferences& leaf_hooks(PyObject* tensor);

/** A new reference to the tensor's object; None for an undefined tensor. Throws nb::python_error. */
PyObject* wrap(Tensor tensor);
/** The same for an object of a subclass; TypeError when the tensor has an object of another class. */
PyObject* wrap_as(PyTypeObject* type, Tensor tensor);
/** wrap() of a result of a Python function with that context; see Note [Tracking]. */
PyObject* wrap_result(Tensor tensor, PyObject* context);
/** wrap() of each, as a tuple. */
PyObject* wrap_tuple(Span<Tensor> tensors);

/** Makes the type without methods, which the tables add; see module.cpp for the order. */
void register_tensor(nb::module_& m);

// The slots and attributes of the type, which stand in files of their own.
PyGetSetDef* tensor_attributes();
Span<PyType_Slot> tensor_operators();
/** Of a tensor of one element; RuntimeError for others. */
Scalar the_item(const Tensor& t);
/** Tensor.item as a method of CPython's own kind, which it calls faster than an operation; after finish_ops(). */
void register_item();
Span<PyType_Slot> tensor_item_slots();
Span<PyType_Slot> tensor_buffer_slots();
PyObject* tensor_new(PyTypeObject* type, PyObject* args, PyObject* kwargs);

}  // namespace tercel::python
