"""Programs for PyTorch as they are: `python -m tercel.torch program.py` runs one in which `torch` is Tercel.

Note [The name torch]
install() makes `import torch` and `import torch.nn.functional` find Tercel's modules. The module `torch` is one of its own,
since its __version__ is that of the PyTorch version that is followed; all below it are Tercel's own modules, under two names
in sys.modules. Libraries ask type(x).__module__ whether x is a tensor of theirs, so classes and functions of Tercel say
"torch" there from then on, layers and optimizers the modules that PyTorch has them in (_place_of), and so do the texts of dtypes
and sizes. A process cannot hold both: classes have one name.

Processes that multiprocessing starts take over sys.path, on which install() puts a folder with a package `torch` that calls
install(). importlib.metadata finds the version there too.
"""

import importlib
import importlib.machinery
import importlib.util
import os
import re
import sys
import types

import tercel
from tercel import _C
from tercel.torch_version import __version__ as _followed

__all__ = ["install"]

_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "alias")


class _Torch(types.ModuleType):
    """The module torch: Tercel's names, and the version of PyTorch that it follows."""

    def __getattr__(self, name):
        try:
            return getattr(tercel, name)
        except AttributeError:
            raise AttributeError(f"module 'torch' has no attribute '{name}'") from None

    def __dir__(self):
        return sorted({*vars(self), *dir(tercel)})


# The files of tercel.nn, and where PyTorch has what is in them: torch.nn.modules.x, where not the next table says more.
_LAYERS = {
    "activation": "activation", "adaptive": "adaptive", "containers": "container", "conv": "conv", "lazy": "lazy",
    "linear": "linear", "loss": "loss", "module": "module", "norm": "normalization", "padding": "padding", "rnn": "rnn",
    "sampling": "upsampling", "transformer": "transformer",
}
_LAYERS_BY_NAME = {
    "activation": r"MultiheadAttention", "batchnorm": r"\w*BatchNorm\w*|_NormBase", "channelshuffle": r"ChannelShuffle",
    "conv": r"LazyConv\w+", "distance": r"CosineSimilarity|PairwiseDistance", "dropout": r"\w*Dropout\w*",
    "flatten": r"(Unf|F)latten", "fold": r"(Unf|F)old", "instancenorm": r"\w*InstanceNorm\w*", "linear": r"LazyLinear",
    "pixelshuffle": r"Pixel\w+", "pooling": r"\w+(Pool|Unpool)\dd", "sparse": r"Embedding(Bag)?", "upsampling": r"Upsampl\w+",
}


def _place_of(where, name):
    """The module of PyTorch that has what is `name` in a module of Tercel."""
    package, _, file = where.rpartition(".")
    if package == "tercel.nn" and (file in _LAYERS or name == "MultiheadAttention"):
        found = (place for place, pattern in _LAYERS_BY_NAME.items() if re.fullmatch(pattern, name))
        return f"torch.nn.modules.{next(found, _LAYERS.get(file))}"
    if where == "tercel.optim.optimizers" and name in sys.modules[where].__all__:
        return f"torch.optim.{name.lower()}"
    return "torch" + where[len("tercel"):]


def _rename(module):
    """Lets a module of Tercel, and what is defined in it, say torch."""
    name = module.__name__
    if name not in ("tercel", "tercel.version"):  # in their place there are modules that know PyTorch's version
        module.__name__ = "torch" + name[len("tercel"):]
        sys.modules[module.__name__] = module
    for thing in list(vars(module).values()):
        where = getattr(thing, "__module__", None)
        if isinstance(where, str) and where.split(".")[0] == "tercel" and not isinstance(thing, types.ModuleType):
            try:
                thing.__module__ = _place_of(where, getattr(thing, "__name__", ""))
            except (AttributeError, TypeError):
                pass  # an object whose class says it, or an operation, which asks _C for the name
    for inner in [key for key in sys.modules if key.startswith(name + ".")]:  # PyTorch's files, which a package has put there
        sys.modules.setdefault("torch" + inner[len("tercel"):], sys.modules[inner])


class _Finder:
    """Finds torch.x as tercel.x, and renames what is imported of Tercel from now on."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "torch":
            return importlib.machinery.ModuleSpec(name, _Loader, is_package=True)
        if name.startswith("torch."):
            own = "tercel" + name[len("torch"):]
            if own not in sys.modules:
                try:
                    if importlib.util.find_spec(own) is None:
                        return None
                except ModuleNotFoundError:
                    return None
                importlib.import_module(own)
                sys.modules.pop(name, None)  # importlib would take its spec, tercel.x, and load that again
            return importlib.machinery.ModuleSpec(name, _Loader, is_package=hasattr(sys.modules[own], "__path__"))
        if name.startswith("tercel."):
            spec = importlib.machinery.PathFinder.find_spec(name, path, target)
            if spec is not None and spec.loader is not None:
                run = spec.loader.exec_module

                def run_and_rename(module):
                    run(module)
                    _rename(module)

                spec.loader.exec_module = run_and_rename
            return spec
        return None


class _Loader:
    @staticmethod
    def create_module(spec):
        if spec.name == "torch":
            module = _Torch("torch", "PyTorch's names, which are Tercel's.")
            names = {name: value for name, value in vars(tercel).items() if not (name[:2] == name[-2:] == "__")}
            vars(module).update(names, __version__=_followed, __file__=os.path.join(_FOLDER, "torch", "__init__.py"))
            return module
        own = sys.modules["tercel" + spec.name[len("torch"):]]
        if spec.name == "torch.version":
            module = types.ModuleType(spec.name, own.__doc__)
            names = {name: value for name, value in vars(own).items() if not (name[:2] == name[-2:] == "__")}
            vars(module).update(names, __version__=str(_followed), __all__=own.__all__)
            return module
        spec.loader_state = own.__spec__
        return own

    @staticmethod
    def exec_module(module):
        if module.__spec__.loader_state is not None:  # the module keeps the spec that it was imported by
            module.__spec__ = module.__spec__.loader_state


def install():
    """From now on `import torch` gives Tercel in this process, and in those that multiprocessing starts from it.

    ImportError if torch has been imported already. There is no way back.
    """
    present = sys.modules.get("torch")
    if isinstance(present, _Torch):
        return
    if present is not None:
        where = getattr(present, "__file__", None)
        if where is None or os.path.dirname(os.path.dirname(os.path.abspath(where))) != _FOLDER:
            raise ImportError(f"torch is already imported, from {where}: Tercel can take its name only before that")
        del sys.modules["torch"]  # our own package, which is being imported
    _C._set_package_name("torch")
    sys.meta_path.insert(0, _Finder)
    if _FOLDER not in sys.path:
        sys.path.insert(1, _FOLDER)
    for name, module in list(sys.modules.items()):
        if module is not None and name.split(".")[0] == "tercel" and name.split(".")[:2] != ["tercel", "torch"]:
            _rename(module)
    importlib.import_module("torch.version")
