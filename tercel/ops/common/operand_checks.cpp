#include "tercel/core/dtype_words.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/common/operand_checks_impl.h"

namespace tercel {

namespace {

void check_target(const char* op, const Tensor& target, const Tensor& result) {
  check_strided(op, target, "out");
  TERCEL_CHECK(target.sizes() == result.sizes(), RuntimeError, op, ": output with shape ", target.sizes(),
               " doesn't match the broadcast shape ", result.sizes());
  TERCEL_CHECK(can_cast(result.dtype(), target.dtype()), RuntimeError, op, ": result type ",
               scalar_type_word(result.dtype()), " can't be cast to the desired output type ",
               scalar_type_word(target.dtype()));
}

}  // namespace

void check_same_dtype(const char* op, const Tensor& a, const Tensor& b) {
  TERCEL_CHECK(a.dtype() == b.dtype(), RuntimeError, op, ": expected scalar type ", scalar_type_word(a.dtype()),
               " but found ", scalar_type_word(b.dtype()));
}

void check_on_cpu(const char* op, const Tensor& x) {
  TERCEL_CHECK(x.device().is_cpu(), NotImplementedError, op, ": not implemented for device ", to_string(x.device()));
  check_strided(op, x);
}

void check_floating_point(const char* op, const Tensor& x, const char* name) {
  check_strided(op, x, name);
  if (!x.is_floating_point()) refuse_dtype(str_cat({op, "_cpu"}), x.dtype());
}

void check_real(const char* op, const Tensor& x, const char* name) {
  check_strided(op, x, name);
  if (x.is_complex()) refuse_dtype(str_cat({op, "_cpu"}), x.dtype());
}

const Tensor& assign_inplace(const char* op, const Tensor& x, const Tensor& result) {
  TERCEL_CHECK(x.sizes() == result.sizes(), RuntimeError, op, ": Bad in-place call: input tensor size ", x.sizes(),
               " and output tensor size ", result.sizes(), " should match");
  check_target(op, x, result);
  return copy_(x, result);
}

}  // namespace tercel
