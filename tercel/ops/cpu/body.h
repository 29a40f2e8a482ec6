// The one loop of an elementwise op: contiguous arrays of the type it calculates in.
#pragma once

#include <cstdint>
#include <type_traits>

#include "tercel/ops/cpu/drive.h"
#include "tercel/ops/cpu/vec_math.h"
#include "tercel/ops/int_math.h"
#include "tercel/ops/op_list.h"

namespace tercel::TERCEL_ISA {

namespace {

// A predicate's answer as a number, which the tile store turns into bool.
template <class T>
Vec<T> as_number(Vec<T> x) {
  return x;
}
template <class T>
Vec<T> as_number(Mask<T> m) {
  return where(m, Vec<T>(1), Vec<T>(0));
}
template <class T>
T as_number(Int<T> x) {
  return x.v;
}
template <class T>
requires std::is_integral_v<T> T as_number(bool b) { return static_cast<T>(b); }

template <int kInputs, class T, class F>
void vector_body(F f, void* out_data, const void* const* in, int64_t n) {
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

// Integers need no vector type: their arithmetic is exact however the compiler vectorises it.
template <int kInputs, class T, class F>
void plain_body(F f, void* out_data, const void* const* in, int64_t n) {
  auto* out = static_cast<T*>(out_data);
  const auto p = [in](int a) { return static_cast<const T*>(in[a]); };
  if constexpr (kInputs == 1) {
    const T* a = p(0);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] = f(Int<T>(a[i]));
  } else if constexpr (kInputs == 2) {
    const T *a = p(0), *b = p(1);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] = f(Int<T>(a[i]), Int<T>(b[i]));
  } else if constexpr (kInputs == 3) {
    const T *a = p(0), *b = p(1), *c = p(2);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] = f(Int<T>(a[i]), Int<T>(b[i]), Int<T>(c[i]));
  } else {
    static_assert(kInputs == 4);
    const T *a = p(0), *b = p(1), *c = p(2), *d = p(3);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] = f(Int<T>(a[i]), Int<T>(b[i]), Int<T>(c[i]), Int<T>(d[i]));
  }
}

/** The loop of the function object F, of kInputs numbers, over elements of type T. */
template <int kInputs, class T, class F>
void body_of(void* out, const void* const* in, int64_t n) {
  if constexpr (std::is_floating_point_v<T>)
    vector_body<kInputs, T>([](auto... v) { return as_number(F{}(v...)); }, out, in, n);
  else
    plain_body<kInputs, T>([](auto... v) { return as_number<T>(F{}(v...)); }, out, in, n);
}

/** An op's loops, by compute type; null where its domain has none. */
struct Bodies {
  Body body[kNumComputes];
  Body operator[](Compute c) const { return body[static_cast<int>(c)]; }
};
template <int kInputs, class F>
constexpr Bodies float_bodies() {
  return {{nullptr, nullptr, &body_of<kInputs, float, F>, &body_of<kInputs, double, F>}};
}
template <int kInputs, class F>
constexpr Bodies integer_bodies() {
  return {{&body_of<kInputs, int32_t, F>, &body_of<kInputs, int64_t, F>, nullptr, nullptr}};
}
template <int kInputs, class F>
constexpr Bodies all_bodies() {
  return {{&body_of<kInputs, int32_t, F>, &body_of<kInputs, int64_t, F>, &body_of<kInputs, float, F>,
           &body_of<kInputs, double, F>}};
}
/** Those that the domain of Op asks for, of the function object F. */
template <class Op, int kInputs, class F>
constexpr Bodies bodies_for() {
  if constexpr (Op::domain == Domain::Float)
    return float_bodies<kInputs, F>();
  else if constexpr (Op::domain == Domain::Integral)
    return integer_bodies<kInputs, F>();
  else
    return all_bodies<kInputs, F>();
}

}  // namespace
}  // namespace tercel::TERCEL_ISA
