"""Gradients: backward, grad, custom functions, and the contexts that enable or disable recording."""

import warnings

from tercel import _C
from tercel._C import Tensor
from tercel.autograd import forward_ad, graph
from tercel.autograd.anomaly_mode import detect_anomaly, set_detect_anomaly
from tercel.autograd.function import Function
from tercel.autograd.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled
from tercel.autograd.variable import Variable as Variable

SavedTensor = _C._autograd.SavedTensor

__all__ = ["backward", "grad", "enable_grad", "inference_mode", "no_grad", "set_grad_enabled", "Function",
           "detect_anomaly", "set_detect_anomaly", "gradcheck", "gradgradcheck", "functional", "graph", "forward_ad"]


def __getattr__(name):
    if name == "profiler":  # imported on first use: few programs need them
        from importlib import import_module
        return import_module("tercel.autograd.profiler")
    raise AttributeError(f"module 'tercel.autograd' has no attribute '{name}'")


def _as_tuple(tensors):
    if isinstance(tensors, (Tensor, graph.GradientEdge)):
        return (tensors,)
    return tuple(tensors)


def _matching(gradient, out, i):
    """A given gradient, converted to the output's dtype."""
    if not isinstance(gradient, Tensor):
        raise TypeError(f"gradients can be either Tensors or None, but got {type(gradient).__name__}")
    if gradient.shape != out.shape:
        raise RuntimeError(f"Mismatch in shape: grad_output[{i}] has a shape of {gradient.shape} and output[{i}] has a "
                           f"shape of {out.shape}.")
    if gradient.is_complex() != out.is_complex():
        raise RuntimeError("For complex Tensors, both grad_output and output are required to have the same dtype. "
                           f"Mismatch in dtype: grad_output[{i}] has a dtype of {gradient.dtype} and output[{i}] has a "
                           f"dtype of {out.dtype}.")
    return gradient if gradient.dtype is out.dtype else gradient.to(out.dtype)


def _gradients(outputs, given):
    """A gradient for each output: the given one, or 1 for a scalar."""
    given = (None,) * len(outputs) if given is None else _as_tuple(given)
    if len(given) != len(outputs):
        raise RuntimeError(f"got {len(outputs)} tensors and {len(given)} gradients")
    made = []
    for i, (out, gradient) in enumerate(zip(outputs, given)):
        if gradient is not None:
            gradient = _matching(gradient, out, i)
        elif out.requires_grad:
            if out.numel() != 1:
                raise RuntimeError("grad can be implicitly created only for scalar outputs")
            gradient = _C.ones_like(out)
        made.append(gradient)
    return tuple(made)


def _retained(retain_graph, create_graph):
    return bool(create_graph) if retain_graph is None else bool(retain_graph)


def backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False, grad_variables=None, inputs=None):
    """Accumulates gradients of the tensors into the .grad of the leaves that they depend on, or of `inputs` only."""
    if grad_variables is not None:
        warnings.warn("'grad_variables' is deprecated. Use 'grad_tensors' instead.", FutureWarning, stacklevel=2)
        if grad_tensors is not None:
            raise RuntimeError("'grad_tensors' and 'grad_variables' (deprecated) arguments both passed to backward(). "
                               "Please only use 'grad_tensors'.")
        grad_tensors = grad_variables
    if inputs is not None and not (inputs := _as_tuple(inputs)):
        raise RuntimeError("'inputs' argument to backward() cannot be empty.")
    tensors = _as_tuple(tensors)
    if create_graph:
        warnings.warn("Using backward() with create_graph=True will create a reference cycle between the parameter and "
                      "its gradient which can cause a memory leak. We recommend using autograd.grad when creating the "
                      "graph to avoid this. If you have to use this function, make sure to reset the .grad fields of "
                      "your parameters to None after use to break the cycle and avoid the leak.", stacklevel=3)
    _C._run_backward(tensors, _gradients(tensors, grad_tensors), _retained(retain_graph, create_graph),
                     bool(create_graph), inputs or ())


def _at_edge(place, gradient, is_output):
    """The tensor itself, or a tensor that represents a graph edge."""
    if not isinstance(place, graph.GradientEdge):
        return place
    if is_output and gradient is None:
        raise RuntimeError("grad can be implicitly created only for tensors: a GradientEdge needs its gradient")
    leaf = getattr(place.node, "variable", None)
    if leaf is not None:
        return leaf
    return _C._tensor_at_edge(place.node, place.output_nr, _C.empty(0) if gradient is None else gradient)


def grad(outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, only_inputs=True,
         allow_unused=None, is_grads_batched=False, materialize_grads=False):
    """Gradients of the outputs with respect to the inputs; no .grad changes. Both may be graph.GradientEdges too."""
    if materialize_grads and allow_unused is False:
        raise ValueError("Expected allow_unused to be True or not passed when materialize_grads=True, but got: "
                         "allow_unused=False.")
    outputs, inputs = _as_tuple(outputs), _as_tuple(inputs)
    if any(isinstance(place, graph.GradientEdge) for place in (*outputs, *inputs)):
        if materialize_grads and any(isinstance(place, graph.GradientEdge) for place in inputs):
            raise RuntimeError("materialize_grads cannot be used when the given input is a GradientEdge")
        given = (None,) * len(outputs) if grad_outputs is None else _as_tuple(grad_outputs)
        outputs = tuple(_at_edge(place, gradient, True) for place, gradient in zip(outputs, given))
        inputs = tuple(_at_edge(place, None, False) for place in inputs)
    if not only_inputs:
        warnings.warn("only_inputs argument is deprecated and is ignored now (defaults to True). To accumulate gradient "
                      "for other parts of the graph, please use autograd.backward().", FutureWarning, stacklevel=2)
    if is_grads_batched:
        return _batched_grad(outputs, inputs, grad_outputs, retain_graph, create_graph, allow_unused, materialize_grads)
    found = _C._run_grad(outputs, inputs, _gradients(outputs, grad_outputs), _retained(retain_graph, create_graph),
                         bool(create_graph), bool(allow_unused) or bool(materialize_grads))
    if materialize_grads:
        found = tuple(_C.zeros_like(x) if g is None else g for x, g in zip(inputs, found))
    return found


def _batched_grad(outputs, inputs, grad_outputs, retain_graph, create_graph, allow_unused, materialize_grads):
    """grad() for each of the gradients along the first dimension, the results stacked."""
    given = (None,) * len(outputs) if grad_outputs is None else _as_tuple(grad_outputs)
    sizes = {g.size(0) for g in given if g is not None and g.dim() > 0}
    if len(sizes) != 1:
        raise RuntimeError("If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch "
                           f"dimension: expected them to have one size, got {sorted(sizes)}")
    for i, (out, g) in enumerate(zip(outputs, given)):
        if g is not None and g.shape[1:] != out.shape:
            raise RuntimeError("If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the "
                               "batch dimension. The sizes of the remaining dimensions are expected to match the shape of "
                               f"corresponding output, but a mismatch was detected: grad_output[{i}] has a shape of "
                               f"{g.shape} and output[{i}] has a shape of {out.shape}.")
    rows = []
    (count,) = sizes
    for i in range(count):
        last = i + 1 == count
        rows.append(grad(outputs, inputs, [None if g is None else g[i] for g in given],
                         _retained(retain_graph, create_graph) or not last, create_graph,
                         allow_unused=allow_unused, materialize_grads=materialize_grads))
    return tuple(None if column[0] is None else _C.stack(column) for column in zip(*rows))


from tercel.autograd import functional  # noqa: E402,F401
from tercel.autograd.gradcheck import gradcheck, gradgradcheck  # noqa: E402,F401
