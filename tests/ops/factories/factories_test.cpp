#include "tercel/ops/factories/factories.h"

#include <gtest/gtest.h>

#include <limits>

#include "tercel/ops/common/copy.h"
#include "tercel/ops/factories/tensor_of.h"
#include "tercel/ops/random/random.h"
#include "tercel/ops/sparse/compressed.h"
#include "tercel/ops/sparse/coo.h"
#include "tercel/ops/views/views.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace tercel::test {

namespace {

using Values = std::vector<double>;

}  // namespace

TEST(Factories, LikeSparseTensors) {
  const Tensor x = tensor({{1.0, 0.0}, {0.0, 3.0}});
  for (const Tensor& like : {to_sparse_csr(x), to_sparse_csc(x), to_sparse(x)}) {
    const Tensor none = zeros_like(like);
    EXPECT_EQ(none.layout(), like.layout());
    EXPECT_EQ(test::values_of(to_dense(none)), (std::vector<double>{0, 0, 0, 0}));
    TensorOptions options = like.options();
    options.requires_grad = true;
    EXPECT_TRUE(zeros_like(like, options).requires_grad());
    EXPECT_TRUE(empty_like(like, options).requires_grad());
    options.layout = Layout::Strided;
    EXPECT_EQ(test::values_of(ones_like(like, options)), (std::vector<double>{1, 1, 1, 1}));
    if (like.layout() == Layout::SparseCoo) {
      TERCEL_EXPECT_THROW(ones_like(like), NotImplementedError, "ones_like");
      TERCEL_EXPECT_THROW(full_like(like, 2), NotImplementedError, "full_like");
    } else {
      EXPECT_EQ(test::values_of(to_dense(ones_like(like))), (std::vector<double>{1, 0, 0, 1}));
      EXPECT_EQ(test::values_of(to_dense(full_like(like, 2))), (std::vector<double>{2, 0, 0, 2}));
    }
  }
}

TEST(Factories, FilledTensors) {
  EXPECT_EQ(values_of(zeros({2, 2})), Values(4, 0));
  EXPECT_EQ(ones({3}, kInt16).dtype(), kInt16);
  EXPECT_EQ(values_of(ones({3}, kInt16)), Values(3, 1));
  EXPECT_EQ(full({2}, 7).dtype(), kInt64);
  EXPECT_EQ(full({2}, 7.5).dtype(), kFloat32);
  EXPECT_EQ(full({2}, true).dtype(), kBool);
  EXPECT_EQ(values_of(full({2}, 2.5, kFloat64)), Values(2, 2.5));
  EXPECT_EQ(zeros({0, 3}).sizes(), IntSpan({0, 3}));
  EXPECT_EQ(values_of(zeros({})), Values(1, 0));
  EXPECT_THROW(zeros({-1}), RuntimeError);
  TensorOptions leaf;
  leaf.requires_grad = true;
  EXPECT_TRUE(ones({2}, leaf).requires_grad());
}

TEST(Factories, NewTensorsHaveVersion0) {
  const Tensor x = zeros({2});
  for (const Tensor& y : {x, ones({2}), full({2}, 3), eye(2), arange(2), linspace(0, 1, 2), ones_like(x), zeros_like(x),
                          logspace(0, 1, 2), full_like(x, 3)})
    EXPECT_EQ(y.version(), 0u);
  EXPECT_EQ(uniform_(zero_(fill_(x, 2))).version(), 3u);
}

TEST(Factories, NumbersThatDoNotFit) {
  EXPECT_EQ(message_of<RuntimeError>([] { full({1}, 300, kUInt8); }),
            "value cannot be converted to type uint8_t without overflow");
  EXPECT_EQ(values_of(full({1}, -1, kUInt8)), Values{255});
  EXPECT_EQ(full({1}, Scalar(UINT64_MAX), kUInt64).item<uint64_t>(), UINT64_MAX);
  for (const ScalarType t : {kInt8, kInt64, kUInt64, kFloat16, kFloat32, kComplex64})
    EXPECT_THROW(full({1}, 1e300, t), RuntimeError) << to_string(t);
  EXPECT_THROW(full({1}, Scalar(UINT64_MAX), kInt64), RuntimeError);
  EXPECT_THROW(full({1}, 0x1p63, kInt64), RuntimeError);
  EXPECT_EQ(full({1}, -0x1p63, kInt64).item<int64_t>(), INT64_MIN);
  EXPECT_THROW(full({1}, std::numeric_limits<double>::quiet_NaN(), kInt32), RuntimeError);
  EXPECT_EQ(values_of(full({1}, 1e300, kBool)), Values{1});
  EXPECT_EQ(full({1}, std::numeric_limits<double>::infinity(), kFloat16).item<float>(),
            std::numeric_limits<float>::infinity());
}

TEST(Factories, ComplexNumbersEvenlySpaced) {
  const Tensor x = linspace(0, Scalar(Complex<double>(1, 2)), 3, kComplex64);
  EXPECT_EQ(x.select(0, 1).item().to_complex(), Complex<double>(0.5, 1));
  EXPECT_THROW(arange(Scalar(Complex<double>(0, 1))), RuntimeError);
}

TEST(Factories, LikeAnother) {
  Tensor x = random({2, 3}, kFloat64, -1, 1, 1);
  x.requires_grad_();
  for (const Tensor& y : {zeros_like(x), ones_like(x), full_like(x, 4), empty_like(x)}) {
    EXPECT_EQ(y.sizes(), x.sizes());
    EXPECT_EQ(y.dtype(), kFloat64);
    EXPECT_FALSE(y.requires_grad());
  }
  EXPECT_EQ(values_of(full_like(x, 4)), Values(6, 4));
  EXPECT_EQ(zeros_like(t(x)).strides(), t(x).strides());
  // An order of dimensions that is not dense becomes dense.
  EXPECT_TRUE(empty_like(slice(x, 1, 0, 3, 2)).is_contiguous());
  EXPECT_THROW(zeros_like(Tensor()), RuntimeError);
}

TEST(Factories, Arange) {
  EXPECT_EQ(values_of(arange(4)), (Values{0, 1, 2, 3}));
  EXPECT_EQ(arange(4).dtype(), kInt64);
  EXPECT_EQ(values_of(arange(5, -2, -3)), (Values{5, 2, -1}));
  EXPECT_EQ(arange(0, 1, 0.25).dtype(), kFloat32);
  EXPECT_EQ(values_of(arange(0, 1, 0.25)), (Values{0, 0.25, 0.5, 0.75}));
  EXPECT_EQ(values_of(arange(1, 8, 3, kFloat64)), (Values{1, 4, 7}));
  EXPECT_EQ(arange(3, 3).numel(), 0);
  // Neither the distance nor the step, negated, fits int64.
  const Tensor wide = arange(INT64_MAX, INT64_MIN, INT64_MIN);
  ASSERT_EQ(wide.numel(), 2);
  EXPECT_EQ(wide.data<int64_t>()[0], INT64_MAX);
  EXPECT_EQ(wide.data<int64_t>()[1], -1);
  EXPECT_EQ(arange(INT64_MIN, INT64_MAX, INT64_MAX).data<int64_t>()[2], INT64_MAX - 1);
  EXPECT_EQ(message_of<RuntimeError>([] { arange(0, 4, 0); }), "arange: step must be nonzero");
  EXPECT_THROW(arange(0, 4, -1), RuntimeError);
  EXPECT_THROW(arange(0, HUGE_VAL), RuntimeError);
  EXPECT_THROW(arange(0, 1e300), RuntimeError);
}

TEST(Factories, Linspace) {
  EXPECT_EQ(values_of(linspace(0, 1, 5)), (Values{0, 0.25, 0.5, 0.75, 1}));
  EXPECT_EQ(values_of(linspace(3, 1, 2, kFloat64)), (Values{3, 1}));
  EXPECT_EQ(values_of(linspace(2, 9, 1)), (Values{2}));
  EXPECT_EQ(linspace(2, 9, 0).numel(), 0);
  const Values v = values_of(linspace(-0.1, 0.3, 101, kFloat64));
  EXPECT_EQ(v.front(), -0.1);
  EXPECT_EQ(v.back(), 0.3);
  EXPECT_THROW(linspace(0, 1, -1), RuntimeError);
}

TEST(Factories, LinspaceOfOtherDtypes) {
  // An integral dtype's ends are integers first.
  EXPECT_EQ(values_of(linspace(0, 10, 5, kInt64)), (Values{0, 2, 5, 7, 10}));
  EXPECT_EQ(values_of(linspace(-0.8, 3.9, 4, kInt32)), (Values{0, 1, 2, 3}));
  EXPECT_EQ(values_of(linspace(0, 255, 4, kUInt8)), (Values{0, 85, 170, 255}));
  EXPECT_THROW(linspace(0, 300, 4, kUInt8), RuntimeError);
  EXPECT_THROW(linspace(0, 1, 3, kBool), NotImplementedError);
  const Tensor z = linspace(Complex<double>(0, 0), Complex<double>(2, 4), 3, kComplex128);
  EXPECT_EQ(z.data<Complex<double>>()[1], Complex<double>(1, 2));
  EXPECT_EQ(z.data<Complex<double>>()[2], Complex<double>(2, 4));
}

TEST(Factories, Logspace) {
  EXPECT_EQ(values_of(logspace(0, 3, 4, 10, kFloat64)), (Values{1, 10, 100, 1000}));
  EXPECT_EQ(values_of(logspace(-1, 3, 5, 2)), (Values{0.5, 1, 2, 4, 8}));
  EXPECT_EQ(values_of(logspace(0, 2, 3, -2)), (Values{1, -2, 4}));
  EXPECT_EQ(values_of(logspace(0, 2, 5, 2, kInt64)), (Values{1, 1, 2, 2, 4}));
  EXPECT_EQ(logspace(0, 2, 0).numel(), 0);
  const Complex<double> z =
      logspace(0, Complex<double>(0, 1), 2, 2.718281828459045, kComplex128).data<Complex<double>>()[1];
  EXPECT_NEAR(z.re, std::cos(1.0), 1e-12);
  EXPECT_NEAR(z.im, std::sin(1.0), 1e-12);
  EXPECT_THROW(logspace(0, 2, -1), RuntimeError);
}

TEST(Factories, RangeHasItsEnd) {
  EXPECT_EQ(values_of(range(0, 3)), (Values{0, 1, 2, 3}));
  EXPECT_EQ(range(0, 3).dtype(), kFloat32);
  EXPECT_EQ(values_of(range(0, 1, 0.25, kFloat64)), (Values{0, 0.25, 0.5, 0.75, 1}));
  EXPECT_EQ(values_of(range(3, 0.5, -1)), (Values{3, 2, 1}));
  EXPECT_THROW(range(0, 3, 0), RuntimeError);
  EXPECT_THROW(range(3, 0), RuntimeError);
}

TEST(Factories, ArangeOfAnIntegralDtype) {
  EXPECT_EQ(values_of(arange(0.5, 5.5, 1.5, kInt64)), (Values{0, 1, 2, 3}));
  EXPECT_EQ(values_of(arange(0, 1.5, 0.5, kInt32)), (Values{0, 0, 0}));
  EXPECT_THROW(arange(0, 2, 1, kBool), NotImplementedError);
}

TEST(Factories, Eye) {
  EXPECT_EQ(values_of(eye(2)), (Values{1, 0, 0, 1}));
  EXPECT_EQ(values_of(eye(2, 3, kInt32)), (Values{1, 0, 0, 0, 1, 0}));
  EXPECT_EQ(values_of(eye(3, 1)), (Values{1, 0, 0}));
  EXPECT_EQ(eye(0).sizes(), IntSpan({0, 0}));
  EXPECT_THROW(eye(-2), RuntimeError);
}

TEST(Factories, Literals) {
  const Tensor x = tensor({{1, 2}, {3, 4}});
  EXPECT_EQ(x.dtype(), kInt64);
  EXPECT_EQ(x.sizes(), IntSpan({2, 2}));
  EXPECT_EQ(values_of(x), (Values{1, 2, 3, 4}));
  EXPECT_EQ(tensor({1, 2.5}).dtype(), kFloat32);
  EXPECT_EQ(tensor({true, false}).dtype(), kBool);
  EXPECT_EQ(tensor({true, 2}).dtype(), kInt64);
  EXPECT_EQ(values_of(tensor({1.75, -2.0}, kInt32)), (Values{1, -2}));
  EXPECT_EQ(tensor({}).sizes(), IntSpan({0}));
  EXPECT_EQ(tensor({}).dtype(), kFloat32);
  EXPECT_EQ(tensor({{{1}, {2}, {3}}}).sizes(), IntSpan({1, 3, 1}));
  EXPECT_THROW(tensor({{1, 2}, {3}}), RuntimeError);
  EXPECT_THROW(tensor({{1, 2}, 3}), RuntimeError);
  EXPECT_EQ(scalar_tensor(3).dim(), 0);
  EXPECT_EQ(values_of(scalar_tensor(3, kFloat64)), Values{3});
}

TEST(Factories, TensorsOfNumbersAndVectors) {
  EXPECT_EQ(tensor(3).dtype(), kInt64);
  EXPECT_EQ(tensor(3).dim(), 0);
  EXPECT_EQ(tensor(2.5).dtype(), kFloat32);
  EXPECT_EQ(tensor(true).dtype(), kBool);
  EXPECT_EQ(tensor(2.5, kFloat64).item<double>(), 2.5);
  EXPECT_EQ(tensor(7, kUInt8).dtype(), kUInt8);
  const Tensor v = tensor(std::vector<int32_t>{3, 1, 2});
  EXPECT_EQ(v.dtype(), kInt64);
  EXPECT_EQ(values_of(v), (std::vector<double>{3, 1, 2}));
  EXPECT_EQ(tensor(std::vector<double>{0.5}).dtype(), kFloat32);
  EXPECT_EQ(values_of(tensor(std::vector<float>{0.5, -2}, kInt16)), (std::vector<double>{0, -2}));
  EXPECT_EQ(tensor(std::vector<float>{}).sizes(), IntSpan({0}));
  TensorOptions leaf = kFloat64;
  leaf.requires_grad = true;
  EXPECT_TRUE(tensor(std::vector<double>{1}, leaf).requires_grad());
  EXPECT_EQ(tensor(std::vector<double>{1}, leaf).version(), 0U);
}

}  // namespace tercel::test
