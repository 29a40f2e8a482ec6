"""Activation checkpointing: recomputes parts of a model in backward to save memory."""

import contextlib
import warnings

from tercel import _C
from tercel._C import Tensor
from tercel._C import _CheckpointError as CheckpointError
from tercel.amp.autocast_mode import autocast
from tercel.autograd import backward as _backward
from tercel.autograd.function import Function
from tercel.autograd.grad_mode import enable_grad, no_grad

__all__ = ["checkpoint", "checkpoint_sequential", "CheckpointFunction", "CheckpointError", "check_backward_validity",
           "detach_variable", "get_device_states", "noop_context_fn", "set_device_states"]


def detach_variable(inputs):
    """The inputs with their tensors detached."""
    if not isinstance(inputs, tuple):
        raise RuntimeError("Only tuple of tensors is supported. Got Unsupported input type: ", type(inputs).__name__)
    made = []
    for x in inputs:
        if isinstance(x, Tensor):
            detached = x.detach()
            detached.requires_grad = x.requires_grad
            x = detached
        made.append(x)
    return tuple(made)


def check_backward_validity(inputs):
    """Warns if none of the inputs requires a gradient."""
    if not any(isinstance(x, Tensor) and x.requires_grad for x in inputs):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=3)


def get_device_states(*args):
    """The non-CPU devices of the tensors among args, and their generators' states: always none."""
    return [], []


def set_device_states(devices, states, *, device_type=None):
    """Restores the states from get_device_states(): does nothing."""


def noop_context_fn():
    """Two contexts that do nothing."""
    return contextlib.nullcontext(), contextlib.nullcontext()


class CheckpointFunction(Function):
    """A reentrant checkpoint: its backward runs another backward pass inside."""

    @staticmethod
    def forward(ctx, run_function, preserve_rng_state, *args):
        """Calls run_function(*args) without recording."""
        check_backward_validity(args)
        ctx.run_function, ctx.preserve_rng_state = run_function, preserve_rng_state
        ctx.inputs = [None if isinstance(a, Tensor) else a for a in args]
        ctx.places = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        ctx.save_for_backward(*(args[i] for i in ctx.places))
        ctx.autocast = _autocast_now()
        ctx.draws = _C._push_draws()
        try:
            with no_grad():
                return run_function(*args)
        finally:
            _C._pop_scope()

    @staticmethod
    def backward(ctx, *args):
        """Calls the function again, and runs a backward pass through it."""
        if _C._pass_has_targets():
            raise RuntimeError("Checkpointing is not compatible with .grad() or when an `inputs` parameter is passed to "
                               ".backward(). When use_reentrant=True, checkpoint() is incompatible with .grad() "
                               "or passing an `inputs` parameter to .backward(). To resolve this error, you can either set "
                               "use_reentrant=False, or call .backward() without passing the `inputs` argument.")
        inputs = list(ctx.inputs)
        for i, tensor in zip(ctx.places, ctx.saved_tensors):
            inputs[i] = tensor
        detached = detach_variable(tuple(inputs))
        with enable_grad(), _random_numbers_of(ctx), ctx.autocast:
            outputs = ctx.run_function(*detached)
        if isinstance(outputs, Tensor):
            outputs = (outputs,)
        pairs = [(out, g) for out, g in zip(outputs, args) if isinstance(out, Tensor) and out.requires_grad]
        if not pairs:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        _backward(*map(tuple, zip(*pairs)))
        return (None, None) + tuple(x.grad if isinstance(x, Tensor) else None for x in detached)


def _autocast_now():
    """A context with this thread's current autocast state."""
    return autocast("cpu", _C._get_autocast_dtype("cpu"), _C._is_autocast_enabled("cpu"), _C._is_autocast_cache_enabled())


@contextlib.contextmanager
def _random_numbers_of(ctx):
    if not ctx.preserve_rng_state:
        yield
        return
    _C._push_replay(ctx.draws)
    try:
        yield
    finally:
        _C._pop_scope()


def checkpoint(function, *args, use_reentrant=None, context_fn=noop_context_fn, determinism_check="default", debug=False,
               early_stop=True, **kwargs):
    """
    Calls function(*args, **kwargs) and keeps only the arguments for backward, which calls the function again, with the
    same random numbers unless preserve_rng_state=False and the same autocast state. The function must do the same each
    time; CheckpointError if it saved other tensors.

    use_reentrant=True, the default, runs a backward pass inside backward, and records only if one of the arguments
    requires a gradient. use_reentrant=False also works with grad(), create_graph and keyword arguments. context_fn()
    returns two contexts, for the first and the second call.
    """
    preserve = kwargs.pop("preserve_rng_state", True)
    if determinism_check not in ("default", "none"):
        raise ValueError(f"determinism_check should be one of ['default', 'none'] but got {determinism_check}")
    if use_reentrant is None or use_reentrant:
        if kwargs:
            raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
        if context_fn is not noop_context_fn or debug is not False:
            raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
        return CheckpointFunction.apply(function, preserve, *args)
    first, again = context_fn()
    if not _C.is_grad_enabled():
        with first:
            return function(*args, **kwargs)

    state = _autocast_now()

    def recompute():
        with state, again:
            function(*args, **kwargs)

    _C._push_checkpoint(recompute, preserve, determinism_check == "default")
    try:
        with first:
            return function(*args, **kwargs)
    finally:
        _C._pop_scope()


def checkpoint_sequential(functions, segments, input, use_reentrant=None, **kwargs):  # noqa: A002
    """Runs functions, or a Sequential's modules, in the given number of segments; all but the last are checkpointed."""
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    functions = list(functions.children()) if hasattr(functions, "children") else list(functions)
    if not 1 <= segments <= len(functions):
        raise ValueError(f"checkpoint_sequential: expected 1 to {len(functions)} segments but got {segments}")

    def part(begin, end):
        def run(x):
            for function in functions[begin:end]:
                x = function(x)
            return x

        return run

    length = len(functions) // segments
    last = (segments - 1) * length
    for begin in range(0, last, length):
        input = checkpoint(part(begin, begin + length), input, use_reentrant=use_reentrant,  # noqa: A001
                           preserve_rng_state=preserve)
    return part(last, len(functions))(input)
