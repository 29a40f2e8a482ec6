#include "tercel/ops/random/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tercel/autograd/grad_mode.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/random/random_kernels.h"
#include "tercel/ops/views/views.h"
#include "tercel/util/parallel.h"
#include "tests/ops/random/sample_statistics.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace tercel::test {

TEST(Random, UniformNumbers) {
  for (const ScalarType t : {kFloat32, kFloat64, kFloat16, kBFloat16}) {
    SCOPED_TRACE(std::string(to_string(t)));
    Generator generator(3);
    const Values v = values_of(rand({kMany}, t, generator));
    EXPECT_GE(*std::min_element(v.begin(), v.end()), 0);
    EXPECT_LT(*std::max_element(v.begin(), v.end()), 1);
    // Numbers of 16 bits are multiples of 2^-11, or 2^-8.
    EXPECT_NEAR(mean_of(v), 0.5, tolerance(1.0 / 12) + (t == kBFloat16 ? 2e-3 : t == kFloat16 ? 3e-4 : 0));
    EXPECT_NEAR(variance_of(v), 1.0 / 12, 2e-3);
  }
  Generator generator(4);
  const Values v = values_of(uniform_(empty({kMany}), -3, 5, generator));
  EXPECT_GE(*std::min_element(v.begin(), v.end()), -3);
  EXPECT_LT(*std::max_element(v.begin(), v.end()), 5);
  EXPECT_NEAR(mean_of(v), 1, tolerance(64.0 / 12));
}

TEST(Random, NormalNumbers) {
  for (const ScalarType t : {kFloat32, kFloat64}) {
    Generator generator(5);
    const Values v = values_of(normal_(empty({kMany}, t), 2, 3, generator));
    EXPECT_NEAR(mean_of(v), 2, tolerance(9));
    EXPECT_NEAR(variance_of(v), 9, 0.3);
    // Two thirds lie within one standard deviation.
    const auto near = std::count_if(v.begin(), v.end(), [](double x) { return std::abs(x - 2) < 3; });
    EXPECT_NEAR(static_cast<double>(near) / kMany, 0.6827, 0.01);
  }
}

TEST(Random, Integers) {
  Generator generator(6);
  const Tensor x = randint(-2, 3, {kMany}, kInt64, generator);
  std::vector<int64_t> counts(5, 0);
  for (int64_t i = 0; i < kMany; ++i) ++counts.at(static_cast<size_t>(x.data<int64_t>()[i] + 2));
  for (const int64_t c : counts) EXPECT_NEAR(static_cast<double>(c) / kMany, 0.2, 0.01);
  EXPECT_EQ(randint(0, 2, {3}, kUInt8, generator).dtype(), kUInt8);
  EXPECT_THROW(randint(3, 3, {1}), RuntimeError);
}

TEST(Random, UniformNumbersStayBelowTheirEnd) {
  Generator generator(10);
  for (const ScalarType t : {kFloat32, kFloat16, kBFloat16}) {
    // Drawn numbers are rounded to one of two, or three.
    const Values v = values_of(
        uniform_(empty({10'000}, t), t == kFloat32 ? 16777216 : 256, t == kFloat32 ? 16777218 : 258, generator));
    EXPECT_EQ(*std::max_element(v.begin(), v.end()), t == kFloat16 ? 257.75 : *std::min_element(v.begin(), v.end()));
  }
  EXPECT_THROW(uniform_(empty({2}), 0, 1e39), RuntimeError);
  EXPECT_THROW(uniform_(empty({2}, kFloat16), -60000, 60000), RuntimeError);
}

TEST(Random, ComplexNumbers) {
  Generator generator(11);
  const Values flat = values_of(rand({10}, kFloat64, generator));
  generator.set_seed(11);
  const Tensor z = rand({5}, kComplex128, generator);
  const auto* parts = static_cast<const double*>(z.data_ptr());
  EXPECT_EQ(Values(parts, parts + 10), flat);
  for (const ScalarType t : {kComplex64, kComplex128}) {
    const Tensor x = to(normal_(empty({kMany}, t), 3, 2, generator), kComplex128);
    const auto* p = static_cast<const double*>(x.data_ptr());
    Values re, im;
    for (int64_t i = 0; i < kMany; ++i) {
      re.push_back(p[2 * i]);
      im.push_back(p[2 * i + 1]);
    }
    EXPECT_NEAR(mean_of(re), 3, tolerance(2));
    EXPECT_NEAR(mean_of(im), 0, tolerance(2));
    EXPECT_NEAR(variance_of(re), 2, 0.06);
    EXPECT_NEAR(variance_of(im), 2, 0.06);
  }
}

TEST(Random, ExponentialCauchyAndLogNormal) {
  Generator generator(12);
  for (const ScalarType t : {kFloat32, kFloat64}) {
    const Values e = values_of(exponential_(empty({kMany}, t), 0.5, generator));
    EXPECT_NEAR(mean_of(e), 2, tolerance(4));
    EXPECT_GT(*std::min_element(e.begin(), e.end()), 0);
    const auto beyond = std::count_if(e.begin(), e.end(), [](double x) { return x > 6; });
    EXPECT_NEAR(static_cast<double>(beyond) / kMany, std::exp(-3.0), tolerance(0.05));
    Values c = values_of(cauchy_(empty({kMany}, t), 4, 3, generator));
    std::sort(c.begin(), c.end());
    EXPECT_NEAR(c[kMany / 4], 1, 0.1);
    EXPECT_NEAR(c[kMany / 2], 4, 0.1);
    EXPECT_NEAR(c[3 * kMany / 4], 7, 0.1);
    Values l = values_of(log_normal_(empty({kMany}, t), 1, 0.5, generator));
    for (double& x : l) x = std::log(x);
    EXPECT_NEAR(mean_of(l), 1, tolerance(0.25));
    EXPECT_NEAR(variance_of(l), 0.25, 0.01);
  }
  const Values tiny = values_of(exponential_(empty({kMany}, kFloat16), 3, generator));
  EXPECT_GT(*std::min_element(tiny.begin(), tiny.end()), 0);
  EXPECT_EQ(values_of(exponential_(empty({2}), HUGE_VAL)), (Values{0, 0}));
  EXPECT_THROW(exponential_(empty({2}), 0), RuntimeError);
  EXPECT_THROW(exponential_(empty({2}), -1), RuntimeError);
  EXPECT_THROW(exponential_(empty({2}, kInt64)), RuntimeError);
  EXPECT_THROW(cauchy_(empty({2}), 0, 0), RuntimeError);
  EXPECT_THROW(cauchy_(empty({2}, kInt32)), RuntimeError);
  EXPECT_THROW(log_normal_(empty({2}), 0, 0), RuntimeError);
  EXPECT_THROW(log_normal_(empty({2}, kInt64)), NotImplementedError);
}

TEST(Random, Geometric) {
  Generator generator(13);
  for (const ScalarType t : {kFloat32, kInt64, kInt16}) {
    const Values v = values_of(geometric_(empty({kMany}, t), 0.3, generator));
    EXPECT_EQ(*std::min_element(v.begin(), v.end()), 1);
    EXPECT_NEAR(mean_of(v), 1 / 0.3, tolerance(0.7 / 0.09));
    EXPECT_NEAR(static_cast<double>(std::count(v.begin(), v.end(), 2.0)) / kMany, 0.21, tolerance(0.17));
  }
  EXPECT_THROW(geometric_(empty({2}), 0), RuntimeError);
  EXPECT_THROW(geometric_(empty({2}), 1), RuntimeError);
  EXPECT_THROW(geometric_(empty({2}, kBool), 0.5), NotImplementedError);
}

TEST(Random, IntegersOfADtypesRange) {
  Generator generator(14);
  const auto range_of = [&](const Tensor& x) {
    const Values v = values_of(x);
    return std::pair(*std::min_element(v.begin(), v.end()), *std::max_element(v.begin(), v.end()));
  };
  using Range = std::pair<double, double>;
  EXPECT_EQ(range_of(random_(empty({kMany}, kUInt8), generator)), (Range{0, 255}));
  EXPECT_EQ(range_of(random_(empty({kMany}, kInt8), generator)), (Range{0, 127}));
  EXPECT_EQ(range_of(random_(empty({kMany}, kBool), generator)), (Range{0, 1}));
  EXPECT_EQ(range_of(random_(empty({kMany}, kBFloat16), generator)), (Range{0, 256}));
  EXPECT_EQ(range_of(random_(empty({kMany}, kFloat16), generator)), (Range{0, 2048}));
  EXPECT_EQ(range_of(random_(empty({kMany}, kInt8), -128, {}, generator)), (Range{-128, 127}));
  EXPECT_EQ(range_of(random_(empty({kMany}, kFloat32), -2, 3, generator)), (Range{-2, 2}));
  const auto [low, high] = range_of(random_(empty({kMany}, kInt64), INT64_MIN, {}, generator));
  EXPECT_LT(low, -9.2e18);
  EXPECT_GT(high, 9.2e18);
  // From 2^24 on float32 has even numbers only: 2^24 + 2 and + 4 of those from + 1 to + 5.
  EXPECT_EQ(range_of(random_(empty({kMany}, kFloat32), 16777217, 16777222, generator)), (Range{16777218, 16777220}));
  EXPECT_THROW(random_(empty({2}, kFloat32), 16777217, 16777218), RuntimeError);
  EXPECT_EQ(message_of<RuntimeError>([] { random_(empty({2}, kUInt8), 0, 257); }),
            "to - 1 is out of bounds for unsigned char");
  EXPECT_EQ(message_of<RuntimeError>([] { random_(empty({2}, kInt16), -40000, {}); }),
            "from is out of bounds for short int");
  EXPECT_THROW(random_(empty({2}, kFloat16), 0, 70000), RuntimeError);
  EXPECT_THROW(random_(empty({2}, kBool), 0, 3), RuntimeError);
  EXPECT_THROW(random_(empty({2}, kUInt64), -1, 3), RuntimeError);
  EXPECT_THROW(random_(empty({2}), 3, 3), RuntimeError);
  EXPECT_THROW(random_(empty({2}, kComplex64)), NotImplementedError);
}

TEST(Random, PermutationsOfOtherDtypes) {
  for (const ScalarType t : {kUInt8, kInt32, kFloat16, kFloat32}) {
    Values v = values_of(randperm(200, t));
    std::sort(v.begin(), v.end());
    for (size_t i = 0; i < v.size(); ++i) ASSERT_EQ(v[i], static_cast<double>(i));
  }
  EXPECT_EQ(randperm(256, kUInt8).dtype(), kUInt8);
  EXPECT_THROW(randperm(257, kUInt8), RuntimeError);
  EXPECT_EQ(randperm(2049, kFloat16).numel(), 2049);
  EXPECT_THROW(randperm(2050, kFloat16), RuntimeError);
  EXPECT_THROW(randperm((int64_t{1} << 53) + 2, kFloat64), RuntimeError);
  EXPECT_THROW(randperm(2, kBool), NotImplementedError);
}

TEST(Random, BernoulliAndPermutations) {
  Generator generator(7);
  EXPECT_NEAR(mean_of(values_of(bernoulli_(empty({kMany}), 0.3, generator))), 0.3, tolerance(0.21));
  EXPECT_EQ(values_of(bernoulli_(empty({50}, kBool), 1, generator)), Values(50, 1));
  EXPECT_EQ(values_of(bernoulli_(empty({50}), 0, generator)), Values(50, 0));
  Values order = values_of(randperm(1000, generator));
  EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
  EXPECT_NE(values_of(randperm(1000, generator)), order);
  std::sort(order.begin(), order.end());
  for (size_t i = 0; i < order.size(); ++i) ASSERT_EQ(order[i], static_cast<double>(i));
  EXPECT_EQ(randperm(0).numel(), 0);
}

TEST(Random, SameSeedSameNumbersWhateverThePlacement) {
  Generator generator(8);
  const std::string first = bytes_of(randn({13, 40}, {}, generator)), second = bytes_of(randn({13, 40}, {}, generator));
  EXPECT_NE(first, second);
  generator.set_seed(8);
  EXPECT_EQ(bytes_of(randn({13, 40}, {}, generator)), first);
  generator.set_seed(8);
  const Tensor transposed = t(empty({40, 13}));
  EXPECT_EQ(bytes_of(normal_(transposed, 0, 1, generator)), first);
  // The head of a longer tensor is the same.
  generator.set_seed(8);
  EXPECT_EQ(bytes_of(randn({7}, {}, generator)), first.substr(0, 28));
}

TEST(Random, WrongOperands) {
  EXPECT_THROW(uniform_(empty({2}), 3, 1), RuntimeError);
  EXPECT_THROW(normal_(empty({2}), 0, -1), RuntimeError);
  EXPECT_THROW(bernoulli_(empty({2}), 1.5), RuntimeError);
  EXPECT_THROW(uniform_(empty({2}, kInt64)), Error);
  EXPECT_THROW(randperm(-1), RuntimeError);
  Tensor leaf = empty({2});
  leaf.requires_grad_();
  EXPECT_THROW(normal_(leaf), RuntimeError);
  const NoGradGuard no_grad;
  const uint32_t version = leaf.version();
  normal_(leaf);
  EXPECT_GT(leaf.version(), version);
}

TEST(RandomThreads, SameNumbersForAnyNumberOfThreads) {
  const int64_t before = num_threads();
  std::string want;
  for (const int64_t threads : {1, 2, 5}) {
    set_num_threads(threads);
    Generator generator(9);
    std::string got = bytes_of(randn({100'001}, {}, generator));
    got +=
        bytes_of(rand({70'003}, kFloat64, generator)) + bytes_of(randint(0, 1'000'000, {50'000}, kInt64, generator)) +
        bytes_of(bernoulli_(empty({33'333}), 0.5, generator)) + bytes_of(randperm(30'000, generator)) +
        bytes_of(exponential_(empty({40'001}), 2, generator)) + bytes_of(random_(empty({40'001}, kInt16), generator)) +
        bytes_of(geometric_(empty({40'001}, kInt64), 0.01, generator)) +
        bytes_of(normal_(empty({20'001}, kComplex64), 0, 1, generator));
    if (threads == 1) want = got;
    EXPECT_TRUE(got == want) << threads << " threads";
  }
  set_num_threads(before);
}

TEST(Random, SameNumbersOnEveryInstructionSet) {
  const CpuIsa before = cpu_isa();
  std::string want;
  for (const CpuIsa isa : {CpuIsa::Generic, CpuIsa::Avx2, CpuIsa::Avx512}) {
    if (isa > best_cpu_isa()) continue;
    set_cpu_isa(isa);
    Generator generator(10);
    std::string got;
    for (const ScalarType t : {kFloat32, kFloat64, kFloat16, kBFloat16, kComplex64})
      got += bytes_of(randn({3'001}, t, generator)) + bytes_of(uniform_(empty({3'001}, t), -1, 2, generator));
    for (const ScalarType t : {kFloat32, kFloat64})
      got += bytes_of(exponential_(empty({3'001}, t), 2, generator)) +
             bytes_of(log_normal_(empty({3'001}, t), 0, 1, generator)) +
             bytes_of(bernoulli_(empty({3'001}, t), 0.3, generator));
    got += bytes_of(geometric_(empty({3'001}, kInt64), 0.01, generator)) + bytes_of(randperm(3'001, generator)) +
           bytes_of(randint(0, 1'000'000, {3'001}, kInt64, generator));
    if (isa == CpuIsa::Generic) want = got;
    EXPECT_TRUE(got == want) << to_string(isa);
  }
  set_cpu_isa(before);
}

TEST(Random, NumbersAreThoseOfTheStream) {
  constexpr int64_t kCount = 40'003;  // several batches, and no whole block at the end
  const Philox philox{11, 0};
  const auto bits = [&](int64_t i) {
    const PhiloxBlock block = philox(static_cast<uint64_t>(i / 2));
    return random_u64(block.word[i % 2 * 2], block.word[i % 2 * 2 + 1]);
  };
  const auto drawn = [&](ScalarType type, auto draw) {
    Generator generator(11);
    return values_of(draw(empty({kCount}, type), generator));
  };
  const auto normal = [](const Tensor& x, Generator& generator) { return normal_(x, 0, 1, generator); };
  const auto uniform = [](const Tensor& x, Generator& generator) { return uniform_(x, 0, 1, generator); };
  const auto exponential = [](const Tensor& x, Generator& generator) { return exponential_(x, 1, generator); };
  const Values normal32 = drawn(kFloat32, normal), normal64 = drawn(kFloat64, normal);
  const Values uniform32 = drawn(kFloat32, uniform), uniform64 = drawn(kFloat64, uniform);
  const Values exponential64 = drawn(kFloat64, exponential);
  for (int64_t i = 0; i < kCount; ++i) {
    const auto at = static_cast<size_t>(i);
    const PhiloxBlock block = philox(static_cast<uint64_t>(i / 4));
    ASSERT_EQ(uniform32[at], uniform_f32(block.word[i % 4])) << i;
    ASSERT_EQ(uniform64[at], uniform_f64(bits(i))) << i;
    const NormalPairF32 pair32 = normal_f32(block.word[i % 4 / 2 * 2], block.word[i % 4 / 2 * 2 + 1]);
    ASSERT_NEAR(normal32[at], i % 2 == 0 ? pair32.first : pair32.second, 2e-6) << i;
    const NormalPairF64 pair64 = normal_f64(bits(i / 2 * 2), bits(i / 2 * 2 + 1));
    ASSERT_NEAR(normal64[at], i % 2 == 0 ? pair64.first : pair64.second, 4e-15) << i;
    const double u = (static_cast<double>(bits(i) >> 12) + 0.5) * 0x1p-52;
    ASSERT_NEAR(exponential64[at], -std::log(u), 1e-15 * std::max(1.0, -std::log(u))) << i;
  }
}

TEST(Random, NormalNumbersOfExtremeBits) {
  constexpr KernelTable<NormalF32Fn> kF32 = TERCEL_CPU_KERNELS(normal_numbers_f32);
  constexpr KernelTable<NormalF64Fn> kF64 = TERCEL_CPU_KERNELS(normal_numbers_f64);
  std::vector<uint32_t> words(64, 0);
  float f32[32];
  double f64[32];
  kF32[kCpu](words.data(), 32, f32);
  kF64[kCpu](words.data(), 32, f64);
  EXPECT_NEAR(f32[0], std::sqrt(48 * std::log(2.0)), 1e-6);
  EXPECT_NEAR(f64[0], std::sqrt(106 * std::log(2.0)), 1e-14);
  EXPECT_EQ(f32[1], 0);
  EXPECT_EQ(f64[1], 0);
  std::fill(words.begin(), words.end(), UINT32_MAX);
  kF32[kCpu](words.data(), 32, f32);
  kF64[kCpu](words.data(), 32, f64);
  for (int i = 0; i < 32; ++i) {
    EXPECT_EQ(f32[i], 0) << i;
    EXPECT_EQ(f64[i], 0) << i;
  }
}

TEST(Random, LikeAnother) {
  const Tensor x = ones({5, 4}, kFloat64).t();
  Generator a(3), b(3);
  const auto same = [](const Tensor& got, const Tensor& want) {
    EXPECT_EQ(got.sizes(), want.sizes());
    EXPECT_EQ(got.dtype(), want.dtype());
    EXPECT_EQ(bytes_of(got), bytes_of(want));
    EXPECT_EQ(got.version(), 0U);
  };
  constexpr auto kRows = MemoryFormat::Contiguous;
  same(rand_like(x, kRows, a), rand({4, 5}, kFloat64, b));
  same(randn_like(x, kFloat32, kRows, a), randn({4, 5}, kFloat32, b));
  same(randint_like(x, 9, kRows, a), randint(9, {4, 5}, kFloat64, b));
  same(randint_like(x, 9, kInt32, kRows, a), randint(0, 9, {4, 5}, kInt32, b));
  same(randint_like(x, -2, 9, kRows, a), randint(-2, 9, {4, 5}, kFloat64, b));
  same(randint_like(x, -2, 9, kInt16, kRows, a), randint(-2, 9, {4, 5}, kInt16, b));
  EXPECT_EQ(rand_like(x).strides(), x.strides());
  EXPECT_EQ(randn_like(x).strides(), x.strides());
  EXPECT_FALSE(rand_like(ones({2}).requires_grad_()).requires_grad());
  TensorOptions leaf;
  leaf.requires_grad = true;
  EXPECT_TRUE(rand_like(x, leaf).requires_grad());
}

}  // namespace tercel::test
