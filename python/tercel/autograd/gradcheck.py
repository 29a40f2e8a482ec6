"""Checks a function's backward: compares its gradients with finite differences."""

import warnings

from tercel import _C
from tercel._C import Tensor
from tercel.autograd import forward_ad
from tercel.autograd import grad as _grad
from tercel.autograd.function import Function
from tercel.autograd.grad_mode import enable_grad

__all__ = ["gradcheck", "gradgradcheck", "GradcheckError", "get_analytical_jacobian", "get_numerical_jacobian"]


class GradcheckError(RuntimeError):
    """Raised by gradcheck() and gradgradcheck() when a check fails."""


def _as_tuple(value):
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _is_checked(x):
    return isinstance(x, Tensor) and x.requires_grad


def _outputs(func, inputs):
    """The differentiable outputs."""
    outputs = _as_tuple(func(*inputs))
    return tuple(out for out in outputs if isinstance(out, Tensor) and (out.is_floating_point() or out.is_complex()))


def _check_inputs(inputs):
    if not any(map(_is_checked, inputs)):
        raise ValueError("gradcheck expects at least one input tensor to require gradient, but none of the them have "
                         "requires_grad=True.")
    for i, x in enumerate(inputs):
        if not _is_checked(x):
            continue
        if x.dtype not in (_C.float64, _C.complex128):
            warnings.warn(f"Input #{i} requires gradient and is not a double precision floating point or complex. This "
                          "check will likely fail if all the inputs are not of double precision floating point or "
                          "complex. ", stacklevel=4)
        if any(stride == 0 and size > 1 for stride, size in zip(x.stride(), x.size())):
            raise RuntimeError(f"The {i}th input has a dimension with stride 0. gradcheck only supports inputs that are "
                               "non-overlapping to be able to compute the numerical gradients correctly. You should call "
                               ".contiguous on the input before passing it to gradcheck.")
        x.retain_grad()


def _flat(t):
    """The elements as real numbers, both parts of complex ones."""
    t = t.detach().contiguous()
    return (_C.view_as_real(t) if t.is_complex() else t).reshape(-1).to(_C.float64)


def _positions(x):
    """The indices of all elements of x, which is perturbed one element at a time."""
    indices = [()]
    for size in x.size():
        indices = [index + (i,) for index in indices for i in range(size)]
    return indices


def _differences(func, inputs, place, eps, weights):
    """
    [element of the input, real number of the outputs] for inputs[place], by central differences. With weights, the
    outputs' numbers are summed with them.
    """
    x = inputs[place]
    data = x.data
    rows = []
    metas = [(out.shape, out.dtype) for out in _outputs(func, inputs)]

    def values():
        outputs = _outputs(func, inputs)
        for number, (out, before) in enumerate(zip(outputs, metas)):
            for what, now, then in zip(("shape", "dtype"), (out.shape, out.dtype), before):
                if now != then:
                    raise AssertionError(f"Expected `func` to return outputs with the same {what} when inputs are perturbed "
                                         f"on an infinitesimal scale, but got:\n for output {number}: {then} vs {now}")
        flat = [_flat(out) for out in outputs]
        # Copies: a function may return its input.
        return [f.clone() if w is None else (f * w).sum().reshape(1) for f, w in zip(flat, weights)]

    for index in _positions(x):
        for step in (eps, 1j * eps) if x.is_complex() else (eps,):
            before = data[index].item()
            data[index] = before + step
            above = values()
            data[index] = before - step
            below = values()
            data[index] = before
            rows.append([(a - b) / (2 * eps) for a, b in zip(above, below)])
    return rows


def _seeds(out, weights):
    """Gradients of an output: one for each of its real numbers, or one for the weights."""
    if weights is not None:
        part = weights.reshape(tuple(out.shape) + ((2,) if out.is_complex() else ()))
        return [_C.view_as_complex(part.contiguous()).to(out.dtype) if out.is_complex() else part.to(out.dtype)]
    made = []
    for index in _positions(out):
        for one in (1, 1j) if out.is_complex() else (1,):
            seed = _C.zeros_like(out, requires_grad=False)
            seed[index] = one
            made.append(seed)
    return made


def _checked_gradients(out, checked, seed, allow_missing=True):
    return _grad(out, checked, seed, retain_graph=True, allow_unused=allow_missing)


def _analytic(out, checked, weights, nondet_tol, check_grad_dtypes, output_index):
    """[input][real number of the output][real number of the input]."""
    table = [[] for _ in checked]
    for seed in _seeds(out, weights):
        found = _checked_gradients(out, checked, seed)
        again = _checked_gradients(out, checked, seed)
        for i, (x, gradient, second) in enumerate(zip(checked, found, again)):
            if gradient is None:
                gradient = second = _C.zeros_like(x)
            if check_grad_dtypes and gradient.dtype is not x.dtype:
                raise GradcheckError(f"Gradient has dtype {gradient.dtype}, which is not that of the input, {x.dtype}")
            if gradient.shape != x.shape:
                raise GradcheckError("Analytical gradient has incorrect size")
            a, b = _flat(gradient), _flat(second)
            if a.numel() and not _C.allclose(a, b, rtol=0, atol=nondet_tol, equal_nan=True):
                raise GradcheckError(
                    "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times "
                    "gives different values, although analytical gradient matches numerical gradient. The tolerance for "
                    f"nondeterminism was {nondet_tol}.\n\nNOTE: If your op relies on non-deterministic operations i.e., "
                    "it is listed in the documentation of use_deterministic_algorithms, this is expected: pass "
                    "`nondet_tol=<tol>`.")
            table[i].append(a)
    return table


def _output_weights(outputs, options):
    """In fast mode random weights for the sum of each output's numbers; else None for each."""
    if not options["fast_mode"]:
        return [None] * len(outputs)
    generator = _C.Generator()
    generator.manual_seed(7)
    return [_C.rand(_flat(out).numel(), dtype=_C.float64, generator=generator) + 0.5 for out in outputs]


def _compare(func, inputs, outputs, options):
    checked = [x for x in inputs if _is_checked(x)]
    places = [i for i, x in enumerate(inputs) if _is_checked(x)]
    weights = _output_weights(outputs, options)
    analytic = [_analytic(out, checked, w, options["nondet_tol"], options["check_grad_dtypes"], o)
                if out.requires_grad else None for o, (out, w) in enumerate(zip(outputs, weights))]
    for number, (place, x) in enumerate(zip(places, checked)):
        rows = _differences(func, inputs, place, options["eps"], weights)
        for o, out in enumerate(outputs):
            if not rows or _flat(out).numel() == 0:
                continue
            numerical = _C.stack([row[o] for row in rows])
            if analytic[o] is None:
                if bool((numerical != 0).any()) and not _C.allclose(numerical, _C.zeros_like(numerical),
                                                                    rtol=options["rtol"], atol=options["atol"]):
                    raise GradcheckError("Numerical gradient for function expected to be zero")
                continue
            found = _C.stack(analytic[o][number], 1)
            _compare_jacobians(numerical, found, out, o, place, options)


def _compare_jacobians(numerical, found, out, number, place, options):
    """GradcheckError if the Jacobians of one output with respect to one input differ."""
    def equal(a, b):
        return _C.allclose(a, b, rtol=options["rtol"], atol=options["atol"], equal_nan=False)

    if equal(found, numerical):
        return
    prefix = ""
    if out.is_complex():
        # Columns alternate between real and imaginary parts, or with weights are their sum.
        imaginary = found.size(1) > 1 and not equal(found[:, 1::2], numerical[:, 1::2])
        prefix = f"While considering the {'imaginary' if imaginary else 'real'} part of complex outputs only, "
    raise GradcheckError(f"{prefix}Jacobian mismatch for output {number} with respect to input {place},\n"
                         f"numerical:{numerical}\nanalytical:{found}\n"
                         f"(a row for each number of the input, a column for each of the output)\n")


_UNDEFINED_GRADIENTS = (
    "Backwards compatibility: New undefined gradient support checking feature is enabled by default, but it may break "
    "existing callers of this function. If this is true for you, you can call this function with "
    "\"check_undefined_grad=False\" to disable the feature")


def _check_undefined(func, inputs):
    """Checks that backward skips undefined gradients, or treats them as zeros."""
    outputs = [out for out in _as_tuple(func(*inputs)) if isinstance(out, Tensor) and out.requires_grad]
    checked = [x for x in inputs if _is_checked(x)]
    if not outputs:
        return

    class Missing(Function):
        """Returns tensors as they are; its backward passes no gradients for the given ones."""

        @staticmethod
        def forward(ctx, missing, *tensors):
            ctx.missing = missing
            ctx.set_materialize_grads(False)
            return tuple(t.clone() for t in tensors)

        @staticmethod
        def backward(ctx, *gradients):
            return (None,) + tuple(None if i in ctx.missing else g for i, g in enumerate(gradients))

    def is_zero(missing):
        outs = [out for out in _as_tuple(func(*inputs)) if isinstance(out, Tensor) and out.requires_grad]
        # The backward of a node with several outputs is skipped only if all gradients are undefined.
        with_missing = Missing.apply(missing, *outs)
        try:
            found = _grad(with_missing, checked, [_C.randn_like(out) for out in outs], allow_unused=True)
        except RuntimeError as error:
            warnings.warn(_UNDEFINED_GRADIENTS, stacklevel=6)
            raise GradcheckError("Expected backward function to handle undefined output grads. Please look at \"Notes "
                                 "about undefined output gradients\" in \"tools/autograd/derivatives.yaml\"") from error
        return len(missing) < len(outs) or all(g is None or bool((g == 0).all()) for g in found)

    everything = set(range(len(outputs)))
    for missing in [everything] + ([{i} for i in everything] if len(everything) > 1 else []):
        if not is_zero(missing):
            warnings.warn(_UNDEFINED_GRADIENTS, stacklevel=5)
            raise GradcheckError("Expected all input grads to be undefined or zero when all output grads are undefined or "
                                 "zero. Please look at \"Notes about undefined output gradients\" in "
                                 "\"tools/autograd/derivatives.yaml\"")


def _check_zero_gradient(outputs, inputs):
    """Checks that backward multiplies by the incoming gradient: zeros must give zeros."""
    checked = [x for x in inputs if _is_checked(x)]
    recorded = [out for out in outputs if out.requires_grad]
    if not recorded:
        return
    found = _grad(recorded, checked, [_C.zeros_like(out) for out in recorded], retain_graph=True, allow_unused=True)
    if all(g is None for g in found):
        raise GradcheckError("no Tensors requiring grad found among the inputs that the outputs depend on")
    for gradient, x in zip(found, checked):
        if gradient is None:
            continue
        if not bool((gradient == 0).all()):
            raise GradcheckError("backward not multiplied by grad_output")
        if gradient.dtype is not x.dtype:
            raise GradcheckError("grad is incorrect type")
        if gradient.size() != x.size():
            raise GradcheckError("grad is incorrect size")


def _full_pattern(x):
    """A sparse tensor with the elements of x in which every element is an entry."""
    block = list(x.values().shape[-2 - x.dense_dim():][:2]) if x.layout in (_C.sparse_bsr, _C.sparse_bsc) else None
    every = _C.ones(x.shape, dtype=_C.bool)
    if x.layout is _C.sparse_coo:
        return x.to_dense().sparse_mask(every.to_sparse(x.sparse_dim())).coalesce()
    return x.to_dense().sparse_mask(every.to_sparse(layout=x.layout, blocksize=block, dense_dim=x.dense_dim()))


def _with_values(x, values):
    """The sparse tensor with other values, as a function of them."""
    if x.layout is _C.sparse_coo:
        return _C._sparse_coo_tensor(x.indices(), values, tuple(x.shape), False, True)
    by_rows = x.layout in (_C.sparse_csr, _C.sparse_bsr)
    parts = (x.crow_indices(), x.col_indices()) if by_rows else (x.ccol_indices(), x.row_indices())
    return _C._sparse_compressed_tensor(*parts, values, tuple(x.shape), x.layout, False)


def _of_values(func, inputs, masked):
    """The function of strided tensors, the values in place of sparse inputs that are checked, and these inputs."""
    made, patterns = list(inputs), {}
    for i, x in enumerate(inputs):
        if _is_checked(x) and x.layout is not _C.strided:
            kept = x.detach()
            kept = (kept.coalesce() if kept.layout is _C.sparse_coo else kept) if masked else _full_pattern(kept)
            patterns[i] = kept
            made[i] = kept.values().clone().requires_grad_()
    if not patterns:
        return func, tuple(inputs)

    def of_values(*given):
        return func(*(_with_values(patterns[i], x) if i in patterns else x for i, x in enumerate(given)))

    return of_values, tuple(made)


def _refuse(**options):
    for name, wanted in options.items():
        if wanted:
            raise NotImplementedError(f"{name}=True is not supported: there is no vmap")


def gradcheck(func, inputs, *, eps=1e-6, atol=1e-5, rtol=1e-3, raise_exception=True, nondet_tol=0.0,
              check_undefined_grad=True, check_grad_dtypes=False, check_batched_grad=False,
              check_batched_forward_grad=False, check_forward_ad=False, check_backward_ad=True, fast_mode=False,
              masked=None, check_sparse_nnz=None):
    """
    Compares the gradients of backward (check_backward_ad) and of forward mode (check_forward_ad) with central differences
    for every input that requires a gradient. Inputs should be float64 or complex128, since differences are inaccurate
    otherwise. If they differ, raises GradcheckError, or returns False with raise_exception=False.

    Of sparse inputs the gradients of entries are checked, or with masked=False those of all elements. Outputs are strided
    (ValueError); sparse.as_sparse_gradcheck() converts them.
    """
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if check_batched_grad and not check_backward_ad:
        raise AssertionError("Setting check_batched_grad=True requires check_backward_ad to be True")
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError("Setting check_batched_forward_grad=True requires check_forward_ad to be True")
    _refuse(check_batched_grad=check_batched_grad, check_batched_forward_grad=check_batched_forward_grad)
    options = dict(eps=eps, atol=atol, rtol=rtol, nondet_tol=nondet_tol, check_grad_dtypes=check_grad_dtypes,
                   fast_mode=fast_mode)
    func, inputs = _of_values(func, _as_tuple(inputs), masked is not False)
    try:
        if check_forward_ad:
            _run_forward(func, inputs, options)
        if check_backward_ad:
            _run(func, inputs, check_undefined_grad, options)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _run(func, inputs, check_undefined_grad, options):
    _check_inputs(inputs)
    outputs = _outputs(func, inputs)
    for out in outputs:
        if out.layout is not _C.strided:
            raise ValueError("Sparse output is not supported at gradcheck yet. Please call to_dense(masked_grad=...) on the "
                             "output of fn for gradcheck.")
    if not any(out.requires_grad for out in outputs):
        # All outputs claim to be constant.
        for place in (i for i, x in enumerate(inputs) if _is_checked(x)):
            for row in _differences(func, inputs, place, options["eps"], [None] * len(outputs)):
                if any(bool((part.abs() > options["atol"]).any()) for part in row):
                    raise GradcheckError("Numerical gradient for function expected to be zero")
        return
    _compare(func, inputs, outputs, options)
    _check_zero_gradient(outputs, inputs)
    if check_undefined_grad:
        _check_undefined(func, inputs)


def _tangents(func, inputs, place, direction):
    """The derivative of the outputs, as real numbers, when inputs[place] moves in the direction."""
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(inputs[place].detach(), direction)
        outputs = _outputs(func, inputs[:place] + (dual,) + inputs[place + 1:])
        pairs = [forward_ad.unpack_dual(out) for out in outputs]
    return [_flat(_C.zeros_like(primal) if tangent is None else tangent) for primal, tangent in pairs]


def _run_forward(func, inputs, options):
    """Compares tangents along every element with differences."""
    _check_inputs(inputs)
    outputs = _outputs(func, inputs)
    weights = _output_weights(outputs, options)
    for place in (i for i, x in enumerate(inputs) if _is_checked(x)):
        found = [[t if w is None else (t * w).sum().reshape(1)
                  for t, w in zip(_tangents(func, inputs, place, direction), weights)]
                 for direction in _seeds(inputs[place], None)]
        numerical = _differences(func, inputs, place, options["eps"], weights)
        for number, out in enumerate(outputs):
            if found and out.numel():
                _compare_jacobians(*(_C.stack([row[number] for row in rows]) for rows in (numerical, found)), out, number,
                                   place, options)


def gradgradcheck(func, inputs, grad_outputs=None, *, eps=1e-6, atol=1e-5, rtol=1e-3,
                  gen_non_contig_grad_outputs=False, raise_exception=True, nondet_tol=0.0, check_undefined_grad=True,
                  check_grad_dtypes=False, check_batched_grad=False, check_fwd_over_rev=False, check_rev_over_rev=True,
                  fast_mode=False, masked=False):
    """gradcheck() of the gradients of func, as functions of its inputs and of random gradients of its outputs."""
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise AssertionError("Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True")
    _refuse(check_batched_grad=check_batched_grad)
    inputs = _as_tuple(inputs)
    if grad_outputs is None:
        made = []
        for out in _outputs(func, inputs):
            wide = out.dtype if out.dtype in (_C.float64, _C.complex128) else (
                _C.complex128 if out.is_complex() else _C.float64)
            if gen_non_contig_grad_outputs:
                seed = _C.randn(tuple(out.shape) + (2,), dtype=wide)[..., 0]
            else:
                seed = _C.randn(tuple(out.shape), dtype=wide)
            made.append(seed.requires_grad_() if out.requires_grad else seed)
        grad_outputs = tuple(made)
    else:
        grad_outputs = _as_tuple(grad_outputs)
    count = len(grad_outputs)
    places = [i for i, x in enumerate(inputs) if _is_checked(x)]

    def gradients(*args):
        own, seeds = args[:len(args) - count], args[len(args) - count:]
        own = tuple(x.requires_grad_() if i in places and not x.requires_grad else x for i, x in enumerate(own))
        pairs = [(out, seed) for out, seed in zip(_outputs(func, own), seeds) if out.requires_grad]
        wanted = [own[i] for i in places]
        if not pairs:
            return tuple(_C.zeros_like(x) for x in wanted)
        outs, given = zip(*pairs)
        with enable_grad():
            found = _grad(outs, wanted, given, create_graph=True, allow_unused=True)
        return tuple(g for g in found if g is not None)

    return gradcheck(_recorded(gradients), inputs + grad_outputs, eps=eps, atol=atol, rtol=rtol,
                     raise_exception=raise_exception, nondet_tol=nondet_tol, check_undefined_grad=check_undefined_grad,
                     check_grad_dtypes=check_grad_dtypes, fast_mode=fast_mode, check_forward_ad=check_fwd_over_rev,
                     check_backward_ad=check_rev_over_rev)


def _recorded(function):
    """Disables recording for differences; gradients enable it again."""

    def wrapper(*args):
        with enable_grad():
            return function(*args)

    return wrapper


def _check_private(name, tensors, grad_out):
    warnings.warn(f"{name} was part of PyTorch's private API and not meant to be exposed. It is deprecated: use "
                  "tercel.autograd.functional.jacobian().", UserWarning, stacklevel=3)
    if grad_out != 1.0:
        raise ValueError(f"Expected grad_out to be 1.0. {name} no longer supports values of grad_out != 1.0.")
    if any(t.is_complex() for t in tensors):
        raise ValueError(f"{name} expects real tensors")


def get_numerical_jacobian(fn, inputs, target=None, eps=1e-3, grad_out=1.0):
    """[elements of an input, of the first output] by differences, for each input (of target) that requires a gradient.

    fn gets the inputs as one tuple. Deprecated: use functional.jacobian().
    """
    inputs = _as_tuple(inputs)
    _check_private("get_numerical_jacobian", filter(_is_checked, inputs), grad_out)
    target = inputs if target is None else _as_tuple(target)
    places = [i for i, x in enumerate(inputs) if _is_checked(x) and any(x is t for t in target)]

    def first(*given):
        return _as_tuple(fn(given))[0]

    return tuple(_C.stack([row[0] for row in _differences(first, inputs, i, eps, [None])]) for i in places)


def get_analytical_jacobian(inputs, output, nondet_tol=0.0, grad_out=1.0):
    """([elements of an input, of the output] by backward, for each input that requires a gradient; whether a second backward
    gave the same; whether gradients have the inputs' sizes; and their dtypes). Deprecated: use functional.jacobian().
    """
    _check_private("get_analytical_jacobian", (output,), grad_out)
    checked = [x for x in _as_tuple(inputs) if _is_checked(x)]
    same, right_sizes, right_types = True, True, True
    columns = [[] for _ in checked]
    for i in range(output.numel()):
        seed = _C.zeros_like(output).detach()
        seed.view(-1)[i] = 1
        found, again = (_grad(output, checked, seed, retain_graph=True, allow_unused=True) for _ in range(2))
        for column, x, gradient, second in zip(columns, checked, found, again):
            if gradient is not None:
                right_sizes &= gradient.size() == x.size()
                right_types &= gradient.dtype is x.dtype
                same &= bool(((gradient - second).abs() <= nondet_tol).all())
            column.append(_C.zeros(x.numel(), dtype=x.dtype) if gradient is None else gradient.reshape(-1))
    return tuple(_C.stack(column, 1) for column in columns), same, right_sizes, right_types
