#include "tercel/ops/embedding/row_gradient.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <utility>

#include "tercel/core/dispatch.h"
#include "tercel/ops/index/gather.h"
#include "tercel/ops/views/views.h"
#include "tercel/util/parallel.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace tercel::test {
namespace {

struct Case {
  int64_t n;
  int64_t dim;
  int64_t low, high;  // of rows
  ScalarType dtype = kFloat32;
};

Tensor random_rows(int64_t n, int64_t low, int64_t high, uint64_t seed) {
  std::mt19937_64 generator(seed);
  std::uniform_int_distribution<int64_t> row(low, high);
  Tensor rows = empty({n}, kInt64);
  for (int64_t i = 0; i < n; ++i) rows.data<int64_t>()[i] = row(generator);
  return rows;
}

// Integers, whose sums are exact in any order.
Tensor random_values(int64_t n, int64_t dim, ScalarType dtype, uint64_t seed) {
  const Tensor whole = random({n, dim}, kInt64, -4, 4, seed);
  return make({n, dim}, dtype, values_of(whole));
}

void expect_sums(const Gradient& got, const Tensor& rows, const Tensor& values) {
  const size_t dim = static_cast<size_t>(values.size(1));
  const std::vector<double> all = values_of(values);
  std::map<int64_t, std::vector<double>> sums;
  for (int64_t i = 0; i < rows.numel(); ++i) {
    std::vector<double>& sum = sums[rows.data<int64_t>()[i]];
    sum.resize(dim, 0);
    for (size_t c = 0; c < dim; ++c) sum[c] += all[static_cast<size_t>(i) * dim + c];
  }
  ASSERT_EQ(got.rows.numel(), static_cast<int64_t>(sums.size()));
  ASSERT_EQ(got.values.sizes(), IntSpan({got.rows.numel(), values.size(1)}));
  std::vector<double> want;
  int64_t i = 0;
  for (const auto& [row, sum] : sums) {
    EXPECT_EQ(got.rows.data<int64_t>()[i++], row);
    want.insert(want.end(), sum.begin(), sum.end());
  }
  EXPECT_EQ(values_of(got.values), want);
}

std::vector<CpuIsa> isas() {
  std::vector<CpuIsa> out;
  for (const CpuIsa isa : {CpuIsa::Generic, CpuIsa::Avx2, CpuIsa::Avx512})
    if (isa <= best_cpu_isa()) out.push_back(isa);
  return out;
}

}  // namespace

TEST(UniqueRows, SumsEqualRows) {
  const std::vector<Case> cases = {
      {0, 4, 0, 9},
      {1, 4, 7, 7},
      {100, 1, 5, 5},  // one row only
      {1000, 16, 0, 99},
      {1000, 7, 0, 3},
      {5000, 64, 0, 1'000'000},
      {5000, 131, 0, 40},
      {70000, 3, -50, 2'600'000},
      {3000, 4, INT64_MIN, INT64_MAX},  // keys and positions that do not fit into one word
      {2000, 8, INT64_MAX - 10, INT64_MAX},
      {1000, 5, 0, 20, kFloat64},
      {1000, 70, 0, 200, kFloat16},
      {1000, 5, 0, 200, kBFloat16},
  };
  const CpuIsa before = cpu_isa();
  for (const CpuIsa isa : isas()) {
    set_cpu_isa(isa);
    UniqueRows unique;  // its memory is reused by cases of other sizes and dtypes
    for (const Case& c : cases) {
      SCOPED_TRACE(::testing::Message() << to_string(isa) << " n " << c.n << " dim " << c.dim);
      const Tensor rows = random_rows(c.n, c.low, c.high, 3), values = random_values(c.n, c.dim, c.dtype, 4);
      expect_sums(unique.reduce({values, rows}), rows, values);
    }
  }
  set_cpu_isa(before);
}

TEST(UniqueRows, AddsInTheOrderOfPositions) {
  // 1e8 + 1 is 1e8 in float32, so the result shows the order.
  const Tensor rows = make({5}, kInt64, {2, 1, 2, 2, 1});
  const Tensor values = make({5, 1}, kFloat32, {1e8, 1, 1, -1e8, 2});
  UniqueRows unique;
  EXPECT_EQ(values_of(unique.reduce({values, rows}).values), (std::vector<double>{3, 0}));
  const Tensor other = make({5, 1}, kFloat32, {1e8, 1, -1e8, 1, 2});
  EXPECT_EQ(values_of(unique.reduce({other, rows}).values), (std::vector<double>{3, 1}));
}

TEST(UniqueRows, AcceptsRowsThatAreApart) {
  const Tensor rows = make({4}, kInt64, {1, 0, 1, 2});
  const Tensor wide = random_values(4, 20, kFloat32, 5);
  const Tensor part(make_intrusive<TensorImpl>(wide.storage(), kFloat32, Sizes{4, 8}, Sizes{20, 1}, 3));
  UniqueRows unique;
  expect_sums(unique.reduce({part, rows}), rows, part);
  const Tensor across(make_intrusive<TensorImpl>(wide.storage(), kFloat32, Sizes{4, 5}, Sizes{1, 4}, 0));
  expect_sums(unique.reduce({across, rows}), rows, across);
}

/** A gradient whose entries share values, and the values of each entry. */
std::pair<Gradient, Tensor> shared_values(int64_t n, int64_t m, int64_t dim, ScalarType dtype) {
  const Gradient g{random_values(m, dim, dtype, 3), random_rows(n, 0, n / 3, 4), random_rows(n, 0, m - 1, 5)};
  return {g, index_select(g.values, 0, g.sources)};
}

TEST(UniqueRows, EntriesMayShareValues) {
  const CpuIsa before = cpu_isa();
  for (const CpuIsa isa : isas()) {
    set_cpu_isa(isa);
    for (const ScalarType dtype : {kFloat32, kFloat64, kBFloat16})
      for (const int64_t dim : {1, 16, 37}) {
        const auto [g, each] = shared_values(3000, 40, dim, dtype);
        UniqueRows unique;
        expect_sums(unique.reduce(g), g.rows, each);
      }
  }
  set_cpu_isa(before);
  UniqueRows unique;
  const Tensor values = random_values(3, 2, kFloat32, 1), rows = make({2}, kInt64, {0, 1});
  EXPECT_THROW(unique.reduce({values, rows, make({2}, kInt64, {0, 3})}), IndexError);
  EXPECT_THROW(unique.reduce({values, rows, make({2}, kInt64, {0, -1})}), IndexError);
  EXPECT_THROW(unique.reduce({values, rows, make({3}, kInt64, {0, 1, 2})}), RuntimeError);
  EXPECT_THROW(unique.reduce({values, rows, make({2}, kInt32, {0, 1})}), RuntimeError);
}

TEST(UniqueRows, BlocksAreThePartsOfTheWhole) {
  // 32 MiB are 4,096 rows of 8 KiB, but a block has 8,192 entries at least.
  const auto [g, each] = shared_values(20000, 3, 2048, kFloat32);
  UniqueRows unique, whole;
  const Gradient all = whole.reduce(g);
  int64_t next = 0, blocks = 0;
  unique.reduce_in_blocks(g, [&](const Gradient& block) {
    const int64_t n = block.rows.numel();
    ASSERT_LE(next + n, all.rows.numel());
    EXPECT_EQ(bytes_of(block.rows), bytes_of(narrow(all.rows, 0, next, n)));
    EXPECT_EQ(bytes_of(narrow(block.values, 0, 0, 1)), bytes_of(narrow(all.values, 0, next, 1)));
    EXPECT_EQ(bytes_of(narrow(block.values, 0, n - 1, 1)), bytes_of(narrow(all.values, 0, next + n - 1, 1)));
    next += n;
    ++blocks;
  });
  EXPECT_EQ(next, all.rows.numel());
  EXPECT_EQ(blocks, 3);
  unique.reduce_in_blocks({empty({0, 2}), empty({0}, kInt64)}, [](const Gradient&) { FAIL(); });
}

TEST(UniqueRows, KeepsItsMemory) {
  UniqueRows unique;
  const Tensor rows = random_rows(20000, 0, 5000, 1), values = random_values(20000, 16, kFloat32, 2);
  const Gradient first = unique.reduce({values, rows});
  const Tensor fewer = random_rows(9000, 0, 100, 1);
  const Tensor their_values = random_values(9000, 16, kFloat32, 2);
  for (const Gradient& next : {unique.reduce({values, rows}), unique.reduce({their_values, fewer})}) {
    EXPECT_EQ(next.rows.data_ptr(), first.rows.data_ptr());
    EXPECT_EQ(next.values.data_ptr(), first.values.data_ptr());
  }
}

TEST(UniqueRows, SharedRowsAreSortedOnce) {
  constexpr int64_t kN = 3000;
  const Tensor rows = random_rows(kN, 0, 500, 1), others = random_rows(kN, 0, 50, 2);
  const Tensor narrow_values = random_values(kN, 1, kFloat32, 3), wide_values = random_values(kN, 24, kFloat64, 4);
  UniqueRows unique;
  unique.share(rows);
  expect_sums(unique.reduce({narrow_values, rows}), rows, narrow_values);
  expect_sums(unique.reduce({wide_values, rows}), rows, wide_values);
  expect_sums(unique.reduce({wide_values, others}), others, wide_values);
  expect_sums(unique.reduce({wide_values, rows}), rows, wide_values);

  // That rows are not sorted again shows when they change, which they must not.
  unique.share(rows);
  const Tensor before = make({kN}, kInt64, values_of(rows));
  std::copy_n(others.data<int64_t>(), kN, rows.data<int64_t>());
  expect_sums(unique.reduce({wide_values, rows}), before, wide_values);
  unique.release();
  expect_sums(unique.reduce({wide_values, rows}), others, wide_values);

  const Tensor none = empty({0}, kInt64);
  unique.share(none);
  EXPECT_EQ(unique.reduce({empty({0, 2}), none}).rows.numel(), 0);
  TERCEL_EXPECT_THROW(unique.share(make({2}, kInt32, {0, 1})), RuntimeError,
                      "UniqueRows: expected contiguous rows [n] of int64 but got [2] int32");
}

TEST(UniqueRows, RefusesWhatIsNoGradientOfRows) {
  UniqueRows unique;
  EXPECT_THROW(unique.reduce({}), RuntimeError);
  EXPECT_THROW(unique.reduce({random_values(3, 2, kFloat32, 1), {}}), RuntimeError);
  EXPECT_THROW(unique.reduce({random_values(3, 2, kFloat32, 1), make({2}, kInt64, {0, 1})}), RuntimeError);
  EXPECT_THROW(unique.reduce({random_values(2, 2, kFloat32, 1), make({2}, kInt32, {0, 1})}), RuntimeError);
}

TEST(DenseGradient, PutsRowsInTheirPlaces) {
  const Tensor rows = make({3}, kInt64, {3, 1, 3}), values = make({3, 2}, kFloat32, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(values_of(dense_gradient({values, rows}, {4, 2})), (std::vector<double>{0, 0, 3, 4, 0, 0, 6, 8}));
  EXPECT_EQ(values_of(dense_gradient({empty({0, 2}), empty({0}, kInt64)}, {2, 2})), std::vector<double>(4, 0));
  EXPECT_THROW(dense_gradient({values, rows}, {3, 2}), IndexError);
  EXPECT_THROW(dense_gradient({values, make({3}, kInt64, {0, -1, 0})}, {3, 2}), IndexError);
  EXPECT_THROW(dense_gradient({values, rows}, {4, 3}), RuntimeError);
}

TEST(UniqueRowsThreads, SameBitsForAnyNumberOfThreads) {
  const int64_t before = num_threads();
  const Tensor rows = random_rows(90000, 0, 700, 9), values = random({90000, 12}, kFloat32, -1, 1, 8);
  std::string want;
  for (const int64_t threads : {1, 2, 3, 8}) {
    set_num_threads(threads);
    UniqueRows unique;
    const Gradient got = unique.reduce({values, rows});
    const std::string bytes = bytes_of(got.rows) + bytes_of(got.values);
    if (threads == 1) want = bytes;
    EXPECT_EQ(bytes, want) << threads;
  }
  set_num_threads(before);
}

}  // namespace tercel::test
