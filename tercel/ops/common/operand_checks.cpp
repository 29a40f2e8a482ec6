#include "tercel/core/dtype_words.h"
#include "tercel/ops/common/operand_checks_impl.h"

namespace tercel {

void check_same_dtype(const char* op, const Tensor& a, const Tensor& b) {
  TERCEL_CHECK(a.dtype() == b.dtype(), RuntimeError, op, ": expected scalar type ", scalar_type_word(a.dtype()),
               " but found ", scalar_type_word(b.dtype()));
}

void check_on_cpu(const char* op, const Tensor& x) {
  TERCEL_CHECK(x.device().is_cpu(), NotImplementedError, op, ": not implemented for device ", to_string(x.device()));
  check_strided(op, x);
}

void check_index_dtype(const char* op, const Tensor& index, const char* name) {
  check_strided(op, index, name);
  TERCEL_CHECK(index.dtype() == kInt64 || index.dtype() == kInt32, RuntimeError, op,
               "(): Expected dtype int32/int64 for ", name, " but got: ", scalar_type_word(index.dtype()));
}

void check_channels(const char* op, const Tensor& t, const char* name, int64_t channels) {
  TERCEL_CHECK(!t.defined() || (t.dim() == 1 && t.numel() == channels), RuntimeError, "Expected ", name,
               " to be a vector of size equal to the number of channels in input, but got ", name, " of shape ",
               t.sizes(), " and input with ", channels, " channels (", op, ")");
}

void check_floating_point(const char* op, const Tensor& x, const char* name) {
  check_strided(op, x, name);
  if (!x.is_floating_point()) refuse_dtype(str_cat({op, "_cpu"}), x.dtype());
}

void check_real(const char* op, const Tensor& x, const char* name) {
  check_strided(op, x, name);
  if (x.is_complex()) refuse_dtype(str_cat({op, "_cpu"}), x.dtype());
}

}  // namespace tercel
