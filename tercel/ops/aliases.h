// PyTorch's aliases of ops. Each has all variants of the op that it names: out of place, name_ in place, name_out.
#pragma once

#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/composite.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/linalg/linalg.h"
#include "tercel/ops/nn/softmax.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/special/special.h"

// For ops with methods, and (FUNCTION) for ops without.
#define TERCEL_UNARY_FUNCTION_ALIAS(alias, name)                        \
  inline Tensor alias(const Tensor& x) { return name(x); }              \
  inline const Tensor& alias##_(const Tensor& x) { return name##_(x); } \
  inline const Tensor& alias##_out(const Tensor& out, const Tensor& x) { return name##_out(out, x); }
#define TERCEL_UNARY_ALIAS(alias, name)                                                       \
  TERCEL_OP_API(method) inline Tensor alias(const Tensor& x) { return name(x); }              \
  TERCEL_OP_API(method) inline const Tensor& alias##_(const Tensor& x) { return name##_(x); } \
  inline const Tensor& alias##_out(const Tensor& out, const Tensor& x) { return name##_out(out, x); }
#define TERCEL_BINARY_OUT_ALIAS(alias, name)                                              \
  inline const Tensor& alias##_out(const Tensor& out, const Tensor& a, const Tensor& b) { \
    return name##_out(out, a, b);                                                         \
  }                                                                                       \
  inline const Tensor& alias##_out(const Tensor& out, const Tensor& a, Scalar b) { return name##_out(out, a, b); }
#define TERCEL_NUMBER_FIRST_ALIAS(alias, name)                          \
  inline Tensor alias(Scalar a, const Tensor& b) { return name(a, b); } \
  inline const Tensor& alias##_out(const Tensor& out, Scalar a, const Tensor& b) { return name##_out(out, a, b); }
#define TERCEL_BINARY_FUNCTION_ALIAS(alias, name)                                           \
  inline Tensor alias(const Tensor& a, const Tensor& b) { return name(a, b); }              \
  inline Tensor alias(const Tensor& a, Scalar b) { return name(a, b); }                     \
  inline const Tensor& alias##_(const Tensor& a, const Tensor& b) { return name##_(a, b); } \
  inline const Tensor& alias##_(const Tensor& a, Scalar b) { return name##_(a, b); }        \
  TERCEL_BINARY_OUT_ALIAS(alias, name)                                                      \
  TERCEL_NUMBER_FIRST_ALIAS(alias, name)
#define TERCEL_COMPARE_ALIAS(alias, name)                                                                         \
  TERCEL_OP_API(method) inline Tensor alias(const Tensor& a, const Tensor& b) { return name(a, b); }              \
  TERCEL_OP_API(method) inline Tensor alias(const Tensor& a, Scalar b) { return name(a, b); }                     \
  TERCEL_OP_API(method) inline const Tensor& alias##_(const Tensor& a, const Tensor& b) { return name##_(a, b); } \
  TERCEL_OP_API(method) inline const Tensor& alias##_(const Tensor& a, Scalar b) { return name##_(a, b); }        \
  TERCEL_BINARY_OUT_ALIAS(alias, name)
#define TERCEL_BINARY_ALIAS(alias, name) \
  TERCEL_COMPARE_ALIAS(alias, name)      \
  TERCEL_NUMBER_FIRST_ALIAS(alias, name)

namespace tercel {

/** Alias of the op named second. */
TERCEL_UNARY_ALIAS(absolute, abs)
TERCEL_UNARY_ALIAS(arccos, acos)
TERCEL_UNARY_ALIAS(arccosh, acosh)
TERCEL_UNARY_ALIAS(arcsin, asin)
TERCEL_UNARY_ALIAS(arcsinh, asinh)
TERCEL_UNARY_ALIAS(arctan, atan)
TERCEL_UNARY_ALIAS(arctanh, atanh)
TERCEL_UNARY_ALIAS(fix, trunc)
TERCEL_UNARY_ALIAS(negative, neg)
TERCEL_UNARY_FUNCTION_ALIAS(special_digamma, digamma)
TERCEL_UNARY_FUNCTION_ALIAS(special_erf, erf)
TERCEL_UNARY_FUNCTION_ALIAS(special_erfc, erfc)
TERCEL_UNARY_FUNCTION_ALIAS(special_erfinv, erfinv)
TERCEL_UNARY_FUNCTION_ALIAS(special_exp2, exp2)
TERCEL_UNARY_FUNCTION_ALIAS(special_expit, sigmoid)
TERCEL_UNARY_FUNCTION_ALIAS(special_expm1, expm1)
TERCEL_UNARY_FUNCTION_ALIAS(special_gammaln, lgamma)
TERCEL_UNARY_FUNCTION_ALIAS(special_i0, i0)
TERCEL_UNARY_FUNCTION_ALIAS(special_i0e, i0e)
TERCEL_UNARY_FUNCTION_ALIAS(special_i1, i1)
TERCEL_UNARY_FUNCTION_ALIAS(special_i1e, i1e)
TERCEL_UNARY_FUNCTION_ALIAS(special_log1p, log1p)
TERCEL_UNARY_FUNCTION_ALIAS(special_modified_bessel_i0, i0)
TERCEL_UNARY_FUNCTION_ALIAS(special_modified_bessel_i1, i1)
TERCEL_UNARY_FUNCTION_ALIAS(special_psi, digamma)
TERCEL_UNARY_FUNCTION_ALIAS(special_round, round)
TERCEL_UNARY_FUNCTION_ALIAS(special_sinc, sinc)

/** Alias of the op named second. */
TERCEL_BINARY_ALIAS(arctan2, atan2)
TERCEL_BINARY_ALIAS(divide, div)
TERCEL_BINARY_ALIAS(multiply, mul)
TERCEL_BINARY_ALIAS(subtract, sub)
TERCEL_BINARY_FUNCTION_ALIAS(special_gammainc, igamma)
TERCEL_BINARY_FUNCTION_ALIAS(special_gammaincc, igammac)
TERCEL_BINARY_FUNCTION_ALIAS(special_xlogy, xlogy)
TERCEL_COMPARE_ALIAS(greater, gt)
TERCEL_COMPARE_ALIAS(greater_equal, ge)
TERCEL_COMPARE_ALIAS(less, lt)
TERCEL_COMPARE_ALIAS(less_equal, le)
TERCEL_COMPARE_ALIAS(not_equal, ne)

/** div() with a rounding mode. */
TERCEL_OP_API(method)
inline Tensor divide(const Tensor& a, const Tensor& b, std::optional<std::string_view> rounding_mode) {
  return div(a, b, rounding_mode);
}
TERCEL_OP_API(method) inline Tensor divide(const Tensor& a, Scalar b, std::optional<std::string_view> rounding_mode) {
  return div(a, b, rounding_mode);
}
TERCEL_OP_API(method)
inline const Tensor& divide_(const Tensor& a, const Tensor& b, std::optional<std::string_view> rounding_mode) {
  return div_(a, b, rounding_mode);
}
TERCEL_OP_API(method)
inline const Tensor& divide_(const Tensor& a, Scalar b, std::optional<std::string_view> rounding_mode) {
  return div_(a, b, rounding_mode);
}
/** a - alpha * b. */
TERCEL_OP_API(method) inline Tensor subtract(const Tensor& a, const Tensor& b, Scalar alpha) {
  return sub(a, b, alpha);
}
TERCEL_OP_API(method) inline const Tensor& subtract_(const Tensor& a, const Tensor& b, Scalar alpha) {
  return sub_(a, b, alpha);
}
/** div_(). */
TERCEL_OP_API(method) inline const Tensor& true_divide_(const Tensor& a, const Tensor& b) { return div_(a, b); }
TERCEL_OP_API(method) inline const Tensor& true_divide_(const Tensor& a, Scalar b) { return div_(a, b); }

/** Aliases of log_softmax(), softmax(), logit(), logsumexp(), mvlgamma(), polygamma() and round() in torch.special's
 * naming. */
inline Tensor special_log_softmax(const Tensor& x, int64_t dim, ScalarType dtype = ScalarType::Undefined) {
  return log_softmax(x, dim, dtype);
}
inline Tensor special_softmax(const Tensor& x, int64_t dim, ScalarType dtype = ScalarType::Undefined) {
  return softmax(x, dim, dtype);
}
TERCEL_OP_API(out) inline Tensor special_logit(const Tensor& x, std::optional<double> eps = {}) {
  return logit(x, eps);
}
TERCEL_OP_API(out) inline Tensor special_logsumexp(const Tensor& x, IntSpan dims, bool keepdim = false) {
  return logsumexp(x, dims, keepdim);
}
TERCEL_OP_API(out) inline Tensor special_multigammaln(const Tensor& x, int64_t p) { return mvlgamma(x, p); }
TERCEL_OP_API(out) inline Tensor special_polygamma(int64_t n, const Tensor& x) { return polygamma(n, x); }
TERCEL_OP_API(out) inline Tensor special_round(const Tensor& x, int64_t decimals) { return round(x, decimals); }

/** Aliases of maximum() and minimum(). */
TERCEL_OP_API(method, out_apart) inline Tensor max(const Tensor& a, const Tensor& b) { return maximum(a, b); }
TERCEL_OP_API(method, out_apart) inline Tensor min(const Tensor& a, const Tensor& b) { return minimum(a, b); }
/** linalg::inv(). */
TERCEL_OP_API(method, python, out_exact, autocast_f32) inline Tensor inverse(const Tensor& a) { return linalg::inv(a); }
/** linalg::pinv(), which drops singular values up to rcond times the largest one. */
TERCEL_OP_API(method, autocast_f32) inline Tensor pinverse(const Tensor& a, double rcond = 1e-15) {
  return linalg::pinv(a, 0.0, rcond);
}
/** linalg::householder_product(). */
TERCEL_OP_API(method, python, out_exact, autocast_f32) inline Tensor orgqr(const Tensor& a, const Tensor& input2) {
  return linalg::householder_product(a, input2);
}
using linalg::det;
using linalg::matrix_exp;
using linalg::slogdet;

}  // namespace tercel

#undef TERCEL_UNARY_FUNCTION_ALIAS
#undef TERCEL_UNARY_ALIAS
#undef TERCEL_BINARY_OUT_ALIAS
#undef TERCEL_NUMBER_FIRST_ALIAS
#undef TERCEL_BINARY_FUNCTION_ALIAS
#undef TERCEL_COMPARE_ALIAS
#undef TERCEL_BINARY_ALIAS
