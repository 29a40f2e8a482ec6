#include <cmath>

#include "tercel/autograd/grad_mode.h"
#include "tercel/core/dtype_words.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/common/operand_checks_impl.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/complex.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/linalg/linalg.h"
#include "tercel/ops/linalg/linalg_impl.h"
#include "tercel/ops/reduce/reduce.h"

namespace tercel {

LinAlgError::~LinAlgError() = default;

namespace linalg {

void check_matrices(const char* op, const Tensor& a, const char* name) {
  check_strided(op, a, name);
  check_on_cpu(op, a);
  TERCEL_CHECK(a.dim() >= 2, RuntimeError, op, ": The input tensor ", name, " must have at least 2 dimensions.");
  TERCEL_CHECK(a.is_differentiable(), NotImplementedError, op,
               ": Expected a floating point or complex tensor as input. Got ", scalar_type_word(a.dtype()));
  TERCEL_CHECK(real_dtype(a.dtype()) == kFloat32 || real_dtype(a.dtype()) == kFloat64, NotImplementedError, op,
               ": Low precision dtypes not supported. Got ", scalar_type_word(a.dtype()));
}

void check_square(const char* op, const Tensor& a, const char* name) {
  check_matrices(op, a, name);
  TERCEL_CHECK(a.size(-1) == a.size(-2), RuntimeError, op, ": ", name,
               " must be batches of square matrices, but they are ", a.size(-2), " by ", a.size(-1), " matrices");
}

Tensor empty_columns(IntSpan sizes, TensorOptions options) {
  DimVector swapped(sizes);
  std::swap(swapped[swapped.size() - 1], swapped[swapped.size() - 2]);
  return transpose(empty(swapped, options), -2, -1);
}

Tensor copy_columns(const Tensor& a) {
  const NoRecordGuard no_record;
  return transpose(clone(transpose(a, -2, -1), MemoryFormat::Contiguous), -2, -1);
}

std::string batch_element(const Tensor& info, int64_t i) {
  return info.dim() == 0 ? std::string() : str_cat({"(Batch element ", i, "): "});
}

void refuse_matrix(const char* op, const Tensor& info, int64_t i, const std::string& sentence) {
  throw_error<LinAlgError>({op, ": ", batch_element(info, i), sentence});
}

void check_finite(const char* op, const Tensor& a, const char* sentence) {
  const NoRecordGuard no_record;
  const Tensor finite = contiguous(to(all(isfinite(a), {-2, -1}), kBool));
  const auto* values = static_cast<const bool*>(finite.data_ptr());
  for (int64_t i = 0; i < finite.numel(); ++i)
    if (!values[i]) refuse_matrix(op, finite, i, sentence);
}

Tensor differences(const Tensor& d) {
  return add(sub(unsqueeze(d, -2), unsqueeze(d, -1)), eye(d.size(-1), -1, d.options()));
}

void check_phase(const char* backward, const char* vectors, const Tensor& phases, const char* verdict) {
  if (!phases.is_complex()) return;
  // A loose tolerance: rejecting a valid loss is worse than accepting one that depends slightly on the phase.
  constexpr double kTolerance = 1e-2;
  const NoRecordGuard no_record;
  constexpr const char* kCase =
      " in the complex case are specified up to multiplication by e^{i phi}. The specified loss function depends on "
      "this ";
  TERCEL_CHECK(item(all(le(abs(imag(phases)), kTolerance))).to_bool(), RuntimeError, backward, ": The ", vectors, kCase,
               verdict);
}

bool is_vector_case(const Tensor& a, const Tensor& b) {
  return b.dim() == 1 || (a.dim() - 1 == b.dim() && b.sizes() == a.sizes().subspan(0, a.sizes().size() - 1));
}

void check_right_side(const char* op, const Tensor& a, const Tensor& b, bool left) {
  TERCEL_CHECK(a.dtype() == b.dtype(), RuntimeError, op,
               ": Expected A and B to have the same dtype, but found A of type ", scalar_type_word(a.dtype()),
               " and B of type ", scalar_type_word(b.dtype()), " instead");
  TERCEL_CHECK(a.size(left ? -2 : -1) == b.size(left ? -2 : -1), RuntimeError, op,
               ": Incompatible shapes of A and B for the equation ", left ? "AX = B" : "XA = B", " (", a.size(-2), "x",
               a.size(-1), " and ", b.size(-2), "x", b.size(-1), ")");
}

void broadcast_batches(Tensor& a, Tensor& b) {
  const DimVector batch = broadcast_sizes(batch_sizes(a), batch_sizes(b));
  for (Tensor* x : {&a, &b}) {
    DimVector sizes(batch);
    sizes.push_back(x->size(-2));
    sizes.push_back(x->size(-1));
    *x = expand(*x, sizes);
  }
}

}  // namespace linalg

}  // namespace tercel
