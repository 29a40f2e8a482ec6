// Copies, conversions, filling, and queries of a tensor.
#include "python/src/data.h"
#include "python/src/op.h"
#include "python/src/out.h"
#include "tercel/autograd/autograd_meta.h"
#include "tercel/core/load_element.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/views/resize.h"

namespace tercel::python {

namespace {

Tensor convert(const Tensor& x, std::optional<ScalarType> dtype, std::optional<Device> device, bool copy,
               std::optional<MemoryFormat> format) {
  TERCEL_CHECK(!device || *device == x.device() || device->is_cpu(), NotImplementedError, "to(): moving to ",
               to_string(*device), " is not supported");
  const ScalarType wanted = dtype.value_or(x.dtype());
  Tensor out = to(x, wanted);
  const bool other_order =
      format && x.layout() == Layout::Strided && *format != MemoryFormat::Preserve && !out.is_contiguous(*format);
  if (other_order || (copy && out.is_same(x))) out = clone(out, format.value_or(MemoryFormat::Preserve));
  return out;
}

void check_same_layout(const Tensor& x, const Tensor& other) {
  TERCEL_CHECK(x.layout() == other.layout(), RuntimeError,
               "to(options) doesn't support converting to a different layout, but got self.layout being ",
               to_string(x.layout()), " and options.layout set as ", to_string(other.layout()));
}

#define TERCEL_CAST_ENTRY(name, type)                           \
  entry(                                                        \
      #name "(Tensor input, memory_format memory_format=None)", \
      [](const Tensor& x, std::optional<MemoryFormat> f) { return convert(x, type, {}, false, f); }, kMethod | kCoo)

PyObject* element(const char* at, ScalarType type) {
  return visit_all_types("tolist", type, [&]<class T>() { return from_scalar(Scalar(load_unaligned<T>(at))); });
}

/** `offset`: of the first element in bytes. Creating a list may run a collection, whose finalizers may resize the
 * storage: the address is read afterwards. */
PyObject* nested_list(const Tensor& t, int64_t dim, int64_t offset) {
  const auto data = [&] { return static_cast<const char*>(t.data_ptr()) + offset; };
  if (dim == t.dim()) return own(element(data(), t.dtype())).release().ptr();
  const int64_t n = t.size(dim);
  const int64_t step = t.stride(dim) * static_cast<int64_t>(t.itemsize());
  nb::object list = own(PyList_New(n));
  if (dim + 1 == t.dim() && n > 0) {
    const char* const row = data();
    for (int64_t i = 0; i < n; ++i)
      PyList_SET_ITEM(list.ptr(), i, own(element(row + i * step, t.dtype())).release().ptr());
  } else {
    for (int64_t i = 0; i < n; ++i) PyList_SET_ITEM(list.ptr(), i, nested_list(t, dim + 1, offset + i * step));
  }
  return list.release().ptr();
}

/** Elements as nested lists. */
PyObject* to_list(const Tensor& x) {
  const Tensor t = x.is_contiguous() ? x.detach() : x.detach().contiguous();
  return nested_list(t, 0, 0);
}

void check_one_truth(const Tensor& x) {
  TERCEL_CHECK(x.numel() == 1, RuntimeError, "Boolean value of Tensor with ",
               x.numel() == 0 ? "no values" : "more than one value", " is ambiguous");
}

/** x.size(), x.size(-1). */
PyObject* size(const Tensor& x, std::optional<int64_t> dim) {
  return dim ? PyLong_FromLongLong(x.sizes()[static_cast<size_t>(wrap_dim(*dim, x.dim(), false))])
             : from_sizes(x.sizes());
}
/** RuntimeError "Sparse CSR tensors do not have strides" for a compressed layout. */
void check_has(const char* what, const Tensor& x) {
  static constexpr const char* kWords[] = {"CSR", "CSC", "BSR", "BSC"};
  TERCEL_CHECK(!is_compressed(x.layout()), RuntimeError, "Sparse ",
               kWords[static_cast<int>(x.layout()) - static_cast<int>(Layout::SparseCsr)], " tensors do not have ",
               what);
}
PyObject* stride(const Tensor& x, std::optional<int64_t> dim) {
  check_has("strides", x);
  return dim ? PyLong_FromLongLong(x.strides()[static_cast<size_t>(wrap_dim(*dim, x.dim(), false))])
             : from_strides(x.strides());
}

/** The format's name in PyTorch's errors. */
const char* format_word(MemoryFormat format) {
  switch (format) {
    case MemoryFormat::Contiguous: return "Contiguous";
    case MemoryFormat::ChannelsLast: return "ChannelsLast";
    case MemoryFormat::ChannelsLast3d: return "ChannelsLast3d";
    case MemoryFormat::Preserve: return "Preserve";
  }
  return "";
}

}  // namespace

Span<Entry> copy_ops() {
  constexpr unsigned kAsk = kBoth | kCheap, kAskMethod = kMethod | kCheap;
  constexpr unsigned kDescribe = kAsk | kAnyLayout, kDescribeMethod = kAskMethod | kAnyLayout;
  static const Entry table[] = {

      entry(
          "contiguous(Tensor input, memory_format memory_format=None)",
          [](const Tensor& x, std::optional<MemoryFormat> f) {
            const MemoryFormat wanted = f.value_or(MemoryFormat::Contiguous);
            TERCEL_CHECK(wanted != MemoryFormat::Preserve, RuntimeError,
                         "preserve memory format is unsupported by the contiguous operator");
            check_has("is_contiguous", x);
            TERCEL_CHECK(x.layout() == Layout::Strided, RuntimeError, "unsupported memory format option ",
                         format_word(wanted));
            return x.is_contiguous(wanted) ? x : clone(x, wanted);
          },
          kMethod | kCoo),
      entry(
          "copy_(Tensor input, Tensor src, bool non_blocking=False)",
          [](const Tensor& x, const Tensor& source, bool) -> Tensor { return copy_(x, source); }, kMethod | kCoo),
      entry("fill_(Tensor input, Tensor|Scalar value)",
            [](const Tensor& x, Operand value) -> Tensor {
              if (!value.is_tensor()) return fill_(x, value.scalar);
              TERCEL_CHECK(value.tensor->dim() == 0, RuntimeError,
                           "fill_ only supports 0-dimension value tensor but got tensor with ", value.tensor->dim(),
                           " dimensions.");
              return copy_(x, *value.tensor);
            }),
      entry(
          "to(Tensor input, dtype dtype, bool non_blocking=False, bool copy=False, *, memory_format "
          "memory_format=None)",
          [](const Tensor& x, ScalarType type, bool, bool copy, std::optional<MemoryFormat> f) {
            return convert(x, type, {}, copy, f);
          },
          kMethod | kCoo),
      entry(
          "to(Tensor input, device device=None, dtype dtype=None, bool non_blocking=False, bool copy=False, *, "
          "memory_format memory_format=None)",
          [](const Tensor& x, std::optional<Device> device, std::optional<ScalarType> type, bool, bool copy,
             std::optional<MemoryFormat> f) { return convert(x, type, device, copy, f); },
          kMethod | kCoo),
      entry(
          "to(Tensor input, Tensor other, bool non_blocking=False, bool copy=False, *, memory_format "
          "memory_format=None)",
          [](const Tensor& x, const Tensor& other, bool, bool copy, std::optional<MemoryFormat> f) {
            check_same_layout(x, other);
            return convert(x, other.dtype(), other.device(), copy, f);
          },
          kMethod | kCoo),
      entry(
          "type_as(Tensor input, Tensor other)",
          [](const Tensor& x, const Tensor& other) {
            check_same_layout(x, other);
            return to(x, other.dtype());
          },
          kMethod | kCoo),
      entry(
          "cpu(Tensor input, memory_format memory_format=None)",
          [](const Tensor& x, std::optional<MemoryFormat> f) { return convert(x, {}, kCpu, false, f); },
          kMethod | kCoo),
      TERCEL_CAST_ENTRY(float, kFloat32),
      TERCEL_CAST_ENTRY(double, kFloat64),
      TERCEL_CAST_ENTRY(half, kFloat16),
      TERCEL_CAST_ENTRY(bfloat16, kBFloat16),
      TERCEL_CAST_ENTRY(long, kInt64),
      TERCEL_CAST_ENTRY(int, kInt32),
      TERCEL_CAST_ENTRY(short, kInt16),
      TERCEL_CAST_ENTRY(char, kInt8),
      TERCEL_CAST_ENTRY(byte, kUInt8),
      TERCEL_CAST_ENTRY(bool, kBool),
      TERCEL_CAST_ENTRY(cfloat, kComplex64),
      TERCEL_CAST_ENTRY(cdouble, kComplex128),
      entry(
          "item(Tensor input)", [](const Tensor& x) { return the_item(x); }, kAskMethod | kAnyLayout,
          "The value of a tensor of one element, as a Python number."),
      entry(
          "tolist(Tensor input)", [](const Tensor& x) -> PyObject* { return to_list(x); }, kAskMethod),
      entry(
          "numpy(Tensor input, *, bool force=False)",
          [](const Tensor& x, bool force) -> PyObject* {
            TERCEL_CHECK(x.layout() == Layout::Strided, TypeError,
                         "can't convert Sparse layout tensor to numpy. Use Tensor.to_dense() first.");
            return to_numpy(x, force);
          },
          kAskMethod | kCoo, "An array over the tensor's memory."),
      entry(
          "size(Tensor input, int? dim=None)",
          [](const Tensor& x, std::optional<int64_t> dim) -> PyObject* { return size(x, dim); }, kDescribeMethod),
      entry(
          "stride(Tensor input, int? dim=None)",
          [](const Tensor& x, std::optional<int64_t> dim) -> PyObject* { return stride(x, dim); }, kAskMethod | kCoo),
      entry(
          "dim(Tensor input)", [](const Tensor& x) { return x.dim(); }, kDescribeMethod),
      entry(
          "ndimension(Tensor input)", [](const Tensor& x) { return x.dim(); }, kDescribeMethod),
      entry(
          "numel(Tensor input)", [](const Tensor& x) { return x.numel(); }, kDescribe),
      entry(
          "nelement(Tensor input)", [](const Tensor& x) { return x.numel(); }, kDescribeMethod),
      entry(
          "storage_offset(Tensor input)", [](const Tensor& x) { return x.storage_offset(); }, kAskMethod | kCoo),
      entry(
          "element_size(Tensor input)", [](const Tensor& x) { return static_cast<int64_t>(x.itemsize()); },
          kDescribeMethod),
      entry(
          "data_ptr(Tensor input)",
          [](const Tensor& x) -> PyObject* {
            TERCEL_CHECK(!is_sparse(x.layout()), RuntimeError,
                         "Cannot access data pointer of Tensor that doesn't have storage");
            // Programs that free a storage temporarily compare the address with 0.
            const bool freed = x.has_storage() && !x.storage()->data();
            return PyLong_FromVoidPtr(freed ? nullptr : x.data_ptr());
          },
          kAskMethod | kCoo, "The address of the first element; 0 when there is none."),
      entry(
          "_debug_has_internal_overlap(Tensor input)",
          [](const Tensor& x) -> int64_t {
            // The answer without a search; 2: too hard to tell.
            if (x.impl().is_non_overlapping_and_dense()) return 0;
            for (int64_t d = 0; d < x.dim(); ++d)
              if (x.size(d) > 1 && x.stride(d) == 0) return 1;
            return 2;
          },
          kFunction | kCheap),
      entry(
          "is_contiguous(Tensor input, *, memory_format memory_format=None)",
          [](const Tensor& x, std::optional<MemoryFormat> f) {
            check_has("is_contiguous", x);
            if (x.layout() != Layout::Strided) return false;
            return x.is_contiguous(f.value_or(MemoryFormat::Contiguous));
          },
          kAskMethod | kCoo),
      entry(
          "is_floating_point(Tensor input)", [](const Tensor& x) { return x.is_floating_point(); }, kDescribe),
      entry(
          "is_complex(Tensor input)", [](const Tensor& x) { return x.is_complex(); }, kDescribe),
      entry(
          "is_signed(Tensor input)", [](const Tensor& x) { return !is_unsigned(x.dtype()) && x.dtype() != kBool; },
          kDescribe),
      entry(
          "is_nonzero(Tensor input)",
          [](const Tensor& x) {
            check_one_truth(x);
            return item(x).to_bool();
          },
          kAsk | kCoo),
      entry(
          "_assert_async(Tensor input, str assert_msg=\"\")",
          [](const Tensor& x, std::string_view message) {
            check_one_truth(x);
            TERCEL_CHECK(item(x).to_bool(), RuntimeError,
                         message.empty() ? "Expected Tensor with single nonzero value, but got zero" : message);
          },
          kFunction | kCheap),
      entry(
          "is_set_to(Tensor input, Tensor tensor)",
          [](const Tensor& x, const Tensor& other) { return x.is_set_to(other); }, kAskMethod),
      entry(
          "is_same_size(Tensor input, Tensor other)",
          [](const Tensor& x, const Tensor& other) { return x.sizes() == other.sizes(); }, kDescribe),
      entry(
          "_is_view(Tensor input)", [](const Tensor& x) { return view_base(x).defined(); }, kDescribeMethod),
      entry(
          "is_distributed(Tensor input)", [](const Tensor&) { return false; }, kDescribe),
      entry(
          "is_pinned(Tensor input)", [](const Tensor&) { return false; }, kDescribeMethod),
      entry(
          "has_names(Tensor input)", [](const Tensor&) { return false; }, kDescribeMethod),
      entry(
          "get_device(Tensor input)",
          [](const Tensor& x) -> int64_t { return x.device().is_cpu() ? -1 : x.device().index; }, kDescribe),
      entry(
          "untyped_storage(Tensor input)",
          [](const Tensor& x) -> PyObject* {
            TERCEL_CHECK(x.layout() == Layout::Strided, NotImplementedError, "Cannot access storage of ",
                         is_compressed(x.layout()) ? "SparseCsrTensorImpl" : "SparseTensorImpl");
            return from_storage(x.storage());
          },
          kAskMethod | kCoo, "The bytes that the tensor views."),
      entry(
          "set_(Tensor input, Storage source, int storage_offset, int[] size, int[] stride=())",
          [](const Tensor& x, PyObject* source, int64_t offset, const DimVector& size, const DimVector& strides)
              -> Tensor { return set_(x, storage_of_dtype(source, x.dtype()), offset, size, strides); },
          kAskMethod),
      entry(
          "set_(Tensor input, Storage source)",
          [](const Tensor& x, PyObject* source) -> Tensor { return set_(x, storage_of_dtype(source, x.dtype())); },
          kAskMethod),
      entry(
          "set_(Tensor input)", [](const Tensor& x) -> Tensor { return set_(x, create_storage(kCpu), 0, {0}); },
          kAskMethod),
      entry(
          "resize_(Tensor input, int[] size, *, memory_format memory_format=None)",
          [](const Tensor& x, const DimVector& size, std::optional<MemoryFormat> f) -> Tensor {
            return f ? resize_(x, size, *f) : resize_(x, size);
          },
          kAskMethod | kAnyLayout),
      entry(
          "resize_as_(Tensor input, Tensor the_template, *, memory_format memory_format=None)",
          [](const Tensor& x, const Tensor& other, std::optional<MemoryFormat> f) -> Tensor {
            return f ? resize_as_(x, other, *f) : resize_as_(x, other);
          },
          kAskMethod | kFunction),
  };
  return table;
}

}  // namespace tercel::python
