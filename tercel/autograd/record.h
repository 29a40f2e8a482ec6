// How an op enters the graph.
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

/** An input of a recorded op; refers to the caller's tensor for the length of the call. */
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
// The same for a node that connect_inputs() has prepared, of a result, of results, of a change: tangents first.
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
/** The same for several outputs; backward finds the gradient of output i as grad(i). Integer outputs stay outside. */
template <class F>
void record_outputs(const char* name, Span<Tensor> outs, InputRefs inputs, F backward) {
  detail::record_results(outs,
                         detail::make_node(name, static_cast<uint32_t>(outs.size()), inputs, std::move(backward)));
}

namespace detail {
/** Gives the gradients that a node has made a history that throws when it is differentiated. */
TERCEL_API void forbid_second_derivative(BackwardCall& call);
/** NotImplementedError where a gradient that the node is given carries a tangent. */
TERCEL_API void check_no_tangents(const BackwardCall& call);
/** Whether the tensor has such a history. */
bool is_derivative_forbidden(const Tensor& gradient);
}  // namespace detail

/**
 * A backward function that is no op of the graph: it runs with gradients off, and differentiating what it calculates is
 * a RuntimeError.
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
/** The backward function, as one whose results refuse to be differentiated. */
template <class F>
OnceDifferentiable<F> once_differentiable(F backward) {
  return OnceDifferentiable<F>(std::move(backward));
}

/** Refuses an in-place change that would falsify a gradient (a leaf, a view of one, a view made without gradients). */
TERCEL_API void check_inplace(const Tensor& changed, bool records);

/** Makes the changed tensor, and the base it views, the result of an op on what they were; `inputs` holds it too. */
template <class F>
void record_inplace(const char* name, const Tensor& changed, InputRefs inputs, F backward) {
  detail::record_change(changed, detail::make_node(name, 1, inputs, std::move(backward)));
}

/**
 * Makes `view`, a fresh tensor over x's storage, a view of x. make_backward() gives what turns its gradient into x's;
 * it is called only where that is recorded. A view of an inference tensor is another one.
 */
template <class MakeBackward>
void make_view(const char* name, const Tensor& view, const Tensor& x, MakeBackward make_backward,
               ViewOrigin origin = ViewOrigin::Ordinary) {
  detail::init_view(view, x, origin);
  if (grad_enabled() && x.requires_grad() && !x.impl().is_inference()) record(name, view, {x}, make_backward());
}

/** The same for several views of x that one op gives. */
template <class MakeBackward>
void make_views(const char* name, Span<Tensor> views, const Tensor& x, MakeBackward make_backward) {
  for (const Tensor& view : views) detail::init_view(view, x, ViewOrigin::MultiOutput);
  if (grad_enabled() && x.requires_grad() && !x.impl().is_inference())
    record_outputs(name, views, {x}, make_backward());
}

}  // namespace tercel
