// The graph in Python: nodes, hooks, functions defined in Python.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "python/src/python.h"
#include "tercel/autograd/node.h"
#include "tercel/core/tensor.h"

namespace tercel::python {

/** A new reference to the node's object, of a class with the node's name; of a Python function's node, its context. */
PyObject* from_node(const intrusive_ptr<Node>& node);

/** from_node() of a node that no Python function made. */
PyObject* object_of_node(const intrusive_ptr<Node>& node);

/** The class of contexts. */
PyTypeObject* context_type();
/** The node of a Python function's context; null once its graph is gone. TypeError for another object. */
intrusive_ptr<Node> node_of_context(PyObject* context);
/** Whether `node`, which is not dereferenced, is the context's and has one owner. Needs the GIL. */
bool owns_context_alone(const Node* node, PyObject* context);

/** A Python object owned by C++, which may release it on any thread. */
class Held {
 public:
  explicit Held(nb::object object) : object_(std::move(object)) {}
  ~Held();
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  /** Needs the GIL; null once dropped. */
  PyObject* get() const { return object_.ptr(); }
  /** Releases it early; needs the GIL. */
  void drop() { const nb::object last = std::move(object_); }

 private:
  nb::object object_;
};
/** A function that C++ calls. */
std::shared_ptr<Held> hold(nb::handle object);

// Note [Cycles through hooks]
// A hook may refer to its own leaf or node. Such a cycle passes through C++, and Python's collector finds it only if
// the object that owns the C++ end traverses it: a leaf's object its hooks, a node's object those of the node, each
// only while it is the sole owner, since objects that C++ also owns are not garbage. Python cannot traverse the graph's
// hook lists, so a node's state and a leaf's object have additional, non-owning references to the hooks.
class HookReferences {
 public:
  void add(const std::shared_ptr<const Held>& hook);
  /** For a traverse slot. */
  int show(visitproc visit, void* arg) const;

 private:
  struct Reference {
    std::weak_ptr<const Held> alive;
    const Held* hook;
  };
  std::vector<Reference> references_;
};

/** A function's __name__, or that of its type. */
std::string name_of(PyObject* function);
/** A tuple of tensors, None for undefined ones. */
nb::object tuple_of(const std::vector<Tensor>& tensors);
/** Tensors of a tensor or a sequence of tensors and None. TypeError for anything else. */
std::vector<Tensor> tensor_list(nb::handle o);

// Shared by node objects and contexts of Python functions; `self` is either.
PyObject* node_name(const Node& node);
PyObject* node_next_functions(const Node& node);
/** Adds a hook called with (gradients of inputs, of outputs), or the latter alone; returns a handle with remove(). */
PyObject* add_node_hook(Node& node, PyObject* hook, bool before);

/** A node's attribute such as `_saved_self`, or `_raw_saved_self` as a SavedTensor; invalid for another name. */
nb::object saved_attribute(const intrusive_ptr<Node>& node, std::string_view name);
/** The names that saved_attribute() accepts. */
nb::list saved_attribute_names(Node& node);
/** SavedTensor objects of all tensors that the node has saved. */
nb::object raw_saved_tensors(const intrusive_ptr<Node>& node);
/** C++ hooks that call Python hooks. */
SavedTensorHooks python_saved_hooks(nb::handle pack, nb::handle unpack);

void register_autograd(nb::module_& m);
void register_saved_tensor(nb::module_& m);
void register_node(nb::module_& m);
void register_function(nb::module_& m);
void register_saved(nb::module_& m);

}  // namespace tercel::python
