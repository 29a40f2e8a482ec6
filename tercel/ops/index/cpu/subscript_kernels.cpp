// Copies blocks at offsets.
//
//   for b in before, i in n, a in after:
//     index_get:  other[b, i, a] = (indexed[b] + offset[i])[a]
//     index_put:  (indexed[b] + offset[i])[a] = other[b, i, a]
//     index_add:  (indexed[b] + offset[i])[a] += other[b, i, a]
#include "tercel/ops/index/subscript_kernels.h"

#include <cstring>

#include "tercel/core/load_element.h"
#include "tercel/ops/common/cpu/wrapping.h"

namespace tercel::TERCEL_ISA {

namespace {

constexpr int64_t kPrefetchAhead = 8;
constexpr int64_t kMaxPrefetchBytes = 512;

/** Calls row(indexed, other) for the start of each innermost row of a block. */
template <class Row>
void for_each_row(const IndexLoop& loop, int dim, char* indexed, char* other, const Row& row) {
  if (dim >= loop.before + loop.after - 1) return row(indexed, other);
  for (int64_t k = 0; k < loop.sizes[dim]; ++k)
    for_each_row(loop, dim + 1, indexed + k * loop.indexed_strides[dim], other + k * loop.other_strides[dim], row);
}

/** Calls run(indexed, other, count, indexed stride, other stride) for rows of elements of blocks. */
template <class Run>
void for_each_run(const IndexLoop& loop, int64_t begin, int64_t end, const Run& run) {
  const int last = loop.before + loop.after - 1;
  const int64_t count = loop.after > 0 ? loop.sizes[last] : 1;
  const int64_t indexed_step = loop.after > 0 ? loop.indexed_strides[last] : 0;
  const int64_t other_step = loop.after > 0 ? loop.other_strides[last] : 0;
  int64_t fetch =
      loop.after > 0 && indexed_step == static_cast<int64_t>(item_size(loop.dtype)) ? count * indexed_step : 1;
  if (fetch > kMaxPrefetchBytes) fetch = kMaxPrefetchBytes;
  for (int64_t at = begin; at < end;) {
    int64_t b = at / loop.n;
    const int64_t first = at - b * loop.n, stop = first + (end - at) < loop.n ? first + (end - at) : loop.n;
    at += stop - first;
    char* indexed = loop.indexed;
    char* other = loop.other;
    for (int d = loop.before - 1; d >= 0; --d) {
      const int64_t k = b % loop.sizes[d];
      b /= loop.sizes[d];
      indexed += k * loop.indexed_strides[d];
      other += k * loop.other_strides[d];
    }
    for (int64_t i = first; i < stop; ++i) {
      if (i + kPrefetchAhead < stop)
        for (int64_t byte = 0; byte < fetch; byte += 64)
          __builtin_prefetch(indexed + loop.offset[i + kPrefetchAhead] + byte);
      char* to = other + i * loop.other_stride;
      if (loop.after <= 1)
        run(indexed + loop.offset[i], to, count, indexed_step, other_step);
      else
        for_each_row(loop, loop.before, indexed + loop.offset[i], to,
                     [&](char* x, char* y) { run(x, y, count, indexed_step, other_step); });
    }
  }
}

template <size_t kItem>
void copy_run(char* to, const char* from, int64_t count, int64_t to_step, int64_t from_step) {
  constexpr int64_t item = static_cast<int64_t>(kItem);
  if (count == 1) {
    std::memcpy(to, from, kItem);
  } else if (to_step == item && from_step == item) {
    std::memcpy(to, from, static_cast<size_t>(count) * kItem);
  } else {
    for (int64_t k = 0; k < count; ++k) std::memcpy(to + k * to_step, from + k * from_step, kItem);
  }
}

template <size_t kItem>
void get(const IndexLoop& loop, int64_t begin, int64_t end) {
  for_each_run(loop, begin, end, [](const char* x, char* y, int64_t count, int64_t x_step, int64_t y_step) {
    copy_run<kItem>(y, x, count, y_step, x_step);
  });
}

template <size_t kItem>
void put(const IndexLoop& loop, int64_t begin, int64_t end) {
  for_each_run(loop, begin, end, [](char* x, const char* y, int64_t count, int64_t x_step, int64_t y_step) {
    copy_run<kItem>(x, y, count, x_step, y_step);
  });
}

template <class T>
void add(const IndexLoop& loop, int64_t begin, int64_t end) {
  for_each_run(loop, begin, end, [](char* x, const char* y, int64_t count, int64_t x_step, int64_t y_step) {
    constexpr int64_t item = sizeof(T);
    if (x_step == item && y_step == item) {
      auto* to = reinterpret_cast<T*>(x);
      const auto* from = reinterpret_cast<const T*>(y);
#pragma GCC ivdep
      for (int64_t k = 0; k < count; ++k) to[k] = plus(load_element(to + k), load_element(from + k));
    } else {
      for (int64_t k = 0; k < count; ++k) {
        auto& to = *reinterpret_cast<T*>(x + k * x_step);
        to = plus(load_element(&to), load_element(reinterpret_cast<const T*>(y + k * y_step)));
      }
    }
  });
}

}  // namespace

void index_get(const IndexLoop& loop, int64_t begin, int64_t end) {
  switch (item_size(loop.dtype)) {
    case 1: return get<1>(loop, begin, end);
    case 2: return get<2>(loop, begin, end);
    case 4: return get<4>(loop, begin, end);
    case 8: return get<8>(loop, begin, end);
    default: return get<16>(loop, begin, end);
  }
}

void index_put(const IndexLoop& loop, int64_t begin, int64_t end) {
  switch (item_size(loop.dtype)) {
    case 1: return put<1>(loop, begin, end);
    case 2: return put<2>(loop, begin, end);
    case 4: return put<4>(loop, begin, end);
    case 8: return put<8>(loop, begin, end);
    default: return put<16>(loop, begin, end);
  }
}

void index_add(const IndexLoop& loop, int64_t begin, int64_t end) {
  switch (loop.dtype) {
    case ScalarType::Float32: return add<float>(loop, begin, end);
    case ScalarType::Float64: return add<double>(loop, begin, end);
    case ScalarType::Int64: return add<int64_t>(loop, begin, end);
    case ScalarType::Int32: return add<int32_t>(loop, begin, end);
    case ScalarType::Int16: return add<int16_t>(loop, begin, end);
    case ScalarType::Int8: return add<int8_t>(loop, begin, end);
    case ScalarType::UInt8: return add<uint8_t>(loop, begin, end);
    case ScalarType::Bool: return add<bool>(loop, begin, end);
    case ScalarType::Float16: return add<Half>(loop, begin, end);
    case ScalarType::BFloat16: return add<BFloat16>(loop, begin, end);
    case ScalarType::UInt16: return add<uint16_t>(loop, begin, end);
    case ScalarType::UInt32: return add<uint32_t>(loop, begin, end);
    case ScalarType::UInt64: return add<uint64_t>(loop, begin, end);
    case ScalarType::Complex64: return add<Complex<float>>(loop, begin, end);
    case ScalarType::Complex128: return add<Complex<double>>(loop, begin, end);
    case ScalarType::Undefined: break;
  }
}

}  // namespace tercel::TERCEL_ISA
