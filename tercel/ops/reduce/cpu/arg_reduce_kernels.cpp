// Maximum or minimum along a dimension, and the index of its first occurrence.
//
//   rows:     for each tile of the row:  b = best of tile;  if b is better than best: best = b, where = the tile
//             then search for it in that tile
//   short:    rows in the lanes of vectors, then as columns
//   columns:  for each row r:  for each column c:  if x[r][c] is better than best[c]: best[c] = x[r][c], where[c] = r
#include "tercel/ops/common/cpu/transpose_to_lanes.h"
#include "tercel/ops/reduce/cpu/reduce_vec.h"
#include "tercel/util/ceil_div.h"

namespace tercel::TERCEL_ISA {

namespace {

// Elements of a row searched at a time; rows that need conversion are read in tiles of a RowReader.
constexpr int64_t kTile = 4096;

template <class Op, class T>
T best_of(const T* x, int64_t n) {
  using V = AnyVec<T>;
  constexpr int64_t kSize = V::kSize;
  V best[4] = {V(x[0]), V(x[0]), V(x[0]), V(x[0])};
  int64_t i = 0;
  for (; i + 4 * kSize <= n; i += 4 * kSize)
    for (int64_t k = 0; k < 4; ++k) best[k] = Op::combine(best[k], V::load(x + i + k * kSize));
  for (; i + kSize <= n; i += kSize) best[0] = Op::combine(best[0], V::load(x + i));
  if (i < n) {
    T rest[kSize];
    for (int64_t k = 0; k < kSize; ++k) rest[k] = x[k < n - i ? i + k : 0];
    best[1] = Op::combine(best[1], V::load(rest));
  }
  return combine_lanes<Op, T>(Op::combine(Op::combine(best[0], best[1]), Op::combine(best[2], best[3])));
}

template <class T>
bool is_nan(T x) {
  return x != x;
}

template <class T>
int64_t find_first(const T* x, int64_t n, T value) {
  using V = AnyVec<T>;
  int64_t i = 0;
  if constexpr (std::is_floating_point_v<T>) {
    const V wanted(value);
    const auto found = [&](V here) { return is_nan(value) ? any(here != here) : any(here == wanted); };
    while (i + V::kSize <= n && !found(V::load(x + i))) i += V::kSize;
  }
  if (is_nan(value))
    while (!is_nan(x[i])) ++i;
  else
    while (x[i] != value) ++i;
  return i;
}

// Rows shorter than this are searched in parallel lanes.
constexpr int64_t kShortRow = 64;

/** Rows [begin, end) at equal distances, at least as many as there are lanes. */
template <class Op, class T>
void short_rows(const ArgReduceLoop& loop, int64_t begin, int64_t end) {
  using V = AnyVec<T>;
  constexpr int64_t kWidth = V::kSize;
  alignas(64) T columns[kShortRow * kWidth], best[kWidth], where_best[kWidth];
  for (int64_t next = begin; next < end; next += kWidth) {
    // The last vector overlaps the one before.
    const int64_t row = next + kWidth <= end ? next : end - kWidth;
    transpose_to_lanes(loop.in + row * loop.kept_strides[0], loop.kept_strides[0], loop.size, columns);
    V value = V::load(columns), at(0);
    for (int64_t i = 1; i < loop.size; ++i) {
      const V x = V::load(columns + i * kWidth);
      const auto better = Op::better(x, value);
      value = where(better, x, value);
      at = where(better, V(static_cast<T>(i)), at);
    }
    value.store(best);
    at.store(where_best);
    for (int64_t i = 0; i < kWidth; ++i) {
      const int64_t out = (row + i) * loop.out_strides[0];
      if (loop.values) reinterpret_cast<T*>(loop.values)[out] = best[i];
      loop.indices[out] = static_cast<int64_t>(where_best[i]);
    }
  }
}

template <class Op, class T>
void rows(const ArgReduceLoop& loop, int64_t begin, int64_t end) {
  const RowReader<T> reader(loop.dtype, loop.compute);
  const bool direct = reader.direct(loop.stride);
  if (direct && loop.num_kept == 1 && loop.size <= kShortRow && end - begin >= AnyVec<T>::kSize)
    return short_rows<Op, T>(loop, begin, end);
  const int64_t step = direct ? kTile : RowReader<T>::kMax;
  Odometer kept(loop.num_kept, loop.kept_sizes, begin);
  alignas(64) T memory[RowReader<T>::kMax];
  for (int64_t o = begin; o < end; ++o, kept.advance()) {
    const char* in = loop.in + kept.offset(loop.kept_strides);
    const auto tile = [&](int64_t first, int64_t n) {
      if (direct) return reinterpret_cast<const T*>(in) + first;
      reader.read(memory, in + first * loop.stride, loop.stride, n);
      return static_cast<const T*>(memory);
    };
    const auto size_from = [&](int64_t first) { return loop.size - first < step ? loop.size - first : step; };
    T best{};
    int64_t where = 0;
    for (int64_t first = 0; first < loop.size; first += step) {
      const T here = best_of<Op>(tile(first, size_from(first)), size_from(first));
      if (first == 0 || Op::better(here, best)) {
        best = here;
        where = first;
      }
    }
    where += find_first(tile(where, size_from(where)), size_from(where), best);
    const int64_t out = kept.offset(loop.out_strides);
    if (loop.values) reinterpret_cast<T*>(loop.values)[out] = best;
    loop.indices[out] = where;
  }
}

template <class Op, class T>
void columns(const ArgReduceLoop& loop, int64_t begin, int64_t end) {
  using V = AnyVec<T>;
  constexpr int64_t kWidth = RowReader<T>::kMax, kSize = V::kSize;
  // Row indices are stored as T, relative to the start of a block within which all of them are exact.
  constexpr int64_t kBlock = 1 << 20;
  const RowReader<T> reader(loop.dtype, loop.compute);
  const int64_t columns = loop.kept_sizes[0], column_stride = loop.kept_strides[0];
  const int64_t strips = ceil_div(columns, kWidth);
  alignas(64) T tile[kWidth + kSize];
  alignas(64) T best[kWidth + kSize];
  alignas(64) T where_best[kWidth + kSize];
  int64_t indices[kWidth];
  for (int64_t task = begin; task < end; ++task) {
    const int64_t first = task % strips * kWidth;
    const int64_t width = columns - first < kWidth ? columns - first : kWidth;
    const Odometer kept(loop.num_kept - 1, loop.kept_sizes + 1, task / strips);
    const char* in = loop.in + kept.offset(loop.kept_strides + 1) + first * column_stride;
    const int64_t vectors = ceil_div(width, kSize);
    // A partial last vector is read from the tile, to avoid reading beyond the end of the row.
    const bool direct = reader.direct(column_stride) && width % kSize == 0;
    for (int64_t i = width; i < vectors * kSize; ++i) tile[i] = T(0);
    for (int64_t start = 0; start < loop.size; start += kBlock) {
      const int64_t stop = loop.size - start < kBlock ? loop.size : start + kBlock;
      for (int64_t v = 0; v < vectors; ++v) V(-1).store(where_best + v * kSize);
      for (int64_t row = start; row < stop; ++row) {
        const char* from = in + row * loop.stride;
        const T* x = reinterpret_cast<const T*>(from);
        if (!direct) {
          reader.read(tile, from, column_stride, width);
          x = tile;
        }
        if (row == 0) {
          std::memcpy(best, x, static_cast<size_t>(vectors * kSize) * sizeof(T));
          for (int64_t v = 0; v < vectors; ++v) V(0).store(where_best + v * kSize);
          continue;
        }
        const V number(static_cast<T>(row - start));
        for (int64_t v = 0; v < vectors * kSize; v += kSize) {
          const V value = V::load(x + v), before = V::load(best + v);
          const auto better = Op::better(value, before);
          where(better, value, before).store(best + v);
          where(better, number, V::load(where_best + v)).store(where_best + v);
        }
      }
      for (int64_t c = 0; c < width; ++c)
        if (where_best[c] != static_cast<T>(-1)) indices[c] = start + static_cast<int64_t>(where_best[c]);
    }
    const int64_t out = kept.offset(loop.out_strides + 1) + first * loop.out_strides[0];
    for (int64_t c = 0; c < width; ++c) {
      if (loop.values) reinterpret_cast<T*>(loop.values)[out + c * loop.out_strides[0]] = best[c];
      loop.indices[out + c * loop.out_strides[0]] = indices[c];
    }
  }
}

template <template <class, class> class Run>
void dispatch(const ArgReduceLoop& loop, int64_t begin, int64_t end) {
  visit_real_compute(loop.compute, [&]<class T>() {
    if (loop.op == index_of<op::Max, ArgReduceOps>)
      Run<op::Max, T>::run(loop, begin, end);
    else
      Run<op::Min, T>::run(loop, begin, end);
  });
}

template <class Op, class T>
struct Rows {
  static void run(const ArgReduceLoop& loop, int64_t begin, int64_t end) { rows<Op, T>(loop, begin, end); }
};
template <class Op, class T>
struct Columns {
  static void run(const ArgReduceLoop& loop, int64_t begin, int64_t end) { columns<Op, T>(loop, begin, end); }
};

}  // namespace

void arg_reduce_rows(const ArgReduceLoop& loop, int64_t begin, int64_t end) { dispatch<Rows>(loop, begin, end); }

void arg_reduce_columns(const ArgReduceLoop& loop, int64_t begin, int64_t end) { dispatch<Columns>(loop, begin, end); }

}  // namespace tercel::TERCEL_ISA
