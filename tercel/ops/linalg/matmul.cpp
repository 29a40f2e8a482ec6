#include "tercel/ops/linalg/matmul.h"

#include <algorithm>

#include "tercel/autograd/record.h"
#include "tercel/core/dtype_words.h"
#include "tercel/ops/common/operand_checks_impl.h"
#include "tercel/ops/common/out.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/complex.h"
#include "tercel/ops/linalg/int_matmul_kernels.h"
#include "tercel/ops/linalg/matmul_impl.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/sparse/sparse_ops_impl.h"
#include "tercel/ops/views/views.h"
#include "tercel/util/parallel.h"

namespace tercel {

namespace {
constexpr int64_t kGrainMultiplications = 65536;
}  // namespace

bool MatrixOperand::fits() {
  const int64_t rows = tensor.sizes()[tensor.sizes().size() - 2], columns = tensor.sizes().back();
  const int64_t down = tensor.strides()[tensor.strides().size() - 2], across = tensor.strides().back();
  // A dimension of size 1 may have any stride.
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

namespace {

constinit const KernelTable<IntMatmulFn> int_matmul_kernels = TERCEL_CPU_KERNELS(int_matmul);

/** Matrices [m, k] and [k, n], or batches of them [batch, ...]. */
Tensor float_product(const char* op, const Tensor& a, const Tensor& b, IntSpan sizes) {
  Tensor out = empty(sizes, a.options());
  const MatrixOperand left(a), right(b);
  visit_gemm_types(op, a.dtype(), [&]<class T> {
    const Gemm<T> product = gemm_of<T>(left, right, out);
    if (sizes.size() == 2)
      gemm(product);
    else
      gemm_batched(product, sizes[0], left.tensor.strides()[0], right.tensor.strides()[0], out.strides()[0]);
  });
  return out;
}

/** Computed in int32 for dtypes of up to 32 bits, else in int64: the low bits are the same. */
Tensor int_product(const Tensor& a, const Tensor& b, IntSpan sizes) {
  const ScalarType wide = item_size(a.dtype()) > 4 ? kInt64 : kInt32;
  const Tensor left = contiguous(to(a, wide)), right = contiguous(to(b, wide));
  Tensor out = empty(sizes, TensorOptions(wide, a.device()));
  IntMatmul product{};
  product.m = sizes[sizes.size() - 2];
  product.n = sizes.back();
  product.k = a.sizes().back();
  product.wide = wide == kInt64;
  const auto kernel = int_matmul_kernels[a.device()];
  const int64_t item = static_cast<int64_t>(item_size(wide)), batch = sizes.size() == 2 ? 1 : sizes[0];
  for (int64_t i = 0; i < batch && out.numel() > 0; ++i) {
    product.a = static_cast<const char*>(left.data_ptr()) + i * product.m * product.k * item;
    product.b = static_cast<const char*>(right.data_ptr()) + i * product.k * product.n * item;
    product.c = static_cast<char*>(out.data_ptr()) + i * product.m * product.n * item;
    const int64_t row_work = std::max<int64_t>(1, product.n * std::max<int64_t>(1, product.k));
    parallel_for(0, product.m, std::max<int64_t>(1, kGrainMultiplications / row_work),
                 [&](int64_t begin, int64_t end) { kernel(product, begin, end); });
  }
  return to(out, a.dtype());
}

/** Products of any dtype but bool, not recorded. */
Tensor product_of(const char* op, const Tensor& a, const Tensor& b, IntSpan sizes) {
  const NoRecordGuard no_record;
  switch (a.dtype()) {
    case kFloat16:
    case kBFloat16: return to(float_product(op, to(a, kFloat32), to(b, kFloat32), sizes), a.dtype());
    case kComplex64:
    case kComplex128: {
      // Four real products of the real and imaginary parts.
      const Tensor ar = clone(real(a)), ai = clone(imag(a)), br = clone(real(b)), bi = clone(imag(b));
      return complex(sub(float_product(op, ar, br, sizes), float_product(op, ai, bi, sizes)),
                     add(float_product(op, ar, bi, sizes), float_product(op, ai, br, sizes)));
    }
    default: return is_integral(a.dtype(), false) ? int_product(a, b, sizes) : float_product(op, a, b, sizes);
  }
}

}  // namespace

Tensor plain_mm(const Tensor& a, const Tensor& b) { return product_of("mm", a, b, {a.size(0), b.size(1)}); }

void check_mm(const char* op, const Tensor& a, const Tensor& b, const char* a_name) {
  check_strided(op, a, a_name);
  check_strided(op, b, "mat2");
  TERCEL_CHECK(a.dim() == 2, RuntimeError, op, ": ", a_name, " must be a matrix, got ", a.dim(), "-D tensor");
  TERCEL_CHECK(b.dim() == 2, RuntimeError, op, ": mat2 must be a matrix, got ", b.dim(), "-D tensor");
  TERCEL_CHECK(a.size(1) == b.size(0), RuntimeError, op, ": mat1 and mat2 shapes cannot be multiplied (", a.size(0),
               "x", a.size(1), " and ", b.size(0), "x", b.size(1), ")");
  check_same_dtype(op, a, b);
  check_on_cpu(op, a);
  check_on_cpu(op, b);
}

void check_bmm(const char* op, const Tensor& a, const Tensor& b) {
  check_strided(op, a, "batch1");
  check_strided(op, b, "batch2");
  TERCEL_CHECK(a.dim() == 3, RuntimeError, op, ": batch1 must be a 3D tensor");
  TERCEL_CHECK(b.dim() == 3, RuntimeError, op, ": batch2 must be a 3D tensor");
  TERCEL_CHECK(a.size(0) == b.size(0) && a.size(2) == b.size(1), RuntimeError, op,
               ": Expected size for first two dimensions of batch2 tensor to be: [", a.size(0), ", ", a.size(2),
               "] but got: [", b.size(0), ", ", b.size(1), "].");
  check_same_dtype(op, a, b);
  check_on_cpu(op, a);
  check_on_cpu(op, b);
}

namespace {

Tensor plain_bmm(const Tensor& a, const Tensor& b) {
  return product_of("bmm", a, b, {a.size(0), a.size(1), b.size(2)});
}

/**
 * A matrix [m, k] times each matrix of a batch [batch, k, n]. The gradient of the matrix is a single product over the
 * batch, not the sum of one product per batch element.
 */
Tensor shared_bmm(const Tensor& a, const Tensor& b) {
  const Tensor many = expand(a, {b.size(0), a.size(0), a.size(1)});
  check_bmm("bmm", many, b);
  Tensor out;
  {
    const NoRecordGuard no_record;
    out = plain_bmm(many, b);
  }
  if (should_record(a, b))
    record("BmmBackward0", out, {a, b},
           [a = SavedTensor::when(is_tracked(b), a), b = SavedTensor::when(is_tracked(a), b)](BackwardCall& call) {
             const Tensor& g = call.grad();
             if (call.needs(0)) {
               const Tensor columns = reshape(permute(g, {1, 0, 2}), {g.size(1), g.size(0) * g.size(2)});
               call.set(0, mm(columns, conj(as_matrix(transpose(b.get(), 1, 2)))));
             }
             if (call.needs(1)) call.set(1, shared_bmm(conj(t(a.get())), g));
           });
  return out;
}

}  // namespace

Tensor mm(const Tensor& input, const Tensor& mat2) {
  if (has_sparse(input, mat2)) [[unlikely]]
    return sparse_mm(input, mat2);
  check_mm("mm", input, mat2, "self");
  Tensor out;
  {
    const NoRecordGuard no_record;
    out = plain_mm(input, mat2);
  }
  if (should_record(input, mat2))
    record("MmBackward0", out, {input, mat2},
           [input = SavedTensor::when(is_tracked(mat2), input),
            mat2 = SavedTensor::when(is_tracked(input), mat2)](BackwardCall& call) {
             if (call.needs(0)) call.set(0, mm(call.grad(), conj(t(mat2.get()))));
             if (call.needs(1)) call.set(1, mm(conj(t(input.get())), call.grad()));
           });
  return out;
}

Tensor bmm(const Tensor& input, const Tensor& mat2) {
  if (has_sparse(input, mat2)) [[unlikely]]
    return sparse_bmm(input, mat2);
  check_bmm("bmm", input, mat2);
  Tensor out;
  {
    const NoRecordGuard no_record;
    out = plain_bmm(input, mat2);
  }
  if (should_record(input, mat2))
    record("BmmBackward0", out, {input, mat2},
           [input = SavedTensor::when(is_tracked(mat2), input),
            mat2 = SavedTensor::when(is_tracked(input), mat2)](BackwardCall& call) {
             if (call.needs(0)) call.set(0, bmm(call.grad(), conj(transpose(mat2.get(), 1, 2))));
             if (call.needs(1)) call.set(1, bmm(conj(transpose(input.get(), 1, 2)), call.grad()));
           });
  return out;
}

CommonBatch::CommonBatch(const Tensor& left, const Tensor& right) {
  const auto batch_of = [](const Tensor& x) { return x.sizes().subspan(0, x.sizes().size() - 2); };
  sizes = broadcast_sizes(batch_of(left), batch_of(right));
  a = expand(left, of_matrices(left.size(-2), left.size(-1)));
  b = expand(right, of_matrices(right.size(-2), right.size(-1)));
}
DimVector CommonBatch::of_matrices(int64_t n, int64_t m) const {
  DimVector out(sizes);
  out.push_back(n);
  out.push_back(m);
  return out;
}

Tensor matmul(const Tensor& a, const Tensor& b) {
  if (has_sparse(a, b)) [[unlikely]]
    return sparse_matmul(a, b);
  check_strided("matmul", a);
  check_strided("matmul", b, "other");
  TERCEL_CHECK(a.dim() > 0 && b.dim() > 0, RuntimeError,
               "matmul: both arguments to matmul need to be at least 1D, but they are ", a.dim(), "D and ", b.dim(),
               "D");
  if (a.dim() == 1) {
    const Tensor out = matmul(unsqueeze(a, 0), b);
    return squeeze(out, b.dim() == 1 ? 0 : -2);
  }
  if (b.dim() == 1) return squeeze(matmul(a, unsqueeze(b, 1)), -1);
  if (a.dim() == 2 && b.dim() == 2) return mm(a, b);
  // A matrix on the right needs no batches.
  if (b.dim() == 2) {
    DimVector sizes(a.sizes());
    sizes.back() = b.size(1);
    return view(mm(as_matrix(a), b), sizes);
  }
  const CommonBatch batch(a, b);
  if (a.dim() == 2 && a.size(1) == b.size(-2)) {
    // Matrices of one column are treated as the rows of one matrix.
    if (b.size(-1) == 1) return view(mm(as_matrix(squeeze(b, -1)), t(a)), batch.of_matrices(a.size(0), 1));
    const Tensor many = reshape(b, {numel_of(batch.sizes), b.size(-2), b.size(-1)});
    return view(shared_bmm(a, many), batch.of_matrices(a.size(0), b.size(-1)));
  }
  const auto joined = [&](const Tensor& x) { return reshape(x, {numel_of(batch.sizes), x.size(-2), x.size(-1)}); };
  return view(bmm(joined(batch.a), joined(batch.b)), batch.of_matrices(a.size(-2), b.size(-1)));
}

Tensor mv(const Tensor& input, const Tensor& vec) {
  if (has_sparse(input, vec)) [[unlikely]]
    return sparse_mv(input, vec);
  check_strided("mv", input);
  check_strided("mv", vec, "vec");
  TERCEL_CHECK(input.dim() == 2 && vec.dim() == 1, RuntimeError, "mv: vector + matrix @ vector expected, got 1, ",
               input.dim(), ", ", vec.dim());
  TERCEL_CHECK(input.size(1) == vec.size(0), RuntimeError, "mv: size mismatch, got input (", input.size(0), "), mat (",
               input.size(0), "x", input.size(1), "), vec (", vec.size(0), ")");
  return squeeze(mm(input, unsqueeze(vec, 1)), 1);
}

Tensor dot(const Tensor& input, const Tensor& tensor) {
  check_strided("dot", input);
  check_strided("dot", tensor, "tensor");
  TERCEL_CHECK(input.dim() == 1 && tensor.dim() == 1, RuntimeError, "dot: 1D tensors expected, but got ", input.dim(),
               "D and ", tensor.dim(), "D tensors");
  TERCEL_CHECK(input.dtype() == tensor.dtype(), RuntimeError,
               "dot : expected both vectors to have same dtype, but found ", scalar_type_word(input.dtype()), " and ",
               scalar_type_word(tensor.dtype()));
  TERCEL_CHECK(input.size(0) == tensor.size(0), RuntimeError, "dot: inconsistent tensor size, expected tensor ",
               input.sizes(), " and src ", tensor.sizes(), " to have the same number of elements, but got ",
               input.numel(), " and ", tensor.numel(), " elements respectively");
  if (!input.is_differentiable()) return to(sum(mul(input, tensor)), input.dtype());
  return reshape(mm(unsqueeze(input, 0), unsqueeze(tensor, 1)), IntSpan());
}

Tensor vdot(const Tensor& a, const Tensor& b) {
  check_strided("vdot", a);
  return dot(conj(a), b);
}

Tensor outer(const Tensor& input, const Tensor& vec2) {
  check_strided("outer", input);
  check_strided("outer", vec2, "vec2");
  TERCEL_CHECK(input.dim() == 1, RuntimeError, "outer: Expected 1-D argument self, but got ", input.dim(), "-D");
  TERCEL_CHECK(vec2.dim() == 1, RuntimeError, "outer: Expected 1-D argument vec2, but got ", vec2.dim(), "-D");
  return mul(unsqueeze(input, 1), vec2);
}

Tensor ger(const Tensor& input, const Tensor& vec2) { return outer(input, vec2); }

#define TERCEL_PRODUCT_OUT(name)                                                  \
  const Tensor& name##_out(const Tensor& out, const Tensor& a, const Tensor& b) { \
    check_out_apart(#name, {out}, {a, b});                                        \
    return put_out(#name, out, name(a, b));                                       \
  }
TERCEL_PRODUCT_OUT(mm)
TERCEL_PRODUCT_OUT(bmm)
TERCEL_PRODUCT_OUT(matmul)
TERCEL_PRODUCT_OUT(mv)
TERCEL_PRODUCT_OUT(dot)
TERCEL_PRODUCT_OUT(vdot)
TERCEL_PRODUCT_OUT(outer)
#undef TERCEL_PRODUCT_OUT

}  // namespace tercel
