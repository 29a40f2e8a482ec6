"""Runs PyTorch programs unchanged: in `python -m tercel.torch program.py`, `torch` is Tercel.

Note [The name torch]
install() makes `import torch` and `import torch.nn.functional` find Tercel's modules. `torch` is a separate module
object, since its __version__ is the PyTorch version that Tercel follows; its submodules are Tercel's modules, under two
names in sys.modules. Libraries check type(x).__module__ to recognize tensors, so __module__ of Tercel's classes and
functions says "torch" from then on, and layers and optimizers name PyTorch's modules (_place_of), as does the repr of
dtypes and sizes. A process cannot use both names.

Processes started by multiprocessing inherit sys.path, to which install() adds a folder with a package `torch` that calls
install(). importlib.metadata also finds the version there.
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
    """The module torch: Tercel's names, with the PyTorch version that it follows."""

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
    """Renames a Tercel module and its definitions to torch."""
    name = module.__name__
    if name not in ("tercel", "tercel.version"):  # replaced by modules with PyTorch's version
        module.__name__ = "torch" + name[len("tercel"):]
        sys.modules[module.__name__] = module
    for thing in list(vars(module).values()):
        where = getattr(thing, "__module__", None)
        if isinstance(where, str) and where.split(".")[0] == "tercel" and not isinstance(thing, types.ModuleType):
            try:
                thing.__module__ = _place_of(where, getattr(thing, "__name__", ""))
            except (AttributeError, TypeError):
                pass  # an object whose class has the name, or an operation, which gets it from _C
    for inner in [key for key in sys.modules if key.startswith(name + ".")]:  # modules that a package registered for PyTorch's files
        sys.modules.setdefault("torch" + inner[len("tercel"):], sys.modules[inner])


class _Finder:
    """Finds torch.x as tercel.x, and renames Tercel modules imported from now on."""

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
                sys.modules.pop(name, None)  # importlib would use its spec, tercel.x, and load it again
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
            module = _Torch("torch", "PyTorch's names, provided by Tercel.")
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
        if module.__spec__.loader_state is not None:  # the module keeps its original spec
            module.__spec__ = module.__spec__.loader_state


def install():
    """Makes `import torch` import Tercel in this process and in processes that multiprocessing starts from it.

    ImportError if torch has been imported already. It cannot be undone.
    """
    present = sys.modules.get("torch")
    if isinstance(present, _Torch):
        return
    if present is not None:
        where = getattr(present, "__file__", None)
        if where is None or os.path.dirname(os.path.dirname(os.path.abspath(where))) != _FOLDER:
            raise ImportError(f"torch is already imported, from {where}: Tercel can take its name only before that")
        del sys.modules["torch"]  # our own alias package, which is being imported
    _C._set_package_name("torch")
    sys.meta_path.insert(0, _Finder)
    if _FOLDER not in sys.path:
        sys.path.insert(1, _FOLDER)
    for name, module in list(sys.modules.items()):
        if module is not None and name.split(".")[0] == "tercel" and name.split(".")[:2] != ["tercel", "torch"]:
            _rename(module)
    importlib.import_module("torch.version")
