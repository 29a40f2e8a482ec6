#include "python/src/data.h"
#include "python/src/op.h"
#include "python/src/out.h"

#include <cmath>
#include <limits>

#include "tercel/core/alignment.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/factories/factories.h"

namespace tercel::python {

namespace {

bool is_text(PyObject* o) { return PyUnicode_Check(o) || PyBytes_Check(o); }
bool is_sequence(PyObject* o) {
  if (is_tensor(o)) return false;
  if (is_ndarray(o)) return nb::cast<int>(nb::borrow(o).attr("ndim")) > 0;
  return PySequence_Check(o) && !is_number(o);
}

/** Converts a 0-dimensional array to a number, by item(). */
bool is_zero_dim_array(PyObject* o) { return is_ndarray(o) && !is_sequence(o); }

constexpr size_t kMostDims = 64;

/** The length of a list at every depth, as the first elements have it. */
DimVector infer_sizes(PyObject* data) {
  DimVector sizes;
  nb::object level = nb::borrow(data);
  while (is_sequence(level.ptr())) {
    const Py_ssize_t n = PySequence_Size(level.ptr());
    if (n < 0) raise_pending();
    sizes.push_back(n);
    TERCEL_CHECK(!is_text(level.ptr()) && sizes.size() <= kMostDims, ValueError, "too many dimensions '",
                 Py_TYPE(level.ptr())->tp_name, "'");
    if (n == 0) break;
    PyObject* first = PySequence_GetItem(level.ptr(), 0);
    if (!first) {
      PyErr_Clear();
      throw_error<ValueError>({"could not determine the shape of object type '", Py_TYPE(level.ptr())->tp_name, "'"});
    }
    level = own(first);
  }
  return sizes;
}

/** `depth`: of sequences around the object. */
ScalarType infer_dtype(PyObject* o, size_t depth, size_t most) {
  // A numpy.float64 is a float too.
  if (PyFloat_CheckExact(o)) return default_dtype();
  if (PyBool_Check(o)) return kBool;
  if (PyLong_Check(o)) return kInt64;
  if (is_tensor(o)) return tensor_of(o).dtype();
  if (PyComplex_CheckExact(o)) return complex_dtype(default_dtype());
  if (is_ndarray(o) || numpy_scalar_kind(o) != 0) {
    const nb::object array = nb::module_::import_("numpy").attr("array")(nb::borrow(o));
    return tensor_from_buffer(array.ptr()).dtype();
  }
  if (PyFloat_Check(o)) return default_dtype();
  TERCEL_CHECK(!is_text(o), TypeError, "new(): invalid data type '", Py_TYPE(o)->tp_name, "'");
  TERCEL_CHECK(PySequence_Check(o), RuntimeError, "Could not infer dtype of ", Py_TYPE(o)->tp_name);
  // Below the nesting of the first element there must be numbers. This also stops at lists that contain each other.
  TERCEL_CHECK(depth < most, TypeError, "must be real number, not ", Py_TYPE(o)->tp_name);
  const Py_ssize_t n = PySequence_Size(o);
  if (n < 0) raise_pending();
  if (n == 0) return default_dtype();
  ScalarType type = ScalarType::Undefined;
  for (Py_ssize_t i = 0; i < n; ++i) {
    const nb::object item = own(PySequence_GetItem(o, i));
    TERCEL_CHECK(item.ptr() != o, TypeError, "new(): self-referential lists are incompatible");
    const ScalarType one = infer_dtype(item.ptr(), depth + 1, most);
    type = type == ScalarType::Undefined ? one : promote_types(type, one);
  }
  return type;
}

template <class T>
void check_fits(bool fits) {
  TERCEL_CHECK(fits, RuntimeError, "value cannot be converted to type ", to_string(scalar_type_of<T>()),
               " without overflow");
}

/** An integer as an element; unsigned types also accept negative ones down to minus their maximum. */
template <class T>
T integer_element(PyObject* o) {
  if constexpr (sizeof(T) < 8) {
    const int64_t wide = to_int(o);
    constexpr int64_t kMax = std::numeric_limits<T>::max();
    check_fits<T>(wide <= kMax && wide >= (std::is_unsigned_v<T> ? -kMax : int64_t{std::numeric_limits<T>::min()}));
    return static_cast<T>(wide);
  } else if constexpr (std::is_unsigned_v<T>) {
    const unsigned long long value = PyLong_AsUnsignedLongLong(o);
    if (PyErr_Occurred()) raise_pending();  // OverflowError
    return value;
  } else {
    return to_int(o);
  }
}

/** A number for an element of T; RuntimeError where an integer does not fit. */
template <class T>
T to_element(PyObject* o) {
  if (is_tensor(o)) {
    TERCEL_CHECK(tensor_of(o).numel() == 1, ValueError, "only one element tensors can be converted to Python scalars");
    return item(tensor_of(o)).to<T>();
  }
  if (is_zero_dim_array(o)) {
    const RecursionGuard guard(" while an array is read");  // an array of objects may contain itself
    return to_element<T>(nb::borrow(o).attr("item")().ptr());
  }
  if constexpr (std::is_same_v<T, double>) {
    if (PyFloat_Check(o)) return PyFloat_AS_DOUBLE(o);
  }
  if constexpr (std::is_same_v<T, bool>)
    if (is_number(o)) return to_bool(o);
  constexpr bool kInteger = std::is_integral_v<T> && !std::is_same_v<T, bool>;
  if (PyLong_Check(o)) {
    if constexpr (kInteger)
      return integer_element<T>(o);
    else
      return Scalar(to_float(o)).to<T>();
  }
  if (!is_number(o)) {
    // Objects with __complex__, __float__ or __index__ are numbers too.
    if constexpr (is_complex_number<T>)
      if (PyObject_HasAttrString(o, "__complex__")) return to_complex_number(o).to<T>();
    if (PyIndex_Check(o)) return to_element<T>(own(PyNumber_Index(o)).ptr());
    if (is_text(o) || !PyNumber_Check(o)) throw_error<TypeError>({"must be real number, not ", Py_TYPE(o)->tp_name});
    return to_element<T>(own(PyNumber_Float(o)).ptr());
  }
  const Scalar value = to_scalar(o);
  if constexpr (!is_complex_number<T>)
    TERCEL_CHECK(!value.is_complex(), TypeError, kInteger ? "'" : "must be real number, not ", Py_TYPE(o)->tp_name,
                 kInteger ? "' object cannot be interpreted as an integer" : "");
  if constexpr (kInteger) {
    if (!value.is_floating()) return integer_element<T>(own(PyNumber_Index(o)).ptr());
    const double whole = std::trunc(value.to_double());
    // The bounds are powers of two, exact in float64; both comparisons are false for NaN.
    const double above = std::ldexp(1.0, std::numeric_limits<T>::digits);
    check_fits<T>(whole < above && (whole >= -above || (std::is_unsigned_v<T> && whole > -above)));
    if (std::is_unsigned_v<T> && whole < 0) return static_cast<T>(-static_cast<T>(-whole));
  }
  return value.to<T>();
}

template <class T>
T* store(PyObject* o, IntSpan sizes, size_t depth, T* out) {
  if (depth == sizes.size()) {
    *out = to_element<T>(o);
    return out + 1;
  }
  TERCEL_CHECK(is_sequence(o), TypeError, "not a sequence");
  const nb::object fast = own(PySequence_Fast(o, "not a sequence"));
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(fast.ptr());
  TERCEL_CHECK(n == sizes[depth], ValueError, "expected sequence of length ", sizes[depth], " at dim ", depth, " (got ",
               n, ")");
  for_each_item(fast.ptr(), [&](PyObject* item, Py_ssize_t) { out = store(item, sizes, depth + 1, out); });
  return out;
}

Tensor from_sequence(PyObject* data, std::optional<ScalarType> dtype) {
  TERCEL_CHECK(!is_text(data), TypeError, "new(): invalid data type '", Py_TYPE(data)->tp_name, "'");
  const DimVector sizes = infer_sizes(data);
  if ((PyList_Check(data) || PyTuple_Check(data)) && PySequence_Fast_GET_SIZE(data) > 0 &&
      is_ndarray(PySequence_Fast_GET_ITEM(data, 0)))
    warn(
        "Creating a tensor from a list of numpy.ndarrays is extremely slow. Please consider converting the list to a "
        "single numpy.ndarray with numpy.array() before converting to a tensor.");
  const ScalarType type = dtype ? *dtype : infer_dtype(data, 0, sizes.size());
  Tensor out = empty(sizes, type);
  visit_all_types("tensor", type, [&]<class T>() { store(data, sizes, 0, static_cast<T*>(out.data_ptr())); });
  return out;
}

/** Result of an object's __array__ or __array_interface__, or null. */
nb::object as_ndarray(PyObject* data) {
  if (is_ndarray(data)) return nb::borrow(data);
  if (is_tensor(data) || PyList_Check(data) || PyTuple_Check(data) || is_number(data)) return {};
  const bool foreign = PyObject_HasAttrString(data, "__array_interface__") || PyObject_HasAttrString(data, "__array__");
  if (!foreign) return {};
  return nb::module_::import_("numpy").attr("asarray")(nb::borrow(data));
}

void require_grad(const Tensor& t, bool requires_grad) {
  if (!requires_grad) return;
  TERCEL_CHECK(t.is_differentiable(), RuntimeError,
               "Only Tensors of floating point and complex dtype can require gradients");
  Tensor(t).requires_grad_(true);
}

using Dtype = std::optional<ScalarType>;

void check_device(const std::optional<Device>& device) {
  TERCEL_CHECK(!device || device->is_cpu(), NotImplementedError, "tensors can be created on the CPU only");
}

Tensor make_tensor(PyObject* data, Dtype dtype, std::optional<Device> device, bool requires_grad) {
  check_device(device);
  if (is_tensor(data))
    warn(
        "To copy construct from a tensor, it is recommended to use sourceTensor.clone().detach() or "
        "sourceTensor.clone().detach().requires_grad_(True), rather than tercel.tensor(sourceTensor).");
  Tensor t = tensor_from_data(data, dtype, false);
  if (t.requires_grad()) t = t.detach();
  require_grad(t, requires_grad);
  return t;
}

Tensor from_numpy(PyObject* array) {
  TERCEL_CHECK(is_ndarray(array), TypeError, "expected np.ndarray (got ", Py_TYPE(array)->tp_name, ")");
  return tensor_from_buffer(array);
}

/** The bytes of a contiguous buffer, whatever its elements and dimensions. */
nb::object bytes_of(PyObject* buffer) {
  TERCEL_CHECK(PyObject_CheckBuffer(buffer), ValueError, "object does not implement Python buffer protocol.");
  const nb::object pickled = own(PyPickleBuffer_FromObject(buffer));
  PyObject* raw = PyObject_CallMethod(pickled.ptr(), "raw", nullptr);
  if (!raw) {
    PyErr_Clear();
    throw_error<RuntimeError>(
        {"could not retrieve a contiguous buffer from the given object (non-contiguous buffers "
         "are not supported)"});
  }
  return own(raw);
}

/** A vector of `count` elements (-1: all) over a buffer's memory, from byte `offset` on. */
Tensor over_buffer(PyObject* buffer, ScalarType type, int64_t count, int64_t offset, bool to_write) {
  const nb::object bytes = bytes_of(buffer);
  const auto size = static_cast<int64_t>(item_size(type)), length = static_cast<int64_t>(nb::len(bytes));
  TERCEL_CHECK(length > 0 && count != 0, ValueError, "both buffer length (", length, ") and count (", count,
               ") must not be 0");
  TERCEL_CHECK(offset >= 0 && offset < length, ValueError, "offset (", offset,
               " bytes) must be non-negative and no greater than buffer length (", length, " bytes) minus 1");
  TERCEL_CHECK(count > 0 || (length - offset) % size == 0, ValueError, "buffer length (", length - offset,
               " bytes) after offset (", offset, " bytes) must be a multiple of element size (", size, ")");
  const int64_t n = count < 0 ? (length - offset) / size : count;
  TERCEL_CHECK(n <= (length - offset) / size, ValueError, "requested buffer length (", n, " * ", size,
               " bytes) after offset (", offset, " bytes) must not be greater than actual buffer length (", length,
               " bytes)");
  const Tensor whole = tensor_from_buffer(bytes.ptr(), to_write);
  TERCEL_CHECK(offset % size == 0, ValueError, "offset (", offset, " bytes) must be a multiple of the element size");
  TERCEL_CHECK(is_aligned(static_cast<const char*>(whole.data_ptr()) + offset, type), ValueError,
               "the buffer is not aligned to elements of ", to_string(type), " from byte ", offset,
               " on. Copy it first.");
  return Tensor(make_intrusive<TensorImpl>(whole.storage(), type, IntSpan{n}, IntSpan{1}, offset / size));
}

/** A vector over a whole storage, which is of bytes unless it has a dtype. */
Tensor over_storage(PyObject* storage, std::optional<ScalarType> dtype) {
  if (!dtype) {
    const nb::object own_type = nb::getattr(nb::borrow(storage), "dtype", nb::none());
    dtype = own_type.is_none() ? kUInt8 : to_dtype(own_type.ptr());
  }
  const Storage& bytes = storage_of_dtype(storage, *dtype);
  check_aligned("storage", *bytes, *dtype);
  return Tensor(
      make_intrusive<TensorImpl>(bytes, *dtype, IntSpan{static_cast<int64_t>(bytes->nbytes() / item_size(*dtype))}));
}

/** A tensor over the object's memory; undefined for numbers and sequences, which must be converted. */
Tensor over_memory(PyObject* o, std::optional<ScalarType> dtype, bool to_write) {
  if (is_tensor(o)) return tensor_of(o);
  if (is_storage(o)) return over_storage(o, dtype);
  if (const nb::object array = as_ndarray(o)) return tensor_from_buffer(array.ptr(), to_write);
  if (PyCapsule_CheckExact(o) || PyObject_HasAttrString(o, "__dlpack__")) {
    const nb::object taken = nb::module_::import_("tercel.utils.dlpack").attr("from_dlpack")(nb::borrow(o));
    return to_tensor(taken, "asarray");
  }
  if (!PyObject_CheckBuffer(o) || numpy_scalar_kind(o) != 0) return Tensor();
  if (!dtype && is_numeric_buffer(o)) return tensor_from_buffer(o, to_write);
  return over_buffer(o, dtype.value_or(kUInt8), -1, 0, to_write);
}

Tensor as_array(PyObject* data, Dtype wanted, std::optional<Device> device, std::optional<bool> copy,
                bool requires_grad) {
  check_device(device);
  const bool must_copy = copy == true, must_share = copy == false;
  Tensor t = over_memory(data, wanted, !must_copy);
  if (!t.defined()) {
    TERCEL_CHECK(!must_share, ValueError, "can't alias arbitrary sequence into a tensor.");
    t = tensor_from_data(data, wanted, false);
  } else if (wanted && *wanted != t.dtype()) {
    TERCEL_CHECK(!must_share, ValueError, "can't alias tensor with dtype '", legacy_name(t.dtype()), "' into dtype '",
                 legacy_name(*wanted), "'.");
    const WithoutGil scope(t.numel() >= kGilGrain);
    t = to(t, *wanted);
  } else if (must_copy) {
    const WithoutGil scope(t.numel() >= kGilGrain);
    t = clone(t);
  }
  // With requires_grad=True the history is kept.
  if (t.requires_grad() && !requires_grad) t = t.detach();
  if (!t.requires_grad()) require_grad(t, requires_grad);
  return t;
}

}  // namespace

Tensor tensor_from_data(PyObject* data, std::optional<ScalarType> dtype, bool share) {
  if (is_storage(data)) {
    const Tensor t = over_storage(data, dtype);
    return share ? t : clone(t);
  }
  if (is_tensor(data)) {
    const Tensor& t = tensor_of(data);
    const ScalarType type = dtype.value_or(t.dtype());
    if (share) return to(t, type);
    return t.dtype() == type ? clone(t.detach()) : to(t.detach(), type);
  }
  nb::object array = as_ndarray(data);
  if (!array && is_numeric_buffer(data)) array = nb::borrow(data);
  if (!array) return from_sequence(data, dtype);
  const ScalarType own_type = tensor_from_buffer(array.ptr(), false).dtype();
  const ScalarType type = dtype.value_or(own_type);
  const Tensor view = tensor_from_buffer(array.ptr(), share && type == own_type);
  const WithoutGil scope(view.numel() >= kGilGrain);
  if (share || type != own_type) return to(view, type);
  return clone(view, MemoryFormat::Contiguous);
}

Span<Entry> data_ops() {
  // They take Python objects, so the GIL is not released.
  constexpr unsigned kHere = kFunction | kCheap;
  static const Entry table[] = {
      entry(
          "tensor(object data, *, dtype dtype=None, device device=None, bool requires_grad=False, bool "
          "pin_memory=False)",
          [](PyObject* data, Dtype dtype, std::optional<Device> device, bool requires_grad, bool) {
            return make_tensor(data, dtype, device, requires_grad);
          },
          kHere, "A new tensor with a copy of the data."),
      entry(
          "as_tensor(object data, dtype dtype=None, device device=None)",
          [](PyObject* data, Dtype dtype, std::optional<Device> device) {
            check_device(device);
            return tensor_from_data(data, dtype, true);
          },
          kHere, "The data as a tensor, which shares its memory if possible."),
      entry(
          "asarray(object obj, *, dtype dtype=None, device device=None, bool? copy=None, bool requires_grad=False)",
          [](PyObject* data, Dtype dtype, std::optional<Device> device, std::optional<bool> copy, bool requires_grad) {
            return as_array(data, dtype, device, copy, requires_grad);
          },
          kHere, "The object as a tensor; copy=True always copies, copy=False raises ValueError if a copy is needed."),
      entry(
          "from_numpy(object ndarray)", [](PyObject* array) { return from_numpy(array); }, kHere,
          "A tensor over the array's memory."),
      entry(
          "frombuffer(object buffer, *, dtype dtype, int count=-1, int offset=0, bool requires_grad=False)",
          [](PyObject* buffer, ScalarType dtype, int64_t count, int64_t offset, bool requires_grad) {
            const Tensor t = over_buffer(buffer, dtype, count, offset, true);
            require_grad(t, requires_grad);
            return t;
          },
          kHere, "A vector over the memory of a buffer."),
  };
  return table;
}

}  // namespace tercel::python
