#include "python/src/call.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <map>

#include "python/src/op.h"
#include "python/src/package_name.h"
#include "tercel/ops/factories/factories.h"

namespace tercel::python {

void Call::check_layout(Layout layout) const {
  if (!op.takes(layout)) refuse_layout(op.name(), layout);
}

Tensor Operand::as_tensor() const {
  if (tensor) return *tensor;
  // At full width: a number promotes by its category only.
  const ScalarType dtype = scalar.is_complex() ? kComplex128 : (scalar.is_floating() ? kFloat64 : scalar.dtype());
  Tensor number = scalar_tensor(scalar, dtype);
  number.impl().set_wrapped_number(true);
  return number;
}

TensorOptions FactoryOptions::resolve(ScalarType otherwise) const {
  TensorOptions o(dtype.value_or(otherwise), device);
  o.requires_grad = requires_grad;
  o.layout = layout.value_or(Layout::Strided);
  TERCEL_CHECK(!requires_grad || is_differentiable(o.dtype), RuntimeError,
               "Only Tensors of floating point and complex dtype can require gradients");
  return o;
}

TensorOptions FactoryOptions::resolve(const Tensor& like) const {
  TensorOptions o = resolve(like.dtype());
  o.layout = layout.value_or(like.layout());
  if (!has_device) o.device = like.device();
  return o;
}

FactoryOptions From<FactoryOptions>::get(const Call& c, size_t i) {
  FactoryOptions out{};
  if (c[i] != Py_None) out.dtype = to_dtype(c[i]);
  if (c[i + 1] != Py_None) out.layout = to_layout(c[i + 1]);
  TERCEL_CHECK(!out.layout || *out.layout == Layout::Strided || c.op.takes(*out.layout), NotImplementedError,
               c.op.name(), "() is not implemented for sparse types: expected layout strided, but got ",
               to_string(out.layout.value_or(Layout::Strided)));
  out.has_device = c[i + 2] != Py_None;
  out.device = out.has_device ? to_device(c[i + 2]) : kCpu;
  out.requires_grad = to_bool(c[i + 4]);
  return out;
}

namespace {

/** "tercel.return_types.max(\nvalues=...,\nindices=...)": a tensor is printed in several lines. */
PyObject* repr_of_tuple(PyObject* tuple) {
  return at_border([&] {
    const nb::handle type(reinterpret_cast<PyObject*>(Py_TYPE(tuple)));
    const nb::object names = type.attr("__match_args__");
    const nb::object module = type.attr("__module__"), name = type.attr("__name__");
    std::string text = str_cat({to_text(module.ptr()), ".", to_text(name.ptr()), "("});
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i) {
      const nb::object value = own(PyObject_Repr(PyTuple_GET_ITEM(tuple, i)));
      text += str_cat({i > 0 ? ",\n" : "\n", to_text(PyTuple_GET_ITEM(names.ptr(), i)), "=", to_text(value.ptr())});
    }
    return own(PyUnicode_FromString((text + ")").c_str())).release().ptr();
  });
}

/** A result type, which refers to its field names. */
struct ReturnType {
  std::string name;
  std::vector<std::string> fields;
  PyTypeObject* type = nullptr;
};

/** The process-wide table. */
ReturnType& known_type(const std::string& name) {
  static auto* types = new std::map<std::string, ReturnType>;
  return (*types)[name];
}

/** The type tercel.return_types.<name>, made when it is first needed. */
template <class Names>
PyTypeObject* return_type(const std::string& name, const Names& names) {
  ReturnType& made = known_type(name);
  if (made.type) return made.type;
  made = {package_name() + ".return_types." + name, {names.begin(), names.end()}};
  std::vector<PyStructSequence_Field> fields;
  for (const std::string& field : made.fields) fields.push_back({field.c_str(), nullptr});
  fields.push_back({nullptr, nullptr});
  PyStructSequence_Desc description = {made.name.c_str(), nullptr, fields.data(), static_cast<int>(names.size())};
  const nb::object type = own(reinterpret_cast<PyObject*>(PyStructSequence_NewType(&description)));
#if PY_VERSION_HEX < 0x030a0000
  nb::list match_args;
  for (const std::string& field : made.fields) match_args.append(field.c_str());
  type.attr("__match_args__") = nb::tuple(match_args);
#endif
  made.type = reinterpret_cast<PyTypeObject*>(nb::object(type).release().ptr());
  made.type->tp_repr = repr_of_tuple;
  return made.type;
}

}  // namespace

PyObject* named_tuple(const Call& call, Span<const char*> names, Span<Tensor> values) {
  nb::object tuple =
      own(PyStructSequence_New(return_type(call.has_out ? call.op.name() + "_out" : call.op.name(), names)));
  for (size_t i = 0; i < values.size(); ++i)
    PyStructSequence_SetItem(tuple.ptr(), static_cast<Py_ssize_t>(i), wrap(values[i]));
  return tuple.release().ptr();
}

void register_return_types(nb::module_& m) {
  m.def("_return_type", [](const std::string& name, const std::vector<std::string>& names) {
    return nb::borrow(reinterpret_cast<PyObject*>(return_type(name, names)));
  });
}

}  // namespace tercel::python
