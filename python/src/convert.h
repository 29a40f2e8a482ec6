// Numbers, lists and descriptions (dtype, device ...) between Python and C++.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "python/src/python.h"
#include "python/src/tensor_object.h"
#include "tercel/core/default_dtype.h"
#include "tercel/core/generator.h"

namespace tercel::python {

// Python representations of the library's enums and structs.
struct DtypeObject {
  ScalarType type;
};
struct DeviceObject {
  Device device;
};
struct LayoutObject {
  Layout layout;
  std::string_view name;
};
struct MemoryFormatObject {
  MemoryFormat format;
};
/** A generator created in Python, or the thread's default generator at the time of use. */
struct GeneratorObject {
  Generator own;
  bool is_default = false;
  Generator& get() { return is_default ? default_generator() : own; }
};

// Note [Lists that change]
// A conversion may run Python code: __index__, __float__, attributes of an array's subclass. That code may change the
// list that is being read, or one that was checked before. So a reference to an item is held while it is read, the
// length is checked again before each item, and conversions check the type of an item even if it was checked
// before.

/** Calls f(item, index) for the items of a tuple or a list; RuntimeError if it gets another length meanwhile. */
template <class F>
void for_each_item(PyObject* sequence, F&& f) {
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(sequence);
  for (Py_ssize_t i = 0; i < n; ++i) {
    TERCEL_CHECK(PySequence_Fast_GET_SIZE(sequence) == n, RuntimeError, "a list changed its size while it was read");
    PyObject* const item = PySequence_Fast_GET_ITEM(sequence, i);
    if (PyLong_CheckExact(item) || PyFloat_CheckExact(item)) {  // runs no Python code
      f(item, i);
    } else {
      const nb::object held = nb::borrow(item);
      f(item, i);
    }
  }
}

// Whether an object is accepted as an argument. None never is.
bool is_int_like_slow(PyObject* o);
/** An int that is not a bool; an object with __index__; a 0-dimensional integral tensor. */
inline bool is_int_like(PyObject* o) { return PyLong_CheckExact(o) || is_int_like_slow(o); }
bool is_scalar_like_slow(PyObject* o);
/** Any number of Python or NumPy; a tensor without dimensions and gradient. */
inline bool is_scalar_like(PyObject* o) {
  return PyFloat_CheckExact(o) || PyLong_CheckExact(o) || is_scalar_like_slow(o);
}
bool is_float_like(PyObject* o);
bool is_bool_like(PyObject* o);
bool is_dtype_like(PyObject* o);
bool is_device_like(PyObject* o);
bool is_layout(PyObject* o);
bool is_memory_format(PyObject* o);
bool is_generator(PyObject* o);
bool is_storage(PyObject* o);
/** A tercel.Size. */
bool is_size(PyObject* o);
/** A number of Python or NumPy; no tensor. */
bool is_number(PyObject* o);
/** 'b', 'i', 'u', 'f' or 'c' for a NumPy scalar, else 0. */
char numpy_scalar_kind(PyObject* o);

// Values of objects for which the test above is true; nb::python_error or a typed error when they are out of range.
int64_t to_int(PyObject* o);
/** An integer of int64 or uint64. */
Scalar to_wide_int(PyObject* o);
double to_float(PyObject* o);
bool to_bool(PyObject* o);
/** From a Python complex number, or an object with __complex__. */
Scalar to_complex_number(PyObject* o);
Scalar to_scalar(PyObject* o);
/** A complex number's real part; RuntimeError, which names float64 or int64 as C++ does, if the other is not zero. */
Scalar real_number(Scalar value, ScalarType wanted);
std::string_view to_text(PyObject* o);
/** From str, bytes or os.PathLike. */
std::string to_path(nb::handle o);
/** The same, independent of later changes of the working folder. An empty path stays empty. */
std::string to_absolute_path(nb::handle o);
/** A path as a str, with surrogates for bytes that are not UTF-8. */
nb::object from_path(const std::string& path);
ScalarType to_dtype(PyObject* o);
Device to_device(PyObject* o);
Layout to_layout(PyObject* o);
MemoryFormat to_memory_format(PyObject* o);
Generator& to_generator(PyObject* o);
const Storage& to_storage(PyObject* o);
/** The same, for elements of a dtype; RuntimeError when the storage has another one. */
const Storage& storage_of_dtype(PyObject* o, ScalarType type);
/** From a tuple or list, or a single integer. */
DimVector to_ints(PyObject* o);
/** From a tuple or list, or a single number. */
std::vector<double> to_floats(PyObject* o);
/** A tuple or list of tensors; TypeError for another item. */
std::vector<Tensor> to_tensors(PyObject* o);

inline nb::str to_str(std::string_view text) { return nb::str(text.data(), text.size()); }

// New references.
PyObject* from_scalar(Scalar value);
PyObject* from_dtype(ScalarType type);
PyObject* from_device(Device device);
PyObject* from_layout(Layout layout);
/** tercel.Size: a tuple that knows its product. */
PyObject* from_sizes(IntSpan sizes);
PyObject* from_strides(IntSpan strides);
PyObject* from_storage(const Storage& storage);

/** The name of a dtype's tensor type, "FloatTensor", and of its storage, "Float"; see dtype.cpp. */
const char* legacy_name(ScalarType type);

void register_dtype(nb::module_& m);
void register_device(nb::module_& m);
void register_size(nb::module_& m);
void register_storage(nb::module_& m);

}  // namespace tercel::python
