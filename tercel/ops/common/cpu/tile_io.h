// Moves elements between strided memory and small contiguous tiles.
//
// Moves depend only on the size of an element; conversion is a second, contiguous step.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "tercel/ops/common/elementwise_loop_impl.h"

namespace tercel::TERCEL_ISA {

/** Converts elements of dtype `from` to compute type `to`, both contiguous. */
using ConvertFn = void (*)(void* out, const void* in, int64_t n);
ConvertFn load_conversion(ScalarType from, Compute to);
/** Converts elements of compute type `from` to dtype `to`. */
ConvertFn store_conversion(Compute from, ScalarType to);

namespace {

template <class T>
T read_as(const char* p) {
  T value;
  std::memcpy(&value, p, sizeof(T));
  return value;
}

// An element type of each size, used only for moves.
using Item1 = uint8_t;
using Item2 = uint16_t;
using Item4 = uint32_t;
using Item8 = uint64_t;
struct Item16 {
  uint64_t half[2];
};

template <class T>
void fill_items(T* out, T value, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = value;
}

template <class T>
void gather_items(T* out, const char* in, int64_t stride, int64_t n) {
  if (stride == 0) return fill_items(out, read_as<T>(in), n);
  if (stride == static_cast<int64_t>(sizeof(T))) {
    std::memcpy(out, in, static_cast<size_t>(n) * sizeof(T));
    return;
  }
  if (stride == -static_cast<int64_t>(sizeof(T))) {
    // Reversed: the compiler reverses whole vectors if the stride is constant.
    for (int64_t k = 0; k < n; ++k) out[k] = read_as<T>(in - k * static_cast<int64_t>(sizeof(T)));
    return;
  }
  int64_t i = 0;
  for (; i + 4 <= n; i += 4, in += 4 * stride) {
    out[i] = read_as<T>(in);
    out[i + 1] = read_as<T>(in + stride);
    out[i + 2] = read_as<T>(in + 2 * stride);
    out[i + 3] = read_as<T>(in + 3 * stride);
  }
  for (; i < n; ++i, in += stride) out[i] = read_as<T>(in);
}

template <class T>
void scatter_items(char* out, int64_t stride, const T* in, int64_t n) {
  if (stride == static_cast<int64_t>(sizeof(T))) {
    std::memcpy(out, in, static_cast<size_t>(n) * sizeof(T));
    return;
  }
  for (int64_t i = 0; i < n; ++i, out += stride) std::memcpy(out, in + i, sizeof(T));
}

/** Copies n elements of any size, `stride` bytes apart (0: one element n times), into a row. */
inline void gather(void* out, const char* in, int64_t stride, int64_t n, size_t item) {
  switch (item) {
    case 1: return gather_items(static_cast<Item1*>(out), in, stride, n);
    case 2: return gather_items(static_cast<Item2*>(out), in, stride, n);
    case 4: return gather_items(static_cast<Item4*>(out), in, stride, n);
    case 8: return gather_items(static_cast<Item8*>(out), in, stride, n);
    default: return gather_items(static_cast<Item16*>(out), in, stride, n);
  }
}
/** The reverse of gather. */
inline void scatter(char* out, int64_t stride, const void* in, int64_t n, size_t item) {
  switch (item) {
    case 1: return scatter_items(out, stride, static_cast<const Item1*>(in), n);
    case 2: return scatter_items(out, stride, static_cast<const Item2*>(in), n);
    case 4: return scatter_items(out, stride, static_cast<const Item4*>(in), n);
    case 8: return scatter_items(out, stride, static_cast<const Item8*>(in), n);
    default: return scatter_items(out, stride, static_cast<const Item16*>(in), n);
  }
}

/** A copy with non-temporal stores; the caller must fence afterwards. */
inline void stream_copy(char* out, const char* in, int64_t nbytes) {
  constexpr int64_t kWidth = TERCEL_ISA_LEVEL == 2 ? 64 : (TERCEL_ISA_LEVEL == 1 ? 32 : 16);
  const int64_t head = -static_cast<int64_t>(reinterpret_cast<uintptr_t>(out)) & (kWidth - 1);
  if (nbytes < head + kWidth) {
    std::memcpy(out, in, static_cast<size_t>(nbytes));
    return;
  }
  std::memcpy(out, in, static_cast<size_t>(head));
  int64_t i = head;
  for (; i + kWidth <= nbytes; i += kWidth) {
#if TERCEL_ISA_LEVEL == 2
    _mm512_stream_si512(reinterpret_cast<__m512i*>(out + i), _mm512_loadu_si512(in + i));
#elif TERCEL_ISA_LEVEL == 1
    _mm256_stream_si256(reinterpret_cast<__m256i*>(out + i),
                        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in + i)));
#else
    _mm_stream_si128(reinterpret_cast<__m128i*>(out + i), _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i)));
#endif
  }
  std::memcpy(out + i, in + i, static_cast<size_t>(nbytes - i));
}

// kStep x kStep elements by shuffles: out[j][i] = in[i][j], rows of `in` in_stride bytes apart, of `out` out_stride.
template <class T>
struct Transpose {
  static constexpr int64_t kStep = 1;
  static void square(char* out, int64_t, const char* in, int64_t) { std::memcpy(out, in, sizeof(T)); }
};

#if TERCEL_ISA_LEVEL == 0
template <>
struct Transpose<Item4> {
  static constexpr int64_t kStep = 4;
  static void square(char* out, int64_t out_stride, const char* in, int64_t in_stride) {
    __m128 r[4];
    for (int i = 0; i < 4; ++i) r[i] = _mm_loadu_ps(reinterpret_cast<const float*>(in + i * in_stride));
    _MM_TRANSPOSE4_PS(r[0], r[1], r[2], r[3]);
    for (int i = 0; i < 4; ++i) _mm_storeu_ps(reinterpret_cast<float*>(out + i * out_stride), r[i]);
  }
};
template <>
struct Transpose<Item8> {
  static constexpr int64_t kStep = 2;
  static void square(char* out, int64_t out_stride, const char* in, int64_t in_stride) {
    const __m128d a = _mm_loadu_pd(reinterpret_cast<const double*>(in));
    const __m128d b = _mm_loadu_pd(reinterpret_cast<const double*>(in + in_stride));
    _mm_storeu_pd(reinterpret_cast<double*>(out), _mm_unpacklo_pd(a, b));
    _mm_storeu_pd(reinterpret_cast<double*>(out + out_stride), _mm_unpackhi_pd(a, b));
  }
};
#else
template <>
struct Transpose<Item4> {
  static constexpr int64_t kStep = 8;
  static void square(char* out, int64_t out_stride, const char* in, int64_t in_stride) {
    // Rows i and i + 4 share a register, so that the last exchange of halves is done by the load.
    __m256 r[8], t[8];
    for (int i = 0; i < 4; ++i) {
      const auto* low = reinterpret_cast<const float*>(in + i * in_stride);
      const auto* high = reinterpret_cast<const float*>(in + (i + 4) * in_stride);
      r[i] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(low)), _mm_loadu_ps(high), 1);
      r[i + 4] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(low + 4)), _mm_loadu_ps(high + 4), 1);
    }
    for (int half = 0; half < 8; half += 4) {
      t[half] = _mm256_unpacklo_ps(r[half], r[half + 1]);
      t[half + 1] = _mm256_unpackhi_ps(r[half], r[half + 1]);
      t[half + 2] = _mm256_unpacklo_ps(r[half + 2], r[half + 3]);
      t[half + 3] = _mm256_unpackhi_ps(r[half + 2], r[half + 3]);
      r[half] = _mm256_shuffle_ps(t[half], t[half + 2], 0x44);
      r[half + 1] = _mm256_shuffle_ps(t[half], t[half + 2], 0xee);
      r[half + 2] = _mm256_shuffle_ps(t[half + 1], t[half + 3], 0x44);
      r[half + 3] = _mm256_shuffle_ps(t[half + 1], t[half + 3], 0xee);
    }
    for (int i = 0; i < 8; ++i) _mm256_storeu_ps(reinterpret_cast<float*>(out + i * out_stride), r[i]);
  }
};
template <>
struct Transpose<Item8> {
  static constexpr int64_t kStep = 4;
  static void square(char* out, int64_t out_stride, const char* in, int64_t in_stride) {
    __m256d r[4];
    for (int i = 0; i < 4; ++i) r[i] = _mm256_loadu_pd(reinterpret_cast<const double*>(in + i * in_stride));
    const __m256d a = _mm256_unpacklo_pd(r[0], r[1]), b = _mm256_unpackhi_pd(r[0], r[1]);
    const __m256d c = _mm256_unpacklo_pd(r[2], r[3]), d = _mm256_unpackhi_pd(r[2], r[3]);
    _mm256_storeu_pd(reinterpret_cast<double*>(out), _mm256_permute2f128_pd(a, c, 0x20));
    _mm256_storeu_pd(reinterpret_cast<double*>(out + out_stride), _mm256_permute2f128_pd(b, d, 0x20));
    _mm256_storeu_pd(reinterpret_cast<double*>(out + 2 * out_stride), _mm256_permute2f128_pd(a, c, 0x31));
    _mm256_storeu_pd(reinterpret_cast<double*>(out + 3 * out_stride), _mm256_permute2f128_pd(b, d, 0x31));
  }
};
template <>
struct Transpose<Item16> {
  static constexpr int64_t kStep = 2;
  static void square(char* out, int64_t out_stride, const char* in, int64_t in_stride) {
    const __m256d a = _mm256_loadu_pd(reinterpret_cast<const double*>(in));
    const __m256d b = _mm256_loadu_pd(reinterpret_cast<const double*>(in + in_stride));
    _mm256_storeu_pd(reinterpret_cast<double*>(out), _mm256_permute2f128_pd(a, b, 0x20));
    _mm256_storeu_pd(reinterpret_cast<double*>(out + out_stride), _mm256_permute2f128_pd(a, b, 0x31));
  }
};
#endif

#if TERCEL_ISA_LEVEL == 2
/** 16 x 16 elements of 4 bytes; each row of the result is a cache line, written with a non-temporal store. */
inline void stream_transposed(char* out, int64_t out_stride, const char* in, int64_t in_stride) {
  // Rows i, i + 4, i + 8 and i + 12 share a register, so that the exchange of quarters is done by the loads.
  const auto quarter = [](const char* p) { return _mm_loadu_ps(reinterpret_cast<const float*>(p)); };
  for (int64_t column = 0; column < 4; ++column) {
    __m512 r[4];
    for (int64_t i = 0; i < 4; ++i) {
      const char* from = in + i * in_stride + column * 16;
      r[i] = _mm512_castps128_ps512(quarter(from));
      r[i] = _mm512_mask_broadcast_f32x4(r[i], 0x00f0, quarter(from + 4 * in_stride));
      r[i] = _mm512_mask_broadcast_f32x4(r[i], 0x0f00, quarter(from + 8 * in_stride));
      r[i] = _mm512_mask_broadcast_f32x4(r[i], 0xf000, quarter(from + 12 * in_stride));
    }
    const __m512 a = _mm512_unpacklo_ps(r[0], r[1]), b = _mm512_unpackhi_ps(r[0], r[1]);
    const __m512 c = _mm512_unpacklo_ps(r[2], r[3]), d = _mm512_unpackhi_ps(r[2], r[3]);
    char* to = out + 4 * column * out_stride;
    _mm512_stream_ps(reinterpret_cast<float*>(to), _mm512_shuffle_ps(a, c, 0x44));
    _mm512_stream_ps(reinterpret_cast<float*>(to + out_stride), _mm512_shuffle_ps(a, c, 0xee));
    _mm512_stream_ps(reinterpret_cast<float*>(to + 2 * out_stride), _mm512_shuffle_ps(b, d, 0x44));
    _mm512_stream_ps(reinterpret_cast<float*>(to + 3 * out_stride), _mm512_shuffle_ps(b, d, 0xee));
  }
}
#endif

/**
 * out[j][i] = in[i][j] for i < ni, j < nj. Prefetches the following rows, which the caller reads next, to the L2 cache:
 * if the row stride is a power of two, L1 cannot hold that many of them.
 */
template <class T>
void transpose_items(char* out, int64_t out_stride, const char* in, int64_t in_stride, int64_t ni, int64_t nj) {
  constexpr int64_t kItem = static_cast<int64_t>(sizeof(T));
  constexpr int64_t kStep = Transpose<T>::kStep;
  constexpr int64_t kAhead = 32;
  int64_t i = 0;
  for (; i + kStep <= ni; i += kStep) {
    for (int64_t r = 0; r < kStep; ++r) {
      const char* next = in + (i + r + kAhead) * in_stride;
      for (int64_t b = 0; b < nj * kItem; b += 64) _mm_prefetch(next + b, _MM_HINT_T1);
    }
    int64_t j = 0;
    for (; j + kStep <= nj; j += kStep)
      Transpose<T>::square(out + j * out_stride + i * kItem, out_stride, in + i * in_stride + j * kItem, in_stride);
    for (; j < nj; ++j)
      for (int64_t r = i; r < i + kStep; ++r)
        std::memcpy(out + j * out_stride + r * kItem, in + r * in_stride + j * kItem, sizeof(T));
  }
  for (; i < ni; ++i)
    for (int64_t j = 0; j < nj; ++j)
      std::memcpy(out + j * out_stride + i * kItem, in + i * in_stride + j * kItem, sizeof(T));
}

inline void transpose(char* out, int64_t out_stride, const char* in, int64_t in_stride, int64_t ni, int64_t nj,
                      size_t item) {
  switch (item) {
    case 1: return transpose_items<Item1>(out, out_stride, in, in_stride, ni, nj);
    case 2: return transpose_items<Item2>(out, out_stride, in, in_stride, ni, nj);
    case 4: return transpose_items<Item4>(out, out_stride, in, in_stride, ni, nj);
    case 8: return transpose_items<Item8>(out, out_stride, in, in_stride, ni, nj);
    default: return transpose_items<Item16>(out, out_stride, in, in_stride, ni, nj);
  }
}

}  // namespace
}  // namespace tercel::TERCEL_ISA
