"""Options of the C++ library as keyword arguments."""

import inspect
import os
from typing import Any, Callable, Dict, List, Tuple, TypeVar, Union

from tercel import _C

_F = TypeVar("_F", bound=Callable[..., Any])
_Option = Tuple[str, Any, str, str]
_tables: Dict[str, List[_Option]] = _C._dataset_options()


def takes_options(*tables: str) -> Callable[[_F], _F]:
    """
    Shows a function's **options in its signature and its help, with names, defaults and texts of the C++ library. A
    table whose name ends in a dot stands for all that begin with it. The function's own parameters stay.
    """
    names = [name for t in tables for name in _tables if name == t or (t.endswith(".") and name.startswith(t))]
    rows = {option[0]: option for name in names for option in _tables[name]}

    def decorate(function: _F) -> _F:
        signature = inspect.signature(function)
        own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        shown = {name: row for name, row in rows.items() if name not in signature.parameters}
        added = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)
                 for name, default, _, _ in shown.values()]
        function.__signature__ = signature.replace(parameters=own + added)  # type: ignore[attr-defined]
        lines = [f"{name}: {text}." for name, _, text, _ in shown.values()]
        function.__doc__ = inspect.cleandoc(function.__doc__ or "") + "\n\n" + "\n".join(lines)
        return function

    return decorate


def path_of(value: Any, argument: str) -> Union[str, bytes]:
    """A str, bytes or os.PathLike as str or bytes; TypeError that names the argument for another object."""
    if not isinstance(value, (str, bytes)) and not hasattr(type(value), "__fspath__"):
        raise TypeError(f"{argument}: expected a path, as str, bytes or os.PathLike, not {type(value).__name__}")
    path: Union[str, bytes] = os.fspath(value)
    return path


def paths_of(values: Any, argument: str) -> List[Union[str, bytes]]:
    """One path, or any iterable of paths."""
    if isinstance(values, (str, bytes)) or hasattr(type(values), "__fspath__"):
        return [path_of(values, argument)]
    if not hasattr(type(values), "__iter__"):
        raise TypeError(f"{argument}: expected a path or an iterable of paths, not {type(values).__name__}")
    return [path_of(value, f"{argument}[{i}]") for i, value in enumerate(values)]


def flag_of(value: Any, argument: str) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{argument}: expected True or False, not {value!r}")
    return value


def name_of(value: Any, argument: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{argument}: expected a name, as str, not {type(value).__name__}")
    return value


def progress_of(value: Any, argument: str) -> Any:
    if value is not None and not callable(value):
        raise TypeError(f"{argument}: expected a function or None, not {type(value).__name__}")
    return value
