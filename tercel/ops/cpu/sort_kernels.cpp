// From elements to the integers that are sorted, and back.
#include "tercel/ops/sort_impl.h"

#include <cstring>

#include "tercel/ops/cpu/key_elements.h"
#include "tercel/ops/cpu/simd.h"

namespace tercel::TERCEL_ISA {

namespace {

constexpr int64_t kPrefetchAhead = 16;

// Floating numbers of one sign are in the order of their bits; negative ones in the reverse.
template <class T, class Bits>
int64_t float_key(T x) {
  const auto value = static_cast<ComputeType<T>>(x);
  Bits bits;
  std::memcpy(&bits, &x, sizeof(Bits));
  constexpr int kSign = static_cast<int>(sizeof(Bits)) * 8 - 1;
  constexpr Bits kMagnitude = static_cast<Bits>(~(Bits{1} << kSign));
  const Bits key = static_cast<Bits>(bits ^ ((bits >> kSign) & kMagnitude));
  return value != value ? int64_t{kMagnitude} : (value == 0 ? 0 : int64_t{key});
}

template <class T>
int64_t key_of(T x) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<int64_t>(x);
  else if constexpr (sizeof(T) == 8)
    return float_key<T, int64_t>(x);
  else if constexpr (sizeof(T) == 4)
    return float_key<T, int32_t>(x);
  else
    return float_key<T, int16_t>(x);
}

template <class T>
void keys_of(const void* in, int64_t n, int64_t* keys) {
  const auto* x = static_cast<const T*>(in);
  for (int64_t i = 0; i < n; ++i) keys[i] = key_of(x[i]);
}

template <class Fn>
void visit_elements(ScalarType t, Fn fn) {
  switch (t) {
    case ScalarType::Float32: return fn.template operator()<float>();
    case ScalarType::Float64: return fn.template operator()<double>();
    case ScalarType::Float16: return fn.template operator()<Half>();
    case ScalarType::BFloat16: return fn.template operator()<BFloat16>();
    case ScalarType::Int64: return fn.template operator()<int64_t>();
    case ScalarType::Int32: return fn.template operator()<int32_t>();
    case ScalarType::Int16: return fn.template operator()<int16_t>();
    case ScalarType::Int8: return fn.template operator()<int8_t>();
    case ScalarType::UInt8: return fn.template operator()<uint8_t>();
    case ScalarType::Bool: return fn.template operator()<bool>();
    case ScalarType::Undefined: break;
  }
}

template <class T, class Source>
void write_result(const SortResult& result, const Source& source, int64_t begin, int64_t end) {
  const auto* in = static_cast<const T*>(result.in);
  auto* values = static_cast<T*>(result.values);
  if (result.indices)
    for (int64_t i = begin; i < end; ++i) result.indices[i] = source.position(i);
  if (!values) return;
  if constexpr (std::is_integral_v<T>) {
    for (int64_t i = begin; i < end; ++i) values[i] = static_cast<T>(original_key(result.sorted, source.key(i)));
  } else {
    // Keys have lost the sign of zero and what is in a NaN.
    for (int64_t i = begin; i < end; ++i) {
      if (i + kPrefetchAhead < end) __builtin_prefetch(in + source.position(i + kPrefetchAhead));
      values[i] = in[source.position(i)];
    }
  }
}

template <class T, class Source>
void write_unique(const UniqueResult& result, const Source& source, int64_t begin, int64_t end, int64_t segment) {
  const int64_t n = result.sorted.n;
  auto* values = static_cast<T*>(result.values);
  int64_t i = begin;
  while (i > 0 && i < end && source.key(i) == source.key(i - 1)) ++i;
  while (i < end) {
    const uint64_t key = source.key(i);
    values[segment] = static_cast<T>(original_key(result.sorted, key));
    if (result.starts) result.starts[segment] = i;
    for (; i < n && source.key(i) == key; ++i)
      if (result.inverse) result.inverse[source.position(i)] = segment;
    ++segment;
  }
}

}  // namespace

void sort_keys(ScalarType dtype, const void* in, int64_t n, int64_t* keys) {
  visit_elements(dtype, [&]<class T>() { keys_of<T>(in, n, keys); });
}

void sort_result(const SortResult& result, int64_t begin, int64_t end) {
  visit_sorted(result.sorted, [&](const auto& source) {
    visit_elements(result.dtype, [&]<class T>() { write_result<T>(result, source, begin, end); });
  });
}

void unique_result(const UniqueResult& result, int64_t begin, int64_t end, int64_t first) {
  visit_sorted(result.sorted, [&](const auto& source) {
    visit_elements(result.dtype, [&]<class T>() {
      if constexpr (std::is_integral_v<T>) write_unique<T>(result, source, begin, end, first);
    });
  });
}

}  // namespace tercel::TERCEL_ISA
