// `out` variants of linear algebra and Fourier transforms; Note [Out variants] in out.h.
//
// Most ops of linear algebra need an `out` of the result's dtype, as in PyTorch, else throw RuntimeError.
#pragma once

#include "tercel/ops/aliases.h"
#include "tercel/ops/common/out_macros.h"
#include "tercel/ops/fft/fft.h"
#include "tercel/ops/linalg/linalg.h"
#include "tercel/ops/linalg/products.h"

#define TERCEL_NAMED_OUT(op, scope, name, parameters, arguments)                 \
  inline const Tensor& name##_out(const Tensor& out, TERCEL_UNWRAP parameters) { \
    return put_linalg_out(op, out, scope::name arguments);                       \
  }
#define TERCEL_NAMED_OUT2(op, scope, name, Result, first, second, parameters, arguments)          \
  inline Result name##_out(const Tensor& first, const Tensor& second, TERCEL_UNWRAP parameters) { \
    const auto [result0, result1] = scope::name arguments;                                        \
    put_linalg_out(op, {first, second}, {result0, result1}, {#first, #second});                   \
    return {first, second};                                                                       \
  }
#define TERCEL_NAMED_OUT3(op, scope, name, Result, first, second, third, parameters, arguments)                        \
  inline Result name##_out(const Tensor& first, const Tensor& second, const Tensor& third, TERCEL_UNWRAP parameters) { \
    const auto [result0, result1, result2] = scope::name arguments;                                                    \
    put_linalg_out(op, {first, second, third}, {result0, result1, result2}, {#first, #second, #third});                \
    return {first, second, third};                                                                                     \
  }
#define TERCEL_APART_OUT(name, parameters, arguments)                            \
  inline const Tensor& name##_out(const Tensor& out, TERCEL_UNWRAP parameters) { \
    check_out_apart("linalg_" #name, {out}, {TERCEL_UNWRAP arguments});          \
    return put_linalg_out("linalg_" #name, out, linalg::name arguments);         \
  }
#define TERCEL_OUT(name, parameters, arguments) TERCEL_NAMED_OUT("linalg_" #name, linalg, name, parameters, arguments)
#define TERCEL_OUT2(name, Result, first, second, parameters, arguments) \
  TERCEL_NAMED_OUT2("linalg_" #name, linalg, name, Result, first, second, parameters, arguments)
#define TERCEL_OUT3(name, Result, first, second, third, parameters, arguments) \
  TERCEL_NAMED_OUT3("linalg_" #name, linalg, name, Result, first, second, third, parameters, arguments)
#define TERCEL_FFT_OUT(name, parameters, arguments)                              \
  inline const Tensor& name##_out(const Tensor& out, TERCEL_UNWRAP parameters) { \
    return put_out("fft_" #name, out, fft::name arguments);                      \
  }
#define TERCEL_FFT_OUTS(name)                                                                                   \
  TERCEL_FFT_OUT(name, (const Tensor& x, Length n = {}, int64_t dim = -1, std::string_view norm = "backward"),  \
                 (x, n, dim, norm))                                                                             \
  TERCEL_FFT_OUT(name##n, (const Tensor& x, const Axes& axes = {}, std::string_view norm = "backward"),         \
                 (x, axes, norm))                                                                               \
  TERCEL_FFT_OUT(name##2, (const Tensor& x, const Axes& axes = last_two(), std::string_view norm = "backward"), \
                 (x, axes, norm))

// clang-format off
namespace tercel::linalg {

/** One result. */
TERCEL_OUT(cholesky, (const Tensor& a, bool upper = false), (a, upper))
TERCEL_OUT(svdvals, (const Tensor& a), (a))
TERCEL_OUT(eigvalsh, (const Tensor& a, char uplo = 'L'), (a, uplo))
TERCEL_OUT(eigvals, (const Tensor& a), (a))
TERCEL_APART_OUT(lu_solve, (const Tensor& lu, const Tensor& pivots, const Tensor& b, bool left = true, bool adjoint = false), (lu, pivots, b, left, adjoint))
TERCEL_OUT(solve, (const Tensor& a, const Tensor& b, bool left = true), (a, b, left))
TERCEL_APART_OUT(solve_triangular, (const Tensor& a, const Tensor& b, bool upper, bool left = true, bool unitriangular = false), (a, b, upper, left, unitriangular))
TERCEL_OUT(inv, (const Tensor& a), (a))
TERCEL_OUT(pinv, (const Tensor& a, const Tolerance& atol = {}, const Tolerance& rtol = {}, bool hermitian = false), (a, atol, rtol, hermitian))
TERCEL_OUT(det, (const Tensor& a), (a))
TERCEL_OUT(matrix_rank, (const Tensor& a, const Tolerance& atol = {}, const Tolerance& rtol = {}, bool hermitian = false), (a, atol, rtol, hermitian))
TERCEL_OUT(vector_norm, (const Tensor& x, double ord = 2, IntSpan dims = {}, bool keepdim = false, ScalarType dtype = ScalarType::Undefined), (x, ord, dims, keepdim, dtype))
TERCEL_OUT(matrix_norm, (const Tensor& a, double ord, IntSpan dims = {-2, -1}, bool keepdim = false, ScalarType dtype = ScalarType::Undefined), (a, ord, dims, keepdim, dtype))
TERCEL_OUT(matrix_norm, (const Tensor& a, std::string_view ord = "fro", IntSpan dims = {-2, -1}, bool keepdim = false, ScalarType dtype = ScalarType::Undefined), (a, ord, dims, keepdim, dtype))
TERCEL_OUT(norm, (const Tensor& x, std::nullopt_t ord = std::nullopt, IntSpan dims = {}, bool keepdim = false, ScalarType dtype = ScalarType::Undefined), (x, ord, dims, keepdim, dtype))
TERCEL_OUT(norm, (const Tensor& x, double ord, IntSpan dims = {}, bool keepdim = false, ScalarType dtype = ScalarType::Undefined), (x, ord, dims, keepdim, dtype))
TERCEL_OUT(norm, (const Tensor& x, std::string_view ord, IntSpan dims = {}, bool keepdim = false, ScalarType dtype = ScalarType::Undefined), (x, ord, dims, keepdim, dtype))
TERCEL_OUT(cond, (const Tensor& a), (a))
TERCEL_OUT(cond, (const Tensor& a, double ord), (a, ord))
TERCEL_OUT(cond, (const Tensor& a, std::string_view ord), (a, ord))
TERCEL_OUT(ldl_solve, (const Tensor& ld, const Tensor& pivots, const Tensor& b, bool hermitian = false), (ld, pivots, b, hermitian))
TERCEL_OUT(tensorinv, (const Tensor& a, int64_t ind = 2), (a, ind))
TERCEL_OUT(tensorsolve, (const Tensor& a, const Tensor& b, IntSpan dims = {}), (a, b, dims))
TERCEL_OUT(householder_product, (const Tensor& a, const Tensor& tau), (a, tau))
TERCEL_OUT(multi_dot, (Span<Tensor> matrices), (matrices))
TERCEL_OUT(vecdot, (const Tensor& a, const Tensor& b, int64_t dim = -1), (a, b, dim))
TERCEL_OUT(matrix_power, (const Tensor& a, int64_t n), (a, n))
TERCEL_APART_OUT(cross, (const Tensor& a, const Tensor& b, int64_t dim = -1), (a, b, dim))
TERCEL_OUT(matmul, (const Tensor& a, const Tensor& b), (a, b))

/** Several results, each into the tensor of its name. */
TERCEL_OUT2(cholesky_ex, CholeskyResult, L, info, (const Tensor& a, bool upper = false, bool check_errors = false), (a, upper, check_errors))
TERCEL_OUT2(qr, QrResult, Q, R, (const Tensor& a, std::string_view mode = "reduced"), (a, mode))
TERCEL_OUT3(svd, SvdResult, U, S, Vh, (const Tensor& a, bool full_matrices = true), (a, full_matrices))
TERCEL_OUT2(eigh, EighResult, eigenvalues, eigenvectors, (const Tensor& a, char uplo = 'L'), (a, uplo))
TERCEL_OUT2(eig, EigResult, eigenvalues, eigenvectors, (const Tensor& a), (a))
TERCEL_OUT2(lu_factor, LuFactorResult, LU, pivots, (const Tensor& a, bool pivot = true), (a, pivot))
TERCEL_OUT3(lu_factor_ex, LuFactorExResult, LU, pivots, info, (const Tensor& a, bool pivot = true, bool check_errors = false), (a, pivot, check_errors))
TERCEL_OUT3(lu, LuResult, P, L, U, (const Tensor& a, bool pivot = true), (a, pivot))
TERCEL_OUT2(solve_ex, SolveExResult, result, info, (const Tensor& a, const Tensor& b, bool left = true, bool check_errors = false), (a, b, left, check_errors))
TERCEL_OUT2(inv_ex, InvExResult, inverse, info, (const Tensor& a, bool check_errors = false), (a, check_errors))
TERCEL_OUT2(slogdet, SlogdetResult, sign, logabsdet, (const Tensor& a), (a))
TERCEL_OUT2(ldl_factor, LdlFactorResult, LD, pivots, (const Tensor& a, bool hermitian = false), (a, hermitian))
TERCEL_OUT3(ldl_factor_ex, LdlFactorExResult, LD, pivots, info, (const Tensor& a, bool hermitian = false, bool check_errors = false), (a, hermitian, check_errors))

/** lstsq(), into four tensors. */
inline LstsqResult lstsq_out(const Tensor& solution, const Tensor& residuals, const Tensor& rank, const Tensor& singular_values, const Tensor& a, const Tensor& b, std::optional<double> rcond = {}, std::string_view driver = "gelsy") {
  const LstsqResult result = lstsq(a, b, rcond, driver);
  put_linalg_out("linalg_lstsq", {solution, residuals, rank, singular_values}, {result.solution, result.residuals, result.rank, result.singular_values}, {"solution", "residuals", "rank", "singular_values"});
  return {solution, residuals, rank, singular_values};
}

}  // namespace tercel::linalg

namespace tercel::fft {

/** Transforms of one, several, or by default the last two dimensions. */
TERCEL_FFT_OUTS(fft)
TERCEL_FFT_OUTS(ifft)
TERCEL_FFT_OUTS(rfft)
TERCEL_FFT_OUTS(irfft)
TERCEL_FFT_OUTS(hfft)
TERCEL_FFT_OUTS(ihfft)
/** Frequencies, in the dtype of `out`. */
TERCEL_FFT_OUT(fftfreq, (int64_t n, double d = 1), (n, d, out.dtype()))
TERCEL_FFT_OUT(rfftfreq, (int64_t n, double d = 1), (n, d, out.dtype()))

}  // namespace tercel::fft

namespace tercel {

/** Ops outside tercel::linalg. */
TERCEL_NAMED_OUT("cholesky_inverse", tercel, cholesky_inverse, (const Tensor& factor, bool upper = false), (factor, upper))
TERCEL_NAMED_OUT("cholesky_solve", tercel, cholesky_solve, (const Tensor& b, const Tensor& factor, bool upper = false), (b, factor, upper))
TERCEL_NAMED_OUT("inverse", tercel, inverse, (const Tensor& a), (a))
TERCEL_NAMED_OUT("orgqr", tercel, orgqr, (const Tensor& a, const Tensor& tau), (a, tau))
TERCEL_NAMED_OUT("ormqr", tercel, ormqr, (const Tensor& a, const Tensor& tau, const Tensor& other, bool left = true, bool transpose = false), (a, tau, other, left, transpose))
TERCEL_NAMED_OUT3("svd", tercel, svd, OlderSvdResult, U, S, V, (const Tensor& a, bool some = true, bool compute_uv = true), (a, some, compute_uv))
using linalg::det_out;
using linalg::slogdet_out;
TERCEL_NAMED_OUT2("geqrf", tercel, geqrf, GeqrfResult, a_out, tau, (const Tensor& a), (a))
TERCEL_NAMED_OUT2("triangular_solve", tercel, triangular_solve, TriangularSolveResult, solution, cloned_coefficient, (const Tensor& b, const Tensor& a, bool upper = true, bool transpose = false, bool unitriangular = false), (b, a, upper, transpose, unitriangular))
TERCEL_NAMED_OUT3("lu_unpack", tercel, lu_unpack, LuUnpackResult, P, L, U, (const Tensor& lu, const Tensor& pivots, bool unpack_data = true, bool unpack_pivots = true), (lu, pivots, unpack_data, unpack_pivots))

}  // namespace tercel
// clang-format on

#undef TERCEL_NAMED_OUT
#undef TERCEL_NAMED_OUT2
#undef TERCEL_NAMED_OUT3
#undef TERCEL_APART_OUT
#undef TERCEL_OUT
#undef TERCEL_OUT2
#undef TERCEL_OUT3
#undef TERCEL_FFT_OUT
#undef TERCEL_FFT_OUTS
