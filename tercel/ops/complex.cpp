#include "tercel/ops/complex.h"

#include "tercel/ops/binary.h"
#include "tercel/ops/binary_ops.h"
#include "tercel/ops/copy.h"
#include "tercel/ops/elementwise_impl.h"
#include "tercel/ops/factories.h"
#include "tercel/ops/unary.h"
#include "tercel/ops/unary_ops.h"

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
  check_defined(a, F::name, "self");
  check_defined(b, F::name, "other");
  TERCEL_CHECK((a.dtype() == kFloat32 || a.dtype() == kFloat64) && b.is_floating_point(), RuntimeError,
               "Expected both inputs to be Half, Float or Double tensors but got ", to_string(a.dtype()), " and ",
               to_string(b.dtype()));
  TERCEL_CHECK(a.dtype() == b.dtype(), RuntimeError, "Expected object of scalar type ", to_string(a.dtype()),
               " but got scalar type ", to_string(b.dtype()), " for second argument");
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
  const OperandRef inputs[] = {a, b};
  check_out_variant(F::name, out, inputs);
  TERCEL_CHECK(out.dtype() == complex_dtype(a.dtype()), RuntimeError, "Expected object of scalar type ",
               to_string(complex_dtype(a.dtype())), " but got scalar type ", to_string(out.dtype()),
               " for argument 'out'");
  elementwise_to(out, kRule<F>, binary_kernels, index_of<F, BinaryOps>, inputs);
  return out;
}

}  // namespace

Tensor complex(const Tensor& re, const Tensor& im) {
  Tensor out = of_two<op::MakeComplex>(re, im);
  if (should_record(re, im))
    record(
        "ComplexBackward0", out, {re, im},
        [re_sizes = DimVector(re.sizes()), im_sizes = DimVector(im.sizes()), dtype = re.dtype()](BackwardCall& call) {
          const Tensor& g = call.grad();
          if (call.needs(0)) call.set(0, gradient_for(real(g), re_sizes, dtype));
          if (call.needs(1)) call.set(1, gradient_for(imag(g), im_sizes, dtype));
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
           [angle = SavedTensor(angle), out = SavedTensor::output(out), abs_sizes = DimVector(abs.sizes()),
            dtype = abs.dtype()](BackwardCall& call) {
             // d out / d abs = out / abs, d out / d angle = i out; of a real operand only the real part counts.
             const Tensor g = conj(call.grad());
             const Tensor& a = angle.get();
             if (call.needs(0)) call.set(0, gradient_for(real(mul(g, complex(cos(a), sin(a)))), abs_sizes, dtype));
             if (call.needs(1))
               call.set(1, gradient_for(neg(imag(mul(g, out.get(call)))), DimVector(a.sizes()), dtype));
           });
  return out;
}
const Tensor& polar_out(const Tensor& out, const Tensor& abs, const Tensor& angle) {
  return of_two_out<op::Polar>(out, abs, angle);
}

Tensor real(const Tensor& x) {
  check_defined(x, "real", "self");
  return to(x, real_dtype(x.dtype()));
}

Tensor imag(const Tensor& x) {
  check_defined(x, "imag", "self");
  TERCEL_CHECK(x.is_complex(), RuntimeError, "imag is not implemented for tensors with non-complex dtypes.");
  Tensor out = of_one<op::Imag>(x);
  if (should_record(x))
    record("ImagBackward0", out, {x},
           [](BackwardCall& call) { call.set(0, complex(zeros_like(call.grad()), call.grad())); });
  return out;
}

Tensor conj(const Tensor& x) {
  check_defined(x, "conj", "self");
  return x.is_complex() ? conj_physical(x) : x;
}

Tensor conj_physical(const Tensor& x) {
  check_defined(x, "conj_physical", "self");
  if (!x.is_complex()) return clone(x);
  Tensor out = of_one<op::Conj>(x);
  if (should_record(x))
    record("ConjPhysicalBackward0", out, {x}, [](BackwardCall& call) { call.set(0, conj(call.grad())); });
  return out;
}

const Tensor& conj_physical_(const Tensor& x) {
  check_defined(x, "conj_physical_", "self");
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
