// The loop of an elementwise op over contiguous arrays of its compute type.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include "tercel/ops/common/cpu/tiled_loop.h"
#include "tercel/ops/common/cpu/vec_math.h"
#include "tercel/ops/common/elementwise_functions_impl.h"
#include "tercel/ops/common/int_math_impl.h"
#include "tercel/ops/common/op_list_impl.h"
#include "tercel/util/complex.h"

namespace tercel::TERCEL_ISA {

namespace {

// A predicate's result as a number, which is converted to bool when the tile is stored.
template <class T>
Vec<T> as_number(Vec<T> x) {
  return x;
}
template <class T>
Vec<T> as_number(Mask<T> m) {
  return where(m, Vec<T>(1), Vec<T>(0));
}
template <class T, class Result>
T as_element(Result result) {
  if constexpr (std::is_same_v<Result, bool>)
    return T(result);
  else if constexpr (std::is_integral_v<T>)
    return result.v;
  else
    return result;
}

/** The functor's type for elements computed without vectors. */
template <class T>
using Plain = std::conditional_t<std::is_integral_v<T>, Int<T>, T>;

template <int kInputs, class T, class F>
void vector_loop(F f, void* out_data, const void* const* in, int64_t n) {
  using V = Vec<T>;
  auto* out = static_cast<T*>(out_data);
  const auto p = [in](int a) { return static_cast<const T*>(in[a]); };
  int64_t i = 0;
  if constexpr (kInputs == 1) {
    const T* a = p(0);
    for (; i + V::kSize <= n; i += V::kSize) f(V::load(a + i)).store(out + i);
    if (i < n) store_partial(out + i, f(load_partial(a + i, n - i)), n - i);
  } else if constexpr (kInputs == 2) {
    const T *a = p(0), *b = p(1);
    for (; i + V::kSize <= n; i += V::kSize) f(V::load(a + i), V::load(b + i)).store(out + i);
    if (i < n) store_partial(out + i, f(load_partial(a + i, n - i), load_partial(b + i, n - i)), n - i);
  } else if constexpr (kInputs == 3) {
    const T *a = p(0), *b = p(1), *c = p(2);
    for (; i + V::kSize <= n; i += V::kSize) f(V::load(a + i), V::load(b + i), V::load(c + i)).store(out + i);
    if (i < n) {
      const int64_t m = n - i;
      store_partial(out + i, f(load_partial(a + i, m), load_partial(b + i, m), load_partial(c + i, m)), m);
    }
  } else {
    static_assert(kInputs == 4);
    const T *a = p(0), *b = p(1), *c = p(2), *d = p(3);
    for (; i + V::kSize <= n; i += V::kSize)
      f(V::load(a + i), V::load(b + i), V::load(c + i), V::load(d + i)).store(out + i);
    if (i < n) {
      const int64_t m = n - i;
      store_partial(out + i,
                    f(load_partial(a + i, m), load_partial(b + i, m), load_partial(c + i, m), load_partial(d + i, m)),
                    m);
    }
  }
}

/** vector_loop for long functions, which are instantiated once and also used for the last few elements. */
template <class T, class F, size_t... kInput>
void compact_loop(F f, void* out_data, const void* const* in, int64_t n, std::index_sequence<kInput...>) {
  using V = Vec<T>;
  auto* out = static_cast<T*>(out_data);
  for (int64_t i = 0; i < n; i += V::kSize) {
    const int64_t left = n - i;
    const auto at = [&](size_t a) {
      const T* p = static_cast<const T*>(in[a]) + i;
      return left >= V::kSize ? V::load(p) : load_partial(p, left);
    };
    const V y = f(at(kInput)...);
    if (left >= V::kSize)
      y.store(out + i);
    else
      store_partial(out + i, y, left);
  }
}

// Integers need no vector type: their arithmetic is exact however the compiler vectorises it. Complex numbers would
// gain little, since their functions are the C library's.
template <int kInputs, class T, class F>
void plain_loop(F f, void* out_data, const void* const* in, int64_t n) {
  auto* out = static_cast<T*>(out_data);
  const auto p = [in](int a) { return static_cast<const T*>(in[a]); };
  if constexpr (kInputs == 1) {
    const T* a = p(0);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] = f(Plain<T>(a[i]));
  } else if constexpr (kInputs == 2) {
    const T *a = p(0), *b = p(1);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] = f(Plain<T>(a[i]), Plain<T>(b[i]));
  } else if constexpr (kInputs == 3) {
    const T *a = p(0), *b = p(1), *c = p(2);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] = f(Plain<T>(a[i]), Plain<T>(b[i]), Plain<T>(c[i]));
  } else {
    static_assert(kInputs == 4);
    const T *a = p(0), *b = p(1), *c = p(2), *d = p(3);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] = f(Plain<T>(a[i]), Plain<T>(b[i]), Plain<T>(c[i]), Plain<T>(d[i]));
  }
}

/** The loop of the function object F with kInputs arguments over elements of type T. */
template <int kInputs, class T, class F>
void contiguous_loop(void* out, const void* const* in, int64_t n) {
  const auto vectors = [](auto... v) { return as_number(F{}(v...)); };
  if constexpr (std::is_floating_point_v<T> && F::kLong)
    compact_loop<T>(vectors, out, in, n, std::make_index_sequence<kInputs>());
  else if constexpr (std::is_floating_point_v<T>)
    vector_loop<kInputs, T>(vectors, out, in, n);
  else
    plain_loop<kInputs, T>([](auto... v) { return as_element<T>(F{}(v...)); }, out, in, n);
}

/** Loops of an op by compute type; null outside its domain. */
struct ContiguousLoops {
  ContiguousLoop loops[kNumComputes];
  ContiguousLoop operator[](Compute c) const { return loops[static_cast<int>(c)]; }
};
template <int kInputs, class F, bool kInteger, bool kFloat, bool kComplex>
constexpr ContiguousLoops contiguous_loops_of() {
  ContiguousLoops out{};
  const auto put = [&out](Compute c, ContiguousLoop loop) { out.loops[static_cast<int>(c)] = loop; };
  if constexpr (kInteger) {
    put(Compute::I32, &contiguous_loop<kInputs, int32_t, F>);
    put(Compute::I64, &contiguous_loop<kInputs, int64_t, F>);
    put(Compute::U64, &contiguous_loop<kInputs, uint64_t, F>);
  }
  if constexpr (kFloat) {
    put(Compute::F32, &contiguous_loop<kInputs, float, F>);
    put(Compute::F64, &contiguous_loop<kInputs, double, F>);
  }
  if constexpr (kComplex) {
    put(Compute::C64, &contiguous_loop<kInputs, Complex<float>, F>);
    put(Compute::C128, &contiguous_loop<kInputs, Complex<double>, F>);
  }
  return out;
}
/** The loops of the function object F for the domain of Op. */
template <class Op, int kInputs, class F>
constexpr ContiguousLoops contiguous_loops_for() {
  constexpr Domain kDomain = Op::domain;
  return contiguous_loops_of < kInputs, F, kDomain != Domain::Float && kDomain != Domain::Complex,
         kDomain != Domain::Integral && kDomain != Domain::Complex, takes_complex < Op >> ();
}
/** contiguous_loops_for all ops of a list, by index. */
template <class... Op>
constexpr auto contiguous_loops_table(OpList<Op...>) {
  struct Table {
    ContiguousLoops op[sizeof...(Op)];
  };
  return Table{{contiguous_loops_for<Op, num_inputs<Op>, Forward<Op>>()...}};
}
/** The loops of the gradient of Op. */
template <class Op, int kInputs, class F>
constexpr ContiguousLoops backward_loops_for() {
  return contiguous_loops_of<kInputs, F, false, Op::domain != Domain::Complex, takes_complex<Op>>();
}

}  // namespace
}  // namespace tercel::TERCEL_ISA
