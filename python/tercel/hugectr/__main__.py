"""
Runs a script of HugeCTR's on this machine's processor:

    python -m tercel.hugectr SCRIPT.py [ARGS]

`import hugectr` in the script, and in what it imports, finds tercel.hugectr; `import mpi4py`, where it is not
installed, a module of one process. Everything else is as with `python SCRIPT.py [ARGS]`: arguments, `__main__`, exit
code, traceback.
"""

import importlib.util
import os
import sys
from types import ModuleType, TracebackType
from typing import Any, List, Optional, Type


def _install() -> None:
    """What the script imports."""
    import tercel.hugectr
    import tercel.hugectr.data
    import tercel.hugectr.inference
    import tercel.hugectr.tools

    sys.modules["hugectr"] = tercel.hugectr
    sys.modules["hugectr.data"] = tercel.hugectr.data
    sys.modules["hugectr.inference"] = tercel.hugectr.inference
    sys.modules["hugectr.tools"] = tercel.hugectr.tools
    if importlib.util.find_spec("mpi4py") is None:
        from tercel.hugectr._mpi import MPI, mpi4py

        sys.modules["mpi4py"], sys.modules["mpi4py.MPI"] = mpi4py, MPI


def _without_frames_before(script: str) -> None:
    """Tracebacks of what ends the script begin in it, as Python's own do."""
    show = sys.excepthook

    def hook(kind: Type[BaseException], error: BaseException, where: Optional[TracebackType]) -> Any:
        first = where
        while first is not None and first.tb_frame.f_code.co_filename != script:
            first = first.tb_next
        if first is not None or (isinstance(error, SyntaxError) and error.filename == script):
            error.__traceback__ = first  # what is shown
        return show(kind, error, error.__traceback__)

    sys.excepthook = hook


def _run(arguments: List[str]) -> None:
    if not arguments or arguments[0] in ("-h", "--help"):
        print("usage: python -m tercel.hugectr SCRIPT.py [ARGS]", file=sys.stderr if not arguments else sys.stdout)
        sys.exit(2 if not arguments else 0)
    script = arguments[0]
    sys.argv = arguments
    try:
        with open(script, "rb") as file:
            source = file.read()
    except OSError as error:
        print(f"python -m tercel.hugectr: cannot open {script!r}: {error.strerror}", file=sys.stderr)
        sys.exit(2)
    _install()
    if not getattr(sys.flags, "safe_path", False):
        # `python -m` has put the working folder first, `python SCRIPT.py` has the script's there.
        sys.path[0] = os.path.dirname(os.path.realpath(script))
    path = os.path.abspath(script)
    _without_frames_before(path)
    main: Any = ModuleType("__main__")
    main.__dict__.update(__file__=path, __builtins__=__builtins__, __cached__=None, __package__=None)
    sys.modules["__main__"] = main
    exec(compile(source, path, "exec"), main.__dict__)


if __name__ == "__main__":
    _run(sys.argv[1:])
