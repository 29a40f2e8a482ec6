// Scalar loops of special ops.
#include "tercel/ops/special/special_binary_ops.h"
#include "tercel/ops/special/special_kernels.h"
#include "tercel/ops/special/special_unary_ops.h"

namespace tercel {

namespace {

template <class F>
constexpr bool has_own_precision = requires {
  F::own_precision;
};

// Whether the forward loop is vectorised, in special_kernels.cpp.
template <class F>
constexpr bool has_vectors32 = requires {
  F::kVectors32;
};
template <class F>
constexpr bool has_vectors64 = requires {
  F::kVectors64;
};

/** The functor's compute type for elements of type T. */
template <class F, class T>
using Working = std::conditional_t<
    std::is_integral_v<T>, Int<T>,
    std::conditional_t<is_complex_number<T>, Complex<double>,
                       std::conditional_t<has_own_precision<F> && std::is_same_v<T, float>, float, double>>>;

template <class T, class V>
T as_element(V value) {
  if constexpr (std::is_integral_v<T>)
    return value.v;
  else
    return static_cast<T>(value);
}

template <class V>
V conjugate(V derivative) {
  if constexpr (is_complex_number<V>)
    return conj(derivative);
  else
    return derivative;
}

struct Forward {
  template <class F, class... V>
  static auto run(V... x) {
    return F::fwd(x...);
  }
};
/** Computes a gradient from g and the input, the output, or both inputs. */
struct GradientA {
  template <class F, class V, class... Rest>
  static V run(V g, Rest... saved) {
    if constexpr (sizeof...(Rest) == 2)
      return g * conjugate(F::da(saved...));
    else if constexpr (requires { F::dy(saved...); })
      return g * conjugate(F::dy(saved...));
    else
      return g * conjugate(F::dx(saved...));
  }
};
struct GradientB {
  template <class F, class V>
  static V run(V g, V a, V b) {
    return g * conjugate(F::db(a, b));
  }
};

template <class F, class Part, int kInputs, class T>
void loop(void* out_data, const void* const* in, int64_t n) {
  using V = Working<F, T>;
  auto* out = static_cast<T*>(out_data);
  const auto x = [in](int operand, int64_t i) { return V(static_cast<const T*>(in[operand])[i]); };
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (kInputs == 1)
      out[i] = as_element<T>(Part::template run<F>(x(0, i)));
    else if constexpr (kInputs == 2)
      out[i] = as_element<T>(Part::template run<F>(x(0, i), x(1, i)));
    else
      out[i] = as_element<T>(Part::template run<F>(x(0, i), x(1, i), x(2, i)));
  }
}

struct ContiguousLoops {
  SpecialLoop of[kNumComputes] = {};
};

template <class F, class Part, int kInputs, bool kForward>
constexpr ContiguousLoops contiguous_loops_of() {
  ContiguousLoops out;
  const auto put = [&out](Compute c, SpecialLoop run) { out.of[static_cast<int>(c)] = run; };
  if constexpr (F::domain != Domain::Integral) {
    if constexpr (!kForward || !has_vectors32<F>) put(Compute::F32, &loop<F, Part, kInputs, float>);
    if constexpr (!kForward || !has_vectors64<F>) put(Compute::F64, &loop<F, Part, kInputs, double>);
  }
  if constexpr (kForward && F::domain != Domain::Float) {
    put(Compute::I32, &loop<F, Part, kInputs, int32_t>);
    put(Compute::I64, &loop<F, Part, kInputs, int64_t>);
    put(Compute::U64, &loop<F, Part, kInputs, uint64_t>);
  }
  if constexpr (takes_complex<F>) {
    put(Compute::C64, &loop<F, Part, kInputs, Complex<float>>);
    put(Compute::C128, &loop<F, Part, kInputs, Complex<double>>);
  }
  return out;
}

struct Parts {
  ContiguousLoops part[kSpecialParts];
};

template <class F>
constexpr Parts unary_parts() {
  Parts out = {{contiguous_loops_of<F, Forward, 1, true>(), ContiguousLoops(), ContiguousLoops()}};
  if constexpr (has_dx<F> || has_dy<F>) out.part[1] = contiguous_loops_of<F, GradientA, 2, false>();
  return out;
}

template <class F>
constexpr Parts binary_parts() {
  Parts out = {{contiguous_loops_of<F, Forward, 2, true>(), ContiguousLoops(), ContiguousLoops()}};
  if constexpr (!has_no_grad<F>) {
    if constexpr (requires(double v) { F::da(v, v); }) out.part[1] = contiguous_loops_of<F, GradientA, 3, false>();
    if constexpr (requires(double v) { F::db(v, v); }) out.part[2] = contiguous_loops_of<F, GradientB, 3, false>();
  }
  return out;
}

template <class... F>
const Parts& unary_of(OpList<F...>, int op) {
  static constexpr Parts table[] = {unary_parts<F>()...};
  return table[op];
}
template <class... F>
const Parts& binary_of(OpList<F...>, int op) {
  static constexpr Parts table[] = {binary_parts<F>()...};
  return table[op];
}

}  // namespace

SpecialLoop special_loop(int number, Compute compute) {
  const int part = number / 2 % kSpecialParts, op = number / 2 / kSpecialParts;
  const Parts& parts = number % 2 == 0 ? unary_of(SpecialUnaryOps(), op) : binary_of(SpecialBinaryOps(), op);
  return parts.part[part].of[static_cast<int>(compute)];
}

}  // namespace tercel
