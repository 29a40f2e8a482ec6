#include "python/src/convert.h"

#include <cstring>
#include <filesystem>

#include "python/src/data.h"
#include "tercel/ops/common/copy.h"
#include "tercel/util/file.h"

namespace tercel::python {

namespace {

bool is_zero_dim(PyObject* o) { return is_tensor(o) && tensor_of(o).dim() == 0 && !tensor_of(o).requires_grad(); }

[[noreturn]] void refuse_int_range() {
  PyErr_Clear();
  throw_error<RuntimeError>({"Overflow when unpacking long"});
}

}  // namespace

Scalar to_complex_number(PyObject* o) {
  const Py_complex value = PyComplex_AsCComplex(o);
  if (value.real == -1.0 && PyErr_Occurred()) raise_pending();
  return Complex<double>(value.real, value.imag);
}

char numpy_scalar_kind(PyObject* o) {
  // NumPy's own types are static: a heap type of the same name could run Python code.
  if (std::strncmp(Py_TYPE(o)->tp_name, "numpy.", 6) != 0 || PyType_HasFeature(Py_TYPE(o), Py_TPFLAGS_HEAPTYPE) ||
      is_ndarray(o))
    return 0;
  PyObject* dtype = PyObject_GetAttrString(o, "dtype");
  PyObject* kind = dtype ? PyObject_GetAttrString(dtype, "kind") : nullptr;
  const char* text = kind ? PyUnicode_AsUTF8(kind) : nullptr;
  const char result = text && std::strchr("biufc", text[0]) ? text[0] : '\0';
  Py_XDECREF(kind);
  Py_XDECREF(dtype);
  PyErr_Clear();
  return result;
}

namespace {

/** An array of one integer and no dimensions. */
bool is_integer_array(PyObject* o) {
  const nb::handle array(o);
  const nb::object kind = array.attr("dtype").attr("kind");
  const std::string_view text = to_text(kind.ptr());
  return nb::cast<int>(array.attr("ndim")) == 0 && (text == "i" || text == "u");
}

}  // namespace

bool is_int_like_slow(PyObject* o) {
  if (PyLong_Check(o)) return !PyBool_Check(o);
  if (is_tensor(o)) return is_zero_dim(o) && is_integral(tensor_of(o).dtype(), false);
  if (is_ndarray(o)) return is_integer_array(o);
  return PyIndex_Check(o);
}

bool is_number(PyObject* o) {
  return PyFloat_Check(o) || PyLong_Check(o) || PyComplex_Check(o) || numpy_scalar_kind(o) != 0;
}
bool is_scalar_like_slow(PyObject* o) { return is_tensor(o) ? is_zero_dim(o) : is_number(o); }
bool is_float_like(PyObject* o) {
  if (PyFloat_Check(o) || PyLong_Check(o)) return true;
  if (is_tensor(o)) return is_zero_dim(o);
  const char kind = numpy_scalar_kind(o);
  return kind != 0 && kind != 'c';
}
bool is_bool_like(PyObject* o) { return PyBool_Check(o) || numpy_scalar_kind(o) == 'b'; }

int64_t to_int(PyObject* o) {
  if (!PyLong_Check(o)) {
    if (is_tensor(o)) return item(tensor_of(o)).to_int64();
    const nb::object index = own(PyNumber_Index(o));
    return to_int(index.ptr());
  }
  const long long value = PyLong_AsLongLong(o);
  if (value == -1 && PyErr_Occurred()) refuse_int_range();
  return value;
}

Scalar to_wide_int(PyObject* o) {
  if (!PyLong_Check(o)) return to_wide_int(own(PyNumber_Index(o)).ptr());
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(o, &overflow);
  if (overflow == 0) return value;
  const unsigned long long above = overflow > 0 ? PyLong_AsUnsignedLongLong(o) : 0;
  if (overflow < 0 || PyErr_Occurred()) refuse_int_range();
  return above;
}

double to_float(PyObject* o) {
  if (is_tensor(o)) return real_number(item(tensor_of(o)), kFloat64).to_double();
  const double value = PyFloat_AsDouble(o);
  if (value == -1.0 && PyErr_Occurred()) raise_pending();
  return value;
}

bool to_bool(PyObject* o) {
  if (o == Py_True) return true;
  if (o == Py_False) return false;
  const int truth = PyObject_IsTrue(o);
  if (truth < 0) raise_pending();
  return truth != 0;
}

Scalar to_scalar(PyObject* o) {
  if (PyFloat_Check(o)) return PyFloat_AS_DOUBLE(o);
  if (PyBool_Check(o)) return o == Py_True;
  if (PyLong_Check(o)) return to_wide_int(o);
  if (is_tensor(o)) return item(tensor_of(o));
  if (PyComplex_Check(o)) return to_complex_number(o);
  switch (numpy_scalar_kind(o)) {
    case 'b': return to_bool(o);
    case 'f': return to_float(o);
    case 'c': return to_complex_number(o);
    default: return to_wide_int(o);
  }
}

Scalar real_number(Scalar value, ScalarType wanted) {
  TERCEL_CHECK(!value.is_complex() || value.to_complex().im == 0, RuntimeError, "value cannot be converted to type ",
               wanted == kInt64 ? "int64_t" : "double", " without overflow");
  return value.is_complex() ? Scalar(value.to_complex().re) : value;
}

std::string_view to_text(PyObject* o) {
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(o, &size);
  if (!text) raise_pending();
  return {text, static_cast<size_t>(size)};
}

std::string to_path(nb::handle o) {
  PyObject* encoded = nullptr;
  if (!PyUnicode_FSConverter(o.ptr(), &encoded)) raise_pending();
  const nb::object owner = nb::steal(encoded);
  return {PyBytes_AS_STRING(encoded), static_cast<size_t>(PyBytes_GET_SIZE(encoded))};
}

std::string to_absolute_path(nb::handle o) {
  const std::string path = to_path(o);
  return path.empty() || is_url(path) ? path : std::filesystem::absolute(path).string();
}

nb::object from_path(const std::string& path) {
  return own(PyUnicode_DecodeFSDefaultAndSize(path.data(), static_cast<Py_ssize_t>(path.size())));
}

DimVector to_ints(PyObject* o) {
  DimVector out;
  if (!PyTuple_Check(o) && !PyList_Check(o)) {
    out.push_back(to_int(o));
    return out;
  }
  out.reserve(static_cast<size_t>(PySequence_Fast_GET_SIZE(o)));
  for_each_item(o, [&](PyObject* item, Py_ssize_t) { out.push_back(to_int(item)); });
  return out;
}

std::vector<double> to_floats(PyObject* o) {
  if (!PyTuple_Check(o) && !PyList_Check(o)) return {to_float(o)};
  std::vector<double> out;
  out.reserve(static_cast<size_t>(PySequence_Fast_GET_SIZE(o)));
  for_each_item(o, [&](PyObject* item, Py_ssize_t) { out.push_back(to_float(item)); });
  return out;
}

std::vector<Tensor> to_tensors(PyObject* o) {
  std::vector<Tensor> out;
  out.reserve(static_cast<size_t>(PySequence_Fast_GET_SIZE(o)));
  for_each_item(o, [&](PyObject* item, Py_ssize_t i) {
    TERCEL_CHECK(is_tensor(item), TypeError, "expected Tensor as element ", i, " of a list, but got ",
                 Py_TYPE(item)->tp_name);
    out.push_back(tensor_of(item));
  });
  return out;
}

PyObject* from_scalar(Scalar value) {
  switch (value.category()) {
    case TypeCategory::Bool: return PyBool_FromLong(value.to_bool());
    case TypeCategory::Integral:
      return value.is_above_int64() ? PyLong_FromUnsignedLongLong(value.to<uint64_t>())
                                    : PyLong_FromLongLong(value.to_int64());
    case TypeCategory::Complex: return PyComplex_FromDoubles(value.to_complex().re, value.to_complex().im);
    default: return PyFloat_FromDouble(value.to_double());
  }
}

}  // namespace tercel::python
