// Special ops: most loops are compiled once (special_loops.cpp); this file has vector loops and the tiled loops, for
// each instruction set.
#include "tercel/ops/special/special_kernels.h"
#include "tercel/ops/common/cpu/contiguous_loop.h"
#include "tercel/ops/special/special_unary_ops.h"

namespace tercel::TERCEL_ISA {
namespace {

// Some float32 functions are Tercel's own, on all instruction sets or on one.
#define TERCEL_SLEEF_UNARY(name, ulp)                                                                 \
  [[maybe_unused]] inline VecF name(VecF x) { return VecF::Batch(TERCEL_SLEEF_F32(name, ulp)(x.v)); } \
  [[maybe_unused]] inline VecD name(VecD x) { return VecD::Batch(TERCEL_SLEEF_F64(name, ulp)(x.v)); }
namespace sleef {
TERCEL_SLEEF_UNARY(tan, u10)
TERCEL_SLEEF_UNARY(asin, u10)
TERCEL_SLEEF_UNARY(acos, u10)
TERCEL_SLEEF_UNARY(atan, u10)
TERCEL_SLEEF_UNARY(atanh, u10)
TERCEL_SLEEF_UNARY(log2, u10)
TERCEL_SLEEF_UNARY(log10, u10)
TERCEL_SLEEF_UNARY(exp2, u10)
TERCEL_SLEEF_UNARY(erfc, u15)
TERCEL_SLEEF_UNARY(lgamma, u10)
}  // namespace sleef
#undef TERCEL_SLEEF_UNARY

/** AVX2 and AVX-512 have a faster function for moderate angles. */
inline VecF tan(VecF x) {
#if TERCEL_ISA_LEVEL >= 1
  const Mask<float> plain = is_plain_angle(x);
  const VecF own = tan_of(x);
  return any(!plain) ? where(plain, own, sleef::tan(x)) : own;
#else
  return sleef::tan(x);
#endif
}

/** SLEEF's f64 version loses the sign of subnormal numbers. */
inline VecD tan(VecD x) { return where(abs(x) < VecD(1e-100), x, sleef::tan(x)); }

#if TERCEL_ISA_LEVEL >= 1
template <class T>
Vec<T> log2(Vec<T> x) {
  return log2_of(x);
}
template <class T>
Vec<T> log10(Vec<T> x) {
  return log10_of(x);
}
inline VecF erfc(VecF x) { return erfc_of(x); }
#else
using sleef::erfc, sleef::log10, sleef::log2;
#endif

/** 4 ulp: x times polynomials in the logarithm of 1 - x^2 and in its root. */
inline Vec<float> erfinv(Vec<float> x) {
  const Vec<float> one(1), w = -log((one - x) * (one + x)), w1 = w - Vec<float>(2.5F), w2 = sqrt(w) - Vec<float>(3);
  const Vec<float> near = polynomial(w1, kErfinvNearF), far = polynomial(w2, kErfinvFarF);
  const Vec<float> inside = x * where(w < Vec<float>(5), near, far);
  return where(abs(x) == one, x / (one - abs(x)), inside);
}

// One loop, which calls the function by pointer: functions are long, and mostly calls themselves.
template <class T>
[[gnu::noinline]] void loop_of(Vec<T> (*f)(Vec<T>), void* out, const void* const* in, int64_t n) {
  compact_loop<T>(f, out, in, n, std::make_index_sequence<1>());
}
template <class T, class F>
Vec<T> call(Vec<T> x) {
  return F{}(x);
}
template <class T, class F>
void vector_loop(void* out, const void* const* in, int64_t n) {
  loop_of<T>(&call<T, F>, out, in, n);
}

struct VectorLoops {
  int number;
  ContiguousLoop f32, f64;
};
template <class Op, class F32, class F64>
constexpr VectorLoops loops_of(F32, F64) {
  VectorLoops out = {special_number(false, index_of<Op, SpecialUnaryOps>, SpecialPart::Forward),
                     &vector_loop<float, F32>, nullptr};
  if constexpr (!std::is_same_v<F64, std::nullptr_t>) out.f64 = &vector_loop<double, F64>;
  return out;
}

#define TERCEL_FUNCTION(name) [](auto x) { return name(x); }
#define TERCEL_LOOPS(Op, f32, f64) loops_of<special::op::Op>(TERCEL_FUNCTION(f32), TERCEL_FUNCTION(f64))
constexpr VectorLoops kVectorLoops[] = {
    TERCEL_LOOPS(Tan, tan, tan),
    TERCEL_LOOPS(Asin, sleef::asin, sleef::asin),
    TERCEL_LOOPS(Acos, sleef::acos, sleef::acos),
    TERCEL_LOOPS(Atan, atan_of, sleef::atan),
    TERCEL_LOOPS(Atanh, sleef::atanh, sleef::atanh),
    TERCEL_LOOPS(Log2, log2, log2),
    TERCEL_LOOPS(Log10, log10, log10),
    TERCEL_LOOPS(Exp2, sleef::exp2, sleef::exp2),
    TERCEL_LOOPS(Erfc, erfc, sleef::erfc),
    TERCEL_LOOPS(Lgamma, sleef::lgamma, sleef::lgamma),
    loops_of<special::op::Erfinv>(TERCEL_FUNCTION(erfinv), nullptr),
};
#undef TERCEL_LOOPS
#undef TERCEL_FUNCTION

ContiguousLoop contiguous_loop(int op, Compute compute) {
  for (const VectorLoops& loops : kVectorLoops)
    if (loops.number == op) {
      if (compute == Compute::F32) return loops.f32;
      if (compute == Compute::F64 && loops.f64) return loops.f64;
    }
  return special_loop(op, compute);
}

}  // namespace

void special_elementwise(int op, const ElementwiseLoop& loop) {
  run_elementwise(loop, contiguous_loop(op, loop.compute));
}

}  // namespace tercel::TERCEL_ISA
