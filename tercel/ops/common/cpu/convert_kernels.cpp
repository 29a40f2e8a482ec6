#include "tercel/core/convert.h"
#include "tercel/core/load_element.h"

#include "tercel/ops/common/cpu/tile_io.h"

namespace tercel::TERCEL_ISA {
namespace {

template <class From, class To>
void convert_row(void* out_data, const void* in_data, int64_t n) {
  auto* out = static_cast<To*>(out_data);
  const auto* in = static_cast<const From*>(in_data);
  if constexpr (std::is_same_v<From, bool> && std::is_floating_point_v<To>) {
    // Converts via a signed integer, for which there are vector conversions.
    const auto* bytes = reinterpret_cast<const uint8_t*>(in);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] = static_cast<To>(static_cast<int32_t>(bytes[i] != 0));
  } else {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] = convert<To>(load_element(in + i));
  }
}

#if TERCEL_ISA_LEVEL > 0
template <>
void convert_row<Half, float>(void* out_data, const void* in_data, int64_t n) {
  auto* out = static_cast<float*>(out_data);
  const auto* in = static_cast<const Half*>(in_data);
  int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i))));
  for (; i < n; ++i) out[i] = convert<float>(in[i]);
}
template <>
void convert_row<float, Half>(void* out_data, const void* in_data, int64_t n) {
  auto* out = static_cast<Half*>(out_data);
  const auto* in = static_cast<const float*>(in_data);
  int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT));
  for (; i < n; ++i) out[i] = convert<Half>(in[i]);
}
#endif

template <class To>
ConvertFn load_to(ScalarType from) {
  switch (from) {
    case ScalarType::UInt8: return &convert_row<uint8_t, To>;
    case ScalarType::Int8: return &convert_row<int8_t, To>;
    case ScalarType::Int16: return &convert_row<int16_t, To>;
    case ScalarType::Int32: return &convert_row<int32_t, To>;
    case ScalarType::Int64: return &convert_row<int64_t, To>;
    case ScalarType::Float16: return &convert_row<Half, To>;
    case ScalarType::Float32: return &convert_row<float, To>;
    case ScalarType::Float64: return &convert_row<double, To>;
    case ScalarType::Bool: return &convert_row<bool, To>;
    case ScalarType::BFloat16: return &convert_row<BFloat16, To>;
    case ScalarType::UInt16: return &convert_row<uint16_t, To>;
    case ScalarType::UInt32: return &convert_row<uint32_t, To>;
    case ScalarType::UInt64: return &convert_row<uint64_t, To>;
    case ScalarType::Complex64: return &convert_row<Complex<float>, To>;
    case ScalarType::Complex128: return &convert_row<Complex<double>, To>;
    case ScalarType::Undefined: break;
  }
  return nullptr;
}

template <class From>
ConvertFn store_from(ScalarType to) {
  switch (to) {
    case ScalarType::UInt8: return &convert_row<From, uint8_t>;
    case ScalarType::Int8: return &convert_row<From, int8_t>;
    case ScalarType::Int16: return &convert_row<From, int16_t>;
    case ScalarType::Int32: return &convert_row<From, int32_t>;
    case ScalarType::Int64: return &convert_row<From, int64_t>;
    case ScalarType::Float16: return &convert_row<From, Half>;
    case ScalarType::Float32: return &convert_row<From, float>;
    case ScalarType::Float64: return &convert_row<From, double>;
    case ScalarType::Bool: return &convert_row<From, bool>;
    case ScalarType::BFloat16: return &convert_row<From, BFloat16>;
    case ScalarType::UInt16: return &convert_row<From, uint16_t>;
    case ScalarType::UInt32: return &convert_row<From, uint32_t>;
    case ScalarType::UInt64: return &convert_row<From, uint64_t>;
    case ScalarType::Complex64: return &convert_row<From, Complex<float>>;
    case ScalarType::Complex128: return &convert_row<From, Complex<double>>;
    case ScalarType::Undefined: break;
  }
  return nullptr;
}

}  // namespace

ConvertFn load_conversion(ScalarType from, Compute to) {
  switch (to) {
    case Compute::I32: return load_to<int32_t>(from);
    case Compute::I64: return load_to<int64_t>(from);
    case Compute::F32: return load_to<float>(from);
    case Compute::F64: return load_to<double>(from);
    case Compute::U64: return load_to<uint64_t>(from);
    case Compute::C64: return load_to<Complex<float>>(from);
    case Compute::C128: return load_to<Complex<double>>(from);
  }
  return nullptr;
}

ConvertFn store_conversion(Compute from, ScalarType to) {
  switch (from) {
    case Compute::I32: return store_from<int32_t>(to);
    case Compute::I64: return store_from<int64_t>(to);
    case Compute::F32: return store_from<float>(to);
    case Compute::F64: return store_from<double>(to);
    case Compute::U64: return store_from<uint64_t>(to);
    case Compute::C64: return store_from<Complex<float>>(to);
    case Compute::C128: return store_from<Complex<double>>(to);
  }
  return nullptr;
}

}  // namespace tercel::TERCEL_ISA
