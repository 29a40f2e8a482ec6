// Rows of the special ops; see Note [Special ops] in tercel/ops/special/special_unary_ops.h. References are in
// special_reference.h.
#pragma once

#include <cmath>
#include <complex>
#include <numeric>

#include "tercel/ops/elementwise/composite.h"
#include "tercel/ops/special/special.h"
#include "tercel/ops/special/special_binary_ops.h"
#include "tercel/ops/special/special_unary_ops.h"
#include "tests/ops/rows.h"
#include "tests/ops/special/special_reference.h"

namespace tercel::test {

template <class Op, class F>
Row special_unary_row(const char* name, F f, double low, double high, Function run) {
  Row row;
  row.name = name;
  row.inputs = {{{11, 2, 13}, low, high}};
  row.run = std::move(run);
  row.reference = elementwise_reference(f);
  add_complex_reference<Op>(row, f);
  row.dtypes = all_types();
  row.elementwise = true;
  row.ulps = 8;
  row.gradient_sizes = {{3, 4}};
  return row;
}

#define TERCEL_SPECIAL_ROW(Functor, function, low, high, expression)                                        \
  template <>                                                                                               \
  inline Row row_of<special::op::Functor>() {                                                               \
    Row row = special_unary_row<special::op::Functor>(                                                      \
        #function, [](auto x) { return expression; }, low, high,                                            \
        [](const std::vector<Tensor>& in) { return tercel::function(in[0]); });                             \
    row.inplace = [](const std::vector<Tensor>& in) { tercel::function##_(in[0]); };                        \
    row.out = [](const Tensor& out, const std::vector<Tensor>& in) { tercel::function##_out(out, in[0]); }; \
    return row;                                                                                             \
  }

TERCEL_SPECIAL_ROW(Tan, tan, -1.2, 1.2, std::tan(x))
TERCEL_SPECIAL_ROW(Asin, asin, -0.9, 0.9, std::asin(x))
TERCEL_SPECIAL_ROW(Acos, acos, -0.9, 0.9, std::acos(x))
TERCEL_SPECIAL_ROW(Atan, atan, -0.9, 0.9, std::atan(x))
TERCEL_SPECIAL_ROW(Sinh, sinh, -4, 4, std::sinh(x))
TERCEL_SPECIAL_ROW(Cosh, cosh, -4, 4, std::cosh(x))
TERCEL_SPECIAL_ROW(Asinh, asinh, -4, 4, std::asinh(x))
TERCEL_SPECIAL_ROW(Acosh, acosh, 1.1, 9, std::acosh(x))
TERCEL_SPECIAL_ROW(Atanh, atanh, -0.9, 0.9, std::atanh(x))
TERCEL_SPECIAL_ROW(Log2, log2, 0.05, 9, std::log(x) / std::log(2.0))
TERCEL_SPECIAL_ROW(Log10, log10, 0.05, 9, std::log10(x))
TERCEL_SPECIAL_ROW(Exp2, exp2, -5, 5, std::exp(x* std::log(2.0)))
TERCEL_SPECIAL_ROW(Erfc, erfc, -3, 5, std::erfc(x))
TERCEL_SPECIAL_ROW(Erfinv, erfinv, -0.95, 0.95, reference::erfinv(x))
TERCEL_SPECIAL_ROW(Lgamma, lgamma, 0.3, 30, std::lgamma(x))
TERCEL_SPECIAL_ROW(Digamma, digamma, 0.3, 30, reference::digamma(x))
TERCEL_SPECIAL_ROW(I0, i0, -8, 8, reference::bessel(0, x))
TERCEL_SPECIAL_ROW(I0e, i0e, -30, 30, reference::bessel(0, x) * std::exp(-std::abs(x)))
TERCEL_SPECIAL_ROW(I1, i1, -8, 8, reference::bessel(1, x))
TERCEL_SPECIAL_ROW(I1e, i1e, -30, 30, reference::bessel(1, x) * std::exp(-std::abs(x)))
TERCEL_SPECIAL_ROW(Sinc, sinc, -3, 3, reference::sinc(x))
TERCEL_SPECIAL_ROW(Ndtr, special_ndtr, -4, 4, reference::normal(x))
TERCEL_SPECIAL_ROW(Ndtri, special_ndtri, 0.05, 0.95, reference::ndtri(x))
TERCEL_SPECIAL_ROW(LogNdtr, special_log_ndtr, -9, 3, std::log(reference::normal(x)))
TERCEL_SPECIAL_ROW(Entr, special_entr, 0.05, 3, x == 0 ? 0 : -x * std::log(x))
TERCEL_SPECIAL_ROW(BesselJ0, special_bessel_j0, -9, 9, reference::bessel_j(0, x))
TERCEL_SPECIAL_ROW(BesselJ1, special_bessel_j1, -9, 9, reference::bessel_j(1, x))
TERCEL_SPECIAL_ROW(BesselY0, special_bessel_y0, 0.5, 9, std::cyl_neumann(0, x))
TERCEL_SPECIAL_ROW(BesselY1, special_bessel_y1, 0.5, 9, std::cyl_neumann(1, x))
TERCEL_SPECIAL_ROW(ModifiedBesselK0, special_modified_bessel_k0, 0.2, 9, reference::bessel_k(0, x))
TERCEL_SPECIAL_ROW(ModifiedBesselK1, special_modified_bessel_k1, 0.2, 9, reference::bessel_k(1, x))
TERCEL_SPECIAL_ROW(ScaledModifiedBesselK0, special_scaled_modified_bessel_k0, 0.2, 30, reference::bessel_k(0, x, true))
TERCEL_SPECIAL_ROW(ScaledModifiedBesselK1, special_scaled_modified_bessel_k1, 0.2, 30, reference::bessel_k(1, x, true))
TERCEL_SPECIAL_ROW(SphericalBesselJ0, special_spherical_bessel_j0, -9, 9, x == 0 ? 1 : std::sin(x) / x)
TERCEL_SPECIAL_ROW(AiryAi, special_airy_ai, -6, 4, reference::airy(x))
TERCEL_SPECIAL_ROW(Erfcx, special_erfcx, -3, 9, reference::erfcx(x))
#undef TERCEL_SPECIAL_ROW

template <class Op, class F>
Row special_binary_row(const char* name, F f, Input a, Input b, std::vector<ScalarType> dtypes, Function run) {
  Row row = special_unary_row<Op>(
      name, [](double x) { return x; }, 0, 1, std::move(run));
  row.inputs = {std::move(a), std::move(b)};
  row.reference = elementwise_reference(f);
  row.dtypes = std::move(dtypes);
  row.gradient_sizes = {{2, 1, 3}, {4, 1}};
  return row;
}

inline Input special_input(double low, double high, bool differentiable = true) {
  return {{11, 2, 13}, low, high, ScalarType::Undefined, differentiable};
}

#define TERCEL_SPECIAL_ROW(Functor, function, input_a, input_b, dtypes, expression)                                \
  template <>                                                                                                      \
  inline Row row_of<special::op::Functor>() {                                                                      \
    Row row = special_binary_row<special::op::Functor>(                                                            \
        #function, [](double a, double b) -> double { return expression; }, input_a, input_b, dtypes,              \
        [](const std::vector<Tensor>& in) { return tercel::function(in[0], in[1]); });                             \
    row.differentiable = !has_no_grad<special::op::Functor>;                                                       \
    row.inplace = [](const std::vector<Tensor>& in) { tercel::function##_(in[0], in[1]); };                        \
    row.out = [](const Tensor& out, const std::vector<Tensor>& in) { tercel::function##_out(out, in[0], in[1]); }; \
    return row;                                                                                                    \
  }

TERCEL_SPECIAL_ROW(Igamma, igamma, special_input(0.5, 9, false), special_input(0.5, 12), floating_types(),
                   reference::igamma(a, b))
TERCEL_SPECIAL_ROW(Igammac, igammac, special_input(1, 9, false), special_input(0.5, 4), floating_types(),
                   1 - reference::igamma(a, b))
TERCEL_SPECIAL_ROW(Zeta, special_zeta, special_input(1.5, 9, false), special_input(0.5, 12), floating_types(),
                   reference::zeta(a, b))
TERCEL_SPECIAL_ROW(Logaddexp2, logaddexp2, special_input(0, 5), special_input(-3, 3), all_types(),
                   std::log2(std::exp2(a) + std::exp2(b)))
TERCEL_SPECIAL_ROW(Copysign, copysign, special_input(-3, 3), special_input(-3, 3), all_types(), std::copysign(a, b))
TERCEL_SPECIAL_ROW(Xlogy, xlogy, special_input(0.1, 3), special_input(1, 5), all_types(), a == 0 ? 0 : a * std::log(b))
TERCEL_SPECIAL_ROW(Xlog1py, special_xlog1py, special_input(0.1, 3), special_input(1, 5), all_types(),
                   a == 0 ? 0 : a * std::log1p(b))
TERCEL_SPECIAL_ROW(Fmax, fmax, special_input(-3, 3), special_input(-3, 3), all_types(), std::fmax(a, b))
TERCEL_SPECIAL_ROW(Fmin, fmin, special_input(-3, 3), special_input(-3, 3), all_types(), std::fmin(a, b))
TERCEL_SPECIAL_ROW(Heaviside, heaviside, special_input(-2, 2), special_input(0, 1), all_types(),
                   a == 0 ? b : (a > 0 ? 1.0 : 0.0))
TERCEL_SPECIAL_ROW(Nextafter, nextafter, special_input(-2, 2), special_input(-2, 2), {kFloat64}, std::nextafter(a, b))
TERCEL_SPECIAL_ROW(Gcd, gcd, special_input(-60, 60), special_input(-60, 60), integer_types(),
                   static_cast<double>(std::gcd(static_cast<int64_t>(a), static_cast<int64_t>(b))))
TERCEL_SPECIAL_ROW(Lcm, lcm, special_input(-9, 9), special_input(-9, 9), integer_types(),
                   static_cast<double>(std::lcm(static_cast<int64_t>(a), static_cast<int64_t>(b))))
TERCEL_SPECIAL_ROW(LeftShift, bitwise_left_shift, special_input(-9, 9), special_input(0, 3), integer_types(),
                   reference::shift(a, b, true))
TERCEL_SPECIAL_ROW(RightShift, bitwise_right_shift, special_input(-90, 90), special_input(0, 5), integer_types(),
                   reference::shift(a, b, false))
#define TERCEL_POLYNOMIAL_ROW(Functor, function, low, high, expression)                               \
  TERCEL_SPECIAL_ROW(Functor, function, special_input(low, high, false), special_input(-1, 9, false), \
                     floating_types(), expression)
TERCEL_POLYNOMIAL_ROW(ChebyshevPolynomialT, special_chebyshev_polynomial_t, -2, 2, reference::chebyshev(a, b, {0, 1}))
TERCEL_POLYNOMIAL_ROW(ChebyshevPolynomialU, special_chebyshev_polynomial_u, -2, 2, reference::chebyshev(a, b, {0, 2}))
TERCEL_POLYNOMIAL_ROW(ChebyshevPolynomialV, special_chebyshev_polynomial_v, -2, 2, reference::chebyshev(a, b, {-1, 2}))
TERCEL_POLYNOMIAL_ROW(ChebyshevPolynomialW, special_chebyshev_polynomial_w, -2, 2, reference::chebyshev(a, b, {1, 2}))
TERCEL_POLYNOMIAL_ROW(ShiftedChebyshevPolynomialT, special_shifted_chebyshev_polynomial_t, -0.2, 1.2,
                      reference::chebyshev(2 * a - 1, b, {0, 1}))
TERCEL_POLYNOMIAL_ROW(ShiftedChebyshevPolynomialU, special_shifted_chebyshev_polynomial_u, -0.2, 1.2,
                      reference::chebyshev(2 * a - 1, b, {0, 2}))
TERCEL_POLYNOMIAL_ROW(ShiftedChebyshevPolynomialV, special_shifted_chebyshev_polynomial_v, -0.2, 1.2,
                      reference::chebyshev(2 * a - 1, b, {-1, 2}))
TERCEL_POLYNOMIAL_ROW(ShiftedChebyshevPolynomialW, special_shifted_chebyshev_polynomial_w, -0.2, 1.2,
                      reference::chebyshev(2 * a - 1, b, {1, 2}))
TERCEL_POLYNOMIAL_ROW(HermitePolynomialH, special_hermite_polynomial_h, -2, 2, reference::hermite_h(a, b))
TERCEL_POLYNOMIAL_ROW(HermitePolynomialHe, special_hermite_polynomial_he, -2, 2, reference::hermite_he(a, b))
TERCEL_POLYNOMIAL_ROW(LaguerrePolynomialL, special_laguerre_polynomial_l, -2, 2, reference::laguerre(a, b))
TERCEL_POLYNOMIAL_ROW(LegendrePolynomialP, special_legendre_polynomial_p, -2, 2, reference::legendre(a, b))
#undef TERCEL_POLYNOMIAL_ROW
#undef TERCEL_SPECIAL_ROW

template <>
inline Row row_of<special::op::Polygamma>() {
  Row row = special_unary_row<special::op::Erfc>(
      "polygamma", [](double x) { return -2 * reference::zeta(3, x); }, 0.3, 9,
      [](const std::vector<Tensor>& in) { return polygamma(2, in[0]); });
  row.dtypes = floating_types();
  row.inplace = [](const std::vector<Tensor>& in) { polygamma_(in[0], 2); };
  row.out = [](const Tensor& out, const std::vector<Tensor>& in) { polygamma_out(out, 2, in[0]); };
  return row;
}
template <>
inline Row row_of<special::op::DivTrunc>() {
  Row row = special_binary_row<special::op::DivTrunc>(
      "div_trunc", [](double a, double b) { return std::trunc(a / b); }, special_input(-9, 9), special_input(1, 4),
      number_types(), [](const std::vector<Tensor>& in) { return div(in[0], in[1], "trunc"); });
  row.differentiable = true;
  row.inplace = [](const std::vector<Tensor>& in) { div_(in[0], in[1], "trunc"); };
  return row;
}

inline std::vector<Row> special_rows() {
  std::vector<Row> rows = rows_of(SpecialUnaryOps{});
  for (Row& row : rows_of(SpecialBinaryOps{})) rows.push_back(std::move(row));
  for (Row& row : rows) {
    // Near roots, where the reference is less accurate.
    // Values of the size of 1 that cross 0.
    if (row.name.starts_with("special_bessel") || row.name == "special_airy_ai") row.scale = 16;
    if (row.name.find("polynomial") != std::string::npos) {
      row.differentiable = false;
      row.ulps = 64;
      row.scale = row.name.find("hermite") != std::string::npos ? 1e6 : 256;  // the size of what cancels
    }
    if (row.name.find("bessel_k") != std::string::npos) row.ulps = 32;
    if (row.name == "special_airy_ai") row.differentiable = row.inputs[0].differentiable = false;
    if (row.name.find("bessel_y") != std::string::npos || row.name.find("bessel_k") != std::string::npos)
      row.dtypes = floating_types();  // infinite at 0
    if (row.name == "lgamma" || row.name == "digamma" || row.name == "igammac" || row.name == "special_entr" ||
        row.name == "special_log_ndtr" || row.name == "logaddexp2" || row.name == "sinc")
      row.scale = 16;
    if (row.name.find("erfinv") != std::string::npos || row.name.find("ndtri") != std::string::npos ||
        row.name == "igamma" || row.name.starts_with("i") || row.name == "exp2")
      row.ulps = 32;
    // Near 1/2 the reference cannot distinguish its arguments.
    if (row.name == "special_ndtri") row.scale = 4;
    // The reference of 0 is not quite 0.
    if (row.name.starts_with("i1")) row.scale = 1;
    // Infinite for integers.
    if (row.name == "erfinv" || row.name == "special_ndtri") row.dtypes = floating_types();
    // The standard library differs on branch cuts.
    row.complex_ulps = 64;
  }
  return rows;
}

}  // namespace tercel::test
