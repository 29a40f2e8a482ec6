// Rows of the binary and ternary ops and of comparisons.
#pragma once

#include <algorithm>
#include <cmath>

#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/binary_ops.h"
#include "tercel/ops/elementwise/complex.h"
#include "tercel/ops/elementwise/ternary.h"
#include "tercel/ops/elementwise/ternary_ops.h"
#include "tests/ops/rows.h"

namespace tercel::test {

struct Range {
  double low, high;
};

/** A row of two inputs of one shape; the gradient is checked with broadcast ones. */
template <class F>
Row binary_row(const char* name, F reference, Range a, Range b, const std::vector<ScalarType>& dtypes) {
  Row row;
  row.name = name;
  row.inputs = {{{66, 2, 70}, a.low, a.high}, {{66, 2, 70}, b.low, b.high}};
  row.reference = elementwise_reference(reference);
  row.dtypes = dtypes;
  row.elementwise = true;
  row.gradient_sizes = {{2, 1, 3}, {4, 1}};
  return row;
}

#define TERCEL_RUN(function)                                                              \
  row.run = [](const std::vector<Tensor>& in) { return tercel::function(in[0], in[1]); }; \
  row.out = [](const Tensor& out, const std::vector<Tensor>& in) { tercel::function##_out(out, in[0], in[1]); };
#define TERCEL_BINARY_ROW(Functor, function, range_a, range_b, dtypes, expression)          \
  template <>                                                                               \
  inline Row row_of<op::Functor>() {                                                        \
    const auto reference = [](auto a, auto b) { return expression; };                       \
    Row row = binary_row(#function, reference, range_a, range_b, dtypes);                   \
    add_complex_reference<op::Functor>(row, reference);                                     \
    TERCEL_RUN(function)                                                                    \
    row.inplace = [](const std::vector<Tensor>& in) { tercel::function##_(in[0], in[1]); }; \
    return row;                                                                             \
  }
#define TERCEL_COMPARE_ROW(Functor, function, expression)                                \
  template <>                                                                            \
  inline Row row_of<op::Functor>() {                                                     \
    const auto reference = [](auto a, auto b) { return expression; };                    \
    Row row = binary_row(#function, reference, Range{-2, 2}, Range{-2, 2}, all_types()); \
    add_complex_reference<op::Functor>(row, reference);                                  \
    row.differentiable = false;                                                          \
    TERCEL_RUN(function)                                                                 \
    return row;                                                                          \
  }

constexpr Range kAround{-3, 3}, kPositive{0.5, 5}, kDivisor{1, 4};
inline const std::vector<ScalarType>& bit_types() {
  static const std::vector<ScalarType> types = {kInt64,  kInt32,  kInt16, kInt8, kUInt64,
                                                kUInt32, kUInt16, kUInt8, kBool};
  return types;
}
inline double floor_mod(double a, double b) { return a - b * std::floor(a / b); }
inline int64_t whole(double x) { return static_cast<int64_t>(x); }

TERCEL_BINARY_ROW(Sub, sub, kAround, kAround, number_types(), a - b)
TERCEL_BINARY_ROW(Mul, mul, kAround, kAround, all_types(), a* b)
TERCEL_BINARY_ROW(Div, div, kAround, kDivisor, number_types(), a / b)
TERCEL_BINARY_ROW(Maximum, maximum, kAround, kAround, all_types(), a > b ? a : b)
TERCEL_BINARY_ROW(Minimum, minimum, kAround, kAround, all_types(), a < b ? a : b)
TERCEL_BINARY_ROW(Atan2, atan2, kAround, kPositive, all_types(), std::atan2(a, b))
TERCEL_BINARY_ROW(Hypot, hypot, kPositive, kAround, all_types(), std::hypot(a, b))
TERCEL_BINARY_ROW(Logaddexp, logaddexp, (Range{0, 5}), kAround, all_types(),
                  std::max(a, b) + std::log1p(std::exp(-std::abs(a - b))))
TERCEL_BINARY_ROW(Fmod, fmod, (Range{-9, 9}), kDivisor, number_types(), std::fmod(a, b))
TERCEL_BINARY_ROW(FloorDivide, floor_divide, (Range{-9, 9}), kDivisor, number_types(), std::floor(a / b))
TERCEL_BINARY_ROW(BitwiseAnd, bitwise_and, kAround, kAround, bit_types(), static_cast<double>(whole(a) & whole(b)))
TERCEL_BINARY_ROW(BitwiseOr, bitwise_or, kAround, kAround, bit_types(), static_cast<double>(whole(a) | whole(b)))
TERCEL_BINARY_ROW(BitwiseXor, bitwise_xor, kAround, kAround, bit_types(), static_cast<double>(whole(a) ^ whole(b)))

TERCEL_COMPARE_ROW(Eq, eq, a == b)
TERCEL_COMPARE_ROW(Ne, ne, a != b)
TERCEL_COMPARE_ROW(Lt, lt, a < b)
TERCEL_COMPARE_ROW(Le, le, a <= b)
TERCEL_COMPARE_ROW(Gt, gt, a > b)
TERCEL_COMPARE_ROW(Ge, ge, a >= b)
TERCEL_COMPARE_ROW(LogicalAnd, logical_and, a != 0.0 && b != 0.0)
TERCEL_COMPARE_ROW(LogicalOr, logical_or, a != 0.0 || b != 0.0)
TERCEL_COMPARE_ROW(LogicalXor, logical_xor, (a != 0.0) != (b != 0.0))

template <>
inline Row row_of<op::Add>() {
  // The sum of bools is their disjunction.
  Row row = binary_row(
      "add", [](double a, double b) { return a + b; }, kAround, kAround, number_types());
  add_reference_by_parts(row);
  TERCEL_RUN(add)
  row.inplace = [](const std::vector<Tensor>& in) { add_(in[0], in[1]); };
  row.scale = 2;
  return row;
}
template <>
inline Row row_of<op::Pow>() {
  const auto reference = [](auto a, auto b) { return std::pow(a, b); };
  Row row = binary_row("pow", reference, kPositive, Range{0, 2.5}, number_types());
  add_complex_reference<op::Pow>(row, reference);
  row.ulps = 16;
  TERCEL_RUN(pow)
  row.inplace = [](const std::vector<Tensor>& in) { pow_(in[0], in[1]); };
  return row;
}
template <>
inline Row row_of<op::Remainder>() {
  Row row = binary_row("remainder", floor_mod, Range{-9, 9}, kDivisor, number_types());
  TERCEL_RUN(remainder)
  row.inplace = [](const std::vector<Tensor>& in) { remainder_(in[0], in[1]); };
  row.scale = 16;
  return row;
}

// Of two real tensors.
inline Row of_parts_row(const char* name, Function run, Function reference) {
  Row row = binary_row(name, [](double a, double) { return a; }, Range{0.5, 3}, kAround, {kFloat32, kFloat64});
  row.run = std::move(run);
  row.reference = std::move(reference);
  return row;
}
inline Function parts_reference(std::complex<double> (*f)(double, double)) {
  return [f](const std::vector<Tensor>& in) {
    const std::vector<double> a = values_of(in[0]), b = values_of(in[1]);
    std::vector<std::complex<double>> out;
    for (size_t i = 0; i < a.size(); ++i) out.push_back(f(a[i], b[i]));
    return make_complex(in[0].sizes().to_vector(), kComplex128, out);
  };
}
template <>
inline Row row_of<op::MakeComplex>() {
  Row row = of_parts_row(
      "complex", [](const std::vector<Tensor>& in) { return tercel::complex(in[0], in[1]); },
      parts_reference([](double a, double b) { return std::complex<double>(a, b); }));
  row.out = [](const Tensor& out, const std::vector<Tensor>& in) { complex_out(out, in[0], in[1]); };
  return row;
}
template <>
inline Row row_of<op::Polar>() {
  Row row = of_parts_row(
      "polar", [](const std::vector<Tensor>& in) { return polar(in[0], in[1]); },
      parts_reference([](double a, double b) { return std::polar(a, b); }));
  row.out = [](const Tensor& out, const std::vector<Tensor>& in) { polar_out(out, in[0], in[1]); };
  return row;
}

template <class F>
Row ternary_row(const char* name, F reference, const std::vector<ScalarType>& dtypes) {
  Row row = binary_row(
      name, [](double a, double) { return a; }, kAround, kAround, dtypes);
  row.inputs.push_back({{66, 2, 70}, kDivisor.low, kDivisor.high});
  row.reference = elementwise_reference(reference);
  row.gradient_sizes = {{2, 1, 3}, {4, 1}, {3}};
  row.scale = 16;
  return row;
}
template <>
inline Row row_of<op::AddScaled>() {
  Row row = binary_row(
      "add_scaled", [](double a, double b) { return a + 2 * b; }, kAround, kAround, number_types());
  row.run = [](const std::vector<Tensor>& in) { return add(in[0], in[1], 2); };
  row.inplace = [](const std::vector<Tensor>& in) { add_(in[0], in[1], 2); };
  row.scale = 8;
  add_reference_by_parts(row);
  return row;
}
template <>
inline Row row_of<op::Where>() {
  Row row = ternary_row(
      "where", [](double c, double a, double b) { return c != 0 ? a : b; }, all_types());
  row.inputs[0] = {{66, 2, 70}, 0, 1, kBool, false};
  row.run = [](const std::vector<Tensor>& in) { return where(in[0], in[1], in[2]); };
  add_reference_by_parts(row);
  return row;
}
template <>
inline Row row_of<op::Lerp>() {
  Row row = ternary_row(
      "lerp", [](double a, double b, double w) { return a + w * (b - a); }, floating_types());
  row.inputs[2].low = 0;
  row.inputs[2].high = 1;
  row.run = [](const std::vector<Tensor>& in) { return lerp(in[0], in[1], in[2]); };
  add_complex_reference<op::Lerp>(row, [](auto a, auto b, auto w) { return a + w * (b - a); });
  return row;
}
template <>
inline Row row_of<op::Addcmul>() {
  Row row = ternary_row(
      "addcmul", [](double x, double a, double b) { return x + 2 * (a * b); }, number_types());
  row.run = [](const std::vector<Tensor>& in) { return addcmul(in[0], in[1], in[2], 2); };
  add_complex_reference<op::Addcmul>(row, [](auto x, auto a, auto b) { return x + 2.0 * (a * b); });
  row.inplace = [](const std::vector<Tensor>& in) { addcmul_(in[0], in[1], in[2], 2); };
  row.scale = 64;
  return row;
}
template <>
inline Row row_of<op::Addcdiv>() {
  Row row = ternary_row(
      "addcdiv", [](double x, double a, double b) { return x + 2 * (a / b); }, floating_types());
  row.run = [](const std::vector<Tensor>& in) { return addcdiv(in[0], in[1], in[2], 2); };
  add_complex_reference<op::Addcdiv>(row, [](auto x, auto a, auto b) { return x + 2.0 * (a / b); });
  row.inplace = [](const std::vector<Tensor>& in) { addcdiv_(in[0], in[1], in[2], 2); };
  return row;
}

inline std::vector<Row> binary_rows() { return rows_of(BinaryOps{}); }
inline std::vector<Row> compare_rows() { return rows_of(CompareOps{}); }
inline std::vector<Row> ternary_rows() { return rows_of(TernaryOps{}); }

#undef TERCEL_RUN
#undef TERCEL_BINARY_ROW
#undef TERCEL_COMPARE_ROW

}  // namespace tercel::test
