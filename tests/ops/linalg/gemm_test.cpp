#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "tercel/core/dispatch.h"
#include "tercel/ops/linalg/gemm_impl.h"
#include "tercel/util/parallel.h"

namespace tercel {
namespace {

constexpr int64_t kThreads[] = {1, 2, 3, 7};

/** A matrix in memory of exactly its size, so that AddressSanitizer detects every access outside. */
template <class T>
struct Matrix {
  int64_t rows, cols, ld;
  std::vector<T> data;

  Matrix(int64_t r, int64_t c, int64_t extra = 0) : rows(r), cols(c), ld(c + extra) {
    data.resize(static_cast<size_t>(rows == 0 || cols == 0 ? 0 : (rows - 1) * ld + cols));
  }
  void fill(std::mt19937& random) {
    std::uniform_real_distribution<double> uniform(-1, 1);
    for (T& x : data) x = static_cast<T>(uniform(random));
  }
  T& at(int64_t i, int64_t j) { return data[static_cast<size_t>(i * ld + j)]; }
  T at(int64_t i, int64_t j) const { return data[static_cast<size_t>(i * ld + j)]; }
};

struct Case {
  int64_t m, n, k;
  bool trans_a = false, trans_b = false;
  double alpha = 1, beta = 0;
  bool bias = false, relu = false, mask = false, sums = false;
  int64_t extra = 0;

  std::string text() const {
    return "m " + std::to_string(m) + " n " + std::to_string(n) + " k " + std::to_string(k) + " trans " +
           std::to_string(trans_a) + std::to_string(trans_b) + " alpha " + std::to_string(alpha) + " beta " +
           std::to_string(beta) + " bias/relu/mask/sums " + std::to_string(bias) + std::to_string(relu) +
           std::to_string(mask) + std::to_string(sums) + " ld + " + std::to_string(extra);
  }
};

/** The operands of a case, and its result by plain loops in double. */
template <class T>
struct Problem {
  Case shape;
  Matrix<T> a, b, c, mask, bias, a_sums, b_sums;
  std::vector<double> want, want_a_sums, want_b_sums;

  Problem(const Case& s, unsigned seed)
      : shape(s),
        a(s.trans_a ? s.k : s.m, s.trans_a ? s.m : s.k, s.extra),
        b(s.trans_b ? s.n : s.k, s.trans_b ? s.k : s.n, 2 * s.extra),
        c(s.m, s.n, 3 * s.extra),
        mask(s.m, s.n, s.extra),
        bias(1, s.n),
        a_sums(1, s.m),
        b_sums(1, s.n) {
    std::mt19937 random(seed);
    for (Matrix<T>* x : {&a, &b, &c, &mask, &bias, &a_sums, &b_sums}) x->fill(random);
    for (int64_t i = 0; i < s.m; ++i) {
      for (int64_t j = 0; j < s.n; ++j) {
        double sum = 0;
        for (int64_t p = 0; p < s.k; ++p) sum += op_a(i, p) * op_b(p, j);
        double x = s.alpha * sum + (s.beta == 0 ? 0 : s.beta * static_cast<double>(c.at(i, j)));
        if (s.bias) x += static_cast<double>(bias.at(0, j));
        if (s.relu) x = std::max(x, 0.0);
        if (s.mask && !(mask.at(i, j) > 0)) x = 0;
        want.push_back(x);
      }
    }
    for (int64_t i = 0; i < s.m; ++i) {
      double sum = s.beta * static_cast<double>(a_sums.at(0, i));
      for (int64_t p = 0; p < s.k; ++p) sum += op_a(i, p);
      want_a_sums.push_back(sum);
    }
    for (int64_t j = 0; j < s.n; ++j) {
      double sum = s.beta * static_cast<double>(b_sums.at(0, j));
      for (int64_t p = 0; p < s.k; ++p) sum += op_b(p, j);
      want_b_sums.push_back(sum);
    }
  }

  double op_a(int64_t i, int64_t p) const { return static_cast<double>(shape.trans_a ? a.at(p, i) : a.at(i, p)); }
  double op_b(int64_t p, int64_t j) const { return static_cast<double>(shape.trans_b ? b.at(j, p) : b.at(p, j)); }

  Gemm<T> args() {
    Gemm<T> g;
    g.m = shape.m;
    g.n = shape.n;
    g.k = shape.k;
    g.a = a.data.data();
    g.lda = a.ld;
    g.trans_a = shape.trans_a;
    g.b = b.data.data();
    g.ldb = b.ld;
    g.trans_b = shape.trans_b;
    g.c = c.data.data();
    g.ldc = c.ld;
    g.alpha = static_cast<T>(shape.alpha);
    g.beta = static_cast<T>(shape.beta);
    if (shape.bias) g.bias = bias.data.data();
    g.relu = shape.relu;
    if (shape.mask) g.mask = mask.data.data();
    g.ldmask = mask.ld;
    if (shape.sums && shape.trans_a) g.a_sums = a_sums.data.data();
    if (shape.sums && !shape.trans_b) g.b_sums = b_sums.data.data();
    return g;
  }

  void check(const Matrix<T>& before) const {
    // Each product is rounded once, the sum k times; elements are at most 1.
    const double eps = static_cast<double>(std::numeric_limits<T>::epsilon());
    const double bound = eps * (4 + static_cast<double>(shape.k)) * (1 + std::abs(shape.alpha));
    for (int64_t i = 0; i < shape.m; ++i)
      for (int64_t j = 0; j < shape.n; ++j)
        ASSERT_NEAR(static_cast<double>(c.at(i, j)), want[static_cast<size_t>(i * shape.n + j)], bound)
            << "at " << i << ", " << j << ": " << shape.text();
    for (size_t p = 0; p < c.data.size(); ++p) {
      if (static_cast<int64_t>(p) % c.ld >= c.cols) {
        ASSERT_EQ(c.data[p], before.data[p]) << "between rows: " << shape.text();
      }
    }
    if (shape.sums && shape.trans_a) {
      for (int64_t i = 0; i < shape.m; ++i)
        ASSERT_NEAR(static_cast<double>(a_sums.at(0, i)), want_a_sums[static_cast<size_t>(i)], bound)
            << "a_sums " << i << ": " << shape.text();
    }
    if (shape.sums && !shape.trans_b) {
      for (int64_t j = 0; j < shape.n; ++j)
        ASSERT_NEAR(static_cast<double>(b_sums.at(0, j)), want_b_sums[static_cast<size_t>(j)], bound)
            << "b_sums " << j << ": " << shape.text();
    }
  }
};

template <class T>
void run_case(const Case& shape, unsigned seed) {
  Problem<T> problem(shape, seed);
  const Matrix<T> before = problem.c;
  gemm(problem.args());
  problem.check(before);
}

class ThreadCount {
 public:
  explicit ThreadCount(int64_t count) : before_(num_threads()) { set_num_threads(count); }
  ~ThreadCount() { set_num_threads(before_); }
  ThreadCount(const ThreadCount&) = delete;
  ThreadCount& operator=(const ThreadCount&) = delete;

 private:
  int64_t before_;
};

template <class T>
class Gemms : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(Gemms, Types);

TYPED_TEST(Gemms, SmallSizesAllTransposes) {
  unsigned seed = 0;
  for (const int64_t m : {0, 1, 2, 3, 5, 6, 7, 12, 13, 16})
    for (const int64_t n : {0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 32, 33, 48})
      for (const int64_t k : {0, 1, 2, 7, 8, 9, 16, 31})
        for (const int trans : {0, 1, 2, 3})
          run_case<TypeParam>({.m = m, .n = n, .k = k, .trans_a = (trans & 1) != 0, .trans_b = (trans & 2) != 0},
                              ++seed);
}

TYPED_TEST(Gemms, RandomShapesAndOptions) {
  std::mt19937 random(7);
  const auto pick = [&](std::vector<double> from) { return from[random() % from.size()]; };
  for (unsigned i = 0; i < 600; ++i) {
    const bool large = i % 10 == 0;
    const Case shape{.m = 1 + static_cast<int64_t>(random() % (large ? 400 : 90)),
                     .n = 1 + static_cast<int64_t>(random() % (large ? 300 : 150)),
                     .k = static_cast<int64_t>(random() % (large ? 300 : 120)),
                     .trans_a = random() % 2 == 0,
                     .trans_b = random() % 2 == 0,
                     .alpha = pick({1, 1, -0.5, 2}),
                     .beta = pick({0, 0, 1, -1.5}),
                     .bias = random() % 2 == 0,
                     .relu = random() % 3 == 0,
                     .mask = random() % 3 == 0,
                     .sums = random() % 2 == 0,
                     .extra = static_cast<int64_t>(random() % 3)};
    run_case<TypeParam>(shape, i);
  }
}

// Several blocks of k and of columns, and sizes next to the blocks' limits.
TYPED_TEST(Gemms, SeveralBlocks) {
  unsigned seed = 0;
  for (const int trans : {0, 1, 2, 3}) {
    const bool ta = (trans & 1) != 0;
    const bool tb = (trans & 2) != 0;
    run_case<TypeParam>({.m = 37,
                         .n = 140,
                         .k = 1100,
                         .trans_a = ta,
                         .trans_b = tb,
                         .beta = 1,
                         .bias = true,
                         .relu = true,
                         .mask = true,
                         .sums = true},
                        ++seed);
    run_case<TypeParam>(
        {.m = 20, .n = 2100, .k = 530, .trans_a = ta, .trans_b = tb, .beta = 0.5, .bias = true, .sums = true}, ++seed);
    run_case<TypeParam>(
        {.m = 400, .n = 136, .k = 513, .trans_a = ta, .trans_b = tb, .mask = true, .sums = true, .extra = 1}, ++seed);
    run_case<TypeParam>({.m = 7, .n = 1025, .k = 512, .trans_a = ta, .trans_b = tb, .sums = true}, ++seed);
  }
}

// Few rows with both operands along k: dot products.
TYPED_TEST(Gemms, FewRows) {
  unsigned seed = 0;
  for (const int64_t m : {2, 3, 4, 5, 8, 9, 23, 24, 25})
    for (const int64_t n : {2, 3, 4, 7, 63, 66, 131})
      for (const int64_t k : {15, 16, 17, 33, 255, 256, 263}) {
        ++seed;
        run_case<TypeParam>({.m = m,
                             .n = n,
                             .k = k,
                             .trans_b = true,
                             .alpha = seed % 3 == 0 ? -0.5 : 1.0,
                             .beta = seed % 4 == 0 ? 1.5 : 0.0,
                             .bias = seed % 2 == 0,
                             .relu = seed % 5 == 0,
                             .mask = seed % 7 == 0,
                             .extra = static_cast<int64_t>(seed % 3)},
                            seed);
      }
}

// The shapes of a DLRM step, with their fused operations, for a small batch; both orders of the weights.
TYPED_TEST(Gemms, LinearLayers) {
  unsigned seed = 0;
  const int64_t batch = 66;
  for (const auto& [in, out] :
       {std::pair<int64_t, int64_t>{13, 512}, {512, 256}, {256, 64}, {64, 16}, {367, 512}, {256, 1}}) {
    for (const bool in_out : {true, false}) {
      run_case<TypeParam>({.m = batch, .n = out, .k = in, .trans_b = !in_out, .bias = true, .relu = true}, ++seed);
      run_case<TypeParam>({.m = batch, .n = in, .k = out, .trans_b = in_out, .mask = true}, ++seed);
      run_case<TypeParam>(
          {.m = in_out ? in : out, .n = in_out ? out : in, .k = batch, .trans_a = true, .beta = 1, .sums = true},
          ++seed);
    }
  }
}

TYPED_TEST(Gemms, NonFiniteValuesGoThroughAndUnreadOnesDoNot) {
  const auto nan = std::numeric_limits<TypeParam>::quiet_NaN();
  const auto inf = std::numeric_limits<TypeParam>::infinity();
  for (const int64_t n : {int64_t{1}, int64_t{5}, int64_t{20}, int64_t{200}}) {
    Problem<TypeParam> p({.m = 9, .n = n, .k = 40, .bias = true, .relu = true}, 1);
    p.a.at(2, 3) = nan;
    p.a.at(4, 5) = inf;
    std::fill(p.c.data.begin(), p.c.data.end(), nan);
    gemm(p.args());
    for (int64_t i = 0; i < 9; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        const TypeParam x = p.c.at(i, j);
        if (i == 2)
          EXPECT_TRUE(std::isnan(x)) << "ReLU keeps NaN, n " << n;
        else if (i == 4)
          EXPECT_EQ(x, p.b.at(5, j) > 0 ? inf : TypeParam(0)) << "n " << n;
        else
          EXPECT_TRUE(std::isfinite(x)) << "beta = 0 does not read C, n " << n;
      }
    }
  }
}

TYPED_TEST(Gemms, ZeroSteps) {
  for (const int64_t n : {1, 30}) {
    run_case<TypeParam>({.m = 10, .n = n, .k = 0, .beta = 0}, 1);
    run_case<TypeParam>({.m = 10, .n = n, .k = 0, .trans_a = true, .beta = 0.5, .bias = true, .sums = true}, 2);
  }
}

// Without rows or columns C is empty, the sums over k of the other operand are not.
TYPED_TEST(Gemms, SumsOfEmptyProducts) {
  unsigned seed = 0;
  for (const int64_t m : {0, 1, 40})
    for (const int64_t n : {0, 1, 40})
      for (const int64_t k : {0, 1, 30})
        for (const bool trans : {false, true})
          for (const double beta : {0.0, 0.5})
            run_case<TypeParam>(
                {.m = m, .n = n, .k = k, .trans_a = trans, .trans_b = trans, .beta = beta, .sums = true}, ++seed);
}

TYPED_TEST(Gemms, Batched) {
  std::mt19937 random(3);
  for (const auto& [m, n, k, tb] : {std::tuple<int64_t, int64_t, int64_t, bool>{27, 27, 16, true},
                                    {27, 16, 27, false},
                                    {4, 1, 9, false},
                                    {1, 5, 3, true},
                                    {130, 140, 150, false}}) {
    const int64_t batch = 11;
    Matrix<TypeParam> a(batch, m * k, 3), b(batch, n * k, 1), c(batch, m * n, 2);
    for (auto* x : {&a, &b, &c}) x->fill(random);
    for (const bool shared_b : {false, true}) {
      Gemm<TypeParam> g;
      g.m = m;
      g.n = n;
      g.k = k;
      g.a = a.data.data();
      g.lda = k;
      g.b = b.data.data();
      g.ldb = tb ? k : n;
      g.trans_b = tb;
      g.c = c.data.data();
      g.ldc = n;
      gemm_batched(g, batch, a.ld, shared_b ? 0 : b.ld, c.ld);
      for (int64_t s = 0; s < batch; ++s) {
        for (int64_t i = 0; i < m; ++i) {
          for (int64_t j = 0; j < n; ++j) {
            double want = 0;
            for (int64_t p = 0; p < k; ++p)
              want += static_cast<double>(a.at(s, i * k + p)) *
                      static_cast<double>(b.at(shared_b ? 0 : s, tb ? j * k + p : p * n + j));
            ASSERT_NEAR(static_cast<double>(c.at(s, i * n + j)), want, 1e-4) << m << " " << n << " " << k << " " << s;
          }
        }
      }
    }
  }
}

// Each element is summed over k in a fixed order, so results do not depend on the distribution of work.
TYPED_TEST(Gemms, SameBitsForAnyNumberOfThreads) {
  for (const auto& shape :
       {Case{.m = 300, .n = 200, .k = 700, .beta = 1, .bias = true, .relu = true},
        Case{.m = 367, .n = 130, .k = 600, .trans_a = true, .beta = 1, .sums = true},
        Case{.m = 13, .n = 512, .k = 600, .trans_a = true, .sums = true},
        Case{.m = 512, .n = 13, .k = 600, .trans_a = true, .sums = true}, Case{.m = 2000, .n = 1, .k = 300},
        Case{.m = 1, .n = 2000, .k = 300}, Case{.m = 40, .n = 2100, .k = 130, .trans_b = true, .mask = true}}) {
    std::vector<std::vector<TypeParam>> results;
    for (const int64_t threads : kThreads) {
      const ThreadCount count(threads);
      Problem<TypeParam> p(shape, 5);
      const Matrix<TypeParam> before = p.c;
      gemm(p.args());
      p.check(before);
      results.push_back(p.c.data);
      for (const auto* sums : {&p.a_sums, &p.b_sums})
        results.back().insert(results.back().end(), sums->data.begin(), sums->data.end());
      EXPECT_EQ(results.back(), results.front()) << threads << " threads: " << shape.text();
    }
  }
}

// For ThreadSanitizer.
TEST(GemmThreads, SharedAndInsideOneAnother) {
  const ThreadCount count(4);
  run_case<float>({.m = 260, .n = 150, .k = 600, .bias = true, .relu = true}, 1);
  run_case<float>({.m = 150, .n = 260, .k = 600, .trans_a = true, .beta = 1, .sums = true}, 2);
  run_case<float>({.m = 3000, .n = 1, .k = 600}, 3);
  parallel_for(0, 8, 1, [](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i)
      run_case<float>({.m = 70, .n = 150, .k = 130, .sums = true}, static_cast<unsigned>(i));
  });
}

// (1 + 2^-12)^2 - (1 + 2^-11) is 2^-24 if the product is not rounded, and 0 if it is.
TEST(Gemm, MultipliesAndAddsInOneRounding) {
  const float x = 1 + 0x1p-12f;
  constexpr size_t k = 8;  // two nonzero terms, padded with zeros: smaller products do not use the kernels
  std::vector<float> a(k * 6, 0), b(k * 16, 0), c(6 * 16, 0);
  for (size_t i = 0; i < 6; ++i) a[k * i] = 1 + 0x1p-11f, a[k * i + 1] = x;
  for (size_t j = 0; j < 16; ++j) b[j] = -1, b[16 + j] = x;
  Gemm<float> g;
  g.m = 6;
  g.n = 16;
  g.k = k;
  g.a = a.data();
  g.lda = k;
  g.b = b.data();
  g.ldb = 16;
  g.c = c.data();
  g.ldc = 16;
  gemm(g);
  EXPECT_EQ(c[0], cpu_isa() == CpuIsa::Generic ? 0.0f : 0x1p-24f);
}

TEST(Gemm, InfoNamesTheInstructionSet) {
  EXPECT_EQ(gemm_info().find(std::string(to_string(cpu_isa())) + " kernels, tiles of "), 0u) << gemm_info();
}

}  // namespace
}  // namespace tercel
