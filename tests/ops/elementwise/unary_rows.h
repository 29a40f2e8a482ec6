// Rows of the unary ops.
#pragma once

#include <cmath>

#include "tercel/ops/elementwise/activation.h"
#include "tercel/ops/elementwise/complex.h"
#include "tercel/ops/elementwise/composite.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/elementwise/unary_ops.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/nn/loss.h"
#include "tests/ops/rows.h"

namespace tercel::test {

/** A row whose inputs lie in [low, high]; results of integers are compared like those of real numbers. */
template <class F>
Row unary_row(const char* name, F reference, double low, double high, const std::vector<ScalarType>& dtypes) {
  Row row;
  row.name = name;
  row.inputs = {{{66, 2, 70}, low, high}};
  row.reference = elementwise_reference(reference);
  row.dtypes = dtypes;
  row.elementwise = true;
  row.gradient_sizes = {{3, 4}};
  return row;
}

// The public functions of an op, for its row.
#define TERCEL_RUN(function)                                                       \
  row.run = [](const std::vector<Tensor>& in) { return tercel::function(in[0]); }; \
  row.out = [](const Tensor& out, const std::vector<Tensor>& in) { tercel::function##_out(out, in[0]); };
#define TERCEL_RUN_INPLACE(function) row.inplace = [](const std::vector<Tensor>& in) { tercel::function##_(in[0]); };

#define TERCEL_UNARY_ROW(Functor, function, low, high, dtypes, expression) \
  template <>                                                              \
  inline Row row_of<op::Functor>() {                                       \
    const auto reference = [](auto x) { return expression; };              \
    Row row = unary_row(#function, reference, low, high, dtypes);          \
    add_complex_reference<op::Functor>(row, reference);                    \
    TERCEL_RUN(function)                                                   \
    TERCEL_RUN_INPLACE(function)                                           \
    return row;                                                            \
  }
#define TERCEL_PREDICATE_ROW(Functor, function, low, high, dtypes, expression) \
  template <>                                                                  \
  inline Row row_of<op::Functor>() {                                           \
    const auto reference = [](auto x) { return expression; };                  \
    Row row = unary_row(#function, reference, low, high, dtypes);              \
    add_complex_reference<op::Functor>(row, reference);                        \
    row.differentiable = false;                                                \
    TERCEL_RUN(function)                                                       \
    return row;                                                                \
  }

inline double expm1_of(double x) { return std::expm1(x); }
inline std::complex<double> expm1_of(std::complex<double> x) {
  using Long = std::complex<long double>;
  return std::complex<double>(std::exp(Long(x)) - Long(1));
}
inline double log1p_of(double x) { return std::log1p(x); }
inline std::complex<double> log1p_of(std::complex<double> x) {
  using Long = std::complex<long double>;
  return std::complex<double>(std::log(Long(x) + Long(1)));
}
inline double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }
inline double sign_of(double x) { return x > 0 ? 1.0 : (x < 0 ? -1.0 : 0.0); }

TERCEL_UNARY_ROW(Abs, abs, -3, 3, all_types(), std::abs(x))
TERCEL_UNARY_ROW(Neg, neg, -3, 3, number_types(), -x)
TERCEL_UNARY_ROW(Exp, exp, -5, 5, all_types(), std::exp(x))
TERCEL_UNARY_ROW(Expm1, expm1, -2, 2, all_types(), expm1_of(x))
TERCEL_UNARY_ROW(Log, log, 0.05, 9, all_types(), std::log(x))
TERCEL_UNARY_ROW(Log1p, log1p, -0.9, 9, all_types(), log1p_of(x))
TERCEL_UNARY_ROW(Softsign, softsign, -3, 3, all_types(), x / (1 + std::abs(x)))
TERCEL_UNARY_ROW(Sqrt, sqrt, 0.05, 9, all_types(), std::sqrt(x))
TERCEL_UNARY_ROW(Rsqrt, rsqrt, 0.05, 9, all_types(), 1.0 / std::sqrt(x))
TERCEL_UNARY_ROW(Reciprocal, reciprocal, 0.2, 9, all_types(), 1.0 / x)
TERCEL_UNARY_ROW(Square, square, -9, 9, number_types(), x* x)
TERCEL_UNARY_ROW(Sin, sin, -9, 9, all_types(), std::sin(x))
TERCEL_UNARY_ROW(Cos, cos, -9, 9, all_types(), std::cos(x))
TERCEL_UNARY_ROW(Tanh, tanh, -4, 4, all_types(), std::tanh(x))
TERCEL_UNARY_ROW(Sigmoid, sigmoid, -9, 9, all_types(), 1.0 / (1.0 + std::exp(-x)))
TERCEL_UNARY_ROW(Relu, relu, -3, 3, number_types(), x > 0 ? x : 0)
TERCEL_UNARY_ROW(Erf, erf, -3, 3, all_types(), std::erf(x))
TERCEL_UNARY_ROW(Silu, silu, -9, 9, all_types(), x / (1.0 + std::exp(-x)))
TERCEL_UNARY_ROW(Sign, sign, -3, 3, all_types(), sign_of(x))
TERCEL_UNARY_ROW(Floor, floor, -3, 3, number_types(), std::floor(x))
TERCEL_UNARY_ROW(Ceil, ceil, -3, 3, number_types(), std::ceil(x))
TERCEL_UNARY_ROW(Round, round, -3, 3, number_types(), std::nearbyint(x))
TERCEL_UNARY_ROW(Trunc, trunc, -3, 3, number_types(), std::trunc(x))
TERCEL_UNARY_ROW(Frac, frac, -3, 3, number_types(), x - std::trunc(x))
TERCEL_PREDICATE_ROW(IsNan, isnan, -3, 3, all_types(), x != x)
TERCEL_PREDICATE_ROW(IsFinite, isfinite, -3, 3, all_types(), std::isfinite(std::abs(x)))
TERCEL_PREDICATE_ROW(LogicalNot, logical_not, -1, 1, all_types(), x == 0.0)

template <>
inline Row row_of<op::Gelu>() {
  Row row = unary_row(
      "gelu", [](double x) { return x * normal_cdf(x); }, -4, 4, all_types());
  // 1 + erf(x) cancels on the left.
  row.scale = 4;
  TERCEL_RUN(gelu)
  TERCEL_RUN_INPLACE(gelu)
  return row;
}
// Complex numbers only.
inline Row complex_row(const char* name, const std::function<std::complex<double>(std::complex<double>)>& reference) {
  Row row = unary_row(name, [](double x) { return x; }, -3, 3, {});
  row.complex_reference = elementwise_reference<std::complex<double>>(reference);
  return row;
}
template <>
inline Row row_of<op::Conj>() {
  Row row = complex_row("conj", [](std::complex<double> x) { return std::conj(x); });
  row.run = [](const std::vector<Tensor>& in) { return conj(in[0]); };
  row.inplace = [](const std::vector<Tensor>& in) { conj_physical_(in[0]); };
  return row;
}
inline Row imag_row() {
  Row row = complex_row("imag", [](std::complex<double> x) { return x.imag(); });
  row.run = [](const std::vector<Tensor>& in) { return imag(in[0]); };
  return row;
}
inline Row real_row() {
  Row row = complex_row("real", [](std::complex<double> x) { return x.real(); });
  row.run = [](const std::vector<Tensor>& in) { return real(in[0]); };
  return row;
}
inline Row complex_views_row() {
  Row row = complex_row("view_as_real", [](std::complex<double> x) { return x; });
  row.run = [](const std::vector<Tensor>& in) { return view_as_complex(view_as_real(in[0]).clone()); };
  return row;
}
inline Row conj_physical_row() {
  Row row = row_of<op::Conj>();
  row.name = "conj_physical";
  row.run = [](const std::vector<Tensor>& in) { return conj_physical(in[0]); };
  return row;
}

template <>
inline Row row_of<op::LeakyRelu>() {
  Row row = unary_row(
      "leaky_relu", [](double x) { return x > 0 ? x : 0.125 * x; }, -3, 3, all_types());
  row.run = [](const std::vector<Tensor>& in) { return leaky_relu(in[0], 0.125); };
  row.inplace = [](const std::vector<Tensor>& in) { leaky_relu_(in[0], 0.125); };
  return row;
}
template <>
inline Row row_of<op::GeluTanh>() {
  Row row = unary_row(
      "gelu_by_tanh",
      [](double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }, -4, 4,
      floating_types());
  // 1 + tanh(x) cancels on the left.
  row.scale = 4;
  row.run = [](const std::vector<Tensor>& in) { return gelu(in[0], "tanh"); };
  return row;
}
template <>
inline Row row_of<op::Elu>() {
  Row row = unary_row(
      "elu_scaled", [](double x) { return 1.5 * (x > 0 ? x : 0.5 * std::expm1(x)); }, -4, 4, floating_types());
  row.run = [](const std::vector<Tensor>& in) { return elu(in[0], 0.5, 1.5); };
  return row;
}
template <>
inline Row row_of<op::Softplus>() {
  Row row = unary_row(
      "softplus", [](double x) { return 2 * x > 5 ? x : std::log1p(std::exp(2 * x)) / 2; }, -4, 4, all_types());
  row.run = [](const std::vector<Tensor>& in) { return softplus(in[0], 2, 5); };
  return row;
}
template <>
inline Row row_of<op::Hardswish>() {
  Row row = unary_row("hardswish", [](double x) { return x * std::min(std::max(x + 3, 0.0), 6.0) / 6; }, -5, 5,
                      {kFloat32, kFloat64, kFloat16, kBFloat16});
  row.run = [](const std::vector<Tensor>& in) { return hardswish(in[0]); };
  row.inplace = [](const std::vector<Tensor>& in) { hardswish_(in[0]); };
  return row;
}
template <>
inline Row row_of<op::LinearBeyond>() {
  const auto reference = [](double x) { return std::abs(x) < 2 ? x * x / 4 : std::abs(x) - 1; };
  Row row = unary_row("smooth_l1_loss_of_zero", reference, -5, 5, floating_types());
  row.run = [](const std::vector<Tensor>& in) {
    return smooth_l1_loss(in[0], zeros({}, in[0].dtype()), Reduction::None, 2);
  };
  return row;
}
template <>
inline Row row_of<op::NanToNum>() {
  Row row = unary_row("nan_to_num", [](double x) { return x; }, -5, 5, {kFloat32, kFloat64, kFloat16, kBFloat16});
  row.run = [](const std::vector<Tensor>& in) { return nan_to_num(in[0]); };
  row.inplace = [](const std::vector<Tensor>& in) { nan_to_num_(in[0]); };
  return row;
}
template <>
inline Row row_of<op::Clamp>() {
  Row row = unary_row("clamp", [](double x) { return std::min(std::max(x, -1.0), 2.0); }, -4, 4,
                      {kFloat32, kFloat64, kFloat16, kBFloat16, kInt64, kInt32, kInt16, kInt8});
  row.run = [](const std::vector<Tensor>& in) { return clamp(in[0], -1, 2); };
  row.inplace = [](const std::vector<Tensor>& in) { clamp_(in[0], -1, 2); };
  return row;
}
template <>
inline Row row_of<op::ClampMin>() {
  Row row = unary_row(
      "clamp_min", [](double x) { return std::max(x, 1.0); }, -4, 4, number_types());
  row.run = [](const std::vector<Tensor>& in) { return clamp_min(in[0], 1); };
  row.inplace = [](const std::vector<Tensor>& in) { clamp_min_(in[0], 1); };
  return row;
}
template <>
inline Row row_of<op::ClampMax>() {
  Row row = unary_row(
      "clamp_max", [](double x) { return std::min(x, 1.0); }, -4, 4, number_types());
  row.run = [](const std::vector<Tensor>& in) { return clamp_max(in[0], 1); };
  row.inplace = [](const std::vector<Tensor>& in) { clamp_max_(in[0], 1); };
  return row;
}

inline std::vector<Row> unary_rows() {
  std::vector<Row> rows = rows_of(UnaryOps{});
  for (Row& row : rows) {
    // Near the poles of complex numbers.
    if (row.name == "sigmoid" || row.name == "silu") row.complex_ulps = 32;
    // Where the functions of complex numbers are large.
    if (row.name == "sin" || row.name == "cos") row.gradcheck.relative = 1e-4;
  }
  rows.push_back(real_row());
  rows.push_back(imag_row());
  rows.push_back(complex_views_row());
  rows.push_back(conj_physical_row());
  return rows;
}

#undef TERCEL_RUN
#undef TERCEL_RUN_INPLACE
#undef TERCEL_UNARY_ROW
#undef TERCEL_PREDICATE_ROW

}  // namespace tercel::test
