#include "tercel/ops/sort/sort.h"

#include <cmath>
#include <limits>
#include <map>

#include "tercel/autograd/autograd.h"
#include "tercel/core/dispatch.h"
#include "tercel/util/parallel.h"
#include "tests/ops/conformance.h"
#include "tests/ops/sort/sort_rows.h"
#include "tests/support/errors.h"

namespace tercel::test {

namespace {

const double kNan = std::numeric_limits<double>::quiet_NaN();
const double kInf = std::numeric_limits<double>::infinity();

void expect_sorted(const Tensor& x, bool descending) {
  const Sorted want = sort_reference(x, 0, descending);
  const ValuesAndIndices got = sort(x, 0, descending);
  ASSERT_EQ(values_of(got.indices), want.indices);
  // Compares bits, so that signs of zero and NaN count.
  std::string bytes;
  const std::string all = bytes_of(x);
  for (const double i : want.indices) bytes += all.substr(static_cast<size_t>(i) * x.itemsize(), x.itemsize());
  ASSERT_TRUE(bytes_of(got.values) == bytes);
}

Tensor random_int64(int64_t n, int64_t low, int64_t high, uint64_t seed) {
  std::mt19937_64 generator(seed);
  std::uniform_int_distribution<int64_t> number(low, high);
  Tensor t = empty({n}, kInt64);
  for (int64_t i = 0; i < n; ++i) t.data<int64_t>()[i] = number(generator);
  return t;
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Sort, Conformance, ::testing::ValuesIn(sort_rows()), row_name);

TEST(Sort, SpecialFloats) {
  for (const ScalarType t : floating_types()) {
    SCOPED_TRACE(std::string(to_string(t)));
    for (const int64_t copies : {1, 40}) {
      std::vector<double> values;
      for (int64_t i = 0; i < copies; ++i)
        for (const double v : {0.0, -kNan, 1.0, -0.0, kInf, -kInf, kNan, -1.0, 0.5, -0.0, -2.0, 0.0})
          values.push_back(v);
      const Tensor x = make({static_cast<int64_t>(values.size())}, t, values);
      expect_sorted(x, false);
      expect_sorted(x, true);
    }
  }
}

TEST(Sort, EveryLength) {
  for (int64_t n = 0; n < 300; n += n < 20 ? 1 : 23) {
    expect_sorted(random({n}, kFloat32, -1, 1, 3), n % 2 == 0);
    expect_sorted(random({n}, kInt8, -100, 100, 4), n % 2 == 1);
    expect_sorted(random({n}, kFloat64, -1, 1, 5), n % 2 == 0);
  }
}

TEST(Sort, KeysOfAllWidths) {
  // The reference compares doubles, so the order of wide integers is checked separately.
  for (const int64_t n : {100, 70'000, 300'000}) {
    for (const auto& [low, high] : std::vector<std::pair<int64_t, int64_t>>{
             {5, 5}, {0, 1}, {-300, 300}, {0, 5'000'000}, {INT64_MIN, INT64_MAX}, {INT64_MAX - 1000, INT64_MAX}}) {
      SCOPED_TRACE(::testing::Message() << n << " keys from " << low << " to " << high);
      const Tensor x = random_int64(n, low, high, 11);
      const int64_t* in = x.data<int64_t>();
      for (const bool descending : {false, true}) {
        const ValuesAndIndices got = sort(x, 0, descending);
        const int64_t *values = got.values.data<int64_t>(), *indices = got.indices.data<int64_t>();
        std::vector<bool> seen(static_cast<size_t>(n), false);
        for (int64_t i = 0; i < n; ++i) {
          ASSERT_EQ(in[indices[i]], values[i]);
          ASSERT_FALSE(seen[static_cast<size_t>(indices[i])]);
          seen[static_cast<size_t>(indices[i])] = true;
          if (i == 0) continue;
          ASSERT_TRUE(descending ? values[i - 1] >= values[i] : values[i - 1] <= values[i]);
          ASSERT_TRUE(values[i - 1] != values[i] || indices[i - 1] < indices[i]);
        }
      }
    }
  }
}

TEST(Sort, EmptyAndWithoutDimensions) {
  EXPECT_EQ(sort(empty({0})).indices.sizes(), IntSpan({0}));
  EXPECT_EQ(sort(empty({3, 0})).values.sizes(), IntSpan({3, 0}));
  const ValuesAndIndices one = sort(make({}, kFloat32, {4}));
  EXPECT_EQ(values_of(one.values), (std::vector<double>{4}));
  EXPECT_EQ(one.indices.dim(), 0);
  EXPECT_THROW(sort(empty({2}), 1), IndexError);
  EXPECT_THROW(argsort(Tensor()), RuntimeError);
}

TEST(Unique, ValuesInverseAndCounts) {
  const std::vector<ScalarType> types = integer_types();
  for (const ScalarType t : types) {
    SCOPED_TRACE(std::string(to_string(t)));
    const UniqueValues got = unique(make({2, 3}, t, {7, 3, 7, 100, 3, 7}), true, true);
    EXPECT_EQ(got.values.dtype(), t);
    EXPECT_EQ(values_of(got.values), (std::vector<double>{3, 7, 100}));
    EXPECT_EQ(got.inverse.sizes(), IntSpan({2, 3}));
    EXPECT_EQ(values_of(got.inverse), (std::vector<double>{1, 0, 1, 2, 0, 1}));
    EXPECT_EQ(values_of(got.counts), (std::vector<double>{2, 3, 1}));
  }
  EXPECT_EQ(values_of(unique(make({3}, kBool, {1, 0, 1})).values), (std::vector<double>{0, 1}));
  const UniqueValues plain = unique(make({2}, kInt64, {1, 1}));
  EXPECT_FALSE(plain.inverse.defined() || plain.counts.defined());
  EXPECT_EQ(unique(empty({0}, kInt64), true, true).counts.sizes(), IntSpan({0}));
  const UniqueValues floats = unique(make({7}, kFloat32, {kNan, 2, -0.0, kNan, 0.0, 2, -1}), true, true);
  EXPECT_EQ(floats.values.numel(), 5);
  EXPECT_EQ(values_of(floats.inverse), (std::vector<double>{3, 2, 1, 4, 1, 2, 0}));
  EXPECT_EQ(values_of(floats.counts), (std::vector<double>{1, 2, 2, 1, 1}));
  EXPECT_TRUE(std::signbit(values_of(floats.values)[1]));
}

TEST(Unique, Slices) {
  const Tensor x = make({4, 2}, kInt32, {3, 1, 0, 5, 3, 1, 0, 4});
  const UniqueValues rows = unique(x, true, true, 0);
  EXPECT_EQ(values_of(rows.values), (std::vector<double>{0, 4, 0, 5, 3, 1}));
  EXPECT_EQ(values_of(rows.inverse), (std::vector<double>{2, 1, 2, 0}));
  EXPECT_EQ(values_of(rows.counts), (std::vector<double>{1, 1, 2}));
  const UniqueValues columns = unique(make({2, 3}, kFloat32, {1, 1, 0, 2, 2, 7}), false, true, 1);
  EXPECT_EQ(values_of(columns.values), (std::vector<double>{0, 1, 7, 2}));
  EXPECT_EQ(values_of(columns.counts), (std::vector<double>{1, 2}));
  EXPECT_EQ(unique(make({2, 1}, kFloat32, {kNan, kNan}), false, false, 0).values.size(0), 2);
  EXPECT_EQ(unique(empty({0, 3}), true, true, 0).values.sizes(), IntSpan({0, 3}));
  TERCEL_EXPECT_THROW(unique(empty({2, 0}), false, false, 0), RuntimeError,
                      "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied");
  TERCEL_EXPECT_THROW(unique(empty({0, 0}), false, false, 0), RuntimeError,
                      "more than one, so unique cannot be applied");
}

TEST(Unique, Consecutive) {
  const UniqueValues runs = unique_consecutive(make({2, 3}, kFloat32, {1, 1, 2, 2, 1, kNan}), true, true);
  EXPECT_EQ(values_of(runs.values).size(), 4u);
  EXPECT_EQ(values_of(runs.inverse), (std::vector<double>{0, 0, 1, 1, 2, 3}));
  EXPECT_EQ(runs.inverse.sizes(), IntSpan({2, 3}));
  EXPECT_EQ(values_of(runs.counts), (std::vector<double>{2, 2, 1, 1}));
  EXPECT_EQ(values_of(unique_consecutive(make({3, 2}, kInt64, {1, 2, 1, 2, 0, 2}), false, false, 0).values),
            (std::vector<double>{1, 2, 0, 2}));
  EXPECT_EQ(unique_consecutive(empty({0}), true, true).counts.numel(), 0);
}

TEST(UniqueThreads, SameForAnyNumberOfThreads) {
  const int64_t threads_before = num_threads();
  for (const auto& [n, high] :
       std::vector<std::pair<int64_t, int64_t>>{{200'000, 3}, {200'000, 90'000}, {60'000, INT64_MAX}}) {
    const Tensor x = random_int64(n, 0, high, 5);
    std::map<int64_t, int64_t> counts;
    for (int64_t i = 0; i < n; ++i) ++counts[x.data<int64_t>()[i]];
    for (const int64_t threads : {1, 2, 5}) {
      set_num_threads(threads);
      const UniqueValues got = unique(x, true, true);
      ASSERT_EQ(got.values.numel(), static_cast<int64_t>(counts.size()));
      int64_t i = 0;
      for (const auto& [value, count] : counts) {
        ASSERT_EQ(got.values.data<int64_t>()[i], value);
        ASSERT_EQ(got.counts.data<int64_t>()[i++], count);
      }
      for (i = 0; i < n; ++i)
        ASSERT_EQ(got.values.data<int64_t>()[got.inverse.data<int64_t>()[i]], x.data<int64_t>()[i]);
      expect_sorted(make({5000}, kFloat32, values_of(random({5000}, kFloat32, -1, 1, 6))), false);
    }
  }
  // Many rows, one thread each.
  set_num_threads(1);
  const Tensor rows = random({64, 1000}, kFloat32, -1, 1, 8);
  const std::string want = bytes_of(argsort(rows, 1)) + bytes_of(argsort(rows, 0));
  set_num_threads(4);
  EXPECT_TRUE(bytes_of(argsort(rows, 1)) + bytes_of(argsort(rows, 0)) == want);
  set_num_threads(threads_before);
}

}  // namespace tercel::test
