#include "tercel/ops/reduce/reduce.h"

#include "tercel/autograd/autograd.h"
#include "tercel/core/dispatch.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/views/views.h"
#include "tercel/util/parallel.h"
#include "tests/ops/conformance.h"
#include "tests/ops/reduce/reduce_rows.h"
#include "tests/support/errors.h"
#include "tests/support/gradcheck.h"

namespace tercel::test {

INSTANTIATE_TEST_SUITE_P(Reduce, Conformance, ::testing::ValuesIn(reduce_rows()), row_name);

namespace {

const double kNan = std::numeric_limits<double>::quiet_NaN();
const double kInf = std::numeric_limits<double>::infinity();

Tensor vector(const std::vector<double>& values, ScalarType dtype = kFloat32) {
  return make({static_cast<int64_t>(values.size())}, dtype, values);
}

double number(const Tensor& t) { return values_of(t).at(0); }

/** Row-major integers in [-50, 50]. */
Tensor whole_numbers(const Sizes& sizes, ScalarType dtype) {
  Tensor t = empty(sizes, dtype);
  std::vector<double> values(static_cast<size_t>(t.numel()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i * 2654435761u % 101) - 50;
  set_values(t, values);
  return t;
}

std::vector<double> gradient_of(const Tensor& out, const Tensor& x) {
  return values_of(grad(Span<Tensor>(&out, 1), Span<Tensor>(&x, 1))[0].values);
}

}  // namespace

TEST(Reduce, DtypesOfResults) {
  EXPECT_EQ(sum(vector({1, 1}, kBool)).dtype(), kInt64);
  EXPECT_EQ(sum(vector({100, 100, 100}, kUInt8)).dtype(), kInt64);
  EXPECT_EQ(number(sum(vector({100, 100, 100}, kUInt8))), 300);
  EXPECT_EQ(number(prod(vector({100, 100}, kInt8))), 10000);
  EXPECT_EQ(sum(vector({1}, kFloat16)).dtype(), kFloat16);
  EXPECT_EQ(max(vector({1, 0}, kBool)).dtype(), kBool);
  EXPECT_EQ(any(vector({1, 0}, kFloat32)).dtype(), kBool);
  // 16-bit floats are added in float32: 2049 ones are more than float16 can count.
  EXPECT_EQ(number(sum(make({4096}, kFloat16, std::vector<double>(4096, 1)))), 4096);
}

TEST(Reduce, EveryBlockOfLargeReductionsCounts) {
  // Integers, whose sums are exact in float32: any omitted or repeated element changes the result.
  const std::vector<std::pair<Sizes, Sizes>> cases = {
      {{300'001}, {}},     {{3, 150'001}, {1}},     {{2500, 301}, {0}},    {{1300, 1030}, {0}},
      {{100'003, 3}, {0}}, {{40'000, 17}, {0}},     {{2, 2500, 20}, {1}},  {{70, 50, 60}, {0, 2}},
      {{200'000, 2}, {1}}, {{50, 2, 3000}, {0, 1}}, {{1, 70'000, 1}, {1}},
  };
  const CpuIsa before = cpu_isa();
  for (const CpuIsa isa : {CpuIsa::Generic, CpuIsa::Avx2, CpuIsa::Avx512}) {
    if (isa > best_cpu_isa()) continue;
    set_cpu_isa(isa);
    for (const auto& [sizes, dims] : cases) {
      for (const ScalarType dtype : {kFloat32, kInt16}) {
        SCOPED_TRACE(::testing::Message()
                     << to_string(isa) << " sizes " << sizes[0] << ", " << sizes.size() << " dims");
        const Tensor x = whole_numbers(sizes, dtype);
        EXPECT_EQ(values_of(sum(x, dims)), values_of(reduce_reference(x, dims, false, sum_of)));
        EXPECT_EQ(values_of(amax(x, dims)), values_of(reduce_reference(x, dims, false, max_of)));
      }
    }
  }
  set_cpu_isa(before);
}

TEST(Reduce, InAnotherDtype) {
  const Tensor x = vector({1.75, 2.75, kNan});
  EXPECT_EQ(sum(vector({1, 2}, kInt32), {}, false, kFloat64).dtype(), kFloat64);
  EXPECT_EQ(number(sum(vector({1.75, 2.75}), {}, false, kInt64)), 3);
  EXPECT_EQ(number(sum(vector({200, 100}, kInt32), {}, false, kUInt8)), 44);
  EXPECT_EQ(number(mean(vector({1, 2}, kInt64), {}, false, kFloat32)), 1.5);
  EXPECT_EQ(prod(vector({3, 2}, kFloat16), {0}, true, kFloat32).dtype(), kFloat32);
  EXPECT_EQ(number(nansum(x)), 4.5);
  EXPECT_EQ(number(nansum(x, {0}, false, kInt64)), 3);
  EXPECT_EQ(number(nanmean(x)), 2.25);
  EXPECT_TRUE(std::isnan(number(nanmean(vector({kNan})))));
  EXPECT_EQ(message_of<RuntimeError>([] { mean(vector({1}, kInt64)); }),
            "mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: "
            "Long");
  EXPECT_EQ(message_of<RuntimeError>([] { mean(vector({1}), {}, false, kInt64); }),
            "mean(): could not infer output dtype. Optional dtype must be either a floating point or complex dtype. "
            "Got: Long");
  Tensor halves = vector({1, 2}, kFloat16);
  halves.requires_grad_();
  for (const Tensor& out : {sum(halves, {}, false, kFloat32), mean(halves, {}, false, kFloat64),
                            prod(halves, {0}, false, kFloat64), nansum(halves, {}, false, kFloat32)})
    EXPECT_EQ(grad(Span<Tensor>(&out, 1), Span<Tensor>(&halves, 1))[0].values.dtype(), kFloat16);
  Tensor missing = vector({1, kNan}, kFloat64);
  missing.requires_grad_();
  EXPECT_EQ(gradient_of(nansum(missing), missing), (std::vector<double>{1, 0}));
  EXPECT_EQ(gradient_of(nanmean(missing), missing), (std::vector<double>{1, 0}));
}

TEST(Reduce, ExtremesOfNothing) {
  EXPECT_EQ(message_of<IndexError>([] { argmax(zeros({0})); }),
            "argmax(): Expected reduction dim to be specified for input.numel() == 0.");
  EXPECT_EQ(message_of<IndexError>([] {
              argmin(zeros({2, 0}), 1);
            }),
            "argmin(): Expected reduction dim 1 to have non-zero size.");
  TERCEL_EXPECT_THROW(aminmax(zeros({0})), RuntimeError, "aminmax(): cannot compute aminmax over an empty dimension");
  EXPECT_EQ(argmax(zeros({2, 3}), std::nullopt, true).sizes(), IntSpan({1, 1}));
  EXPECT_EQ(any(vector({2, 0}, kUInt8)).dtype(), kUInt8);
  const MinAndMax both = aminmax(vector({2, -1, 5}), 0);
  EXPECT_EQ(number(both.min), -1);
  EXPECT_EQ(number(both.max), 5);
}

TEST(Reduce, SumOf64MillionElements) {
  // Pairwise above the blocks: an error of some units, where a running float32 sum stops growing at 2^21.
  const int64_t n = int64_t{64} << 20;
  const double want = static_cast<double>(0.1f) * static_cast<double>(n);
  EXPECT_NEAR(number(sum(full({n}, 0.1f))) / want, 1, 4 * 0x1p-24);
}

TEST(Reduce, SumsStayAccurate) {
  // Sequential float32 addition of a million times 0.1 would be off by 0.9 %.
  const int64_t n = 1'000'000;
  const Tensor x = make({n}, kFloat32, std::vector<double>(static_cast<size_t>(n), 0.1));
  const double want = static_cast<double>(0.1f) * static_cast<double>(n);
  const Tensor tall = Tensor(make_intrusive<TensorImpl>(x.storage(), kFloat32, Sizes{n / 40, 40}));
  EXPECT_NEAR(number(sum(x)), want, want * 2e-7);
  EXPECT_NEAR(number(mean(x)), 0.1, 1e-7);
  for (const double column : values_of(sum(tall, {0}))) EXPECT_NEAR(column, want / 40, want / 40 * 1e-6);
}

TEST(Reduce, NanGetsThrough) {
  for (const int64_t n : {1, 3, 8, 40, 1000}) {
    for (const int64_t at : {int64_t{0}, n / 2, n - 1}) {
      SCOPED_TRACE(::testing::Message() << n << " elements, NaN at " << at);
      std::vector<double> values(static_cast<size_t>(n), -1);
      values[static_cast<size_t>(at)] = kNan;
      const Tensor x = vector(values), column = make({n, 1}, kFloat32, values);
      const Tensor columns = make({n, 20}, kFloat32, [&] {
        std::vector<double> all;
        for (const double v : values) all.insert(all.end(), 20, v);
        return all;
      }());
      for (const Tensor& result : {max(x), min(x), amax(column, {0}), amin(x, {0}), max(x, 0).values, min(x, 0).values,
                                   norm(x, HUGE_VAL), sum(x), prod(x)})
        EXPECT_TRUE(std::isnan(number(result)));
      EXPECT_EQ(number(argmax(x)), at);
      EXPECT_EQ(number(argmin(x, 0)), at);
      EXPECT_EQ(values_of(max(columns, 0).indices), std::vector<double>(20, static_cast<double>(at)));
      EXPECT_EQ(values_of(min(columns, 0).indices), std::vector<double>(20, static_cast<double>(at)));
      for (const double v : values_of(amax(columns, {0}))) EXPECT_TRUE(std::isnan(v));
    }
  }
  // The first of several.
  EXPECT_EQ(number(argmax(vector({1, kNan, kInf, kNan}))), 1);
}

TEST(Reduce, FirstOfEqualOnesIsFound) {
  std::vector<double> values(2000, 1);
  values[700] = values[1500] = 5;
  values[300] = values[1900] = -5;
  const Tensor x = vector(values);
  EXPECT_EQ(number(argmax(x)), 700);
  EXPECT_EQ(number(argmin(x)), 300);
  EXPECT_EQ(number(argmax(vector({-kInf, -kInf}))), 0);
  EXPECT_EQ(number(argmin(make({3, 2}, kInt8, {5, 4, 4, 4, 4, 9}))), 1);
  EXPECT_EQ(values_of(argmin(make({3, 2}, kInt8, {5, 4, 4, 4, 4, 9}), 0)), (std::vector<double>{1, 0}));
  EXPECT_EQ(values_of(max(make({2, 17}, kInt64, std::vector<double>(34, 3)), 0).indices), std::vector<double>(17, 0));
  EXPECT_EQ(number(max(make({2}, kInt64, {9007199254740992.0, 0})).dtype() == kInt64 ? vector({1}) : vector({0})), 1);
}

TEST(Reduce, BestOfLongRows) {
  constexpr int64_t kLength = 9000;
  for (const ScalarType t : {kFloat32, kFloat64, kBFloat16, kInt32, kInt64, kUInt8}) {
    for (const int64_t at : {0, 15, 16, 1023, 1024, 4095, 4096, 5000, 8191, 8192, 8999}) {
      SCOPED_TRACE(::testing::Message() << to_string(t) << " at " << at);
      std::vector<double> values(kLength, 3);
      values[static_cast<size_t>(at)] = 7;
      values.back() = 7;
      const Tensor x = make({1, kLength}, t, values), apart = transpose(make({kLength, 2}, t,
                                                                             [&] {
                                                                               std::vector<double> twice;
                                                                               for (const double v : values) {
                                                                                 twice.push_back(0);
                                                                                 twice.push_back(v);
                                                                               }
                                                                               return twice;
                                                                             }()),
                                                                        0, 1);
      for (const Tensor& row : {x, narrow(apart, 0, 1, 1)}) {
        EXPECT_EQ(number(max(row, 1).values), 7);
        EXPECT_EQ(number(max(row, 1).indices), static_cast<double>(at));
        if (!is_floating(t)) continue;
        const Tensor with_nan = clone(row);
        fill_(narrow(with_nan, 1, 4500, 2), kNan);
        EXPECT_EQ(number(max(with_nan, 1).indices), 4500);
        EXPECT_EQ(number(argmin(with_nan, 1)), 4500);
      }
    }
  }
}

TEST(Reduce, BestOfManyShortRows) {
  for (const ScalarType t : {kFloat32, kFloat64, kBFloat16, kInt32, kInt64, kUInt64}) {
    for (const int64_t n : {1, 2, 7, 16, 33, 64, 65}) {
      const Tensor x = t == kUInt64 ? to(abs(whole_numbers({37, n}, kInt64)), t) : whole_numbers({37, n}, t);
      if (is_floating(t)) {
        fill_(select(x, 0, 3), kNan);
        fill_(select(x, 1, n / 2), kNan);
        fill_(narrow(x, 0, 10, 20), -kInf);
      }
      // The same numbers as columns.
      const Tensor columns = contiguous(transpose(x, 0, 1));
      for (const bool largest : {false, true}) {
        const ValuesAndIndices got = largest ? max(x, 1) : min(x, 1),
                               want = largest ? max(columns, 0) : min(columns, 0);
        EXPECT_EQ(bytes_of(got.values), bytes_of(want.values)) << to_string(t) << " " << n;
        EXPECT_EQ(values_of(got.indices), values_of(want.indices)) << to_string(t) << " " << n;
      }
      EXPECT_EQ(values_of(argmax(x, 1)), values_of(argmax(columns, 0)));
    }
  }
}

TEST(Reduce, ShortRowsOfEveryLength) {
  for (const ScalarType t : {kFloat32, kFloat64, kFloat16, kInt32, kInt64, kComplex64}) {
    for (const int64_t n : {16, 17, 31, 64, 127, 128, 129, 255, 256, 300, 2048, 2049}) {
      const Tensor x = whole_numbers({3, 6, n}, t), some = slice(x, 1, 1, 6, 2);
      const std::vector<double> all = values_of(some), got = values_of(sum(some, {2}));
      ASSERT_EQ(got.size(), 9u);
      for (size_t row = 0; row < 9; ++row) {
        double want = 0;
        for (size_t i = 0; i < static_cast<size_t>(n); ++i) want += all[row * static_cast<size_t>(n) + i];
        ASSERT_EQ(got[row], want) << to_string(t) << " " << n;
      }
    }
  }
}

TEST(Reduce, IndicesBeyondWhatAFloatCounts) {
  // Columns number their rows in blocks of 2^20.
  const int64_t rows = (1 << 20) + 3000;
  Tensor x = empty({rows, 17}, kUInt8);
  std::memset(x.data_ptr(), 1, x.nbytes());
  auto* bytes = static_cast<uint8_t*>(x.data_ptr());
  bytes[(rows - 2) * 17 + 4] = 2;
  bytes[5 * 17 + 6] = 2;
  bytes[(rows - 1) * 17 + 6] = 2;
  std::vector<double> want(17, 0);
  want[4] = static_cast<double>(rows - 2);
  want[6] = 5;
  EXPECT_EQ(values_of(max(x, 0).indices), want);
}

TEST(Reduce, AnyAndAll) {
  const std::vector<ScalarType> types = all_types();
  for (const ScalarType t : types) {
    SCOPED_TRACE(std::string(to_string(t)));
    const Tensor x = make({3, 2}, t, {0, 1, 0, 1, 0, 0});
    EXPECT_EQ(number(any(x)), 1);
    EXPECT_EQ(number(all(x)), 0);
    EXPECT_EQ(values_of(any(x, {0})), (std::vector<double>{0, 1}));
    EXPECT_EQ(values_of(any(x, {1}, true)), (std::vector<double>{1, 1, 0}));
    EXPECT_EQ(values_of(all(x, {1})), (std::vector<double>{0, 0, 0}));
    EXPECT_EQ(number(all(make({40}, t, std::vector<double>(40, 1)))), 1);
  }
  EXPECT_EQ(number(any(vector({0, kNan}))), 1);
  EXPECT_EQ(number(all(vector({1e-45, -0.5, kNan}))), 1);
  EXPECT_EQ(number(any(vector({-0.0, 0.0}))), 0);
  EXPECT_FALSE(any(vector({1})).requires_grad());
}

TEST(Reduce, NothingToReduce) {
  const Tensor none = empty({0, 3});
  EXPECT_EQ(number(sum(none)), 0);
  EXPECT_EQ(number(prod(none)), 1);
  EXPECT_TRUE(std::isnan(number(mean(none))));
  EXPECT_EQ(number(any(none)), 0);
  EXPECT_EQ(number(all(none)), 1);
  EXPECT_EQ(number(norm(none)), 0);
  EXPECT_EQ(values_of(sum(none, {0})), std::vector<double>(3, 0));
  EXPECT_EQ(sum(none, {1}).sizes(), IntSpan({0}));
  EXPECT_EQ(amax(none, {1}).sizes(), IntSpan({0}));
  EXPECT_EQ(max(none, 1).indices.sizes(), IntSpan({0}));
  EXPECT_THROW(max(none), RuntimeError);
  EXPECT_THROW(argmin(none), IndexError);
  EXPECT_THROW(amax(none, {0}), IndexError);
  EXPECT_THROW(max(none, 0), IndexError);
}

TEST(Reduce, NumbersWithoutDimensions) {
  const Tensor x = make({}, kFloat32, {3});
  EXPECT_EQ(number(sum(x)), 3);
  EXPECT_EQ(sum(x, {0}, true).dim(), 0);
  EXPECT_EQ(sum(x, {-1}).dim(), 0);
  EXPECT_EQ(number(max(x, 0).values), 3);
  EXPECT_EQ(number(argmax(x)), 0);
  EXPECT_EQ(argmax(x, 0, true).dim(), 0);
  EXPECT_THROW(sum(x, {1}), IndexError);
}

TEST(Reduce, WrongDimensionsAndDtypes) {
  const Tensor x = empty({2, 3});
  EXPECT_THROW(sum(x, {2}), IndexError);
  EXPECT_THROW(sum(x, {0, -2}), RuntimeError);
  EXPECT_THROW(max(x, -3), IndexError);
  EXPECT_THROW(mean(vector({1, 2}, kInt64)), RuntimeError);
  EXPECT_THROW(norm(vector({1, 2}, kInt32)), RuntimeError);
  EXPECT_THROW(sum(Tensor()), RuntimeError);
}

TEST(Reduce, SumOfARepeatedElement) {
  const Tensor one = make({1}, kFloat32, {2});
  const Tensor many(make_intrusive<TensorImpl>(one.storage(), kFloat32, Sizes{300, 40}, Sizes{0, 0}, 0));
  EXPECT_EQ(number(sum(many)), 24000);
  EXPECT_EQ(values_of(sum(many, {0})), std::vector<double>(40, 600));
}

TEST(Reduce, MethodsAreTheFunctions) {
  const Tensor x = make({2, 2}, kFloat32, {1, 2, 3, 4});
  EXPECT_EQ(number(x.sum()), 10);
  EXPECT_EQ(values_of(x.sum({0})), (std::vector<double>{4, 6}));
  EXPECT_EQ(number(x.mean()), 2.5);
  EXPECT_EQ(x.mean({1}, true).sizes(), IntSpan({2, 1}));
}

TEST(Reduce, GradientOfEqualOnes) {
  Tensor x = make({4}, kFloat64, {1, 5, 5, 2});
  x.requires_grad_();
  EXPECT_EQ(gradient_of(max(x), x), (std::vector<double>{0, 0.5, 0.5, 0}));
  EXPECT_EQ(gradient_of(max(x, 0).values, x), (std::vector<double>{0, 1, 0, 0}));
  EXPECT_FALSE(max(x, 0).indices.requires_grad());
}

TEST(Reduce, GradientOfAProductWithZeros) {
  const auto gradient = [](std::vector<double> values) {
    Tensor x = vector(values, kFloat64);
    x.requires_grad_();
    return gradient_of(prod(x), x);
  };
  EXPECT_EQ(gradient({2, 3, 4}), (std::vector<double>{12, 8, 6}));
  EXPECT_EQ(gradient({2, 0, 4}), (std::vector<double>{0, 8, 0}));
  EXPECT_EQ(gradient({0, 0, 4}), (std::vector<double>{0, 0, 0}));
}

TEST(Reduce, GradientOfNormAtZero) {
  Tensor x = vector({0, 0}, kFloat64);
  x.requires_grad_();
  EXPECT_EQ(gradient_of(norm(x), x), (std::vector<double>{0, 0}));
  EXPECT_EQ(gradient_of(norm(x, 1), x), (std::vector<double>{0, 0}));
}

TEST(Reduce, GradientOfASumIsAView) {
  Tensor x = empty({30, 20});
  x.requires_grad_();
  const Tensor out = sum(x);
  const Gradient g = grad(Span<Tensor>(&out, 1), Span<Tensor>(&x, 1))[0];
  EXPECT_EQ(g.values.strides(), IntSpan({0, 0}));
}

TEST(ReduceThreads, SameBitsForAnyNumberOfThreads) {
  const int64_t before = num_threads();
  const Tensor x = random({700, 900}, kFloat32, -1, 1, 5);
  const Tensor flat(make_intrusive<TensorImpl>(x.storage(), kFloat32, Sizes{630'000}));
  const Tensor tall(make_intrusive<TensorImpl>(x.storage(), kFloat32, Sizes{90'000, 7}));
  std::string want;
  for (const int64_t threads : {1, 2, 3, 7}) {
    set_num_threads(threads);
    std::string got;
    for (const Tensor& result : {sum(flat), sum(x, {0}), sum(x, {1}), sum(tall, {0}), norm(flat), max(x, 0).values,
                                 max(x, 1).indices, argmax(flat)})
      got += bytes_of(result);
    if (threads == 1) want = got;
    EXPECT_EQ(got, want) << threads;
  }
  set_num_threads(before);
}

TEST(Reduce, LogSumExpOfInfinities) {
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(values_of(logsumexp(make({2, 2}, kFloat64, {-inf, -inf, inf, 1}), {1})), (std::vector<double>{-inf, inf}));
  EXPECT_DOUBLE_EQ(logsumexp(make({2}, kFloat64, {1000, 1000}), {0}).item<double>(), 1000 + std::log(2.0));
  EXPECT_EQ(logsumexp(make({0}, kFloat64, {}), {0}).item<double>(), -inf);
  EXPECT_EQ(logsumexp(make({2}, kInt64, {1, 1}), {0}).dtype(), kFloat32);
}

}  // namespace tercel::test
