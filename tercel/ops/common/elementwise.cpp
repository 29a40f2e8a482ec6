#include "tercel/ops/common/elementwise_impl.h"

#include "tercel/autograd/forward_mode.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/common/out.h"
#include "tercel/ops/common/sum_to_size.h"

namespace tercel {

void elementwise_converted(const Tensor& out, const ElementwiseRule& rule, const KernelTable<ElementwiseFn>& kernels,
                           int op, Span<OperandRef> inputs) {
  const NoRecordGuard no_record;
  copy_(out, elementwise(rule, kernels, op, inputs));
}

bool takes_result(const char* op, const Tensor& out, Span<OperandRef> inputs) {
  check_strided(op, out, "out");
  bool is_input = false;
  DimVector sizes;
  for (const OperandRef& input : inputs) {
    const Tensor* t = input.tensor();
    if (!t) continue;
    check_strided(op, *t, "input");
    is_input |= out.is_same(*t);
    sizes = sizes.empty() ? DimVector(t->sizes()) : broadcast_sizes(sizes, t->sizes());
  }
  for (const OperandRef& input : inputs)
    if (input.tensor()) check_out_gradients(op, *input.tensor());
  check_out_gradients(op, out);
  if (out.sizes() != IntSpan(sizes)) {
    TERCEL_CHECK(!is_input, RuntimeError, "output with shape ", out.sizes(), " doesn't match the broadcast shape ",
                 IntSpan(sizes));
    return false;
  }
  check_inplace(out, false);
  return true;
}

Tensor gradient_for(const TensorMeta& operand, const Tensor& g) {
  return to(sum_to_size(g, operand.sizes), operand.dtype());
}

SavedTensor save_before_change(const Tensor& x) {
  Tensor copy;
  {
    const NoRecordGuard guard;
    copy = clone(x);
  }
  // It represents x's current value, so it gets x's history.
  if (Edge edge = gradient_edge(x); edge.defined()) detail::set_history(copy, std::move(edge.node), edge.output_nr);
  if (const Tensor tangent = detail::tangent_of(x); tangent.defined()) detail::set_tangent(copy, tangent);
  return SavedTensor(copy);
}

}  // namespace tercel
