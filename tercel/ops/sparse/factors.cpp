#include "tercel/ops/sparse/factors_impl.h"

#include "tercel/autograd/record.h"
#include "tercel/core/dtype_words.h"
#include "tercel/core/sparse_data.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/complex.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/sparse/compressed_impl.h"
#include "tercel/ops/sparse/coo_impl.h"
#include "tercel/ops/views/views.h"

namespace tercel::sparse_ops {

namespace {

/** `name` is that of the factor in PyTorch's errors of compressed layouts, in which a strided one may be named too. */
void check_matrix(const Tensor& x, const char* name, bool compressed) {
  if (x.layout() == Layout::SparseCoo) {
    const SparseData& parts = parts_of("mm", x);
    TERCEL_CHECK(parts.sparse_dim == 2, RuntimeError, "addmm: matrices expected, got ", parts.sparse_dim, "D tensor");
    TERCEL_CHECK(parts.dense_dim == 0, RuntimeError, "addmm: scalar values expected, got ", parts.dense_dim,
                 "D values");
    return;
  }
  if (!is_compressed(x.layout())) check_strided("mm", x);
  if (compressed)
    TERCEL_CHECK(x.dim() == 2, RuntimeError, "addmm: ", name, " must be a matrix, got ", x.dim(), "-D tensor");
  else
    TERCEL_CHECK(x.dim() == 2, RuntimeError, "addmm: matrices expected, got ", x.dim(), "D tensor");
}

}  // namespace

void check_factors(const Tensor& a, const Tensor& b) {
  check_defined("mm", a, "mat1");
  check_defined("mm", b, "mat2");
  const bool compressed = has_compressed(a, b);
  check_matrix(a, "self", compressed);
  check_matrix(b, "mat2", compressed);
  if (compressed) {
    TERCEL_CHECK(a.size(1) == b.size(0), RuntimeError, "addmm: mat1 and mat2 shapes cannot be multiplied (", a.size(0),
                 "x", a.size(1), " and ", b.size(0), "x", b.size(1), ")");
    TERCEL_CHECK(a.dtype() == b.dtype(), RuntimeError, "expected scalar type ", scalar_type_word(a.dtype()),
                 " but found ", scalar_type_word(b.dtype()));
  } else {
    TERCEL_CHECK(a.size(1) == b.size(0), RuntimeError, "addmm: Argument #3 (dense): Expected dim 0 size ", a.size(1),
                 ", got ", b.size(0));
    TERCEL_CHECK(a.dtype() == b.dtype(), RuntimeError, "mm: expected scalar type ", scalar_type_word(a.dtype()),
                 " but found ", scalar_type_word(b.dtype()));
  }
}

Tensor adjoint_of(const Tensor& x) {
  const Tensor turned = transpose(x, 0, 1);
  if (!x.is_complex()) return turned;
  return is_compressed(x.layout()) ? with_values(turned, conj(compressed_values(turned))) : conj(turned);
}

Tensor scaled(const Tensor& product, Scalar alpha) {
  return alpha.is_integral() && alpha.to_int64() == 1 ? product : mul(product, alpha);
}

Tensor added(const Tensor& input, const Tensor& product, Scalar beta) {
  if (!is_sparse(input.layout()) && is_sparse(product.layout()))
    throw_error<RuntimeError>({"addmm: expected a strided input to be added to a strided product"});
  const Tensor whole = is_sparse(input.layout()) ? input : expand(input, product.sizes());
  TERCEL_CHECK(whole.sizes() == product.sizes(), NotImplementedError, "addmm: not implemented for layout ",
               to_string(input.layout()), " of an input that is broadcast: expected an input of sizes ",
               product.sizes(), " but got ", whole.sizes());
  if (const Complex<double> factor = beta.to_complex(); factor.real() != 0 || factor.imag() != 0)
    return add(scaled(whole, beta), product);
  if (is_sparse(input.layout()) || !should_record(input)) return product;
  const Tensor nothing = zeros(product.sizes(), TensorOptions(input.dtype(), input.device()));
  record("MulBackward0", nothing, {input}, [sizes = DimVector(input.sizes())](BackwardCall& call) {
    call.set(0, zeros(sizes, TensorOptions(call.grad().dtype(), call.grad().device())));
  });
  return add(nothing, product);
}

}  // namespace tercel::sparse_ops
