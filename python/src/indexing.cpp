// x[...], x[...] = y, len(x) and iteration: converts Python objects to the library's list of index items
// (tercel/ops/index/subscript.h).
#include "tercel/ops/index/subscript.h"

#include <optional>
#include <vector>

#include "python/src/data.h"
#include "python/src/out.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/views/views.h"
#include "tercel/util/profile.h"

namespace tercel::python {

namespace {

indexing::Slice to_slice(PyObject* key) {
  Py_ssize_t start = 0, stop = 0, step = 1;
  if (PySlice_Unpack(key, &start, &stop, &step) < 0) raise_pending();
  return {start, stop, step};
}

/** A list or an array as a tensor of indices; an empty list names none. */
Tensor index_tensor(PyObject* o) {
  Tensor t = tensor_from_data(o, std::nullopt, false);
  return t.numel() == 0 && t.is_floating_point() ? to(t, kInt64) : t;
}

/** Whether a list is treated as a tuple of its elements: NumPy's legacy rule, for fewer than 32 of them. */
bool is_tuple_in_disguise(PyObject* key) {
  constexpr Py_ssize_t kMostDims = 32;
  if (!PyList_Check(key) || PyList_GET_SIZE(key) >= kMostDims) return false;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(key); ++i) {
    PyObject* o = PyList_GET_ITEM(key, i);
    if (is_tensor(o) || PySlice_Check(o) || o == Py_None || o == Py_Ellipsis || PySequence_Check(o)) return true;
  }
  return false;
}

TensorIndex to_item(PyObject* o) {
  if (o == Py_None) return std::nullopt;
  if (o == Py_Ellipsis) return indexing::Ellipsis;
  if (PyBool_Check(o)) return o == Py_True;
  if (PyLong_Check(o)) return to_int(o);
  if (PySlice_Check(o)) return to_slice(o);
  if (is_tensor(o)) {
    const Tensor& t = tensor_of(o);
    if (t.dtype() == kUInt8 && t.dim() > 0) warn_of_bytes();
    return t;
  }
  if (PyIndex_Check(o) && is_int_like(o)) return to_int(o);
  if (numpy_scalar_kind(o) == 'b') return to_bool(o);
  TERCEL_CHECK(PySequence_Check(o) && !PyUnicode_Check(o), IndexError,
               "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got ",
               Py_TYPE(o)->tp_name, ")");
  return index_tensor(o);
}

/** The argument of x[...]: an item, or a tuple of them. */
std::vector<TensorIndex> to_items(PyObject* key) {
  std::vector<TensorIndex> items;
  if (!PyTuple_Check(key) && !is_tuple_in_disguise(key)) {
    items.push_back(to_item(key));
    return items;
  }
  items.reserve(static_cast<size_t>(PySequence_Fast_GET_SIZE(key)));
  for_each_item(key, [&](PyObject* item, Py_ssize_t) { items.push_back(to_item(item)); });
  return items;
}

PyObject* get_item(PyObject* self, PyObject* key) {
  const ProfileRange range("__getitem__", RangeKind::Op);
  return at_border([&] {
    const Tensor& x = tensor_of(self);
    // Fast path for common cases, without a list.
    if (PyLong_CheckExact(key) && x.dim() > 0) {
      const int64_t i = to_int(key), n = x.sizes()[0];
      if (i >= -n && i < n) return wrap(select(x, 0, i));
    } else if (PySlice_Check(key) && x.dim() > 0 && x.layout() == Layout::Strided) {
      const indexing::Slice s = to_slice(key);
      return wrap(slice(x, 0, s.start, s.stop, s.step));
    }
    const std::vector<TensorIndex> items = to_items(key);
    return wrap([&] {
      const WithoutGil scope(x.numel() >= kGilGrain);
      return index(x, items);
    }());
  });
}

int set_element(PyObject* self, PyObject* key, PyObject* value) {
  const ProfileRange range("__setitem__", RangeKind::Op);
  return at_border<int>(-1, [&] {
    const Tensor& x = tensor_of(self);
    TERCEL_CHECK(!is_sparse(x.layout()), TypeError, "Cannot assign to a sparse tensor");
    TERCEL_CHECK(value, TypeError, "Tensor does not support deleting items");
    const std::vector<TensorIndex> items = to_items(key);
    if (!is_tensor(value) && is_scalar_like(value)) {
      const Scalar number = to_scalar(value);
      const WithoutGil scope(x.numel() >= kGilGrain);
      set_item(x, items, number);
      return 0;
    }
    const Tensor source = is_tensor(value) ? tensor_of(value) : tensor_from_data(value, x.dtype(), false);
    const WithoutGil scope(x.numel() >= kGilGrain);
    set_item(x, items, source);
    return 0;
  });
}

Py_ssize_t length(PyObject* self) {
  return at_border<Py_ssize_t>(-1, [&] {
    const Tensor& x = tensor_of(self);
    TERCEL_CHECK(x.dim() > 0, TypeError, "len() of a 0-d tensor");
    return static_cast<Py_ssize_t>(x.size(0));
  });
}

PyObject* get_nth(PyObject* self, Py_ssize_t i) {
  const nb::object key = nb::steal(PyLong_FromSsize_t(i));
  return get_item(self, key.ptr());
}

PyObject* iterate(PyObject* self) {
  return at_border([&] {
    const Tensor& x = tensor_of(self);
    TERCEL_CHECK(x.dim() > 0, TypeError, "iteration over a 0-d tensor");
    const nb::object items = own(wrap_tuple(unbind(x, 0)));
    return own(PyObject_GetIter(items.ptr())).release().ptr();
  });
}

template <class F>
PyType_Slot slot(int id, F* function) {
  return {id, reinterpret_cast<void*>(function)};
}

}  // namespace

Span<PyType_Slot> tensor_item_slots() {
  static const PyType_Slot slots[] = {
      slot(Py_mp_subscript, get_item), slot(Py_mp_ass_subscript, set_element),
      slot(Py_mp_length, length),      slot(Py_sq_length, length),
      slot(Py_sq_item, get_nth),       slot(Py_tp_iter, iterate),
  };
  return slots;
}

}  // namespace tercel::python
