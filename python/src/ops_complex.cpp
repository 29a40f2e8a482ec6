// Complex numbers: construction from parts, views of parts, conjugation.
#include "python/src/op.h"
#include "python/src/out.h"
#include "tercel/ops/elementwise/complex.h"
#include "tercel/ops/elementwise/pointwise.h"

namespace tercel::python {

namespace {

/** RuntimeError where `out` has another dtype than the result. */
Tensor into_complex(const char* op, const Tensor& out, const Tensor& result) {
  TERCEL_CHECK(!out.defined() || out.dtype() == result.dtype(), RuntimeError, "Expected object of scalar type ",
               legacy_name(result.dtype()), " but got scalar type ", legacy_name(out.dtype()), " for argument 'out'");
  return into(op, out, result);
}

}  // namespace

Span<Entry> complex_ops() {
  constexpr unsigned kAsk = kBoth | kCheap;
  static const Entry table[] = {
      entry(
          "complex(Tensor real, Tensor imag, *, Tensor out=None)",
          [](const Tensor& re, const Tensor& im, const Tensor& out) {
            return into_complex("complex", out, complex(re, im));
          },
          kFunction, "real + imag i; both of the same floating dtype."),
      entry(
          "polar(Tensor abs, Tensor angle, *, Tensor out=None)",
          [](const Tensor& abs, const Tensor& angle, const Tensor& out) {
            return into_complex("polar", out, polar(abs, angle));
          },
          kFunction, "abs * (cos(angle) + sin(angle) i); both of the same floating dtype."),
      entry(
          "view_as_real(Tensor input)", [](const Tensor& x) { return view_as_real(x); }, kFunction | kCheap,
          "Real and imaginary parts in a new last dimension of size 2; a view."),
      entry(
          "view_as_complex(Tensor input)", [](const Tensor& x) { return view_as_complex(x); }, kFunction | kCheap,
          "The pairs along the last dimension as complex numbers; a view."),
      entry(
          "real(Tensor input)", [](const Tensor& x) { return real(x); }, kFunction | kCheap,
          "The real part, a view; a real tensor itself."),
      entry(
          "imag(Tensor input)", [](const Tensor& x) { return imag(x); }, kFunction | kCheap,
          "The imaginary part, a view."),
      entry(
          "conj(Tensor input)", [](const Tensor& x) { return conj(x); }, kBoth,
          "The complex conjugate, computed eagerly; a real tensor itself."),
      entry(
          "conj_physical(Tensor input, *, Tensor out=None)",
          [](const Tensor& x, const Tensor& out) { return into("conj_physical", out, conj_physical(x)); }, kBoth,
          "The complex conjugate in a new tensor."),
      entry(
          "conj_physical_(Tensor input)", [](const Tensor& x) -> Tensor { return conj_physical_(x); }, kBoth),
      entry(
          "angle(Tensor input, *, Tensor out=None)",
          [](const Tensor& x, const Tensor& out) { return into("angle", out, angle(x)); }, kBoth,
          "The angle of a complex number in (-pi, pi]; pi or 0 for a real one."),
      entry(
          "isreal(Tensor input)", [](const Tensor& x) { return isreal(x); }, kBoth, "Whether the imaginary part is 0."),
      // Conjugates and negatives are computed eagerly, so no tensor is ever a lazy one.
      entry(
          "is_conj(Tensor input)", [](const Tensor&) { return false; }, kAsk),
      entry(
          "is_neg(Tensor input)", [](const Tensor&) { return false; }, kAsk),
      entry(
          "resolve_conj(Tensor input)", [](const Tensor& x) { return x; }, kAsk),
      entry(
          "resolve_neg(Tensor input)", [](const Tensor& x) { return x; }, kAsk),
  };
  return table;
}

}  // namespace tercel::python
