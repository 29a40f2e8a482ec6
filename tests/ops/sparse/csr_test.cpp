// Functions of matrices by rows, compared with loops over dense matrices.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <utility>

#include "tercel/ops/sparse/csr_impl.h"
#include "tercel/ops/views/views.h"
#include "tercel/util/parallel.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace tercel::sparse_ops {
namespace {

using tercel::test::bytes_of;
using tercel::test::make;
using tercel::test::random;
using tercel::test::values_of;

/** Number of threads of a scope. */
class ThreadCount {
 public:
  explicit ThreadCount(int64_t count) : before_(num_threads()) { set_num_threads(count); }
  ThreadCount(const ThreadCount&) = delete;
  ThreadCount& operator=(const ThreadCount&) = delete;
  ~ThreadCount() { set_num_threads(before_); }

 private:
  int64_t before_;
};

Tensor index_tensor(const std::vector<int64_t>& values, ScalarType dtype = kInt64) {
  return make({static_cast<int64_t>(values.size())}, dtype, std::vector<double>(values.begin(), values.end()));
}

/** Entries in a random order, some of them several times; small integers as values. */
struct Entries {
  std::vector<int64_t> rows, columns;
  std::vector<double> values;

  Entries(int64_t n, int64_t num_rows, int64_t num_columns, uint64_t seed) {
    std::mt19937_64 generator(seed);
    std::uniform_int_distribution<int64_t> row(0, num_rows - 1), column(0, num_columns - 1), value(1, 3);
    for (int64_t i = 0; i < n; ++i) {
      rows.push_back(row(generator));
      columns.push_back(column(generator));
      values.push_back(static_cast<double>(value(generator)));
    }
  }
  std::map<std::pair<int64_t, int64_t>, double> sums() const {
    std::map<std::pair<int64_t, int64_t>, double> out;
    for (size_t i = 0; i < rows.size(); ++i) out[{rows[i], columns[i]}] += values[i];
    return out;
  }
  CsrMatrix matrix(int64_t num_rows, int64_t num_columns, ScalarType dtype, ScalarType index_dtype) const {
    return csr_of_entries("test", index_tensor(rows), index_tensor(columns),
                          make({static_cast<int64_t>(rows.size())}, dtype, values), num_rows, num_columns, index_dtype);
  }
};

std::map<std::pair<int64_t, int64_t>, double> entries_of(const CsrMatrix& a) {
  std::map<std::pair<int64_t, int64_t>, double> out;
  const std::vector<double> offsets = values_of(a.offsets), columns = values_of(a.columns),
                            values = values_of(a.values);
  for (size_t r = 0; r + 1 < offsets.size(); ++r)
    for (auto e = static_cast<size_t>(offsets[r]); e < static_cast<size_t>(offsets[r + 1]); ++e) {
      EXPECT_TRUE(e == static_cast<size_t>(offsets[r]) || columns[e] > columns[e - 1]) << "row " << r;
      out[{static_cast<int64_t>(r), static_cast<int64_t>(columns[e])}] = values[e];
    }
  EXPECT_EQ(static_cast<int64_t>(out.size()), a.nnz());
  return out;
}

/** All elements, row-major. */
std::vector<double> elements_of(const CsrMatrix& a) {
  std::vector<double> out(static_cast<size_t>(a.num_rows() * a.num_columns));
  for (const auto& [at, value] : entries_of(a)) out[static_cast<size_t>(at.first * a.num_columns + at.second)] = value;
  return out;
}

std::vector<double> product(const std::vector<double>& a, const std::vector<double>& b, int64_t m, int64_t k,
                            int64_t n) {
  std::vector<double> out(static_cast<size_t>(m * n));
  for (int64_t i = 0; i < m; ++i)
    for (int64_t p = 0; p < k; ++p)
      for (int64_t j = 0; j < n; ++j)
        out[static_cast<size_t>(i * n + j)] += a[static_cast<size_t>(i * k + p)] * b[static_cast<size_t>(p * n + j)];
  return out;
}

std::vector<double> transposed(const std::vector<double>& a, int64_t rows, int64_t columns) {
  std::vector<double> out(a.size());
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      out[static_cast<size_t>(j * rows + i)] = a[static_cast<size_t>(i * columns + j)];
  return out;
}

std::string bytes_of_matrix(const CsrMatrix& a) {
  return bytes_of(a.offsets) + bytes_of(a.columns) + bytes_of(a.values);
}

constexpr ScalarType kDtypes[] = {kFloat32, kFloat64,  kInt32,     kInt64,     kUInt8,
                                  kFloat16, kBFloat16, kComplex64, kComplex128};

TEST(CsrOfEntries, AddsEqualEntriesOfEveryDtype) {
  const Entries entries(400, 13, 17, 1);
  for (const ScalarType dtype : kDtypes)
    for (const ScalarType index : {kInt32, kInt64}) {
      const CsrMatrix a = entries.matrix(13, 17, dtype, index);
      EXPECT_EQ(a.index_dtype(), index);
      EXPECT_EQ(entries_of(a), entries.sums()) << to_string(dtype);
    }
}

TEST(CsrOfEntries, ManyEntriesInBuckets) {
  // 2^26 rows and columns: wide keys. One row, one column: all bits in one of the two.
  const std::pair<int64_t, int64_t> sizes[] = {{3000, 500}, {1 << 20, 1 << 26}, {1, 70000}, {70000, 1}, {1, 1}};
  for (const auto& [rows, columns] : sizes) {
    const Entries entries(40000, rows, columns, 2);
    EXPECT_EQ(entries_of(entries.matrix(rows, columns, kFloat64, kInt64)), entries.sums()) << rows << " x " << columns;
    EXPECT_EQ(entries_of(entries.matrix(rows, columns, kFloat32, kInt32)), entries.sums()) << rows << " x " << columns;
  }
}

TEST(CsrOfEntriesThreads, GiveTheSameBits) {
  std::mt19937_64 generator(3);
  const int64_t n = 60000;
  const Tensor rows = random({n}, kInt64, 0, 2000, 4), columns = random({n}, kInt64, 0, 50, 5);
  const Tensor values = random({n}, kFloat32, -1, 1, 6);
  std::string first;
  for (const int64_t threads : {1, 2, 5}) {
    const ThreadCount scope(threads);
    const std::string bytes = bytes_of_matrix(csr_of_entries("test", rows, columns, values, 2001, 51, kInt32));
    if (first.empty()) first = bytes;
    EXPECT_EQ(bytes, first) << threads;
  }
}

TEST(CsrOfEntries, RowsOfValues) {
  const CsrMatrix a = csr_of_entries("test", index_tensor({2, 0, 2}), index_tensor({1, 0, 1}),
                                     make({3, 2}, kFloat16, {1, 2, 3, 4, 5, 6}), 3, 2, kInt64);
  EXPECT_EQ(values_of(a.offsets), (std::vector<double>{0, 1, 1, 2}));
  EXPECT_EQ(values_of(a.columns), (std::vector<double>{0, 1}));
  EXPECT_EQ(values_of(a.values), (std::vector<double>{3, 4, 6, 8}));
}

TEST(CsrOfEntries, AscendingEntriesAndNone) {
  const CsrMatrix a = csr_of_entries("test", index_tensor({0, 0, 3}), index_tensor({1, 4, 0}),
                                     make({3}, kFloat32, {1, 2, 3}), 5, 5, kInt32);
  EXPECT_EQ(values_of(a.offsets), (std::vector<double>{0, 2, 2, 2, 3, 3}));
  EXPECT_EQ(values_of(a.values), (std::vector<double>{1, 2, 3}));
  const CsrMatrix none =
      csr_of_entries("test", index_tensor({}), index_tensor({}), make({0}, kFloat32, {}), 2, 0, kInt64);
  EXPECT_EQ(values_of(none.offsets), (std::vector<double>{0, 0, 0}));
}

TEST(CsrOfEntries, RefusesIndicesOutside) {
  const Tensor value = make({1}, kFloat32, {1});
  for (const auto& [row, column] : {std::pair{2, 0}, {-1, 0}, {0, 3}, {0, -1}})
    TERCEL_EXPECT_THROW(csr_of_entries("op", index_tensor({row}), index_tensor({column}), value, 2, 3, kInt64),
                        IndexError, "op: the tensor has indices outside of sizes [2, 3]");
}

TEST(CsrTranspose, IsTheTransposeOfEveryDtype) {
  for (const auto& [n, rows, columns] : {std::tuple{300, 20, 30}, {60000, 700, 900}, {0, 3, 2}})
    for (const ScalarType dtype : {kFloat32, kFloat64, kFloat16, kComplex128, kUInt8})
      for (const ScalarType index : {kInt32, kInt64}) {
        const CsrMatrix a = Entries(n, rows, columns, 7).matrix(rows, columns, dtype, index);
        const CsrMatrix turned = csr_transpose("test", a);
        EXPECT_EQ(turned.num_columns, rows);
        EXPECT_EQ(elements_of(turned), transposed(elements_of(a), rows, columns));
        EXPECT_EQ(bytes_of_matrix(csr_transpose("test", turned)), bytes_of_matrix(a));
      }
}

TEST(CsrTranspose, RowsOfEntries) {
  const CsrMatrix a = Entries(50, 9, 9, 8).matrix(9, 9, kFloat32, kInt32);
  std::vector<double> want;
  for (const auto& [at, value] : entries_of(a)) want.push_back(static_cast<double>(at.first));
  EXPECT_EQ(values_of(csr_rows(a)), want);
}

TEST(CsrProducts, EveryDtypeAndWidth) {
  const Entries entries(300, 23, 31, 9);
  for (const ScalarType dtype : kDtypes)
    for (const ScalarType index : {kInt32, kInt64})
      for (const int64_t n : {0, 1, 3, 8, 16, 17, 37, 64, 150}) {
        const CsrMatrix a = entries.matrix(23, 31, dtype, index);
        const Tensor x = random({31, n}, kInt64, -2, 2, 10), y = random({23, n}, kInt64, -2, 2, 11);
        const std::vector<double> in_x =
            dtype == kUInt8 ? std::vector<double>(static_cast<size_t>(31 * n), 1) : values_of(x);
        const std::vector<double> in_y =
            dtype == kUInt8 ? std::vector<double>(static_cast<size_t>(23 * n), 1) : values_of(y);
        EXPECT_EQ(values_of(csr_times_dense("test", a, make({31, n}, dtype, in_x))),
                  product(elements_of(a), in_x, 23, 31, n))
            << to_string(dtype) << " " << n;
        EXPECT_EQ(values_of(csr_transposed_times_dense("test", a, make({23, n}, dtype, in_y))),
                  product(transposed(elements_of(a), 23, 31), in_y, 31, 23, n))
            << to_string(dtype) << " " << n;
      }
}

TEST(CsrProducts, LongRowsAndEmptyOnes) {
  // A row of more entries than are multiplied at once, one of 40, and rows without entries.
  std::vector<int64_t> rows, columns;
  for (int64_t c = 0; c < 5000; ++c) rows.push_back(1), columns.push_back(c);
  for (int64_t c = 0; c < 40; ++c) rows.push_back(3), columns.push_back(c);
  const CsrMatrix a = csr_of_entries("test", index_tensor(rows), index_tensor(columns),
                                     make({5040}, kFloat64, std::vector<double>(5040, 2)), 6, 5000, kInt64);
  EXPECT_EQ(values_of(csr_times_dense("test", a, make({5000, 1}, kFloat64, std::vector<double>(5000, 3)))),
            (std::vector<double>{0, 30000, 0, 240, 0, 0}));
}

TEST(CsrProductThreads, GiveTheSameBits) {
  const int64_t n = 600000, rows = 3000, columns = 300;
  const CsrMatrix a =
      csr_of_entries("test", random({n}, kInt64, 0, rows - 1, 12), random({n}, kInt64, 0, columns - 1, 13),
                     random({n}, kFloat32, -1, 1, 14), rows, columns, kInt64);
  for (const int64_t width : {1, 5, 40}) {
    const Tensor x = random({columns, width}, kFloat32, -1, 1, 15), y = random({rows, width}, kFloat32, -1, 1, 16);
    std::string first;
    for (const int64_t threads : {1, 2, 5}) {
      const ThreadCount scope(threads);
      const std::string bytes = bytes_of(csr_times_dense("test", a, x)) +
                                bytes_of(csr_transposed_times_dense("test", a, y)) +
                                bytes_of(csr_sampled_product("test", a, y, t(x)));
      if (first.empty()) first = bytes;
      EXPECT_EQ(bytes, first) << threads;
    }
  }
}

TEST(CsrProducts, Sampled) {
  const CsrMatrix a = Entries(200, 23, 31, 17).matrix(23, 31, kFloat32, kInt32);
  for (const ScalarType dtype : {kFloat32, kFloat64, kInt32, kComplex64, kBFloat16})
    for (const int64_t k : {0, 1, 7, 16, 33, 100}) {
      const std::vector<double> left = values_of(random({23, k}, kInt64, -2, 2, 18)),
                                right = values_of(random({k, 31}, kInt64, -2, 2, 19));
      const std::vector<double> all = product(left, right, 23, k, 31);
      std::vector<double> want;
      for (const auto& [at, value] : entries_of(a)) want.push_back(all[static_cast<size_t>(at.first * 31 + at.second)]);
      EXPECT_EQ(values_of(csr_sampled_product("test", a, make({23, k}, dtype, left), make({k, 31}, dtype, right))),
                want);
    }
}

TEST(CsrProducts, RefuseIndicesAndOffsetsOutside) {
  const Tensor values = make({2}, kFloat32, {1, 2}), x = make({3, 2}, kFloat32, {1, 2, 3, 4, 5, 6});
  for (const int64_t column : {3, -1, 1 << 30}) {
    const CsrMatrix a{index_tensor({0, 1, 2}), index_tensor({0, column}), values, 3};
    const Tensor y = make({2, 2}, kFloat32, {1, 2, 3, 4}), one = make({2, 1}, kFloat32, {1, 2});
    const std::string text = "op: a sparse operand has an index outside of size 3";
    TERCEL_EXPECT_THROW(csr_times_dense("op", a, x), IndexError, text);
    TERCEL_EXPECT_THROW(csr_times_dense("op", a, select(x, 1, 0).unsqueeze(1)), IndexError, text);
    TERCEL_EXPECT_THROW(csr_transposed_times_dense("op", a, y), IndexError, text);
    TERCEL_EXPECT_THROW(csr_transposed_times_dense("op", a, one), IndexError, text);
    TERCEL_EXPECT_THROW(csr_sampled_product("op", a, y, t(x)), IndexError, text);
    TERCEL_EXPECT_THROW(csr_transpose("op", a), IndexError, text);
    TERCEL_EXPECT_THROW(dense_of_csr("op", a), IndexError, text);
    TERCEL_EXPECT_THROW(blocks_of_csr("op", a, 1, 1), IndexError, text);
    TERCEL_EXPECT_THROW(csr_times_csr("op", a, Entries(4, 3, 3, 1).matrix(3, 3, kFloat32, kInt64)), IndexError, text);
  }
  for (const auto& offsets : {std::vector<int64_t>{0, 3, 2}, {1, 1, 2}, {0, 1, 3}, {0, -1, 2}})
    TERCEL_EXPECT_THROW(csr_times_dense("op", {index_tensor(offsets), index_tensor({0, 1}), values, 3}, x), IndexError,
                        "op: the offsets of a sparse operand do not rise from 0 to its 2 entries");
}

TEST(CsrSpgemm, EveryDtype) {
  for (const ScalarType dtype : kDtypes)
    for (const ScalarType index : {kInt32, kInt64}) {
      const CsrMatrix a = Entries(60, 19, 23, 20).matrix(19, 23, dtype, index),
                      b = Entries(50, 23, 300, 21).matrix(23, 300, dtype, index);
      const CsrMatrix c = csr_times_csr("test", a, b);
      EXPECT_EQ(c.index_dtype(), index);
      EXPECT_EQ(elements_of(c), product(elements_of(a), elements_of(b), 19, 23, 300)) << to_string(dtype);
    }
}

TEST(CsrSpgemm, ManyColumnsAreRenumbered) {
  const int64_t wide = int64_t{1} << 40;
  const CsrMatrix b = csr_of_entries("test", index_tensor({0, 1, 1, 2}), index_tensor({wide - 1, 5, wide - 1, 7}),
                                     make({4}, kFloat32, {1, 2, 3, 4}), 3, wide, kInt64);
  const CsrMatrix a = csr_of_entries("test", index_tensor({0, 0, 1}), index_tensor({0, 1, 2}),
                                     make({3}, kFloat32, {10, 100, 1000}), 2, 3, kInt64);
  const CsrMatrix c = csr_times_csr("test", a, b);
  EXPECT_EQ(c.num_columns, wide);
  EXPECT_EQ(entries_of(c),
            (std::map<std::pair<int64_t, int64_t>, double>{{{0, 5}, 200}, {{0, wide - 1}, 310}, {{1, 7}, 4000}}));
}

TEST(CsrSpgemm, KeepsTermsThatCancel) {
  const CsrMatrix ones =
      csr_of_entries("test", index_tensor({0, 0}), index_tensor({0, 1}), make({2}, kFloat32, {1, -1}), 1, 2, kInt64);
  const CsrMatrix column =
      csr_of_entries("test", index_tensor({0, 1}), index_tensor({0, 0}), make({2}, kFloat32, {1, 1}), 2, 1, kInt64);
  EXPECT_EQ(entries_of(csr_times_csr("test", ones, column)),
            (std::map<std::pair<int64_t, int64_t>, double>{{{0, 0}, 0}}));
}

TEST(CsrSpgemmThreads, GiveTheSameBits) {
  const CsrMatrix a = csr_of_entries("test", random({50000}, kInt64, 0, 4999, 22), random({50000}, kInt64, 0, 4999, 23),
                                     random({50000}, kFloat32, -1, 1, 24), 5000, 5000, kInt32);
  std::string first;
  for (const int64_t threads : {1, 2, 5}) {
    const ThreadCount scope(threads);
    const std::string bytes = bytes_of_matrix(csr_times_csr("test", a, a));
    if (first.empty()) first = bytes;
    EXPECT_EQ(bytes, first) << threads;
  }
}

TEST(CsrMerge, SumsAndProducts) {
  for (const ScalarType dtype : kDtypes)
    for (const ScalarType index : {kInt32, kInt64}) {
      const CsrMatrix a = Entries(90, 19, 23, 25).matrix(19, 23, dtype, index),
                      b = Entries(80, 19, 23, 26).matrix(19, 23, dtype, index);
      const auto left = entries_of(a), right = entries_of(b);
      std::map<std::pair<int64_t, int64_t>, double> sum = left, common;
      for (const auto& [at, value] : right) {
        sum[at] += 2 * value;
        if (left.count(at)) common[at] = left.at(at) * value;
      }
      EXPECT_EQ(entries_of(csr_add("test", a, b, 2)), sum) << to_string(dtype);
      EXPECT_EQ(entries_of(csr_mul("test", a, b)), common) << to_string(dtype);
    }
}

TEST(CsrConversions, DenseAndBack) {
  for (const ScalarType dtype : kDtypes)
    for (const ScalarType index : {kInt32, kInt64}) {
      std::vector<double> elements(static_cast<size_t>(11 * 7));
      for (size_t i = 0; i < elements.size(); i += 3) elements[i] = static_cast<double>(i % 5);
      const Tensor dense = make({11, 7}, dtype, elements);
      const CsrMatrix a = csr_of_dense(dense, index);
      EXPECT_EQ(a.nnz(), std::count_if(elements.begin(), elements.end(), [](double x) { return x != 0; }));
      EXPECT_EQ(elements_of(a), elements) << to_string(dtype);
      EXPECT_EQ(values_of(dense_of_csr("test", a)), elements) << to_string(dtype);
      EXPECT_EQ(elements_of(csr_of_dense(t(dense), index)), transposed(elements, 11, 7));
    }
}

TEST(CsrConversions, ZerosOfBothSignsAreNoEntriesAndNanIsOne) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const ScalarType dtype : {kFloat32, kFloat64, kFloat16, kBFloat16, kComplex64, kComplex128}) {
    const CsrMatrix a = csr_of_dense(make({1, 4}, dtype, {0.0, -0.0, nan, 1}), kInt64);
    EXPECT_EQ(values_of(a.columns), (std::vector<double>{2, 3})) << to_string(dtype);
  }
}

TEST(CsrConversions, Blocks) {
  for (const auto& [height, width] : {std::pair{1, 1}, {2, 3}, {4, 1}, {12, 15}})
    for (const ScalarType index : {kInt32, kInt64}) {
      const CsrMatrix a = Entries(40, 12, 15, 27).matrix(12, 15, kFloat64, index);
      const CsrMatrix blocks = blocks_of_csr("test", a, height, width);
      EXPECT_EQ(blocks.values.sizes(), IntSpan({blocks.nnz(), height, width}));
      EXPECT_EQ(blocks.num_columns, 15 / width);
      std::map<std::pair<int64_t, int64_t>, int> used;
      for (const auto& [at, value] : entries_of(a)) used[{at.first / height, at.second / width}] = 1;
      EXPECT_EQ(static_cast<size_t>(blocks.nnz()), used.size());
      EXPECT_EQ(elements_of(csr_of_blocks("test", blocks)), elements_of(a));
    }
}

}  // namespace
}  // namespace tercel::sparse_ops
