#include "tercel/ops/matmul.h"

#include <algorithm>

#include "tercel/autograd/record.h"
#include "tercel/ops/binary.h"
#include "tercel/ops/matmul_impl.h"
#include "tercel/ops/views.h"

namespace tercel {

bool MatrixOperand::fits() {
  const int64_t rows = tensor.sizes()[tensor.sizes().size() - 2], columns = tensor.sizes().back();
  const int64_t down = tensor.strides()[tensor.strides().size() - 2], across = tensor.strides().back();
  // The stride of a dimension of size 1 is free.
  if ((across == 1 || columns == 1) && (down >= columns || rows <= 1)) {
    leading = rows <= 1 ? std::max<int64_t>(columns, 1) : down;
    transposed = false;
    return true;
  }
  if ((down == 1 || rows == 1) && (across >= rows || columns <= 1)) {
    leading = columns <= 1 ? std::max<int64_t>(rows, 1) : across;
    transposed = true;
    return true;
  }
  return false;
}

Tensor as_matrix(const Tensor& x) {
  return reshape(x, {numel_of(x.sizes().subspan(0, x.sizes().size() - 1)), x.sizes().back()});
}

Tensor plain_mm(const Tensor& a, const Tensor& b) {
  Tensor out = empty({a.size(0), b.size(1)}, a.options());
  const MatrixOperand left(a), right(b);
  visit_gemm_types("mm", a.dtype(), [&]<class T> { gemm(gemm_of<T>(left, right, out)); });
  return out;
}

namespace {

void check_matrices(const char* op, const Tensor& a, const Tensor& b, int64_t dims) {
  check_defined(a, op, "self");
  check_defined(b, op, "mat2");
  TERCEL_CHECK(a.dim() == dims && b.dim() == dims, ValueError, op, ": expected tensors of ", dims,
               " dimensions but got ", a.sizes(), " and ", b.sizes());
  TERCEL_CHECK(a.dtype() == b.dtype(), TypeError, op, ": expected scalar type ", to_string(a.dtype()), " but found ",
               to_string(b.dtype()));
  TERCEL_CHECK(a.device().is_cpu() && b.device().is_cpu(), NotImplementedError, op, ": not implemented for device ",
               to_string(a.device().is_cpu() ? b.device() : a.device()));
}

Tensor plain_bmm(const Tensor& a, const Tensor& b) {
  Tensor out = empty({a.size(0), a.size(1), b.size(2)}, a.options());
  const MatrixOperand left(a), right(b);
  visit_gemm_types("bmm", a.dtype(), [&]<class T> {
    gemm_batched(gemm_of<T>(left, right, out), a.size(0), left.tensor.strides()[0], right.tensor.strides()[0],
                 out.strides()[0]);
  });
  return out;
}

}  // namespace

Tensor mm(const Tensor& a, const Tensor& b) {
  check_matrices("mm", a, b, 2);
  TERCEL_CHECK(a.size(1) == b.size(0), ValueError, "mm: mat1 and mat2 shapes cannot be multiplied (", a.size(0), "x",
               a.size(1), " and ", b.size(0), "x", b.size(1), ")");
  Tensor out = plain_mm(a, b);
  if (should_record(a, b))
    record(
        "MmBackward0", out, {a, b},
        [a = SavedTensor::when(b.requires_grad(), a), b = SavedTensor::when(a.requires_grad(), b)](BackwardCall& call) {
          if (call.needs(0)) call.set(0, plain_mm(call.grad(), t(b.get())));
          if (call.needs(1)) call.set(1, plain_mm(t(a.get()), call.grad()));
        });
  return out;
}

Tensor bmm(const Tensor& a, const Tensor& b) {
  check_matrices("bmm", a, b, 3);
  TERCEL_CHECK(a.size(0) == b.size(0) && a.size(2) == b.size(1), ValueError, "bmm: batches of matrices ", a.sizes(),
               " and ", b.sizes(), " cannot be multiplied");
  Tensor out = plain_bmm(a, b);
  if (should_record(a, b))
    record(
        "BmmBackward0", out, {a, b},
        [a = SavedTensor::when(b.requires_grad(), a), b = SavedTensor::when(a.requires_grad(), b)](BackwardCall& call) {
          if (call.needs(0)) call.set(0, plain_bmm(call.grad(), transpose(b.get(), 1, 2)));
          if (call.needs(1)) call.set(1, plain_bmm(transpose(a.get(), 1, 2), call.grad()));
        });
  return out;
}

Tensor addmm(const Tensor& x, const Tensor& a, const Tensor& b, Scalar beta, Scalar alpha) {
  check_defined(x, "addmm", "self");
  check_matrices("addmm", a, b, 2);
  TERCEL_CHECK(x.dtype() == a.dtype(), TypeError, "addmm: expected scalar type ", to_string(a.dtype()), " but found ",
               to_string(x.dtype()));
  Tensor product = mm(a, b);
  if (alpha.to_double() != 1) product = mul(product, alpha);
  if (beta.to_double() == 0) return product;
  const Tensor scaled = beta.to_double() == 1 ? x : mul(x, beta);
  return add(product, expand(scaled, product.sizes()));
}

Tensor matmul(const Tensor& a, const Tensor& b) {
  check_defined(a, "matmul", "self");
  check_defined(b, "matmul", "other");
  TERCEL_CHECK(a.dim() > 0 && b.dim() > 0, ValueError,
               "matmul: both arguments to matmul need to be at least 1D, but they are ", a.dim(), "D and ", b.dim(),
               "D");
  if (a.dim() == 1) {
    const Tensor out = matmul(unsqueeze(a, 0), b);
    return squeeze(out, b.dim() == 1 ? 0 : -2);
  }
  if (b.dim() == 1) return squeeze(matmul(a, unsqueeze(b, 1)), -1);
  if (a.dim() == 2 && b.dim() == 2) return mm(a, b);
  // Rows of a matrix on the left need no batches.
  if (b.dim() == 2) {
    DimVector sizes(a.sizes());
    sizes.back() = b.size(1);
    return view(mm(as_matrix(a), b), sizes);
  }
  const auto batch_of = [](const Tensor& x) { return x.sizes().subspan(0, x.sizes().size() - 2); };
  const DimVector batch = broadcast_sizes(batch_of(a), batch_of(b));
  const auto batched = [&](const Tensor& x) {
    DimVector sizes(batch);
    sizes.push_back(x.size(-2));
    sizes.push_back(x.size(-1));
    return reshape(expand(x, sizes), {numel_of(batch), x.size(-2), x.size(-1)});
  };
  DimVector sizes(batch);
  sizes.push_back(a.size(-2));
  sizes.push_back(b.size(-1));
  return view(bmm(batched(a), batched(b)), sizes);
}

Tensor Tensor::matmul(const Tensor& other) const { return tercel::matmul(*this, other); }

}  // namespace tercel
