"""Arguments of HugeCTR's classes: their checks, and those that mean nothing on a CPU."""

from dataclasses import MISSING, Field, fields
from enum import Enum
from typing import Any, List, Tuple, Type, TypeVar

__all__ = ["check_choice", "given_without_effect", "name_list", "number_list", "one_of"]

E = TypeVar("E", bound=Enum)


def _default(of: "Field[Any]") -> Any:
    if of.default is not MISSING:
        return of.default
    return of.default_factory() if of.default_factory is not MISSING else MISSING


def given_without_effect(options: Any, names: Tuple[str, ...]) -> List[str]:
    """Those of the names whose values in a dataclass are not the defaults."""
    return [field.name for field in fields(options)
            if field.name in names and getattr(options, field.name) != _default(field)]


def check_choice(value: Any, kind: Type[E], argument: str) -> E:
    """The value, if it is of the enumeration; else a TypeError with what there is."""
    if isinstance(value, kind):
        return value
    known = ", ".join(f"{kind.__name__}.{name}" for name in kind.__members__)
    raise TypeError(f"{argument}: expected one of {known}, not {value!r}")


def name_list(value: Any, argument: str) -> List[str]:
    """A name or a list of names as a list."""
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"{argument}: expected a name or a list of names, not {value!r}")
    return list(names)


def number_list(value: Any, argument: str) -> List[int]:
    """A list of integers."""
    if not isinstance(value, (list, tuple)) or not all(hasattr(type(n), "__index__") for n in value):
        raise TypeError(f"{argument}: expected a list of integers, not {value!r}")
    return [int(n) for n in value]


def one_of(first: Any, second: Any) -> Any:
    """The one of two arguments that is given; TypeError unless it is one."""
    if (first is None) == (second is None):
        raise TypeError("expected one list or dict of paths, found " + ("none" if first is None else "two"))
    return second if first is None else first
