// Products of two matrices by rows.
//
// Note [Sparse products]
// Row by row (Gustavson): the rows of b that a row of a names are added in a dense row, in the order of the entries,
// and the columns that were touched are marked in a bitmap whose words are marked in turn, twice; reading the marks
// gives the columns in ascending order without sorting. A first pass counts the entries, so that the second writes into
// the result; it holds for each column the last row that had it, which is cheaper than the bitmap where order does not
// matter. Both wait for rows of b more than they compute, so they fetch rows ahead. Columns are first renumbered by
// those that b has if the dense row would otherwise be far larger than b.
#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "tercel/core/element_type.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/index/gather.h"
#include "tercel/ops/sort/unique.h"
#include "tercel/ops/sparse/csr_impl.h"
#include "tercel/util/macros.h"
#include "tercel/util/parallel.h"

namespace tercel::sparse_ops {

namespace {

/** Products of entries that are worth another thread. */
constexpr int64_t kGrain = 16384;

/** Entries between the fetch of a row and its use: of its offsets, then of its first cache lines. */
constexpr int64_t kOffsetsAhead = 8, kRowsAhead = 3, kLinesAhead = 2;

/** A set of columns that is read in ascending order. A view of memory: its pointers stay in registers. */
class ColumnSet {
 public:
  /** Words for columns below `size`, all zero. */
  static std::vector<uint64_t> memory(int64_t size) {
    return std::vector<uint64_t>(level(size, 1) + level(size, 2) + level(size, 3));
  }
  ColumnSet(std::vector<uint64_t>& memory, int64_t size)
      : words_(memory.data()),
        used_words_(words_ + level(size, 1)),
        used_(used_words_ + level(size, 2)),
        num_used_(level(size, 3)) {}

  TERCEL_ALWAYS_INLINE void insert(size_t column) const {
    uint64_t& word = words_[column >> 6];
    if (word == 0) {
      used_words_[column >> 12] |= bit(column >> 6);
      used_[column >> 18] |= bit(column >> 12);
    }
    word |= bit(column);
  }
  /** Calls visit(column) for each, and removes them. */
  template <class Visit>
  TERCEL_ALWAYS_INLINE void take(Visit&& visit) const {
    for (size_t i = 0; i < num_used_; ++i)
      for (uint64_t groups = std::exchange(used_[i], 0); groups != 0; groups &= groups - 1) {
        const size_t group = i << 6 | low_bit(groups);
        for (uint64_t words = std::exchange(used_words_[group], 0); words != 0; words &= words - 1) {
          const size_t word = group << 6 | low_bit(words);
          for (uint64_t marks = std::exchange(words_[word], 0); marks != 0; marks &= marks - 1)
            visit(word << 6 | low_bit(marks));
        }
      }
  }

 private:
  static size_t level(int64_t size, int n) { return (static_cast<size_t>(size) >> (6 * n)) + 1; }
  static uint64_t bit(size_t n) { return uint64_t{1} << (n & 63); }
  static size_t low_bit(uint64_t marks) { return static_cast<size_t>(std::countr_zero(marks)); }

  uint64_t *words_, *used_words_, *used_;
  size_t num_used_;
};

template <class T>
T add_product(T sum, T a, T b) {
  if constexpr (std::is_integral_v<T>)  // wraps
    return static_cast<T>(static_cast<uint64_t>(sum) + static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  else
    return sum + a * b;
}

template <class I, class T>
class Product {
 public:
  Product(const char* op, const CsrMatrix& a, const CsrMatrix& b)
      : op_(op),
        a_(a),
        b_(b),
        offsets_a_(pointer(a.offsets)),
        columns_a_(pointer(a.columns)),
        offsets_b_(pointer(b.offsets)),
        columns_b_(pointer(b.columns)),
        work_(static_cast<size_t>(a.num_rows()) + 1) {
    check_columns(op, a);
    check_columns(op, b);
    count_work();
  }

  CsrMatrix compute() const {
    const int64_t rows = a_.num_rows();
    CsrMatrix out{empty({rows + 1}, a_.index_dtype()), Tensor(), Tensor(), b_.num_columns};
    const Tensor counts = empty({rows + 1}, kInt64);
    auto* count = counts.data<int64_t>();
    for_rows([&](int64_t begin, int64_t end) { count_entries(begin, end, count); });
    int64_t nnz = 0;
    for (int64_t r = 0; r < rows; ++r) nnz += std::exchange(count[r], nnz);
    count[rows] = nnz;
    check_index_range(op_, nnz, a_.index_dtype());
    std::transform(count, count + rows + 1, out.offsets.data<I>(), [](int64_t n) { return static_cast<I>(n); });
    out.columns = empty({nnz}, a_.index_dtype());
    out.values = empty({nnz}, a_.values.options());
    for_rows([&](int64_t begin, int64_t end) { fill(begin, end, count, out.columns.data<I>(), out.values.data<T>()); });
    return out;
  }

 private:
  static constexpr int64_t kIndicesOfLine = 64 / sizeof(I);

  static const I* pointer(const Tensor& x) { return static_cast<const I*>(x.data_ptr()); }

  /** Fetches the row of b that the entry of `a` a few entries on names. */
  TERCEL_ALWAYS_INLINE void fetch_ahead(int64_t entry, const T* values) const {
    if (entry + kOffsetsAhead >= a_.nnz()) return;
    __builtin_prefetch(offsets_b_ + columns_a_[entry + kOffsetsAhead]);
    const auto first = static_cast<int64_t>(offsets_b_[columns_a_[entry + kRowsAhead]]);
    for (int64_t line = 0; line < kLinesAhead; ++line)
      __builtin_prefetch(columns_b_ + std::min(first + line * kIndicesOfLine, b_.nnz()));
    if (values != nullptr) __builtin_prefetch(values + first);
  }
  /** The number of entries of each row of the product. */
  void count_entries(int64_t begin, int64_t end, int64_t* count) const {
    std::vector<uint32_t> last_row(static_cast<size_t>(b_.num_columns));  // its number from 1 on
    uint32_t number = 0;
    const I *offsets = offsets_b_, *columns = columns_b_;
    for (int64_t r = begin; r < end; ++r) {
      if (++number == 0) {  // after 2^32 rows
        std::fill(last_row.begin(), last_row.end(), 0);
        number = 1;
      }
      int64_t entries = 0;
      const auto last = static_cast<int64_t>(offsets_a_[r + 1]);
      for (auto e = static_cast<int64_t>(offsets_a_[r]); e < last; ++e) {
        fetch_ahead(e, nullptr);
        const auto stop = static_cast<int64_t>(offsets[columns_a_[e] + 1]);
        for (auto f = static_cast<int64_t>(offsets[columns_a_[e]]); f < stop; ++f) {
          uint32_t& seen = last_row[static_cast<size_t>(columns[f])];
          entries += seen != number ? 1 : 0;
          seen = number;
        }
      }
      count[r] = entries;
    }
  }
  /** Writes rows from their first entries on. */
  void fill(int64_t begin, int64_t end, const int64_t* first, I* out_columns, T* out_values) const {
    std::vector<uint64_t> memory = ColumnSet::memory(b_.num_columns);
    const ColumnSet marks(memory, b_.num_columns);
    std::vector<T> row(static_cast<size_t>(b_.num_columns), T{});
    T* sums = row.data();
    const I *offsets = offsets_b_, *columns = columns_b_;
    const T *va = static_cast<const T*>(a_.values.data_ptr()), *vb = static_cast<const T*>(b_.values.data_ptr());
    for (int64_t r = begin; r < end; ++r) {
      const auto last = static_cast<int64_t>(offsets_a_[r + 1]);
      for (auto e = static_cast<int64_t>(offsets_a_[r]); e < last; ++e) {
        const T value = va[e];
        fetch_ahead(e, vb);
        const auto stop = static_cast<int64_t>(offsets[columns_a_[e] + 1]);
        for (auto f = static_cast<int64_t>(offsets[columns_a_[e]]); f < stop; ++f) {
          const auto column = static_cast<size_t>(columns[f]);
          marks.insert(column);
          sums[column] = add_product(sums[column], value, vb[f]);
        }
      }
      int64_t at = first[r];
      marks.take([&](size_t column) {
        out_columns[at] = static_cast<I>(column);
        out_values[at++] = std::exchange(sums[column], T{});
      });
    }
  }

  /** The number of terms of all rows before each, and a row's own time. */
  void count_work() {
    parallel_for(0, a_.num_rows(), kGrain / 8, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        int64_t terms = 1;
        for (auto e = static_cast<int64_t>(offsets_a_[r]); e < static_cast<int64_t>(offsets_a_[r + 1]); ++e)
          terms += static_cast<int64_t>(offsets_b_[columns_a_[e] + 1] - offsets_b_[columns_a_[e]]);
        work_[static_cast<size_t>(r)] = terms;
      }
    });
    int64_t total = 0;
    for (int64_t& w : work_) total += std::exchange(w, total);
  }
  /** Calls body(begin, end) for ranges of rows with nearly equal numbers of terms. */
  template <class Body>
  void for_rows(Body&& body) const {
    const Partition partition(0, work_.back(), kGrain);
    const auto row_at = [&](int64_t chunk) {
      if (chunk == partition.chunks()) return a_.num_rows();
      return static_cast<int64_t>(std::lower_bound(work_.begin(), work_.end(), partition.begin(chunk)) - work_.begin());
    };
    partition.run([&](int64_t chunk, int64_t, int64_t) {
      const int64_t begin = row_at(chunk), end = row_at(chunk + 1);
      if (begin < end) body(begin, end);
    });
  }
  const char* op_;
  const CsrMatrix &a_, &b_;
  const I *offsets_a_, *columns_a_, *offsets_b_, *columns_b_;
  std::vector<int64_t> work_;
};

CsrMatrix product_of(const char* op, const CsrMatrix& a, const CsrMatrix& b) {
  return visit_index_types(op, a.index_dtype(), [&]<class I> {
    return visit_types<float, double, int64_t, Complex<float>, Complex<double>>(
        op, a.values.dtype(), [&]<class T> { return Product<I, T>(op, a, b).compute(); });
  });
}

}  // namespace

CsrMatrix csr_times_csr(const char* op, const CsrMatrix& given_a, const CsrMatrix& given_b) {
  const ScalarType dtype = given_a.values.dtype();
  const ScalarType compute = product_dtype(dtype);
  CsrMatrix a = checked_csr(op, given_a), b = checked_csr(op, given_b);
  TERCEL_CHECK(a.num_columns == b.num_rows(), RuntimeError, op, ": sizes of the operands do not fit: ", a.num_columns,
               " columns and ", b.num_rows(), " rows");
  a.values = to(a.values, compute);
  b.values = to(b.values, compute);
  const bool narrow = b.num_columns <= std::max<int64_t>(1 << 16, 4 * b.nnz());
  if (!narrow) check_columns(op, b);
  const UniqueValues used = narrow ? UniqueValues{} : unique(b.columns, true);
  const int64_t num_columns = b.num_columns;
  if (!narrow) {
    b.columns = to(used.inverse, b.index_dtype());
    b.num_columns = used.values.numel();
  }
  CsrMatrix out = product_of(op, a, b);
  if (!narrow) {
    out.columns = index_select(used.values, 0, out.columns);
    out.num_columns = num_columns;
  }
  out.values = to(out.values, dtype);
  return out;
}

}  // namespace tercel::sparse_ops
