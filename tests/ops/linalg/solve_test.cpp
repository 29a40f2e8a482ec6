// Linear systems, inverses, determinants, least squares.
#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/linalg/linalg.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/views/diagonals.h"
#include "tests/ops/linalg/linalg_support.h"
#include "tests/support/errors.h"

namespace tercel::test {

namespace {

using Tensors = std::vector<Tensor>;

Tensor singular() { return make({2, 2}, kFloat64, {1, 2, 2, 4}); }

}  // namespace

TEST(LinalgSolve, Lu) {
  for (const ScalarType dtype : {kFloat32, kFloat64})
    for (const Sizes& sizes : matrix_sizes()) {
      const Tensor a = matrices(sizes, dtype);
      const linalg::LuResult f = linalg::lu(a);
      expect_close(matmul(f.P, matmul(f.L, f.U)), a, tolerance_of(dtype));
      expect_close(tril(f.L), f.L, 0);
      expect_close(triu(f.U), f.U, 0);
      const linalg::LuFactorResult packed = linalg::lu_factor(a);
      const LuUnpackResult parts = lu_unpack(packed.LU, packed.pivots);
      expect_close(parts.L, f.L, 0);
      expect_close(parts.P, f.P, 0);
    }
  const Tensor dominant = add(matrices({4, 4}), mul(eye(4, 4, kFloat64), 5));
  const linalg::LuResult f = linalg::lu(dominant, false);
  EXPECT_EQ(f.P.numel(), 0);
  expect_close(matmul(f.L, f.U), dominant, 1e-12);
  EXPECT_EQ(linalg::lu(empty({0, 3})).U.sizes(), IntSpan({0, 3}));
}

TEST(LinalgSolve, LuGradient) {
  for (const Sizes& sizes : {Sizes{3, 3}, Sizes{2, 4, 3}, Sizes{3, 5}}) {
    EXPECT_TRUE(gradients_agree([](const Tensors& in) { return linalg::lu(in[0]).L; }, {matrices(sizes)}));
    EXPECT_TRUE(gradients_agree([](const Tensors& in) { return linalg::lu(in[0]).U; }, {matrices(sizes)}));
    EXPECT_TRUE(gradients_agree([](const Tensors& in) { return linalg::lu_factor(in[0]).LU; }, {matrices(sizes)}));
  }
}

TEST(LinalgSolve, LuSolve) {
  const Tensor a = matrices({3, 4, 4}), b = matrices({3, 4, 2}, kFloat64, 2), c = matrices({3, 2, 4}, kFloat64, 3);
  const linalg::LuFactorResult f = linalg::lu_factor(a);
  expect_close(matmul(a, linalg::lu_solve(f.LU, f.pivots, b)), b, 1e-11);
  expect_close(matmul(transposed(a), linalg::lu_solve(f.LU, f.pivots, b, true, true)), b, 1e-11);
  expect_close(matmul(linalg::lu_solve(f.LU, f.pivots, c, false), a), c, 1e-11);
  expect_close(matmul(linalg::lu_solve(f.LU, f.pivots, c, false, true), transposed(a)), c, 1e-11);
  for (const bool adjoint : {false, true})
    EXPECT_TRUE(gradients_agree(
        [&, adjoint](const Tensors& in) {
          return linalg::lu_solve(in[0], f.pivots.select(0, 0), in[1], true, adjoint);
        },
        {clone(f.LU.select(0, 0), MemoryFormat::Contiguous), matrices({4, 2}, kFloat64, 2)}));
  TERCEL_EXPECT_THROW(lu_unpack(f.LU, full(f.pivots.sizes(), 9, TensorOptions(kInt32))), RuntimeError,
                      "LU.size(-2) inclusive");
  TERCEL_EXPECT_THROW(linalg::lu_factor(singular()), LinAlgError,
                      "U[2,2] is zero and using it on lu_solve would result");
}

TEST(LinalgSolve, Solve) {
  for (const ScalarType dtype : {kFloat32, kFloat64})
    for (const Sizes& sizes : square_sizes()) {
      const Tensor a = add(matrices(sizes, dtype), mul(identity_like(matrices(sizes, dtype)), 3));
      Sizes side = sizes;
      side.back() = 3;
      const Tensor b = matrices(side, dtype, 2);
      expect_close(matmul(a, linalg::solve(a, b)), b, tolerance_of(dtype));
      expect_close(matmul(linalg::solve(a, transposed(b), false), a), transposed(b), tolerance_of(dtype));
      side.pop_back();
      const Tensor v = matrices(side, dtype, 3);
      expect_close(squeeze(matmul(a, unsqueeze(linalg::solve(a, v), -1)), -1), v, tolerance_of(dtype));
    }
  EXPECT_EQ(linalg::solve(empty({0, 0}), empty({0, 2})).sizes(), IntSpan({0, 2}));
  EXPECT_EQ(linalg::solve(matrices({2, 2}), empty({2, 0}, kFloat64)).sizes(), IntSpan({2, 0}));
}

TEST(LinalgSolve, SolveBroadcasts) {
  const Tensor a = matrices({2, 1, 3, 3}), b = matrices({4, 3, 2}, kFloat64, 2);
  const Tensor x = linalg::solve(a, b);
  EXPECT_EQ(x.sizes(), IntSpan({2, 4, 3, 2}));
  expect_close(matmul(a, x), expand(b, {2, 4, 3, 2}), 1e-11);
  EXPECT_TRUE(gradients_agree([](const Tensors& in) { return linalg::solve(in[0], in[1]); },
                              {matrices({2, 1, 2, 2}), matrices({3, 2, 2}, kFloat64, 2)}));
}

TEST(LinalgSolve, SolveGradient) {
  const auto solve = [](const Tensors& in) { return linalg::solve(in[0], in[1]); };
  EXPECT_TRUE(gradients_agree(solve, {matrices({2, 3, 3}), matrices({2, 3, 2}, kFloat64, 2)}));
  EXPECT_TRUE(gradients_agree(solve, {matrices({2, 3, 3}), matrices({2, 3}, kFloat64, 2)}));
  EXPECT_TRUE(gradients_agree([](const Tensors& in) { return linalg::solve(in[0], in[1], false); },
                              {matrices({3, 3}), matrices({2, 3}, kFloat64, 2)}));
}

TEST(LinalgSolve, Singular) {
  const Tensor b = ones({2, 1}, kFloat64);
  EXPECT_EQ(message_of<LinAlgError>([&] { linalg::solve(singular(), b); }),
            "linalg.solve: The solver failed because the input matrix is singular.");
  EXPECT_EQ(
      message_of<LinAlgError>([&] { linalg::inv(singular()); }),
      "linalg.inv: The diagonal element 2 is zero, the inversion could not be completed because the input matrix is "
      "singular.");
  const Tensor batch = matrices({3, 2, 2});
  batch.select(0, 2).copy_(singular());
  TERCEL_EXPECT_THROW(linalg::inv(batch), LinAlgError, "linalg.inv: (Batch element 2): The diagonal element 2 is zero");
  EXPECT_EQ(values_of(linalg::inv_ex(batch).info), (std::vector<double>{0, 0, 2}));
  EXPECT_EQ(values_of(linalg::solve_ex(singular(), b).info), (std::vector<double>{2}));
  EXPECT_THROW(linalg::solve_ex(singular(), b, true, true), LinAlgError);
}

TEST(LinalgSolve, SolveTriangular) {
  for (const bool upper : {false, true})
    for (const bool left : {false, true})
      for (const bool unit : {false, true}) {
        const Tensor a = add(matrices({2, 3, 3}), mul(eye(3, 3, kFloat64), 2)), b = matrices({2, 3, 3}, kFloat64, 2);
        Tensor triangle = upper ? triu(a, unit ? 1 : 0) : tril(a, unit ? -1 : 0);
        if (unit) triangle = add(triangle, eye(3, 3, kFloat64));
        const Tensor x = linalg::solve_triangular(a, b, upper, left, unit);
        expect_close(left ? matmul(triangle, x) : matmul(x, triangle), b, 1e-11);
        expect_close(linalg::solve_triangular(placed(a, Placement::Transposed), b, upper, left, unit), x, 1e-12);
        EXPECT_TRUE(gradients_agree(
            [=](const Tensors& in) { return linalg::solve_triangular(in[0], in[1], upper, left, unit); }, {a, b}));
      }
  const Tensor a = triu(add(matrices({3, 3}), mul(eye(3, 3, kFloat64), 2))), b = matrices({3, 2}, kFloat64, 2);
  expect_close(matmul(transposed(a), triangular_solve(b, a, true, true).solution), b, 1e-11);
  expect_close(triangular_solve(b, a).cloned_coefficient, a, 0);
}

TEST(LinalgSolve, Inverse) {
  for (const ScalarType dtype : {kFloat32, kFloat64})
    for (const Sizes& sizes : square_sizes()) {
      const Tensor a = definite(sizes, dtype);
      expect_close(matmul(a, linalg::inv(a)), identity_like(a), 5 * tolerance_of(dtype));
    }
  EXPECT_TRUE(gradients_agree([](const Tensors& in) { return linalg::inv(in[0]); }, {matrices({2, 3, 3})}));
  EXPECT_EQ(linalg::inv(empty({2, 0, 0})).sizes(), IntSpan({2, 0, 0}));
}

TEST(LinalgSolve, Determinant) {
  const Tensor a = make({2, 2, 2}, kFloat64, {1, 2, 3, 4, 0, 1, 1, 0});
  expect_close(linalg::det(a), make({2}, kFloat64, {-2, -1}), 1e-14);
  EXPECT_EQ(values_of(linalg::det(empty({2, 0, 0}))), (std::vector<double>{1, 1}));
  const linalg::SlogdetResult f = linalg::slogdet(a);
  expect_close(f.sign, make({2}, kFloat64, {-1, -1}), 0);
  expect_close(f.logabsdet, make({2}, kFloat64, {std::log(2.0), 0}), 1e-14);
  EXPECT_TRUE(std::isnan(values_of(logdet(a))[0]));
  EXPECT_EQ(values_of(linalg::slogdet(singular()).sign), (std::vector<double>{0}));
  EXPECT_EQ(values_of(linalg::slogdet(singular()).logabsdet), (std::vector<double>{-HUGE_VAL}));
}

TEST(LinalgSolve, DeterminantGradient) {
  const auto det = [](const Tensors& in) { return linalg::det(in[0]); };
  EXPECT_TRUE(gradients_agree(det, {matrices({2, 3, 3})}));
  EXPECT_TRUE(gradients_agree(det, {singular()}));
  // Of rank 1 of 3 every cofactor is 0.
  EXPECT_TRUE(gradients_agree(det, {make({3, 3}, kFloat64, {1, 2, 3, 2, 4, 6, 3, 6, 9})}));
  EXPECT_TRUE(
      gradients_agree([](const Tensors& in) { return linalg::slogdet(in[0]).logabsdet; }, {matrices({2, 3, 3})}));
  EXPECT_TRUE(gradients_agree([](const Tensors& in) { return logdet(in[0]); }, {definite({3, 3})}));
}

TEST(LinalgSolve, PseudoInverse) {
  for (const Sizes& sizes : matrix_sizes()) {
    const Tensor a = matrices(sizes), p = linalg::pinv(a);
    expect_close(matmul(matmul(a, p), a), a, 1e-11);
    expect_close(matmul(matmul(p, a), p), p, 1e-10);
  }
  const Tensor s = symmetric(matrices({3, 3}));
  expect_close(linalg::pinv(s, {}, {}, true), linalg::inv(s), 1e-11);
  const Tensor p = linalg::pinv(singular());
  expect_close(matmul(matmul(singular(), p), singular()), singular(), 1e-12);
  EXPECT_EQ(linalg::pinv(empty({2, 0, 3})).sizes(), IntSpan({2, 3, 0}));
  for (const Sizes& sizes : {Sizes{3, 3}, Sizes{2, 4, 2}, Sizes{2, 4}})
    EXPECT_TRUE(gradients_agree([](const Tensors& in) { return linalg::pinv(in[0]); }, {matrices(sizes)}));
}

TEST(LinalgSolve, Rank) {
  EXPECT_EQ(values_of(linalg::matrix_rank(singular())), (std::vector<double>{1}));
  EXPECT_EQ(values_of(linalg::matrix_rank(singular(), {}, {}, true)), (std::vector<double>{1}));
  EXPECT_EQ(values_of(linalg::matrix_rank(matrices({2, 3, 4}))), (std::vector<double>{3, 3}));
  EXPECT_EQ(values_of(linalg::matrix_rank(make({2, 2}, kFloat64, {4, 0, 0, 1}), 2.0)), (std::vector<double>{1}));
  EXPECT_EQ(values_of(linalg::matrix_rank(make({2, 2}, kFloat64, {4, 0, 0, 1}), {}, 0.5)), (std::vector<double>{1}));
  EXPECT_EQ(values_of(linalg::matrix_rank(zeros({2, 2}))), (std::vector<double>{0}));
  EXPECT_EQ(linalg::matrix_rank(empty({2, 0, 3})).dtype(), kInt64);
}

TEST(LinalgSolve, LeastSquares) {
  for (const char* driver : {"gels", "gelsy", "gelsd", "gelss"})
    for (const ScalarType dtype : {kFloat32, kFloat64})
      for (const Sizes& sizes : {Sizes{4, 4}, Sizes{2, 5, 3}, Sizes{3, 5}}) {
        const Tensor a = matrices(sizes, dtype);
        Sizes side = sizes;
        side.back() = 2;
        const Tensor b = matrices(side, dtype, 2);
        const linalg::LstsqResult out = linalg::lstsq(a, b, {}, driver);
        expect_close(out.solution, matmul(linalg::pinv(a), b), 100 * tolerance_of(dtype));
        EXPECT_EQ(out.rank.numel() == 0, std::string(driver) == "gels");
        EXPECT_EQ(out.residuals.numel() > 0, sizes[sizes.size() - 2] > sizes.back() && std::string(driver) != "gelsy");
        if (std::string(driver) == "gelsd") expect_close(out.singular_values, linalg::svdvals(a), tolerance_of(dtype));
      }
  const linalg::LstsqResult line =
      linalg::lstsq(make({3, 2}, kFloat64, {1, 0, 1, 1, 1, 2}), make({3}, kFloat64, {0, 2, 1}), {}, "gelsd");
  expect_close(line.solution, make({2}, kFloat64, {0.5, 0.5}), 1e-12);
  expect_close(line.residuals, make({}, kFloat64, {1.5}), 1e-12);
  EXPECT_EQ(values_of(linalg::lstsq(singular(), ones({2, 1}, kFloat64)).rank), (std::vector<double>{1}));
  for (const Sizes& sizes : {Sizes{3, 3}, Sizes{4, 2}, Sizes{2, 4}})
    EXPECT_TRUE(gradients_agree([](const Tensors& in) { return linalg::lstsq(in[0], in[1]).solution; },
                                {matrices(sizes), matrices({sizes[0], 2}, kFloat64, 2)}));
  TERCEL_EXPECT_THROW(linalg::lstsq(singular(), singular(), {}, "qr"), RuntimeError,
                      "parameter `driver` should be one of (gels, gelsy, gelsd, gelss)");
}

TEST(LinalgSolve, MatrixExponential) {
  expect_close(linalg::matrix_exp(zeros({2, 2}, kFloat64)), eye(2, 2, kFloat64), 1e-15);
  EXPECT_TRUE(linalg::matrix_exp(zeros({0, 3, 3}).requires_grad_()).requires_grad());
  // A rotation, by small and by large angles, and a nilpotent matrix.
  for (const double angle : {0.5, 3.0, 40.0}) {
    const Tensor turn = linalg::matrix_exp(make({2, 2}, kFloat64, {0, -angle, angle, 0}));
    expect_close(turn, make({2, 2}, kFloat64, {std::cos(angle), -std::sin(angle), std::sin(angle), std::cos(angle)}),
                 1e-12);
  }
  expect_close(linalg::matrix_exp(make({2, 2}, kFloat32, {0, 7, 0, 0})), make({2, 2}, kFloat32, {1, 7, 0, 1}), 1e-5);
  const Tensor both = matrices({2, 3, 3});
  both.select(0, 1).mul_(20);
  expect_close(linalg::matrix_exp(both).select(0, 0), linalg::matrix_exp(both.select(0, 0)), 1e-13);
  EXPECT_TRUE(gradients_agree([](const Tensors& in) { return linalg::matrix_exp(in[0]); }, {matrices({2, 3, 3})}));
  EXPECT_EQ(linalg::matrix_exp(empty({2, 0, 0})).sizes(), IntSpan({2, 0, 0}));
}

TEST(LinalgSolve, Ldl) {
  const Tensor a = symmetric(matrices({3, 4, 4})), b = matrices({3, 4, 2}, kFloat64, 2);
  const linalg::LdlFactorResult f = linalg::ldl_factor(a);
  expect_close(matmul(a, linalg::ldl_solve(f.LD, f.pivots, b)), b, 1e-11);
  EXPECT_TRUE(gradients_agree(
      [&](const Tensors& in) { return linalg::ldl_solve(f.LD.select(0, 0), f.pivots.select(0, 0), in[0]); },
      {matrices({4, 2})}));
  TERCEL_EXPECT_THROW(linalg::ldl_factor(zeros({2, 2})), LinAlgError, "D[1,1] is exactly zero");
  // LAPACK would pair a negative pivot with the one after it.
  for (const Tensor& pivots : {tensor({1, 2, -3}, kInt32), tensor({-1, 2, 3}, kInt32), tensor({-1, -2, -3}, kInt32)})
    TERCEL_EXPECT_THROW(linalg::ldl_solve(eye(3, -1, kFloat64), pivots, ones({3, 1}, kFloat64)), RuntimeError,
                        "a negative pivot must be followed by another one");
  EXPECT_NO_THROW(linalg::ldl_solve(eye(3, -1, kFloat64), tensor({-2, -2, 3}, kInt32), ones({3, 1}, kFloat64)));
  TERCEL_EXPECT_THROW(linalg::ldl_solve(f.LD, full(f.pivots.sizes(), 7, TensorOptions(kInt32)), b), RuntimeError,
                      "pivots must be between 1 and 4");
}

TEST(LinalgSolve, Tensors) {
  const Tensor a = matrices({2, 3, 6}), b = matrices({2, 3}, kFloat64, 2);
  expect_close(tensordot(linalg::tensorinv(a), a, 2), eye(6, 6, kFloat64), 1e-11);
  EXPECT_EQ(linalg::tensorinv(reshape(a, {6, 2, 3}), 1).sizes(), IntSpan({2, 3, 6}));
  expect_close(tensordot(a, linalg::tensorsolve(a, b), 1), b, 1e-11);
  const Tensor moved = linalg::tensorsolve(permute(a, {2, 0, 1}), b, IntSpan({0}));
  expect_close(tensordot(a, moved, 1), b, 1e-11);
  TERCEL_EXPECT_THROW(linalg::tensorinv(a, 1), RuntimeError, "prod(self.shape[:ind]), but got 18 != 2");
  TERCEL_EXPECT_THROW(linalg::tensorinv(a, 0), RuntimeError, "Expected a strictly positive integer for 'ind'");
  TERCEL_EXPECT_THROW(linalg::tensorsolve(a, empty({2}, kFloat64)), RuntimeError, "but got 18 != 2");
}

TEST(LinalgSolve, WrongOperands) {
  const Tensor a = empty({2, 2}), d = empty({2, 2}, kFloat64);
  TERCEL_EXPECT_THROW(linalg::solve(empty({2, 3}), a), RuntimeError,
                      "A must be batches of square matrices, but they are 2 by 3 matrices");
  TERCEL_EXPECT_THROW(linalg::solve(a, empty({3, 2})), RuntimeError,
                      "Incompatible shapes of A and B for the equation AX = B (2x2 and 3x2)");
  TERCEL_EXPECT_THROW(linalg::solve(a, empty({2, 3}), false), RuntimeError,
                      "Incompatible shapes of A and B for the equation XA = B (2x2 and 2x3)");
  TERCEL_EXPECT_THROW(
      linalg::solve(a, d), RuntimeError,
      "Expected A and B to have the same dtype, but found A of type Float and B of type Double instead");
  TERCEL_EXPECT_THROW(linalg::inv(empty({2, 2}, kInt64)), RuntimeError, "Got Long");
  TERCEL_EXPECT_THROW(linalg::det(empty({3})), RuntimeError, "must have at least 2 dimensions");
  TERCEL_EXPECT_THROW(linalg::lstsq(a, empty({3, 1})), RuntimeError, "input.size(-2) should match other.size(-2)");
}

}  // namespace tercel::test
