// Matrices by rows from entries in any order, and transposes.
#include <atomic>
#include <bit>
#include <cstring>

#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/index/gather.h"
#include "tercel/ops/sparse/csr_impl.h"
#include "tercel/ops/sparse/entry_sort_impl.h"
#include "tercel/ops/views/views.h"
#include "tercel/util/function_ref.h"

namespace tercel::sparse_ops {

namespace {

constexpr int64_t kGrain = 16384;
constexpr int64_t kMaxEntries = int64_t{1} << 32;

/** Bits of the numbers below `size`. */
int bits_below(int64_t size) {
  return size < 2 ? 0 : static_cast<int>(std::bit_width(static_cast<uint64_t>(size - 1)));
}

/** The type in which values of T are added. */
template <class T>
using SumType = std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>, float, T>;

template <class T>
T sum_of(T a, T b) {
  if constexpr (std::is_same_v<T, bool>)
    return a || b;
  else if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));  // wraps
  else
    return a + b;
}

/** Values as payloads: a position, or the bits of a value. */
template <class Payload, bool Position>
struct EntrySource {
  const int64_t *rows, *columns;
  int64_t row_step, column_step;
  const Payload* values;
  int64_t n;
  int column_bits;

  int64_t units() const { return n; }
  int64_t grain() const { return kGrain; }
  template <class F>
  void visit(int64_t begin, int64_t end, F&& f) const {
    for (int64_t i = begin; i < end; ++i) {
      const auto row = static_cast<uint64_t>(rows[i * row_step]),
                 column = static_cast<uint64_t>(columns[i * column_step]);
      // Shifting by 64 is undefined; a matrix of so many columns has one row.
      const uint64_t key = (column_bits < 64 ? row << column_bits : 0) | column;
      if constexpr (Position)
        f(key, static_cast<Payload>(i));
      else
        f(key, values[i]);
    }
  }
};

/** How entries are: in range, and in ascending order of rows and columns without repetition. */
struct EntryOrder {
  bool inside = true, ascending = true;
  int64_t last_row = 0, last_column = 0;  ///< the largest
};
EntryOrder order_of(const int64_t* rows, int64_t row_step, const int64_t* columns, int64_t column_step, int64_t n,
                    int64_t num_rows, int64_t num_columns) {
  std::atomic<bool> inside{true}, ascending{true};
  std::atomic<int64_t> largest_row{0}, largest_column{0};
  const auto raise = [](std::atomic<int64_t>& largest, int64_t to) {
    int64_t seen = largest.load(std::memory_order_relaxed);
    while (seen < to && !largest.compare_exchange_weak(seen, to, std::memory_order_relaxed)) {
    }
  };
  parallel_for(0, n, kGrain, [&](int64_t begin, int64_t end) {
    bool outside = false, falls = false;
    int64_t most_row = 0, most_column = 0;
    int64_t last_row = begin == 0 ? -1 : rows[(begin - 1) * row_step],
            last_column = begin == 0 ? -1 : columns[(begin - 1) * column_step];
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = rows[i * row_step], column = columns[i * column_step];
      outside |= static_cast<uint64_t>(row) >= static_cast<uint64_t>(num_rows) ||
                 static_cast<uint64_t>(column) >= static_cast<uint64_t>(num_columns);
      falls |= row < last_row || (row == last_row && column <= last_column);
      most_row = std::max(most_row, row);
      most_column = std::max(most_column, column);
      last_row = row;
      last_column = column;
    }
    raise(largest_row, most_row);
    raise(largest_column, most_column);
    if (outside) inside.store(false, std::memory_order_relaxed);
    if (falls) ascending.store(false, std::memory_order_relaxed);
  });
  return {inside.load(), ascending.load(), largest_row.load(), largest_column.load()};
}

/** Sets the offsets of rows (last, row] to `entry`. */
template <class I>
void start_rows(I* offsets, int64_t last, int64_t row, int64_t entry) {
  for (int64_t r = last + 1; r <= row; ++r) offsets[r] = static_cast<I>(entry);
}

/** Offsets of n entries with ascending rows. */
template <class I>
void offsets_of_rows(const int64_t* rows, int64_t step, int64_t n, int64_t num_rows, I* offsets) {
  parallel_for(0, n, kGrain, [&](int64_t begin, int64_t end) {
    int64_t last = begin == 0 ? -1 : rows[(begin - 1) * step];
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = rows[i * step];
      if (row != last) start_rows(offsets, last, row, i);
      last = row;
    }
  });
  start_rows(offsets, n == 0 ? -1 : rows[(n - 1) * step], num_rows, n);
}

/** add(first, stop, position, out) writes the sums of the values of sorted entries, one for each key, from a position.
 */
template <class Key, class Payload>
using AddValues =
    FunctionRef<void(const Entry<Key, Payload>* first, const Entry<Key, Payload>* stop, int64_t at, const Tensor& out)>;

/** Calls f(first, stop) for each run of entries of one key. */
template <class E, class F>
void for_runs(const E* first, const E* stop, F&& f) {
  while (first != stop) {
    const E* next = first + 1;
    while (next != stop && next->key == first->key) ++next;
    f(first, next);
    first = next;
  }
}

/** Writes unique entries and the sums of their values. */
template <class I, class Key, class Payload>
CsrMatrix unique_entries(const EntryBuckets<Key, Payload>& sorted, int64_t num_rows, int64_t num_columns,
                         int column_bits, ScalarType index_dtype, const Tensor& like, AddValues<Key, Payload> add) {
  const int64_t buckets = sorted.buckets();
  const auto* entries = sorted.entries();
  const auto row_of = [column_bits](uint64_t key) {
    return column_bits < 64 ? static_cast<int64_t>(key >> column_bits) : 0;
  };
  const uint64_t column_mask = column_bits < 64 ? (uint64_t{1} << column_bits) - 1 : ~uint64_t{0};
  const int64_t grain = ceil_div(kGrain, std::max<int64_t>(1, like.size(0) / buckets));
  std::vector<int64_t> firsts(static_cast<size_t>(buckets));
  parallel_for(0, buckets, grain, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      int64_t unique = 0;
      for (int64_t i = sorted.begin(b); i < sorted.begin(b + 1); ++i)
        unique += i == sorted.begin(b) || entries[i].key != entries[i - 1].key ? 1 : 0;
      firsts[static_cast<size_t>(b)] = unique;
    }
  });
  int64_t nnz = 0;
  for (int64_t& first : firsts) nnz += std::exchange(first, nnz);

  DimVector sizes(like.sizes());
  sizes[0] = nnz;
  CsrMatrix out{empty({num_rows + 1}, index_dtype), empty({nnz}, index_dtype), empty(sizes, like.options()),
                num_columns};
  I *offsets = out.offsets.data<I>(), *columns = out.columns.data<I>();
  // The row of the last entry before each bucket.
  std::vector<int64_t> last_rows(static_cast<size_t>(buckets) + 1, -1);
  for (int64_t b = 0; b < buckets; ++b)
    last_rows[static_cast<size_t>(b) + 1] = sorted.begin(b) == sorted.begin(b + 1)
                                                ? last_rows[static_cast<size_t>(b)]
                                                : row_of(sorted.key(b, entries[sorted.begin(b + 1) - 1]));
  parallel_for(0, buckets, grain, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      int64_t at = firsts[static_cast<size_t>(b)], last = last_rows[static_cast<size_t>(b)];
      const auto *first = entries + sorted.begin(b), *stop = entries + sorted.begin(b + 1);
      // Values by themselves, while the bucket is in the cache: this function then depends on no dtype.
      add(first, stop, at, out.values);
      for_runs(first, stop, [&](const auto* run, const auto*) {
        const uint64_t key = sorted.key(b, *run);
        const int64_t row = row_of(key);
        if (row != last) start_rows(offsets, last, row, at);
        last = row;
        columns[at++] = static_cast<I>(key & column_mask);
      });
    }
  });
  start_rows(offsets, last_rows.back(), num_rows, nnz);
  return out;
}

/** Entries of a source in order, unique; compiled for each type of keys and payloads, not of values. */
template <class Key, class Payload, bool Position>
[[gnu::noinline]] CsrMatrix sorted_and_unique(const EntrySource<Payload, Position>& source, int bits, int64_t num_rows,
                                              int64_t num_columns, ScalarType index_dtype, const Tensor& values,
                                              AddValues<Key, Payload> add) {
  const auto sorted = sort_entries<Key, Payload>(source, source.n, 0, bits);
  return with_index(index_dtype, [&]<class I> {
    return unique_entries<I>(sorted, num_rows, num_columns, source.column_bits, index_dtype, values, add);
  });
}

/** The type as which values of T are added: signed integers wrap as unsigned ones do. */
template <class T>
struct Summand {
  using type = T;
};
template <class T>
requires(std::is_integral_v<T> && !std::is_same_v<T, bool>) struct Summand<T> {
  using type = std::make_unsigned_t<T>;
};

/** Adds values that are payloads. */
template <class T, class E>
void add_payloads(const E* first, const E* stop, int64_t at, const Tensor& out) {
  T* to = static_cast<T*>(out.data_ptr()) + at;
  for_runs(first, stop, [&](const E* run, const E* end) {
    T sum;
    std::memcpy(&sum, &run->payload, sizeof(T));
    for (++run; run != end; ++run) {
      T value;
      std::memcpy(&value, &run->payload, sizeof(T));
      sum = sum_of(sum, value);
    }
    *to++ = sum;
  });
}

/** Adds rows of values [n, row] at positions that are payloads. */
template <class T, class E>
void add_rows(const T* values, int64_t row, const E* first, const E* stop, int64_t at, const Tensor& out) {
  using Sum = SumType<T>;
  T* to = static_cast<T*>(out.data_ptr()) + at * row;
  for_runs(first, stop, [&](const E* run, const E* end) {
    for (int64_t k = 0; k < row; ++k) {
      const E* e = run;
      Sum sum = static_cast<Sum>(values[static_cast<int64_t>(e->payload) * row + k]);
      for (++e; e != end; ++e) sum = sum_of(sum, static_cast<Sum>(values[static_cast<int64_t>(e->payload) * row + k]));
      *to++ = static_cast<T>(sum);
    }
  });
}

}  // namespace

CsrMatrix csr_of_entries(const char* op, const Tensor& rows, const Tensor& columns, const Tensor& given,
                         int64_t num_rows, int64_t num_columns, ScalarType index_dtype) {
  const int64_t n = rows.numel();
  check_index_range(op, std::max({n, num_rows, num_columns}), index_dtype);
  const auto *row = static_cast<const int64_t*>(rows.data_ptr()),
             *column = static_cast<const int64_t*>(columns.data_ptr());
  const int64_t row_step = rows.stride(0), column_step = columns.stride(0);
  const EntryOrder order = order_of(row, row_step, column, column_step, n, num_rows, num_columns);
  TERCEL_CHECK(order.inside, IndexError, op, ": the tensor has indices outside of sizes [", num_rows, ", ", num_columns,
               "]");
  const Tensor values = contiguous(given);
  if (order.ascending) {
    CsrMatrix out{empty({num_rows + 1}, index_dtype), contiguous(to(columns, index_dtype)), values, num_columns};
    with_index(index_dtype, [&]<class I> { offsets_of_rows(row, row_step, n, num_rows, out.offsets.data<I>()); });
    return out;
  }
  TERCEL_CHECK(n < kMaxEntries, RuntimeError, op, ": expected fewer than 2^32 entries but got ", n);
  // Of the indices that occur, which may be far smaller than the sizes.
  const int column_bits = bits_below(order.last_column + 1), bits = column_bits + bits_below(order.last_row + 1);
  TERCEL_CHECK(bits <= 64, RuntimeError, op, ": sizes [", num_rows, ", ", num_columns, "] are too large to be sorted");
  const int64_t width = n == 0 ? 0 : values.numel() / n;
  return visit_all_types(op, values.dtype(), [&]<class Given>() -> CsrMatrix {
    using T = typename Summand<Given>::type;
    return with_key_type(n, 0, bits, [&]<class Key> {
      const auto finish = [&]<class Payload, bool Position>(auto&& add) {
        const EntrySource<Payload, Position> source{
            row, column, row_step, column_step, static_cast<const Payload*>(values.data_ptr()), n, column_bits};
        return sorted_and_unique<Key, Payload, Position>(source, bits, num_rows, num_columns, index_dtype, values, add);
      };
      if constexpr (sizeof(T) == 4 || sizeof(T) == 8) {
        using Payload = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
        if (width == 1) return finish.template operator()<Payload, false>(add_payloads<T, Entry<Key, Payload>>);
      }
      const T* from = static_cast<const T*>(values.data_ptr());
      return finish.template operator()<uint32_t, true>(
          [from, width](const auto* first, const auto* stop, int64_t at, const Tensor& out) {
            add_rows(from, width, first, stop, at, out);
          });
    });
  });
}

Tensor csr_rows(const CsrMatrix& given) {
  const CsrMatrix a = checked_csr("csr_rows", given);
  const Tensor out = empty({a.nnz()}, a.index_dtype());
  with_index(a.index_dtype(), [&]<class I> {
    const I* offsets = static_cast<const I*>(a.offsets.data_ptr());
    I* to = out.data<I>();
    parallel_for(0, a.num_rows(), kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r)
        std::fill(to + static_cast<int64_t>(offsets[r]), to + static_cast<int64_t>(offsets[r + 1]), static_cast<I>(r));
    });
  });
  return out;
}

namespace {

/** Entries of a matrix by rows as keys column << row_bits | row. */
template <class I, class Payload, bool Position>
struct TransposeSource {
  const I *offsets, *columns;
  const Payload* values;
  int64_t num_rows, nnz;
  int row_bits;

  int64_t units() const { return num_rows; }
  int64_t grain() const { return ceil_div(kGrain * num_rows, std::max<int64_t>(nnz + num_rows, 1)); }
  template <class F>
  void visit(int64_t begin, int64_t end, F&& f) const {
    for (int64_t r = begin; r < end; ++r)
      for (auto e = static_cast<int64_t>(offsets[r]); e < static_cast<int64_t>(offsets[r + 1]); ++e) {
        const uint64_t key =
            (row_bits < 64 ? static_cast<uint64_t>(columns[e]) << row_bits : 0) | static_cast<uint64_t>(r);
        if constexpr (Position)
          f(key, static_cast<Payload>(e));
        else
          f(key, values[e]);
      }
  }
};

/** The transpose; `move(payload, position)` takes the value. */
template <class I, class Key, class Payload, bool Position, class Move>
void transpose_entries(const CsrMatrix& a, const CsrMatrix& out, Move&& move) {
  const int row_bits = bits_below(a.num_rows()), bits = row_bits + bits_below(a.num_columns);
  const TransposeSource<I, Payload, Position> source{
      static_cast<const I*>(a.offsets.data_ptr()),
      static_cast<const I*>(a.columns.data_ptr()),
      Position ? nullptr : static_cast<const Payload*>(a.values.data_ptr()),
      a.num_rows(),
      a.nnz(),
      row_bits};
  const auto sorted = sort_entries<Key, Payload>(source, a.nnz(), row_bits, bits);
  const auto* entries = sorted.entries();
  const uint64_t row_mask = row_bits < 64 ? (uint64_t{1} << row_bits) - 1 : ~uint64_t{0};
  const auto column_of = [&](int64_t bucket, int64_t i) {
    return row_bits < 64 ? static_cast<int64_t>(sorted.key(bucket, entries[i]) >> row_bits) : 0;
  };
  const int64_t buckets = sorted.buckets();
  std::vector<int64_t> last_columns(static_cast<size_t>(buckets) + 1, -1);
  for (int64_t b = 0; b < buckets; ++b)
    last_columns[static_cast<size_t>(b) + 1] = sorted.begin(b) == sorted.begin(b + 1)
                                                   ? last_columns[static_cast<size_t>(b)]
                                                   : column_of(b, sorted.begin(b + 1) - 1);
  I *offsets = out.offsets.data<I>(), *rows = out.columns.data<I>();
  parallel_for(0, buckets, ceil_div(kGrain, std::max<int64_t>(1, a.nnz() / buckets)), [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      int64_t last = last_columns[static_cast<size_t>(b)];
      for (int64_t i = sorted.begin(b); i < sorted.begin(b + 1); ++i) {
        const int64_t column = column_of(b, i);
        if (column != last) start_rows(offsets, last, column, i);
        last = column;
        rows[i] = static_cast<I>(entries[i].key & row_mask);
        move(entries[i].payload, i);
      }
    }
  });
  start_rows(offsets, last_columns.back(), a.num_columns, a.nnz());
}

/** Values that are bits of this type move with their entries. */
template <class I, class Payload>
void transpose_with_values(const CsrMatrix& a, const CsrMatrix& out, int low, int high) {
  auto* to = static_cast<Payload*>(out.values.data_ptr());
  with_key_type(a.nnz(), low, high, [&]<class Key> {
    transpose_entries<I, Key, Payload, false>(a, out, [to](Payload value, int64_t at) { to[at] = value; });
  });
}

}  // namespace

CsrMatrix csr_transpose(const char* op, const CsrMatrix& given) {
  const CsrMatrix a = checked_csr(op, given);
  check_columns(op, a);
  TERCEL_CHECK(a.nnz() < kMaxEntries, RuntimeError, op, ": expected fewer than 2^32 entries but got ", a.nnz());
  check_index_range(op, std::max(a.nnz(), a.num_rows()), a.index_dtype());
  CsrMatrix out{empty({a.num_columns + 1}, a.index_dtype()), empty({a.nnz()}, a.index_dtype()), Tensor(), a.num_rows()};
  const int low = bits_below(a.num_rows()), high = low + bits_below(a.num_columns);
  TERCEL_CHECK(high <= 64, RuntimeError, op, ": sizes [", a.num_rows(), ", ", a.num_columns,
               "] are too large to be sorted");
  const bool plain = a.values.dim() == 1;
  with_index(a.index_dtype(), [&]<class I> {
    if (plain && a.values.itemsize() == 4) {
      out.values = empty_like(a.values);
      return transpose_with_values<I, uint32_t>(a, out, low, high);
    }
    if (plain && a.values.itemsize() == 8) {
      out.values = empty_like(a.values);
      return transpose_with_values<I, uint64_t>(a, out, low, high);
    }
    const Tensor order = empty({a.nnz()}, kInt64);
    auto* position = order.data<int64_t>();
    with_key_type(a.nnz(), low, high, [&]<class Key> {
      transpose_entries<I, Key, uint32_t, true>(
          a, out, [position](uint32_t from, int64_t at) { position[at] = static_cast<int64_t>(from); });
    });
    out.values = index_select(a.values, 0, order);
  });
  return out;
}

}  // namespace tercel::sparse_ops
