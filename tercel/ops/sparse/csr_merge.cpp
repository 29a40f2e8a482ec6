// Sums and products of the elements of two matrices by rows.
#include <algorithm>
#include <atomic>
#include <type_traits>
#include <utility>

#include "tercel/core/element_type.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/sparse/csr_impl.h"
#include "tercel/util/parallel.h"

namespace tercel::sparse_ops {

namespace {

constexpr int64_t kGrain = 16384;

template <class T>
T scaled_sum(T a, T b, T alpha) {
  if constexpr (std::is_integral_v<T>)  // wraps
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(alpha) * static_cast<uint64_t>(b));
  else
    return a + alpha * b;
}
template <class T>
T product_of(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  else
    return a * b;
}

/** The parts of a matrix. */
template <class I, class T>
struct Rows {
  const I *offsets, *columns;
  const T* values;

  explicit Rows(const CsrMatrix& m)
      : offsets(static_cast<const I*>(m.offsets.data_ptr())),
        columns(static_cast<const I*>(m.columns.data_ptr())),
        values(static_cast<const T*>(m.values.data_ptr())) {}
  int64_t begin(int64_t row) const { return static_cast<int64_t>(offsets[row]); }
};

/**
 * Calls both(i, k) for entries of a row that a and b have in a column, and only_a(i) and only_b(k) for the others, in
 * ascending order.
 */
template <class R, class Both, class OnlyA, class OnlyB>
void merge_row(const R& a, const R& b, int64_t row, Both&& both, OnlyA&& only_a, OnlyB&& only_b) {
  int64_t i = a.begin(row), k = b.begin(row);
  const int64_t end_a = a.begin(row + 1), end_b = b.begin(row + 1);
  while (i < end_a && k < end_b) {
    if (a.columns[i] == b.columns[k])
      both(i++, k++);
    else if (a.columns[i] < b.columns[k])
      only_a(i++);
    else
      only_b(k++);
  }
  while (i < end_a) only_a(i++);
  while (k < end_b) only_b(k++);
}

/** Whether the columns of a row ascend, none twice. */
template <class I>
bool row_ascends(const I* offsets, const I* columns, int64_t row) {
  bool falls = false;
  for (auto e = static_cast<int64_t>(offsets[row]) + 1; e < static_cast<int64_t>(offsets[row + 1]); ++e)
    falls |= columns[e] <= columns[e - 1];
  return !falls;
}

/**
 * The merge of two matrices; entries of one alone are left out if `common`. Without offsets if the columns of a row do
 * not ascend.
 */
template <class I, class T, class Both, class OnlyB>
CsrMatrix merged(const char* op, const CsrMatrix& left, const CsrMatrix& right, bool common, Both&& both,
                 OnlyB&& only_b) {
  const Rows<I, T> a(left), b(right);
  const int64_t rows = left.num_rows(), one = common ? 0 : 1;
  const int64_t grain = std::max<int64_t>(1, kGrain * rows / std::max<int64_t>(left.nnz() + right.nnz() + rows, 1));
  const Tensor counts = empty({rows + 1}, kInt64);
  auto* count = counts.data<int64_t>();
  std::atomic<bool> ascend{true};
  parallel_for(0, rows, grain, [&](int64_t begin, int64_t end) {
    bool all = true;
    for (int64_t r = begin; r < end; ++r) {
      int64_t n = 0;
      all = all && row_ascends(a.offsets, a.columns, r) && row_ascends(b.offsets, b.columns, r);
      merge_row(
          a, b, r, [&](int64_t, int64_t) { ++n; }, [&](int64_t) { n += one; }, [&](int64_t) { n += one; });
      count[r] = n;
    }
    if (!all) ascend.store(false, std::memory_order_relaxed);
  });
  if (!ascend.load()) return {};
  int64_t nnz = 0;
  for (int64_t r = 0; r < rows; ++r) nnz += std::exchange(count[r], nnz);
  count[rows] = nnz;
  check_index_range(op, nnz, left.index_dtype());
  CsrMatrix out{empty({rows + 1}, left.index_dtype()), empty({nnz}, left.index_dtype()),
                empty({nnz}, left.values.options()), left.num_columns};
  std::transform(count, count + rows + 1, out.offsets.data<I>(), [](int64_t n) { return static_cast<I>(n); });
  I* columns = out.columns.data<I>();
  T* values = out.values.data<T>();
  parallel_for(0, rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      int64_t at = count[r];
      const auto put = [&](I column, T value) {
        columns[at] = column;
        values[at++] = value;
      };
      merge_row(
          a, b, r, [&](int64_t i, int64_t k) { put(a.columns[i], both(a.values[i], b.values[k])); },
          [&](int64_t i) {
            if (!common) put(a.columns[i], a.values[i]);
          },
          [&](int64_t k) {
            if (!common) put(b.columns[k], only_b(b.values[k]));
          });
    }
  });
  return out;
}

/** Calls f.template operator()<I, T>(a, b) with values in the dtype in which they are computed. */
template <class F>
CsrMatrix with_operands(const char* op, const CsrMatrix& given_a, const CsrMatrix& given_b, F&& f) {
  const ScalarType dtype = given_a.values.dtype();
  const ScalarType compute = product_dtype(dtype);
  CsrMatrix a = checked_csr(op, given_a), b = checked_csr(op, given_b);
  TERCEL_ASSERT(a.num_rows() == b.num_rows() && a.num_columns == b.num_columns && a.index_dtype() == b.index_dtype());
  a.values = to(a.values, compute);
  b.values = to(b.values, compute);
  const auto run = [&] {
    return visit_index_types(op, a.index_dtype(), [&]<class I> {
      return visit_types<float, double, int64_t, Complex<float>, Complex<double>>(
          op, compute, [&]<class T> { return f.template operator()<I, T>(a, b); });
    });
  };
  CsrMatrix out = run();
  if (!out.offsets.defined()) {
    a = csr_ascending(op, a);
    b = csr_ascending(op, b);
    out = run();
  }
  out.values = to(out.values, dtype);
  return out;
}

}  // namespace

bool csr_ascends(const char* op, const CsrMatrix& given) {
  const CsrMatrix a = checked_csr(op, {given.offsets, given.columns, Tensor(), given.num_columns});
  std::atomic<bool> ascend{true};
  with_index(a.index_dtype(), [&]<class I> {
    const I *offsets = static_cast<const I*>(a.offsets.data_ptr()),
            *columns = static_cast<const I*>(a.columns.data_ptr());
    const int64_t work = 1 + a.nnz() / std::max<int64_t>(a.num_rows(), 1);
    parallel_for(0, a.num_rows(), std::max<int64_t>(1, kGrain / work), [&](int64_t begin, int64_t end) {
      bool all = true;
      for (int64_t r = begin; all && r < end; ++r) all = row_ascends(offsets, columns, r);
      if (!all) ascend.store(false, std::memory_order_relaxed);
    });
  });
  return ascend.load();
}

CsrMatrix csr_ascending(const char* op, const CsrMatrix& a) {
  return csr_of_entries(op, to(csr_rows(a), kInt64), to(a.columns, kInt64), a.values, a.num_rows(), a.num_columns,
                        a.index_dtype());
}

CsrMatrix csr_add(const char* op, const CsrMatrix& a, const CsrMatrix& b, Scalar alpha) {
  return with_operands(op, a, b, [&]<class I, class T>(const CsrMatrix& x, const CsrMatrix& y) {
    const T factor = alpha.to<T>();
    return merged<I, T>(
        op, x, y, false, [factor](T u, T v) { return scaled_sum(u, v, factor); },
        [factor](T v) { return product_of(factor, v); });
  });
}

CsrMatrix csr_mul(const char* op, const CsrMatrix& a, const CsrMatrix& b) {
  return with_operands(op, a, b, [&]<class I, class T>(const CsrMatrix& x, const CsrMatrix& y) {
    return merged<I, T>(
        op, x, y, true, [](T u, T v) { return product_of(u, v); }, [](T v) { return v; });
  });
}

}  // namespace tercel::sparse_ops
