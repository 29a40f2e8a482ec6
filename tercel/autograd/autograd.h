// Gradients for users: backward, grad, hooks.
#pragma once

#include <vector>

#include "tercel/autograd/grad_mode.h"
#include "tercel/autograd/gradient.h"
#include "tercel/autograd/node.h"

namespace tercel {

/**
 * Adds to the gradient of every leaf that the outputs depend on. A scalar output's own gradient is 1 when `gradients`
 * is empty or undefined there. Unless the graph is retained, what ops saved is freed. Threads may run backward at the
 * same time, also into the same leaves.
 */
TERCEL_API void backward(Span<Tensor> outputs, Span<Tensor> gradients = {}, bool retain_graph = false);

/**
 * Gradients of the outputs with respect to the inputs, leaving every .grad alone; undefined where an input is not part
 * of the graph.
 */
TERCEL_API std::vector<Gradient> grad(Span<Tensor> outputs, Span<Tensor> inputs, Span<Tensor> gradients = {},
                                      bool retain_graph = false);

/** The gradient that backward left in a leaf, dense or of rows; undefined before. */
TERCEL_API Gradient gradient_of(const Tensor& leaf);
TERCEL_API void set_gradient(const Tensor& leaf, Gradient gradient);
/** Forgets the gradient. */
TERCEL_API void clear_gradient(const Tensor& leaf);

namespace detail {
TERCEL_API void add_hook(const Tensor& t, GradientHookPtr hook);
}

/**
 * Calls hook(gradient) -> Tensor whenever backward has computed the tensor's gradient; a defined result takes its
 * place. ValueError for a tensor that needs no gradient.
 */
template <class F>
void register_hook(const Tensor& t, F hook) {
  struct Hook final : GradientHook {
    F function;
    explicit Hook(F f) : function(std::move(f)) {}
    Tensor call(const Tensor& gradient) override { return function(gradient); }
  };
  detail::add_hook(t, std::make_unique<Hook>(std::move(hook)));
}
/** Makes backward leave the gradient of an intermediate result in its .grad. */
TERCEL_API void retain_grad(const Tensor& t);

}  // namespace tercel
