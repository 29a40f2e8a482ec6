#include "tercel/core/dtype_words.h"
#include "tercel/ops/common/assign_inplace_impl.h"

namespace tercel {

const Tensor& assign_inplace(const char* op, const Tensor& x, const Tensor& result) {
  check_strided(op, x, "out");
  TERCEL_CHECK(x.sizes() == result.sizes(), RuntimeError, op, ": Bad in-place call: input tensor size ", x.sizes(),
               " and output tensor size ", result.sizes(), " should match");
  TERCEL_CHECK(can_cast(result.dtype(), x.dtype()), RuntimeError, op, ": result type ",
               scalar_type_word(result.dtype()), " can't be cast to the desired output type ",
               scalar_type_word(x.dtype()));
  return copy_(x, result);
}

}  // namespace tercel
