// Graph nodes as Python objects, and hooks.
#include <map>
#include <string>

#include "python/src/autograd.h"
#include "python/src/tensor_object.h"
#include "tercel/autograd/autograd.h"
#include "tercel/autograd/autograd_meta.h"
#include "tercel/autograd/leaf_node_impl.h"
#include "tercel/autograd/record.h"

namespace tercel::python {

namespace {

struct NodeObject {
  PyObject_HEAD intrusive_ptr<Node> node;
};

/** Python state of a node: its object while there is one, so that it is always the same, and its metadata. */
struct NodeState {
  PyObject* object = nullptr;
  std::shared_ptr<const Held> metadata;
  HookReferences hooks;
};

PyTypeObject* g_node_type = nullptr;

Node& node_of(PyObject* o) { return *reinterpret_cast<NodeObject*>(o)->node; }

NodeState& state_of(Node& node) {
  std::shared_ptr<void>& kept = node.extras().companion;
  if (!kept) kept = std::make_shared<NodeState>();
  return *static_cast<NodeState*>(kept.get());
}

int traverse(PyObject* o, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(o));
  if (reinterpret_cast<NodeObject*>(o)->node.use_count() > 1) return 0;
  const NodeState& state = state_of(node_of(o));
  if (state.metadata) Py_VISIT(state.metadata->get());
  return state.hooks.show(visit, arg);
}

void dealloc(PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  PyObject_GC_UnTrack(o);
  state_of(node_of(o)).object = nullptr;
  reinterpret_cast<NodeObject*>(o)->node.~intrusive_ptr();
  type->tp_free(o);
  Py_DECREF(type);
}

PyObject* name(PyObject* self, PyObject*) { return node_name(node_of(self)); }
PyObject* sequence_nr(PyObject* self, PyObject*) { return PyLong_FromUnsignedLongLong(node_of(self).sequence()); }
PyObject* next_functions(PyObject* self, void*) {
  return at_border([&] { return node_next_functions(node_of(self)); });
}
PyObject* metadata(PyObject* self, void*) {
  return at_border([&] {
    NodeState& state = state_of(node_of(self));
    if (!state.metadata) state.metadata = hold(nb::dict());
    return Py_NewRef(state.metadata->get());
  });
}
PyObject* variable(PyObject* self, void*) {
  return at_border([&]() -> PyObject* {
    if (node_of(self).is_leaf()) return wrap(static_cast<LeafNode&>(node_of(self)).leaf());
    PyErr_Format(PyExc_AttributeError, "'%s' object has no attribute 'variable'", node_of(self).name());
    raise_pending();
  });
}
PyObject* register_hook(PyObject* self, PyObject* hook) {
  return at_border([&] { return add_node_hook(node_of(self), hook, false); });
}
PyObject* register_prehook(PyObject* self, PyObject* hook) {
  return at_border([&] { return add_node_hook(node_of(self), hook, true); });
}

/** Calls only the node's backward: gradients of its outputs in, of its inputs out. */
PyObject* call(PyObject* self, PyObject* args, PyObject*) {
  return at_border([&] {
    Node& node = node_of(self);
    const size_t wanted = node.num_outputs();
    const std::vector<Tensor> given = tensor_list(args);
    TERCEL_CHECK(given.size() == wanted, TypeError, "expected ", wanted, " arguments, got ", given.size(), " instead");
    std::vector<Gradient> in, out(node.num_edges());
    for (const Tensor& t : given) in.push_back({t, {}});
    {
      const WithoutGil scope(true);
      BackwardCall backward(node, in.data(), out.data());
      node.apply(backward);
    }
    std::vector<Tensor> results;
    for (size_t i = 0; i < out.size(); ++i) results.push_back(out[i].values);
    nb::object tuple = tuple_of(results);
    return results.size() == 1 ? Py_NewRef(PyTuple_GET_ITEM(tuple.ptr(), 0)) : tuple.release().ptr();
  });
}

/** Saved tensors and values, by name. */
PyObject* attribute(PyObject* self, PyObject* name) {
  PyObject* found = PyObject_GenericGetAttr(self, name);
  if (found || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
  return at_border([&] {
    nb::python_error missing;
    const char* text = PyUnicode_AsUTF8(name);
    if (!text) raise_pending();
    nb::object value = saved_attribute(reinterpret_cast<NodeObject*>(self)->node, text);
    if (!value.is_valid()) throw std::move(missing);
    return value.release().ptr();
  });
}
PyObject* names_of(PyObject* self, PyObject*) {
  return at_border([&] {
    const nb::object usual =
        nb::borrow(reinterpret_cast<PyObject*>(&PyBaseObject_Type)).attr("__dir__")(nb::borrow(self));
    return (nb::list(usual) + saved_attribute_names(node_of(self))).release().ptr();
  });
}

PyObject* repr(PyObject* self) { return PyUnicode_FromFormat("<%s object at %p>", node_of(self).name(), self); }

PyMethodDef g_methods[] = {
    {"name", name, METH_NOARGS, "The name of the node, such as AddBackward0."},
    {"_sequence_nr", sequence_nr, METH_NOARGS, "A number that increases with each node recorded on a thread."},
    {"register_hook", register_hook, METH_O,
     "Calls hook(grad_inputs, grad_outputs) after the node's backward; its result, if any, replaces "
     "grad_inputs."},
    {"register_prehook", register_prehook, METH_O,
     "Calls hook(grad_outputs) before the node's backward; its result, if any, replaces grad_outputs."},
    {"__dir__", names_of, METH_NOARGS,
     "The names of the node's attributes, including those of saved tensors and values."},
    {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef g_attributes[] = {
    {"next_functions", next_functions, nullptr,
     "For each input, the node that produced it and the index of that node's output.", nullptr},
    {"metadata", metadata, nullptr, "A dict for data that the user attaches to the node.", nullptr},
    {"variable", variable, nullptr, "The leaf whose gradient the node accumulates; AccumulateGrad only.", nullptr},
    {},
};
PyType_Slot g_slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
    {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
    {Py_tp_getattro, reinterpret_cast<void*>(attribute)},
    {Py_tp_methods, g_methods},
    {Py_tp_getset, g_attributes},
    {Py_tp_repr, reinterpret_cast<void*>(repr)},
    {Py_tp_call, reinterpret_cast<void*>(call)},
    {0, nullptr},
};
PyType_Spec g_spec = {"tercel.autograd.Node", sizeof(NodeObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, g_slots};

/** The class of nodes of one name: what type(x.grad_fn).__name__ shows. */
PyTypeObject* type_named(const char* node_name) {
  static auto* types = new std::map<std::string, PyTypeObject*>;
  PyTypeObject*& type = (*types)[node_name];
  if (!type) {
    auto* kept = new std::string(std::string("tercel.autograd.") + node_name);  // the type refers to it
    PyType_Slot slots[] = {{0, nullptr}};
    PyType_Spec spec = {kept->c_str(), sizeof(NodeObject), 0, Py_TPFLAGS_DEFAULT, slots};
    const nb::object bases = own(PyTuple_Pack(1, g_node_type));
    type = reinterpret_cast<PyTypeObject*>(own(PyType_FromSpecWithBases(&spec, bases.ptr())).release().ptr());
  }
  return type;
}

/** Converts the result of a tensor's hook to a gradient. */
Tensor replacement(const Held& hook, const nb::object& result, const Tensor& before) {
  if (result.is_none()) return {};
  TERCEL_CHECK(is_tensor(result.ptr()), TypeError, "expected Variable, but hook returned '",
               Py_TYPE(result.ptr())->tp_name, "'");
  const Tensor& after = tensor_of(result.ptr());
  if (!before.defined()) return after;
  TERCEL_CHECK(after.dtype() == before.dtype(), RuntimeError, "hook '", name_of(hook.get()),
               "' has changed the type of value (was ", to_string(before.dtype()), " got ", to_string(after.dtype()),
               ")");
  TERCEL_CHECK(after.sizes() == before.sizes(), RuntimeError, "hook '", name_of(hook.get()),
               "' has changed the size of value");
  return after;
}

/** The gradients that a node's hook returned in place of its arguments. */
std::optional<std::vector<Tensor>> replacements(const Held& hook, const nb::object& result,
                                                const std::vector<Tensor>& before) {
  if (result.is_none()) return std::nullopt;
  const std::vector<Tensor> after = tensor_list(result);
  TERCEL_CHECK(after.size() == before.size(), RuntimeError, "hook '", name_of(hook.get()),
               "' has returned an incorrect number of values (got ", after.size(), ", but expected ", before.size(),
               ")");
  for (size_t i = 0; i < after.size(); ++i) {
    if (!after[i].defined() || !before[i].defined()) continue;
    TERCEL_CHECK(after[i].sizes() == before[i].sizes(), RuntimeError, "hook '", name_of(hook.get()),
                 "' has changed the size of value");
  }
  return after;
}

struct UndefinedGrad {};

/** Tells whether a tensor is still alive, without keeping it alive. */
struct WeakTensorRef {
  weak_intrusive_ptr<TensorImpl, tercel::detail::UndefinedTensor> tensor;
};

Tensor without_gradient(const Tensor& x) {
  const Tensor out = x.detach();
  if (should_record(x)) record("UndefinedGradBackward", out, {x}, [](BackwardCall&) {});
  return out;
}

class Handle {
 public:
  Handle(HookHandle handle, const std::shared_ptr<Held>& hook) : handle_(std::move(handle)), hook_(hook) {}

  /** Releases the function too, unless a running pass still needs it. */
  void remove() {
    handle_.remove();
    if (tercel::detail::current_pass() >= 0) return;
    if (const auto hook = hook_.lock()) hook->drop();
  }

 private:
  HookHandle handle_;
  std::weak_ptr<Held> hook_;
};

/** The result of a hook; None if another thread has removed it. */
nb::object call_hook(const Held& hook, const nb::object& argument) {
  const nb::object function = nb::borrow(hook.get());
  return function ? own(PyObject_CallOneArg(function.ptr(), argument.ptr())) : nb::none();
}

nb::object add_tensor_hook(nb::handle tensor, nb::handle function) {
  const Tensor& t = to_tensor(tensor, "register_hook");
  const auto held = hold(function);
  HookHandle hook = tercel::register_hook(t, [held](const Tensor& g) {
    const WithGil scope;
    return replacement(*held, call_hook(*held, own(wrap(g))), g);
  });
  const intrusive_ptr<Node> node = grad_fn(t);
  (node.defined() ? state_of(*node).hooks : leaf_hooks(tensor.ptr())).add(held);
  track(tensor.ptr());
  return nb::cast(Handle(std::move(hook), held));
}

nb::object add_leaf_hook(nb::handle tensor, nb::handle function) {
  const Tensor& t = to_tensor(tensor, "register_post_accumulate_grad_hook");
  const auto held = hold(function);
  HookHandle hook = register_post_accumulate_grad_hook(t, [held](const Tensor& leaf) {
    const WithGil scope;
    TERCEL_CHECK(call_hook(*held, own(wrap(leaf))).is_none(), RuntimeError,
                 "Tensor post accumulate grad hooks should return None.");
  });
  leaf_hooks(tensor.ptr()).add(held);
  track(tensor.ptr());
  return nb::cast(Handle(std::move(hook), held));
}

}  // namespace

Held::~Held() {
  if (interpreter_ends()) {
    object_.release();
    return;
  }
  const WithGil scope;
  object_.reset();
}

std::shared_ptr<Held> hold(nb::handle object) { return std::make_shared<Held>(nb::borrow(object)); }

void HookReferences::add(const std::shared_ptr<const Held>& hook) {
  std::erase_if(references_, [](const Reference& r) { return r.alive.expired(); });
  references_.push_back({hook, hook.get()});
}

int HookReferences::show(visitproc visit, void* arg) const {
  for (const Reference& r : references_) {
    // From here on releasing it waits for the GIL, in ~Held().
    if (!r.alive.expired()) Py_VISIT(r.hook->get());
  }
  return 0;
}

std::string name_of(PyObject* function) {
  const nb::object named = nb::borrow(function);
  if (nb::hasattr(named, "__name__")) return nb::str(named.attr("__name__")).c_str();
  return Py_TYPE(function)->tp_name;
}

nb::object tuple_of(const std::vector<Tensor>& tensors) {
  nb::object tuple = own(PyTuple_New(static_cast<Py_ssize_t>(tensors.size())));
  for (size_t i = 0; i < tensors.size(); ++i)
    PyTuple_SET_ITEM(tuple.ptr(), static_cast<Py_ssize_t>(i), own(wrap(tensors[i])).release().ptr());
  return tuple;
}

std::vector<Tensor> tensor_list(nb::handle o) {
  if (is_tensor(o.ptr())) return {tensor_of(o.ptr())};
  std::vector<Tensor> out;
  for (const nb::handle item : o) {
    TERCEL_CHECK(item.is_none() || is_tensor(item.ptr()), TypeError, "element of tensors must be a Tensor, not ",
                 Py_TYPE(item.ptr())->tp_name);
    out.push_back(item.is_none() ? Tensor() : tensor_of(item.ptr()));
  }
  return out;
}

PyObject* node_name(const Node& node) { return PyUnicode_FromString(node.name()); }

PyObject* node_next_functions(const Node& node) {
  nb::object tuple = own(PyTuple_New(static_cast<Py_ssize_t>(node.num_edges())));
  for (size_t i = 0; i < node.num_edges(); ++i) {
    const Edge& edge = node.edge(i);
    PyObject* next = edge.defined() ? from_node(edge.node) : Py_NewRef(Py_None);
    PyTuple_SET_ITEM(tuple.ptr(), static_cast<Py_ssize_t>(i), Py_BuildValue("(NI)", next, edge.output_nr));
  }
  return tuple.release().ptr();
}

PyObject* add_node_hook(Node& node, PyObject* hook, bool before) {
  const auto held = hold(hook);
  HookHandle handle;
  if (before) {
    handle = node.register_prehook([held](const std::vector<Tensor>& outputs) {
      const WithGil scope;
      return replacements(*held, call_hook(*held, tuple_of(outputs)), outputs);
    });
  } else {
    handle = node.register_hook([held](const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs) {
      const WithGil scope;
      const nb::object function = nb::borrow(held->get());
      if (!function) return std::optional<std::vector<Tensor>>();
      const nb::object first = tuple_of(inputs), second = tuple_of(outputs);
      return replacements(*held, own(PyObject_CallFunctionObjArgs(function.ptr(), first.ptr(), second.ptr(), nullptr)),
                          inputs);
    });
  }
  const nb::object hooks = nb::module_::import_("tercel.utils.hooks");
  state_of(node).hooks.add(held);
  return hooks.attr("RemovableHandle")(nb::cast(Handle(std::move(handle), held))).release().ptr();
}

PyObject* object_of_node(const intrusive_ptr<Node>& node) {
  NodeState& state = state_of(*node);
  if (state.object) return Py_NewRef(state.object);
  PyTypeObject* type = type_named(node->name());
  PyObject* object = own(type->tp_alloc(type, 0)).release().ptr();
  new (&reinterpret_cast<NodeObject*>(object)->node) intrusive_ptr<Node>(node);
  state.object = object;
  return object;
}

namespace {

/** The node of a grad_fn's object, a context among them; null if that of a context is gone. */
intrusive_ptr<Node> node_of_object(const char* op, nb::handle node) {
  const bool is_context = PyObject_TypeCheck(node.ptr(), context_type());
  TERCEL_CHECK(is_context || PyObject_TypeCheck(node.ptr(), g_node_type), RuntimeError, op,
               " expects an grad_fn, but got ", Py_TYPE(node.ptr())->tp_name);
  return is_context ? node_of_context(node.ptr()) : reinterpret_cast<NodeObject*>(node.ptr())->node;
}

/** A tensor that represents an output of a node in calls that take tensors: `like` without its own history. */
nb::object tensor_at_edge(nb::handle node, uint32_t output_nr, nb::handle like) {
  const Tensor out = to_tensor(like, "GradientEdge").detach();
  tercel::detail::set_history(out, node_of_object("GradientEdge", node), output_nr);
  return own(wrap(out));
}

}  // namespace

void register_node(nb::module_& m) {
  g_node_type = make_type(m, &g_spec);
  nb::class_<Handle>(m, "_HookHandle").def("remove", &Handle::remove);
  m.def("_add_hook", add_tensor_hook);
  m.def("_add_leaf_hook", add_leaf_hook);
  m.def("_gradient_edge", [](nb::handle t) {
    const Edge edge = gradient_edge(to_tensor(t, "get_gradient_edge"));
    return edge.defined() ? nb::make_tuple(own(from_node(edge.node)), edge.output_nr) : nb::make_tuple(nb::none(), 0);
  });
  m.def("_tensor_at_edge", tensor_at_edge);
  m.def("_increment_version", [](nb::handle t) { to_tensor(t, "increment_version").impl().bump_version(); });
  m.def("_pass_has_targets", tercel::detail::pass_has_targets);
  m.def("_current_graph_task_id", tercel::detail::current_pass);
  m.def("_will_engine_execute_node", [](nb::handle node) {
    const intrusive_ptr<Node> asked = node_of_object("_will_engine_execute_node", node);
    TERCEL_CHECK(tercel::detail::current_pass() >= 0, RuntimeError,
                 "_get_should_execute_nodes should only be called during the backward pass");
    if (!asked.defined()) return false;
    using tercel::detail::NodeFate;
    const NodeFate fate = tercel::detail::fate_in_pass(*asked);
    TERCEL_CHECK(fate != NodeFate::Captured, RuntimeError,
                 "A leaf node was passed to _will_engine_execute_node but we are currently running autograd.grad(). "
                 "This is currently not supported.");
    return fate == NodeFate::Runs;
  });
  m.def("_queue_callback", [](nb::handle callback) {
    tercel::detail::queue_callback([held = hold(callback)] {
      const WithGil scope;
      own(PyObject_CallNoArgs(held->get()));
    });
  });
  nb::class_<WeakTensorRef>(m, "_WeakTensorRef", "Tells whether a tensor is still alive, without keeping it alive.")
      .def("__init__", [](WeakTensorRef* self,
                          nb::handle t) { new (self) WeakTensorRef{to_tensor(t, "_WeakTensorRef").impl_ptr()}; })
      .def("expired", [](const WeakTensorRef& self) { return self.tensor.expired(); });
  nb::module_ functions = m.def_submodule("_functions");
  functions.attr("AccumulateGrad") = nb::borrow(reinterpret_cast<PyObject*>(type_named("AccumulateGrad")));
  nb::class_<UndefinedGrad>(functions, "UndefinedGrad", "Returns the tensor; no gradient flows back.")
      .def(nb::init<>())
      .def("__call__", [](const UndefinedGrad&, nb::handle x) {
        return own(wrap(without_gradient(to_tensor(x, "UndefinedGrad"))));
      });
}

}  // namespace tercel::python
