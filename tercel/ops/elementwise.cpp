#include "tercel/ops/elementwise_impl.h"

#include "tercel/autograd/grad_mode.h"
#include "tercel/ops/copy.h"
#include "tercel/ops/sum_to_size.h"

namespace tercel {

void elementwise_converted(const Tensor& out, const ElementwiseRule& rule, const KernelTable<ElementwiseFn>& kernels,
                           int op, Span<OperandRef> inputs) {
  const NoGradGuard no_grad;
  copy_(out, elementwise(rule, kernels, op, inputs));
}

void check_out_variant(const char* op, const Tensor& out, Span<OperandRef> inputs) {
  check_defined(out, op, "out");
  bool wanted = out.requires_grad();
  for (const OperandRef& input : inputs) wanted |= input.tensor() && input.tensor()->requires_grad();
  TERCEL_CHECK(!wanted || !grad_enabled(), RuntimeError, op,
               ": functions with out=... arguments don't support automatic differentiation, but one of the arguments "
               "requires grad.");
  check_inplace(out, false);
}

Tensor gradient_for(const Tensor& g, IntSpan sizes, ScalarType dtype) { return to(sum_to_size(g, sizes), dtype); }

SavedTensor save_before_change(const Tensor& x) {
  Tensor copy;
  {
    const NoGradGuard guard;
    copy = clone(x);
  }
  // It stands for what x is now, so it has x's history.
  if (Edge edge = gradient_edge(x); edge.defined()) detail::set_history(copy, std::move(edge.node), edge.output_nr);
  return SavedTensor(copy);
}

}  // namespace tercel
