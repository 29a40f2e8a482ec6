// Sums over runs of equal keys.
//
//   for each run of equal keys that begins in [begin, end):
//     rows[s] = key;  sums[s, :] = sum over the run, in its order, of values[sources[position], :];  ++s
#include "tercel/ops/embedding/row_gradient_kernels.h"

#include "tercel/ops/common/cpu/simd.h"
#include "tercel/ops/sort/cpu/key_elements.h"

namespace tercel::TERCEL_ISA {

namespace {

constexpr int64_t kPrefetchAhead = 16;
constexpr int64_t kMaxPrefetchBytes = 256;

/** The value of each position. */
template <class T, bool kHasSources>
struct Rows {
  const T* values;
  int64_t stride;
  const int64_t* sources;

  TERCEL_ALWAYS_INLINE const T* operator[](int64_t position) const {
    return values + (kHasSources ? sources[position] : position) * stride;
  }
};

// Columns [column, column + N * lanes) of the sum of one run, in registers.
template <int N, class T, class Source, class Rows>
TERCEL_ALWAYS_INLINE void sum_columns(const Source& source, const Rows& rows, int64_t column, int64_t begin,
                                      int64_t end, T* out) {
  Simd<T> sum[N];
  const T* row = rows[source.position(begin)] + column;
  for (int v = 0; v < N; ++v) sum[v] = load(row + v * kLanes<T>);
  for (int64_t i = begin + 1; i < end; ++i) {
    row = rows[source.position(i)] + column;
    for (int v = 0; v < N; ++v) sum[v] += load(row + v * kLanes<T>);
  }
  for (int v = 0; v < N; ++v) store(out + column + v * kLanes<T>, sum[v]);
}

// A run of float or double values.
template <class T, class Source, class Rows>
TERCEL_ALWAYS_INLINE void sum_run(const Source& source, const Rows& rows, int64_t dim, int64_t begin, int64_t end,
                                  T* out) {
  int64_t column = 0;
  for (; column + 8 * kLanes<T> <= dim; column += 8 * kLanes<T>) sum_columns<8>(source, rows, column, begin, end, out);
  if (column + 4 * kLanes<T> <= dim) sum_columns<4>(source, rows, column, begin, end, out), column += 4 * kLanes<T>;
  if (column + 2 * kLanes<T> <= dim) sum_columns<2>(source, rows, column, begin, end, out), column += 2 * kLanes<T>;
  if (column + kLanes<T> <= dim) sum_columns<1>(source, rows, column, begin, end, out), column += kLanes<T>;
  for (; column < dim; ++column) {
    T sum = rows[source.position(begin)][column];
    for (int64_t i = begin + 1; i < end; ++i) sum += rows[source.position(i)][column];
    out[column] = sum;
  }
}

// A run of 16-bit values.
template <class T, class Source, class Rows>
requires(sizeof(T) == 2) void sum_run(const Source& source, const Rows& rows, int64_t dim, int64_t begin, int64_t end,
                                      T* out) {
  constexpr int64_t kColumns = 64;
  for (int64_t first = 0; first < dim; first += kColumns) {
    const int64_t columns = dim - first < kColumns ? dim - first : kColumns;
    float sum[kColumns] = {};
    for (int64_t i = begin; i < end; ++i) {
      const T* row = rows[source.position(i)] + first;
      for (int64_t c = 0; c < columns; ++c) sum[c] += static_cast<float>(row[c]);
    }
    for (int64_t c = 0; c < columns; ++c) out[first + c] = T(sum[c]);
  }
}

template <class Source>
bool begins_segment(const Source& source, int64_t i) {
  return i == 0 || source.key(i) != source.key(i - 1);
}

template <class T, bool kHasSources, class Source>
void sum_segments_of(const SegmentSum& sum, const Source& source, int64_t begin, int64_t end, int64_t segment) {
  const int64_t dim = sum.dim, n = sum.sorted.n;
  // Rows without columns may be at a null pointer.
  const Rows<T, kHasSources> rows{static_cast<const T*>(sum.values), dim == 0 ? 0 : sum.value_stride, sum.sources};
  const int64_t row_bytes = dim * static_cast<int64_t>(sizeof(T));
  const int64_t prefetch_bytes = row_bytes < kMaxPrefetchBytes ? row_bytes : kMaxPrefetchBytes;
  auto* out = static_cast<T*>(sum.sums) + segment * dim;
  int64_t prefetched = begin;
  int64_t i = begin;
  while (i < end && !begins_segment(source, i)) ++i;
  while (i < end) {
    const uint64_t key = source.key(i);
    int64_t next = i + 1;
    while (next < n && source.key(next) == key) ++next;
    const int64_t ahead = next + kPrefetchAhead < n ? next + kPrefetchAhead : n;
    for (; prefetched < ahead; ++prefetched) {
      const auto* row = reinterpret_cast<const char*>(rows[source.position(prefetched)]);
      for (int64_t byte = 0; byte < prefetch_bytes; byte += 64) __builtin_prefetch(row + byte);
    }
    sum.rows[segment++] = original_key(sum.sorted, key);
    sum_run(source, rows, dim, i, next, out);
    out += dim;
    i = next;
  }
}

}  // namespace

int64_t count_segments(const SortedKeys& sorted, int64_t begin, int64_t end) {
  return visit_sorted(sorted, [&](const auto& source) {
    int64_t count = begin == 0 && end > 0;
    for (int64_t i = begin == 0 ? 1 : begin; i < end; ++i) count += source.key(i) != source.key(i - 1);
    return count;
  });
}

void sum_segments(const SegmentSum& sum, int64_t begin, int64_t end, int64_t first) {
  visit_sorted(sum.sorted, [&](const auto& source) {
    visit_floating(sum.dtype, [&]<class T>() {
      if (sum.sources)
        sum_segments_of<T, true>(sum, source, begin, end, first);
      else
        sum_segments_of<T, false>(sum, source, begin, end, first);
    });
  });
}

}  // namespace tercel::TERCEL_ISA
