// tercel.Tensor: the Python object of a tensor, and conversion between the two.
//
// Note [One object per tensor]
// A TensorImpl keeps a pointer to its Python object (Note [Peers] in core/peer.h), so the same tensor is the same
// object wherever it comes from. The object owns the tensor. When the last Python reference goes and C++ (a graph, a
// .grad, a list) still owns the tensor, an object without state of its own is freed; one that has attributes, weak
// references or a subclass is transferred to the tensor (`owned_by_tensor`): the tensor then holds one Python
// reference, which it drops when it is destroyed, or which passes to the next caller that asks for the object.
//
// Note [Tracking]
// The cycle collector needs to see only tensors that can refer to other objects. So a plain tensor is allocated with
// room for the collector's header, but is tracked only from its first attribute or hook on, or if it is the result of a
// function written in Python, whose context may refer to the result. The node owns the context; where the tensor is the
// node's only owner, the tensor reports that reference to the collector.
#pragma once

#include "python/src/python.h"
#include "tercel/core/tensor.h"

namespace tercel::python {

class HookReferences;

struct TensorObject {
  PyObject_HEAD Tensor tensor;
  PyObject* dict;
  PyObject* weak_references;
  PyObject* context;           ///< of the Python function that produced it; usually null
  HookReferences* leaf_hooks;  ///< null until needed; owned
  bool owned_by_tensor;
  bool tracked;  ///< for plain objects; unchanged after the collector has cleared the attributes
};

extern PyTypeObject* tensor_type;

inline bool is_tensor(PyObject* o) { return Py_TYPE(o) == tensor_type || PyType_IsSubtype(Py_TYPE(o), tensor_type); }
/** The tensor of an object that is_tensor(). */
inline const Tensor& tensor_of(PyObject* o) { return reinterpret_cast<TensorObject*>(o)->tensor; }

/** The tensor of any object; TypeError "what: expected a Tensor, not str" for other objects. */
const Tensor& to_tensor(nb::handle o, std::string_view what);

/** Shows the object to the cycle collector; see Note [Tracking]. */
void track(PyObject* tensor);
/** The reference by which the collector finds the leaf's hooks. */
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

// The slots and attributes of the type, which are defined in separate files.
PyGetSetDef* tensor_attributes();
Span<PyType_Slot> tensor_operators();
/** The value of a tensor with one element; RuntimeError for others. */
Scalar the_item(const Tensor& t);
/** Tensor.item as a CPython method object, which is faster to call than an operation; after finish_ops(). */
void register_item();
Span<PyType_Slot> tensor_item_slots();
Span<PyType_Slot> tensor_buffer_slots();
PyObject* tensor_new(PyTypeObject* type, PyObject* args, PyObject* kwargs);

}  // namespace tercel::python
