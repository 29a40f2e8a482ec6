// Radix sort, one digit at a time.
//
//   count:    for e in source[begin, end): counts[digit(e)] += 1
//   scatter:  for e in source[begin, end): target[offsets[digit(e)]++] = e
#include <limits>

#include "tercel/ops/sort/cpu/key_elements.h"
#include "tercel/ops/sort/cpu/order_statistics.h"

namespace tercel::TERCEL_ISA {

namespace {

template <class Source>
void count_digits(const Source& source, const RadixPass& pass, int64_t begin, int64_t end, uint32_t* counts) {
  const uint64_t mask = (uint64_t{1} << pass.digit_bits) - 1;
  const int shift = pass.shift;
  // Adjacent elements often have the same digit: with two tables, an addition need not wait for the previous one.
  uint32_t odd[1 << kMaxDigitBits];
  __builtin_memset(odd, 0, (size_t{1} << pass.digit_bits) * sizeof(uint32_t));
  int64_t i = begin;
  for (; i + 1 < end; i += 2) {
    ++counts[(source.key(i) >> shift) & mask];
    ++odd[(source.key(i + 1) >> shift) & mask];
  }
  if (i < end) ++counts[(source.key(i) >> shift) & mask];
  for (uint64_t b = 0; b <= mask; ++b) counts[b] += odd[b];
}

template <class Source, class Element>
void scatter_digits(const Source& source, const RadixPass& pass, int64_t begin, int64_t end, uint32_t* offsets) {
  const uint64_t mask = (uint64_t{1} << pass.digit_bits) - 1;
  const int shift = pass.shift;
  auto* target = static_cast<Element*>(pass.target);
  for (int64_t i = begin; i < end; ++i)
    target[offsets[(source.key(i) >> shift) & mask]++] = source.template element<Element>(i);
}

// Writes keys as K, in the order of `source`.
template <class K, class Element>
void sort_few_of(const RawKeys& source, int64_t n, K turn, Element* elements) {
  alignas(64) K keys[kFewKeys + kKeySlack / static_cast<int64_t>(sizeof(K))];
  for (int64_t i = 0; i < n; ++i) keys[i] = static_cast<K>(source.key(i)) ^ turn;
  store(keys + n, Simd<K>{});
  for_each_place(keys, n, [&](int64_t i, int64_t place) { elements[place] = source.template element<Element>(i); });
}

template <class Fn>
void visit_source(const RadixPass& pass, Fn fn) {
  if (pass.raw)
    fn(RawKeys{static_cast<const int64_t*>(pass.source), pass.base, pass.position_bits, pass.descending});
  else if (pass.wide)
    fn(WideKeys{static_cast<const WideElement*>(pass.source)});
  else
    fn(PackedKeys{static_cast<const uint64_t*>(pass.source), pass.position_bits});
}

}  // namespace

KeyRange key_range(const int64_t* keys, int64_t n) {
  int64_t smallest = keys[0], largest = keys[0];
  for (int64_t i = 0; i < n; ++i) {
    smallest = keys[i] < smallest ? keys[i] : smallest;
    largest = keys[i] > largest ? keys[i] : largest;
  }
  return {smallest, largest};
}

void sort_few(const int64_t* keys, SortedKeys& sorted, void* memory) {
  const RawKeys source{keys, sorted.base, sorted.position_bits, sorted.descending};
  const int64_t n = sorted.n;
  uint64_t most = 0;
  for (int64_t i = 0; i < n; ++i) most |= source.key(i);
  sorted.elements = memory;
  if (sorted.wide)
    sort_few_of(source, n, std::numeric_limits<int64_t>::min(), static_cast<WideElement*>(memory));
  else if (most > INT32_MAX)
    sort_few_of(source, n, std::numeric_limits<int64_t>::min(), static_cast<uint64_t*>(memory));
  else
    sort_few_of(source, n, int32_t{0}, static_cast<uint64_t*>(memory));
}

void radix_count(const RadixPass& pass, int64_t begin, int64_t end, uint32_t* counts) {
  visit_source(pass, [&](const auto& source) { count_digits(source, pass, begin, end, counts); });
}

void radix_scatter(const RadixPass& pass, int64_t begin, int64_t end, uint32_t* offsets) {
  visit_source(pass, [&](const auto& source) {
    using Source = std::decay_t<decltype(source)>;
    if constexpr (!std::is_same_v<Source, PackedKeys>) {
      if (pass.wide) return scatter_digits<Source, WideElement>(source, pass, begin, end, offsets);
    }
    if constexpr (!std::is_same_v<Source, WideKeys>)
      scatter_digits<Source, uint64_t>(source, pass, begin, end, offsets);
  });
}

}  // namespace tercel::TERCEL_ISA
