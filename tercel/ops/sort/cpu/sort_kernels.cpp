// Converts elements to integers for sorting, and back.
#include "tercel/ops/sort/sort_kernels.h"
#include "tercel/core/load_element.h"
#include "tercel/ops/sort/cpu/key_elements.h"
#include "tercel/ops/sort/cpu/order_keys.h"

namespace tercel::TERCEL_ISA {

namespace {

constexpr int64_t kPrefetchAhead = 16;

template <class T>
void keys_of(const void* in, int64_t n, int64_t* keys) {
  const auto* x = static_cast<const T*>(in);
  for (int64_t i = 0; i < n; ++i) keys[i] = order_key(load_element(x + i));
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
    // Elements are copied, since keys do not preserve the sign of zero or the payload of NaN.
    for (int64_t i = begin; i < end; ++i) {
      if (i + kPrefetchAhead < end) __builtin_prefetch(in + source.position(i + kPrefetchAhead));
      values[i] = in[source.position(i)];
    }
  }
}

// Whether element i, i > 0, differs from i - 1.
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
  visit_ordered(dtype, [&]<class T>() { keys_of<T>(in, n, keys); });
}

void sort_result(const SortResult& result, int64_t begin, int64_t end) {
  visit_sorted(result.sorted, [&](const auto& source) {
    visit_ordered(result.dtype, [&]<class T>() { write_result<T>(result, source, begin, end); });
  });
}

int64_t count_unique(const UniqueResult& result, int64_t begin, int64_t end) {
  int64_t count = 0;
  visit_sorted(result.sorted, [&](const auto& source) {
    visit_ordered(result.dtype, [&]<class T>() { count = count_unique_of<T>(result, source, begin, end); });
  });
  return count;
}

void unique_result(const UniqueResult& result, int64_t begin, int64_t end, int64_t first) {
  visit_sorted(result.sorted, [&](const auto& source) {
    visit_ordered(result.dtype, [&]<class T>() { write_unique<T>(result, source, begin, end, first); });
  });
}

}  // namespace tercel::TERCEL_ISA
