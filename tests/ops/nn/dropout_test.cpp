#include "tercel/ops/nn/dropout.h"

#include <cmath>

#include "tercel/autograd/autograd.h"
#include "tercel/core/dispatch.h"
#include "tercel/util/parallel.h"
#include "tercel/util/philox.h"
#include "tests/ops/conformance.h"
#include "tests/ops/nn/dropout_rows.h"
#include "tests/support/errors.h"
#include "tests/support/gradcheck.h"

namespace tercel::test {

namespace {

Tensor ones(const Sizes& sizes, ScalarType dtype = kFloat32) {
  const Tensor shape = empty(sizes, dtype);
  return make(sizes, dtype, std::vector<double>(static_cast<size_t>(shape.numel()), 1));
}

Tensor dropped(const Tensor& x, double p, uint64_t seed) {
  Generator generator(seed);
  return dropout(x, p, true, generator);
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Dropout, Conformance, ::testing::ValuesIn(dropout_rows()), row_name);

TEST(Dropout, KeepsAndScalesTheRightShare) {
  const int64_t n = 200'000;
  for (const double p : {0.1, 0.5, 0.9}) {
    SCOPED_TRACE(p);
    int64_t kept = 0;
    for (const double v : values_of(dropped(ones({n}), p, 3))) {
      if (v == 0) continue;
      ASSERT_FLOAT_EQ(static_cast<float>(v), static_cast<float>(1 / (1 - p)));
      ++kept;
    }
    // Five standard deviations.
    EXPECT_NEAR(static_cast<double>(kept), (1 - p) * static_cast<double>(n),
                5 * std::sqrt(p * (1 - p) * static_cast<double>(n)));
  }
}

TEST(Dropout, NumbersDoNotDependOnPlacementOrDtype) {
  const Tensor x = ones({13, 40});
  const std::vector<double> want = values_of(dropped(x, 0.5, 9));
  for (const Placement placement : placements()) EXPECT_EQ(values_of(dropped(placed(x, placement), 0.5, 9)), want);
  for (const ScalarType t : {kFloat64, kFloat16, kBFloat16})
    EXPECT_EQ(values_of(dropped(ones({13, 40}, t), 0.5, 9)), want);
  const CpuIsa before = cpu_isa();
  for (const CpuIsa isa : {CpuIsa::Generic, CpuIsa::Avx2, CpuIsa::Avx512}) {
    if (isa > best_cpu_isa()) continue;
    set_cpu_isa(isa);
    EXPECT_EQ(values_of(dropped(x, 0.5, 9)), want);
  }
  set_cpu_isa(before);
}

TEST(Dropout, CallsTakeTheirOwnNumbers) {
  Generator generator(1);
  const Tensor x = ones({1000});
  const std::string first = bytes_of(dropout(x, 0.5, true, generator));
  EXPECT_NE(bytes_of(dropout(x, 0.5, true, generator)), first);
  generator.set_seed(1);
  EXPECT_EQ(bytes_of(dropout(x, 0.5, true, generator)), first);
}

TEST(Dropout, GradientIsDroppedAlike) {
  Tensor x = ones({70}, kFloat64);
  x.requires_grad_();
  const Tensor out = dropped(x, 0.4, 5), incoming = ones({70}, kFloat64);
  const Gradient g = grad(Span<Tensor>(&out, 1), Span<Tensor>(&x, 1), Span<Tensor>(&incoming, 1))[0];
  EXPECT_EQ(values_of(g.values), values_of(out));
  EXPECT_TRUE(gradcheck([](const std::vector<Tensor>& in) { return dropped(in[0], 0.4, 5); }, {x}));
}

TEST(Dropout, PartsHaveThePartsOfAMask) {
  const Tensor x = ones({500});
  const DropoutMask mask{3, 11, 70};
  const std::vector<double> whole = values_of(dropout(x, 0.4, mask));
  for (const ScalarType dtype : {kFloat32, kFloat64})
    for (const int64_t first : {0, 1, 57, 58, 63, 64, 65, 122, 499, 500}) {
      SCOPED_TRACE(first);
      DropoutMask rest = mask;
      rest.first += first;
      std::vector<double> parts = values_of(dropout(ones({first}, dtype), 0.4, mask));
      for (const double v : values_of(dropout(ones({500 - first}, dtype), 0.4, rest))) parts.push_back(v);
      for (double& v : parts) v = static_cast<float>(v);
      EXPECT_EQ(parts, whole);
    }
  EXPECT_NE(values_of(dropout(x, 0.4, {4, 11, 70})), whole);
  EXPECT_NE(values_of(dropout(x, 0.4, {3, 12, 70})), whole);
  EXPECT_TRUE(dropout(x, 0, mask).is_same(x));
  EXPECT_EQ(values_of(dropout(x, 1, mask)), std::vector<double>(500, 0));
  TERCEL_EXPECT_THROW(dropout(x, 0.4, {3, 11, -1}), RuntimeError,
                      "dropout: expected positions from 0 to 2^63 - 1 but got 500 from -1 on");
  TERCEL_EXPECT_THROW(dropout(x, 0.4, {3, 11, INT64_MAX - 499}), RuntimeError, "but got 500 from");
  const std::vector<double> last = values_of(dropout(x, 0.4, {3, 11, INT64_MAX - 500}));
  for (size_t i = 0; i < last.size(); ++i) {
    const auto k = static_cast<uint64_t>(INT64_MAX - 500) + i;
    const uint32_t word = Philox{3, 11}(k / 64 * 16 + k % 16).word[k % 64 / 16];
    EXPECT_EQ(last[i] != 0, word >= std::nearbyint(0.4 * 0x1p32)) << i;
  }
  EXPECT_TRUE(gradcheck([&](const std::vector<Tensor>& in) { return dropout(in[0], 0.4, mask); },
                        {ones({70}, kFloat64).requires_grad_()}));
}

TEST(Dropout, NothingEverythingAndWrongOperands) {
  const Tensor x = ones({3});
  EXPECT_TRUE(dropped(x, 0, 1).is_same(x));
  EXPECT_TRUE(dropout(x, 0.5, false).is_same(x));
  EXPECT_EQ(values_of(dropped(x, 1, 1)), std::vector<double>(3, 0));
  EXPECT_EQ(dropped(empty({0, 4}), 0.5, 1).sizes(), IntSpan({0, 4}));
  EXPECT_THROW(dropout(x, 1.5), RuntimeError);
  EXPECT_THROW(dropout(x, std::nan("")), RuntimeError);
  EXPECT_THROW(dropout(ones({3}, kInt64)), RuntimeError);
  // An infinite element that is dropped leaves no NaN.
  const Tensor inf = make({64}, kFloat32, std::vector<double>(64, INFINITY));
  for (const double v : values_of(dropped(inf, 0.5, 1))) EXPECT_FALSE(std::isnan(v));
}

TEST(DropoutThreads, SameBitsForAnyNumberOfThreads) {
  const int64_t before = num_threads();
  const Tensor x = ones({100'003});
  set_num_threads(1);
  const std::string want = bytes_of(dropped(x, 0.3, 8));
  set_num_threads(5);
  EXPECT_TRUE(bytes_of(dropped(x, 0.3, 8)) == want);
  set_num_threads(before);
}

}  // namespace tercel::test
