#include "python/src/autograd.h"

#include <map>
#include <string>

#include "python/src/op.h"
#include "tercel/autograd/autograd.h"
#include "tercel/autograd/autograd_meta.h"
#include "tercel/ops/row_gradient.h"

namespace tercel::python {

namespace {

struct NodeObject {
  PyObject_HEAD intrusive_ptr<Node> node;
};

PyTypeObject* g_node_type = nullptr;

Node& node_of(PyObject* o) { return *reinterpret_cast<NodeObject*>(o)->node; }

void dealloc(PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  reinterpret_cast<NodeObject*>(o)->node.~intrusive_ptr();
  type->tp_free(o);
  Py_DECREF(type);
}

PyObject* name(PyObject* self, PyObject*) { return PyUnicode_FromString(node_of(self).name()); }
PyObject* next_functions(PyObject* self, void*) {
  return at_border([&] {
    const Node& node = node_of(self);
    nb::object tuple = own(PyTuple_New(static_cast<Py_ssize_t>(node.num_edges())));
    for (size_t i = 0; i < node.num_edges(); ++i) {
      const Edge& edge = node.edge(i);
      PyObject* next = edge.defined() ? from_node(edge.node) : Py_NewRef(Py_None);
      PyTuple_SET_ITEM(tuple.ptr(), static_cast<Py_ssize_t>(i), Py_BuildValue("(NI)", next, edge.output_nr));
    }
    return tuple.release().ptr();
  });
}
/** Two objects of one node are equal. */
PyObject* compare(PyObject* a, PyObject* b, int op) {
  if ((op != Py_EQ && op != Py_NE) || !PyObject_TypeCheck(b, g_node_type)) return Py_NewRef(Py_NotImplemented);
  return PyBool_FromLong((&node_of(a) == &node_of(b)) == (op == Py_EQ));
}
Py_hash_t hash(PyObject* a) { return static_cast<Py_hash_t>(reinterpret_cast<uintptr_t>(&node_of(a)) >> 4); }

PyObject* repr(PyObject* self) { return PyUnicode_FromFormat("<%s object at %p>", node_of(self).name(), self); }

PyMethodDef g_methods[] = {
    {"name", name, METH_NOARGS, "The name of the node, such as AddBackward0."},
    {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef g_attributes[] = {
    {"next_functions", next_functions, nullptr, "For each input the node that made it, and which output it was.",
     nullptr},
    {},
};
PyType_Slot g_slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
    {Py_tp_methods, g_methods},
    {Py_tp_getset, g_attributes},
    {Py_tp_richcompare, reinterpret_cast<void*>(compare)},
    {Py_tp_hash, reinterpret_cast<void*>(hash)},
    {Py_tp_repr, reinterpret_cast<void*>(repr)},
    {0, nullptr},
};
PyType_Spec g_spec = {"tercel.autograd.Node", sizeof(NodeObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, g_slots};

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

/** A hook that calls a Python function; its errors end the pass. */
struct PythonHook {
  nb::object function;
  explicit PythonHook(nb::object f) : function(std::move(f)) {}
  ~PythonHook() {
    if (interpreter_ends()) {
      function.release();
      return;
    }
    const WithGil scope;
    function.reset();
  }
  PythonHook(const PythonHook&) = delete;
  PythonHook& operator=(const PythonHook&) = delete;

  Tensor call(const Tensor& gradient) const {
    const WithGil scope;
    if (!function) return {};
    const nb::object argument = own(wrap(gradient));
    const nb::object result = own(PyObject_CallOneArg(function.ptr(), argument.ptr()));
    if (result.is_none()) return {};
    TERCEL_CHECK(is_tensor(result.ptr()), TypeError, "expected Variable, but hook returned '",
                 Py_TYPE(result.ptr())->tp_name, "'");
    return tensor_of(result.ptr());
  }
};

/** Adds the hook; the handle's remove() empties it. */
nb::object add_python_hook(nb::handle tensor, nb::object function) {
  const Tensor& t = tensor_of(tensor.ptr());
  TERCEL_CHECK(t.requires_grad(), RuntimeError, "cannot register a hook on a tensor that doesn't require gradient");
  auto cell = nb::cast(nb::list());
  nb::list holder = nb::borrow<nb::list>(cell);
  holder.append(function);
  // The hook looks into a list that the handle can empty.
  const nb::object caller = nb::cpp_function([holder](nb::handle gradient) -> nb::object {
    if (nb::len(holder) == 0) return nb::none();
    return holder[0](gradient);
  });
  register_hook(t, [hook = std::make_shared<PythonHook>(caller)](const Tensor& g) { return hook->call(g); });
  return nb::object(holder);
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

void run_backward(nb::handle tensors, nb::handle gradients, bool retain_graph, bool create_graph, nb::handle inputs) {
  const std::vector<Tensor> outputs = tensor_list(tensors), given = tensor_list(gradients), with = tensor_list(inputs);
  const WithoutGil scope(true);
  backward(outputs, given, retain_graph, create_graph, with);
}

nb::object run_grad(nb::handle outputs, nb::handle inputs, nb::handle gradients, bool retain_graph, bool create_graph,
                    bool allow_unused) {
  const std::vector<Tensor> of = tensor_list(outputs), with = tensor_list(inputs), given = tensor_list(gradients);
  std::vector<Tensor> result;
  {
    const WithoutGil scope(true);
    const std::vector<Gradient> found = grad(of, with, given, retain_graph, create_graph, allow_unused);
    for (size_t i = 0; i < found.size(); ++i)
      result.push_back(found[i].is_rows() ? dense_gradient(found[i], with[i].sizes()) : found[i].values);
  }
  return own(wrap_tuple(result));
}

}  // namespace

PyObject* from_node(const intrusive_ptr<Node>& node) {
  PyTypeObject* type = type_named(node->name());
  PyObject* object = own(type->tp_alloc(type, 0)).release().ptr();
  new (&reinterpret_cast<NodeObject*>(object)->node) intrusive_ptr<Node>(node);
  return object;
}

void register_autograd(nb::module_& m) {
  g_node_type = make_type(m, &g_spec);
  m.def(
      "is_grad_enabled", [] { return grad_enabled(); }, "Whether operations are recorded on this thread.");
  m.def("_set_grad_enabled", [](bool enabled) { tercel::detail::t_grad_enabled = enabled; });
  m.def("_run_backward", run_backward);
  m.def("_run_grad", run_grad);
  m.def("_add_hook", add_python_hook);
}

Span<Entry> autograd_ops() {
  static const Entry table[] = {
      entry(
          "requires_grad_(Tensor input, bool requires_grad=True)",
          [](const Tensor& x, bool wanted) -> Tensor { return Tensor(x).requires_grad_(wanted); }, kMethod | kCheap,
          "Records operations on it from now on."),
      entry(
          "detach(Tensor input)", [](const Tensor& x) { return x.detach(); }, kBoth | kCheap,
          "The same data without history."),
      entry(
          "detach_(Tensor input)", [](const Tensor& x) -> Tensor { return detach_(x); }, kBoth | kCheap,
          "Forgets the history."),
      entry(
          "retain_grad(Tensor input)", [](const Tensor& x) { retain_grad(x); }, kMethod | kCheap,
          "Makes backward keep the gradient of an intermediate result."),
  };
  return table;
}

}  // namespace tercel::python
