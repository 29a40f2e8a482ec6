// The buffer protocol, both ways, and NumPy through it.
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "python/src/data.h"
#include "tercel/autograd/grad_mode.h"
#include "tercel/core/alignment.h"
#include "tercel/core/allocator.h"
#include "tercel/ops/common/copy.h"

namespace tercel::python {

namespace {

struct Format {
  ScalarType type;
  const char* code;
};
/** The first entry of a type is the one exported. */
constexpr Format kFormats[] = {
    {kFloat32, "f"}, {kFloat64, "d"}, {kFloat16, "e"},    {kBool, "?"},        {kInt8, "b"},   {kUInt8, "B"},
    {kInt16, "h"},   {kInt32, "i"},   {kInt64, "l"},      {kInt64, "q"},       {kUInt16, "H"}, {kUInt32, "I"},
    {kUInt64, "L"},  {kUInt64, "Q"},  {kComplex64, "Zf"}, {kComplex128, "Zd"},
};

const char* code_of(ScalarType type) {
  for (const Format& f : kFormats)
    if (f.type == type) return f.code;
  return nullptr;
}

/** The dtype of a buffer's format; undefined if tensors do not support it. */
ScalarType parse_format(const char* format) {
  if (!format) return kUInt8;
  if (*format == '@' || *format == '=' || *format == '<' || *format == '|') ++format;
  for (const Format& f : kFormats)
    if (std::strcmp(f.code, format) == 0) return f.type;
  return ScalarType::Undefined;
}

[[noreturn]] void refuse_type(PyObject* exporter) {
  PyErr_Clear();
  std::string type = Py_TYPE(exporter)->tp_name;
  if (is_ndarray(exporter)) {
    const nb::object name = nb::borrow(exporter).attr("dtype").attr("type").attr("__name__");
    type = str_cat({"np.ndarray of type numpy.", to_text(name.ptr())});
  }
  throw_error<TypeError>({"can't convert ", type,
                          ". The only supported types are: float64, float32, float16, complex64, complex128, "
                          "int64, int32, int16, int8, uint64, uint32, uint16, uint8, and bool."});
}

void release_buffer(void* context) {
  auto* view = static_cast<Py_buffer*>(context);
  if (interpreter_ends()) return;
  const WithGil scope;
  PyBuffer_Release(view);
  delete view;
}

void warn_not_writable(PyObject* exporter) {
  const std::string text = str_cat(
      {"The given ", is_ndarray(exporter) ? "NumPy array" : "buffer",
       " is not writable, and tercel does not support non-writable tensors. Writing to this tensor has undefined "
       "results: copy the data or make them writable first."});
  if (PyErr_WarnEx(PyExc_UserWarning, text.c_str(), 1) < 0) raise_pending();
}

/** State of one exported buffer, kept until the consumer releases it. */
struct Export {
  Storage storage;  // kept because the tensor may be given another storage
  std::vector<Py_ssize_t> shape, strides;
};

/** Whether the memory layout satisfies the flags. */
bool lies_as_asked(const Py_buffer& view, int flags) {
  const auto asks = [flags](int what) { return (flags & what) == what; };
  if ((asks(PyBUF_C_CONTIGUOUS) || !asks(PyBUF_STRIDES)) && !PyBuffer_IsContiguous(&view, 'C')) return false;
  if (asks(PyBUF_F_CONTIGUOUS) && !PyBuffer_IsContiguous(&view, 'F')) return false;
  return !asks(PyBUF_ANY_CONTIGUOUS) || PyBuffer_IsContiguous(&view, 'A');
}

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  view->obj = nullptr;
  try {
    const Tensor& t = tensor_of(self);
    const char* code = code_of(t.dtype());
    if (!t.defined() || !t.has_storage() || !t.device().is_cpu() || (t.requires_grad() && grad_enabled()) || !code) {
      PyErr_SetString(PyExc_BufferError, "cannot export this tensor's memory through the buffer protocol");
      return -1;
    }
    auto kept = std::make_unique<Export>();
    for (const int64_t s : t.sizes()) kept->shape.push_back(s);
    for (const int64_t s : t.strides()) kept->strides.push_back(s * static_cast<Py_ssize_t>(t.itemsize()));
    kept->storage = t.storage();
    alignas(64) static char nothing;  // aligned for every element type
    view->buf = t.numel() > 0 ? t.data_ptr() : &nothing;
    view->len = static_cast<Py_ssize_t>(t.nbytes());
    view->itemsize = static_cast<Py_ssize_t>(t.itemsize());
    view->readonly = 0;
    view->ndim = static_cast<int>(t.dim());
    view->format = (flags & PyBUF_FORMAT) != 0 ? const_cast<char*>(code) : nullptr;
    view->shape = kept->shape.data();
    view->strides = kept->strides.data();
    view->suboffsets = nullptr;
    if (!lies_as_asked(*view, flags)) {
      PyErr_SetString(PyExc_BufferError, "the tensor's memory layout does not satisfy the requested buffer flags");
      return -1;
    }
    if ((flags & PyBUF_STRIDES) != PyBUF_STRIDES) view->strides = nullptr;
    if ((flags & PyBUF_ND) == 0) {
      view->ndim = 1;  // a one-dimensional array of bytes
      view->shape = nullptr;
    }
    kept->storage->set_resizable(false);  // the exported address must stay valid
    view->obj = Py_NewRef(self);
    view->internal = kept.release();
    return 0;
  } catch (...) {
    set_error_from_exception();
    return -1;
  }
}

void free_buffer(PyObject*, Py_buffer* view) { delete static_cast<Export*>(view->internal); }

/** The view as a tensor that owns it. */
Tensor adopt(Py_buffer* view, ScalarType type) {
  const auto n = static_cast<size_t>(view->ndim);
  DimVector sizes, strides;
  int64_t lowest = 0, highest = 0;
  bool empty_one = false;
  for (size_t d = 0; d < n; ++d) {
    sizes.push_back(view->shape[d]);
    strides.push_back(view->strides[d] / view->itemsize);
    empty_one |= view->shape[d] == 0;
    const int64_t reach = view->strides[d] * std::max<Py_ssize_t>(view->shape[d] - 1, 0);
    (reach < 0 ? lowest : highest) += reach;
  }
  if (empty_one) lowest = highest = 0;
  const size_t bytes = empty_one ? 0 : static_cast<size_t>(highest - lowest + view->itemsize);
  DataPtr block(static_cast<char*>(view->buf) + lowest, view, release_buffer, kCpu);
  auto storage = make_intrusive<StorageImpl>(bytes, std::move(block), nullptr, false);
  return Tensor(make_intrusive<TensorImpl>(std::move(storage), type, sizes, strides, -lowest / view->itemsize));
}

}  // namespace

bool is_ndarray(PyObject* o) {
  for (PyTypeObject* t = Py_TYPE(o); t; t = t->tp_base)
    if (!PyType_HasFeature(t, Py_TPFLAGS_HEAPTYPE) && std::strcmp(t->tp_name, "numpy.ndarray") == 0) return true;
  return false;
}

bool is_numeric_buffer(PyObject* o) {
  return PyObject_CheckBuffer(o) && !is_tensor(o) && !PyBytes_Check(o) && !PyByteArray_Check(o) &&
         numpy_scalar_kind(o) == 0;
}

Tensor tensor_from_buffer(PyObject* exporter, bool to_write) {
  auto view = std::make_unique<Py_buffer>();
  // Strides only: a buffer of pointers to rows, which has suboffsets, cannot become a tensor.
  if (PyObject_GetBuffer(exporter, view.get(), PyBUF_RECORDS_RO) < 0) refuse_type(exporter);
  struct Release {
    Py_buffer* view;
    ~Release() {
      if (view) PyBuffer_Release(view);
    }
  } guard{view.get()};
  const bool swapped = view->format && (*view->format == '>' || *view->format == '!') && view->itemsize > 1;
  TERCEL_CHECK(!swapped, ValueError,
               "given numpy array has byte order different from the native byte order. Conversion between byte orders "
               "is currently not supported.");
  const ScalarType type = parse_format(view->format);
  if (type == ScalarType::Undefined || static_cast<size_t>(view->itemsize) != item_size(type)) refuse_type(exporter);
  TERCEL_CHECK(!view->suboffsets && (view->ndim == 0 || (view->shape && view->strides)), ValueError, "the buffer of a ",
               Py_TYPE(exporter)->tp_name, " has no strides that a tensor could have. Copy it first.");
  for (int d = 0; d < view->ndim; ++d)
    TERCEL_CHECK(view->strides[d] % view->itemsize == 0, ValueError,
                 "given numpy array strides not a multiple of the element byte size. Copy numpy array to reallocate "
                 "the memory.");
  TERCEL_CHECK(view->len == 0 || is_aligned(view->buf, type), ValueError,
               "given numpy array is not aligned to its element size. Copy the array first.");
  if (view->readonly && to_write) warn_not_writable(exporter);
  guard.view = nullptr;
  return adopt(view.release(), type);
}

PyObject* to_numpy(const Tensor& t, bool force) {
  if (force) {
    const Tensor plain = t.requires_grad() ? t.detach() : t;
    return to_numpy(plain, false);
  }
  TERCEL_CHECK(t.device().is_cpu(), TypeError, "can't convert ", to_string(t.device()),
               " device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.");
  TERCEL_CHECK(!t.requires_grad() || !grad_enabled(), RuntimeError,
               "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.");
  TERCEL_CHECK(code_of(t.dtype()), TypeError, "Got unsupported ScalarType ", legacy_name(t.dtype()));
  // Guarded by the GIL; no static initialisation, since the import may release the GIL to a thread that waits for the
  // same initialisation.
  static PyObject* as_array = nullptr;
  if (!as_array) as_array = nb::module_::import_("numpy").attr("asarray").inc_ref().ptr();
  // Another tensor over the memory: the array may become an attribute of t, and the cycle collector does not traverse
  // it.
  const nb::object object = own(wrap(t.detach()));
  const nb::object bytes = own(PyMemoryView_FromObject(object.ptr()));
  return own(PyObject_CallOneArg(as_array, bytes.ptr())).release().ptr();
}

Span<PyType_Slot> tensor_buffer_slots() {
  static const PyType_Slot slots[] = {
      {Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)},
      {Py_bf_releasebuffer, reinterpret_cast<void*>(free_buffer)},
  };
  return slots;
}

}  // namespace tercel::python
