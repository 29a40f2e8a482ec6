// Gradients for users: backward, grad, hooks.
#pragma once

#include <optional>
#include <vector>

#include "tercel/autograd/grad_mode.h"
#include "tercel/autograd/gradient.h"
#include "tercel/autograd/node.h"
#include "tercel/autograd/saved_tensor.h"

namespace tercel {

/**
 * Adds to the gradient of every leaf that the outputs depend on, or only of the given inputs. A scalar output's own
 * gradient is 1 when `gradients` is empty or undefined there. Unless retain_graph (default: create_graph), tensors
 * saved by ops are freed. With create_graph, the gradients have a history themselves and can be differentiated again.
 * Threads may run backward concurrently, also into the same leaves.
 */
TERCEL_API void backward(Span<Tensor> outputs, Span<Tensor> gradients = {},
                         std::optional<bool> retain_graph = std::nullopt, bool create_graph = false,
                         Span<Tensor> inputs = {});

/**
 * Gradients of the outputs with respect to the inputs; no .grad changes. For an input that is not part of the graph:
 * RuntimeError, or undefined with allow_unused, or zeros with materialize_grads (which implies allow_unused).
 */
TERCEL_API std::vector<Gradient> grad(Span<Tensor> outputs, Span<Tensor> inputs, Span<Tensor> gradients = {},
                                      std::optional<bool> retain_graph = std::nullopt, bool create_graph = false,
                                      std::optional<bool> allow_unused = std::nullopt, bool materialize_grads = false);

/** The gradient that backward accumulated in a leaf, dense or of rows; undefined before. */
TERCEL_API Gradient gradient_of(const Tensor& leaf);
TERCEL_API void set_gradient(const Tensor& leaf, Gradient gradient);
/** Removes the gradient. */
TERCEL_API void clear_gradient(const Tensor& leaf);

/**
 * Calls hook(gradient) whenever backward has computed the tensor's gradient; a defined result replaces it. See Note
 * [Order of hooks]. RuntimeError for a tensor that requires no gradient.
 */
TERCEL_API HookHandle register_hook(const Tensor& t, TensorHook hook);
/** Calls hook(leaf) whenever backward has added to the leaf's .grad. RuntimeError unless it is a leaf. */
TERCEL_API HookHandle register_post_accumulate_grad_hook(const Tensor& leaf, LeafHook hook);
/** Makes backward store an intermediate result's gradient in its .grad; repeated calls have no effect. */
TERCEL_API void retain_grad(const Tensor& t);
/** Whether retain_grad() was called on an intermediate result. */
TERCEL_API bool retains_grad(const Tensor& t);

/** Index of the tensor among the outputs of grad_fn(t); 0 for a leaf. */
TERCEL_API uint32_t output_nr(const Tensor& t);
/** Makes the tensor a leaf that requires no gradient. RuntimeError for a view. */
TERCEL_API const Tensor& detach_(const Tensor& t);
/**
 * Gives the tensor the data, sizes and strides of another one of its dtype, and keeps its own history, gradient and
 * version: backward does not notice the change. RuntimeError for another dtype or device.
 */
TERCEL_API void set_data(const Tensor& t, const Tensor& data);

}  // namespace tercel
