// Rows of composite elementwise ops, including activations.
#pragma once

#include <cmath>
#include <limits>

#include "tercel/ops/elementwise/activation.h"
#include "tercel/ops/elementwise/complex.h"
#include "tercel/ops/elementwise/composite.h"
#include "tercel/ops/elementwise/unary.h"
#include "tests/ops/rows.h"

namespace tercel::test {

using TensorList = std::vector<Tensor>;

template <class F>
Row composite_row(const char* name, F f, Function run, const std::vector<ScalarType>& dtypes = floating_types(),
                  double low = -3, double high = 3) {
  Row row;
  row.name = name;
  row.inputs = {{{11, 2, 13}, low, high}};
  if constexpr (std::is_invocable_v<F, double, double>) row.inputs.push_back({{11, 2, 13}, low, high});
  row.run = std::move(run);
  row.reference = elementwise_reference(f);
  row.dtypes = dtypes;
  row.elementwise = true;
  // 16-bit floats are rounded after each component op.
  row.ulps = 16;
  row.scale = 16;
  row.gradient_sizes.assign(row.inputs.size(), {3, 4});
  return row;
}

inline Row test_row(const char* name, double (*f)(double), Function run, const std::vector<ScalarType>& dtypes) {
  Row row = composite_row(name, f, std::move(run), dtypes);
  row.differentiable = false;
  return row;
}

inline double held(double x, double low, double high) { return std::min(std::max(x, low), high); }

inline std::vector<Row> activation_rows() {
  std::vector<Row> rows = {
      composite_row(
          "hardtanh", [](double x) { return held(x, -1, 2); },
          [](const TensorList& in) { return hardtanh(in[0], -1, 2); }),
      composite_row(
          "relu6", [](double x) { return held(x, 0, 6); }, [](const TensorList& in) { return relu6(in[0]); },
          floating_types(), -9, 9),
      composite_row(
          "hardsigmoid", [](double x) { return held(x + 3, 0, 6) / 6; },
          [](const TensorList& in) { return hardsigmoid(in[0]); }, floating_types(), -5, 5),
      composite_row(
          "hardswish", [](double x) { return x * held(x + 3, 0, 6) / 6; },
          [](const TensorList& in) { return hardswish(in[0]); }, floating_types(), -5, 5),
      composite_row(
          "elu", [](double x) { return x > 0 ? x : 0.5 * std::expm1(x); },
          [](const TensorList& in) { return elu(in[0], 0.5); }),
      composite_row(
          "selu", [](double x) { return 1.0507009873554805 * (x > 0 ? x : 1.6732632423543772 * std::expm1(x)); },
          [](const TensorList& in) { return selu(in[0]); }),
      composite_row(
          "celu", [](double x) { return x > 0 ? x : 0.5 * std::expm1(x / 0.5); },
          [](const TensorList& in) { return celu(in[0], 0.5); }),
      composite_row(
          "rrelu", [](double x) { return x > 0 ? x : 0.4 * x; },
          [](const TensorList& in) { return rrelu(in[0], 0.2, 0.6); }),
      composite_row(
          "mish", [](double x) { return x * std::tanh(std::log1p(std::exp(x))); },
          [](const TensorList& in) { return mish(in[0]); }),
      composite_row(
          "logsigmoid", [](double x) { return -std::log1p(std::exp(-x)); },
          [](const TensorList& in) { return logsigmoid(in[0]); }),
      composite_row(
          "gelu_tanh",
          [](double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); },
          [](const TensorList& in) { return gelu(in[0], "tanh"); }),
      composite_row(
          "threshold", [](double x) { return x > 0.5 ? x : 7; },
          [](const TensorList& in) { return threshold(in[0], 0.5, 7); }),
      composite_row(
          "hardshrink", [](double x) { return std::abs(x) > 0.5 ? x : 0; },
          [](const TensorList& in) { return hardshrink(in[0]); }),
      composite_row(
          "softshrink", [](double x) { return x > 0.5 ? x - 0.5 : (x < -0.5 ? x + 0.5 : 0); },
          [](const TensorList& in) { return softshrink(in[0]); }),
      composite_row(
          "tanhshrink", [](double x) { return x - std::tanh(x); },
          [](const TensorList& in) { return tanhshrink(in[0]); }),
  };
  rows[0].inplace = [](const TensorList& in) { hardtanh_(in[0], -1, 2); };
  rows[1].inplace = [](const TensorList& in) { relu6_(in[0]); };
  rows[2].inplace = [](const TensorList& in) { hardsigmoid_(in[0]); };
  rows[3].inplace = [](const TensorList& in) { hardswish_(in[0]); };
  rows[4].inplace = [](const TensorList& in) { elu_(in[0], 0.5); };
  rows[5].inplace = [](const TensorList& in) { selu_(in[0]); };
  rows[6].inplace = [](const TensorList& in) { celu_(in[0], 0.5); };
  rows[7].inplace = [](const TensorList& in) { rrelu_(in[0], 0.2, 0.6); };
  rows[8].inplace = [](const TensorList& in) { mish_(in[0]); };
  rows[11].inplace = [](const TensorList& in) { threshold_(in[0], 0.5, 7); };
  Row prelu_row = composite_row(
      "prelu", [](double x, double weight) { return x > 0 ? x : x * weight; },
      [](const TensorList& in) { return prelu(in[0], in[1]); });
  prelu_row.elementwise = false;
  prelu_row.inputs[1].sizes = {2};
  prelu_row.reference = [](const TensorList& in) {
    return elementwise_reference([](double x, double weight) { return x > 0 ? x : x * weight; })(
        {in[0], make({2, 1}, kFloat64, values_of(in[1]))});
  };
  prelu_row.gradient_sizes = {{3, 2, 2}, {2}};
  rows.push_back(prelu_row);
  return rows;
}

inline std::vector<Row> composite_rows() {
  std::vector<Row> rows = {
      composite_row(
          "sgn", [](double x) { return x > 0 ? 1.0 : (x < 0 ? -1.0 : 0.0); },
          [](const TensorList& in) { return sgn(in[0]); }, all_types()),
      composite_row(
          "deg2rad", [](double x) { return x * M_PI / 180; }, [](const TensorList& in) { return deg2rad(in[0]); },
          all_types()),
      composite_row(
          "rad2deg", [](double x) { return x * 180 / M_PI; }, [](const TensorList& in) { return rad2deg(in[0]); },
          all_types()),
      composite_row(
          "positive", [](double x) { return x; }, [](const TensorList& in) { return positive(in[0]); }, number_types()),
      composite_row(
          "angle", [](double x) { return x < 0 ? M_PI : 0; }, [](const TensorList& in) { return angle(in[0]); },
          all_types()),
      composite_row(
          "nan_to_num", [](double x) { return x; }, [](const TensorList& in) { return nan_to_num(in[0]); },
          all_types()),
      composite_row(
          "logit", [](double x) { return std::log(x / (1 - x)); }, [](const TensorList& in) { return logit(in[0]); },
          {kFloat32, kFloat64}, 0.05, 0.95),
      composite_row(
          "true_divide", [](double a, double b) { return a / b; },
          [](const TensorList& in) { return true_divide(in[0], in[1]); }, number_types(), 1, 5),
      composite_row(
          "rsub", [](double a, double b) { return b - 2 * a; },
          [](const TensorList& in) { return rsub(in[0], in[1], 2); }, number_types()),
      composite_row(
          "ldexp", [](double a, double b) { return a * std::exp2(b); },
          [](const TensorList& in) { return ldexp(in[0], in[1]); }, {kFloat32, kFloat64}),
      composite_row(
          "float_power", [](double a, double b) { return std::pow(a, b); },
          [](const TensorList& in) { return float_power(in[0], in[1]); }, {kFloat64, kFloat32, kInt64}, 1, 3),
      composite_row(
          "clamp_tensors", [](double x, double bound) { return held(x, -std::abs(bound), std::abs(bound)); },
          [](const TensorList& in) { return clamp(in[0], neg(abs(in[1])), abs(in[1])); }, floating_types()),
      composite_row(
          "clip", [](double x) { return held(x, -1, 2); }, [](const TensorList& in) { return clip(in[0], -1, 2); }),
      test_row(
          "signbit", [](double x) -> double { return x < 0; }, [](const TensorList& in) { return signbit(in[0]); },
          all_types()),
      test_row(
          "isinf", [](double) { return 0.0; }, [](const TensorList& in) { return isinf(in[0]); }, all_types()),
      test_row(
          "isposinf", [](double) { return 0.0; }, [](const TensorList& in) { return isposinf(in[0]); }, all_types()),
      test_row(
          "isneginf", [](double) { return 0.0; }, [](const TensorList& in) { return isneginf(in[0]); }, all_types()),
      test_row(
          "isreal", [](double) { return 1.0; }, [](const TensorList& in) { return isreal(in[0]); }, all_types()),
  };
  rows[0].inplace = [](const TensorList& in) { sgn_(in[0]); };
  rows[0].out = [](const Tensor& out, const TensorList& in) { sgn_out(out, in[0]); };
  rows[1].inplace = [](const TensorList& in) { deg2rad_(in[0]); };
  rows[1].out = [](const Tensor& out, const TensorList& in) { deg2rad_out(out, in[0]); };
  rows[5].inplace = [](const TensorList& in) { nan_to_num_(in[0]); };
  rows[6].inplace = [](const TensorList& in) { logit_(in[0]); };
  rows[9].inplace = [](const TensorList& in) { ldexp_(in[0], in[1]); };
  rows[0].complex_reference = elementwise_reference<std::complex<double>>(
      [](std::complex<double> z) { return z == 0.0 ? z : z / std::abs(z); });
  rows[4].complex_reference =
      elementwise_reference<std::complex<double>>([](std::complex<double> z) { return std::arg(z); });
  Row close = composite_row(
      "isclose", [](double a, double b) -> double { return std::abs(a - b) <= 0.5 + 0.1 * std::abs(b); },
      [](const TensorList& in) { return isclose(in[0], in[1], 0.1, 0.5); }, {kFloat64, kInt64, kUInt8});
  close.differentiable = false;
  rows.push_back(close);
  Row rounded = composite_row(
      "round_decimals", [](double x) { return std::nearbyint(x * 10) / 10; },
      [](const TensorList& in) { return round(in[0], 1); }, {kFloat64});
  rounded.inplace = [](const TensorList& in) { round_(in[0], 1); };
  rows.push_back(rounded);
  rows.push_back(composite_row(
      "frexp_mantissa", [](double x) { return x == 0 ? x : x / std::exp2(std::ilogb(x) + 1); },
      [](const TensorList& in) { return frexp(in[0]).mantissa; }));
  Row exponents = test_row(
      "frexp_exponent", [](double x) -> double { return x == 0 ? 0 : std::ilogb(x) + 1; },
      [](const TensorList& in) { return frexp(in[0]).exponent; }, floating_types());
  rows.push_back(exponents);
  Row gamma = composite_row(
      "mvlgamma",
      [](double x) { return 1.5 * std::log(M_PI) + std::lgamma(x) + std::lgamma(x - 0.5) + std::lgamma(x - 1); },
      [](const TensorList& in) { return mvlgamma(in[0], 3); }, {kFloat32, kFloat64}, 2, 5);
  gamma.inplace = [](const TensorList& in) { mvlgamma_(in[0], 3); };
  rows.push_back(gamma);
  return rows;
}

}  // namespace tercel::test
