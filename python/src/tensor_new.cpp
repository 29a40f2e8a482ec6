// tercel.Tensor(...), the old constructor: sizes, data, a storage, or another tensor.
#include "python/src/data.h"
#include "tercel/ops/common/copy.h"

namespace tercel::python {

namespace {

Tensor of_argument(PyObject* o, ScalarType type) {
  if (is_storage(o)) return tensor_from_data(o, type, true);
  if (is_tensor(o)) {
    const Tensor& other = tensor_of(o);
    TERCEL_CHECK(other.dtype() == type, TypeError, "expected ", legacy_name(type), "Tensor, but got ",
                 legacy_name(other.dtype()), "Tensor");
    return other.detach();
  }
  if (is_int_like(o)) return empty({to_int(o)}, type);
  const auto* as_size = reinterpret_cast<PyTypeObject*>(nb::module_::import_("tercel._C").attr("Size").ptr());
  if (Py_TYPE(o) == as_size) return empty(to_ints(o), type);
  TERCEL_CHECK(PySequence_Check(o) || is_numeric_buffer(o), TypeError, "new(): data must be a sequence (got ",
               Py_TYPE(o)->tp_name, ")");
  return tensor_from_data(o, type, false);
}

}  // namespace

/** What the arguments of Tensor(...) or FloatTensor(...) describe, in the given dtype. */
Tensor legacy_tensor(PyObject* args, PyObject* kwargs, ScalarType type) {
  nb::object data;
  if (kwargs && PyDict_GET_SIZE(kwargs) > 0) {
    if (PyObject* device = PyDict_GetItemString(kwargs, "device"); device && device != Py_None)
      TERCEL_CHECK(to_device(device).is_cpu(), RuntimeError, "legacy constructor expects device type: cpu but device ",
                   "type: ", to_string(to_device(device).type), " was passed");
    if (PyObject* size = PyDict_GetItemString(kwargs, "size")) return empty(to_ints(nb::borrow(size).ptr()), type);
    for (const char* name : {"data", "other", "storage"})
      if (PyObject* given = PyDict_GetItemString(kwargs, name)) data = nb::borrow(given);
  }
  const Py_ssize_t n = PyTuple_GET_SIZE(args);
  if (kwargs && PyDict_GetItemString(kwargs, "device") && n == 1 && is_tensor(PyTuple_GET_ITEM(args, 0)))
    throw_error<RuntimeError>(
        {"Legacy tensor constructor of the form tercel.Tensor(tensor, device=device) is not "
         "supported.  Use tercel.tensor(...) or tercel.as_tensor(...) instead."});
  if (data) return of_argument(data.ptr(), type);
  if (n == 0) return empty({0}, type);
  if (n == 1) return of_argument(PyTuple_GET_ITEM(args, 0), type);
  // As in all lists of sizes, a bool counts as an int except as the first element.
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* const size = PyTuple_GET_ITEM(args, i);
    TERCEL_CHECK(is_int_like(size) || (i > 0 && PyBool_Check(size)), TypeError,
                 "new() received an invalid combination of arguments: sizes must be ints, not ",
                 Py_TYPE(size)->tp_name);
  }
  return empty(to_ints(args), type);
}

PyObject* tensor_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return at_border([&] { return wrap_as(type, legacy_tensor(args, kwargs, default_dtype())); });
}

void register_legacy(nb::module_& m) {
  // Called by tercel.FloatTensor(...), which is written in Python (_tensor.py).
  m.def("_legacy_tensor", [](nb::handle dtype, const nb::args& args, const nb::kwargs& kwargs) {
    return own(wrap(legacy_tensor(args.ptr(), kwargs.ptr(), to_dtype(dtype.ptr()))));
  });
  m.def(
      "_make_subclass",
      [](nb::handle type, nb::handle data, bool requires_grad) {
        TERCEL_CHECK(
            PyType_Check(type.ptr()) && PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type.ptr()), tensor_type),
            TypeError, "cls must be a type (got ", Py_TYPE(type.ptr())->tp_name, ")");
        Tensor t = to_tensor(data, "_make_subclass").detach();
        t.impl().set_allow_tensor_metadata_change(true);
        if (requires_grad) t.requires_grad_(true);
        return own(wrap_as(reinterpret_cast<PyTypeObject*>(type.ptr()), std::move(t)));
      },
      nb::arg("cls"), nb::arg("data"), nb::arg("require_grad") = false);
  m.def(
      "_as_subclass",
      [](nb::handle type, nb::handle data) {
        TERCEL_CHECK(PyType_Check(type.ptr()), TypeError, "as_subclass(): argument 'cls' must be type, not ",
                     Py_TYPE(type.ptr())->tp_name);
        TERCEL_CHECK(
            PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type.ptr()), tensor_type), RuntimeError,
            "Creating a Tensor subclass from a class that does not inherit from Tensor is not possible. Make sure "
            "your class inherits from Tensor.");
        // A new object: an alias of the tensor, with its history.
        const Tensor& t = to_tensor(data, "as_subclass");
        return own(wrap_as(reinterpret_cast<PyTypeObject*>(type.ptr()),
                           t.as_strided(t.sizes(), t.strides(), t.storage_offset())));
      },
      nb::arg("cls").none(), nb::arg("data"));
}

}  // namespace tercel::python
