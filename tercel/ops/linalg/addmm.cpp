// Matrix products with a fused addition.
#include "tercel/autograd/record.h"
#include "tercel/core/dtype_words.h"
#include "tercel/ops/common/assign_inplace_impl.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/common/elementwise_impl.h"
#include "tercel/ops/common/operand_checks_impl.h"
#include "tercel/ops/common/out.h"
#include "tercel/ops/common/sum_to_size.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/complex.h"
#include "tercel/ops/linalg/matmul.h"
#include "tercel/ops/linalg/matmul_impl.h"
#include "tercel/ops/sparse/sparse_ops_impl.h"
#include "tercel/ops/views/views.h"

namespace tercel {

namespace {

Tensor scaled(Tensor x, Scalar factor) { return equals(factor, 1) ? std::move(x) : mul(x, factor); }

void check_summand(const char* op, const Tensor& x, const Tensor& a) {
  check_strided(op, x);
  check_on_cpu(op, x);
  TERCEL_CHECK(x.dtype() == a.dtype(), RuntimeError, op, ": self and mat2 must have the same dtype, but got ",
               scalar_type_word(x.dtype()), " and ", scalar_type_word(a.dtype()));
}

/** plain() for dtypes that gemm does not support: complex, 16-bit and integer. */
Tensor composed(const Tensor& x, const Tensor& a, const Tensor& b, Scalar beta, Scalar alpha) {
  const auto as_integer = [&](Scalar s) { return is_integral(a.dtype(), true) ? Scalar(s.to_int64()) : s; };
  const Tensor product = scaled(matmul(a, b), as_integer(alpha));
  return equals(beta, 0) ? product : add(scaled(x, as_integer(beta)), product);
}

/** beta * x + alpha * a b, where a and b are matrices or batches of them; not recorded. */
Tensor plain(const char* op, const Tensor& x, const Tensor& a, const Tensor& b, Scalar beta, Scalar alpha) {
  if (a.dtype() != kFloat32 && a.dtype() != kFloat64) return composed(x, a, b, beta, alpha);
  const bool batched = a.dim() == 3;
  DimVector sizes(a.sizes());
  sizes.back() = b.sizes().back();
  const Tensor summand = expand(x, sizes);
  Tensor out = empty(sizes, a.options());
  // A row that is added to all rows becomes the product's bias; other operands are first copied to `out`.
  const bool adds = beta.to_double() != 0;
  const bool is_row = !batched && beta.to_double() == 1 && summand.strides()[0] == 0 && summand.strides()[1] == 1;
  if (adds && !is_row) copy_(out, summand);
  const MatrixOperand left(a), right(b);
  visit_gemm_types(op, a.dtype(), [&]<class T> {
    Gemm<T> g = gemm_of<T>(left, right, out);
    g.alpha = alpha.to<T>();
    g.beta = adds && !is_row ? beta.to<T>() : T(0);
    g.bias = is_row ? summand.data<T>() : nullptr;
    if (batched)
      gemm_batched(g, a.size(0), left.tensor.strides()[0], right.tensor.strides()[0], out.strides()[0]);
    else
      gemm(g);
  });
  return out;
}

/** plain(), recorded. The operands have been checked. */
Tensor recorded(const char* op, const char* backward_name, const Tensor& x, const Tensor& a, const Tensor& b,
                Scalar beta, Scalar alpha) {
  Tensor out;
  {
    const NoRecordGuard no_record;
    out = plain(op, x, a, b, beta, alpha);
  }
  if (should_record(x, a, b))
    record(backward_name, out, {x, a, b},
           [a = SavedTensor::when(is_tracked(b), a), b = SavedTensor::when(is_tracked(a), b),
            sizes = DimVector(x.sizes()), beta, alpha](BackwardCall& call) {
             const Tensor& g = call.grad();
             const auto adjoint = [](const Tensor& m) { return conj(transpose(m, -2, -1)); };
             if (call.needs(0)) call.set(0, sum_to_size(scaled(g, conjugate(beta)), sizes));
             if (call.needs(1)) call.set(1, scaled(matmul(g, adjoint(b.get())), conjugate(alpha)));
             if (call.needs(2)) call.set(2, scaled(matmul(adjoint(a.get()), g), conjugate(alpha)));
           });
  return out;
}

}  // namespace

Tensor addmm(const Tensor& x, const Tensor& mat1, const Tensor& mat2, Scalar beta, Scalar alpha) {
  if (has_sparse(x, mat1, mat2)) [[unlikely]]
    return sparse_addmm(x, mat1, mat2, beta, alpha);
  check_mm("addmm", mat1, mat2, "mat1");
  check_summand("addmm", x, mat1);
  return recorded("addmm", "AddmmBackward0", x, mat1, mat2, beta, alpha);
}

Tensor baddbmm(const Tensor& x, const Tensor& batch1, const Tensor& batch2, Scalar beta, Scalar alpha) {
  check_bmm("baddbmm", batch1, batch2);
  check_summand("baddbmm", x, batch1);
  return recorded("baddbmm", "BaddbmmBackward0", x, batch1, batch2, beta, alpha);
}

Tensor addmv(const Tensor& x, const Tensor& mat, const Tensor& vec, Scalar beta, Scalar alpha) {
  if (has_sparse(mat)) [[unlikely]]
    return sparse_addmv(x, mat, vec, beta, alpha);
  check_strided("addmv", x);
  check_strided("addmv", mat, "mat");
  check_strided("addmv", vec, "vec");
  TERCEL_CHECK(mat.dim() == 2 && vec.dim() == 1 && x.dim() <= 1, RuntimeError,
               "addmv: vector + matrix @ vector expected, got ", x.dim(), ", ", mat.dim(), ", ", vec.dim());
  TERCEL_CHECK(mat.size(1) == vec.size(0) && (x.numel() == mat.size(0) || x.numel() == 1), RuntimeError,
               "addmv: size mismatch, got input (", x.numel(), "), mat (", mat.size(0), "x", mat.size(1), "), vec (",
               vec.size(0), ")");
  return squeeze(addmm(unsqueeze(expand(x, {mat.size(0)}), 1), mat, unsqueeze(vec, 1), beta, alpha), 1);
}

namespace {

/** RuntimeError if a factor's category is higher than the result's. */
void check_factor(const char* op, Scalar factor, const char* name, ScalarType result) {
  TERCEL_CHECK(factor.category() != TypeCategory::Bool || result == kBool, RuntimeError, op, ": Boolean ", name,
               " only supported for Boolean results.");
  TERCEL_CHECK(factor.is_integral() || !is_integral(result, true), RuntimeError, op,
               ": For integral input tensors, argument ", name, " must not be a floating point number.");
  TERCEL_CHECK(!factor.is_complex() || is_complex(result), RuntimeError, op,
               ": For non-complex input tensors, argument ", name, " must not be a complex number.");
}

}  // namespace

Tensor addr(const Tensor& x, const Tensor& vec1, const Tensor& vec2, Scalar beta, Scalar alpha) {
  check_strided("addr", x);
  check_strided("addr", vec1, "vec1");
  check_strided("addr", vec2, "vec2");
  TERCEL_CHECK(vec1.dim() == 1, RuntimeError, "addr: Expected 1-D argument vec1, but got ", vec1.dim(), "-D");
  TERCEL_CHECK(vec2.dim() == 1, RuntimeError, "addr: Expected 1-D argument vec2, but got ", vec2.dim(), "-D");
  const ScalarType type = promote_types(promote_types(vec1.dtype(), vec2.dtype()), x.dtype());
  check_factor("addr", beta, "beta", type);
  check_factor("addr", alpha, "alpha", type);
  const Tensor summand = expand(x, {vec1.size(0), vec2.size(0)});
  const Tensor product = scaled(outer(vec1, vec2), alpha);
  return equals(beta, 0) ? product : add(scaled(summand, beta), product);
}

Tensor addbmm(const Tensor& x, const Tensor& batch1, const Tensor& batch2, Scalar beta, Scalar alpha) {
  check_bmm("addbmm", batch1, batch2);
  check_summand("addbmm", x, batch1);
  // The sum over the batch is one product whose inner dimension is the batch times the inner dimension.
  const int64_t inner = batch1.size(0) * batch1.size(2);
  return addmm(x, reshape(transpose(batch1, 0, 1), {batch1.size(1), inner}), reshape(batch2, {inner, batch2.size(2)}),
               beta, alpha);
}

#define TERCEL_ADD_VARIANTS(name)                                                                             \
  const Tensor& name##_(const Tensor& x, const Tensor& a, const Tensor& b, Scalar beta, Scalar alpha) {       \
    return assign_inplace(#name "_", x, name(x, a, b, beta, alpha));                                          \
  }                                                                                                           \
  const Tensor& name##_out(const Tensor& out, const Tensor& x, const Tensor& a, const Tensor& b, Scalar beta, \
                           Scalar alpha) {                                                                    \
    check_out_apart(#name, {out}, {x, a, b});                                                                 \
    return put_out(#name, out, name(x, a, b, beta, alpha));                                                   \
  }
TERCEL_ADD_VARIANTS(addmm)
TERCEL_ADD_VARIANTS(addmv)
TERCEL_ADD_VARIANTS(addr)
TERCEL_ADD_VARIANTS(baddbmm)
TERCEL_ADD_VARIANTS(addbmm)
#undef TERCEL_ADD_VARIANTS

}  // namespace tercel
