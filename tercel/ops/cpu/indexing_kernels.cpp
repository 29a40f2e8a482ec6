// Reading and writing through indices.
//
//   index_select:  for slice (o, k):  out[o, k, :] = in[o, index[k], :]
//   gather:        for line, i:       other[line, i] = indexed[line, index[line, i]]
//   scatter_add:   for line, i:       indexed[line, index[line, i]] += other[line, i]
//
// Lines that lie side by side are walked together, so that memory is read in order when the indexed dimension is an
// outer one.
#include "tercel/ops/indexing_impl.h"

#include <cstring>

#include "tercel/core/convert.h"
#include "tercel/ops/cpu/simd.h"

namespace tercel::TERCEL_ISA {

namespace {

constexpr int64_t kPrefetchAhead = 8;
constexpr int64_t kMaxPrefetchBytes = 512;
constexpr int64_t kColumns = 256;

template <class T>
T read_as(const char* p) {
  T value;
  std::memcpy(&value, p, sizeof(T));
  return value;
}

template <class I>
int64_t select_slices(const SelectLoop& loop, int64_t begin, int64_t end) {
  const auto* index = static_cast<const I*>(loop.index);
  const int64_t fetch = loop.run < kMaxPrefetchBytes ? loop.run : kMaxPrefetchBytes;
  for (int64_t slice = begin; slice < end; ++slice) {
    const int64_t outer = slice / loop.n, k = slice % loop.n;
    const char* in = loop.in + outer * loop.outer_stride;
    if (k + kPrefetchAhead < loop.n) {
      const uintptr_t next = reinterpret_cast<uintptr_t>(in) +
                             static_cast<uintptr_t>(index[k + kPrefetchAhead]) * static_cast<uintptr_t>(loop.stride);
      for (int64_t byte = 0; byte < fetch; byte += 64)
        __builtin_prefetch(reinterpret_cast<const void*>(next + static_cast<uintptr_t>(byte)));
    }
    const int64_t i = static_cast<int64_t>(index[k]);
    if (static_cast<uint64_t>(i) >= static_cast<uint64_t>(loop.size)) [[unlikely]]
      return k;
    const char* from = in + i * loop.stride;
    char* to = loop.out + slice * loop.run;
    switch (loop.run) {
      case 1: *to = *from; break;
      case 2: std::memcpy(to, from, 2); break;
      case 4: std::memcpy(to, from, 4); break;
      case 8: std::memcpy(to, from, 8); break;
      default: std::memcpy(to, from, static_cast<size_t>(loop.run));
    }
  }
  return -1;
}

// Calls visit(indexed, index, other, columns) for runs of lines that lie side by side; columns share all but the last
// dimension. Stops when it returns false.
template <class Visit>
bool for_each_run(const GatherLoop& loop, int64_t begin, int64_t end, Visit visit) {
  const int last = loop.ndim - 1;
  int64_t line = begin;
  while (line < end) {
    int64_t rest = line, columns = 1;
    int64_t indexed = 0, index = 0, other = 0;
    for (int d = last; d >= 0; --d) {
      const int64_t at = rest % loop.sizes[d];
      rest /= loop.sizes[d];
      if (d == last) columns = loop.sizes[d] - at;
      indexed += at * loop.indexed_strides[d];
      index += at * loop.index_strides[d];
      other += at * loop.other_strides[d];
    }
    if (columns > end - line) columns = end - line;
    if (columns > kColumns) columns = kColumns;
    if (!visit(loop.indexed + indexed, loop.index + index, loop.other + other, columns)) return false;
    line += columns;
  }
  return true;
}

template <class I, class Element>
bool walk(const GatherLoop& loop, int64_t begin, int64_t end, Element element) {
  const int last = loop.ndim - 1;
  const int64_t indexed_step = loop.ndim > 0 ? loop.indexed_strides[last] : 0;
  const int64_t index_step = loop.ndim > 0 ? loop.index_strides[last] : 0;
  const int64_t other_step = loop.ndim > 0 ? loop.other_strides[last] : 0;
  return for_each_run(loop, begin, end, [&](char* indexed, const char* index, char* other, int64_t columns) {
    for (int64_t i = 0; i < loop.n; ++i) {
      const char* index_row = index + i * loop.index_stride;
      char* other_row = other + i * loop.other_stride;
      for (int64_t c = 0; c < columns; ++c) {
        const int64_t at = static_cast<int64_t>(read_as<I>(index_row + c * index_step));
        if (static_cast<uint64_t>(at) >= static_cast<uint64_t>(loop.size)) [[unlikely]]
          return false;
        element(indexed + c * indexed_step + at * loop.indexed_stride, other_row + c * other_step);
      }
    }
    return true;
  });
}

template <class I, class Item>
bool gather_items(const GatherLoop& loop, int64_t begin, int64_t end) {
  return walk<I>(loop, begin, end, [](const char* indexed, char* other) { std::memcpy(other, indexed, sizeof(Item)); });
}

template <class I>
bool gather_lines(const GatherLoop& loop, int64_t begin, int64_t end) {
  switch (item_size(loop.dtype)) {
    case 1: return gather_items<I, uint8_t>(loop, begin, end);
    case 2: return gather_items<I, uint16_t>(loop, begin, end);
    case 4: return gather_items<I, uint32_t>(loop, begin, end);
    default: return gather_items<I, uint64_t>(loop, begin, end);
  }
}

// Integers wrap, bool is or.
template <class T>
T add(T a, T b) {
  if constexpr (std::is_same_v<T, bool>)
    return a || b;
  else if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) + static_cast<std::make_unsigned_t<T>>(b));
  else
    return T(static_cast<ComputeType<T>>(a) + static_cast<ComputeType<T>>(b));
}

template <class I, class T>
bool add_items(const GatherLoop& loop, int64_t begin, int64_t end) {
  return walk<I>(loop, begin, end, [](char* indexed, const char* other) {
    const T sum = add(read_as<T>(indexed), read_as<T>(other));
    std::memcpy(indexed, &sum, sizeof(T));
  });
}

template <class I>
bool add_lines(const GatherLoop& loop, int64_t begin, int64_t end) {
  switch (loop.dtype) {
    case ScalarType::Float32: return add_items<I, float>(loop, begin, end);
    case ScalarType::Float64: return add_items<I, double>(loop, begin, end);
    case ScalarType::Int64: return add_items<I, int64_t>(loop, begin, end);
    case ScalarType::Int32: return add_items<I, int32_t>(loop, begin, end);
    case ScalarType::Int16: return add_items<I, int16_t>(loop, begin, end);
    case ScalarType::Int8: return add_items<I, int8_t>(loop, begin, end);
    case ScalarType::UInt8: return add_items<I, uint8_t>(loop, begin, end);
    case ScalarType::Bool: return add_items<I, bool>(loop, begin, end);
    case ScalarType::Float16: return add_items<I, Half>(loop, begin, end);
    case ScalarType::BFloat16: return add_items<I, BFloat16>(loop, begin, end);
    case ScalarType::Undefined: break;
  }
  return true;
}

}  // namespace

int64_t index_select(const SelectLoop& loop, int64_t begin, int64_t end) {
  return loop.wide ? select_slices<int64_t>(loop, begin, end) : select_slices<int32_t>(loop, begin, end);
}

bool gather(const GatherLoop& loop, int64_t begin, int64_t end) {
  return loop.wide ? gather_lines<int64_t>(loop, begin, end) : gather_lines<int32_t>(loop, begin, end);
}

bool scatter_add(const GatherLoop& loop, int64_t begin, int64_t end) {
  return loop.wide ? add_lines<int64_t>(loop, begin, end) : add_lines<int32_t>(loop, begin, end);
}

}  // namespace tercel::TERCEL_ISA
