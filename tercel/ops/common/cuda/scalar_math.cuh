// Scalar functions for functors on a GPU: functions of float and double under the names that functors call. Must be
// included before the functor lists, whose calls on plain numbers find only earlier declarations.
#pragma once

#include <cmath>

#include "tercel/ops/common/int_math_impl.h"
#include "tercel/util/macros.h"

namespace tercel::op {

#define TERCEL_SCALAR_FUNCTION(name, f32, f64)              \
  TERCEL_HD inline float name(float x) { return ::f32(x); } \
  TERCEL_HD inline double name(double x) { return ::f64(x); }
TERCEL_SCALAR_FUNCTION(abs, fabsf, fabs)
TERCEL_SCALAR_FUNCTION(exp, expf, exp)
TERCEL_SCALAR_FUNCTION(expm1, expm1f, expm1)
TERCEL_SCALAR_FUNCTION(log, logf, log)
TERCEL_SCALAR_FUNCTION(log1p, log1pf, log1p)
TERCEL_SCALAR_FUNCTION(sqrt, sqrtf, sqrt)
TERCEL_SCALAR_FUNCTION(sin, sinf, sin)
TERCEL_SCALAR_FUNCTION(cos, cosf, cos)
TERCEL_SCALAR_FUNCTION(tanh, tanhf, tanh)
TERCEL_SCALAR_FUNCTION(erf, erff, erf)
TERCEL_SCALAR_FUNCTION(floor, floorf, floor)
TERCEL_SCALAR_FUNCTION(ceil, ceilf, ceil)
TERCEL_SCALAR_FUNCTION(trunc, truncf, trunc)
/** Round to nearest, ties to even. */
TERCEL_SCALAR_FUNCTION(round, rintf, rint)
#undef TERCEL_SCALAR_FUNCTION

#define TERCEL_SCALAR_FUNCTION(name, f32, f64)                          \
  TERCEL_HD inline float name(float a, float b) { return ::f32(a, b); } \
  TERCEL_HD inline double name(double a, double b) { return ::f64(a, b); }
TERCEL_SCALAR_FUNCTION(pow, powf, pow)
TERCEL_SCALAR_FUNCTION(atan2, atan2f, atan2)
TERCEL_SCALAR_FUNCTION(hypot, hypotf, hypot)
TERCEL_SCALAR_FUNCTION(fmod, fmodf, fmod)
TERCEL_SCALAR_FUNCTION(copysign, copysignf, copysign)
#undef TERCEL_SCALAR_FUNCTION

template <class T>
concept Real = std::is_floating_point_v<T>;

template <Real T>
TERCEL_HD T where(bool condition, T a, T b) {
  return condition ? a : b;
}
template <Real T>
TERCEL_HD bool isnan(T x) {
  return x != x;
}
template <Real T>
TERCEL_HD bool isfinite(T x) {
  return x - x == T(0);
}
template <Real T>
TERCEL_HD T maximum(T a, T b) {
  return a > b || isnan(a) ? a : b;
}
template <Real T>
TERCEL_HD T minimum(T a, T b) {
  return a < b || isnan(a) ? a : b;
}
template <Real T>
TERCEL_HD T remainder(T a, T b) {
  const T r = fmod(a, b);
  return r != T(0) && (r < T(0)) != (b < T(0)) ? r + b : r;
}
/** As in cpu/vec_math.h. */
template <Real T>
TERCEL_HD T floor_divide(T a, T b) {
  const T rough = a / b;
  if (b == T(0)) return rough;
  if (!isfinite(a)) return a - a;
  if (!isfinite(rough)) return rough;
  if (!isfinite(b)) return a != T(0) && (a < T(0)) != (b < T(0)) ? T(-1) : copysign(T(0), rough);
  const T near = round((a - remainder(a, b)) / b);
  return near == T(0) ? copysign(T(0), rough) : near;
}

}  // namespace tercel::op
