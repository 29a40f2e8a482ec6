// Factorizations, checked by their definitions.
#include <sys/wait.h>
#include <unistd.h>

#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/complex.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/linalg/linalg.h"
#include "tercel/ops/out_variants.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/views/diagonals.h"
#include "tercel/util/parallel.h"
#include "tests/ops/linalg/linalg_support.h"
#include "tests/support/errors.h"

namespace tercel::test {

namespace {

const double kNan = std::nan("");

/** Makes signs of columns of q unique, so that differences do not jump. */
Function qr_product(const char* mode, bool of_r) {
  return [mode, of_r](const std::vector<Tensor>& in) {
    const linalg::QrResult f = linalg::qr(in[0], mode);
    return of_r ? f.R : f.Q;
  };
}

}  // namespace

TEST(LinalgFactor, Cholesky) {
  for (const ScalarType dtype : {kFloat32, kFloat64})
    for (const Sizes& sizes : square_sizes()) {
      const Tensor a = definite(sizes, dtype);
      const Tensor l = linalg::cholesky(a), u = linalg::cholesky(a, true);
      expect_close(matmul(l, transposed(l)), a, tolerance_of(dtype));
      EXPECT_EQ(values_of(triu(l, 1)), std::vector<double>(static_cast<size_t>(a.numel()), 0));
      expect_close(u, transposed(l), tolerance_of(dtype));
    }
  EXPECT_EQ(linalg::cholesky(empty({3, 0, 0})).sizes(), IntSpan({3, 0, 0}));
}

TEST(LinalgFactor, CholeskyReadsOneTriangle) {
  const Tensor a = definite({4, 4}), noise = triu(matrices({4, 4}, kFloat64, 9), 1);
  expect_close(linalg::cholesky(add(a, noise)), linalg::cholesky(a), 0);
  expect_close(linalg::cholesky(add(a, transposed(noise)), true), linalg::cholesky(a, true), 0);
}

TEST(LinalgFactor, CholeskyOfWhatIsNotDefinite) {
  const Tensor a = definite({3, 2, 2});
  a.select(0, 1).copy_(make({2, 2}, kFloat64, {1, 2, 2, 1}));
  EXPECT_EQ(message_of<LinAlgError>([&] { linalg::cholesky(a); }),
            "linalg.cholesky: (Batch element 1): The factorization could not be completed because the input is not "
            "positive-definite (the leading minor of order 2 is not positive-definite).");
  EXPECT_EQ(message_of<RuntimeError>([&] {
              linalg::cholesky(make({1, 1}, kFloat32, {-1}));
            }),
            "linalg.cholesky: The factorization could not be completed because the input is not positive-definite (the "
            "leading minor of order 1 is not positive-definite).");
  EXPECT_EQ(values_of(linalg::cholesky_ex(a).info), (std::vector<double>{0, 2, 0}));
  EXPECT_THROW(linalg::cholesky_ex(a, false, true), LinAlgError);
}

TEST(LinalgFactor, CholeskyGradient) {
  for (const bool upper : {false, true})
    EXPECT_TRUE(gradients_agree(
        [upper](const std::vector<Tensor>& in) {
          return linalg::cholesky(add(matmul(transposed(in[0]), in[0]), identity_like(in[0])), upper);
        },
        {matrices({2, 3, 3})}));
}

TEST(LinalgFactor, CholeskySolve) {
  const Tensor a = definite({2, 4, 4}), b = matrices({2, 4, 3}, kFloat64, 2);
  for (const bool upper : {false, true}) {
    const Tensor factor = linalg::cholesky(a, upper);
    expect_close(matmul(a, cholesky_solve(b, factor, upper)), b, 1e-11);
    expect_close(matmul(a, cholesky_inverse(factor, upper)), identity_like(a), 1e-11);
    EXPECT_TRUE(gradients_agree(
        [upper](const std::vector<Tensor>& in) {
          return cholesky_solve(in[1], upper ? triu(in[0]) : tril(in[0]), upper);
        },
        {add(matrices({3, 3}), mul(identity_like(matrices({3, 3})), 3)), matrices({3, 2}, kFloat64, 2)}));
  }
}

TEST(LinalgFactor, Qr) {
  for (const ScalarType dtype : {kFloat32, kFloat64})
    for (const Sizes& sizes : matrix_sizes())
      for (const char* mode : {"reduced", "complete"}) {
        const Tensor a = matrices(sizes, dtype);
        const linalg::QrResult f = linalg::qr(a, mode);
        expect_close(matmul(f.Q, f.R), a, tolerance_of(dtype));
        expect_close(matmul(transposed(f.Q), f.Q), identity_like(f.Q), tolerance_of(dtype));
        expect_close(triu(f.R), f.R, 0);
      }
  const linalg::QrResult r = linalg::qr(matrices({5, 3}), "r");
  EXPECT_EQ(r.Q.numel(), 0);
  expect_close(r.R, linalg::qr(matrices({5, 3})).R, 0);
}

TEST(LinalgFactor, QrOfEmptyMatrices) {
  EXPECT_EQ(linalg::qr(empty({2, 0, 3})).R.sizes(), IntSpan({2, 0, 3}));
  EXPECT_EQ(linalg::qr(empty({3, 0})).Q.sizes(), IntSpan({3, 0}));
  expect_close(linalg::qr(empty({3, 0}), "complete").Q, eye(3), 0);
}

TEST(LinalgFactor, QrGradient) {
  for (const Sizes& sizes : {Sizes{4, 4}, Sizes{2, 5, 3}, Sizes{3, 5}})
    for (const bool of_r : {false, true}) {
      EXPECT_TRUE(gradients_agree(qr_product("reduced", of_r), {matrices(sizes)})) << of_r;
      if (sizes.back() < sizes[sizes.size() - 2]) continue;
      EXPECT_TRUE(gradients_agree(qr_product("complete", of_r), {matrices(sizes)})) << of_r;
    }
  EXPECT_TRUE(gradients_agree(
      [](const std::vector<Tensor>& in) {
        const linalg::QrResult f = linalg::qr(in[0]);
        return matmul(f.Q, square(f.R));
      },
      {matrices({4, 3})}));
  Tensor a = matrices({4, 3});
  a.requires_grad_();
  TERCEL_EXPECT_THROW(linalg::qr(a, "complete").R.sum().backward(), RuntimeError,
                      "The QR decomposition is not differentiable when mode='complete' and nrows > ncols.");
  TERCEL_EXPECT_THROW(linalg::qr(a, "r").R.sum().backward(), RuntimeError,
                      "The derivative of linalg.qr depends on Q, which is not computed when mode='r'.");
  TERCEL_EXPECT_THROW(
      linalg::qr(a, "economic"), RuntimeError,
      "qr received unrecognized mode 'economic' but expected one of 'reduced' (default), 'r', or 'complete'");
}

TEST(LinalgFactor, HouseholderProduct) {
  const Tensor a = matrices({2, 5, 3});
  const GeqrfResult f = geqrf(a);
  expect_close(triu(f.a), linalg::qr(a, "complete").R, 1e-12);
  expect_close(linalg::householder_product(f.a, f.tau), linalg::qr(a).Q, 1e-12);
  // The product of differentiable reflectors is the same.
  Tensor recorded = f.a.detach();
  recorded.requires_grad_();
  expect_close(linalg::householder_product(recorded, f.tau), linalg::qr(a).Q, 1e-12);
  EXPECT_TRUE(gradients_agree([](const std::vector<Tensor>& in) { return linalg::householder_product(in[0], in[1]); },
                              {matrices({4, 3}), matrices({2}, kFloat64, 2)}));
  expect_close(linalg::householder_product(empty({3, 2}), empty({0})), eye(3, 2), 0);
  TERCEL_EXPECT_THROW(linalg::householder_product(empty({2, 3}), empty({2})), RuntimeError,
                      "input.shape[-2] must be greater than or equal to input.shape[-1]");
}

TEST(LinalgFactor, ProductsWithReflectors) {
  for (const bool is_complex : {false, true}) {
    const Tensor real = matrices({2, 5, 3});
    const Tensor a = is_complex ? complex(real, matrices({2, 5, 3}, kFloat64, 2)) : real;
    const GeqrfResult f = geqrf(a);
    const Tensor q = linalg::qr(a, "complete").Q, b = matrices({2, 5, 2}, kFloat64, 3);
    const Tensor other = is_complex ? complex(b, b) : b, row = adjoint(other);
    expect_close(ormqr(f.a, f.tau, other), matmul(q, other), 1e-12);
    expect_close(ormqr(f.a, f.tau, other, true, true), matmul(adjoint(q), other), 1e-12);
    expect_close(ormqr(f.a, f.tau, row, false), matmul(row, q), 1e-12);
    expect_close(ormqr(f.a, f.tau, row, false, true), matmul(row, adjoint(q)), 1e-12);
  }
  EXPECT_TRUE(gradients_agree([](const std::vector<Tensor>& in) { return ormqr(in[0], in[1], in[2]); },
                              {matrices({4, 2}), matrices({2}, kFloat64, 2), matrices({4, 3}, kFloat64, 3)}));
  const Tensor a = ones({3, 2}), tau = ones({2});
  TERCEL_EXPECT_THROW(ormqr(a, tau, ones({4, 2})), RuntimeError,
                      "ormqr: other.shape[-2] must be equal to input.shape[-2]");
  TERCEL_EXPECT_THROW(ormqr(a, tau, ones({1, 2})), RuntimeError,
                      "other.shape[-2] must be greater than or equal to tau.shape[-1]");
  TERCEL_EXPECT_THROW(ormqr(a, ones({1}), ones({3, 2})), RuntimeError, "tau.shape[-1] must be equal to min(");
  TERCEL_EXPECT_THROW(ormqr(a, tau, ones({1, 3, 2})), RuntimeError, "got other.ndim equal to 3");
  TERCEL_EXPECT_THROW(
      ormqr(a, to(tau, kFloat64), a), RuntimeError,
      "Expected input and tau to have the same dtype, but input has dtypeFloat and tau has dtype Double");
  TERCEL_EXPECT_THROW(ormqr_out(empty({0}, kFloat64), a, tau, a), RuntimeError,
                      "ormqr: Expected input and result to have the same dtype");
}

TEST(LinalgFactor, OlderSvd) {
  const Tensor a = matrices({2, 4, 3});
  const auto [u, s, v] = svd(a);
  const linalg::SvdResult f = linalg::svd(a, false);
  expect_close(u, f.U, 0);
  expect_close(s, f.S, 0);
  expect_close(v, transposed(f.Vh), 0);
  EXPECT_EQ(svd(a, false).U.sizes(), IntSpan({2, 4, 4}));
  const OlderSvdResult values = svd(a, true, false);
  expect_close(values.S, f.S, 1e-12);
  expect_close(values.U, zeros({2, 4, 4}, kFloat64), 0);
  expect_close(values.V, zeros({2, 3, 3}, kFloat64), 0);
}

TEST(LinalgFactor, Svd) {
  for (const ScalarType dtype : {kFloat32, kFloat64})
    for (const Sizes& sizes : matrix_sizes()) {
      const Tensor a = matrices(sizes, dtype);
      const linalg::SvdResult f = linalg::svd(a, false);
      expect_close(matmul(mul(f.U, unsqueeze(f.S, -2)), f.Vh), a, tolerance_of(dtype));
      expect_close(matmul(transposed(f.U), f.U), identity_like(f.U), tolerance_of(dtype));
      expect_close(linalg::svdvals(a), f.S, tolerance_of(dtype));
      const linalg::SvdResult full = linalg::svd(a);
      EXPECT_EQ(full.U.size(-1), a.size(-2));
      EXPECT_EQ(full.Vh.size(-2), a.size(-1));
      expect_close(matmul(full.Vh, transposed(full.Vh)), identity_like(full.Vh), tolerance_of(dtype));
    }
  EXPECT_EQ(linalg::svd(empty({2, 0, 3}), false).Vh.sizes(), IntSpan({2, 0, 3}));
  expect_close(linalg::svd(empty({0, 2})).Vh, eye(2), 0);
}

TEST(LinalgFactor, SvdGradient) {
  for (const Sizes& sizes : {Sizes{3, 3}, Sizes{2, 4, 2}, Sizes{2, 4}}) {
    EXPECT_TRUE(
        gradients_agree([](const std::vector<Tensor>& in) { return linalg::svdvals(in[0]); }, {matrices(sizes)}));
    for (const bool full : {false, true}) {
      const auto of = [full](auto part) {
        return [full, part](const std::vector<Tensor>& in) { return part(linalg::svd(in[0], full)); };
      };
      // Columns change their signs together: products of both sides, and squares, do not.
      EXPECT_TRUE(gradients_agree(of([](const linalg::SvdResult& f) {
                                    const int64_t k = f.S.size(-1);
                                    return matmul(narrow(f.U, -1, 0, k), narrow(f.Vh, -2, 0, k));
                                  }),
                                  {matrices(sizes)}));
      EXPECT_TRUE(gradients_agree(
          of([](const linalg::SvdResult& f) { return square(narrow(f.U, -1, 0, f.S.size(-1))); }), {matrices(sizes)}));
      EXPECT_TRUE(gradients_agree(
          of([](const linalg::SvdResult& f) { return square(narrow(f.Vh, -2, 0, f.S.size(-1))); }), {matrices(sizes)}));
    }
  }
}

TEST(LinalgFactor, Eigh) {
  for (const ScalarType dtype : {kFloat32, kFloat64})
    for (const Sizes& sizes : square_sizes()) {
      const Tensor a = symmetric(matrices(sizes, dtype));
      for (const char uplo : {'L', 'U'}) {
        const Tensor noise = matrices(sizes, dtype, 5);
        const Tensor read = uplo == 'L' ? add(a, triu(noise, 1)) : add(a, tril(noise, -1));
        const linalg::EighResult f = linalg::eigh(read, uplo);
        expect_close(matmul(mul(f.eigenvectors, unsqueeze(f.eigenvalues, -2)), transposed(f.eigenvectors)), a,
                     tolerance_of(dtype));
        expect_close(linalg::eigvalsh(read, uplo), f.eigenvalues, tolerance_of(dtype));
      }
    }
  EXPECT_EQ(linalg::eigh(empty({2, 0, 0})).eigenvalues.sizes(), IntSpan({2, 0}));
  TERCEL_EXPECT_THROW(linalg::eigh(empty({2, 2}), 'X'), RuntimeError,
                      "Expected UPLO argument to be 'L' or 'U', but got X");
}

TEST(LinalgFactor, EighGradient) {
  EXPECT_TRUE(gradients_agree([](const std::vector<Tensor>& in) { return linalg::eigvalsh(symmetric(in[0])); },
                              {matrices({2, 4, 4})}));
  EXPECT_TRUE(
      gradients_agree([](const std::vector<Tensor>& in) { return square(linalg::eigh(symmetric(in[0])).eigenvectors); },
                      {matrices({3, 3})}));
  EXPECT_TRUE(gradients_agree(
      [](const std::vector<Tensor>& in) {
        const linalg::EighResult f = linalg::eigh(symmetric(in[0]));
        return matmul(mul(f.eigenvectors, unsqueeze(square(f.eigenvalues), -2)), transposed(f.eigenvectors));
      },
      {matrices({3, 3})}));
}

TEST(LinalgFactor, NotFinite) {
  const Tensor a = matrices({2, 3, 3});
  a.select(0, 1).copy_(make({1}, kFloat64, {kNan}));
  EXPECT_EQ(message_of<LinAlgError>([&] { linalg::svd(a); }),
            "linalg.svd: (Batch element 1): The algorithm failed to converge because the input matrix contained "
            "non-finite values.");
}

TEST(LinalgFactor, WrongOperands) {
  TERCEL_EXPECT_THROW(linalg::cholesky(empty({2, 3})), RuntimeError,
                      "linalg.cholesky: A must be batches of square matrices, but they are 2 by 3 matrices");
  TERCEL_EXPECT_THROW(linalg::qr(empty({3})), RuntimeError,
                      "linalg.qr: The input tensor A must have at least 2 dimensions.");
  TERCEL_EXPECT_THROW(linalg::svd(empty({2, 2}, kInt64)), RuntimeError,
                      "linalg.svd: Expected a floating point or complex tensor as input. Got Long");
  TERCEL_EXPECT_THROW(linalg::eigh(empty({2, 2}, kFloat16)), RuntimeError,
                      "linalg.eigh: Low precision dtypes not supported. Got Half");
  TERCEL_EXPECT_THROW(linalg::eigh(Tensor()), RuntimeError, "undefined");
}

TEST(LinalgFactor, InAForkedProcess) {
  const Tensor a = definite({60, 60});
  const std::string want = bytes_of(linalg::svdvals(a));
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) _exit(bytes_of(linalg::svdvals(a)) == want ? 0 : 1);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(LinalgThreads, BatchesAreTheSameOnAnyNumberOfThreads) {
  const int64_t before = num_threads();
  const Tensor a = definite({64, 24, 24}, kFloat32);
  set_num_threads(1);
  const Tensor l = linalg::cholesky(a), s = linalg::svdvals(a), i = linalg::inv(a);
  set_num_threads(4);
  EXPECT_EQ(bytes_of(linalg::cholesky(a)), bytes_of(l));
  EXPECT_EQ(bytes_of(linalg::svdvals(a)), bytes_of(s));
  EXPECT_EQ(bytes_of(linalg::inv(a)), bytes_of(i));
  set_num_threads(before);
}

}  // namespace tercel::test
