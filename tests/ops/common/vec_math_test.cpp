// Accuracy of the vector functions used by kernels: the error in units in the last place, over samples of all
// magnitudes, and special values with their signs. CTest runs it on every instruction set.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "tercel/core/dispatch.h"
#include "tercel/ops/elementwise/activation.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/composite.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/special/special.h"
#include "tests/support/tensors.h"

namespace tercel {
namespace {

using Exact1 = long double (*)(long double);
using Exact2 = long double (*)(long double, long double);

template <class T>
T from_bits(uint64_t bits) {
  if constexpr (sizeof(T) == 4)
    return __builtin_bit_cast(float, static_cast<uint32_t>(bits));
  else
    return __builtin_bit_cast(double, bits);
}

/** Error of `got` in units in the last place of T at `exact`; huge where one is NaN or infinite and the other not. */
template <class T>
double ulps(T got, long double exact) {
  const double kWrong = 1e9;
  if (std::isnan(exact)) return std::isnan(got) ? 0 : kWrong;
  const T rounded = static_cast<T>(exact);
  if (std::isinf(rounded)) return got == rounded || std::abs(got) == std::numeric_limits<T>::max() ? 0 : kWrong;
  if (!std::isfinite(got)) return std::abs(rounded) == std::numeric_limits<T>::max() ? 0 : kWrong;
  constexpr int kDigits = std::numeric_limits<T>::digits, kLowest = std::numeric_limits<T>::min_exponent;
  const int exponent = exact == 0 ? kLowest : std::max(std::ilogb(exact) + 1, kLowest);
  return static_cast<double>(std::abs(static_cast<long double>(got) - exact) / std::ldexp(1.0L, exponent - kDigits));
}

template <class T>
std::vector<T> samples(double low, double high) {
  std::vector<T> out;
  std::mt19937_64 generator(5);
  const auto add = [&](T x) {
    if (std::isfinite(x) && static_cast<double>(x) >= low && static_cast<double>(x) <= high) out.push_back(x);
  };
  // All magnitudes, both signs.
  for (int i = 0; i < 60'000; ++i) add(from_bits<T>(generator()));
  // Around points where functions change quickly.
  for (const double reach : {1.0, 10.0, 100.0, 800.0}) {
    std::uniform_real_distribution<double> near(-reach, reach);
    for (int i = 0; i < 15'000; ++i) add(static_cast<T>(near(generator)));
  }
  return out;
}

template <class T>
const std::vector<T>& special_values() {
  using Limits = std::numeric_limits<T>;
  static const std::vector<T> values = {T(0),
                                        T(-0.0),
                                        Limits::infinity(),
                                        -Limits::infinity(),
                                        Limits::quiet_NaN(),
                                        Limits::denorm_min(),
                                        -Limits::denorm_min(),
                                        Limits::min(),
                                        Limits::max(),
                                        Limits::lowest(),
                                        T(1),
                                        T(-1),
                                        T(0.5),
                                        T(-2),
                                        T(88.5),
                                        T(-88.5),
                                        T(-100),
                                        T(-103.5),
                                        T(709.5),
                                        T(-740)};
  return values;
}

template <class T>
Tensor tensor_of(const std::vector<T>& values) {
  Tensor t = empty({static_cast<int64_t>(values.size())}, TensorOptions(scalar_type_of<T>()));
  std::copy(values.begin(), values.end(), t.data<T>());
  return t;
}

struct Case1 {
  const char* name;
  Tensor (*op)(const Tensor&);
  Exact1 exact;
  double bound32, bound64;
  double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();
};

template <class T>
void check(const Case1& c, double bound) {
  std::vector<T> inputs = samples<T>(c.low, c.high);
  const size_t plain = inputs.size();
  for (const T x : special_values<T>()) inputs.push_back(x);
  const Tensor result = c.op(tensor_of(inputs));
  const T* y = result.data<T>();
  double worst = 0;
  T at = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const long double exact = c.exact(static_cast<long double>(inputs[i]));
    const double error = ulps(y[i], exact);
    if (error > worst) worst = error, at = inputs[i];
    if (i >= plain && !std::isnan(exact)) {
      EXPECT_EQ(std::signbit(y[i]), std::signbit(exact)) << c.name << "(" << inputs[i] << ") = " << y[i];
    }
  }
  EXPECT_LE(worst, bound) << c.name << "(" << at << ")";
}

struct Case2 {
  const char* name;
  Tensor (*op)(const Tensor&, const Tensor&);
  Exact2 exact;
  double bound32, bound64;
};

template <class T>
void check(const Case2& c, double bound) {
  std::vector<T> a, b;
  for (const T x : special_values<T>())
    for (const T y : special_values<T>()) a.push_back(x), b.push_back(y);
  const size_t special = a.size();
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<T> values = samples<T>(-infinity, infinity);
  std::mt19937_64 generator(6);
  for (const T x : values) a.push_back(x), b.push_back(values[generator() % values.size()]);
  const Tensor result = c.op(tensor_of(a), tensor_of(b));
  const T* y = result.data<T>();
  double worst = 0;
  size_t at = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const long double exact = c.exact(static_cast<long double>(a[i]), static_cast<long double>(b[i]));
    const double error = ulps(y[i], exact);
    if (error > worst) worst = error, at = i;
    if (i < special && !std::isnan(exact)) {
      EXPECT_EQ(std::signbit(y[i]), std::signbit(exact)) << c.name << "(" << a[i] << ", " << b[i] << ") = " << y[i];
    }
  }
  EXPECT_LE(worst, bound) << c.name << "(" << a[at] << ", " << b[at] << ") = " << y[at];
}

/** By the definitions: a - b * whole, exact in long double for the operands' precision. */
long double exact_remainder(long double a, long double b) {
  const long double r = std::fmod(a, b);
  return r != 0 && std::signbit(r) != std::signbit(b) ? r + b : (r == 0 ? std::copysign(r, a) : r);
}

/** Not std::lgamma, which sets a global variable. */
long double lgamma_of(long double x) {
  int sign;
  return ::lgammal_r(x, &sign);
}

// Name, op, exact function, bounds in float32 and float64. SSE2 has no fused multiply-add: where a result is subnormal
// it is a little further off, in atan2, hypot and erfc.
const Case1 kUnary[] = {
    {"exp", exp, std::exp, 1.0, 1.0},
    {"expm1", expm1, std::expm1, 1.5, 1.0},
    {"log", log, std::log, 1.0, 1.0},
    {"log1p", log1p, std::log1p, 1.0, 1.0},
    {"sin", sin, std::sin, 2.0, 2.0, -1e5, 1e5},
    {"cos", cos, std::cos, 2.0, 2.0, -1e5, 1e5},
    {"tanh", tanh, std::tanh, 1.5, 1.5},
    {"erf", erf, std::erf, 3.0, 1.5},
    {"tan", tan, std::tan, 2.5, 1.5, -1e5, 1e5},
    {"asin", asin, std::asin, 1.0, 1.0},
    {"acos", acos, std::acos, 1.0, 1.0},
    {"atan", atan, std::atan, 1.5, 1.0},
    {"atanh", atanh, std::atanh, 1.1, 1.1},
    {"log2", log2, std::log2, 1.5, 1.0},
    {"log10", log10, std::log10, 1.0, 1.0},
    {"exp2", exp2, std::exp2, 1.0, 1.0},
    {"erfc", erfc, std::erfc, 2.0, 1.5},
    {"lgamma", lgamma, lgamma_of, 1.0, 1.0, 0, 4e36},
    {"sqrt", sqrt, std::sqrt, 0.5, 0.501},
    {"reciprocal", reciprocal, [](long double x) { return 1 / x; }, 0.5, 0.501},
    {"abs", abs, std::fabs, 0, 0},
    {"neg", neg, [](long double x) { return -x; }, 0, 0},
    {"floor", floor, std::floor, 0, 0},
    {"ceil", ceil, std::ceil, 0, 0},
    {"round", round, std::nearbyint, 0, 0},
    {"trunc", trunc, std::trunc, 0, 0},
};

const Case2 kBinary[] = {
    {"pow", pow, std::pow, 1.0, 1.0},
    {"atan2", atan2, std::atan2, 2.0, 2.0},
    {"hypot", hypot, std::hypot, 1.5, 1.5},
    {"fmod", fmod, std::fmod, 0, 0},
    {"remainder", remainder, exact_remainder, 0.5, 0.501},
};

TEST(VecMath, UnaryFloat32) {
  for (const Case1& c : kUnary) check<float>(c, c.bound32);
}
TEST(VecMath, UnaryFloat64) {
  for (const Case1& c : kUnary) check<double>(c, c.bound64);
}
TEST(VecMath, BinaryFloat32) {
  for (const Case2& c : kBinary) check<float>(c, c.bound32);
}
TEST(VecMath, BinaryFloat64) {
  for (const Case2& c : kBinary) check<double>(c, c.bound64);
}

// Our own functions, with AVX2 and AVX-512: closer bounds.
const Case1 kOwnFloat32[] = {
    {"exp", exp, std::exp, 0.9, 0},       {"expm1", expm1, std::expm1, 1.4, 0},
    {"log", log, std::log, 0.9, 0},       {"log2", log2, std::log2, 1.2, 0},
    {"log10", log10, std::log10, 0.9, 0}, {"sin", sin, std::sin, 1.9, 0, -30000, 30000},
    {"tanh", tanh, std::tanh, 1.0, 0},    {"cos", cos, std::cos, 1.9, 0, -30000, 30000},
    {"erf", erf, std::erf, 1.4, 0},       {"tan", tan, std::tan, 2.5, 0, -30000, 30000},
    {"erfc", erfc, std::erfc, 1.8, 0},    {"atan", atan, std::atan, 1.1, 0},
};
const Case1 kOwnFloat64[] = {
    {"exp", exp, std::exp, 0, 0.9},       {"sin", sin, std::sin, 0, 1.9, -1e6, 1e6},
    {"log", log, std::log, 0, 0.8},       {"cos", cos, std::cos, 0, 1.9, -1e6, 1e6},
    {"log2", log2, std::log2, 0, 1.0},    {"tanh", tanh, std::tanh, 0, 1.0},
    {"log10", log10, std::log10, 0, 0.9}, {"erf", erf, std::erf, 0, 1.3},
};

// Ours change from one polynomial to the next: floats at a short distance, of both signs, where they do.
TEST(VecMath, OwnFunctionsAcrossTheirIntervals) {
  if (cpu_isa() == CpuIsa::Generic) return;
  std::vector<float> inputs;
  // From 1/16 to 16, of both signs.
  for (uint32_t bits = 0x3d800000; bits < 0x41800000; bits += 331)
    for (const float x : {from_bits<float>(bits), -from_bits<float>(bits)}) inputs.push_back(x);
  const Tensor x = tensor_of(inputs);
  for (const Case1& c : kOwnFloat32) {
    const Tensor y = c.op(x);
    double worst = 0;
    float at = 0;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const double error = ulps(y.data<float>()[i], c.exact(static_cast<long double>(inputs[i])));
      if (error > worst) worst = error, at = inputs[i];
    }
    EXPECT_LE(worst, c.bound32) << c.name << "(" << at << ")";
  }
}
TEST(VecMath, OwnFunctionsHaveCloserBounds) {
  if (cpu_isa() == CpuIsa::Generic) return;
  for (const Case1& c : kOwnFloat32) check<float>(c, c.bound32);
  for (const Case1& c : kOwnFloat64) check<double>(c, c.bound64);
}

class VecMathIsas : public testing::Test {
 protected:
  ~VecMathIsas() override { set_cpu_isa(isa_); }
  /** Runs op with AVX2 and with AVX-512 and compares the bits. */
  template <class T, class Op>
  static void expect_same(const char* name, const std::vector<T>& inputs, Op op) {
    const Tensor x = tensor_of(inputs);
    set_cpu_isa(CpuIsa::Avx2);
    const Tensor narrow = op(x);
    set_cpu_isa(CpuIsa::Avx512);
    const Tensor wide = op(x);
    int64_t different = 0;
    T at = 0;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const T a = narrow.data<T>()[i], b = wide.data<T>()[i];
      if ((std::isnan(a) && std::isnan(b)) || std::memcmp(&a, &b, sizeof(T)) == 0) continue;
      ++different, at = inputs[i];
    }
    EXPECT_EQ(different, 0) << name << ", for instance of " << at;
  }

 private:
  CpuIsa isa_ = cpu_isa();
};

template <class T>
std::vector<T> samples_and_special_values(double low, double high) {
  std::vector<T> out = samples<T>(low, high);
  for (const T x : special_values<T>())
    if (!(static_cast<double>(x) < low || static_cast<double>(x) > high)) out.push_back(x);
  return out;
}

TEST_F(VecMathIsas, OwnFunctionsHaveTheSameBitsWithAvx2AndAvx512) {
  if (best_cpu_isa() < CpuIsa::Avx512) return;
  for (const Case1& c : kOwnFloat32) expect_same(c.name, samples_and_special_values<float>(c.low, c.high), c.op);
  for (const Case1& c : kOwnFloat64) expect_same(c.name, samples_and_special_values<double>(c.low, c.high), c.op);
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<float> f32 = samples_and_special_values<float>(-infinity, infinity);
  const std::vector<double> f64 = samples_and_special_values<double>(-infinity, infinity);
  const auto both = [&](const char* name, auto op) {
    expect_same(name, f32, op);
    expect_same(name, f64, op);
  };
  both("sigmoid", [](const Tensor& x) { return sigmoid(x); });
  both("silu", [](const Tensor& x) { return silu(x); });
  both("gelu", [](const Tensor& x) { return gelu(x); });
  both("frac", [](const Tensor& x) { return frac(x); });
  both("fmod", [](const Tensor& x) { return fmod(x, 3); });
  both("remainder", [](const Tensor& x) { return remainder(x, -0.7); });
  both("floor_divide", [](const Tensor& x) { return floor_divide(x, 0.3); });
  expect_same("erfinv", samples_and_special_values<float>(-1, 1), [](const Tensor& x) { return erfinv(x); });
}

// Against that of float64, which special_rows.h compares with bisection.
TEST(VecMath, ErfinvFloat32) {
  std::vector<float> inputs = {0.0F, -0.0F, 1e-38F, -1e-42F, 0.99999994F, -0.99999994F};
  for (uint32_t bits = 0x00000001; bits < 0x3f800000; bits += 9973)
    for (const float x : {from_bits<float>(bits), -from_bits<float>(bits)}) inputs.push_back(x);
  const Tensor y = erfinv(tensor_of(inputs)),
               exact = erfinv(tensor_of(std::vector<double>(inputs.begin(), inputs.end())));
  double worst = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    worst = std::max(worst, ulps(y.data<float>()[i], static_cast<long double>(exact.data<double>()[i])));
    EXPECT_EQ(std::signbit(y.data<float>()[i]), std::signbit(inputs[i])) << inputs[i];
  }
  EXPECT_LE(worst, 4.0);
  const float infinity = std::numeric_limits<float>::infinity();
  const Tensor ends = erfinv(tensor_of<float>({1, -1, 1.5F, -infinity, std::nanf("")}));
  EXPECT_EQ(ends.data<float>()[0], infinity);
  EXPECT_EQ(ends.data<float>()[1], -infinity);
  for (const int i : {2, 3, 4}) EXPECT_TRUE(std::isnan(ends.data<float>()[i])) << i;
}

// Sine and cosine of numbers too large for a float to resolve multiples of pi are still exact for the number.
TEST(VecMath, LargeAngles) {
  const std::vector<double> angles = {1e6, 1e10, 1e15, 1e22, -3e9, 1e300};
  for (const double x : angles) {
    const Tensor t = tensor_of<double>({x});
    EXPECT_LE(ulps(sin(t).data<double>()[0], std::sin(static_cast<long double>(x))), 4) << "sin(" << x << ")";
    EXPECT_LE(ulps(cos(t).data<double>()[0], std::cos(static_cast<long double>(x))), 4) << "cos(" << x << ")";
  }
}

}  // namespace
}  // namespace tercel
