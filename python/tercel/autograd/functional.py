"""Jacobians and Hessians of functions of tensors, and products with them."""

from tercel import _C
from tercel._C import Tensor
from tercel.autograd import grad as _grad
from tercel.autograd.grad_mode import enable_grad as _enable_grad

__all__ = ["vjp", "jvp", "jacobian", "hessian", "hvp", "vhp"]


def _tuple_of(values, what, function):
    """(whether the argument was a tuple, the tensors); TypeError for anything else."""
    if isinstance(values, Tensor):
        return False, (values,)
    several = isinstance(values, tuple)
    for i, value in enumerate(values if several else (values,)):
        if isinstance(value, Tensor):
            continue
        if several:
            raise TypeError(f"The {what} given to {function} must be either a Tensor or a tuple of Tensors but the value "
                            f"at index {i} has type {type(value)}.")
        raise TypeError(f"The {what} given to {function} must be either a Tensor or a tuple of Tensors but the given "
                        f"{what} has type {type(value)}.")
    return several, values


def _outputs_of(func, inputs, function):
    """The same for the outputs of func(*inputs)."""
    values = func(*inputs)
    several = isinstance(values, tuple)
    for i, value in enumerate(values if several else (values,)):
        if isinstance(value, Tensor):
            continue
        where = f"the value at index {i}" if several else "the given outputs of the user-provided function"
        raise TypeError("The outputs of the user-provided function given to "
                        f"{function} must be either a Tensor or a tuple of Tensors but {where} has type {type(value)}.")
    return several, values if several else (values,)


def _fresh(inputs, create_graph):
    """Copies of the inputs, so that their gradients come from this call only."""
    return tuple(x.view_as(x) if create_graph and x.requires_grad else x.detach().requires_grad_() for x in inputs)


def _finished(value, create_graph):
    if isinstance(value, tuple):
        return tuple(_finished(v, create_graph) for v in value)
    return value if create_graph else value.detach()


def _unpacked(several, values):
    return values if several else values[0]


def _check_vector(v, others, several):
    if len(v) != len(others):
        if several:
            raise RuntimeError(f"v is a tuple of invalid length: should be {len(others)} but got {len(v)}.")
        raise RuntimeError("The given v should contain a single Tensor.")
    for i, (one, other) in enumerate(zip(v, others)):
        if one.size() != other.size():
            prefix = f"Entry {i} in " if len(v) > 1 else ""
            raise RuntimeError(f"{prefix}v has invalid size: should be {other.size()} but got {one.size()}.")


def _vector_like(v, others, several, function, what):
    """The given vector, or 1 if it may be omitted."""
    if v is None:
        if len(others) != 1 or others[0].nelement() != 1:
            if what == "outputs":
                raise RuntimeError("The vector v can only be None if the user-provided function returns a single Tensor "
                                   "with a single element.")
            raise RuntimeError("The vector v can only be None if the input to the user-provided function is a single "
                               "Tensor with a single element.")
        return tuple(_C.ones_like(x) for x in others)
    _, v = _tuple_of(v, "v", function)
    _check_vector(v, others, several)
    return tuple(x.detach() if not x.requires_grad else x for x in v)


def _require_history(outputs, strict, what="outputs"):
    if not strict:
        return
    for i, out in enumerate(outputs):
        if out is None:
            raise RuntimeError(_INDEPENDENT["back"].format(i))
        if out.requires_grad:
            continue
        if what == "jacobian":
            raise RuntimeError(f"The jacobian of the user-provided function with respect to input {i} is independent of "
                               "the input. This is not allowed in strict mode. You should ensure that your function is "
                               "twice differentiable and that the jacobian depends on the inputs (this would be violated "
                               "by a linear function for example).")
        raise RuntimeError(f"Output {i} of the user-provided function does not require gradients. The outputs must be "
                           "computed in a differentiable manner from the input when running in strict mode.")


def _gradients(outputs, inputs, vector, create_graph):
    """grad() with None for inputs that the outputs do not depend on; outputs may lack a history."""
    pairs = [(out, None if vector is None else v)
             for out, v in zip(outputs, vector or (None,) * len(outputs)) if out.requires_grad]
    if not pairs:
        return (None,) * len(inputs)
    outs, vs = zip(*pairs)
    return _grad(outs, inputs, vs if vector is not None else None, retain_graph=True, create_graph=create_graph,
                 allow_unused=True)


def _filled(gradients, like, strict, create_graph, stage):
    """Replaces missing gradients by zeros; an error in strict mode."""
    made = []
    for i, (gradient, x) in enumerate(zip(gradients, like)):
        if gradient is None:
            if strict:
                raise RuntimeError(_INDEPENDENT[stage].format(i))
            gradient = _C.zeros_like(x)
        elif strict and create_graph and not gradient.requires_grad:
            raise RuntimeError(_CONSTANT[stage].format(i))
        made.append(gradient)
    return tuple(made)


_INDEPENDENT = {
    "back": "The output of the user-provided function is independent of input {}. This is not allowed in strict mode.",
    "back_trick": "The gradient with respect to the input is independent of entry {} in the grad_outputs when using the "
                  "double backward trick to compute forward mode gradients. This is not allowed in strict mode.",
    "double_back": "The jacobian of the user-provided function is independent of input {}. This is not allowed in strict "
                   "mode.",
    "double_back_trick": "The hessian of the user-provided function is independent of entry {} in the grad_jacobian. This "
                         "is not allowed in strict mode as it prevents from using the double backward trick to replace "
                         "forward mode AD.",
}
_CONSTANT = {
    "back": "The jacobian of the user-provided function is independent of input {}. This is not allowed in strict mode "
            "when create_graph=True.",
    "back_trick": "The jacobian of the user-provided function is independent of input {}. This is not allowed in strict "
                  "mode when create_graph=True.",
    "double_back": "The hessian of the user-provided function is independent of input {}. This is not allowed in strict "
                   "mode when create_graph=True.",
    "double_back_trick": "The hessian of the user-provided function is independent of input {}. This is not allowed in "
                         "strict mode when create_graph=True.",
}


def vjp(func, inputs, v=None, create_graph=False, strict=False):
    """(func(*inputs), v times the Jacobian); v has the form of the outputs, None is 1 for a single number."""
    with _enable_grad():
        several, inputs = _tuple_of(inputs, "inputs", "vjp")
        inputs = _fresh(inputs, create_graph)
        several_outputs, outputs = _outputs_of(func, inputs, "vjp")
        _require_history(outputs, strict)
        v = _vector_like(v, outputs, several_outputs, "vjp", "outputs")
        product = _gradients(outputs, inputs, v, create_graph)
        product = _filled(product, inputs, strict, create_graph, "back")
    return (_finished(_unpacked(several_outputs, outputs), create_graph),
            _finished(_unpacked(several, product), create_graph))


def jvp(func, inputs, v=None, create_graph=False, strict=False):
    """(func(*inputs), the Jacobian times v); v has the form of the inputs, None is 1 for a single number."""
    with _enable_grad():
        several, inputs = _tuple_of(inputs, "inputs", "jvp")
        inputs = _fresh(inputs, create_graph)
        v = _vector_like(v, inputs, several, "jvp", "inputs")
        several_outputs, outputs = _outputs_of(func, inputs, "jvp")
        _require_history(outputs, strict)
        # The derivative of (u times the Jacobian) with respect to u, which is linear in it.
        u = tuple(_C.zeros_like(out).requires_grad_() for out in outputs)
        backward = _filled(_gradients(outputs, inputs, u, True), inputs, strict, False, "back")
        product = _gradients(backward, u, v, create_graph)
        product = _filled(product, outputs, strict, create_graph, "back_trick")
    return (_finished(_unpacked(several_outputs, outputs), create_graph),
            _finished(_unpacked(several_outputs, product), create_graph))


def _check_mode(function, vectorize, strategy, strict, create_graph):
    if strategy not in ("reverse-mode", "forward-mode"):
        raise AssertionError(f"Expected strategy to be either \"forward-mode\" or \"reverse-mode\". Hint: If your "
                             f"function has more outputs than inputs, \"forward-mode\" tends to be more performant. "
                             f"Otherwise, prefer to use \"reverse-mode\", but got {strategy!r}.")
    if strategy == "forward-mode":
        if create_graph:
            raise NotImplementedError("autograd.functional.jacobian: `create_graph=True` and "
                                      "`strategy=\"forward-mode\"` are not supported together (yet). Please either set "
                                      "`create_graph=False` or `strategy=\"reverse-mode\"`.")
        if strict:
            raise RuntimeError(f"autograd.functional.{function}: `strict=True` and `strategy=\"forward-mode\"` are "
                               "not supported together (yet). Please either set `strict=False` or "
                               "`strategy=\"reverse-mode\"`.")
        if not vectorize:
            raise NotImplementedError("Computing Jacobian using forward-AD or forward-over-reverse Hessian is only "
                                      "implemented for `vectorize=True`.")
    if vectorize and strict:
        raise RuntimeError(f"autograd.functional.{function}: `strict=True` and `vectorize=True` are not supported "
                           "together. Please either set `strict=False` or `vectorize=False`.")


def _rows_of(out, number, inputs, create_graph, strict):
    """For each input the Jacobian of one output, [*out.shape, *input.shape]."""
    rows = tuple([] for _ in inputs)
    for element in out.reshape(-1) if out.requires_grad else [None] * out.nelement():
        found = (None,) * len(inputs) if element is None else _grad(element, inputs, retain_graph=True,
                                                                    create_graph=create_graph, allow_unused=True)
        for i, (row, gradient, x) in enumerate(zip(rows, found, inputs)):
            if gradient is None:
                if strict:
                    raise RuntimeError(f"Output {number} of the user-provided function is independent of input {i}. "
                                       "This is not allowed in strict mode.")
                gradient = _C.zeros_like(x)
            elif strict and create_graph and not gradient.requires_grad:
                raise RuntimeError("The jacobian of the user-provided function is independent of input "
                                   f"{i}. This is not allowed in strict mode when create_graph=True.")
            row.append(gradient)
    return tuple(_C.stack(row).reshape(tuple(out.shape) + tuple(x.shape)) if row
                 else x.new_zeros(tuple(out.shape) + tuple(x.shape)) for row, x in zip(rows, inputs))


def jacobian(func, inputs, create_graph=False, strict=False, vectorize=False, strategy="reverse-mode"):
    """
    For each output and input a tensor [*output.shape, *input.shape]; a tuple, or a tuple of tuples, if there are
    several. `vectorize` and `strategy` have no effect: each element of the outputs takes one backward pass.
    """
    _check_mode("jacobian", vectorize, strategy, strict, create_graph)
    with _enable_grad():
        several, inputs = _tuple_of(inputs, "inputs", "jacobian")
        inputs = _fresh(inputs, create_graph)
        several_outputs, outputs = _outputs_of(func, inputs, "jacobian")
        _require_history(outputs, strict)
        rows = tuple(_rows_of(out, i, inputs, create_graph, strict) for i, out in enumerate(outputs))
    rows = _finished(rows, create_graph)
    if not several:
        rows = tuple(row[0] for row in rows)
    return rows if several_outputs else rows[0]


def _check_scalar(outputs, several, function):
    if several or not isinstance(outputs[0], Tensor):
        raise RuntimeError(f"The function given to {function} should return a single Tensor")
    if outputs[0].nelement() != 1:
        raise RuntimeError(f"The Tensor returned by the function given to {function} should contain a single element")


def hessian(func, inputs, create_graph=False, strict=False, vectorize=False, outer_jacobian_strategy="reverse-mode"):
    """Second derivatives of a function with one number as its result: [*input.shape, *input.shape] for each pair."""
    several, inputs = _tuple_of(inputs, "inputs", "hessian")
    _check_mode("hessian", vectorize, outer_jacobian_strategy, strict, create_graph)

    def single(*given):
        out = func(*given)
        several_outputs, outputs = _outputs_of(lambda *_: out, given, "hessian")
        _require_history(outputs, strict)
        if several_outputs:
            raise RuntimeError("The function given to hessian should return a single Tensor")
        if outputs[0].nelement() != 1:
            raise RuntimeError("The Tensor returned by the function given to hessian should contain a single element")
        return out.squeeze()

    def first(*given):
        found = jacobian(single, given, create_graph=True)
        _require_history(found, strict, "jacobian")
        return found

    second = jacobian(first, inputs, create_graph=create_graph, strict=strict)
    return second if several else second[0][0]


def vhp(func, inputs, v=None, create_graph=False, strict=False):
    """(func(*inputs), v times the Hessian); v has the form of the inputs."""
    with _enable_grad():
        several, inputs = _tuple_of(inputs, "inputs", "vhp")
        inputs = _fresh(inputs, create_graph)
        v = _vector_like(v, inputs, several, "vhp", "inputs")
        several_outputs, outputs = _outputs_of(func, inputs, "vhp")
        _require_history(outputs, strict)
        _check_scalar(outputs, several_outputs, "vhp")
        first = _gradients(outputs, inputs, None, True)
        _require_history(first, strict, "jacobian")
        first = _filled(first, inputs, strict, False, "back")
        product = _gradients(first, inputs, v, create_graph)
        product = _filled(product, inputs, strict, create_graph, "double_back")
    return (_finished(_unpacked(several_outputs, outputs), create_graph),
            _finished(_unpacked(several, product), create_graph))


def hvp(func, inputs, v=None, create_graph=False, strict=False):
    """(func(*inputs), the Hessian times v); v has the form of the inputs. vhp() is faster and gives the same result."""
    with _enable_grad():
        several, inputs = _tuple_of(inputs, "inputs", "hvp")
        inputs = _fresh(inputs, create_graph)
        v = _vector_like(v, inputs, several, "hvp", "inputs")
        several_outputs, outputs = _outputs_of(func, inputs, "hvp")
        _require_history(outputs, strict)
        _check_scalar(outputs, several_outputs, "hvp")
        first = _gradients(outputs, inputs, None, True)
        _require_history(first, strict, "jacobian")
        first = _filled(first, inputs, strict, False, "back")
        u = tuple(_C.zeros_like(x).requires_grad_() for x in inputs)
        second = _filled(_gradients(first, inputs, u, True), inputs, strict, False, "double_back")
        product = _gradients(second, u, v, create_graph)
        product = _filled(product, inputs, strict, create_graph, "double_back_trick")
    return (_finished(_unpacked(several_outputs, outputs), create_graph),
            _finished(_unpacked(several, product), create_graph))
