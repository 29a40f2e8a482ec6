// Complex numbers: construction from parts, views of parts, conjugation.
#include "python/src/op.h"
#include "python/src/out.h"
#include "tercel/ops/elementwise/complex.h"
#include "tercel/ops/elementwise/composite.h"

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
      // Conjugates and negatives are computed eagerly, so no tensor is ever a lazy one.
      entry(
          "is_conj(Tensor input)", [](const Tensor&) { return false; }, kAsk | kAnyLayout),
      entry(
          "is_neg(Tensor input)", [](const Tensor&) { return false; }, kAsk | kAnyLayout),
      entry(
          "resolve_conj(Tensor input)", [](const Tensor& x) { return x; }, kAsk | kAnyLayout),
      entry(
          "resolve_neg(Tensor input)", [](const Tensor& x) { return x; }, kAsk | kAnyLayout),
  };
  return table;
}

}  // namespace tercel::python
