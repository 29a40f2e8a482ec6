"""Runs a program for PyTorch on Tercel:

    python -m tercel.torch program.py [arguments]
    python -m tercel.torch -m module [arguments]
    python -m tercel.torch -c "code" [arguments]

`-` reads the program from standard input; a folder or a zip file is run by its __main__.py.
"""

import builtins
import importlib.machinery
import importlib.util
import io
import os
import pkgutil
import sys
import types

from tercel.torch import install


def _usage():
    print((__doc__ or "").strip(), file=sys.stderr)
    sys.exit(2)


def _set_first_path(entry):
    """The first entry of sys.path: the current folder for -m, none in Python's safe-path mode."""
    if not getattr(sys.flags, "safe_path", False) and not sys.flags.isolated:
        sys.path[0] = entry


def _of_module(name):
    """The spec of a module, or of the __main__ of a package."""
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{name}.__main__")
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
        spec = None
    if spec is None or spec.loader is None:
        sys.exit(f"{sys.executable}: No module named {name}")
    return spec


def _of_path(path):
    """The spec of __main__ in a folder or a zip file; None for a file."""
    importer = pkgutil.get_importer(path)
    if importer is None or isinstance(importer, importlib.machinery.FileFinder) and not os.path.isdir(path):
        return None
    spec = importer.find_spec("__main__")
    if spec is None:
        sys.exit(f"{sys.executable}: can't find '__main__' module in {path!r}")
    return spec


def _program(arguments):
    """(function that compiles the program, attributes of its module) for a command line."""
    first = arguments[0]
    if first in ("-m", "-c") and len(arguments) == 1:
        _usage()
    if first == "-c":
        sys.argv[:] = ["-c", *arguments[2:]]
        _set_first_path("")
        return lambda: compile(arguments[1] + "\n", "<string>", "exec"), {}
    if first == "-m":
        sys.argv[:] = [first, *arguments[2:]]
        spec = _of_module(arguments[1])
        sys.argv[0] = spec.origin
        return lambda: spec.loader.get_code(spec.name), {"__spec__": spec, "__file__": spec.origin, "__package__": spec.parent,
                                                         "__loader__": spec.loader}
    if first == "-":
        sys.argv[:] = arguments
        _set_first_path("")
        return lambda: compile(sys.stdin.read(), "<stdin>", "exec"), {"__file__": "<stdin>"}
    if first.startswith("-"):
        _usage()
    sys.argv[:] = arguments
    path = os.path.join(os.getcwd(), first)
    spec = _of_path(path)
    if spec is not None:
        _set_first_path(path)
        return lambda: spec.loader.get_code(spec.name), {"__spec__": spec, "__file__": spec.origin, "__package__": "",
                                                         "__loader__": spec.loader}
    _set_first_path(os.path.dirname(os.path.realpath(path)))
    try:
        with io.open_code(path) as file:
            source = file.read()
    except OSError as error:
        print(f"{sys.executable}: can't open file {path!r}: [Errno {error.errno}] {error.strerror}",
              file=sys.stderr)
        sys.exit(2)
    loader = importlib.machinery.SourceFileLoader("__main__", path)
    return lambda: compile(source, path, "exec"), {"__file__": path, "__loader__": loader}


def _hide_this_file():
    """Prints uncaught exceptions from the program's first frame on, as Python does."""
    show = sys.excepthook

    def show_program(kind, error, trace):
        inside = trace
        while inside is not None and inside.tb_frame.f_code.co_filename != __file__:
            inside = inside.tb_next
        while inside is not None and inside.tb_frame.f_code.co_filename == __file__:
            inside = inside.tb_next
        error.__traceback__ = inside
        show(kind, error, inside)

    sys.excepthook = show_program


def main():
    arguments = sys.argv[1:]
    if arguments[:1] in (["-h"], ["--help"]):
        print(__doc__.strip())
        return
    if not arguments:
        _usage()
    install()
    compiled, attributes = _program(arguments)
    module = types.ModuleType("__main__")
    vars(module).update({"__builtins__": builtins, "__package__": None, "__spec__": None, "__doc__": None}, **attributes)
    # Never restored: threads, pickles and atexit functions look for the program there.
    sys.modules["__main__"] = module
    try:
        exec(compiled(), vars(module))
    except BaseException:
        _hide_this_file()  # wraps a hook that the program may have set
        raise


if __name__ == "__main__":
    main()
