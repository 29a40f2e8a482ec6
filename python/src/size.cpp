// tercel.Size: a tuple of sizes.
#include "python/src/convert.h"
#include "python/src/package_name.h"

namespace tercel::python {

namespace {

PyTypeObject* g_size_type = nullptr;

PyObject* size_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return at_border([&] {
    nb::object self = own(PyTuple_Type.tp_new(type, args, kwargs));
    const Py_ssize_t n = PyTuple_GET_SIZE(self.ptr());
    for (Py_ssize_t i = 0; i < n; ++i) {
      PyObject* item = PyTuple_GET_ITEM(self.ptr(), i);
      if (PyLong_CheckExact(item)) continue;
      TERCEL_CHECK(PyIndex_Check(item) && is_int_like(item), TypeError,
                   "tercel.Size() takes an iterable of 'int' (item ", i, " is '", Py_TYPE(item)->tp_name, "')");
      PyTuple_SET_ITEM(self.ptr(), i, PyLong_FromLongLong(to_int(item)));
      Py_DECREF(item);
    }
    return self.release().ptr();
  });
}

/** A tuple's result as a Size; a null one stays an error. */
PyObject* as_size(PyObject* tuple) {
  if (!tuple || !PyTuple_CheckExact(tuple)) return tuple;
  const Py_ssize_t n = PyTuple_GET_SIZE(tuple);
  PyObject* size = g_size_type->tp_alloc(g_size_type, n);
  if (size)
    for (Py_ssize_t i = 0; i < n; ++i) PyTuple_SET_ITEM(size, i, Py_NewRef(PyTuple_GET_ITEM(tuple, i)));
  Py_DECREF(tuple);
  return size;
}

/** Size + tuple of ints is a Size; anything else behaves as for a tuple. */
PyObject* concat(PyObject* a, PyObject* b) {
  PyObject* sum = PyTuple_Type.tp_as_sequence->sq_concat(a, b);
  if (!sum) return nullptr;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(sum); ++i)
    if (!PyLong_Check(PyTuple_GET_ITEM(sum, i))) return sum;
  return as_size(sum);
}
PyObject* repeat(PyObject* a, Py_ssize_t n) { return as_size(PyTuple_Type.tp_as_sequence->sq_repeat(a, n)); }
PyObject* subscript(PyObject* self, PyObject* key) {
  return as_size(PyTuple_Type.tp_as_mapping->mp_subscript(self, key));
}

PyObject* repr(PyObject* self) {
  return at_border([&] {
    std::string out = package_name() + ".Size([";
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self); ++i) {
      const nb::object text = own(PyObject_Repr(PyTuple_GET_ITEM(self, i)));
      out += str_cat({i > 0 ? ", " : "", to_text(text.ptr())});
    }
    return PyUnicode_FromString((out + "])").c_str());
  });
}

PyObject* numel(PyObject* self, PyObject*) {
  return at_border([&] {
    int64_t product = 1;
    bool empty = false, fits = true;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self); ++i) {
      const int64_t size = to_int(PyTuple_GET_ITEM(self, i));
      empty |= size == 0;
      fits &= !__builtin_mul_overflow(product, size == 0 ? 1 : size, &product);
    }
    TERCEL_CHECK(empty || fits, RuntimeError,
                 "numel: integer multiplication overflow: the number of elements does not "
                 "fit 64 bits");
    return PyLong_FromLongLong(empty ? 0 : product);
  });
}

PyObject* reduce(PyObject* self, PyObject*) {
  PyObject* tuple = PyTuple_GetSlice(self, 0, PyTuple_GET_SIZE(self));
  PyObject* list = tuple ? PySequence_List(tuple) : nullptr;
  Py_XDECREF(tuple);
  return list ? Py_BuildValue("O(N)", Py_TYPE(self), list) : nullptr;
}

PyMethodDef g_methods[] = {
    {"numel", numel, METH_NOARGS, "The number of elements of a tensor of these sizes."},
    {"__reduce__", reduce, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyType_Slot g_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(size_new)},
    {Py_tp_repr, reinterpret_cast<void*>(repr)},
    {Py_tp_methods, g_methods},
    {Py_sq_concat, reinterpret_cast<void*>(concat)},
    {Py_sq_repeat, reinterpret_cast<void*>(repeat)},
    {Py_mp_subscript, reinterpret_cast<void*>(subscript)},
    {0, nullptr},
};
PyType_Spec g_spec = {"tercel.Size", 0, 0, Py_TPFLAGS_DEFAULT, g_slots};

}  // namespace

bool is_size(PyObject* o) { return Py_TYPE(o) == g_size_type; }

PyObject* from_sizes(IntSpan sizes) {
  PyObject* size = own(g_size_type->tp_alloc(g_size_type, static_cast<Py_ssize_t>(sizes.size()))).release().ptr();
  for (size_t i = 0; i < sizes.size(); ++i)
    PyTuple_SET_ITEM(size, static_cast<Py_ssize_t>(i), PyLong_FromLongLong(sizes[i]));
  return size;
}

PyObject* from_strides(IntSpan strides) {
  PyObject* tuple = own(PyTuple_New(static_cast<Py_ssize_t>(strides.size()))).release().ptr();
  for (size_t i = 0; i < strides.size(); ++i)
    PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i), PyLong_FromLongLong(strides[i]));
  return tuple;
}

void register_size(nb::module_& m) { g_size_type = make_type(m, &g_spec, &PyTuple_Type); }

}  // namespace tercel::python
