#include "tercel/ops/elementwise/composite.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "tercel/autograd/record.h"
#include "tercel/core/default_dtype.h"
#include "tercel/core/dtype_words.h"
#include "tercel/core/tensor_meta.h"
#include "tercel/ops/common/assign_inplace_impl.h"
#include "tercel/ops/common/elementwise_impl.h"
#include "tercel/ops/common/new_tensor_impl.h"
#include "tercel/ops/common/operand_checks_impl.h"
#include "tercel/ops/common/out.h"
#include "tercel/ops/common/promotion_impl.h"
#include "tercel/ops/common/sum_to_size.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/complex.h"
#include "tercel/ops/elementwise/composite_impl.h"
#include "tercel/ops/elementwise/ternary.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/sparse/sparse_ops_impl.h"
#include "tercel/ops/special/special.h"
#include "tercel/ops/views/views.h"

namespace tercel {

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity(), kPi = 3.141592653589793;

Tensor no_bools(const Tensor& x) { return zeros(x.sizes(), TensorOptions(kBool, x.device())); }

}  // namespace

Tensor sgn(const Tensor& x) {
  if (has_sparse(x)) [[unlikely]]
    return sparse_map_values("sgn", x, [&](const Tensor& values) { return sgn(values); });
  check_strided("sgn", x);
  if (!x.is_complex()) return sign(x);
  const Tensor size = abs(x), zero = eq(size, 0);
  // Divides by 1 where the size is zero, so that the gradient there is not NaN.
  return where(zero, 0, div(x, where(zero, 1, size)));
}

Tensor deg2rad(const Tensor& x) { return mul(x, kPi / 180); }
Tensor rad2deg(const Tensor& x) { return mul(x, 180 / kPi); }

#define TERCEL_DEFINE_VARIANTS(name)                                                        \
  const Tensor& name##_(const Tensor& x) {                                                  \
    return assign_inplace(#name "_", x, [](const Tensor& before) { return name(before); }); \
  }                                                                                         \
  const Tensor& name##_out(const Tensor& out, const Tensor& x) {                            \
    check_out_apart(#name, {out}, {x});                                                     \
    return put_out(#name, out, name(x));                                                    \
  }
TERCEL_DEFINE_VARIANTS(sgn)
TERCEL_DEFINE_VARIANTS(deg2rad)
TERCEL_DEFINE_VARIANTS(rad2deg)
#undef TERCEL_DEFINE_VARIANTS

Tensor positive(const Tensor& x) {
  if (!has_sparse(x)) check_strided("positive", x);
  TERCEL_CHECK(x.dtype() != kBool, NotImplementedError, "The `+` operator, on a bool tensor is not supported.");
  return x;
}

Tensor angle(const Tensor& x) {
  if (has_sparse(x)) [[unlikely]]
    return sparse_map_values("angle", x, [](const Tensor& values) { return angle(values); });
  check_strided("angle", x);
  if (x.is_complex()) return atan2(imag(x), real(x));
  const Tensor floating = x.is_floating_point() ? x : to(x, default_dtype());
  // Multiplying x by zero keeps NaN and the history.
  return where(lt(x, 0), kPi, mul(where(isnan(floating), floating, 0), 0));
}

Tensor nan_to_num(const Tensor& x, double nan, std::optional<double> posinf, std::optional<double> neginf) {
  if (has_sparse(x)) [[unlikely]]
    return sparse_map_values("nan_to_num", x,
                             [&](const Tensor& values) { return nan_to_num(values, nan, posinf, neginf); });
  check_strided("nan_to_num", x);
  if (x.is_complex())
    return complex(nan_to_num(real(x), nan, posinf, neginf), nan_to_num(imag(x), nan, posinf, neginf));
  if (!x.is_floating_point()) return clone(x);
  const double largest = visit_floating_types(
      "nan_to_num", x.dtype(), [&]<class T> { return static_cast<double>(std::numeric_limits<T>::max()); });
  if (!posinf && !neginf) return nan_to_num_of_floats(x, nan, largest);
  const Tensor numbers = where(isnan(x), nan, x);
  const Tensor below = where(eq(x, kInf), posinf.value_or(largest), numbers);
  return where(eq(x, -kInf), neginf.value_or(-largest), below);
}
const Tensor& nan_to_num_(const Tensor& x, double nan, std::optional<double> posinf, std::optional<double> neginf) {
  return assign_inplace("nan_to_num_", x,
                        [&](const Tensor& before) { return nan_to_num(before, nan, posinf, neginf); });
}

Tensor logit(const Tensor& x, std::optional<double> eps) {
  check_real("logit", x);
  // The lower bound wins if it exceeds the upper one.
  const Tensor number = x.is_floating_point() ? x : to(x, default_dtype());
  Tensor out;
  {
    const NoRecordGuard no_record;
    Tensor p = number;
    if (eps) {
      p = clamp_max(number, 1 - *eps);
      p = where(lt(number, *eps), full({}, *eps, TensorOptions(number.dtype())), p);
    }
    out = log(div(p, sub(1, p)));
  }
  if (should_record(number))
    record("LogitBackward0", out, {number}, [number = SavedTensor(number), eps](BackwardCall& call) {
      const Tensor& p = number.get();
      const Tensor outside = logical_or(lt(p, eps.value_or(0)), gt(p, 1 - eps.value_or(0)));
      // Undefined outside (0, 1), and constant outside the bounds.
      const double rest = eps ? 0 : std::numeric_limits<double>::quiet_NaN();
      // -0 + 0 is 0: that end of the domain too is reached from inside, where the slope is positive.
      call.set(0, where(outside, rest, div(call.grad(), mul(add(p, 0), sub(1, p)))));
    });
  return out;
}
const Tensor& logit_(const Tensor& x, std::optional<double> eps) {
  return assign_inplace("logit_", x, [&](const Tensor& before) { return logit(before, eps); });
}

Tensor signbit(const Tensor& x) {
  if (has_sparse(x)) [[unlikely]]
    return sparse_map_values("signbit", x, [&](const Tensor& values) { return signbit(values); });
  check_strided("signbit", x);
  TERCEL_CHECK(!x.is_complex(), NotImplementedError, "signbit is not implemented for complex tensors.");
  const NoRecordGuard no_record;
  if (!x.is_floating_point()) return lt(x, 0);
  return lt(copysign(1.0, x), 0);
}

Tensor isinf(const Tensor& x) {
  if (has_sparse(x)) [[unlikely]]
    return sparse_map_values("isinf", x, [&](const Tensor& values) { return isinf(values); });
  check_strided("isinf", x);
  const NoRecordGuard no_record;
  if (x.is_complex()) return logical_or(isinf(real(x)), isinf(imag(x)));
  return x.is_floating_point() ? eq(abs(x), kInf) : no_bools(x);
}
Tensor isposinf(const Tensor& x) {
  if (has_sparse(x)) [[unlikely]]
    return sparse_map_values("isposinf", x, [&](const Tensor& values) { return isposinf(values); });
  check_strided("isposinf", x);
  TERCEL_CHECK(!x.is_complex(), TypeError, "isposinf does not support complex inputs.");
  return x.is_floating_point() ? eq(x, kInf) : no_bools(x);
}
Tensor isneginf(const Tensor& x) {
  if (has_sparse(x)) [[unlikely]]
    return sparse_map_values("isneginf", x, [&](const Tensor& values) { return isneginf(values); });
  check_strided("isneginf", x);
  TERCEL_CHECK(!x.is_complex(), TypeError, "isneginf does not support complex inputs.");
  return x.is_floating_point() ? eq(x, -kInf) : no_bools(x);
}
Tensor isreal(const Tensor& x) {
  check_strided("isreal", x);
  const NoRecordGuard no_record;
  return x.is_complex() ? eq(imag(x), 0) : logical_not(no_bools(x));
}

namespace {

bool is_integral_operand(const OperandRef& x) {
  return x.tensor() ? is_integral(x.tensor()->dtype(), true) : x.number().is_integral();
}

/** The truncated quotient, whose gradient is zero; deriving it from a / b would give NaN where b is 0. */
template <class B>
Tensor truncated_quotient(const Tensor& a, const B& b) {
  Tensor out;
  {
    const NoRecordGuard no_record;
    out = trunc(div(a, b));
  }
  if constexpr (std::is_same_v<B, Tensor>) {
    if (should_record(a, b))
      record("DivBackward0", out, {a, b}, [of_a = TensorMeta(a), of_b = TensorMeta(b)](BackwardCall& call) {
        if (call.needs(0)) call.set(0, detail::zeros_like(of_a));
        if (call.needs(1)) call.set(1, detail::zeros_like(of_b));
      });
  } else if (should_record(a)) {
    record("DivBackward0", out, {a},
           [of_a = TensorMeta(a)](BackwardCall& call) { call.set(0, detail::zeros_like(of_a)); });
  }
  return out;
}

template <class B>
Tensor divide(const Tensor& a, const B& b, std::optional<std::string_view> mode) {
  if (!mode) return div(a, b);
  if constexpr (std::is_same_v<B, Tensor>)
    if (has_sparse(a, b) && (has_sparse(b) || b.dim() > 0)) return sparse_div(a, b);
  if (has_sparse(a)) [[unlikely]]
    return sparse_map_values("div", a, [&](const Tensor& values) { return divide(values, b, mode); });
  check_strided("div", a);
  if (*mode == "floor") return floor_divide(a, b);
  TERCEL_CHECK(*mode == "trunc", RuntimeError,
               "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '", *mode, "'");
  if (!is_integral_operand(a) || !is_integral_operand(b)) return truncated_quotient(a, b);
  // Throws for a zero in b.
  remainder(a, b);
  return divide_integers(a, b);
}

template <class B>
const Tensor& divide_(const Tensor& a, const B& b, std::optional<std::string_view> mode) {
  if (has_sparse(a)) [[unlikely]]  // need not be coalesced
    return sparse_assign_(a, divide(sparse_as_it_was(a, should_record(a)), b, mode));
  return assign_inplace("div_", a, [&](const Tensor& before) { return divide(before, b, mode); });
}

}  // namespace

Tensor div(const Tensor& a, const Tensor& b, std::optional<std::string_view> rounding_mode) {
  return divide(a, b, rounding_mode);
}
Tensor div(const Tensor& a, Scalar b, std::optional<std::string_view> rounding_mode) {
  return divide(a, b, rounding_mode);
}
const Tensor& div_(const Tensor& a, const Tensor& b, std::optional<std::string_view> rounding_mode) {
  return divide_(a, b, rounding_mode);
}
const Tensor& div_(const Tensor& a, Scalar b, std::optional<std::string_view> rounding_mode) {
  return divide_(a, b, rounding_mode);
}
Tensor true_divide(const Tensor& a, const Tensor& b) { return div(a, b); }
Tensor true_divide(const Tensor& a, Scalar b) { return div(a, b); }

Tensor rsub(const Tensor& a, const Tensor& b, Scalar alpha) { return sub(b, a, alpha); }
Tensor rsub(const Tensor& a, Scalar b, Scalar alpha) { return sub(b, equals(alpha, 1) ? a : mul(a, alpha)); }

Tensor ldexp(const Tensor& a, const Tensor& b) {
  check_strided("ldexp", a);
  check_strided("ldexp", b, "other");
  if (!is_integral(b.dtype(), false) || a.is_complex()) return mul(a, pow(2.0, b));
  // 2^b in two factors of float64: 2^b alone may overflow or underflow where the product does not.
  const ScalarType result = a.is_floating_point() ? a.dtype() : default_dtype();
  const Tensor exponent = to(b, kFloat64), half = floor(mul(exponent, 0.5));
  return to(mul(mul(to(a, kFloat64), pow(2.0, half)), pow(2.0, sub(exponent, half))), result);
}
const Tensor& ldexp_(const Tensor& a, const Tensor& b) {
  check_strided("ldexp_", a);
  check_strided("ldexp_", b, "other");
  TERCEL_CHECK(a.is_differentiable(), RuntimeError, "ldexp can't be cast to the desired output type ",
               scalar_type_word(a.dtype()));
  return assign_inplace("ldexp_", a, [&](const Tensor& before) { return ldexp(before, b); });
}

namespace {

Tensor widest(const Tensor& x) { return to(x, x.is_complex() ? kComplex128 : kFloat64); }

}  // namespace

Tensor float_power(const Tensor& a, const Tensor& b) {
  if (!has_sparse(a)) check_strided("float_power", a);
  check_strided("float_power", b, "exponent");
  return pow(widest(a), widest(b));
}
Tensor float_power(const Tensor& a, Scalar b) {
  if (!has_sparse(a)) check_strided("float_power", a);
  return pow(widest(a), b);
}
Tensor float_power(Scalar input, const Tensor& exponent) {
  check_strided("float_power", exponent, "exponent");
  return pow(input, widest(exponent));
}

namespace {

template <class B>
const Tensor& float_power_into(const Tensor& a, const B& b, bool complex_exponent) {
  check_strided("float_power_", a);
  const ScalarType wanted = a.is_complex() || complex_exponent ? kComplex128 : kFloat64;
  TERCEL_CHECK(a.dtype() == wanted, RuntimeError, "the base given to float_power_ has dtype ",
               scalar_type_word(a.dtype()), " but the operation's result requires dtype ", scalar_type_word(wanted));
  return pow_(a, b);
}

}  // namespace

const Tensor& float_power_(const Tensor& a, const Tensor& b) {
  check_strided("float_power_", b, "exponent");
  return float_power_into(a, widest(b), b.is_complex());
}
const Tensor& float_power_(const Tensor& a, Scalar b) { return float_power_into(a, b, b.is_complex()); }

Tensor round(const Tensor& x, int64_t decimals) {
  if (has_sparse(x)) [[unlikely]]
    return sparse_map_values("round", x, [&](const Tensor& values) { return round(values, decimals); });
  check_strided("round", x);
  if (decimals == 0) return round(x);
  if (!x.is_floating_point()) refuse_dtype("round_cpu", x.dtype());
  const double scale = std::pow(10.0, std::abs(static_cast<double>(decimals)));
  return decimals > 0 ? div(round(mul(x, scale)), scale) : mul(round(div(x, scale)), scale);
}
const Tensor& round_(const Tensor& x, int64_t decimals) {
  return assign_inplace("round_", x, [decimals](const Tensor& before) { return round(before, decimals); });
}

MantissaAndExponent frexp(const Tensor& x) {
  check_strided("frexp", x);
  TERCEL_CHECK(x.is_floating_point(), RuntimeError, "frexp() only supports floating-point dtypes, but got ",
               scalar_type_word(x.dtype()));
  check_on_cpu("frexp", x);
  const Tensor from = x.detach().contiguous();
  const MantissaAndExponent out = {empty(x.sizes(), TensorOptions(x.dtype())), empty(x.sizes(), TensorOptions(kInt32))};
  visit_floating_types("frexp", x.dtype(), [&]<class T>() {
    const T* in = from.data<T>();
    T* mantissa = out.mantissa.data<T>();
    auto* exponent = out.exponent.data<int32_t>();
    for (int64_t i = 0; i < from.numel(); ++i) {
      int power = 0;
      mantissa[i] = T(std::frexp(static_cast<double>(in[i]), &power));
      exponent[i] = std::isfinite(static_cast<double>(in[i])) ? power : 0;
    }
  });
  if (should_record(x))
    record("FrexpBackward0", out.mantissa, {x}, [exponent = SavedTensor(out.exponent)](BackwardCall& call) {
      call.set(0, div(call.grad(), exp2(to(exponent.get(), call.grad().dtype()))));
    });
  return out;
}

Tensor mvlgamma(const Tensor& x, int64_t p) {
  check_real("mvlgamma", x);
  TERCEL_CHECK(x.dtype() != kBool, RuntimeError, "The input tensor may not be a boolean tensor.");
  TERCEL_CHECK(p >= 1, RuntimeError, "p has to be greater than or equal to 1");
  // The sum of lgamma(x - i / 2) over i < p, and the logarithm of pi^(p (p - 1) / 4).
  const auto n = static_cast<double>(p);
  Tensor out = lgamma(x);
  for (int64_t i = 1; i < p; ++i) out = add(out, lgamma(sub(x, static_cast<double>(i) / 2)));
  return add(out, n * (n - 1) / 4 * std::log(kPi));
}
const Tensor& mvlgamma_(const Tensor& x, int64_t p) {
  return assign_inplace("mvlgamma_", x, [p](const Tensor& before) { return mvlgamma(before, p); });
}

Tensor isclose(const Tensor& a, const Tensor& b, double rtol, double atol, bool equal_nan) {
  check_strided("isclose", a);
  check_strided("isclose", b, "other");
  TERCEL_CHECK(a.dtype() == b.dtype(), RuntimeError, scalar_type_word(a.dtype()), " did not match ",
               scalar_type_word(b.dtype()));
  TERCEL_CHECK(rtol >= 0, RuntimeError, "rtol must be greater than or equal to zero, but got ", rtol);
  TERCEL_CHECK(atol >= 0, RuntimeError, "atol must be greater than or equal to zero, but got ", atol);
  const NoRecordGuard no_record;
  Tensor close = eq(a, b);
  if (equal_nan && a.is_differentiable()) close = logical_or(close, logical_and(isnan(a), isnan(b)));
  // Exact comparison, also for integers that float64 cannot represent.
  if (rtol == 0 && atol == 0) return close;
  if (!a.is_differentiable()) {
    const Tensor x = to(a, kFloat64), y = to(b, kFloat64);
    return logical_or(close, le(abs(sub(x, y)), add(abs(mul(y, rtol)), atol)));
  }
  const Tensor distance = abs(sub(a, b)), allowed = add(abs(mul(b, rtol)), atol);
  return logical_or(close, logical_and(isfinite(distance), le(distance, allowed)));
}

bool allclose(const Tensor& a, const Tensor& b, double rtol, double atol, bool equal_nan) {
  if (has_sparse(a, b)) [[unlikely]]
    return sparse_allclose(a, b, rtol, atol, equal_nan);
  return item(all(isclose(a, b, rtol, atol, equal_nan))).to_bool();
}

bool equal(const Tensor& a, const Tensor& b) {
  if (has_sparse(a, b)) [[unlikely]]
    return sparse_equal(a, b);
  check_strided("equal", a);
  check_strided("equal", b, "other");
  if (a.sizes() != b.sizes()) return false;
  const NoRecordGuard no_record;
  return item(all(eq(a, b))).to_bool();
}

Tensor clamp(const Tensor& x, const std::optional<Tensor>& min, const std::optional<Tensor>& max) {
  check_strided("clamp", x);
  TERCEL_CHECK(!x.is_complex(), NotImplementedError, "clamp is not supported for complex types");
  const bool lower = min && min->defined(), upper = max && max->defined();
  TERCEL_CHECK(lower || upper, RuntimeError, "clamp(): At least one of 'min' or 'max' must not be None");
  if (!upper) return maximum(x, *min);
  if (!lower) return minimum(x, *max);
  // Both bounds take part in type promotion before either is compared.
  const OperandRef operands[] = {x, *min, *max};
  const Tensor value = to(x, promote_operands({.op = "clamp"}, operands));
  Tensor out;
  {
    const NoRecordGuard no_record;
    out = minimum(maximum(value, *min), *max);
  }
  if (should_record(value, *min, *max))
    record("ClampBackward1", out, {value, *min, *max},
           [x = SavedTensor(value), min = SavedTensor(*min), max = SavedTensor(*max)](BackwardCall& call) {
             const Tensor &v = x.get(), &low = min.get(), &high = max.get(), &g = call.grad();
             const Tensor at_low = eq(v, low), at_high = eq(v, high), crossed = gt(low, high);
             // At one bound x gets half of the gradient, at two equal bounds all of it.
             const Tensor half = where(logical_xor(at_low, at_high), mul(g, 0.5), g);
             const auto set = [&](size_t i, const Tensor& takes_all, const Tensor& at, const Tensor& of) {
               const Tensor part = where(takes_all, g, where(at, half, 0));
               call.set(i, to(sum_to_size(part, of.sizes()), of.dtype()));
             };
             const Tensor apart = logical_and(ne(low, high), logical_not(crossed));
             if (call.needs(0)) {
               const Tensor outside = logical_or(lt(v, low), gt(v, high));
               call.set(0, sum_to_size(where(outside, 0, half), v.sizes()));
             }
             if (call.needs(1)) set(1, logical_and(lt(v, low), logical_not(crossed)), logical_and(at_low, apart), low);
             if (call.needs(2)) set(2, logical_or(crossed, gt(v, high)), logical_and(at_high, apart), high);
           });
  return out;
}
const Tensor& clamp_(const Tensor& x, const std::optional<Tensor>& min, const std::optional<Tensor>& max) {
  return assign_inplace("clamp_", x, [&](const Tensor& before) { return clamp(before, min, max); });
}
Tensor clip(const Tensor& x, const std::optional<Tensor>& min, const std::optional<Tensor>& max) {
  return clamp(x, min, max);
}
Tensor clip(const Tensor& x, Scalar min, Scalar max) { return clamp(x, min, max); }
const Tensor& clip_(const Tensor& x, const std::optional<Tensor>& min, const std::optional<Tensor>& max) {
  return clamp_(x, min, max);
}
const Tensor& clip_(const Tensor& x, Scalar min, Scalar max) { return clamp_(x, min, max); }

Tensor where(const Tensor& condition, Scalar a, Scalar b) {
  // Two numbers promote with one another as numbers.
  const ScalarType dtype = promote_types(a.dtype(), b.dtype());
  return where(condition, full({}, a, dtype), full({}, b, dtype));
}

namespace {

void check_fill(const char* op, const Tensor& x, const Tensor& value) {
  check_strided(op, x);
  check_strided(op, value, "value");
  TERCEL_CHECK(value.dim() == 0, RuntimeError, op, " only supports a 0-dimensional value tensor, but got tensor with ",
               value.dim(), " dimension(s).");
  if (value.is_complex() && !x.is_complex()) check_number_fits(x.dtype(), item(value));
}

}  // namespace

Tensor masked_fill(const Tensor& x, const Tensor& mask, const Tensor& value) {
  check_fill("masked_fill_", x, value);
  Tensor out;
  {
    const NoRecordGuard no_record;
    out = contiguous(where(mask, to(value, x.dtype()), x));
  }
  if (should_record(x, value))
    record("MaskedFillBackward0", out, {x, value},
           [mask = SavedTensor(mask), sizes = DimVector(x.sizes()), dtype = value.dtype()](BackwardCall& call) {
             if (call.needs(0)) call.set(0, sum_to_size(where(mask.get(), 0, call.grad()), sizes));
             if (call.needs(1)) call.set(1, to(sum(where(mask.get(), call.grad(), 0)), dtype));
           });
  return out;
}
const Tensor& masked_fill_(const Tensor& x, const Tensor& mask, const Tensor& value) {
  check_fill("masked_fill_", x, value);
  return assign_inplace("masked_fill_", x, [&](const Tensor& before) { return masked_fill(before, mask, value); });
}

const Tensor& lerp_(const Tensor& a, const Tensor& b, const Tensor& weight) {
  return assign_inplace("lerp_", a, [&](const Tensor& before) { return lerp(before, b, weight); });
}

#define TERCEL_DEFINE_COMPARE(name)                         \
  const Tensor& name##_(const Tensor& a, const Tensor& b) { \
    check_strided(#name "_", a);                            \
    return copy_(a, name(a, b));                            \
  }                                                         \
  const Tensor& name##_(const Tensor& a, Scalar b) {        \
    check_strided(#name "_", a);                            \
    return copy_(a, name(a, b));                            \
  }
TERCEL_DEFINE_COMPARE(eq)
TERCEL_DEFINE_COMPARE(ne)
TERCEL_DEFINE_COMPARE(lt)
TERCEL_DEFINE_COMPARE(le)
TERCEL_DEFINE_COMPARE(gt)
TERCEL_DEFINE_COMPARE(ge)
TERCEL_DEFINE_COMPARE(logical_and)
TERCEL_DEFINE_COMPARE(logical_or)
TERCEL_DEFINE_COMPARE(logical_xor)
#undef TERCEL_DEFINE_COMPARE
const Tensor& logical_not_(const Tensor& x) {
  check_strided("logical_not_", x);
  return copy_(x, logical_not(x));
}
const Tensor& bitwise_not_(const Tensor& x) {
  check_strided("bitwise_not_", x);
  return copy_(x, bitwise_not(x));
}

}  // namespace tercel
