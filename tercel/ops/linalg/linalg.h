// Linear algebra: factorizations, solvers, norms. Namespace and names follow torch.linalg.
//
// Matrices are the last two dimensions; all dimensions before them are the batch. Dtypes are float32, float64,
// complex64 and complex128 (NotImplementedError or RuntimeError for others); batches run on several threads. Results
// whose matrices come from LAPACK are column-major. Singular input raises LinAlgError, which names the batch element;
// functions in _ex return `info` instead (int32, of the batch's sizes; 0: success) and raise only if asked to. All
// functions are differentiable, unless stated otherwise. See Note [LAPACK at run time] in lapack_impl.h.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tercel/core/tensor.h"
#include "tercel/ops/linalg/products.h"
#include "tercel/util/error.h"

namespace tercel {

/** Error of factorizations: a matrix is singular or not positive definite. A RuntimeError, as in Python. */
class TERCEL_API LinAlgError : public RuntimeError {
 public:
  explicit LinAlgError(const std::string& message) : RuntimeError(message) {}
  ~LinAlgError() override;
  std::string_view kind() const noexcept override { return "LinAlgError"; }
};

}  // namespace tercel

// NOLINTBEGIN(readability-identifier-naming): members of results are named as PyTorch's.
namespace tercel::linalg {

struct CholeskyResult {
  Tensor L;
  Tensor info;
};
/** L with L L^H = a, or U = L^H if upper; only one triangle of a is read, and a must be positive definite. */
TERCEL_OP_API(method, python, out, autocast_f32, keyword = upper) Tensor cholesky(const Tensor& a, bool upper = false);
TERCEL_OP_API(python, out, autocast_f32, keyword = upper)
CholeskyResult cholesky_ex(const Tensor& a, bool upper = false, bool check_errors = false);

struct QrResult {
  Tensor Q, R;
};
/** A [m, n] = Q R. mode "reduced": Q [m, k], k = min(m, n); "complete": Q [m, m]; "r": only R, Q is empty. */
TERCEL_OP_API(python, out, autocast_f32) QrResult qr(const Tensor& A, std::string_view mode = "reduced");

struct SvdResult {
  Tensor U, S, Vh;
};
/** a [m, n] = U diag(S) Vh, S descending; U [m, m] and Vh [n, n] if full, else [m, k] and [k, n]. */
TERCEL_OP_API(out, autocast_f32) SvdResult svd(const Tensor& a, bool full_matrices = true);
/** The singular values [..., k] in descending order. */
TERCEL_OP_API(out, autocast_f32) Tensor svdvals(const Tensor& a);

struct EighResult {
  Tensor eigenvalues, eigenvectors;
};
/** a = V diag(w) V^H of a symmetric (Hermitian) matrix, w real and ascending; uplo 'L' or 'U': the triangle that is
 * read. */
TERCEL_OP_API(out, autocast_f32) EighResult eigh(const Tensor& a, char uplo = 'L');
TERCEL_OP_API(out, autocast_f32) Tensor eigvalsh(const Tensor& a, char uplo = 'L');

struct EigResult {
  Tensor eigenvalues, eigenvectors;
};
/**
 * a = V diag(w) V^-1 of any square matrix; w and V are complex, and V's columns have norm 1. The gradient is defined if
 * all eigenvalues are distinct and the loss does not depend on the phase of an eigenvector (RuntimeError).
 */
TERCEL_OP_API(python, out, autocast_f32) EigResult eig(const Tensor& a);
TERCEL_OP_API(python, out, autocast_f32) Tensor eigvals(const Tensor& a);

struct LuFactorResult {
  Tensor LU, pivots;
};
struct LuFactorExResult {
  Tensor LU, pivots, info;
};
struct LuResult {
  Tensor P, L, U;
};
/** L below and U above the diagonal of one matrix, and pivots (int32, counted from 1). */
TERCEL_OP_API(python, out, keyword = pivot) LuFactorResult lu_factor(const Tensor& A, bool pivot = true);
TERCEL_OP_API(python, out, keyword = pivot)
LuFactorExResult lu_factor_ex(const Tensor& A, bool pivot = true, bool check_errors = false);
/** A = P L U. */
TERCEL_OP_API(python, out, keyword = pivot) LuResult lu(const Tensor& A, bool pivot = true);
/** X with A X = B (or X A = B if not left), from lu_factor(A); with `adjoint` for A^H instead of A. */
TERCEL_OP_API(python, out_apart, keyword = left)
Tensor lu_solve(const Tensor& LU, const Tensor& pivots, const Tensor& B, bool left = true, bool adjoint = false);

struct SolveExResult {
  Tensor result, info;
};
/** X with A X = B (or X A = B if not left); B contains matrices, or vectors if its sizes are A's without the last. */
TERCEL_OP_API(python, out, autocast_f32, keyword = left)
Tensor solve(const Tensor& A, const Tensor& B, bool left = true);
TERCEL_OP_API(python, out, keyword = left)
SolveExResult solve_ex(const Tensor& A, const Tensor& B, bool left = true, bool check_errors = false);
/**
 * The same for a triangle of a; unitriangular: its diagonal is taken as ones. A zero diagonal gives infinities. B may
 * have a dtype that a's can represent.
 */
TERCEL_OP_API(python, out_apart, keyword = upper)
Tensor solve_triangular(const Tensor& a, const Tensor& B, bool upper, bool left = true, bool unitriangular = false);
/** The inverse of square matrices. LinAlgError if one is singular; inv_ex() returns a nonzero info instead. */
struct InvExResult {
  Tensor inverse, info;
};
TERCEL_OP_API(python, out, autocast_f32) Tensor inv(const Tensor& A);
TERCEL_OP_API(python, out, autocast_f32, keyword = check_errors)
InvExResult inv_ex(const Tensor& A, bool check_errors = false);
/** Tolerance for zero: one number, one per matrix (real, broadcast), or the default. */
struct TERCEL_API Tolerance {
  Tolerance() = default;
  Tolerance(double number);                        // NOLINT(google-explicit-constructor)
  Tolerance(const std::optional<double>& number);  // NOLINT(google-explicit-constructor)
  Tolerance(Tensor numbers);                       // NOLINT(google-explicit-constructor)
  Tensor value;
};
/**
 * The Moore-Penrose pseudo-inverse: singular values up to max(atol, rtol * the largest) count as zero. rtol defaults to
 * max(m, n) * epsilon, or to 0 if atol is given. hermitian: a is symmetric (Hermitian).
 */
TERCEL_OP_API(out)
Tensor pinv(const Tensor& a, const Tolerance& atol = {}, const Tolerance& rtol = {}, bool hermitian = false);
/** The determinant of square matrices. */
struct SlogdetResult {
  Tensor sign, logabsdet;
};
TERCEL_OP_API(method, python, out) Tensor det(const Tensor& A);
/** Sign (0 if singular, det / |det| if complex) and logarithm of the magnitude (-inf if singular) of the determinant.
 */
TERCEL_OP_API(method, python, out) SlogdetResult slogdet(const Tensor& A);

struct LstsqResult {
  Tensor solution, residuals, rank, singular_values;
};
/**
 * The X that minimises |a X - b|, and among those |X|. driver is "gelsy" (the default), "gels" (full rank only),
 * "gelsd" or "gelss". residuals [..., columns] if m > n, every a has full rank and the driver is not gelsy; rank unless
 * gels; singular_values for gelsd and gelss; otherwise these are empty. solution and residuals are differentiable (for
 * full rank).
 */
TERCEL_OP_API(out, autocast_f32)
LstsqResult lstsq(const Tensor& a, const Tensor& b, std::optional<double> rcond = {},
                  std::string_view driver = "gelsy");

/** The number of singular values that exceed the tolerance of pinv(); int64, not differentiable. */
TERCEL_OP_API(out, autocast_f32)
Tensor matrix_rank(const Tensor& a, const Tolerance& atol = {}, const Tolerance& rtol = {}, bool hermitian = false);
/** The matrix exponential of square matrices. */
TERCEL_OP_API(method, python) Tensor matrix_exp(const Tensor& a);

/** (sum |x|^ord)^(1/ord) over dim (empty: all); ord 0 counts nonzero elements, +-inf give the extreme |x|. */
TERCEL_OP_API(python, out, keyword = dtype, layout_sparse)
Tensor vector_norm(const Tensor& x, double ord = 2, IntSpan dim = {}, bool keepdim = false,
                   ScalarType dtype = ScalarType::Undefined);
/** ord +-1: largest (smallest) sum of a column's magnitudes; +-inf: of a row's; +-2: largest (smallest) singular value.
 */
TERCEL_OP_API(out)
Tensor matrix_norm(const Tensor& a, double ord, IntSpan dims = {-2, -1}, bool keepdim = false,
                   ScalarType dtype = ScalarType::Undefined);
/** ord "fro": square root of the sum of squares; "nuc": sum of the singular values. */
TERCEL_OP_API(out)
Tensor matrix_norm(const Tensor& a, std::string_view ord = "fro", IntSpan dims = {-2, -1}, bool keepdim = false,
                   ScalarType dtype = ScalarType::Undefined);
/** The 2-norm of all elements, of vectors (one dim) or of matrices (two dims). */
TERCEL_OP_API(out, layout_sparse)
Tensor norm(const Tensor& x, std::nullopt_t ord = std::nullopt, IntSpan dims = {}, bool keepdim = false,
            ScalarType dtype = ScalarType::Undefined);
/** vector_norm() for one dim or a vector, matrix_norm() for two or a matrix. */
TERCEL_OP_API(out)
Tensor norm(const Tensor& x, double ord, IntSpan dims = {}, bool keepdim = false,
            ScalarType dtype = ScalarType::Undefined);
TERCEL_OP_API(out)
Tensor norm(const Tensor& x, std::string_view ord, IntSpan dims = {}, bool keepdim = false,
            ScalarType dtype = ScalarType::Undefined);
/** norm(a) norm(a^-1); inf for a singular a. Without ord, the ratio of the largest to the smallest singular value. */
TERCEL_OP_API(out, autocast_f32) Tensor cond(const Tensor& a);
TERCEL_OP_API(out, autocast_f32) Tensor cond(const Tensor& a, double ord);
TERCEL_OP_API(out, autocast_f32) Tensor cond(const Tensor& a, std::string_view ord);

struct LdlFactorResult {
  Tensor LD, pivots;
};
struct LdlFactorExResult {
  Tensor LD, pivots, info;
};
/** Bunch-Kaufman factorization a = L D L^T (hermitian: L D L^H), for ldl_solve(); not differentiable. */
TERCEL_OP_API(python, out, keyword = hermitian) LdlFactorResult ldl_factor(const Tensor& a, bool hermitian = false);
TERCEL_OP_API(python, out, keyword = hermitian)
LdlFactorExResult ldl_factor_ex(const Tensor& a, bool hermitian = false, bool check_errors = false);
/** X with A X = B from ldl_factor(A); differentiable in B. */
TERCEL_OP_API(python, out, keyword = hermitian)
Tensor ldl_solve(const Tensor& LD, const Tensor& pivots, const Tensor& B, bool hermitian = false);

/** X with tensordot(X, a, a.dim() - ind) the identity; a's first `ind` sizes must have the product of the others. */
TERCEL_OP_API(python, out, autocast_f32) Tensor tensorinv(const Tensor& a, int64_t ind = 2);
/** X with tensordot(a, X) = b, after the dimensions `dims` of a are moved to its end. */
TERCEL_OP_API(python, out, autocast_f32) Tensor tensorsolve(const Tensor& a, const Tensor& b, IntSpan dims = {});
/** The first columns of the product of reflectors I - tau v v^H stored in a [m, n], as by geqrf(); tau [k], k <= n. */
TERCEL_OP_API(python, out, autocast_f32) Tensor householder_product(const Tensor& a, const Tensor& tau);

}  // namespace tercel::linalg

namespace tercel {

/** X with A X = input, given the Cholesky factor of A. */
TERCEL_OP_API(method, python, out_exact, autocast_f32)
Tensor cholesky_solve(const Tensor& input, const Tensor& input2, bool upper = false);
/** The inverse of A, given its Cholesky factor. */
TERCEL_OP_API(method, python, out_exact, autocast_f32) Tensor cholesky_inverse(const Tensor& input, bool upper = false);

struct TriangularSolveResult {
  Tensor solution, cloned_coefficient;
};
/**
 * X with op(A) X = input for a triangle of A, and a copy of A. A may have a compressed layout (CSR ...); its copy is
 * then empty, and X is NaN if A has no entries.
 */
TERCEL_OP_API(method, python, out_exact, autocast_f32, layout_sparse)
TriangularSolveResult triangular_solve(const Tensor& input, const Tensor& A, bool upper = true, bool transpose = false,
                                       bool unitriangular = false);
struct LuUnpackResult {
  Tensor P, L, U;
};
/** P, L and U from the results of lu_factor(); those not requested are empty. */
TERCEL_OP_API(python, out_exact)
LuUnpackResult lu_unpack(const Tensor& LU_data, const Tensor& LU_pivots, bool unpack_data = true,
                         bool unpack_pivots = true);
struct GeqrfResult {
  Tensor a, tau;
};
/** R above and Householder reflectors below the diagonal of one matrix; not differentiable. */
TERCEL_OP_API(method, python, out_exact, autocast_f32) GeqrfResult geqrf(const Tensor& x);
/**
 * Multiplies `other` by the full Q that geqrf() stores in a and tau, or by its adjoint (transpose): Q other, or other Q
 * if not left.
 */
TERCEL_OP_API(python_function, python_method, out_exact, autocast_f32)
Tensor ormqr(const Tensor& a, const Tensor& tau, const Tensor& other, bool left = true, bool transpose = false);
struct OlderSvdResult {
  Tensor U, S, V;
};
/** The older form of linalg::svd(): V instead of Vh, reduced matrices if `some`; zeros without compute_uv. */
TERCEL_OP_API(python_function, python_method, out_exact, autocast_f32)
OlderSvdResult svd(const Tensor& a, bool some = true, bool compute_uv = true);
/** The logarithm of the determinant; NaN if the determinant is real and negative. */
TERCEL_OP_API(method, python) Tensor logdet(const Tensor& a);

}  // namespace tercel
// NOLINTEND(readability-identifier-naming)
