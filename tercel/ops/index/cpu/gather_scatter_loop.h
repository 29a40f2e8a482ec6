// Iteration of gather and scatter over a GatherLoop: adjacent lines are processed together, so that memory is read in
// order if the indexed dimension is an outer one.
#pragma once

#include "tercel/core/load_element.h"
#include "tercel/ops/index/gather_kernels.h"

namespace tercel::TERCEL_ISA {
namespace {

constexpr int64_t kColumns = 256;

// Calls visit(indexed, index, other, columns) for runs of adjacent lines; a run's columns differ only in the last
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

/** Calls element(indexed, other) for all of the lines; an element has kItem bytes. */
template <class I, size_t kItem, class Element>
bool for_each_element(const GatherLoop& loop, int64_t begin, int64_t end, Element element) {
  const int last = loop.ndim - 1;
  const int64_t indexed_step = loop.ndim > 0 ? loop.indexed_strides[last] : 0;
  const int64_t index_step = loop.ndim > 0 ? loop.index_strides[last] : 0;
  const int64_t other_step = loop.ndim > 0 ? loop.other_strides[last] : 0;
  const int64_t size = loop.size, stride = loop.indexed_stride;
  const auto run = [&](char* indexed, const char* index, char* other, int64_t n, int64_t step, int64_t of_index,
                       int64_t of_other) {
    for (int64_t i = 0; i < n; ++i) {
      const int64_t at = static_cast<int64_t>(load_unaligned<I>(index + i * of_index));
      if (static_cast<uint64_t>(at) >= static_cast<uint64_t>(size)) [[unlikely]]
        return false;
      element(indexed + i * step + at * stride, other + i * of_other);
    }
    return true;
  };
  // Dense lines: strides that the compiler knows.
  constexpr int64_t kDense = static_cast<int64_t>(kItem), kOfIndex = static_cast<int64_t>(sizeof(I));
  const bool dense = stride == kDense && loop.other_stride == kDense && loop.index_stride == kOfIndex;
  const auto run_dense = [&](char* indexed, const char* index, char* other) {
    // Copies, which stores to elements cannot change.
    const int64_t n = loop.n, bound = loop.size;
    for (int64_t i = 0; i < n; ++i) {
      const int64_t at = static_cast<int64_t>(load_unaligned<I>(index + i * kOfIndex));
      if (static_cast<uint64_t>(at) >= static_cast<uint64_t>(bound)) [[unlikely]]
        return false;
      element(indexed + at * kDense, other + i * kDense);
    }
    return true;
  };
  // Line by line if the elements of a line are closer together than adjacent lines.
  const bool by_line = loop.index_stride < index_step;
  return for_each_run(loop, begin, end, [&](char* indexed, const char* index, char* other, int64_t columns) {
    if (by_line) {
      for (int64_t c = 0; c < columns; ++c) {
        char *to = indexed + c * indexed_step, *from = other + c * other_step;
        const char* of_line = index + c * index_step;
        if (!(dense ? run_dense(to, of_line, from)
                    : run(to, of_line, from, loop.n, 0, loop.index_stride, loop.other_stride)))
          return false;
      }
      return true;
    }
    for (int64_t i = 0; i < loop.n; ++i)
      if (!run(indexed, index + i * loop.index_stride, other + i * loop.other_stride, columns, indexed_step, index_step,
               other_step))
        return false;
    return true;
  });
}

}  // namespace
}  // namespace tercel::TERCEL_ISA
