"""Modules as functions of their parameters."""

import contextlib

from tercel._C import Tensor

__all__ = ["functional_call"]


def _places(module):
    """The location of each parameter and buffer by dotted name: the dict that contains it, and its key there."""
    for path, part in module.named_modules(remove_duplicate=False):
        for held in (part._parameters, part._buffers):
            for name in held:
                yield (path + "." if path else "") + name, held, name


def _check_names(given, known, tied, strict):
    unexpected = [name for name in given if name not in known]
    missing = [name for name in known if name not in given and known[name] and not tied(name)] if strict else []
    if strict and (missing or unexpected):
        raise RuntimeError(f"functional_call: Missing key(s): {missing}. Unexpected key(s): {unexpected}.")
    if unexpected:
        raise AttributeError(f"functional_call: the module has no parameter or buffer named {unexpected[0]!r}")


@contextlib.contextmanager
def _swapped(module, values, tie_weights, strict):
    places = list(_places(module))
    owners: dict = {}  # the names of each tensor
    for name, held, key in places:
        if held[key] is not None:
            owners.setdefault(id(held[key]), []).append(name)
    known = {name: held[key] is not None for name, held, key in places}
    partners = {name: names for names in owners.values() for name in names}
    _check_names(values, known, lambda name: tie_weights and any(n in values for n in partners[name]), strict)
    wanted = dict(values)
    if tie_weights:
        for name, value in values.items():
            for other in partners.get(name, ()):
                if wanted.setdefault(other, value) is not value:
                    raise ValueError(f"functional_call: {name!r} and {other!r} are tied, but were given different values")
    before = [(held, key, held[key]) for name, held, key in places if name in wanted]
    try:
        for name, held, key in places:
            if name in wanted:
                held[key] = wanted[name]
        yield
    finally:
        for held, key, value in before:
            held[key] = value


def functional_call(module, parameters_and_buffers, args=None, kwargs=None, *, tie_weights=True, strict=False):
    """Calls module(*args, **kwargs) with the given tensors in place of the parameters and buffers with these dotted names.

    The module is restored afterwards. With tie_weights, a tensor registered under several names is replaced under all; with
    strict, every name must be given.
    """
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    for name, value in parameters_and_buffers.items():
        if not isinstance(value, Tensor):
            raise TypeError(f"functional_call: expected a tensor for {name!r}, but got {type(value).__name__}")
    with _swapped(module, parameters_and_buffers, tie_weights, strict):
        return module(*args, **(kwargs or {}))
