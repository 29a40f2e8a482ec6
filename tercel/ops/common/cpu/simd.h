// Compiler vector types with the register width of the instruction set that a kernel file is compiled for.
//
// For kernels that only move, add and multiply; those that need mathematical functions use vec.h. `+ - * / < ?:` are
// operators on the vector types themselves.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <type_traits>

#include "tercel/core/scalar_type.h"
#include "tercel/util/macros.h"

#ifdef __clang__
#define TERCEL_UNROLL _Pragma("unroll")
#else
#define TERCEL_UNROLL _Pragma("GCC unroll 16")
#endif

namespace tercel::TERCEL_ISA {

constexpr int kSimdBytes = TERCEL_ISA_LEVEL == 2 ? 64 : TERCEL_ISA_LEVEL == 1 ? 32 : 16;

namespace detail {
template <class T, int Bytes>
struct SimdOf {
  typedef T type __attribute__((vector_size(Bytes)));  // NOLINT(modernize-use-using)
};
}  // namespace detail

/** A register full of T; T is a type that the processor computes with. */
template <class T>
using Simd = typename detail::SimdOf<T, kSimdBytes>::type;
template <class T>
constexpr int kLanes = kSimdBytes / static_cast<int>(sizeof(T));

/** The type in which elements of type T are computed: float for 16-bit floats, otherwise T. */
template <class T>
using ComputeType = std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>, float, T>;

template <class T>
TERCEL_ALWAYS_INLINE Simd<T> load(const T* p) {
  Simd<T> v;
  __builtin_memcpy(&v, p, kSimdBytes);
  return v;
}
template <class T>
TERCEL_ALWAYS_INLINE void store(T* p, Simd<T> v) {
  __builtin_memcpy(p, &v, kSimdBytes);
}
template <class T>
TERCEL_ALWAYS_INLINE Simd<T> broadcast(T x) {
  return x - Simd<T>{};
}

/** a * b + c, rounded once if the instruction set supports it. */
TERCEL_ALWAYS_INLINE float multiply_add(float a, float b, float c) {
#if TERCEL_ISA_LEVEL >= 1
  return __builtin_fmaf(a, b, c);
#else
  return a * b + c;
#endif
}
TERCEL_ALWAYS_INLINE double multiply_add(double a, double b, double c) {
#if TERCEL_ISA_LEVEL >= 1
  return __builtin_fma(a, b, c);
#else
  return a * b + c;
#endif
}
TERCEL_ALWAYS_INLINE Simd<float> multiply_add(Simd<float> a, Simd<float> b, Simd<float> c) {
#if TERCEL_ISA_LEVEL == 2
  return reinterpret_cast<Simd<float>>(_mm512_fmadd_ps(a, b, c));
#elif TERCEL_ISA_LEVEL == 1
  return reinterpret_cast<Simd<float>>(_mm256_fmadd_ps(a, b, c));
#else
  return a * b + c;
#endif
}
TERCEL_ALWAYS_INLINE Simd<double> multiply_add(Simd<double> a, Simd<double> b, Simd<double> c) {
#if TERCEL_ISA_LEVEL == 2
  return reinterpret_cast<Simd<double>>(_mm512_fmadd_pd(a, b, c));
#elif TERCEL_ISA_LEVEL == 1
  return reinterpret_cast<Simd<double>>(_mm256_fmadd_pd(a, b, c));
#else
  return a * b + c;
#endif
}

/** Calls fn.template operator()<T>() for a floating dtype; the op has rejected all others. */
template <class Fn>
TERCEL_ALWAYS_INLINE void visit_floating(ScalarType t, Fn fn) {
  switch (t) {
    case ScalarType::Float32: return fn.template operator()<float>();
    case ScalarType::Float64: return fn.template operator()<double>();
    case ScalarType::Float16: return fn.template operator()<Half>();
    case ScalarType::BFloat16: return fn.template operator()<BFloat16>();
    default: __builtin_unreachable();
  }
}

}  // namespace tercel::TERCEL_ISA
