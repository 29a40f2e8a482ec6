// Factorization of symmetric matrices, which may be indefinite.
#include "tercel/autograd/not_implemented.h"
#include "tercel/autograd/record.h"
#include "tercel/core/dtype_words.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/complex.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/linalg/lapack_impl.h"
#include "tercel/ops/linalg/linalg.h"
#include "tercel/ops/linalg/linalg_impl.h"
#include "tercel/ops/views/diagonals.h"

namespace tercel::linalg {

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
  LdlFactorExResult out = plain_ldl("linalg.ldl_factor_ex", a, hermitian);
  if (check_errors) check_info("linalg.ldl_factor_ex", out.info, zero_block_sentence);
  record_not_implemented("NotImplemented", {out.LD}, {a}, "linalg_ldl_factor_ex");
  return out;
}

LdlFactorResult ldl_factor(const Tensor& a, bool hermitian) {
  LdlFactorExResult out = plain_ldl("linalg.ldl_factor", a, hermitian);
  check_info("linalg.ldl_factor", out.info, zero_block_sentence);
  record_not_implemented("NotImplemented", {out.LD}, {a}, "linalg_ldl_factor_ex");
  return {std::move(out.LD), std::move(out.pivots)};
}

Tensor ldl_solve(const Tensor& LD, const Tensor& pivots, const Tensor& B, bool hermitian) {
  constexpr const char* kOp = "linalg.ldl_solve";
  check_square(kOp, LD, "LD");
  check_matrices(kOp, B, "B");
  check_strided(kOp, pivots, "pivots");
  TERCEL_CHECK(LD.dtype() == B.dtype(), RuntimeError, kOp, ": LD dtype ", scalar_type_word(LD.dtype()),
               " does not match b dtype ", scalar_type_word(B.dtype()));
  TERCEL_CHECK(B.size(-2) == LD.size(-1), RuntimeError, kOp,
               ": Incompatible shapes of A and B for the equation AX = B (", LD.size(-2), "x", LD.size(-1), " and ",
               B.size(-2), "x", B.size(-1), ")");
  TERCEL_CHECK(pivots.dtype() == kInt32, RuntimeError, kOp, ": Expected pivots to be integers. Got ",
               scalar_type_word(pivots.dtype()));
  TERCEL_CHECK(pivots.sizes() == LD.sizes().subspan(0, LD.sizes().size() - 1), RuntimeError, kOp,
               ": Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with shape ", pivots.sizes(),
               " instead");
  Tensor out;
  const int64_t n = LD.size(-1);
  const DimVector batch = broadcast_sizes(batch_sizes(LD), batch_sizes(B));
  const auto with_batch = [&](std::initializer_list<int64_t> rest) {
    DimVector sizes(batch);
    for (const int64_t s : rest) sizes.push_back(s);
    return sizes;
  };
  const Tensor right = expand(B, with_batch({n, B.size(-1)}));
  {
    const NoRecordGuard no_record;
    out = copy_columns(right);
    const Tensor factors = copy_columns(expand(LD, with_batch({n, n}))),
                 order = contiguous(expand(pivots, with_batch({n})));
    if (out.numel() > 0) {
      const auto* places = order.data<int32_t>();
      // A pivot must be a row of the matrix, and a negative one the first of two that describe a 2 x 2 block: otherwise
      // LAPACK would read and write out of bounds.
      for (int64_t i = 0; i < order.numel(); ++i) {
        TERCEL_CHECK(places[i] != 0 && places[i] >= -n && places[i] <= n, RuntimeError, kOp,
                     ": pivots must be between 1 and ", n, " in magnitude but got ", places[i]);
        if (places[i] > 0) continue;
        TERCEL_CHECK(i % n + 1 < n && places[i + 1] < 0 && places[i + 1] >= -n, RuntimeError, kOp,
                     ": a negative pivot must be followed by another one, but pivot ", i % n, " is ", places[i]);
        ++i;
      }
      const int size = lapack::to_int(kOp, n), columns = lapack::to_int(kOp, B.size(-1));
      const Columns matrices(factors), sides(out);
      lapack::require(kOp);
      visit_lapack_types(kOp, B.dtype(), [&]<class T> {
        for_each_matrix(sides.count, static_cast<double>(n * n * columns), [&](int64_t i) {
          lapack::sytrs(hermitian, /*upper=*/false, size, columns, matrices.at<T>(i), places + i * n, sides.at<T>(i));
        });
      });
    }
  }
  if (should_record(right, LD))
    record("LinalgLdlSolveBackward0", out, {right, LD},
           [LD = SavedTensor(LD), pivots = SavedTensor(pivots), hermitian](BackwardCall& call) {
             TERCEL_CHECK(!call.needs(1), NotImplementedError,
                          "the derivative for 'LD' of 'linalg_ldl_solve' is not implemented.");
             // The adjoint of a symmetric matrix is its conjugate.
             const Tensor factors = hermitian ? LD.get() : conj(LD.get());
             call.set(0, ldl_solve(factors, pivots.get(), call.grad(), hermitian));
           });
  return out;
}

}  // namespace tercel::linalg
