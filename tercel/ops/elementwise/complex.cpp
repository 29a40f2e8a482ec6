#include "tercel/ops/elementwise/complex.h"

#include "tercel/core/dtype_words.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/common/elementwise_impl.h"
#include "tercel/ops/common/operand_checks_impl.h"
#include "tercel/ops/common/out.h"
#include "tercel/ops/common/view_geometry_impl.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/binary_ops.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/elementwise/unary_ops.h"
#include "tercel/ops/sparse/sparse_ops_impl.h"
#include "tercel/ops/views/views.h"

namespace tercel {

namespace {

constinit const KernelTable<ElementwiseFn> unary_kernels = TERCEL_KERNELS(unary);
constinit const KernelTable<ElementwiseFn> binary_kernels = TERCEL_KERNELS(binary);

template <class F>
constexpr ElementwiseRule kRule = {.op = F::name, .domain = F::domain, .complex = true, .real = is_real_valued<F>};

template <class F>
Tensor of_one(const Tensor& x) {
  const OperandRef inputs[] = {x};
  return elementwise(kRule<F>, unary_kernels, index_of<F, UnaryOps>, inputs);
}

template <class F>
void check_parts(const Tensor& a, const Tensor& b) {
  check_strided(F::name, a);
  check_strided(F::name, b, "other");
  TERCEL_CHECK((a.dtype() == kFloat32 || a.dtype() == kFloat64) && b.is_floating_point(), NotImplementedError,
               "Expected both inputs to be Half, Float or Double tensors but got ", scalar_type_word(a.dtype()),
               " and ", scalar_type_word(b.dtype()));
  TERCEL_CHECK(a.dtype() == b.dtype(), RuntimeError, "Expected object of scalar type ", scalar_type_word(a.dtype()),
               " but got scalar type ", scalar_type_word(b.dtype()), " for second argument");
}

template <class F>
Tensor of_two(const Tensor& a, const Tensor& b) {
  check_parts<F>(a, b);
  const OperandRef inputs[] = {a, b};
  return elementwise(kRule<F>, binary_kernels, index_of<F, BinaryOps>, inputs);
}

template <class F>
const Tensor& of_two_out(const Tensor& out, const Tensor& a, const Tensor& b) {
  check_parts<F>(a, b);
  check_out_apart(F::name, {out}, {a, b});
  const OperandRef inputs[] = {a, b};
  const bool takes = takes_result(F::name, out, inputs);
  TERCEL_CHECK(out.dtype() == complex_dtype(a.dtype()), RuntimeError, "Expected object of scalar type ",
               scalar_type_word(complex_dtype(a.dtype())), " but got scalar type ", scalar_type_word(out.dtype()),
               " for argument 'out'");
  if (!takes) return put_out(F::name, out, elementwise(kRule<F>, binary_kernels, index_of<F, BinaryOps>, inputs));
  elementwise_to(out, kRule<F>, binary_kernels, index_of<F, BinaryOps>, inputs);
  return out;
}

}  // namespace

Tensor complex(const Tensor& re, const Tensor& im) {
  Tensor out = of_two<op::MakeComplex>(re, im);
  if (should_record(re, im))
    record("ComplexBackward0", out, {re, im}, [of_re = TensorMeta(re), of_im = TensorMeta(im)](BackwardCall& call) {
      const Tensor& g = call.grad();
      if (call.needs(0)) call.set(0, gradient_for(of_re, real(g)));
      if (call.needs(1)) call.set(1, gradient_for(of_im, imag(g)));
    });
  return out;
}
const Tensor& complex_out(const Tensor& out, const Tensor& re, const Tensor& im) {
  return of_two_out<op::MakeComplex>(out, re, im);
}

Tensor polar(const Tensor& abs, const Tensor& angle) {
  Tensor out = of_two<op::Polar>(abs, angle);
  if (should_record(abs, angle))
    record("PolarBackward0", out, {abs, angle},
           [angle = SavedTensor(angle), out = SavedTensor::output(out), of_abs = TensorMeta(abs),
            of_angle = TensorMeta(angle)](BackwardCall& call) {
             // d out / d abs = out / abs, d out / d angle = i out; the gradient of a real operand is the real part.
             const Tensor g = conj(call.grad());
             const Tensor& a = angle.get();
             if (call.needs(0)) call.set(0, gradient_for(of_abs, real(mul(g, complex(cos(a), sin(a))))));
             if (call.needs(1)) call.set(1, gradient_for(of_angle, neg(imag(mul(g, out.get(call))))));
           });
  return out;
}
const Tensor& polar_out(const Tensor& out, const Tensor& abs, const Tensor& angle) {
  return of_two_out<op::Polar>(out, abs, angle);
}

Tensor view_as_real(const Tensor& x) {
  check_strided("view_as_real", x);
  TERCEL_CHECK(x.is_complex(), TypeError, "view_as_real is only supported for complex tensors");
  Geometry g(x);
  for (int64_t& stride : g.strides) stride *= 2;
  g.offset *= 2;
  g.sizes.push_back(2);
  g.strides.push_back(1);
  Tensor out = g.of(x);
  out.impl().set_dtype(real_dtype(x.dtype()));
  make_view("ViewAsRealBackward0", out, x,
            [] { return [](BackwardCall& call) { call.set(0, view_as_complex(contiguous(call.grad()))); }; });
  return out;
}

Tensor view_as_complex(const Tensor& x) {
  check_strided("view_as_complex", x);
  TERCEL_CHECK(!x.is_complex(), TypeError, "view_as_complex is not supported for complex tensors");
  TERCEL_CHECK(
      x.dtype() == kFloat32 || x.dtype() == kFloat64, NotImplementedError,
      "view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar type: ",
      scalar_type_word(x.dtype()));
  TERCEL_CHECK(x.dim() > 0, RuntimeError, "Input tensor must have one or more dimensions");
  TERCEL_CHECK(x.size(-1) == 2, RuntimeError, "Tensor must have a last dimension of size 2");
  TERCEL_CHECK(x.stride(-1) == 1, RuntimeError, "Tensor must have a last dimension with stride 1");
  Geometry g(x);
  g.sizes.pop_back();
  g.strides.pop_back();
  for (int64_t& stride : g.strides) {
    TERCEL_CHECK(stride % 2 == 0, RuntimeError, "Tensor must have a stride divisible by 2 for all but last dimension");
    stride /= 2;
  }
  TERCEL_CHECK(g.offset % 2 == 0, RuntimeError, "Tensor must have a storage_offset divisible by 2");
  g.offset /= 2;
  Tensor out = g.of(x);
  out.impl().set_dtype(complex_dtype(x.dtype()));
  make_view("ViewAsComplexBackward0", out, x,
            [] { return [](BackwardCall& call) { call.set(0, view_as_real(call.grad())); }; });
  return out;
}

Tensor real(const Tensor& x) {
  if (!x.is_complex() && has_sparse(x)) [[unlikely]]
    return x;
  check_strided("real", x);
  return x.is_complex() ? select(view_as_real(x), -1, 0) : x;
}

Tensor imag(const Tensor& x) {
  check_strided("imag", x);
  TERCEL_CHECK(x.is_complex(), TypeError, "imag is not implemented for tensors with non-complex dtypes.");
  return select(view_as_real(x), -1, 1);
}

Tensor conj(const Tensor& x) {
  if (!x.is_complex() && has_sparse(x)) [[unlikely]]
    return x;
  if (!has_sparse(x)) check_strided("conj", x);
  return x.is_complex() ? conj_physical(x) : x;
}

Tensor conj_physical(const Tensor& x) {
  if (has_sparse(x)) [[unlikely]]
    return sparse_map_values("conj_physical", x, [](const Tensor& values) { return conj_physical(values); });
  check_strided("conj_physical", x);
  if (!x.is_complex()) return clone(x);
  Tensor out = of_one<op::Conj>(x);
  if (should_record(x))
    record("ConjPhysicalBackward0", out, {x}, [](BackwardCall& call) { call.set(0, conj(call.grad())); });
  return out;
}

const Tensor& conj_physical_(const Tensor& x) {
  if (has_sparse(x)) [[unlikely]]
    return sparse_assign_(x, conj_physical(sparse_as_it_was(x, should_record(x))));
  check_strided("conj_physical_", x);
  const bool records = should_record(x);
  check_inplace(x, records);
  if (!x.is_complex()) return x;
  const OperandRef inputs[] = {x};
  elementwise_to(x, kRule<op::Conj>, unary_kernels, index_of<op::Conj, UnaryOps>, inputs);
  if (records)
    record_inplace("ConjPhysicalBackward0", x, {x}, [](BackwardCall& call) { call.set(0, conj(call.grad())); });
  return x;
}

}  // namespace tercel
