// Recording ops in the graph.
//
// An op that has just computed `out` from inputs records itself like this:
//
//   if (should_record(a, b))
//     record("MulBackward0", out, {a, b},
//            [a = SavedTensor::when(b.requires_grad(), a), b = SavedTensor::when(a.requires_grad(), b)](BackwardCall&
//            call) {
//              if (call.needs(0)) call.set(0, mul(call.grad(), b.get()));
//              if (call.needs(1)) call.set(1, mul(call.grad(), a.get()));
//            });
//
// An in-place op calls check_inplace(x) before it writes, and record_inplace() after, with x among the inputs.
// A view op calls make_view() in place of record().
#pragma once

#include <initializer_list>
#include <utility>

#include "tercel/autograd/autograd_meta.h"
#include "tercel/autograd/grad_mode.h"
#include "tercel/autograd/node.h"
#include "tercel/autograd/saved_tensor.h"

namespace tercel {

/** An input of a recorded op; refers to the caller's tensor during the call. */
class InputRef {
 public:
  InputRef(const Tensor& tensor) : tensor_(&tensor) {}
  const Tensor& operator*() const { return *tensor_; }

 private:
  const Tensor* tensor_;
};
using InputRefs = std::initializer_list<InputRef>;

namespace detail {
/** Sets the node's edges to the inputs; call before out's history changes. */
TERCEL_API void connect_inputs(Node& node, InputRefs inputs);
TERCEL_API void connect_inputs(Node& node, Span<Tensor> inputs);
TERCEL_API void set_history(const Tensor& out, intrusive_ptr<Node> node, uint32_t output_nr);
TERCEL_API void rebase_history(const Tensor& changed, intrusive_ptr<Node> node);
// Record a node prepared by connect_inputs(), for one result, several results, an in-place change; tangents first.
TERCEL_API void record_result(const Tensor& out, intrusive_ptr<Node> node);
TERCEL_API void record_results(Span<Tensor> outs, const intrusive_ptr<Node>& node);
TERCEL_API void record_change(const Tensor& changed, intrusive_ptr<Node> node);
TERCEL_API void init_view(const Tensor& view, const Tensor& base, ViewOrigin origin);

template <class Inputs, class F>
intrusive_ptr<Node> make_node(const char* name, uint32_t outputs, const Inputs& inputs, F&& backward) {
  auto node = make_intrusive<FunctionNode<std::decay_t<F>>>(name, outputs, inputs.size(), std::forward<F>(backward));
  connect_inputs(*node, inputs);
  return node;
}
}  // namespace detail

/** Makes `out` the result of an op with the given inputs and backward. */
template <class F>
void record(const char* name, const Tensor& out, InputRefs inputs, F backward) {
  detail::record_result(out, detail::make_node(name, 1, inputs, std::move(backward)));
}
/** The same for any number of inputs. */
template <class F>
void record_list(const char* name, const Tensor& out, Span<Tensor> inputs, F backward) {
  detail::record_result(out, detail::make_node(name, 1, inputs, std::move(backward)));
}
/** The same for several outputs; backward gets the gradient of output i as grad(i). Integer outputs are skipped. */
template <class F>
void record_outputs(const char* name, Span<Tensor> outs, InputRefs inputs, F backward) {
  detail::record_results(outs,
                         detail::make_node(name, static_cast<uint32_t>(outs.size()), inputs, std::move(backward)));
}

namespace detail {
/** Gives the computed gradients a history that throws when it is differentiated. */
TERCEL_API void forbid_second_derivative(BackwardCall& call);
/** NotImplementedError if an incoming gradient carries a tangent. */
TERCEL_API void check_no_tangents(const BackwardCall& call);
/** Whether the tensor has such a history. */
bool is_derivative_forbidden(const Tensor& gradient);
}  // namespace detail

/**
 * A backward function that is not differentiable: it runs with gradients off, and differentiating its results is a
 * RuntimeError.
 */
template <class F>
class OnceDifferentiable {
 public:
  explicit OnceDifferentiable(F backward) : backward_(std::move(backward)) {}

  void operator()(BackwardCall& call) {
    detail::check_no_tangents(call);
    if (!grad_enabled()) return backward_(call);
    {
      const NoGradGuard no_grad;
      backward_(call);
    }
    detail::forbid_second_derivative(call);
  }

 private:
  F backward_;
};
/** Wraps a backward function so that differentiating its results is an error. */
template <class F>
OnceDifferentiable<F> once_differentiable(F backward) {
  return OnceDifferentiable<F>(std::move(backward));
}

/** Throws if an in-place change would make gradients wrong (a leaf, a view of one, a view made without gradients). */
TERCEL_API void check_inplace(const Tensor& changed, bool records);

/** Records the changed tensor, and its base, as results of an op on their old values; `inputs` contains it too. */
template <class F>
void record_inplace(const char* name, const Tensor& changed, InputRefs inputs, F backward) {
  detail::record_change(changed, detail::make_node(name, 1, inputs, std::move(backward)));
}

/**
 * Makes `view`, a new tensor over x's storage, a view of x. make_backward() returns the function that computes x's
 * gradient; it is called only if the view is recorded. A view of an inference tensor is an inference tensor.
 */
template <class MakeBackward>
void make_view(const char* name, const Tensor& view, const Tensor& x, MakeBackward make_backward,
               ViewOrigin origin = ViewOrigin::Ordinary) {
  detail::init_view(view, x, origin);
  if (grad_enabled() && x.requires_grad() && !x.impl().is_inference()) record(name, view, {x}, make_backward());
}

/** The same for several views of x returned by one op. */
template <class MakeBackward>
void make_views(const char* name, Span<Tensor> views, const Tensor& x, MakeBackward make_backward) {
  for (const Tensor& view : views) detail::init_view(view, x, ViewOrigin::MultiOutput);
  if (grad_enabled() && x.requires_grad() && !x.impl().is_inference())
    record_outputs(name, views, {x}, make_backward());
}

}  // namespace tercel
