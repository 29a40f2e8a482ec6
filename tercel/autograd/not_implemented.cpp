#include "tercel/autograd/not_implemented.h"

namespace tercel {

void record_not_implemented(const char* node, Span<Tensor> outs, InputRefs inputs, const char* op) {
  bool records = false;
  for (const InputRef& input : inputs) records |= should_record(*input);
  if (!records) return;
  record_outputs(node, outs, inputs, [op](BackwardCall&) {
    throw_error<NotImplementedError>({"the derivative for '", op, "' is not implemented."});
  });
}

void check_without_gradient(const char* op, const Tensor& t, const char* argument) {
  TERCEL_CHECK(!t.defined() || !should_record(t), RuntimeError, "The function '", op,
               "' is not differentiable with respect to argument '", argument,
               "'. This input cannot have requires_grad True.");
}

}  // namespace tercel
