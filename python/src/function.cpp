// Functions with a backward written in Python: tercel.autograd.Function.
//
// Note [Contexts]
// A call of a Function makes a node and a context, an object of the class that Python sees as y.grad_fn. The node owns
// the context, and the context refers to the node weakly, since otherwise both would leak: a context whose graph is
// gone only keeps its attributes. Requests of forward() (tensors to save, dirty ones ...) are stored in attributes of
// the context, which are read when it has returned.
#include <algorithm>
#include <string>

#include "python/src/autograd.h"
#include "python/src/tensor_object.h"
#include "tercel/autograd/function.h"
#include "tercel/core/tensor_meta.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/common/sum_to_size.h"
#include "tercel/ops/factories/factories.h"

namespace tercel::python {

namespace {

struct ContextObject {
  PyObject_HEAD weak_intrusive_ptr<Node> node;
};

PyTypeObject* g_context_type = nullptr;

ContextObject& cast(PyObject* o) { return *reinterpret_cast<ContextObject*>(o); }

/** "MyFunctionBackward". */
std::string class_name(PyObject* type) { return nb::str(nb::borrow(type).attr("__name__")).c_str(); }

class PythonNode final : public CustomNode {
 public:
  PythonNode(std::string name, const std::vector<Tensor>& inputs, nb::object owner, std::vector<bool> tensor_arguments)
      : CustomNode(std::move(name), inputs),
        own_context_(std::make_shared<const Held>(std::move(owner))),
        is_tensor_(std::move(tensor_arguments)),
        inputs_(inputs.size()) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      inputs_[i] = TensorMeta(inputs[i]);
    }
  }

  /** The context may outlive the graph: drops the edges, which would keep all of it alive. */
  void release_resources() override {
    release_saved();
    for (size_t i = 0; i < num_edges(); ++i) tercel::detail::release_node(std::move(edge(i).node));
    own_context_.reset();
  }

  PyObject* python_context() const { return own_context_->get(); }

  std::vector<Tensor> backward(const std::vector<Tensor>& grads) override {
    const WithGil scope;
    const nb::object given = tuple_of(grads);
    const nb::object apply = nb::borrow(python_context()).attr("apply");
    nb::object made = own(PyObject_CallObject(apply.ptr(), given.ptr()));
    if (!PyTuple_Check(made.ptr())) made = own(PyTuple_Pack(1, made.ptr()));
    return gradients_of(made.ptr());
  }

  /** Calls jvp() of the user's class, where it has one. */
  bool jvp(Span<Tensor> tangents, std::vector<Tensor>& out) override {
    const WithGil scope;
    const nb::object context = nb::borrow(python_context());
    if (!nb::cast<bool>(context.attr("_has_jvp"))) return false;
    const bool zeros = nb::cast<bool>(context.attr("materialize_grads"));
    nb::object given = own(PyTuple_New(static_cast<Py_ssize_t>(is_tensor_.size())));
    for (size_t i = 0, number = 0; i < is_tensor_.size(); ++i) {
      const bool has_one = is_tensor_[i] && (tangents[number].defined() || zeros);
      PyObject* tangent =
          !has_one ? Py_NewRef(Py_None)
          : tangents[number].defined()
              ? own(wrap(tangents[number])).release().ptr()
              : own(wrap(tercel::zeros(inputs_[number].sizes, inputs_[number].options))).release().ptr();
      PyTuple_SET_ITEM(given.ptr(), static_cast<Py_ssize_t>(i), tangent);
      number += is_tensor_[i] ? 1 : 0;
    }
    runs_jvp_ = true;
    PyObject* returned = PyObject_CallObject(context.attr("_forward_jvp").ptr(), given.ptr());
    runs_jvp_ = false;
    nb::object made = own(returned);
    if (!PyTuple_Check(made.ptr())) made = own(PyTuple_Pack(1, made.ptr()));
    TERCEL_CHECK(PyTuple_GET_SIZE(made.ptr()) == num_outputs(), RuntimeError, "Function ", name(),
                 ": jvp() returned an incorrect number of tangents (expected ", num_outputs(), ", got ",
                 PyTuple_GET_SIZE(made.ptr()), ")");
    for (size_t i = 0; i < num_outputs(); ++i) {
      PyObject* item = PyTuple_GET_ITEM(made.ptr(), static_cast<Py_ssize_t>(i));
      TERCEL_CHECK(is_tensor(item) || item == Py_None, TypeError, "jvp(): expected Tensor or None (got ",
                   Py_TYPE(item)->tp_name, ")");
      out.push_back(item == Py_None ? Tensor() : tensor_of(item));
    }
    return true;
  }
  /** Whether jvp() runs: the context's saved tensors are then those saved for it. */
  bool runs_jvp() const { return runs_jvp_; }

 private:
  std::vector<Tensor> gradients_of(PyObject* made) const {
    const auto at = [made](size_t i) { return PyTuple_GET_ITEM(made, static_cast<Py_ssize_t>(i)); };
    auto count = static_cast<size_t>(PyTuple_GET_SIZE(made));
    while (count > is_tensor_.size() && at(count - 1) == Py_None) --count;
    TERCEL_CHECK(count == is_tensor_.size(), RuntimeError, "function ", name(),
                 " returned an incorrect number of gradients (expected ", is_tensor_.size(), ", got ", count, ")");
    std::vector<Tensor> out;
    for (size_t i = 0; i < count; ++i) {
      if (!is_tensor_[i]) {
        TERCEL_CHECK(at(i) == Py_None, RuntimeError, "function ", name(),
                     " returned a gradient different from None at position ", i + 1,
                     ", but the corresponding forward input was not a Variable");
        continue;
      }
      TERCEL_CHECK(at(i) == Py_None || is_tensor(at(i)), TypeError, "expected Variable or None (got ",
                   Py_TYPE(at(i))->tp_name, ")");
      const size_t number = out.size();
      out.push_back(at(i) == Py_None ? Tensor() : fitted(tensor_of(at(i)), inputs_[number]));
    }
    return out;
  }

  /** Whether a tensor of the sizes would be broadcast to the others. */
  static bool is_expandable_to(IntSpan sizes, IntSpan to) {
    if (sizes.size() > to.size()) return false;
    const size_t lead = to.size() - sizes.size();
    for (size_t d = 0; d < sizes.size(); ++d)
      if (sizes[d] != 1 && sizes[d] != to[lead + d]) return false;
    return true;
  }
  /** The gradient of an input that was broadcast, or of another dtype. */
  static Tensor fitted(const Tensor& gradient, const TensorMeta& input) {
    Tensor out = gradient;
    if (out.sizes() != IntSpan(input.sizes) && is_expandable_to(input.sizes, out.sizes()))
      out = sum_to_size(out, input.sizes);
    if (out.dtype() != input.dtype() && out.is_complex() == is_complex(input.dtype())) out = to(out, input.dtype());
    return out;
  }

  std::shared_ptr<const Held> own_context_;
  std::vector<bool> is_tensor_;     // one for each argument of forward()
  std::vector<TensorMeta> inputs_;  // of those that are
  bool runs_jvp_ = false;
};

// ---- contexts

/** The context's node; RuntimeError once the graph is gone. */
intrusive_ptr<Node> node_of(PyObject* self, const char* attribute) {
  intrusive_ptr<Node> node = cast(self).node.lock();
  TERCEL_CHECK(node.defined(), RuntimeError, "Attribute '", attribute, "' is invalid for this instance of ",
               Py_TYPE(self)->tp_name, ": it is not, or no longer, part of a graph");
  return node;
}

PyObject* context_new(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* object = type->tp_alloc(type, 0);
  if (object) new (&cast(object).node) weak_intrusive_ptr<Node>();
  return object;
}
void context_dealloc(PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  cast(o).node.~weak_intrusive_ptr();
  type->tp_free(o);
  Py_DECREF(type);
}

PyObject* saved_tensors(PyObject* self, void*) {
  return at_border([&] {
    const intrusive_ptr<Node> node = cast(self).node.lock();
    if (!node.defined()) tercel::detail::refuse_second_backward();
    const auto& own_node = static_cast<PythonNode&>(*node);
    if (own_node.runs_jvp())
      if (nb::object saved = nb::borrow(self).attr("saved_for_forward"); !saved.is_none()) return saved.release().ptr();
    return tuple_of(own_node.saved_tensors()).release().ptr();
  });
}
PyObject* raw_saved(PyObject* self, void*) {
  return at_border([&] {
    const intrusive_ptr<Node> node = cast(self).node.lock();
    if (!node.defined()) tercel::detail::refuse_second_backward();
    return raw_saved_tensors(node).release().ptr();
  });
}
PyObject* next_functions(PyObject* self, void*) {
  return at_border([&] { return node_next_functions(*node_of(self, "next_functions")); });
}
PyObject* name(PyObject* self, PyObject*) {
  return at_border(
      [&] { return PyUnicode_FromString(class_name(reinterpret_cast<PyObject*>(Py_TYPE(self))).c_str()); });
}
PyObject* sequence_nr(PyObject* self, PyObject*) {
  return at_border([&] { return PyLong_FromUnsignedLongLong(node_of(self, "_sequence_nr")->sequence()); });
}
PyObject* register_hook(PyObject* self, PyObject* hook) {
  return at_border([&] { return add_node_hook(*node_of(self, "register_hook"), hook, false); });
}
PyObject* register_prehook(PyObject* self, PyObject* hook) {
  return at_border([&] { return add_node_hook(*node_of(self, "register_prehook"), hook, true); });
}

PyObject* has_node(PyObject* self, PyObject*) { return PyBool_FromLong(cast(self).node.lock().defined()); }

PyMethodDef g_methods[] = {
    {"_has_node", has_node, METH_NOARGS, "Whether the node is still part of the graph."},
    {"name", name, METH_NOARGS, "The name of the node, such as MyFunctionBackward."},
    {"_sequence_nr", sequence_nr, METH_NOARGS, "A number that increases with each node recorded on a thread."},
    {"register_hook", register_hook, METH_O,
     "Calls hook(grad_inputs, grad_outputs) after backward(); its result, if any, replaces grad_inputs."},
    {"register_prehook", register_prehook, METH_O,
     "Calls hook(grad_outputs) before backward(); its result, if any, replaces grad_outputs."},
    {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef g_attributes[] = {
    {"saved_tensors", saved_tensors, nullptr, "The tensors that forward() passed to save_for_backward().", nullptr},
    {"_raw_saved_tensors", raw_saved, nullptr, "The saved tensors as SavedTensor objects, which accept hooks.",
     nullptr},
    {"next_functions", next_functions, nullptr,
     "For each tensor argument, the node that produced it and the index of "
     "that node's output.",
     nullptr},
    {},
};
PyType_Slot g_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(context_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(context_dealloc)},
    {Py_tp_methods, g_methods},
    {Py_tp_getset, g_attributes},
    {0, nullptr},
};
PyType_Spec g_spec = {"tercel._C._FunctionBase", sizeof(ContextObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                      g_slots};

// ---- calls

/** The tensors of an attribute of the context; None is allowed where `none` is. */
std::vector<Tensor> tensors_in(const nb::object& context, const char* attribute, const char* complaint, bool none) {
  std::vector<Tensor> out;
  const nb::object value = context.attr(attribute);
  if (value.is_none()) return out;
  TERCEL_CHECK(PyTuple_Check(value.ptr()), TypeError, attribute, " attribute is expected to be a tuple but is ",
               Py_TYPE(value.ptr())->tp_name);
  for (const nb::handle item : value) {
    TERCEL_CHECK(is_tensor(item.ptr()) || (none && item.is_none()), TypeError, complaint, out.size(), " is of type ",
                 Py_TYPE(item.ptr())->tp_name);
    out.push_back(item.is_none() ? Tensor() : tensor_of(item.ptr()));
  }
  return out;
}

/** Reads the requests of forward() from the context and clears them, so that it does not own its results. */
void take_over(const nb::object& context, FunctionContext& to, const std::vector<Tensor>& inputs, bool records) {
  if (records)
    to.save_for_backward(
        tensors_in(context, "to_save", "save_for_backward can only save variables, but argument ", true));
  std::vector<Tensor> dirty =
      tensors_in(context, "dirty_tensors", "mark_dirty can only accept variables, but argument ", false);
  const size_t given = dirty.size();
  std::erase_if(dirty, [&](const Tensor& t) {
    return std::none_of(inputs.begin(), inputs.end(), [&](const Tensor& input) { return input.is_same(t); });
  });
  if (dirty.size() != given &&
      PyErr_WarnEx(
          PyExc_UserWarning,
          "Only input Tensors should be given to ctx.mark_dirty(). If a Tensor is not an input, there is no need "
          "to pass it to mark_dirty().",
          1) < 0)
    raise_pending();
  to.mark_dirty(std::move(dirty));
  to.mark_non_differentiable(tensors_in(
      context, "non_differentiable", "mark_non_differentiable only accepts variable arguments, but argument ", false));
  to.set_materialize_grads(nb::cast<bool>(context.attr("materialize_grads")));
  for (const char* told : {"to_save", "dirty_tensors", "non_differentiable"})
    if (!context.attr(told).is_none()) context.attr(told) = nb::none();
}

/** The results of forward(), with tensors as outputs of the node. */
nb::object wrapped(const intrusive_ptr<CustomNode>& node, const nb::object& context, const std::vector<Tensor>& inputs,
                   const nb::object& returned, bool records) {
  const bool several = PyTuple_Check(returned.ptr());
  const nb::object all = several ? returned : own(PyTuple_Pack(1, returned.ptr()));
  std::vector<Tensor> outputs;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(all.ptr()); ++i) {  // a subclass may define its own iterator
    PyObject* item = PyTuple_GET_ITEM(all.ptr(), i);
    outputs.push_back(is_tensor(item) ? tensor_of(item) : Tensor());
  }
  const std::vector<Tensor> results = CustomNode::wrap_outputs(node, inputs, std::move(outputs), records);
  nb::object tuple = own(PyTuple_New(PyTuple_GET_SIZE(all.ptr())));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(all.ptr()); ++i) {
    const Tensor& result = results[static_cast<size_t>(i)];
    PyTuple_SET_ITEM(tuple.ptr(), i,
                     !result.defined() ? Py_NewRef(PyTuple_GET_ITEM(all.ptr(), i))
                     : records         ? own(wrap_result(result, context.ptr())).release().ptr()
                                       : own(wrap(result)).release().ptr());
  }
  return several ? tuple : own(Py_NewRef(PyTuple_GET_ITEM(tuple.ptr(), 0)));
}

/** apply() of a Function class: forward(context, *arguments), recorded. */
nb::object apply_function(const nb::object& type, const nb::tuple& arguments) {
  const nb::object backward_type = type.attr("_backward_cls");
  nb::object context = own(PyObject_CallNoArgs(backward_type.ptr()));
  TERCEL_CHECK(PyObject_TypeCheck(context.ptr(), g_context_type), TypeError, "expected a Function whose _backward_cls ",
               "makes a context, not an object of type ", Py_TYPE(context.ptr())->tp_name);
  std::vector<Tensor> inputs;
  std::vector<bool> is_tensor_argument;
  bool records = false;
  nb::object needs = own(PyTuple_New(PyTuple_GET_SIZE(arguments.ptr())));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(arguments.ptr()); ++i) {
    PyObject* argument = PyTuple_GET_ITEM(arguments.ptr(), i);
    is_tensor_argument.push_back(is_tensor(argument));
    const bool recorded = is_tensor(argument) && should_record(tensor_of(argument));
    const bool needed = recorded || (is_tensor(argument) && tensor_of(argument).requires_grad());
    PyTuple_SET_ITEM(needs.ptr(), i, PyBool_FromLong(needed));
    if (is_tensor(argument)) inputs.push_back(tensor_of(argument));
    records |= recorded;
  }
  context.attr("needs_input_grad") = needs;
  const intrusive_ptr<CustomNode> node =
      make_intrusive<PythonNode>(class_name(backward_type.ptr()), inputs, context, std::move(is_tensor_argument));
  cast(context.ptr()).node = weak_intrusive_ptr<Node>(intrusive_ptr<Node>(node));
  nb::object returned;
  {
    const NoRecordGuard no_record;
    returned = type.attr("_run_forward")(context, arguments);
  }
  take_over(context, node->context(), inputs, records);
  nb::object results = wrapped(node, context, inputs, returned, records);
  if (!context.attr("saved_for_forward").is_none()) context.attr("saved_for_forward") = nb::none();
  return results;
}

}  // namespace

PyObject* from_node(const intrusive_ptr<Node>& node) {
  if (const auto* custom = dynamic_cast<const PythonNode*>(node.get())) return Py_NewRef(custom->python_context());
  return object_of_node(node);
}

bool owns_context_alone(const Node* node, PyObject* context) {
  const weak_intrusive_ptr<Node>& own_node = cast(context).node;
  return node && own_node.unsafe_get() == node && own_node.use_count() == 1;
}

PyTypeObject* context_type() { return g_context_type; }

intrusive_ptr<Node> node_of_context(PyObject* context) {
  TERCEL_CHECK(PyObject_TypeCheck(context, g_context_type), TypeError, "expected a node of the graph, not ",
               Py_TYPE(context)->tp_name);
  return cast(context).node.lock();
}

void register_function(nb::module_& m) {
  g_context_type = make_type(m, &g_spec);
  m.def("_apply_function", apply_function);
}

}  // namespace tercel::python
