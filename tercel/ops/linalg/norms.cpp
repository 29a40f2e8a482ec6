// Vector and matrix norms.
#include <cmath>
#include <limits>

#include "tercel/autograd/record.h"
#include "tercel/core/dtype_words.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/common/operand_checks_impl.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/ternary.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/linalg/linalg.h"
#include "tercel/ops/linalg/linalg_impl.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/reduce/vector_norms.h"
#include "tercel/ops/sparse/sparse_ops_impl.h"

namespace tercel::linalg {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Tensor floating(const char* op, const Tensor& x, ScalarType dtype) {
  TERCEL_CHECK(x.is_differentiable(), NotImplementedError, op,
               ": Expected a floating point or complex tensor as input. Got ", scalar_type_word(x.dtype()));
  if (dtype == ScalarType::Undefined) return x;
  const bool of_complex = x.is_complex();
  TERCEL_CHECK(is_complex(dtype) == of_complex, RuntimeError, op, ": dtype should be ", of_complex ? "complex" : "real",
               " for ", of_complex ? "complex" : "real", " inputs, but got ", scalar_type_word(dtype));
  TERCEL_CHECK(is_differentiable(dtype) && promote_types(dtype, x.dtype()) == dtype, RuntimeError, op,
               ": the dtype of the input ", "(", scalar_type_word(x.dtype()),
               ") should be convertible without narrowing to the specified dtype (", scalar_type_word(dtype), ")");
  return to(x, dtype);
}

}  // namespace

Tensor vector_norm(const Tensor& input, double ord, IntSpan dim, bool keepdim, ScalarType dtype) {
  if (!has_sparse(input)) check_strided("linalg.vector_norm", input, "x");
  return tercel::norm(floating("linalg.vector_norm", input, dtype), ord, dim, keepdim);
}

namespace {

struct MatrixDims {
  int64_t row, column;

  MatrixDims(const Tensor& a, IntSpan dims) {
    TERCEL_CHECK(a.dim() >= 2, RuntimeError, "linalg.matrix_norm: The input tensor A must have at least 2 dimensions.");
    TERCEL_CHECK(dims.size() == 2, RuntimeError, "linalg.matrix_norm: dim must be a 2-tuple. Got ", dims);
    row = wrap_dim(dims[0], a.dim());
    column = wrap_dim(dims[1], a.dim());
    TERCEL_CHECK(row != column, RuntimeError, "linalg.matrix_norm: dims must be different. Got (", dims[0], ", ",
                 dims[1], ")");
  }
};

Tensor without_dims(Tensor x, const MatrixDims& d, bool keepdim) {
  if (keepdim) return x;
  return squeeze(squeeze(x, std::max(d.row, d.column)), std::min(d.row, d.column));
}

/** Singular values of matrices in two given dimensions, as the last dimension. */
Tensor values_of_matrices(const Tensor& a, const MatrixDims& d) {
  DimVector order;
  for (int64_t i = 0; i < a.dim(); ++i)
    if (i != d.row && i != d.column) order.push_back(i);
  order.push_back(d.row);
  order.push_back(d.column);
  return svdvals(permute(a, order));
}

/** The maximum or minimum along a dimension; the maximum of an empty dimension is 0. */
Tensor extreme(const Tensor& x, int64_t dim, bool largest, bool keepdim) {
  if (!largest) return amin(x, {dim}, keepdim);
  return x.size(dim) == 0 ? sum(x, {dim}, keepdim) : amax(x, {dim}, keepdim);
}

Tensor with_dims(Tensor x, const MatrixDims& d, bool keepdim) {
  if (!keepdim) return x;
  return unsqueeze(unsqueeze(x, std::min(d.row, d.column)), std::max(d.row, d.column));
}

}  // namespace

Tensor matrix_norm(const Tensor& input, double ord, IntSpan dims, bool keepdim, ScalarType dtype) {
  check_strided("linalg.matrix_norm", input, "x");
  const Tensor a = floating("linalg.matrix_norm", input, dtype);
  const MatrixDims d(a, dims);
  const double magnitude = std::abs(ord);
  TERCEL_CHECK(magnitude == 1 || magnitude == 2 || magnitude == kInfinity, RuntimeError, "linalg.matrix_norm: Order ",
               ord, " not supported.");
  if (magnitude == 2) {
    const Tensor s = values_of_matrices(a, d);
    return with_dims(extreme(s, -1, ord > 0, false), d, keepdim);
  }
  // Sums along one dimension, then their maximum or minimum along the other.
  const int64_t summed = magnitude == 1 ? d.row : d.column, other = magnitude == 1 ? d.column : d.row;
  const Tensor sums = sum(abs(a), {summed}, true);
  return without_dims(extreme(sums, other, ord > 0, true), d, keepdim);
}

Tensor matrix_norm(const Tensor& input, std::string_view ord, IntSpan dims, bool keepdim, ScalarType dtype) {
  check_strided("linalg.matrix_norm", input, "x");
  const Tensor a = floating("linalg.matrix_norm", input, dtype);
  const MatrixDims d(a, dims);
  TERCEL_CHECK(ord == "fro" || ord == "nuc", RuntimeError, "linalg.matrix_norm: Order ", ord, " not supported.");
  if (ord == "fro") return vector_norm(a, 2, {d.row, d.column}, keepdim);
  return with_dims(sum(values_of_matrices(a, d), {-1}), d, keepdim);
}

namespace {

void check_norm_dims(const Tensor& x, IntSpan dims, bool has_order) {
  if (has_order || !has_sparse(x)) check_strided("linalg.norm", x, "A");
  TERCEL_CHECK(dims.size() <= 2, RuntimeError, "linalg.norm: If dim is specified, it must be of length 1 or 2. Got ",
               dims);
  TERCEL_CHECK(!dims.empty() || !has_order || x.dim() == 1 || x.dim() == 2, RuntimeError,
               "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got ", x.dim(), "D.");
}

}  // namespace

Tensor norm(const Tensor& x, std::nullopt_t /*ord*/, IntSpan dims, bool keepdim, ScalarType dtype) {
  check_norm_dims(x, dims, false);
  return vector_norm(x, 2, dims, keepdim, dtype);
}

Tensor norm(const Tensor& x, double ord, IntSpan dims, bool keepdim, ScalarType dtype) {
  check_norm_dims(x, dims, true);
  const bool matrix = dims.size() == 2 || (dims.empty() && x.dim() == 2);
  if (!matrix) return vector_norm(x, ord, dims, keepdim, dtype);
  return dims.empty() ? matrix_norm(x, ord, {0, 1}, keepdim, dtype) : matrix_norm(x, ord, dims, keepdim, dtype);
}

Tensor norm(const Tensor& x, std::string_view ord, IntSpan dims, bool keepdim, ScalarType dtype) {
  check_norm_dims(x, dims, true);
  return dims.empty() ? matrix_norm(x, ord, {0, 1}, keepdim, dtype) : matrix_norm(x, ord, dims, keepdim, dtype);
}

namespace {

/** norm_of(a) * norm_of(a^-1). */
template <class Norm>
Tensor condition(const Tensor& a, Norm norm_of) {
  check_square("linalg.cond", a);
  const InvExResult inverse = inv_ex(a);
  // Some norms reject the non-finite inverse of a singular matrix.
  const Tensor singular = ne(inverse.info, 0);
  const Tensor usable = where(unsqueeze(unsqueeze(singular, -1), -1), 0, inverse.inverse);
  return where(singular, kInfinity, mul(norm_of(a), norm_of(usable)));
}

}  // namespace

Tensor cond(const Tensor& a) { return cond(a, 2.0); }

Tensor cond(const Tensor& a, double ord) {
  check_matrices("linalg.cond", a);
  TERCEL_CHECK(std::abs(ord) == 1 || std::abs(ord) == 2 || std::isinf(ord), RuntimeError,
               "linalg.cond got an invalid norm type: ", ord);
  if (a.numel() == 0) return zeros(batch_sizes(a), real_options(a));
  if (std::abs(ord) != 2) return condition(a, [&](const Tensor& x) { return matrix_norm(x, ord); });
  const Tensor s = svdvals(a), largest = select(s, -1, 0), smallest = select(s, -1, -1);
  return ord > 0 ? div(largest, smallest) : div(smallest, largest);
}

Tensor cond(const Tensor& a, std::string_view ord) {
  check_matrices("linalg.cond", a);
  TERCEL_CHECK(ord == "fro" || ord == "nuc", RuntimeError, "linalg.cond got an invalid norm type: ", ord);
  if (a.numel() == 0 && a.size(-1) == a.size(-2)) return zeros(batch_sizes(a), real_options(a));
  return condition(a, [&](const Tensor& x) { return matrix_norm(x, ord); });
}

}  // namespace tercel::linalg
