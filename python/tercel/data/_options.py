"""Options of the C++ library as keyword arguments."""

import inspect
from typing import Any, Callable, Dict, List, Tuple, TypeVar

from tercel import _C

_F = TypeVar("_F", bound=Callable[..., Any])
_Option = Tuple[str, Any, str, str]
_tables: Dict[str, List[_Option]] = _C._dataset_options()


def takes_options(*tables: str) -> Callable[[_F], _F]:
    """
    Shows a function's **options in its signature and its help, with names, defaults and texts of the C++ library. A
    table whose name ends in a dot stands for all that begin with it.
    """
    names = [name for t in tables for name in _tables if name == t or (t.endswith(".") and name.startswith(t))]
    rows = {option[0]: option for name in names for option in _tables[name]}

    def decorate(function: _F) -> _F:
        signature = inspect.signature(function)
        own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        added = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)
                 for name, default, _, _ in rows.values()]
        function.__signature__ = signature.replace(parameters=own + added)  # type: ignore[attr-defined]
        lines = [f"{name}: {text}." for name, _, text, _ in rows.values()]
        function.__doc__ = inspect.cleandoc(function.__doc__ or "") + "\n\n" + "\n".join(lines)
        return function

    return decorate
