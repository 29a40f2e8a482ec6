// amp.autocast: ops choose the dtype of their floating-point operands.
//
// Note [Autocast]
// The policy of an op inside the context is a column of the table of ops (Note [Columns of autocast]), from which
// tools/make_ops.py writes autocast_ops.inc. Op::call casts the matched arguments of such an op, also those in lists;
// autograd records the casts, so that gradients have the dtypes of the original tensors. float64 and other dtypes are
// not cast, nor are the arguments of calls with an `out`. The state is thread-local, and no thread inherits it.
//
// A leaf that requires a gradient, usually a parameter, is cast to 16 bits once inside the outermost context: its cast
// is cached until that context exits, so that all uses share one copy and one node. A cached cast is discarded when the
// leaf changes in place, and casts that are not recorded are not cached.
#pragma once

#include <string_view>
#include <vector>

#include "python/src/signature.h"
#include "tercel/core/tensor.h"

namespace tercel::python {

/** How floating-point operands are cast inside the context: Note [Columns of autocast] in tercel/core/op.h. */
enum class AutocastPolicy : uint8_t { None, Lower, Float32, Widest, First };

/** The policy of an op by its name in Python, with or without a leading underscore. */
AutocastPolicy autocast_policy(std::string_view name);
/** RuntimeError if the table of ops has a policy for a name that was never passed to autocast_policy(). */
void check_autocast_policies();

/** Whether this thread is inside a context for the CPU. One byte of static TLS, as detail::t_recorded. */
extern constinit thread_local bool t_autocast [[gnu::tls_model("initial-exec")]];

/** The tensor as an op with the policy Lower takes it; this thread is inside a context. */
Tensor autocast_lower(const Tensor& x);
/** The result, rounded to the context's dtype inside a context, of an op that has no `out` and in PyTorch lowers only
 * the products inside of it. */
Tensor autocast_result(const Tensor& x, const Tensor& out = {});
/** matrix_power() with such a result; the inverse of 16-bit matrices is that of float32. */
Tensor autocast_matrix_power(const Tensor& a, int64_t n, const Tensor& out);
/** The tensor in float32, if it is of 16 bits and this thread is inside a context; for ops with a policy by mode. */
Tensor autocast_float32(const Tensor& x);

/** Replaces arguments by their casts, and keeps these alive for the length of a call. */
class AutocastArguments {
 public:
  AutocastArguments(AutocastPolicy policy, const Signature& signature, Arguments& arguments);

 private:
  std::vector<nb::object> held_;
};

void register_autocast(nb::module_& m);

}  // namespace tercel::python
