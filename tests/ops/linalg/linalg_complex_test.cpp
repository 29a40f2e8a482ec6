// Linear algebra of complex matrices, and eigenvalues of any square matrix.
#include <complex>

#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/complex.h"
#include "tercel/ops/elementwise/composite.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/linalg/linalg.h"
#include "tercel/ops/linalg/products.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/views/diagonals.h"
#include "tests/ops/linalg/linalg_support.h"
#include "tests/support/errors.h"

namespace tercel::test {

namespace {

using C = std::complex<double>;
constexpr ScalarType kComplexTypes[] = {kComplex64, kComplex128};
constexpr ScalarType kAllTypes[] = {kFloat32, kFloat64, kComplex64, kComplex128};

Tensor hermitian(const Tensor& a) { return mul(add(a, adjoint(a)), 0.5); }
Tensor complex_matrices(const Sizes& sizes, uint64_t seed = 1) { return matrices(sizes, kComplex128, seed); }
/** a^H a + 1. */
Tensor definite_of(const Tensor& a) { return add(matmul(adjoint(a), a), identity_like(a)); }
/** vectors diag(values) right. */
Tensor scaled_product(const Tensor& vectors, const Tensor& values, const Tensor& right) {
  return matmul(mul(vectors, unsqueeze(values, -2)), right);
}
/** Determinants by expansion along the first row. */
C determinant(const std::vector<C>& a, size_t n) {
  if (n == 0) return 1;
  C out = 0;
  for (size_t j = 0; j < n; ++j) {
    std::vector<C> rest;
    for (size_t i = 1; i < n; ++i)
      for (size_t k = 0; k < n; ++k)
        if (k != j) rest.push_back(a[i * n + k]);
    out += (j % 2 == 0 ? 1.0 : -1.0) * a[j] * determinant(rest, n - 1);
  }
  return out;
}

}  // namespace

TEST(LinalgComplex, Cholesky) {
  for (const ScalarType dtype : kComplexTypes)
    for (const Sizes& sizes : square_sizes()) {
      const Tensor a = definite_of(matrices(sizes, dtype));
      const Tensor l = linalg::cholesky(a), u = linalg::cholesky(a, true), b = matrices(sizes, dtype, 2);
      const double tolerance = 20 * tolerance_of(dtype);
      expect_close(matmul(l, adjoint(l)), a, tolerance);
      expect_close(tril(l), l, 0);
      expect_close(u, adjoint(l), tolerance);
      for (const bool upper : {false, true})
        expect_close(matmul(a, cholesky_solve(b, upper ? u : l, upper)), b, tolerance);
    }
  EXPECT_TRUE(gradients_agree([](const std::vector<Tensor>& in) { return linalg::cholesky(definite_of(in[0])); },
                              {complex_matrices({2, 3, 3})}));
  EXPECT_THROW(linalg::cholesky(neg(definite_of(complex_matrices({2, 2})))), LinAlgError);
}

TEST(LinalgComplex, Qr) {
  for (const ScalarType dtype : kComplexTypes)
    for (const Sizes& sizes : matrix_sizes())
      for (const char* mode : {"reduced", "complete"}) {
        const Tensor a = matrices(sizes, dtype);
        const linalg::QrResult f = linalg::qr(a, mode);
        expect_close(matmul(f.Q, f.R), a, tolerance_of(dtype));
        expect_close(matmul(adjoint(f.Q), f.Q), identity_like(f.Q), tolerance_of(dtype));
        expect_close(triu(f.R), f.R, 0);
      }
  for (const Sizes& sizes : {Sizes{3, 3}, Sizes{2, 4, 2}, Sizes{2, 4}}) {
    EXPECT_TRUE(
        gradients_agree([](const std::vector<Tensor>& in) { return linalg::qr(in[0]).Q; }, {complex_matrices(sizes)}));
    EXPECT_TRUE(
        gradients_agree([](const std::vector<Tensor>& in) { return linalg::qr(in[0]).R; }, {complex_matrices(sizes)}));
  }
  const GeqrfResult f = geqrf(complex_matrices({4, 3}));
  expect_close(linalg::householder_product(f.a, f.tau), linalg::qr(complex_matrices({4, 3})).Q, 1e-12);
  EXPECT_TRUE(gradients_agree([](const std::vector<Tensor>& in) { return linalg::householder_product(in[0], in[1]); },
                              {complex_matrices({4, 3}), complex_matrices({2}, 2)}));
}

TEST(LinalgComplex, Svd) {
  for (const ScalarType dtype : kComplexTypes)
    for (const Sizes& sizes : matrix_sizes()) {
      const Tensor a = matrices(sizes, dtype);
      const linalg::SvdResult f = linalg::svd(a, false), full = linalg::svd(a);
      EXPECT_EQ(f.S.dtype(), real_dtype(dtype));
      expect_close(scaled_product(f.U, f.S, f.Vh), a, tolerance_of(dtype));
      expect_close(matmul(adjoint(f.U), f.U), identity_like(f.U), tolerance_of(dtype));
      expect_close(matmul(full.Vh, adjoint(full.Vh)), identity_like(full.Vh), tolerance_of(dtype));
      expect_close(linalg::svdvals(a), f.S, tolerance_of(dtype));
    }
}

TEST(LinalgComplex, SvdGradient) {
  for (const Sizes& sizes : {Sizes{3, 3}, Sizes{2, 4, 2}, Sizes{2, 4}}) {
    const auto agrees = [&](auto part) {
      return gradients_agree([part](const std::vector<Tensor>& in) { return part(linalg::svd(in[0], false)); },
                             {complex_matrices(sizes)});
    };
    // Phases of U's and V's columns are arbitrary but opposite: functions that do not depend on them have a gradient.
    EXPECT_TRUE(agrees([](const linalg::SvdResult& f) { return f.S; }));
    EXPECT_TRUE(agrees([](const linalg::SvdResult& f) { return matmul(f.U, f.Vh); }));
    EXPECT_TRUE(agrees([](const linalg::SvdResult& f) { return abs(f.U); }));
    EXPECT_TRUE(agrees([](const linalg::SvdResult& f) { return abs(f.Vh); }));
    EXPECT_TRUE(agrees([](const linalg::SvdResult& f) { return scaled_product(f.U, square(f.S), f.Vh); }));
    EXPECT_TRUE(agrees([](const linalg::SvdResult& f) { return add(abs(sum(f.U, {-2})), abs(sum(f.Vh, {-1}))); }));
  }
  Tensor a = complex_matrices({3, 3});
  a.requires_grad_();
  TERCEL_EXPECT_THROW(sum(imag(linalg::svd(a).U)).backward(), RuntimeError,
                      "svd_backward: The singular vectors in the complex case are specified up to multiplication by "
                      "e^{i phi}. The specified loss function depends on this phase term, making it ill-defined.");
}

TEST(LinalgComplex, Eigh) {
  for (const ScalarType dtype : kComplexTypes)
    for (const Sizes& sizes : square_sizes()) {
      const Tensor a = hermitian(matrices(sizes, dtype)), noise = matrices(sizes, dtype, 5);
      for (const char uplo : {'L', 'U'}) {
        const Tensor read = uplo == 'L' ? add(a, triu(noise, 1)) : add(a, tril(noise, -1));
        const linalg::EighResult f = linalg::eigh(read, uplo);
        EXPECT_EQ(f.eigenvalues.dtype(), real_dtype(dtype));
        expect_close(scaled_product(f.eigenvectors, f.eigenvalues, adjoint(f.eigenvectors)), a, tolerance_of(dtype));
        expect_close(linalg::eigvalsh(read, uplo), f.eigenvalues, tolerance_of(dtype));
      }
    }
  EXPECT_TRUE(gradients_agree([](const std::vector<Tensor>& in) { return linalg::eigvalsh(hermitian(in[0])); },
                              {complex_matrices({2, 3, 3})}));
  EXPECT_TRUE(
      gradients_agree([](const std::vector<Tensor>& in) { return abs(linalg::eigh(hermitian(in[0])).eigenvectors); },
                      {complex_matrices({3, 3})}));
  EXPECT_TRUE(gradients_agree(
      [](const std::vector<Tensor>& in) {
        const linalg::EighResult f = linalg::eigh(hermitian(in[0]));
        return scaled_product(f.eigenvectors, square(f.eigenvalues), adjoint(f.eigenvectors));
      },
      {complex_matrices({3, 3})}));
  Tensor a = hermitian(complex_matrices({3, 3}));
  a.requires_grad_();
  TERCEL_EXPECT_THROW(sum(imag(linalg::eigh(a).eigenvectors)).backward(), RuntimeError,
                      "linalg_eigh_backward: The eigenvectors in the complex case");
}

TEST(LinalgComplex, Eig) {
  for (const ScalarType dtype : kAllTypes)
    for (const Sizes& sizes : square_sizes()) {
      const Tensor a = matrices(sizes, dtype), c = to(a, complex_dtype(dtype));
      const linalg::EigResult f = linalg::eig(a);
      EXPECT_EQ(f.eigenvalues.dtype(), complex_dtype(dtype));
      const double tolerance = 10 * tolerance_of(dtype);
      expect_close(matmul(c, f.eigenvectors), mul(f.eigenvectors, unsqueeze(f.eigenvalues, -2)), tolerance);
      const Tensor lengths = linalg::vector_norm(f.eigenvectors, 2, {-2});
      expect_close(lengths, ones_like(lengths), tolerance);
      // Without vectors the order may be another: sums of powers are not.
      const Tensor values = linalg::eigvals(a);
      for (const int64_t power : {1, 2, 3})
        expect_close(sum(pow(values, power), {-1}), sum(pow(f.eigenvalues, power), {-1}), 100 * tolerance);
    }
  EXPECT_EQ(linalg::eig(empty({2, 0, 0})).eigenvectors.sizes(), IntSpan({2, 0, 0}));
  EXPECT_EQ(linalg::eigvals(empty({0, 3, 3})).sizes(), IntSpan({0, 3}));
  // A turn by 90 degrees: i and -i.
  const auto turn = complex_values_of(linalg::eigvals(make({2, 2}, kFloat64, {0, -1, 1, 0})));
  EXPECT_NEAR(std::abs(turn[0] * turn[1] - 1.0), 0, 1e-14);
  EXPECT_NEAR(std::abs(turn[0].imag()), 1, 1e-14);
}

TEST(LinalgComplex, EigGradient) {
  for (const ScalarType dtype : {kFloat64, kComplex128}) {
    const auto agrees = [&](auto part, const Sizes& sizes) {
      return gradients_agree([part](const std::vector<Tensor>& in) { return part(linalg::eig(in[0])); },
                             {matrices(sizes, dtype, 3)});
    };
    EXPECT_TRUE(agrees([](const linalg::EigResult& f) { return f.eigenvalues; }, {2, 4, 4}));
    EXPECT_TRUE(agrees([](const linalg::EigResult& f) { return abs(f.eigenvectors); }, {4, 4}));
    EXPECT_TRUE(agrees(
        [](const linalg::EigResult& f) {
          return scaled_product(f.eigenvectors, pow(f.eigenvalues, 2), linalg::inv(f.eigenvectors));
        },
        {3, 3}));
    EXPECT_TRUE(gradients_agree([](const std::vector<Tensor>& in) { return linalg::eigvals(in[0]); },
                                {matrices({3, 3}, dtype, 3)}));
    Tensor a = matrices({3, 3}, dtype, 3);
    a.requires_grad_();
    TERCEL_EXPECT_THROW(sum(imag(mul(linalg::eig(a).eigenvectors, Scalar(C(1, 2))))).backward(), RuntimeError,
                        "linalg_eig_backward: The eigenvectors in the complex case");
  }
}

TEST(LinalgComplex, EigRefuses) {
  TERCEL_EXPECT_THROW(linalg::eig(empty({2, 3})), RuntimeError,
                      "linalg.eig: A must be batches of square matrices, but they are 2 by 3 matrices");
  TERCEL_EXPECT_THROW(linalg::eigvals(empty({2, 2}, kInt64)), NotImplementedError,
                      "linalg.eigvals: Expected a floating point or complex tensor as input. Got Long");
  TERCEL_EXPECT_THROW(linalg::eig(make({1, 1}, kFloat32, {std::nan("")})), RuntimeError,
                      "linalg.eig: input tensor should not contain infs or NaNs.");
}

TEST(LinalgComplex, Solve) {
  for (const ScalarType dtype : kComplexTypes)
    for (const Sizes& sizes : square_sizes()) {
      const Tensor a = add(matrices(sizes, dtype), mul(identity_like(matrices(sizes, dtype)), 3));
      const Tensor b = matrices(sizes, dtype, 2);
      const double tolerance = 20 * tolerance_of(dtype);
      expect_close(matmul(a, linalg::solve(a, b)), b, tolerance);
      expect_close(matmul(linalg::solve(a, b, false), a), b, tolerance);
      expect_close(matmul(linalg::inv(a), a), identity_like(a), tolerance);
      const linalg::LuResult f = linalg::lu(a);
      expect_close(matmul(matmul(f.P, f.L), f.U), a, tolerance);
      const linalg::LuResult plain = linalg::lu(a, false);
      expect_close(matmul(plain.L, plain.U), a, tolerance);
      const linalg::LuFactorResult packed = linalg::lu_factor(a);
      for (const bool left : {false, true})
        for (const bool of_adjoint : {false, true}) {
          const Tensor x = linalg::lu_solve(packed.LU, packed.pivots, b, left, of_adjoint);
          const Tensor matrix = of_adjoint ? adjoint(a) : a;
          expect_close(left ? matmul(matrix, x) : matmul(x, matrix), b, tolerance);
        }
      for (const bool upper : {false, true}) {
        const Tensor triangle = upper ? triu(a) : tril(a);
        expect_close(matmul(triangle, linalg::solve_triangular(a, b, upper)), b, tolerance);
        expect_close(matmul(linalg::solve_triangular(a, b, upper, false), triangle), b, tolerance);
      }
    }
  EXPECT_THROW(linalg::inv(zeros({2, 2}, kComplex64)), LinAlgError);
}

TEST(LinalgComplex, SolveGradient) {
  const Tensor a = complex_matrices({2, 3, 3}), b = complex_matrices({2, 3, 2}, 2);
  const auto agree = [&](const Function& f) { return gradients_agree(f, {a, b}); };
  EXPECT_TRUE(agree([](const std::vector<Tensor>& in) { return linalg::solve(in[0], in[1]); }));
  EXPECT_TRUE(agree([](const std::vector<Tensor>& in) { return linalg::solve(in[0], adjoint(in[1]), false); }));
  EXPECT_TRUE(agree([](const std::vector<Tensor>& in) { return linalg::solve_triangular(in[0], in[1], true); }));
  EXPECT_TRUE(agree([](const std::vector<Tensor>& in) { return linalg::solve_triangular(in[0], in[1], false); }));
  EXPECT_TRUE(agree([](const std::vector<Tensor>& in) {
    const linalg::LuFactorExResult f = linalg::lu_factor_ex(in[0]);
    return linalg::lu_solve(f.LU, f.pivots, in[1], true, true);
  }));
  for (const auto& f : {linalg::inv, linalg::matrix_exp})
    EXPECT_TRUE(gradients_agree([f](const std::vector<Tensor>& in) { return f(in[0]); }, {a}));
  for (const Sizes& sizes : {Sizes{3, 3}, Sizes{4, 2}, Sizes{2, 4}})
    for (const bool of_l : {false, true})
      EXPECT_TRUE(gradients_agree(
          [of_l](const std::vector<Tensor>& in) {
            const linalg::LuResult f = linalg::lu(in[0]);
            return of_l ? f.L : f.U;
          },
          {complex_matrices(sizes)}));
}

TEST(LinalgComplex, Ldl) {
  for (const ScalarType dtype : kComplexTypes)
    for (const bool is_hermitian : {false, true}) {
      const Tensor x = matrices({2, 5, 5}, dtype), b = matrices({2, 5, 2}, dtype, 2);
      const Tensor a = is_hermitian ? hermitian(x) : mul(add(x, transposed(x)), 0.5);
      const linalg::LdlFactorResult f = linalg::ldl_factor(a, is_hermitian);
      expect_close(matmul(a, linalg::ldl_solve(f.LD, f.pivots, b, is_hermitian)), b, 20 * tolerance_of(dtype));
      if (dtype != kComplex128) continue;
      EXPECT_TRUE(gradients_agree(
          [&](const std::vector<Tensor>& in) { return linalg::ldl_solve(f.LD, f.pivots, in[0], is_hermitian); }, {b}));
    }
}

TEST(LinalgComplex, Determinants) {
  for (const int64_t n : {1, 2, 3, 4, 5}) {
    const Tensor a = complex_matrices({n, n});
    const C want = determinant(complex_values_of(a), static_cast<size_t>(n));
    EXPECT_NEAR(std::abs(complex_values_of(linalg::det(a))[0] - want), 0, 1e-13);
    const linalg::SlogdetResult parts = linalg::slogdet(a);
    EXPECT_EQ(parts.logabsdet.dtype(), kFloat64);
    EXPECT_NEAR(std::abs(complex_values_of(parts.sign)[0] - want / std::abs(want)), 0, 1e-13);
    EXPECT_NEAR(values_of(parts.logabsdet)[0], std::log(std::abs(want)), 1e-12);
    EXPECT_NEAR(std::abs(complex_values_of(logdet(a))[0] - std::log(want)), 0, 1e-12);
  }
  const Tensor a = complex_matrices({2, 3, 3});
  EXPECT_TRUE(gradients_agree([](const std::vector<Tensor>& in) { return linalg::det(in[0]); }, {a}));
  EXPECT_TRUE(gradients_agree([](const std::vector<Tensor>& in) { return logdet(in[0]); }, {a}));
  EXPECT_TRUE(gradients_agree([](const std::vector<Tensor>& in) { return linalg::slogdet(in[0]).sign; }, {a}));
  EXPECT_TRUE(gradients_agree([](const std::vector<Tensor>& in) { return linalg::slogdet(in[0]).logabsdet; }, {a}));
  EXPECT_TRUE(gradients_agree(
      [](const std::vector<Tensor>& in) {
        const linalg::SlogdetResult f = linalg::slogdet(in[0]);
        return mul(f.sign, f.logabsdet);
      },
      {a}));
  // Of rank 2: the gradient goes through singular values.
  const Tensor singular = matmul(complex_matrices({3, 2}), complex_matrices({2, 3}, 2));
  singular.select(0, 2).copy_(zeros({3}, kComplex128));
  EXPECT_EQ(complex_values_of(linalg::det(singular))[0], C(0));
  EXPECT_TRUE(gradients_agree([](const std::vector<Tensor>& in) { return linalg::det(in[0]); }, {singular}));
}

TEST(LinalgComplex, PinvAndRank) {
  for (const ScalarType dtype : kComplexTypes)
    for (const Sizes& sizes : matrix_sizes()) {
      const Tensor a = matrices(sizes, dtype), p = linalg::pinv(a);
      const double tolerance = 20 * tolerance_of(dtype);
      expect_close(matmul(matmul(a, p), a), a, tolerance);
      expect_close(matmul(matmul(p, a), p), p, tolerance);
      expect_close(adjoint(matmul(a, p)), matmul(a, p), tolerance);
      expect_close(adjoint(matmul(p, a)), matmul(p, a), tolerance);
    }
  const Tensor h = hermitian(complex_matrices({4, 4}));
  expect_close(linalg::pinv(h, {}, {}, true), linalg::inv(h), 1e-11);
  const Tensor low = matmul(complex_matrices({5, 2}), complex_matrices({2, 4}, 2));
  EXPECT_EQ(values_of(linalg::matrix_rank(low))[0], 2);
  EXPECT_EQ(values_of(linalg::matrix_rank(matmul(low, adjoint(low)), {}, {}, true))[0], 2);
  for (const Sizes& sizes : {Sizes{3, 3}, Sizes{4, 2}, Sizes{2, 4}})
    EXPECT_TRUE(
        gradients_agree([](const std::vector<Tensor>& in) { return linalg::pinv(in[0]); }, {complex_matrices(sizes)}));
}

TEST(LinalgComplex, LeastSquares) {
  for (const ScalarType dtype : kComplexTypes)
    for (const char* driver : {"gels", "gelsy", "gelsd", "gelss"})
      for (const Sizes& sizes : {Sizes{2, 5, 3}, Sizes{4, 4}, Sizes{3, 5}, Sizes{60, 40}}) {
        const Tensor a = matrices(sizes, dtype), b = matrices({sizes[sizes.size() - 2], 2}, dtype, 2);
        const linalg::LstsqResult f = linalg::lstsq(a, b, {}, driver);
        const double tolerance = 50 * tolerance_of(dtype);
        expect_close(f.solution, matmul(linalg::pinv(a), b), tolerance);
        if (sizes[sizes.size() - 2] > sizes.back() && std::string(driver) != "gelsy")
          expect_close(f.residuals, sum(square(abs(sub(matmul(a, f.solution), b))), {-2}), tolerance);
        if (f.singular_values.numel() > 0) expect_close(f.singular_values, linalg::svdvals(a), tolerance);
        if (f.rank.numel() > 0) {
          EXPECT_EQ(values_of(f.rank)[0], std::min(sizes.back(), sizes[sizes.size() - 2]));
        }
      }
  EXPECT_TRUE(
      gradients_agree([](const std::vector<Tensor>& in) { return linalg::lstsq(in[0], in[1], {}, "gels").solution; },
                      {complex_matrices({4, 2}), complex_matrices({4, 3}, 2)}));
}

TEST(LinalgComplex, MatrixExp) {
  // exp(i t sigma_x) = cos t + i sin t sigma_x
  const double t = 7;
  const Tensor a = make_complex({2, 2}, kComplex128, {0, C(0, t), C(0, t), 0});
  const C c = std::cos(t), s(0, std::sin(t));
  expect_close(linalg::matrix_exp(a), make_complex({2, 2}, kComplex128, {c, s, s, c}), 1e-12);
}

TEST(LinalgComplex, Norms) {
  const Tensor a = make_complex({2, 2}, kComplex128, {C(3, 4), 0, C(0, 2), C(0, -1)});
  EXPECT_EQ(linalg::matrix_norm(a).dtype(), kFloat64);
  EXPECT_NEAR(values_of(linalg::matrix_norm(a))[0], std::sqrt(30.0), 1e-13);
  EXPECT_NEAR(values_of(linalg::matrix_norm(a, 1.0))[0], 7, 1e-13);
  EXPECT_NEAR(values_of(linalg::matrix_norm(a, -1.0))[0], 1, 1e-13);
  EXPECT_NEAR(values_of(linalg::matrix_norm(a, std::numeric_limits<double>::infinity()))[0], 5, 1e-13);
  const std::vector<double> s = values_of(linalg::svdvals(a));
  EXPECT_NEAR(values_of(linalg::matrix_norm(a, "nuc"))[0], s[0] + s[1], 1e-13);
  EXPECT_NEAR(values_of(linalg::cond(a))[0], s[0] / s[1], 1e-12);
  EXPECT_NEAR(values_of(linalg::cond(a, "fro"))[0], 30 / 5.0, 1e-12);
  EXPECT_NEAR(values_of(linalg::norm(a, 3.0, IntSpan({1})))[1], std::cbrt(9.0), 1e-13);
  for (const double p : {1.0, 2.0, -2.0})
    EXPECT_TRUE(gradients_agree([p](const std::vector<Tensor>& in) { return linalg::matrix_norm(in[0], p); },
                                {complex_matrices({3, 4})}));
  for (const char* p : {"fro", "nuc"})
    EXPECT_TRUE(gradients_agree([p](const std::vector<Tensor>& in) { return linalg::matrix_norm(in[0], p); },
                                {complex_matrices({3, 4})}));
  TERCEL_EXPECT_THROW(linalg::norm(a, std::nullopt, {}, false, kFloat64), RuntimeError,
                      "linalg.vector_norm: dtype should be complex for complex inputs, but got Double");
  TERCEL_EXPECT_THROW(linalg::matrix_norm(real(a), 1.0, {0, 1}, false, kComplex128), RuntimeError,
                      "linalg.matrix_norm: dtype should be real for real inputs, but got ComplexDouble");
  EXPECT_EQ(linalg::vector_norm(to(a, kComplex64), 2, {}, false, kComplex128).dtype(), kFloat64);
}

TEST(LinalgComplex, SecondDerivatives) {
  const Function functions[] = {
      [](const std::vector<Tensor>& in) { return linalg::det(in[0]); },
      [](const std::vector<Tensor>& in) { return linalg::inv(in[0]); },
      [](const std::vector<Tensor>& in) { return linalg::slogdet(in[0]).sign; },
      [](const std::vector<Tensor>& in) { return linalg::cholesky(definite_of(in[0])); },
      [](const std::vector<Tensor>& in) { return linalg::qr(in[0]).Q; },
      [](const std::vector<Tensor>& in) { return linalg::svdvals(in[0]); },
      [](const std::vector<Tensor>& in) { return abs(linalg::svd(in[0]).U); },
      [](const std::vector<Tensor>& in) { return abs(linalg::eigh(hermitian(in[0])).eigenvectors); },
      [](const std::vector<Tensor>& in) { return abs(linalg::eig(in[0]).eigenvectors); },
  };
  for (size_t i = 0; i < std::size(functions); ++i) {
    Tensor a = complex_matrices({3, 3}, 3);
    a.requires_grad_();
    EXPECT_TRUE(gradgradcheck(functions[i], {a})) << "function " << i;
  }
}

TEST(LinalgComplex, Products) {
  const Tensor a = complex_matrices({3, 3}), x = complex_matrices({4, 3}), y = complex_matrices({4, 3}, 2);
  expect_close(linalg::matrix_power(a, 3), matmul(matmul(a, a), a), 1e-12);
  expect_close(matmul(linalg::matrix_power(a, -2), matmul(a, a)), identity_like(a), 1e-10);
  expect_close(linalg::vecdot(x, y), sum(mul(conj(x), y), {-1}), 1e-13);
  EXPECT_TRUE(gradients_agree([](const std::vector<Tensor>& in) { return linalg::vecdot(in[0], in[1]); }, {x, y}));
}

}  // namespace tercel::test
