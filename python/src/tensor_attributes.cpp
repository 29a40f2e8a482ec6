// Attributes of Tensor: x.shape, x.dtype, x.grad ...
#include "python/src/autograd.h"
#include "python/src/convert.h"
#include "tercel/autograd/autograd.h"
#include "tercel/autograd/autograd_meta.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/complex.h"
#include "tercel/ops/views/views.h"

namespace tercel::python {

namespace {

constexpr char kHooksName[] = "_backward_hooks";
constexpr char kGradFnName[] = "_grad_fn";
constexpr char kGradName[] = "grad", kDataName[] = "data", kRequiresGradName[] = "requires_grad", kRealName[] = "real",
               kImagName[] = "imag", kNamesName[] = "names";

template <PyObject* (*Get)(const Tensor&)>
PyObject* getter(PyObject* self, void*) {
  return at_border([&] { return Get(tensor_of(self)); });
}
template <void (*Set)(PyObject*, const Tensor&, PyObject*)>
int setter(PyObject* self, PyObject* value, void* name) {
  return at_border<int>(-1, [&] {
    // Only .grad can be deleted.
    if (!value && static_cast<const char*>(name) == kGradName) value = Py_None;
    TERCEL_CHECK(value, RuntimeError, "Can't delete Tensor.", static_cast<const char*>(name));
    Set(self, tensor_of(self), value);
    return 0;
  });
}

PyObject* shape(const Tensor& t) { return from_sizes(t.sizes()); }
PyObject* dtype(const Tensor& t) { return from_dtype(t.dtype()); }
PyObject* device(const Tensor& t) { return from_device(t.device()); }
PyObject* layout(const Tensor& t) { return from_layout(t.layout()); }
PyObject* ndim(const Tensor& t) { return PyLong_FromLongLong(t.dim()); }
PyObject* itemsize(const Tensor& t) { return PyLong_FromSize_t(t.itemsize()); }
PyObject* nbytes(const Tensor& t) {
  TERCEL_CHECK(!is_sparse(t.layout()), RuntimeError,
               "nbytes is not defined for sparse tensors.  If you want the size of the constituent tensors, add the "
               "nbytes of the indices and values.  If you want the size of the  equivalent dense tensor, multiply "
               "numel() by element_size()");
  return PyLong_FromSize_t(t.nbytes());
}
PyObject* requires_grad(const Tensor& t) { return PyBool_FromLong(t.requires_grad()); }
PyObject* retains_gradient(const Tensor& t) { return PyBool_FromLong(retains_grad(t)); }
PyObject* is_leaf(const Tensor& t) { return PyBool_FromLong(t.is_leaf()); }
PyObject* is_cpu(const Tensor& t) { return PyBool_FromLong(t.device().is_cpu()); }
PyObject* is_cuda(const Tensor& t) { return PyBool_FromLong(t.device().is_cuda()); }
PyObject* is_mkldnn(const Tensor& t) { return PyBool_FromLong(t.layout() == Layout::Opaque); }
PyObject* is_sparse_csr(const Tensor& t) { return PyBool_FromLong(t.layout() == Layout::SparseCsr); }
PyObject* is_sparse(const Tensor& t) { return PyBool_FromLong(t.layout() == Layout::SparseCoo); }
PyObject* never(const Tensor&) { return Py_NewRef(Py_False); }
PyObject* output_nr(const Tensor& t) {
  const AutogradMeta* meta = autograd_meta(t);
  return PyLong_FromUnsignedLong(meta ? meta->output_nr : 0);
}
PyObject* version(const Tensor& t) { return PyLong_FromUnsignedLong(t.version()); }
PyObject* base(const Tensor& t) { return wrap(view_base(t)); }
PyObject* data(const Tensor& t) { return wrap(t.data()); }
PyObject* transposed(const Tensor& t) { return wrap(numpy_T(t)); }
PyObject* mt(const Tensor& t) { return wrap(mT(t)); }
PyObject* mh(const Tensor& t) { return wrap(mH(t)); }
PyObject* hermitian(const Tensor& t) { return wrap(matrix_H(t)); }
PyObject* real_part(const Tensor& t) { return wrap(real(t)); }
PyObject* imaginary_part(const Tensor& t) { return wrap(imag(t)); }

/** A gradient of rows becomes COO when it is read, so that in-place changes of `x.grad` reach the optimizer. */
PyObject* grad(const Tensor& t) {
  if (t.requires_grad() && !t.is_leaf() && !retains_grad(t) && !gradient_of(t).defined() &&
      PyErr_WarnEx(
          PyExc_UserWarning,
          "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute "
          "won't be populated during autograd.backward(). If you indeed want the .grad field to be populated "
          "for a non-leaf Tensor, use .retain_grad() on the non-leaf Tensor. If you access the non-leaf Tensor "
          "by mistake, make sure you access the leaf Tensor instead.",
          1) < 0)
    raise_pending();
  Gradient g = gradient_of(t);
  if (g.is_rows()) {
    g = to_coo(std::move(g), t.sizes());
    set_gradient(t, g);
  }
  return wrap(g.values);
}
PyObject* grad_fn_of(const Tensor& t) {
  const auto node = grad_fn(t);
  if (!node) return Py_NewRef(Py_None);
  return from_node(node);
}

/** Old programs drop the history this way. */
void set_grad_fn(PyObject*, const Tensor& t, PyObject* value) {
  TERCEL_CHECK(value == Py_None, RuntimeError, "_grad_fn can be only set to None");
  detach_(t);
}

/** Registers hooks as old programs do, with a dict of functions. Hooks registered otherwise are not shown. */
void set_hooks(PyObject* self, const Tensor&, PyObject* value) {
  if (value == Py_None) return;
  for (const nb::handle hook : nb::borrow(value).attr("values")()) nb::borrow(self).attr("register_hook")(hook);
}
PyObject* none(const Tensor&) { return Py_NewRef(Py_None); }

void set_requires_grad(PyObject*, const Tensor& t, PyObject* value) {
  TERCEL_CHECK(PyBool_Check(value), RuntimeError, "requires_grad must be a bool");
  Tensor(t).requires_grad_(value == Py_True);
}
void set_grad(PyObject* self, const Tensor& t, PyObject* value) {
  if (value == Py_None) return clear_gradient(t);
  TERCEL_CHECK(is_tensor(value), TypeError, "assigned grad expected to be a Tensor or None but got grad of type ",
               Py_TYPE(value)->tp_name);
  const Tensor& g = tensor_of(value);
  TERCEL_CHECK(value != self, RuntimeError, "can't assign Variable as its own grad");
  TERCEL_CHECK(g.dtype() == t.dtype(), RuntimeError, "assigned grad has data of a different type");
  TERCEL_CHECK(g.device() == t.device(), RuntimeError, "assigned grad has data located on a different device");
  TERCEL_CHECK(g.sizes() == t.sizes(), RuntimeError, "assigned grad has data of a different size");
  Tensor(t).set_grad(g);
}
void set_data(PyObject*, const Tensor& t, PyObject* value) {
  TERCEL_CHECK(is_tensor(value), TypeError, "Variable data has to be a tensor, but got ", Py_TYPE(value)->tp_name);
  TERCEL_CHECK(!t.requires_grad() || tensor_of(value).is_differentiable(), RuntimeError,
               "data set to a tensor that requires gradients must be floating point or complex dtype");
  TERCEL_CHECK(t.layout() == tensor_of(value).layout(), RuntimeError,
               "Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have incompatible tensor "
               "type.");
  t.impl().shallow_copy_from(tensor_of(value).impl());
}
/** x.real = value: a tensor, which is broadcast, or a number. */
void assign(const Tensor& part, PyObject* value) {
  if (is_tensor(value)) {
    copy_(part, tensor_of(value));
    return;
  }
  TERCEL_CHECK(is_number(value), TypeError, "can't assign a ", Py_TYPE(value)->tp_name, " to a ",
               to_string(part.dtype()), " tensor");
  fill_(part, to_scalar(value));
}
void set_real(PyObject*, const Tensor& t, PyObject* value) { assign(real(t), value); }
void set_imag(PyObject*, const Tensor& t, PyObject* value) { assign(imag(t), value); }
void set_names_refused(PyObject*, const Tensor&, PyObject*) {
  throw_error<NotImplementedError>({"named tensors are not supported"});
}
PyObject* names(const Tensor& t) {
  nb::object tuple = own(PyTuple_New(static_cast<Py_ssize_t>(t.dim())));
  for (Py_ssize_t i = 0; i < static_cast<Py_ssize_t>(t.dim()); ++i)
    PyTuple_SET_ITEM(tuple.ptr(), i, Py_NewRef(Py_None));
  return tuple.release().ptr();
}

#define TERCEL_READ(name, function, doc) \
  { name, getter<function>, nullptr, doc, nullptr }

PyGetSetDef g_attributes[] = {
    TERCEL_READ("shape", shape, "The sizes, as a tercel.Size."),
    TERCEL_READ("dtype", dtype, "The type of the elements."),
    TERCEL_READ("device", device, "The device of the data."),
    TERCEL_READ("layout", layout, "The layout of the elements."),
    TERCEL_READ("ndim", ndim, "The number of dimensions."),
    TERCEL_READ("itemsize", itemsize, "The size of an element in bytes."),
    TERCEL_READ("nbytes", nbytes, "The size of all elements in bytes."),
    TERCEL_READ("is_leaf", is_leaf, "Whether the tensor is a leaf: not the result of a recorded operation."),
    TERCEL_READ("retains_grad", retains_gradient, "Whether backward keeps the gradient of this intermediate result."),
    TERCEL_READ("is_cpu", is_cpu, "Whether the data is on the CPU."),
    TERCEL_READ("is_cuda", is_cuda, "Whether the data is on a GPU: always False."),
    TERCEL_READ("is_sparse", is_sparse, "Whether the layout is COO."),
    TERCEL_READ("is_sparse_csr", is_sparse_csr, "Whether the layout is CSR."),
    TERCEL_READ("is_quantized", never, "Never."),
    TERCEL_READ("is_meta", never, "Whether the tensor is on the meta device: always False."),
    TERCEL_READ("is_mkldnn", is_mkldnn, "Whether it is a packed weight, made by to_mkldnn()."),
    TERCEL_READ("output_nr", output_nr, "The index of this tensor among the outputs of grad_fn."),
    TERCEL_READ("_version", version, "The version counter: the number of in-place changes of the data."),
    TERCEL_READ("_base", base, "The tensor that this one views, or None."),
    TERCEL_READ("T", transposed, "All dimensions in reverse order."),
    TERCEL_READ("mT", mt, "The last two dimensions swapped."),
    TERCEL_READ("H", hermitian, "The conjugate transpose of a matrix."),
    TERCEL_READ("mH", mh, "adjoint()."),
    TERCEL_READ("grad_fn", grad_fn_of, "The graph node that produced the tensor, or None."),
    {"_backward_hooks", getter<none>, setter<set_hooks>, "Hooks to register, as a dict.",
     const_cast<char*>(kHooksName)},
    {"_grad_fn", getter<grad_fn_of>, setter<set_grad_fn>, "grad_fn, which can be set to None.",
     const_cast<char*>(kGradFnName)},
    {"requires_grad", getter<requires_grad>, setter<set_requires_grad>,
     "Whether operations on the tensor are recorded.", const_cast<char*>(kRequiresGradName)},
    {"grad", getter<grad>, setter<set_grad>, "The gradient that backward() accumulated, or None.",
     const_cast<char*>(kGradName)},
    {"data", getter<data>, setter<set_data>, "The same data without history.", const_cast<char*>(kDataName)},
    {"real", getter<real_part>, setter<set_real>, "The real part, a view; a real tensor itself.",
     const_cast<char*>(kRealName)},
    {"imag", getter<imaginary_part>, setter<set_imag>, "The imaginary part, a view.", const_cast<char*>(kImagName)},
    {"names", getter<names>, setter<set_names_refused>, "None for each dimension: there are no names.",
     const_cast<char*>(kNamesName)},
    {},
};
#undef TERCEL_READ

}  // namespace

PyGetSetDef* tensor_attributes() { return g_attributes; }

}  // namespace tercel::python
