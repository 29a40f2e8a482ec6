// Determinants, pseudo-inverses and least squares, ranks, exponentials, and what is solved by rearranging dimensions.
#include <array>
#include <cmath>
#include <limits>

#include "tercel/autograd/not_implemented.h"
#include "tercel/autograd/record.h"
#include "tercel/core/dtype_words.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/common/operand_checks_impl.h"
#include "tercel/ops/common/sum_to_size.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/complex.h"
#include "tercel/ops/elementwise/pointwise.h"
#include "tercel/ops/elementwise/ternary.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/linalg/lapack_impl.h"
#include "tercel/ops/linalg/linalg.h"
#include "tercel/ops/linalg/linalg_impl.h"
#include "tercel/ops/linalg/matmul.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/views/cat.h"
#include "tercel/ops/views/diagonals.h"

namespace tercel {

namespace linalg {

namespace {

/** x [...] as factors of matrices [..., n, m]. */
Tensor per_matrix(const Tensor& x) { return unsqueeze(unsqueeze(x, -1), -1); }

/** Signs of the permutations that pivots stand for. */
Tensor parity(const Tensor& pivots, ScalarType dtype) {
  const int64_t n = pivots.size(-1);
  const Tensor moved = ne(pivots, arange(1, n + 1, 1, TensorOptions(kInt32)));
  return to(sub(1, mul(remainder(sum(moved, {-1}), 2), 2)), dtype);
}

/** The conjugate derivatives of the determinant by the elements; of any rank, through singular values. */
Tensor cofactors(const Tensor& a) {
  const SvdResult f = linalg::svd(a, false);
  const int64_t n = a.size(-1);
  const Tensor identity = eye(n, -1, a.options());
  // Row i holds all singular values but the i-th, which is 1.
  const Tensor others = add(mul(unsqueeze(f.S, -2), sub(1, identity)), identity);
  const Tensor sign = conj(mul(det(f.U), det(f.Vh)));
  return mul(matmul(mul(f.U, unsqueeze(prod(others, {-1}), -2)), f.Vh), per_matrix(sign));
}

}  // namespace

Tensor det(const Tensor& a) {
  check_square("linalg.det", a);
  Tensor out;
  {
    const NoRecordGuard no_record;
    const LuFactorExResult factors = lu_factor_ex(a);
    out = mul(prod(diagonal(factors.LU, 0, -2, -1), {-1}), parity(factors.pivots, a.dtype()));
  }
  if (should_record(a))
    record("LinalgDetBackward0", out, {a}, [a = SavedTensor(a), out = SavedTensor::output(out)](BackwardCall& call) {
      const Tensor matrices = a.get();
      const Tensor& g = call.grad();
      const bool regular = item(all(ne(out.get(call), 0))).to_bool();
      if (regular)
        call.set(0, mul(adjoint(inv_ex(matrices).inverse), per_matrix(mul(g, conj(out.get(call))))));
      else
        call.set(0, mul(cofactors(matrices), per_matrix(g)));
    });
  return out;
}

SlogdetResult slogdet(const Tensor& a) {
  check_square("linalg.slogdet", a);
  SlogdetResult out;
  {
    const NoRecordGuard no_record;
    const LuFactorExResult factors = lu_factor_ex(a);
    const Tensor d = diagonal(factors.LU, 0, -2, -1);
    out.sign = mul(prod(sgn(d), {-1}), parity(factors.pivots, a.dtype()));
    out.logabsdet = sum(log(abs(d)), {-1});
  }
  if (should_record(a)) {
    const Tensor outs[] = {out.sign, out.logabsdet};
    record_outputs("LinalgSlogdetBackward0", outs, {a},
                   [a = SavedTensor(a), sign = SavedTensor::output(out.sign)](BackwardCall& call) {
                     // A real sign is constant where it has a derivative; a complex one is e^{i phi}.
                     Tensor g = call.grad(1);
                     if (a.get().is_complex() && call.grad(0).defined()) {
                       const Tensor turn = imag(mul(conj(call.grad(0)), sign.get(call)));
                       g = complex(g.defined() ? g : zeros_like(turn), neg(turn));
                     }
                     call.set(0,
                              g.defined() ? mul(adjoint(inv_ex(a.get()).inverse), per_matrix(g)) : zeros_like(a.get()));
                   });
  }
  return out;
}

namespace {

/** The part of the largest magnitude that counts as zero where nothing is said. */
double default_rtol(const Tensor& a) {
  const double epsilon = real_dtype(a.dtype()) == kFloat32 ? static_cast<double>(std::numeric_limits<float>::epsilon())
                                                           : std::numeric_limits<double>::epsilon();
  return epsilon * static_cast<double>(std::max(a.size(-1), a.size(-2)));
}

/** Which of the magnitudes [..., k] count as different from zero. */
Tensor above_tolerance(const Tensor& magnitudes, const Tensor& a, const Tolerance& given_atol,
                       const Tolerance& given_rtol) {
  const Tensor &atol = given_atol.value, &rtol = given_rtol.value;
  Tensor part = rtol;
  if (!part.defined()) part = full({}, default_rtol(a), TensorOptions(kFloat64));
  if (!rtol.defined() && atol.defined()) part = where(gt(atol, 0), 0, part);
  Tensor bound = mul(amax(magnitudes, {-1}, true), unsqueeze(part, -1));
  if (atol.defined()) bound = maximum(bound, unsqueeze(atol, -1));
  return gt(magnitudes, bound);
}

void check_tolerance(const char* op, const char* name, const Tolerance& tolerance) {
  const Tensor& given = tolerance.value;
  TERCEL_CHECK(!given.defined() || !given.is_complex(), RuntimeError, "torch.", op, ": ", name,
               " tensor of complex type is not supported. Got ", scalar_type_word(given.dtype()));
}

/** Gradient of a for that of its pseudo-inverse p. */
Tensor pinv_gradient(const Tensor& g, const Tensor& p, const Tensor& a) {
  const Tensor ph = adjoint(p), gh = adjoint(g);
  if (a.size(-2) <= a.size(-1)) {
    const Tensor k = matmul(gh, p), k_ph = matmul(k, ph);
    const Tensor through = sub(k_ph, matmul(matmul(a, p), k_ph));
    return add(sub(through, adjoint(matmul(p, k))), matmul(matmul(ph, p), sub(gh, matmul(k, a))));
  }
  const Tensor k = matmul(p, gh), ph_k = matmul(ph, k);
  const Tensor through = sub(ph_k, matmul(matmul(ph_k, p), a));
  return add(sub(through, adjoint(matmul(k, p))), matmul(sub(gh, matmul(a, k)), matmul(p, ph)));
}

}  // namespace

Tolerance::Tolerance(double number) : value(full({}, number, TensorOptions(kFloat64))) {}
Tolerance::Tolerance(const std::optional<double>& number) {
  if (number) *this = Tolerance(*number);
}
Tolerance::Tolerance(Tensor numbers) : value(std::move(numbers)) {}

Tensor pinv(const Tensor& a, const Tolerance& atol, const Tolerance& rtol, bool hermitian) {
  check_defined("linalg.pinv", a, "A");
  TERCEL_CHECK(a.dim() >= 2, RuntimeError, "linalg.pinv(", scalar_type_word(a.dtype()), "{", a.sizes(),
               "}): expected a tensor with 2 or more dimensions of float, double, cfloat or cdouble types");
  check_matrices("linalg.pinv", a);
  check_tolerance("linalg.pinv", "atol", atol);
  check_tolerance("linalg.pinv", "rtol", rtol);
  if (hermitian) check_square("linalg.pinv", a);
  const int64_t m = a.size(-2), n = a.size(-1);
  Tensor out;
  {
    const NoRecordGuard no_record;
    if (a.numel() == 0) {
      out = zeros(batch_sizes(a, {n, m}), a.options());
    } else if (hermitian) {
      const EighResult f = eigh(a);
      const Tensor inverse = where(above_tolerance(abs(f.eigenvalues), a, atol, rtol), reciprocal(f.eigenvalues), 0);
      out = matmul(mul(f.eigenvectors, unsqueeze(inverse, -2)), adjoint(f.eigenvectors));
    } else {
      const SvdResult f = linalg::svd(a, false);
      const Tensor inverse = where(above_tolerance(f.S, a, atol, rtol), reciprocal(f.S), 0);
      out = matmul(mul(adjoint(f.Vh), unsqueeze(inverse, -2)), adjoint(f.U));
    }
  }
  if (should_record(a))
    record("PinverseBackward0", out, {a}, [a = SavedTensor(a), out = SavedTensor::output(out)](BackwardCall& call) {
      call.set(0, pinv_gradient(call.grad(), out.get(call), a.get()));
    });
  return out;
}

Tensor matrix_rank(const Tensor& a, const Tolerance& atol, const Tolerance& rtol, bool hermitian) {
  check_matrices("linalg.matrix_rank", a);
  check_tolerance("linalg.matrix_rank", "atol", atol);
  check_tolerance("linalg.matrix_rank", "rtol", rtol);
  if (hermitian) check_square("linalg.matrix_rank", a);
  const NoRecordGuard no_record;
  if (a.numel() == 0) return zeros(batch_sizes(a), TensorOptions(kInt64));
  const Tensor magnitudes = hermitian ? abs(eigvalsh(a)) : svdvals(a);
  return sum(above_tolerance(magnitudes, a, atol, rtol), {-1});
}

namespace {

lapack::LeastSquares parse_driver(std::string_view name) {
  if (name == "gels") return lapack::LeastSquares::Gels;
  if (name == "gelsy") return lapack::LeastSquares::Gelsy;
  if (name == "gelsd") return lapack::LeastSquares::Gelsd;
  TERCEL_CHECK(name == "gelss", RuntimeError,
               "torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)");
  return lapack::LeastSquares::Gelss;
}

/** The solution [..., n, columns]; rank and singular values, where the driver finds them. Not recorded. */
LstsqResult plain_lstsq(const Tensor& a, const Tensor& b, double rcond, lapack::LeastSquares driver) {
  constexpr const char* kOp = "torch.linalg.lstsq";
  const NoRecordGuard no_record;
  const int64_t m = a.size(-2), n = a.size(-1), columns = b.size(-1), k = std::min(m, n);
  check_finite(kOp, a, kNotFinite);
  const Tensor work = copy_columns(a), right = empty_columns(batch_sizes(a, {std::max(m, n), columns}), a.options());
  zero_(right);
  narrow(right, -2, 0, m).copy_(b);
  const Tensor info = zeros(batch_sizes(a), TensorOptions(kInt32)), rank = zeros(batch_sizes(a), TensorOptions(kInt32));
  const bool values = driver == lapack::LeastSquares::Gelsd || driver == lapack::LeastSquares::Gelss;
  LstsqResult out;
  out.singular_values = values ? zeros(batch_sizes(a, {k}), real_options(a)) : empty({0}, real_options(a));
  if (a.numel() > 0 && columns > 0) {
    const int rows = lapack::to_int(kOp, m), cols = lapack::to_int(kOp, n), sides = lapack::to_int(kOp, columns);
    const Columns matrices(work), sides_of(right);
    lapack::require(kOp);
    visit_lapack_types(kOp, a.dtype(), [&]<class T> {
      for_each_matrix(matrices.count, 4 * cubed(k), [&](int64_t i) {
        info.data<int32_t>()[i] = lapack::least_squares(
            driver, rows, cols, sides, matrices.at<T>(i), sides_of.at<T>(i), static_cast<lapack::Real<T>>(rcond),
            values ? out.singular_values.data<lapack::Real<T>>() + i * k : nullptr, rank.data<int32_t>() + i);
      });
    });
    check_info(kOp, info, [](int32_t code) {
      return str_cat(
          {"The least squares solution could not be computed because the input matrix does not have full "
           "rank (error code: ",
           code, ")."});
    });
  }
  out.solution = narrow(right, -2, 0, n);
  out.rank = driver == lapack::LeastSquares::Gels ? empty({0}, TensorOptions(kInt64)) : to(rank, kInt64);
  return out;
}

}  // namespace

LstsqResult lstsq(const Tensor& a, const Tensor& b, std::optional<double> rcond, std::string_view driver_name) {
  constexpr const char* kOp = "torch.linalg.lstsq";
  check_matrices(kOp, a, "input");
  check_defined(kOp, b, "other");
  check_on_cpu(kOp, b);
  TERCEL_CHECK(b.dim() >= 1, RuntimeError, kOp, ": other must have at least 1 dimension.");
  TERCEL_CHECK(a.dtype() == b.dtype(), RuntimeError, kOp,
               ": Expected input and other to have the same dtype, but got input's dtype ", scalar_type_word(a.dtype()),
               " and other's dtype ", scalar_type_word(b.dtype()));
  const auto driver = parse_driver(driver_name);
  const bool vector = is_vector_case(a, b);
  Tensor matrices = a, right = vector ? unsqueeze(b, -1) : b;
  TERCEL_CHECK(
      right.dim() >= 2 && a.size(-2) == right.size(-2), RuntimeError, kOp,
      vector ? ": input.size(-2) should match other.size(-1)" : ": input.size(-2) should match other.size(-2)");
  const DimVector batch = broadcast_sizes(batch_sizes(a), batch_sizes(right));
  for (Tensor* x : {&matrices, &right}) {
    DimVector sizes(batch);
    sizes.push_back(x->size(-2));
    sizes.push_back(x->size(-1));
    *x = expand(*x, sizes);
  }
  const int64_t m = a.size(-2), n = a.size(-1);
  const double cutoff = rcond.value_or(default_rtol(a));
  LstsqResult out = plain_lstsq(matrices, right, cutoff, driver);
  if (should_record(matrices, right))
    record("LinalgLstsqBackward0", out.solution, {matrices, right},
           [a = SavedTensor(matrices), b = SavedTensor(right)](BackwardCall& call) {
             const Tensor p = pinv(a.get());
             if (call.needs(0)) call.set(0, pinv_gradient(matmul(call.grad(), adjoint(b.get())), p, a.get()));
             if (call.needs(1)) call.set(1, matmul(adjoint(p), call.grad()));
           });
  const bool full_rank = driver == lapack::LeastSquares::Gels || item(all(eq(out.rank, n))).to_bool();
  // PyTorch leaves them out for gelsy, though they could be had.
  const bool residuals = m > n && full_rank && driver != lapack::LeastSquares::Gelsy;
  out.residuals =
      residuals ? sum(square(abs(sub(matmul(matrices, out.solution), right))), {-2}) : empty({0}, real_options(a));
  if (vector) {
    out.solution = squeeze(out.solution, -1);
    if (out.residuals.dim() > 1 || m > n) out.residuals = squeeze(out.residuals, -1);
  }
  return out;
}

Tensor matrix_exp(const Tensor& a) {
  if (a.defined() && (a.dtype() == kFloat16 || a.dtype() == kBFloat16))
    return to(matrix_exp(to(a, kFloat32)), a.dtype());
  check_square("linalg.matrix_exp", a);
  Tensor out;
  const int64_t n = a.size(-1);
  {
    const NoRecordGuard no_record;
    if (a.numel() == 0) return clone(a);
    // Higham's approximation of degree 13 is exact to double precision up to this norm; larger matrices are halved
    // until they are, and the result squared as often.
    constexpr double kLargest = 5.371920351148152;
    const Tensor norms = contiguous(to(matrix_norm(a, 1.0), kFloat64));
    const Tensor scale = empty(norms.sizes(), TensorOptions(kFloat64)),
                 halvings = empty(norms.sizes(), TensorOptions(kInt64));
    int64_t most = 0;
    for (int64_t i = 0; i < norms.numel(); ++i) {
      const double norm = norms.data<double>()[i];
      const auto times = std::isfinite(norm) && norm > kLargest
                             ? static_cast<int64_t>(std::ceil(std::log2(norm / kLargest)))
                             : int64_t{0};
      halvings.data<int64_t>()[i] = times;
      scale.data<double>()[i] = std::ldexp(1.0, static_cast<int>(-times));
      most = std::max(most, times);
    }
    constexpr std::array<double, 14> kB = {64764752532480000,
                                           32382376266240000,
                                           7771770303897600,
                                           1187353796428800,
                                           129060195264000,
                                           10559470521600,
                                           670442572800,
                                           33522128640,
                                           1323241920,
                                           40840800,
                                           960960,
                                           16380,
                                           182,
                                           1};
    // Divided by the first, so that float32 stays far from its largest number.
    const auto c = [&](size_t i) { return Scalar(kB[i] / kB[0]); };
    const Tensor x = mul(a, per_matrix(to(scale, real_dtype(a.dtype())))), identity = eye(n, -1, a.options());
    const Tensor x2 = matmul(x, x), x4 = matmul(x2, x2), x6 = matmul(x4, x2);
    const auto polynomial = [&](size_t first) {
      const Tensor high = matmul(x6, add(add(mul(x6, c(first + 12)), mul(x4, c(first + 10))), mul(x2, c(first + 8))));
      const Tensor low = add(add(mul(x6, c(first + 6)), mul(x4, c(first + 4))), mul(x2, c(first + 2)));
      return add(add(high, low), mul(identity, c(first)));
    };
    const Tensor odd = matmul(x, polynomial(1)), even = polynomial(0);
    out = solve_ex(sub(even, odd), add(even, odd)).result;
    for (int64_t step = 0; step < most; ++step) out = where(per_matrix(gt(halvings, step)), matmul(out, out), out);
  }
  if (should_record(a))
    record("LinalgMatrixExpBackward0", out, {a}, [a = SavedTensor(a)](BackwardCall& call) {
      // The corner of exp [[A^H, G], [0, A^H]] is the derivative in the direction G.
      const Tensor ah = adjoint(a.get());
      const int64_t size = ah.size(-1);
      const Tensor top[] = {ah, call.grad()}, bottom[] = {zeros_like(ah), ah};
      const Tensor rows[] = {cat(top, -1), cat(bottom, -1)};
      call.set(0, narrow(narrow(matrix_exp(cat(rows, -2)), -2, 0, size), -1, size, size));
    });
  return out;
}

namespace {

LdlFactorExResult plain_ldl(const char* op, const Tensor& a, bool hermitian) {
  check_square(op, a);
  const NoRecordGuard no_record;
  const int64_t n = a.size(-1);
  LdlFactorExResult out{copy_columns(tril(a)), zeros(batch_sizes(a, {n}), TensorOptions(kInt32)),
                        zeros(batch_sizes(a), TensorOptions(kInt32))};
  if (a.numel() == 0) return out;
  const int size = lapack::to_int(op, n);
  const Columns matrices(out.LD);
  lapack::require(op);
  visit_lapack_types(op, a.dtype(), [&]<class T> {
    for_each_matrix(matrices.count, cubed(n), [&](int64_t i) {
      out.info.data<int32_t>()[i] =
          lapack::sytrf(hermitian, /*upper=*/false, size, matrices.at<T>(i), out.pivots.data<int32_t>() + i * n);
    });
  });
  return out;
}

std::string zero_block_sentence(int32_t k) {
  return str_cat({"The factorization could not be completed because D[", k, ",", k,
                  "] is exactly zero: the input matrix is singular."});
}

}  // namespace

LdlFactorExResult ldl_factor_ex(const Tensor& a, bool hermitian, bool check_errors) {
  LdlFactorExResult out = plain_ldl("torch.linalg.ldl_factor_ex", a, hermitian);
  if (check_errors) check_info("torch.linalg.ldl_factor_ex", out.info, zero_block_sentence);
  record_not_implemented("NotImplemented", {out.LD}, {a}, "linalg_ldl_factor_ex");
  return out;
}

LdlFactorResult ldl_factor(const Tensor& a, bool hermitian) {
  LdlFactorExResult out = plain_ldl("torch.linalg.ldl_factor", a, hermitian);
  check_info("torch.linalg.ldl_factor", out.info, zero_block_sentence);
  record_not_implemented("NotImplemented", {out.LD}, {a}, "linalg_ldl_factor_ex");
  return {std::move(out.LD), std::move(out.pivots)};
}

Tensor ldl_solve(const Tensor& ld, const Tensor& pivots, const Tensor& b, bool hermitian) {
  constexpr const char* kOp = "torch.linalg.ldl_solve";
  check_square(kOp, ld, "LD");
  check_matrices(kOp, b, "B");
  check_defined(kOp, pivots, "pivots");
  TERCEL_CHECK(ld.dtype() == b.dtype(), RuntimeError, kOp, ": LD dtype ", scalar_type_word(ld.dtype()),
               " does not match b dtype ", scalar_type_word(b.dtype()));
  TERCEL_CHECK(b.size(-2) == ld.size(-1), RuntimeError, kOp,
               ": Incompatible shapes of A and B for the equation AX = B (", ld.size(-2), "x", ld.size(-1), " and ",
               b.size(-2), "x", b.size(-1), ")");
  TERCEL_CHECK(pivots.dtype() == kInt32, RuntimeError, kOp, ": Expected pivots to be integers. Got ",
               scalar_type_word(pivots.dtype()));
  TERCEL_CHECK(pivots.sizes() == ld.sizes().subspan(0, ld.sizes().size() - 1), RuntimeError, kOp,
               ": Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with shape ", pivots.sizes(),
               " instead");
  Tensor out;
  const int64_t n = ld.size(-1);
  const DimVector batch = broadcast_sizes(batch_sizes(ld), batch_sizes(b));
  const auto with_batch = [&](std::initializer_list<int64_t> rest) {
    DimVector sizes(batch);
    for (const int64_t s : rest) sizes.push_back(s);
    return sizes;
  };
  const Tensor right = expand(b, with_batch({n, b.size(-1)}));
  {
    const NoRecordGuard no_record;
    out = copy_columns(right);
    const Tensor factors = copy_columns(expand(ld, with_batch({n, n}))),
                 order = contiguous(expand(pivots, with_batch({n})));
    if (out.numel() > 0) {
      const auto* places = order.data<int32_t>();
      // An interchange names a row of the matrix; LAPACK would read outside of it.
      for (int64_t i = 0; i < order.numel(); ++i)
        TERCEL_CHECK(places[i] != 0 && places[i] >= -n && places[i] <= n, RuntimeError, kOp,
                     ": pivots must be between 1 and ", n, " in magnitude but got ", places[i]);
      const int size = lapack::to_int(kOp, n), columns = lapack::to_int(kOp, b.size(-1));
      const Columns matrices(factors), sides(out);
      lapack::require(kOp);
      visit_lapack_types(kOp, b.dtype(), [&]<class T> {
        for_each_matrix(sides.count, static_cast<double>(n * n * columns), [&](int64_t i) {
          lapack::sytrs(hermitian, /*upper=*/false, size, columns, matrices.at<T>(i), places + i * n, sides.at<T>(i));
        });
      });
    }
  }
  if (should_record(right, ld))
    record("LinalgLdlSolveBackward0", out, {right, ld},
           [ld = SavedTensor(ld), pivots = SavedTensor(pivots), hermitian](BackwardCall& call) {
             TERCEL_CHECK(!call.needs(1), NotImplementedError,
                          "the derivative for 'LD' of 'linalg_ldl_solve' is not implemented.");
             // Of a symmetric matrix the adjoint is the conjugate.
             const Tensor factors = hermitian ? ld.get() : conj(ld.get());
             call.set(0, ldl_solve(factors, pivots.get(), call.grad(), hermitian));
           });
  return out;
}

Tensor tensorinv(const Tensor& a, int64_t ind) {
  check_defined("linalg.tensorinv", a, "A");
  TERCEL_CHECK(ind > 0, RuntimeError, "Expected a strictly positive integer for 'ind'");
  const size_t cut = std::min(static_cast<size_t>(ind), a.sizes().size());
  const IntSpan front = a.sizes().subspan(0, cut), back = a.sizes().subspan(cut, a.sizes().size() - cut);
  const int64_t rows = numel_of(front), columns = numel_of(back);
  TERCEL_CHECK(rows == columns, RuntimeError,
               "Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got ",
               columns, " != ", rows);
  DimVector sizes(back);
  for (const int64_t s : front) sizes.push_back(s);
  return reshape(inv(reshape(a, {rows, columns})), sizes);
}

Tensor tensorsolve(const Tensor& a, const Tensor& b, IntSpan dims) {
  check_defined("linalg.tensorsolve", a, "A");
  check_defined("linalg.tensorsolve", b, "B");
  Tensor moved = a;
  if (!dims.empty()) {
    DimVector order, last;
    for (const int64_t d : dims) last.push_back(wrap_dim(d, a.dim()));
    for (int64_t d = 0; d < a.dim(); ++d)
      if (std::find(last.begin(), last.end(), d) == last.end()) order.push_back(d);
    for (const int64_t d : last) order.push_back(d);
    moved = permute(a, order);
  }
  const size_t cut = std::min(b.sizes().size(), moved.sizes().size());
  const IntSpan back = moved.sizes().subspan(cut, moved.sizes().size() - cut);
  const int64_t columns = numel_of(back), rows = numel_of(moved.sizes().subspan(0, cut));
  TERCEL_CHECK(columns == rows && rows == b.numel(), RuntimeError,
               "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
               "prod(self.shape[:other.ndim]), but got ",
               columns, " != ", rows == columns ? b.numel() : rows);
  return reshape(solve(reshape(moved, {rows, columns}), reshape(b, {rows})), back);
}

}  // namespace linalg

Tensor logdet(const Tensor& a) {
  linalg::check_square("logdet", a);
  const linalg::SlogdetResult parts = linalg::slogdet(a);
  if (a.is_complex()) return add(log(parts.sign), parts.logabsdet);
  return where(lt(parts.sign, 0), std::numeric_limits<double>::quiet_NaN(), parts.logabsdet);
}

}  // namespace tercel
