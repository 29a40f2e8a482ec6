// Linear algebra: tercel.linalg, and older functions in tercel.
#include "tercel/ops/linalg/linalg.h"

#include "python/src/op.h"
#include "python/src/out.h"
#include "tercel/core/dtype_words.h"
#include "tercel/ops/common/out.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/views/diagonals.h"
#include "tercel/ops/views/views.h"

namespace tercel::python {

namespace {

using Dims = std::optional<DimVector>;
using Dtype = std::optional<ScalarType>;
using Bound = std::optional<double>;
using OutList = std::optional<std::vector<Tensor>>;

/** A function of one matrix. */
#define TERCEL_MATRIX_ENTRY(name, flags, function, argument) \
  entry(                                                     \
      #name "(Tensor " argument ", *, Tensor out=None)",     \
      [](const Tensor& a, const Tensor& out) { return given(#name, out, function(a)); }, flags)

Tensor given(const char* op, const Tensor& out, const Tensor& result) {
  return out.defined() ? put_linalg_out(op, out, result) : result;
}
template <size_t N>
Named<N> given(const char* op, const OutList& out, Named<N> result) {
  for (size_t i = 0; out && i < std::min(N, out->size()); ++i)
    check_linalg_out(op, (*out)[i], result.values[i], result.names[i]);
  return into(op, out, std::move(result));
}

IntSpan span(const Dims& dims) { return dims ? IntSpan(*dims) : IntSpan(); }
ScalarType dtype_of(Dtype dtype) { return dtype.value_or(ScalarType::Undefined); }

constexpr int64_t kMatrixDims[] = {-2, -1};
IntSpan matrix_dims(const DimVector& dims) { return dims.empty() ? IntSpan(kMatrixDims) : IntSpan(dims); }

char triangle(std::string_view name) {
  const char first = name.size() == 1 ? name[0] : '\0';
  TERCEL_CHECK(first == 'L' || first == 'U' || first == 'l' || first == 'u', RuntimeError,
               "Expected UPLO argument to be 'L' or 'U', but got ", name);
  return first == 'l' ? 'L' : first == 'u' ? 'U' : first;
}

Named<2> named(const linalg::QrResult& r) { return {{"Q", "R"}, {r.Q, r.R}}; }
Named<3> named(const linalg::SvdResult& r) { return {{"U", "S", "Vh"}, {r.U, r.S, r.Vh}}; }
Named<2> named(const linalg::EighResult& r) {
  return {{"eigenvalues", "eigenvectors"}, {r.eigenvalues, r.eigenvectors}};
}
Named<2> named(const linalg::SlogdetResult& r) { return {{"sign", "logabsdet"}, {r.sign, r.logabsdet}}; }

}  // namespace

Span<Entry> linear_algebra_ops() {
  static const Entry table[] = {
      entry(
          "linalg_cholesky(Tensor input, *, bool upper=False, Tensor out=None)",
          [](const Tensor& a, bool upper, const Tensor& out) {
            return given("linalg_cholesky", out, linalg::cholesky(a, upper));
          },
          kLinalg, "L with L L^H = input."),
      entry(
          "linalg_cholesky_ex(Tensor input, *, bool upper=False, bool check_errors=False, Tensor[] out=None)",
          [](const Tensor& a, bool upper, bool check, const OutList& out) {
            const auto r = linalg::cholesky_ex(a, upper, check);
            return given("linalg_cholesky_ex", out, Named<2>{{"L", "info"}, {r.L, r.info}});
          },
          kLinalg),
      entry(
          "linalg_qr(Tensor A, str mode=\"reduced\", *, Tensor[] out=None)",
          [](const Tensor& a, std::string_view mode, const OutList& out) {
            return given("linalg_qr", out, named(linalg::qr(a, mode)));
          },
          kLinalg, "A = Q R."),
      entry(
          "linalg_svd(Tensor A, bool full_matrices=True, *, str driver=None, Tensor[] out=None)",
          [](const Tensor& a, bool full, std::optional<std::string_view> driver, const OutList& out) {
            TERCEL_CHECK(!driver || a.device().is_cuda(), RuntimeError,
                         "linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with "
                         "cuSOLVER backend.");
            return given("linalg_svd", out, named(linalg::svd(a, full)));
          },
          kLinalg, "A = U diag(S) Vh with S in descending order."),
      entry(
          "linalg_svdvals(Tensor A, *, str driver=None, Tensor out=None)",
          [](const Tensor& a, std::optional<std::string_view>, const Tensor& out) {
            return given("linalg_svdvals", out, linalg::svdvals(a));
          },
          kLinalg),
      entry(
          "linalg_eigh(Tensor input, str UPLO=\"L\", *, Tensor[] out=None)",
          [](const Tensor& a, std::string_view uplo, const OutList& out) {
            return given("linalg_eigh", out, named(linalg::eigh(a, triangle(uplo))));
          },
          kLinalg, "Eigenvalues in ascending order and eigenvectors of a symmetric (Hermitian) matrix."),
      entry(
          "linalg_eigvalsh(Tensor input, str UPLO=\"L\", *, Tensor out=None)",
          [](const Tensor& a, std::string_view uplo, const Tensor& out) {
            return given("linalg_eigvalsh", out, linalg::eigvalsh(a, triangle(uplo)));
          },
          kLinalg),
      entry(
          "linalg_eig(Tensor input, *, Tensor[] out=None)",
          [](const Tensor& a, const OutList& out) {
            const linalg::EigResult r = linalg::eig(a);
            return given("linalg_eig", out, Named<2>{{"eigenvalues", "eigenvectors"}, {r.eigenvalues, r.eigenvectors}});
          },
          kLinalg, "Complex eigenvalues and eigenvectors of any square matrix."),
      TERCEL_MATRIX_ENTRY(linalg_eigvals, kLinalg, linalg::eigvals, "input"),
      entry(
          "linalg_lu_factor(Tensor A, *, bool pivot=True, Tensor[] out=None)",
          [](const Tensor& a, bool pivot, const OutList& out) {
            const auto r = linalg::lu_factor(a, pivot);
            return given("linalg_lu_factor", out, Named<2>{{"LU", "pivots"}, {r.LU, r.pivots}});
          },
          kLinalg),
      entry(
          "linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False, Tensor[] out=None)",
          [](const Tensor& a, bool pivot, bool check, const OutList& out) {
            const auto r = linalg::lu_factor_ex(a, pivot, check);
            return given("linalg_lu_factor_ex", out, Named<3>{{"LU", "pivots", "info"}, {r.LU, r.pivots, r.info}});
          },
          kLinalg),
      entry(
          "linalg_lu(Tensor A, *, bool pivot=True, Tensor[] out=None)",
          [](const Tensor& a, bool pivot, const OutList& out) {
            const auto r = linalg::lu(a, pivot);
            return given("linalg_lu", out, Named<3>{{"P", "L", "U"}, {r.P, r.L, r.U}});
          },
          kLinalg, "A = P L U."),
      entry(
          "linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False, "
          "Tensor out=None)",
          [](const Tensor& lu, const Tensor& pivots, const Tensor& b, bool left, bool adjoint, const Tensor& out) {
            return given("linalg_lu_solve", out, linalg::lu_solve(lu, pivots, b, left, adjoint));
          },
          kLinalg),
      entry(
          "linalg_solve(Tensor A, Tensor B, *, bool left=True, Tensor out=None)",
          [](const Tensor& a, const Tensor& b, bool left, const Tensor& out) {
            return given("linalg_solve", out, linalg::solve(a, b, left));
          },
          kLinalg, "X with A X = B."),
      entry(
          "linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False, Tensor[] out=None)",
          [](const Tensor& a, const Tensor& b, bool left, bool check, const OutList& out) {
            const auto r = linalg::solve_ex(a, b, left, check);
            return given("linalg_solve_ex", out, Named<2>{{"result", "info"}, {r.result, r.info}});
          },
          kLinalg),
      entry(
          "linalg_solve_triangular(Tensor input, Tensor B, *, bool upper, bool left=True, bool unitriangular=False, "
          "Tensor out=None)",
          [](const Tensor& a, const Tensor& b, bool upper, bool left, bool unit, const Tensor& out) {
            return given("linalg_solve_triangular", out, linalg::solve_triangular(a, b, upper, left, unit));
          },
          kLinalg),
      TERCEL_MATRIX_ENTRY(linalg_inv, kLinalg, linalg::inv, "A"),
      entry(
          "linalg_inv_ex(Tensor A, *, bool check_errors=False, Tensor[] out=None)",
          [](const Tensor& a, bool check, const OutList& out) {
            const auto r = linalg::inv_ex(a, check);
            return given("linalg_inv_ex", out, Named<2>{{"inverse", "info"}, {r.inverse, r.info}});
          },
          kLinalg),
      entry(
          "linalg_pinv(Tensor input, *, Tensor atol=None, Tensor rtol=None, bool hermitian=False, Tensor out=None)",
          [](const Tensor& a, const Tensor& atol, const Tensor& rtol, bool hermitian, const Tensor& out) {
            return given("linalg_pinv", out, autocast_result(linalg::pinv(a, atol, rtol, hermitian), out));
          },
          kLinalg),
      entry(
          "linalg_pinv(Tensor input, Tensor rcond, bool hermitian=False, *, Tensor out=None)",
          [](const Tensor& a, const Tensor& rcond, bool hermitian, const Tensor& out) {
            TERCEL_CHECK(!rcond.is_complex(), RuntimeError,
                         "linalg.pinv: rcond tensor of complex type is not supported. Got ",
                         scalar_type_word(rcond.dtype()));
            return given("linalg_pinv", out, autocast_result(linalg::pinv(a, 0.0, rcond, hermitian), out));
          },
          kLinalg),
      entry(
          "linalg_pinv(Tensor input, *, float atol=None, float rtol=None, bool hermitian=False, Tensor out=None)",
          [](const Tensor& a, Bound atol, Bound rtol, bool hermitian, const Tensor& out) {
            return given("linalg_pinv", out, autocast_result(linalg::pinv(a, atol, rtol, hermitian), out));
          },
          kLinalg, "The Moore-Penrose pseudoinverse."),
      entry(
          "linalg_pinv(Tensor input, float rcond, bool hermitian=False, *, Tensor out=None)",
          [](const Tensor& a, double rcond, bool hermitian, const Tensor& out) {
            return given("linalg_pinv", out, autocast_result(linalg::pinv(a, 0.0, rcond, hermitian), out));
          },
          kLinalg),
      TERCEL_MATRIX_ENTRY(linalg_det, kLinalg, linalg::det, "A"),
      entry(
          "linalg_slogdet(Tensor A, *, Tensor[] out=None)",
          [](const Tensor& a, const OutList& out) { return given("linalg_slogdet", out, named(linalg::slogdet(a))); },
          kLinalg),
      entry(
          "linalg_lstsq(Tensor input, Tensor b, float rcond=None, *, str driver=None, Tensor[] out=None)",
          [](const Tensor& a, const Tensor& b, Bound rcond, std::optional<std::string_view> driver,
             const OutList& out) {
            const auto r = linalg::lstsq(a, b, rcond, driver.value_or("gelsy"));
            return given("linalg_lstsq", out,
                         Named<4>{{"solution", "residuals", "rank", "singular_values"},
                                  {r.solution, r.residuals, r.rank, r.singular_values}});
          },
          kLinalg),
      entry(
          "linalg_matrix_rank(Tensor input, *, Tensor atol=None, Tensor rtol=None, bool hermitian=False, "
          "Tensor out=None)",
          [](const Tensor& a, const Tensor& atol, const Tensor& rtol, bool hermitian, const Tensor& out) {
            return given("linalg_matrix_rank", out, linalg::matrix_rank(a, atol, rtol, hermitian));
          },
          kLinalg),
      entry(
          "linalg_matrix_rank(Tensor input, Tensor tol, bool hermitian=False, *, Tensor out=None)",
          [](const Tensor& a, const Tensor& tol, bool hermitian, const Tensor& out) {
            return given("linalg_matrix_rank", out, linalg::matrix_rank(a, tol, 0.0, hermitian));
          },
          kLinalg),
      entry(
          "linalg_matrix_rank(Tensor input, *, float atol=None, float rtol=None, bool hermitian=False, "
          "Tensor out=None)",
          [](const Tensor& a, Bound atol, Bound rtol, bool hermitian, const Tensor& out) {
            return given("linalg_matrix_rank", out, linalg::matrix_rank(a, atol, rtol, hermitian));
          },
          kLinalg),
      entry(
          "linalg_matrix_rank(Tensor input, float tol, bool hermitian=False, *, Tensor out=None)",
          [](const Tensor& a, double tol, bool hermitian, const Tensor& out) {
            return given("linalg_matrix_rank", out, linalg::matrix_rank(a, tol, 0.0, hermitian));
          },
          kLinalg),
      entry(
          "linalg_matrix_exp(Tensor input)", [](const Tensor& a) { return linalg::matrix_exp(a); }, kLinalg),
      entry(
          "linalg_vector_norm(Tensor input, float ord=2, int[1]? dim=None, bool keepdim=False, *, dtype dtype=None, "
          "Tensor out=None)",
          [](const Tensor& x, double ord, const Dims& dims, bool keepdim, Dtype dtype, const Tensor& out) {
            return given("linalg_vector_norm", out, linalg::vector_norm(x, ord, span(dims), keepdim, dtype_of(dtype)));
          },
          kLinalg),
      entry(
          "linalg_matrix_norm(Tensor input, float ord, int[2] dim=(), bool keepdim=False, *, dtype dtype=None, "
          "Tensor out=None)",
          [](const Tensor& x, double ord, const DimVector& dims, bool keepdim, Dtype dtype, const Tensor& out) {
            return given("linalg_matrix_norm", out,
                         linalg::matrix_norm(x, ord, matrix_dims(dims), keepdim, dtype_of(dtype)));
          },
          kLinalg),
      entry(
          "linalg_matrix_norm(Tensor input, str ord=\"fro\", int[2] dim=(), bool keepdim=False, *, "
          "dtype dtype=None, Tensor out=None)",
          [](const Tensor& x, std::string_view ord, const DimVector& dims, bool keepdim, Dtype dtype,
             const Tensor& out) {
            return given("linalg_matrix_norm", out,
                         linalg::matrix_norm(x, ord, matrix_dims(dims), keepdim, dtype_of(dtype)));
          },
          kLinalg),
      entry(
          "linalg_norm(Tensor input, float ord=None, int[1]? dim=None, bool keepdim=False, *, dtype dtype=None, "
          "Tensor out=None)",
          [](const Tensor& x, Bound ord, const Dims& dims, bool keepdim, Dtype dtype, const Tensor& out) {
            return given("linalg_norm", out,
                         ord ? linalg::norm(x, *ord, span(dims), keepdim, dtype_of(dtype))
                             : linalg::norm(x, std::nullopt, span(dims), keepdim, dtype_of(dtype)));
          },
          kLinalg),
      entry(
          "linalg_norm(Tensor input, str ord, int[1]? dim=None, bool keepdim=False, *, dtype dtype=None, "
          "Tensor out=None)",
          [](const Tensor& x, std::string_view ord, const Dims& dims, bool keepdim, Dtype dtype, const Tensor& out) {
            return given("linalg_norm", out, linalg::norm(x, ord, span(dims), keepdim, dtype_of(dtype)));
          },
          kLinalg),
      entry(
          "linalg_cond(Tensor input, float p=None, *, Tensor out=None)",
          [](const Tensor& a, Bound p, const Tensor& out) {
            return given("linalg_cond", out, p ? linalg::cond(a, *p) : linalg::cond(a));
          },
          kLinalg),
      entry(
          "linalg_cond(Tensor input, str p, *, Tensor out=None)",
          [](const Tensor& a, std::string_view p, const Tensor& out) {
            return given("linalg_cond", out, linalg::cond(a, p));
          },
          kLinalg),
      entry(
          "linalg_ldl_factor(Tensor input, *, bool hermitian=False, Tensor[] out=None)",
          [](const Tensor& a, bool hermitian, const OutList& out) {
            const auto r = linalg::ldl_factor(a, hermitian);
            return given("linalg_ldl_factor", out, Named<2>{{"LD", "pivots"}, {r.LD, r.pivots}});
          },
          kLinalg),
      entry(
          "linalg_ldl_factor_ex(Tensor input, *, bool hermitian=False, bool check_errors=False, Tensor[] out=None)",
          [](const Tensor& a, bool hermitian, bool check, const OutList& out) {
            const auto r = linalg::ldl_factor_ex(a, hermitian, check);
            return given("linalg_ldl_factor_ex", out, Named<3>{{"LD", "pivots", "info"}, {r.LD, r.pivots, r.info}});
          },
          kLinalg),
      entry(
          "linalg_ldl_solve(Tensor LD, Tensor pivots, Tensor B, *, bool hermitian=False, Tensor out=None)",
          [](const Tensor& ld, const Tensor& pivots, const Tensor& b, bool hermitian, const Tensor& out) {
            return given("linalg_ldl_solve", out, linalg::ldl_solve(ld, pivots, b, hermitian));
          },
          kLinalg),
      entry(
          "linalg_tensorinv(Tensor input, int ind=2, *, Tensor out=None)",
          [](const Tensor& a, int64_t ind, const Tensor& out) {
            return given("linalg_tensorinv", out, linalg::tensorinv(a, ind));
          },
          kLinalg),
      entry(
          "linalg_tensorsolve(Tensor input, Tensor other, int[]? dims=None, *, Tensor out=None)",
          [](const Tensor& a, const Tensor& b, const Dims& dims, const Tensor& out) {
            return given("linalg_tensorsolve", out, linalg::tensorsolve(a, b, span(dims)));
          },
          kLinalg),
      entry(
          "linalg_householder_product(Tensor input, Tensor tau, *, Tensor out=None)",
          [](const Tensor& a, const Tensor& tau, const Tensor& out) {
            return given("linalg_householder_product", out, linalg::householder_product(a, tau));
          },
          kLinalg),
      entry(
          "linalg_cross(Tensor input, Tensor other, *, int dim=-1, Tensor out=None)",
          [](const Tensor& a, const Tensor& b, int64_t dim, const Tensor& out) {
            return given("linalg_cross", out, linalg::cross(a, b, dim));
          },
          kLinalg),
      entry(
          "linalg_matmul(Tensor input, Tensor other, *, Tensor out=None)",
          [](const Tensor& a, const Tensor& b, const Tensor& out) {
            return given("linalg_matmul", out, linalg::matmul(a, b));
          },
          kLinalg),
      entry(
          "linalg_matrix_power(Tensor input, int n, *, Tensor out=None)",
          [](const Tensor& a, int64_t n, const Tensor& out) {
            return given("linalg_matrix_power", out, autocast_matrix_power(a, n, out));
          },
          kLinalg),
      entry(
          "linalg_multi_dot(Tensor[] tensors, *, Tensor out=None)",
          [](const std::vector<Tensor>& list, const Tensor& out) {
            return given("linalg_multi_dot", out, linalg::multi_dot(list));
          },
          kLinalg),
      entry(
          "linalg_vecdot(Tensor x, Tensor y, *, int dim=-1, Tensor out=None)",
          [](const Tensor& a, const Tensor& b, int64_t dim, const Tensor& out) {
            return given("linalg_vecdot", out, linalg::vecdot(a, b, dim));
          },
          kLinalg),
      entry(
          "linalg_diagonal(Tensor A, *, int offset=0, int dim1=-2, int dim2=-1)",
          [](const Tensor& a, int64_t offset, int64_t dim1, int64_t dim2) { return diagonal(a, offset, dim1, dim2); },
          kLinalg | kCheap),
      // Functions of tercel itself, older than tercel.linalg.
      entry("det(Tensor input)", [](const Tensor& a) { return linalg::det(a); }),
      entry("logdet(Tensor input)", [](const Tensor& a) { return logdet(a); }),
      entry("slogdet(Tensor input, *, Tensor[] out=None)",
            [](const Tensor& a, const OutList& out) { return given("slogdet", out, named(linalg::slogdet(a))); }),
      TERCEL_MATRIX_ENTRY(inverse, kBoth, linalg::inv, "input"),
      entry("pinverse(Tensor input, float rcond=1e-15)",
            [](const Tensor& a, double rcond) { return linalg::pinv(a, 0.0, rcond); }),
      entry("matrix_exp(Tensor input)", [](const Tensor& a) { return linalg::matrix_exp(a); }),
      entry("cholesky(Tensor input, bool upper=False, *, Tensor out=None)",
            [](const Tensor& a, bool upper, const Tensor& out) {
              return given("cholesky", out, linalg::cholesky(a, upper));
            }),
      entry("cholesky_solve(Tensor input, Tensor input2, bool upper=False, *, Tensor out=None)",
            [](const Tensor& b, const Tensor& factor, bool upper, const Tensor& out) {
              return given("cholesky_solve", out, cholesky_solve(b, factor, upper));
            }),
      entry("cholesky_inverse(Tensor input, bool upper=False, *, Tensor out=None)",
            [](const Tensor& factor, bool upper, const Tensor& out) {
              return given("cholesky_inverse", out, cholesky_inverse(factor, upper));
            }),
      entry("qr(Tensor input, bool some=True, *, Tensor[] out=None)",
            [](const Tensor& a, bool some, const OutList& out) {
              return given("qr", out, named(linalg::qr(a, some ? "reduced" : "complete")));
            }),
      entry("svd(Tensor input, bool some=True, bool compute_uv=True, *, Tensor[] out=None)",
            [](const Tensor& a, bool some, bool uv, const OutList& out) {
              const OlderSvdResult r = svd(a, some, uv);
              return given("svd", out, Named<3>{{"U", "S", "V"}, {r.U, r.S, r.V}});
            }),
      entry("lu_solve(Tensor input, Tensor LU_data, Tensor LU_pivots, *, Tensor out=None)",
            [](const Tensor& b, const Tensor& lu, const Tensor& pivots, const Tensor& out) {
              return given("lu_solve", out, linalg::lu_solve(lu, pivots, b));
            }),
      entry(
          "lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True, *, "
          "Tensor[] out=None)",
          [](const Tensor& lu, const Tensor& pivots, bool data, bool permutation, const OutList& out) {
            const auto r = lu_unpack(lu, pivots, data, permutation);
            return given("lu_unpack", out, Named<3>{{"P", "L", "U"}, {r.P, r.L, r.U}});
          },
          kFunction),
      entry("triangular_solve(Tensor input, Tensor A, bool upper=True, bool transpose=False, bool unitriangular=False, "
            "*, Tensor[] out=None)",
            [](const Tensor& b, const Tensor& a, bool upper, bool transposed, bool unit, const OutList& out) {
              const auto r = triangular_solve(b, a, upper, transposed, unit);
              return given("triangular_solve", out,
                           Named<2>{{"solution", "cloned_coefficient"}, {r.solution, r.cloned_coefficient}});
            }),
      entry("geqrf(Tensor input, *, Tensor[] out=None)",
            [](const Tensor& a, const OutList& out) {
              const auto r = geqrf(a);
              return given("geqrf", out, Named<2>{{"a", "tau"}, {r.a, r.tau}});
            }),
      entry("orgqr(Tensor input, Tensor input2, *, Tensor out=None)",
            [](const Tensor& a, const Tensor& tau, const Tensor& out) {
              return given("orgqr", out, linalg::householder_product(a, tau));
            }),
      entry("ormqr(Tensor input, Tensor tau, Tensor other, bool left=True, bool transpose=False, *, Tensor out=None)",
            [](const Tensor& a, const Tensor& tau, const Tensor& other, bool left, bool transposed, const Tensor& out) {
              return given("ormqr", out, ormqr(a, tau, other, left, transposed));
            }),
  };
  return table;
}

}  // namespace tercel::python
