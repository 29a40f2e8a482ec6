// Complex numbers and unsigned integers beyond the rows: promotion, products, reductions, gradients, printing.
#include "tercel/ops/elementwise/complex.h"

#include <gtest/gtest.h>

#include <complex>
#include <sstream>

#include "tercel/core/default_dtype.h"
#include "tercel/ops/ops.h"
#include "tests/support/errors.h"
#include "tests/support/gradcheck.h"

namespace tercel::test {
namespace {

using C = std::complex<double>;

const C kUnit(0, 1);

Tensor numbers(const std::vector<C>& values, ScalarType dtype = kComplex64) {
  return make_complex({static_cast<int64_t>(values.size())}, dtype, values);
}
Tensor of(ScalarType t) { return full({2}, 1, t); }
Tensor alone(ScalarType t) { return full({}, 1, t); }

TEST(ComplexTensor, PromotionByTiers) {
  EXPECT_EQ(add(of(kFloat32), of(kComplex64)).dtype(), kComplex64);
  EXPECT_EQ(add(of(kFloat64), of(kComplex64)).dtype(), kComplex128);
  EXPECT_EQ(add(of(kFloat16), of(kComplex128)).dtype(), kComplex128);
  EXPECT_EQ(add(of(kInt64), of(kComplex64)).dtype(), kComplex64);
  EXPECT_EQ(add(of(kFloat32), alone(kComplex128)).dtype(), kComplex64);
  EXPECT_EQ(add(of(kFloat64), alone(kComplex64)).dtype(), kComplex128);
  EXPECT_EQ(add(of(kInt32), alone(kComplex128)).dtype(), kComplex128);
  EXPECT_EQ(add(of(kFloat32), Scalar(kUnit)).dtype(), kComplex64);
  EXPECT_EQ(add(of(kFloat64), Scalar(kUnit)).dtype(), kComplex128);
  EXPECT_EQ(add(of(kBFloat16), Scalar(kUnit)).dtype(), kComplex64);
  EXPECT_EQ(add(of(kInt64), Scalar(kUnit)).dtype(), kComplex64);
  EXPECT_EQ(add(alone(kFloat64), Scalar(kUnit)).dtype(), kComplex128);
  EXPECT_EQ(add(of(kComplex64), 2.5).dtype(), kComplex64);
  EXPECT_EQ(add(of(kComplex64), alone(kFloat64)).dtype(), kComplex64);
  Tensor wrapped = alone(kFloat64);
  wrapped.impl().set_wrapped_number(true);
  EXPECT_EQ(add(of(kInt64), wrapped).dtype(), kFloat32);
  EXPECT_EQ(complex_values_of(mul(of(kInt32), Scalar(kUnit))), (std::vector<C>{kUnit, kUnit}));
}

TEST(UnsignedTensor, Promotion) {
  EXPECT_EQ(add(of(kUInt16), of(kInt16)).dtype(), kInt32);
  EXPECT_EQ(add(of(kUInt32), of(kInt8)).dtype(), kInt64);
  EXPECT_EQ(add(of(kUInt64), of(kInt64)).dtype(), kFloat64);
  EXPECT_EQ(add(of(kUInt64), of(kFloat16)).dtype(), kFloat16);
  EXPECT_EQ(add(of(kUInt64), -1).dtype(), kUInt64);
  EXPECT_EQ(add(of(kUInt64), Scalar(UINT64_MAX)).dtype(), kUInt64);
  EXPECT_EQ(div(of(kUInt64), of(kUInt64)).dtype(), kFloat32);
}

TEST(UnsignedTensor, ArithmeticAtTheEnds) {
  const Tensor large = full({1}, Scalar(UINT64_MAX), kUInt64);
  EXPECT_EQ(add(large, 1).item<uint64_t>(), 0u);
  EXPECT_EQ(floor_divide(large, 2).item<uint64_t>(), UINT64_MAX / 2);
  EXPECT_EQ(remainder(large, 10).item<uint64_t>(), UINT64_MAX % 10);
  EXPECT_EQ(maximum(large, 1).item<uint64_t>(), UINT64_MAX);
  EXPECT_EQ(neg(large).item<uint64_t>(), 1u);
  EXPECT_EQ(bitwise_not(large).item<uint64_t>(), 0u);
  EXPECT_EQ(pow(full({1}, 3, kUInt64), 40).item<uint64_t>(), 12157665459056928801u);
  EXPECT_EQ(sum(large).item<uint64_t>(), UINT64_MAX);
  EXPECT_EQ(to(large, kFloat64).item<double>(), 0x1p64);
  EXPECT_EQ(to(full({1}, 0x1p63, kFloat64), kUInt64).item<uint64_t>(), uint64_t{1} << 63);
  EXPECT_EQ(mul(full({1}, 65535, kUInt16), full({1}, 65535, kUInt16)).item<uint16_t>(), 1);
  EXPECT_EQ(mul(full({1}, 4294967295, kUInt32), full({1}, 4294967295, kUInt32)).item<uint32_t>(), 1u);
  EXPECT_EQ(sub(full({1}, 0, kUInt32), 1).item<uint32_t>(), 4294967295u);
  EXPECT_EQ(add(full({1}, 1, kUInt32), -1).item<uint32_t>(), 0u);
  EXPECT_THROW(remainder(large, 0), RuntimeError);
}

TEST(UnsignedTensor, ComparisonWithAnyIntegerIsExact) {
  const Tensor large = full({1}, Scalar(UINT64_MAX), kUInt64), most = full({1}, INT64_MAX, kInt64);
  EXPECT_TRUE(gt(large, -1).item<bool>());
  EXPECT_FALSE(eq(large, -1).item<bool>());
  EXPECT_TRUE(eq(large, Scalar(UINT64_MAX)).item<bool>());
  EXPECT_TRUE(lt(most, Scalar(uint64_t{1} << 63)).item<bool>());
  EXPECT_FALSE(eq(most, Scalar(uint64_t{1} << 63)).item<bool>());
  EXPECT_FALSE(lt(full({1}, 7, kUInt16), -1).item<bool>());
}

TEST(UnsignedTensor, SortsAndFindsBeyondInt64) {
  const uint64_t top = uint64_t{1} << 63;
  const Tensor x = empty({4}, kUInt64);
  const uint64_t values[] = {top + 5, 3, UINT64_MAX, top};
  std::copy(std::begin(values), std::end(values), x.data<uint64_t>());
  const Tensor sorted = sort(x).values;
  EXPECT_EQ(std::vector<uint64_t>(sorted.data<uint64_t>(), sorted.data<uint64_t>() + 4),
            (std::vector<uint64_t>{3, top, top + 5, UINT64_MAX}));
  EXPECT_EQ(unique(x).values.select(0, 3).item<uint64_t>(), UINT64_MAX);
  EXPECT_EQ(argmax(x).item<int64_t>(), 2);
  EXPECT_EQ(argmin(x).item<int64_t>(), 1);
  EXPECT_EQ(max(x).item<uint64_t>(), UINT64_MAX);
  EXPECT_EQ(min(x, 0).values.item<uint64_t>(), 3u);
  EXPECT_EQ(argmax(view(x, {4, 1}), 0).item<int64_t>(), 2);
  EXPECT_EQ(values_of(argmax(stack(std::vector<Tensor>{x, x}, 1), 0)), (std::vector<double>{2, 2}));
}

TEST(ComplexTensor, Products) {
  for (const ScalarType dtype : {kComplex64, kComplex128}) {
    const Tensor a = random({5, 7}, dtype, -2, 2, 1), b = random({7, 3}, dtype, -2, 2, 2);
    const auto left = complex_values_of(a), right = complex_values_of(b), got = complex_values_of(mm(a, b));
    for (size_t i = 0; i < 5; ++i)
      for (size_t j = 0; j < 3; ++j) {
        C want = 0;
        for (size_t p = 0; p < 7; ++p) want += left[i * 7 + p] * right[p * 3 + j];
        EXPECT_NEAR(std::abs(got[i * 3 + j] - want), 0, 1e-4);
      }
    const Tensor batched = matmul(stack(std::vector<Tensor>{a, a}, 0), b);
    EXPECT_EQ(batched.sizes(), IntSpan({2, 5, 3}));
  }
  const Function product = [](const std::vector<Tensor>& in) { return mm(in[0], in[1]); };
  Tensor a = random({2, 3}, kComplex128, -1, 1, 3), b = random({3, 2}, kComplex128, -1, 1, 4);
  EXPECT_TRUE(gradcheck(product, {a.requires_grad_(), b.requires_grad_()}));
}

TEST(ComplexTensor, Reductions) {
  const Tensor x = numbers({{1, 2}, {3, -1}, {0, 1}});
  EXPECT_EQ(complex_values_of(sum(x))[0], C(4, 2));
  EXPECT_EQ(complex_values_of(prod(x))[0], C(1, 2) * C(3, -1) * kUnit);
  EXPECT_EQ(count_nonzero(x).item<int64_t>(), 3);
  EXPECT_TRUE(any(numbers({{0, 0}, {0, 1}})).item<bool>());
  EXPECT_FALSE(all(numbers({{0, 0}, {0, 1}})).item<bool>());
  EXPECT_EQ(var(x, {}, 1).dtype(), kFloat32);
  EXPECT_NEAR(var(numbers({{1, 1}, {-1, -1}}), {}, 0).item<double>(), 2, 1e-6);
  EXPECT_NEAR(norm(numbers({{3, 4}, {0, 12}})).item<double>(), 13, 1e-5);
  for (const auto& f :
       {+[](const Tensor& t) { max(t); }, +[](const Tensor& t) { amax(t); }, +[](const Tensor& t) { lt(t, t); },
        +[](const Tensor& t) { floor(t); }, +[](const Tensor& t) { relu(t); }})
    EXPECT_THROW(f(x), NotImplementedError);
  for (const auto& f : {+[](const Tensor& t) { argmin(t); }, +[](const Tensor& t) { sort(t); },
                        +[](const Tensor& t) { maximum(t, t); }, +[](const Tensor& t) { isposinf(t); }})
    EXPECT_THROW(f(x), TypeError);
  EXPECT_EQ(message_of<NotImplementedError>([&] { lt(x, x); }), "\"lt_cpu\" not implemented for 'ComplexFloat'");

  const auto check = [](const Function& f) {
    Tensor in = make_complex({2, 3}, kComplex128, {{1, 2}, {0, 0}, {2, -1}, {-1, 1}, {0.5, 1}, {2, 2}});
    EXPECT_TRUE(gradcheck(f, {in.requires_grad_()}));
  };
  check([](const std::vector<Tensor>& in) { return prod(in[0], {1}); });
  check([](const std::vector<Tensor>& in) { return var(in[0], {1}); });
  check([](const std::vector<Tensor>& in) { return norm(add(in[0], 1), 2, {0}); });
}

TEST(ComplexTensor, RealFunctionsOfComplexNumbers) {
  const Tensor x = numbers({{3, 4}, {0, -2}}, kComplex128);
  EXPECT_EQ(abs(x).dtype(), kFloat64);
  EXPECT_EQ(values_of(abs(x)), (std::vector<double>{5, 2}));
  EXPECT_EQ(values_of(real(x)), (std::vector<double>{3, 0}));
  EXPECT_EQ(values_of(imag(x)), (std::vector<double>{4, -2}));
  EXPECT_TRUE(conj(of(kFloat32)).dtype() == kFloat32);
  EXPECT_TRUE(x.is_complex() && !of(kFloat32).is_complex());
  EXPECT_EQ(message_of<RuntimeError>([&] { abs_(x); }), "In-place abs is not supported for complex tensors.");
  EXPECT_EQ(message_of<TypeError>([&] { imag(of(kFloat32)); }),
            "imag is not implemented for tensors with non-complex dtypes.");
  EXPECT_THROW(complex(of(kFloat32), of(kFloat64)), RuntimeError);
  EXPECT_THROW(complex(of(kInt64), of(kInt64)), RuntimeError);
  const Tensor out = empty({2}, kFloat32);
  abs_out(out, numbers({{3, 4}, {0, -2}}));
  EXPECT_EQ(values_of(out), (std::vector<double>{5, 2}));
}

TEST(ComplexTensor, PartsAreViews) {
  const Tensor x = numbers({{3, 4}, {0, -2}}, kComplex128);
  real(x).mul_(2);
  imag(x).select(0, 1).fill_(7);
  EXPECT_EQ(complex_values_of(x), (std::vector<C>{{6, 4}, {0, 7}}));
  EXPECT_EQ(x.version(), 2u);
  const Tensor parts = view_as_real(x);
  EXPECT_EQ(parts.sizes(), IntSpan({2, 2}));
  EXPECT_TRUE(view_as_complex(parts).is_set_to(x));
  EXPECT_TRUE(real(of(kFloat32)).dtype() == kFloat32);
  EXPECT_EQ(message_of<TypeError>([&] { view_as_real(of(kFloat32)); }),
            "view_as_real is only supported for complex tensors");
  EXPECT_EQ(message_of<RuntimeError>([&] {
              view_as_complex(full({2, 3}, 1, kFloat32));
            }),
            "Tensor must have a last dimension of size 2");
  EXPECT_EQ(message_of<RuntimeError>([&] { view_as_complex(full({5}, 1, kFloat32).narrow(0, 1, 2)); }),
            "Tensor must have a storage_offset divisible by 2");
}

TEST(ComplexTensor, GradientsThroughChangedViews) {
  const auto check = [](const Function& f, ScalarType dtype, const Sizes& sizes) {
    Tensor in = random(sizes, dtype, 0.5, 2, 1);
    Tensor other = random({2}, kFloat64, 0.5, 2, 2);
    EXPECT_TRUE(gradcheck(f, {in.requires_grad_(), other.requires_grad_()}));
    EXPECT_TRUE(gradgradcheck(f, {in, other}));
  };
  // A real view of complex numbers is changed, ...
  const Function part_changed = [](const std::vector<Tensor>& in) {
    const Tensor y = mul(in[0], 2);
    imag(y).mul_(in[1]);
    return mul(y, y);
  };
  check(part_changed, kComplex128, {2});
  // ... its base, after the view was made, ...
  const Function base_changed = [](const std::vector<Tensor>& in) {
    Tensor y = mul(in[0], 2);
    const Tensor v = imag(y);
    y.mul_(in[1]);
    return mul(v, v);
  };
  check(base_changed, kComplex128, {2});
  // ... and the same for a complex view of real ones.
  const Function pairs_changed = [](const std::vector<Tensor>& in) {
    const Tensor y = mul(in[0], 2);
    view_as_complex(y).mul_(mul(in[1], Scalar(kUnit)));
    return mul(y, y);
  };
  check(pairs_changed, kFloat64, {2, 2});
  const Function real_base_changed = [](const std::vector<Tensor>& in) {
    Tensor y = mul(in[0], 2);
    const Tensor c = view_as_complex(y);
    y.mul_(unsqueeze(in[1], 1));
    return mul(c, c);
  };
  check(real_base_changed, kFloat64, {2, 2});
}

TEST(ComplexTensor, DefaultDtype) {
  set_default_dtype(kFloat64);
  EXPECT_EQ(add(of(kInt32), Scalar(kUnit)).dtype(), kComplex128);
  EXPECT_EQ(add(of(kInt32), 1.5).dtype(), kFloat64);
  EXPECT_EQ(sqrt(of(kInt32)).dtype(), kFloat64);
  EXPECT_EQ(add(of(kFloat32), 1.5).dtype(), kFloat32);
  set_default_dtype(kFloat32);
  EXPECT_EQ(sqrt(of(kInt32)).dtype(), kFloat32);
  EXPECT_THROW(set_default_dtype(kComplex64), RuntimeError);
}

TEST(ComplexTensor, ConversionDropsTheImaginaryPart) {
  const Tensor x = numbers({{1.5, 2}, {-3, 0}});
  EXPECT_EQ(values_of(to(x, kFloat32)), (std::vector<double>{1.5, -3}));
  EXPECT_EQ(values_of(to(x, kInt32)), (std::vector<double>{1, -3}));
  EXPECT_EQ(values_of(to(numbers({{0, 2}, {0, 0}}), kBool)), (std::vector<double>{1, 0}));
  EXPECT_EQ(x.select(0, 0).item().to_complex(), Complex<double>(1.5, 2));
  EXPECT_THROW(add_(of(kFloat32), x), RuntimeError);
  EXPECT_EQ(message_of<RuntimeError>([&] { fill_(of(kFloat32), Scalar(C(1, 2))); }),
            "value cannot be converted to type float without overflow");
  EXPECT_EQ(complex_values_of(full({1}, Scalar(C(1, 2)))), std::vector<C>{C(1, 2)});
  EXPECT_EQ(tensor({Scalar(C(1, 2)), Scalar(3)}).dtype(), kComplex64);
}

TEST(ComplexTensor, GradientsOfMixedOperands) {
  Tensor x = random({3}, kFloat64, 0.5, 2, 1), z = random({3}, kComplex128, 0.5, 2, 2);
  const auto check = [&](const Function& f) { EXPECT_TRUE(gradcheck(f, {x, z})); };
  x.requires_grad_();
  z.requires_grad_();
  check([](const std::vector<Tensor>& in) { return mul(in[0], in[1]); });
  check([](const std::vector<Tensor>& in) { return div(in[1], in[0]); });
  check([](const std::vector<Tensor>& in) { return sub(in[0], in[1], Scalar(C(1, 3))); });
  check([](const std::vector<Tensor>& in) { return pow(in[1], in[0]); });
  check([](const std::vector<Tensor>& in) { return abs(add(in[0], in[1])); });
  check([](const std::vector<Tensor>& in) { return mul(exp(in[1]), Scalar(C(2, 1))).mul_(in[0]); });
  Tensor loss = sum(abs(z));
  loss.backward();
  const auto got = complex_values_of(z.grad()), at = complex_values_of(z.detach());
  for (size_t k = 0; k < got.size(); ++k) EXPECT_NEAR(std::abs(got[k] - at[k] / std::abs(at[k])), 0, 1e-12);
  z.set_grad({});
  sum(z).backward();
  for (const auto& g : complex_values_of(z.grad())) EXPECT_EQ(g, 1.0) << "a complex scalar begins with 1";
}

TEST(ComplexTensor, PrintsAsPyTorchDoes) {
  EXPECT_EQ(to_string(numbers({{1, 2}, {3.5, -4}})), "tensor([1.0000+2.j, 3.5000-4.j])");
  EXPECT_EQ(to_string(numbers({{1, 2}}, kComplex128)), "tensor([1.+2.j], dtype=complex128)");
  EXPECT_EQ(to_string(full({}, Scalar(C(0, -1)))), "tensor(0.-1.j)");
  EXPECT_EQ(to_string(full({2}, Scalar(UINT64_MAX), kUInt64)),
            "tensor([18446744073709551615, 18446744073709551615], dtype=uint64)");
}

}  // namespace
}  // namespace tercel::test
