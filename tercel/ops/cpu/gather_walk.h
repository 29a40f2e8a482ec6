// How gather and scatter walk over a GatherLoop: lines that lie side by side together, so that memory is read in order
// when the indexed dimension is an outer one.
#pragma once

#include "tercel/core/load_element.h"
#include "tercel/ops/indexing_impl.h"

namespace tercel::TERCEL_ISA {
namespace {

constexpr int64_t kColumns = 256;

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
        const int64_t at = static_cast<int64_t>(load_unaligned<I>(index_row + c * index_step));
        if (static_cast<uint64_t>(at) >= static_cast<uint64_t>(loop.size)) [[unlikely]]
          return false;
        element(indexed + c * indexed_step + at * loop.indexed_stride, other_row + c * other_step);
      }
    }
    return true;
  });
}

}  // namespace
}  // namespace tercel::TERCEL_ISA
