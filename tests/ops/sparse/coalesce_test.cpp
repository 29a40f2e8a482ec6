#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>

#include "tercel/ops/ops.h"
#include "tercel/util/parallel.h"
#include "tests/support/tensors.h"

namespace tercel::test {
namespace {

/** Random entries of a [rows, columns, width] tensor, many of them several times. */
Tensor random_entries(int64_t nnz, int64_t rows, int64_t columns, int64_t width, ScalarType dtype, uint64_t seed) {
  std::mt19937_64 generator(seed);
  const Tensor indices = empty({2, nnz}, kInt64);
  for (int64_t i = 0; i < nnz; ++i) {
    indices.data<int64_t>()[i] = static_cast<int64_t>(generator() % static_cast<uint64_t>(rows));
    indices.data<int64_t>()[nnz + i] = static_cast<int64_t>(generator() % static_cast<uint64_t>(columns));
  }
  const bool counts = dtype == kBool || is_unsigned(dtype);
  return sparse_coo_tensor(indices, random({nnz, width}, dtype, counts ? 0 : -3, dtype == kBool ? 1 : 3, seed + 1),
                           {rows, columns, width});
}

/** Keys, ascending, and the sums of the values in the order of their positions, in float64. */
std::map<std::pair<double, double>, std::vector<double>> sums_of(const Tensor& x) {
  const std::vector<double> at = values_of(_indices(x)), v = values_of(_values(x));
  const size_t n = static_cast<size_t>(_nnz(x)), width = n == 0 ? 0 : v.size() / n;
  std::map<std::pair<double, double>, std::vector<double>> out;
  for (size_t i = 0; i < n; ++i) {
    auto& sum = out[{at[i], at[n + i]}];
    sum.resize(width);
    for (size_t k = 0; k < width; ++k) sum[k] += v[i * width + k];
  }
  return out;
}

TEST(Coalesce, EqualsSumsInAMap) {
  for (const ScalarType dtype : {kBool, kInt8, kUInt8, kInt32, kInt64, kFloat16, kBFloat16, kFloat32, kFloat64}) {
    SCOPED_TRACE(to_string(dtype));
    for (const int64_t nnz : {0, 1, 2, 100, 3000}) {
      const Tensor x = random_entries(nnz, 7, 30, 2, dtype, 3), y = coalesce(x);
      EXPECT_TRUE(is_coalesced(y));
      const auto expected = sums_of(x);
      ASSERT_EQ(_nnz(y), static_cast<int64_t>(expected.size()));
      const std::vector<double> at = values_of(indices(y)), v = values_of(values(y));
      size_t i = 0;
      for (const auto& [key, sum] : expected) {
        EXPECT_EQ(at[i], key.first);
        EXPECT_EQ(at[expected.size() + i], key.second);
        for (size_t k = 0; k < 2; ++k) {
          const double got = v[2 * i + k];
          if (dtype == kBool)
            EXPECT_EQ(got, sum[k] > 0);
          else if (!is_floating(dtype))
            EXPECT_EQ(got, read_element(dtype, make({1}, dtype, {std::remainder(sum[k], 256)}).data_ptr()));
          else
            EXPECT_NEAR(got, sum[k], dtype == kFloat16 ? 0.05 : dtype == kBFloat16 ? 0.3 : 1e-3);
        }
        ++i;
      }
    }
  }
}

TEST(Coalesce, ComplexValues) {
  const Tensor x = sparse_coo_tensor(tensor({{1, 1, 0}}), to(tensor({1.0, 2.0, 4.0}), kComplex64), {2});
  EXPECT_EQ(values_of(real(to_dense(x))), (std::vector<double>{4, 3}));
}

TEST(Coalesce, InOrderEntriesAreShared) {
  const Tensor v = tensor({1.0, 2.0});
  const Tensor x = sparse_coo_tensor(tensor({{0, 1}}), v, {3}), y = coalesce(x);
  EXPECT_FALSE(is_coalesced(x));
  EXPECT_TRUE(is_coalesced(y));
  EXPECT_EQ(values(y).data_ptr(), v.data_ptr());
  EXPECT_TRUE(coalesce(y).is_same(y));
}

TEST(Coalesce, LargeSizesNeedWideKeys) {
  const int64_t most = int64_t{1} << 30;
  const Tensor x =
      sparse_coo_tensor(make({2, 3}, kInt64, {double(most - 1), 0, double(most - 1), 5, double(most - 2), 5}),
                        tensor({1.0, 2.0, 3.0}), {most, most});
  const Tensor y = coalesce(x);
  EXPECT_EQ(values_of(values(y)), (std::vector<double>{2, 4}));
  EXPECT_EQ(values_of(indices(y)), (std::vector<double>{0, double(most - 1), double(most - 2), 5}));
}

TEST(CoalesceThreads, GiveTheSameBits) {
  const int64_t before = num_threads();
  for (const ScalarType dtype : {kFloat32, kFloat16, kComplex64}) {
    const Tensor x = random_entries(200000, 100, 300, 3, dtype, 5);
    set_num_threads(1);
    const Tensor one = coalesce(x);
    for (const int64_t threads : {2, 3, 7}) {
      set_num_threads(threads);
      const Tensor many = coalesce(x);
      EXPECT_EQ(bytes_of(values(many)), bytes_of(values(one)));
      EXPECT_EQ(bytes_of(indices(many)), bytes_of(indices(one)));
      EXPECT_EQ(bytes_of(to_dense(x)), bytes_of(to_dense(one)));
    }
  }
  set_num_threads(before);
}

}  // namespace
}  // namespace tercel::test
