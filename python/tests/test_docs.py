"""Every public name of the package is documented."""

import importlib
import inspect
import pkgutil

import pytest

import tercel as tc

# Special methods, and members of foreign base types, which need no documentation.
INHERITED = (object, type, tuple, dict, Exception)


def modules():
    names = [m.name for m in pkgutil.walk_packages(tc.__path__, "tercel.") if not m.name.startswith("tercel._C")]
    return [importlib.import_module(n) for n in ["tercel", *names] if not any(p[0] == "_" for p in n.split(".")[1:])]


def says(thing):
    """The documentation without signatures."""
    text = inspect.getdoc(thing) or ""
    lines = [line for line in text.splitlines() if line.strip()]
    if type(thing).__name__ == "Op":  # signatures, an empty line, words
        lines = text.split("\n\n", 1)[1:]
    elif type(thing).__name__.startswith("nb_") and lines and lines[0].startswith(f"{thing.__name__}("):
        lines = lines[1:]
    return " ".join(lines).strip()


def public_of(module):
    """(name, object) of everything defined in the package and reachable from the module by a public name."""
    names = getattr(module, "__all__", None) or [n for n in vars(module) if not n.startswith("_")]
    for name in names:
        thing = getattr(module, name)
        where = str(getattr(thing, "__module__", ""))
        if callable(thing) and where.split(".")[0] == "tercel":
            yield f"{module.__name__}.{name}", thing


def members_of(name, cls):
    for key, member in vars(cls).items():
        if key.startswith("_"):
            continue
        function = member.__func__ if isinstance(member, (staticmethod, classmethod)) else member
        if callable(function) or isinstance(function, property) or inspect.isgetsetdescriptor(function):
            # An override of a documented method needs no docstring: inspect.getdoc() finds the inherited one.
            yield f"{name}.{key}", getattr(cls, key)


def silent(things):
    seen, found = set(), []
    for name, thing in things:
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        if not says(thing):
            found.append(name)
        if inspect.isclass(thing) and thing not in INHERITED:
            found += [n for n, member in members_of(name, thing) if not says(member)]
    return found


@pytest.mark.parametrize("module", modules(), ids=lambda m: m.__name__)
def test_public_names_are_documented(module):
    assert inspect.getdoc(module), module.__name__
    assert silent(public_of(module)) == []


def test_operations_are_documented():
    ops = {f"{flags}.{name}": getattr(tc.Tensor, name, None) or getattr(tc, name, None)
           for flags, name, *_ in tc._C._describe_ops() if not name.startswith("_")}
    assert silent((name, op) for name, op in ops.items() if op is not None) == []


def test_texts_of_operations():
    words = "input is as given: signatures first, then what the header, the table or the entry says."
    assert says(tc.exp) == "e to the power input.", words
    assert says(tc.Tensor.exp_) == "e to the power input. In place; returns input."
    assert says(tc.arctan2) == says(tc.atan2) == "The angle of the point (other, input), in (-pi, pi]."
    assert says(tc.flip) == "Reverses the order of elements along the given dimensions."
    assert tc.exp.__doc__.startswith("exp(Tensor input")


def test_what_is_silent_is_seen():
    def nothing():
        pass

    class Half:
        """Says something."""

        def method(self):
            pass

    assert silent([("nothing", nothing), ("Half", Half)]) == ["nothing", "Half.method"]
