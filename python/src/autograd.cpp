// Gradient modes and backward passes.
#include "python/src/autograd.h"

#include "python/src/op.h"
#include "tercel/autograd/autograd.h"
#include "tercel/autograd/autograd_meta.h"
#include "tercel/autograd/forward_mode.h"
#include "tercel/ops/common/copy.h"

namespace tercel::python {

namespace {

void run_backward(nb::handle tensors, nb::handle gradients, bool retain_graph, bool create_graph, nb::handle inputs) {
  const std::vector<Tensor> outputs = tensor_list(tensors), given = tensor_list(gradients), with = tensor_list(inputs);
  const WithoutGil scope(true);
  backward(outputs, given, retain_graph, create_graph, with);
}

nb::object run_grad(nb::handle outputs, nb::handle inputs, nb::handle gradients, bool retain_graph, bool create_graph,
                    bool allow_unused) {
  const std::vector<Tensor> of = tensor_list(outputs), with = tensor_list(inputs), given = tensor_list(gradients);
  std::vector<Tensor> result;
  {
    const WithoutGil scope(true);
    const std::vector<Gradient> found = grad(of, with, given, retain_graph, create_graph, allow_unused);
    for (size_t i = 0; i < found.size(); ++i) result.push_back(to_coo(found[i], with[i].sizes()).values);
  }
  return own(wrap_tuple(result));
}

}  // namespace

void register_autograd(nb::module_& m) {
  register_node(m);
  register_function(m);
  register_saved(m);
  register_saved_tensor(m);
  m.def(
      "is_grad_enabled", [] { return grad_enabled(); }, "Whether operations are recorded on this thread.");
  m.def("_set_grad_enabled", [](bool enabled) { tercel::set_grad_enabled(enabled); });
  m.def(
      "is_inference_mode_enabled", [] { return is_inference_mode_enabled(); },
      "Whether this thread is in inference mode.");
  m.def("_set_inference_mode", [](bool enabled) {
    tercel::detail::t_inference_mode = enabled;
    tercel::detail::set_recorded(TensorImpl::kTangent, !enabled && current_dual_level() >= 0);
  });
  m.def("_enter_dual_level", enter_dual_level);
  m.def("_exit_dual_level", exit_dual_level);
  m.def("_current_dual_level", current_dual_level);
  m.def("_make_dual", [](nb::handle primal, nb::handle tangent) {
    for (const nb::handle t : {primal, tangent})
      TERCEL_CHECK(is_tensor(t.ptr()), TypeError, "make_dual(): expected a Tensor, not ", Py_TYPE(t.ptr())->tp_name);
    return own(wrap(make_dual(tensor_of(primal.ptr()), tensor_of(tangent.ptr()))));
  });
  m.def("_unpack_dual", [](nb::handle tensor) {
    TERCEL_CHECK(is_tensor(tensor.ptr()), TypeError, "unpack_dual(): expected a Tensor, not ",
                 Py_TYPE(tensor.ptr())->tp_name);
    const auto [primal, tangent] = unpack_dual(tensor_of(tensor.ptr()));
    return nb::make_tuple(own(wrap(primal)), tangent.defined() ? own(wrap(tangent)) : nb::object(nb::none()));
  });
  m.def("_is_fwd_grad_enabled", forward_mode_enabled);
  m.def("_set_fwd_grad_enabled",
        [](bool enabled) { tercel::detail::set_recorded(TensorImpl::kTangent, enabled && current_dual_level() >= 0); });
  m.def("_run_backward", run_backward);
  m.def("_run_grad", run_grad);
}

Span<Entry> autograd_ops() {
  static const Entry table[] = {
      entry(
          "requires_grad_(Tensor input, bool requires_grad=True)",
          [](const Tensor& x, bool wanted) -> Tensor {
            TERCEL_CHECK(!wanted || x.is_differentiable(), RuntimeError,
                         "only Tensors of floating point dtype can require gradients, not ", to_string(x.dtype()));
            return Tensor(x).requires_grad_(wanted);
          },
          kMethod | kCheap | kAnyLayout, "Sets whether operations on the tensor are recorded, in place."),
      entry(
          "is_inference(Tensor input)", [](const Tensor& x) { return x.impl().is_inference(); }, kBoth | kCheap | kCoo,
          "Whether the tensor was created in inference mode."),
      entry(
          "detach(Tensor input)", [](const Tensor& x) { return x.detach(); }, kBoth | kCheap | kAnyLayout,
          "The same data without history."),
      entry(
          "detach_(Tensor input)", [](const Tensor& x) -> Tensor { return detach_(x); }, kBoth | kCheap | kCoo,
          "Detaches the tensor from its graph, in place."),
      entry(
          "retain_grad(Tensor input)", [](const Tensor& x) { retain_grad(x); }, kMethod | kCheap | kCoo,
          "Makes backward keep the gradient of an intermediate result."),
  };
  return table;
}

}  // namespace tercel::python
