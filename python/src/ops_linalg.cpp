// Linear algebra: tercel.linalg, and older functions in tercel.
#include "tercel/ops/linalg/linalg.h"

#include "python/src/op.h"
#include "python/src/out.h"
#include "tercel/core/dtype_words.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/views/diagonals.h"

namespace tercel::python {

namespace {

using Dims = std::optional<DimVector>;
using Dtype = std::optional<ScalarType>;
using Bound = std::optional<double>;
using OutList = std::optional<std::vector<Tensor>>;

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
          "linalg_svd(Tensor A, bool full_matrices=True, *, str driver=None, Tensor[] out=None)",
          [](const Tensor& a, bool full, std::optional<std::string_view> driver, const OutList& out) {
            TERCEL_CHECK(!driver || a.device().is_cuda(), RuntimeError,
                         "linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with "
                         "cuSOLVER backend.");
            return into_exact("linalg_svd", out, named(linalg::svd(a, full)));
          },
          kLinalg, "A = U diag(S) Vh with S in descending order."),
      entry(
          "linalg_svdvals(Tensor A, *, str driver=None, Tensor out=None)",
          [](const Tensor& a, std::optional<std::string_view>, const Tensor& out) {
            return into_exact("linalg_svdvals", out, linalg::svdvals(a));
          },
          kLinalg),
      entry(
          "linalg_eigh(Tensor input, str UPLO=\"L\", *, Tensor[] out=None)",
          [](const Tensor& a, std::string_view uplo, const OutList& out) {
            return into_exact("linalg_eigh", out, named(linalg::eigh(a, triangle(uplo))));
          },
          kLinalg, "Eigenvalues in ascending order and eigenvectors of a symmetric (Hermitian) matrix."),
      entry(
          "linalg_eigvalsh(Tensor input, str UPLO=\"L\", *, Tensor out=None)",
          [](const Tensor& a, std::string_view uplo, const Tensor& out) {
            return into_exact("linalg_eigvalsh", out, linalg::eigvalsh(a, triangle(uplo)));
          },
          kLinalg),
      entry(
          "linalg_pinv(Tensor input, *, Tensor atol=None, Tensor rtol=None, bool hermitian=False, Tensor out=None)",
          [](const Tensor& a, const Tensor& atol, const Tensor& rtol, bool hermitian, const Tensor& out) {
            return into_exact("linalg_pinv", out, autocast_result(linalg::pinv(a, atol, rtol, hermitian), out));
          },
          kLinalg),
      entry(
          "linalg_pinv(Tensor input, Tensor rcond, bool hermitian=False, *, Tensor out=None)",
          [](const Tensor& a, const Tensor& rcond, bool hermitian, const Tensor& out) {
            TERCEL_CHECK(!rcond.is_complex(), RuntimeError,
                         "linalg.pinv: rcond tensor of complex type is not supported. Got ",
                         scalar_type_word(rcond.dtype()));
            return into_exact("linalg_pinv", out, autocast_result(linalg::pinv(a, 0.0, rcond, hermitian), out));
          },
          kLinalg),
      entry(
          "linalg_pinv(Tensor input, *, float atol=None, float rtol=None, bool hermitian=False, Tensor out=None)",
          [](const Tensor& a, Bound atol, Bound rtol, bool hermitian, const Tensor& out) {
            return into_exact("linalg_pinv", out, autocast_result(linalg::pinv(a, atol, rtol, hermitian), out));
          },
          kLinalg, "The Moore-Penrose pseudoinverse."),
      entry(
          "linalg_pinv(Tensor input, float rcond, bool hermitian=False, *, Tensor out=None)",
          [](const Tensor& a, double rcond, bool hermitian, const Tensor& out) {
            return into_exact("linalg_pinv", out, autocast_result(linalg::pinv(a, 0.0, rcond, hermitian), out));
          },
          kLinalg),
      entry(
          "linalg_lstsq(Tensor input, Tensor b, float rcond=None, *, str driver=None, Tensor[] out=None)",
          [](const Tensor& a, const Tensor& b, Bound rcond, std::optional<std::string_view> driver,
             const OutList& out) {
            const auto r = linalg::lstsq(a, b, rcond, driver.value_or("gelsy"));
            return into_exact("linalg_lstsq", out,
                              Named<4>{{"solution", "residuals", "rank", "singular_values"},
                                       {r.solution, r.residuals, r.rank, r.singular_values}});
          },
          kLinalg),
      entry(
          "linalg_matrix_rank(Tensor input, *, Tensor atol=None, Tensor rtol=None, bool hermitian=False, "
          "Tensor out=None)",
          [](const Tensor& a, const Tensor& atol, const Tensor& rtol, bool hermitian, const Tensor& out) {
            return into_exact("linalg_matrix_rank", out, linalg::matrix_rank(a, atol, rtol, hermitian));
          },
          kLinalg),
      entry(
          "linalg_matrix_rank(Tensor input, Tensor tol, bool hermitian=False, *, Tensor out=None)",
          [](const Tensor& a, const Tensor& tol, bool hermitian, const Tensor& out) {
            return into_exact("linalg_matrix_rank", out, linalg::matrix_rank(a, tol, 0.0, hermitian));
          },
          kLinalg),
      entry(
          "linalg_matrix_rank(Tensor input, *, float atol=None, float rtol=None, bool hermitian=False, "
          "Tensor out=None)",
          [](const Tensor& a, Bound atol, Bound rtol, bool hermitian, const Tensor& out) {
            return into_exact("linalg_matrix_rank", out, linalg::matrix_rank(a, atol, rtol, hermitian));
          },
          kLinalg),
      entry(
          "linalg_matrix_rank(Tensor input, float tol, bool hermitian=False, *, Tensor out=None)",
          [](const Tensor& a, double tol, bool hermitian, const Tensor& out) {
            return into_exact("linalg_matrix_rank", out, linalg::matrix_rank(a, tol, 0.0, hermitian));
          },
          kLinalg),
      entry(
          "linalg_matrix_norm(Tensor input, float ord, int[2] dim=(), bool keepdim=False, *, dtype dtype=None, "
          "Tensor out=None)",
          [](const Tensor& x, double ord, const DimVector& dims, bool keepdim, Dtype dtype, const Tensor& out) {
            return into_exact("linalg_matrix_norm", out,
                              linalg::matrix_norm(x, ord, matrix_dims(dims), keepdim, dtype_of(dtype)));
          },
          kLinalg),
      entry(
          "linalg_matrix_norm(Tensor input, str ord=\"fro\", int[2] dim=(), bool keepdim=False, *, "
          "dtype dtype=None, Tensor out=None)",
          [](const Tensor& x, std::string_view ord, const DimVector& dims, bool keepdim, Dtype dtype,
             const Tensor& out) {
            return into_exact("linalg_matrix_norm", out,
                              linalg::matrix_norm(x, ord, matrix_dims(dims), keepdim, dtype_of(dtype)));
          },
          kLinalg),
      entry(
          "linalg_norm(Tensor input, float ord=None, int[1]? dim=None, bool keepdim=False, *, dtype dtype=None, "
          "Tensor out=None)",
          [](const Tensor& x, Bound ord, const Dims& dims, bool keepdim, Dtype dtype, const Tensor& out) {
            return into_exact("linalg_norm", out,
                              ord ? linalg::norm(x, *ord, span_of(dims), keepdim, dtype_of(dtype))
                                  : linalg::norm(x, std::nullopt, span_of(dims), keepdim, dtype_of(dtype)));
          },
          kLinalg),
      entry(
          "linalg_norm(Tensor input, str ord, int[1]? dim=None, bool keepdim=False, *, dtype dtype=None, "
          "Tensor out=None)",
          [](const Tensor& x, std::string_view ord, const Dims& dims, bool keepdim, Dtype dtype, const Tensor& out) {
            return into_exact("linalg_norm", out, linalg::norm(x, ord, span_of(dims), keepdim, dtype_of(dtype)));
          },
          kLinalg),
      entry(
          "linalg_cond(Tensor input, float p=None, *, Tensor out=None)",
          [](const Tensor& a, Bound p, const Tensor& out) {
            return into_exact("linalg_cond", out, p ? linalg::cond(a, *p) : linalg::cond(a));
          },
          kLinalg),
      entry(
          "linalg_cond(Tensor input, str p, *, Tensor out=None)",
          [](const Tensor& a, std::string_view p, const Tensor& out) {
            return into_exact("linalg_cond", out, linalg::cond(a, p));
          },
          kLinalg),
      entry(
          "linalg_cross(Tensor input, Tensor other, *, int dim=-1, Tensor out=None)",
          [](const Tensor& a, const Tensor& b, int64_t dim, const Tensor& out) {
            return into_exact("linalg_cross", out, linalg::cross(a, b, dim));
          },
          kLinalg),
      entry(
          "linalg_matmul(Tensor input, Tensor other, *, Tensor out=None)",
          [](const Tensor& a, const Tensor& b, const Tensor& out) {
            return into_exact("linalg_matmul", out, linalg::matmul(a, b));
          },
          kLinalg),
      entry(
          "linalg_matrix_power(Tensor input, int n, *, Tensor out=None)",
          [](const Tensor& a, int64_t n, const Tensor& out) {
            return into_exact("linalg_matrix_power", out, autocast_matrix_power(a, n, out));
          },
          kLinalg),
      entry(
          "linalg_vecdot(Tensor x, Tensor y, *, int dim=-1, Tensor out=None)",
          [](const Tensor& a, const Tensor& b, int64_t dim, const Tensor& out) {
            return into_exact("linalg_vecdot", out, linalg::vecdot(a, b, dim));
          },
          kLinalg),
      entry(
          "linalg_diagonal(Tensor A, *, int offset=0, int dim1=-2, int dim2=-1)",
          [](const Tensor& a, int64_t offset, int64_t dim1, int64_t dim2) { return diagonal(a, offset, dim1, dim2); },
          kLinalg | kCheap),
      // Functions of tercel itself, older than tercel.linalg.
      entry("det(Tensor input)", [](const Tensor& a) { return linalg::det(a); }),
      entry("slogdet(Tensor input, *, Tensor[] out=None)",
            [](const Tensor& a, const OutList& out) { return into_exact("slogdet", out, named(linalg::slogdet(a))); }),
      entry("pinverse(Tensor input, float rcond=1e-15)",
            [](const Tensor& a, double rcond) { return linalg::pinv(a, 0.0, rcond); }),
      entry("matrix_exp(Tensor input)", [](const Tensor& a) { return linalg::matrix_exp(a); }),
      entry("cholesky(Tensor input, bool upper=False, *, Tensor out=None)",
            [](const Tensor& a, bool upper, const Tensor& out) {
              return into_exact("cholesky", out, linalg::cholesky(a, upper));
            }),
      entry("qr(Tensor input, bool some=True, *, Tensor[] out=None)",
            [](const Tensor& a, bool some, const OutList& out) {
              return into_exact("qr", out, named(linalg::qr(a, some ? "reduced" : "complete")));
            }),
      entry("lu_solve(Tensor input, Tensor LU_data, Tensor LU_pivots, *, Tensor out=None)",
            [](const Tensor& b, const Tensor& lu, const Tensor& pivots, const Tensor& out) {
              return into_exact("lu_solve", out, linalg::lu_solve(lu, pivots, b));
            }),
  };
  return table;
}

}  // namespace tercel::python
