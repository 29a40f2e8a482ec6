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

// Turns the order of uint64 into that of int64.
constexpr uint64_t kTopBit = uint64_t{1} << 63;

template <class T>
int64_t key_of(T x) {
  if constexpr (std::is_same_v<T, uint64_t>)
    return static_cast<int64_t>(x ^ kTopBit);
  else if constexpr (std::is_integral_v<T>)
    return static_cast<int64_t>(x);
  else if constexpr (sizeof(T) == 8)
    return float_key<T, int64_t>(x);
  else if constexpr (sizeof(T) == 4)
    return float_key<T, int32_t>(x);
  else
    return float_key<T, int16_t>(x);
}

/** The integer that a key was made from. */
template <class T>
T from_key(int64_t key) {
  if constexpr (std::is_same_v<T, uint64_t>)
    return static_cast<uint64_t>(key) ^ kTopBit;
  else
    return static_cast<T>(key);
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
    case ScalarType::UInt16: return fn.template operator()<uint16_t>();
    case ScalarType::UInt32: return fn.template operator()<uint32_t>();
    case ScalarType::UInt64: return fn.template operator()<uint64_t>();
    case ScalarType::Bool: return fn.template operator()<bool>();
    case ScalarType::Complex64:
    case ScalarType::Complex128:  // refused by the ops
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
    for (int64_t i = begin; i < end; ++i) values[i] = from_key<T>(original_key(result.sorted, source.key(i)));
  } else {
    // Keys have lost the sign of zero and what is in a NaN.
    for (int64_t i = begin; i < end; ++i) {
      if (i + kPrefetchAhead < end) __builtin_prefetch(in + source.position(i + kPrefetchAhead));
      values[i] = in[source.position(i)];
    }
  }
}

// Whether element i, i > 0, is another one than i - 1.
template <class T, class Source>
bool begins_segment(const SortedKeys& sorted, const Source& source, int64_t i) {
  const uint64_t key = source.key(i);
  if (key != source.key(i - 1)) return true;
  if constexpr (std::is_integral_v<T>)
    return false;
  else
    return original_key(sorted, key) == nan_key(scalar_type_of<T>());
}

template <class T, class Source>
int64_t count_unique_of(const UniqueResult& result, const Source& source, int64_t begin, int64_t end) {
  int64_t count = begin == 0 && end > 0;
  for (int64_t i = begin == 0 ? 1 : begin; i < end; ++i) count += begins_segment<T>(result.sorted, source, i);
  return count;
}

template <class T, class Source>
void write_unique(const UniqueResult& result, const Source& source, int64_t begin, int64_t end, int64_t segment) {
  const int64_t n = result.sorted.n;
  auto* values = static_cast<T*>(result.values);
  int64_t i = begin;
  while (i > 0 && i < end && !begins_segment<T>(result.sorted, source, i)) ++i;
  while (i < end) {
    if constexpr (std::is_integral_v<T>)
      values[segment] = from_key<T>(original_key(result.sorted, source.key(i)));
    else
      values[segment] = static_cast<const T*>(result.in)[source.position(i)];
    if (result.starts) result.starts[segment] = i;
    do {
      if (result.inverse) result.inverse[source.position(i)] = segment;
      ++i;
    } while (i < n && !begins_segment<T>(result.sorted, source, i));
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

int64_t count_unique(const UniqueResult& result, int64_t begin, int64_t end) {
  int64_t count = 0;
  visit_sorted(result.sorted, [&](const auto& source) {
    visit_elements(result.dtype, [&]<class T>() { count = count_unique_of<T>(result, source, begin, end); });
  });
  return count;
}

void unique_result(const UniqueResult& result, int64_t begin, int64_t end, int64_t first) {
  visit_sorted(result.sorted, [&](const auto& source) {
    visit_elements(result.dtype, [&]<class T>() { write_unique<T>(result, source, begin, end, first); });
  });
}

}  // namespace tercel::TERCEL_ISA
