"""Programs that import torch, run by `python -m tercel.torch`."""

import os
import shutil
import signal
import subprocess
import sys
import textwrap
import zipfile

import pytest

import tercel as tc
from tercel.torch_version import TorchVersion

PACKAGES = os.path.dirname(os.path.dirname(os.path.abspath(tc.__file__)))


def python(*arguments, cwd=None, source=None):
    environment = {**os.environ, "PYTHONPATH": PACKAGES}
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=200, cwd=cwd, env=environment,
                          input=source)


def run(folder, source, *arguments):
    """The program as a file, by Tercel's runner."""
    (folder / "program.py").write_text(textwrap.dedent(source))
    return python("-m", "tercel.torch", "program.py", *arguments, cwd=folder)


def test_all_names_are_torch(tmp_path):
    done = run(tmp_path, """
        # Each is loaded once, whichever name is imported first.
        import importlib.metadata, pickle, sys
        import torch, torch.nn as nn, torch.optim.lr_scheduler as schedules
        from torch.utils.checkpoint import checkpoint
        from torch.nn.modules.batchnorm import _BatchNorm
        import tercel
        x = torch.ones(2)
        assert torch.Tensor is tercel.Tensor and torch.nn is tercel.nn is sys.modules["torch.nn"]
        for thing in (x, torch.float32, x.shape, x.device, torch.strided, nn.Linear(1, 1), x.max(0), schedules.StepLR):
            kind = thing if isinstance(thing, type) else type(thing)
            assert kind.__module__.split(".")[0] == "torch", kind
        assert torch.add.__module__ == "torch" and torch.linalg.qr.__module__ == "torch.linalg"
        assert nn.functional.__name__ == "torch.nn.functional" and schedules.StepLR.__module__ == "torch.optim.lr_scheduler"
        print(torch.float32, x.shape, x.type(), torch.FloatTensor, torch.strided, torch.preserve_format)
        print(repr(x.max(0)).split("(")[0], repr(torch.Tensor.add), torch.Tensor)
        again = pickle.loads(pickle.dumps([x, torch.int8, torch.add, nn.Linear(1, 1), x.sort()]))
        assert again[1] is torch.int8 and again[2] is torch.add and type(again[4]) is type(x.sort())
        assert torch.__version__ == "2.15.0" == torch.version.__version__ == importlib.metadata.version("torch")
        assert torch.__version__ > (2, 9) and tercel.__version__ == tercel.version.__version__ != torch.__version__
        try:
            torch.nonsense
        except AttributeError as error:
            print(error)
        try:
            import torch.nonsense
        except ModuleNotFoundError as error:
            print(error)
    """)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "torch.float32 torch.Size([2]) torch.FloatTensor <class 'torch.FloatTensor'> torch.strided torch.preserve_format",
        "torch.return_types.max <method 'add' of 'torch.Tensor' objects> <class 'torch.Tensor'>",
        "module 'torch' has no attribute 'nonsense'", "No module named 'torch.nonsense'"]


def test_classes_are_where_pytorch_has_them(tmp_path):
    done = run(tmp_path, """
        import inspect, pickle, sys
        import torch
        import torch.nn.modules.linear
        from torch import nn
        from torch.nn.modules.batchnorm import _BatchNorm
        from torch.nn.modules.conv import _ConvNd
        from torch.optim.adam import Adam
        from torch.optim.lr_scheduler import StepLR
        from torch.optim.optimizer import Optimizer
        assert torch.nn.modules.linear.Linear is nn.Linear and Adam is torch.optim.Adam and isinstance(nn.LazyBatchNorm1d(), _BatchNorm)
        layers = dict.fromkeys("Linear Identity LazyLinear Bilinear".split(), "linear")
        layers.update(Embedding="sparse", EmbeddingBag="sparse", Conv2d="conv", LazyConv2d="conv", ConvTranspose1d="conv", MaxPool2d="pooling",
                      MaxUnpool1d="pooling", FractionalMaxPool2d="pooling", BatchNorm1d="batchnorm", LazyBatchNorm2d="batchnorm",
                      InstanceNorm1d="instancenorm", LayerNorm="normalization", Dropout2d="dropout", Flatten="flatten", Unfold="fold",
                      Upsample="upsampling", UpsamplingNearest2d="upsampling", PixelShuffle="pixelshuffle", ChannelShuffle="channelshuffle",
                      CosineSimilarity="distance", CosineEmbeddingLoss="loss", MultiheadAttention="activation", ReLU="activation",
                      Sequential="container", ModuleList="container", Module="module", LSTM="rnn", Transformer="transformer",
                      ZeroPad2d="padding", AdaptiveLogSoftmaxWithLoss="adaptive")
        classes = {getattr(nn, name): f"torch.nn.modules.{file}" for name, file in layers.items()}
        classes.update({getattr(torch.optim, name): f"torch.optim.{name.lower()}" for name in "Adam AdamW SGD RMSprop LBFGS".split()})
        classes.update({Optimizer: "torch.optim.optimizer", StepLR: "torch.optim.lr_scheduler", nn.Parameter: "torch.nn.parameter",
                        _BatchNorm: "torch.nn.modules.batchnorm", _ConvNd: "torch.nn.modules.conv"})
        for cls, where in classes.items():
            assert cls.__module__ == where and getattr(sys.modules[where], cls.__name__) is cls, (cls, where)
            assert pickle.loads(pickle.dumps(cls)) is cls
        assert pickle.loads(b"ctorch.nn.modules.pooling\\nFractionalMaxPool2d\\n.") is nn.FractionalMaxPool2d
        assert pickle.loads(b"ctorch.optim.sgd\\nSGD\\n.") is torch.optim.SGD and torch.optim.Ftrl.__module__ in sys.modules
        assert inspect.getsource(nn.Linear).startswith("class Linear") and inspect.getsource(Adam).startswith("class Adam")
        from torch._dynamo.eval_frame import OptimizedModule
        from torch.nn.common_types import _size_2_t
        torch._dynamo.config.suppress_errors = True
        assert isinstance(torch.compile(nn.ReLU()), OptimizedModule)
    """)
    assert done.returncode == 0, done.stderr


# What a program can observe of how it was started.
SEEN = "import sys, torch; print(__name__, sys.argv, sys.path[0], __file__ if '__file__' in globals() else None); print(__spec__)"


def test_a_program_starts_as_python_starts_it(tmp_path):
    source = SEEN.replace("torch", "json")
    (tmp_path / "program.py").write_text(source)
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "__init__.py").write_text("")
    (tmp_path / "inner" / "__main__.py").write_text(source)
    (tmp_path / "inner" / "part.py").write_text(source)
    with zipfile.ZipFile(tmp_path / "packed.zip", "w") as packed:
        packed.writestr("__main__.py", source)
    ways = [["program.py", "a", "-x"], ["./inner/part.py"], [str(tmp_path / "program.py")], ["-c", source, "-m", "x"],
            ["-m", "inner"], ["-m", "inner.part", "--flag"], ["inner"], ["packed.zip", "1"]]
    for way in ways:
        ours, pythons = python("-m", "tercel.torch", *way, cwd=tmp_path), python(*way, cwd=tmp_path)
        # Loaders are other objects; the rest of a spec is the same.
        spec = [text.split(" object at ")[0] for text in (ours.stdout, pythons.stdout)]
        assert ours.returncode == pythons.returncode == 0, ours.stderr
        assert spec[0] == spec[1], way
    ours, pythons = (python(*begin, "-", "1", cwd=tmp_path, source=source) for begin in (("-m", "tercel.torch"), ()))
    assert ours.stdout == pythons.stdout and ours.stdout.startswith("__main__ ['-', '1']")


@pytest.mark.parametrize("source, status", [
    ("sys.exit(3)", 3), ("sys.exit('words')", 1), ("sys.exit()", 0), ("1 / 0", 1), ("print(1", 1),
    ("raise KeyboardInterrupt", -signal.SIGINT), ("import os; os.kill(os.getpid(), 9)", -9),
    ("def f():\n    raise ValueError('of f')\ntry:\n    f()\nexcept ValueError as error:\n    raise KeyError(1) from error", 1),
    ("sys.excepthook = lambda kind, error, trace: print(kind, trace.tb_lineno)\nraise ValueError", 1),
    ("import atexit\nclass C: pass\natexit.register(lambda: print(sys.modules['__main__'].C))", 0)])
def test_ends_are_those_of_python(tmp_path, source, status):
    (tmp_path / "program.py").write_text("import sys\n" + source)
    ours, pythons = python("-m", "tercel.torch", "program.py", cwd=tmp_path), python("program.py", cwd=tmp_path)
    assert ours.returncode == pythons.returncode == status
    assert ours.stdout == pythons.stdout and ours.stderr == pythons.stderr


def test_command_lines_that_cannot_be_run(tmp_path):
    for way, status in ((["missing.py"], 2), (["-m", "missing"], 1), ([], 2), (["-c"], 2), (["--unknown"], 2), (["-m", "tercel.nn"], 1)):
        done = python("-m", "tercel.torch", *way, cwd=tmp_path)
        assert done.returncode == status and "Traceback" not in done.stderr and done.stderr, way
    help = python("-m", "tercel.torch", "--help")  # noqa: A001
    assert help.returncode == 0 and "python -m tercel.torch program.py" in help.stdout


def test_processes_that_it_starts_have_torch_too(tmp_path):
    done = run(tmp_path, """
        import torch
        import torch.multiprocessing as mp

        class Net(torch.nn.Linear):
            pass

        def work(index, net, queue):
            queue.put((index, type(net).__name__, net(torch.ones(2)).detach(), torch.__version__))

        if __name__ == "__main__":
            queue = mp.get_context("spawn").SimpleQueue()
            mp.spawn(work, (Net(2, 1), queue), nprocs=1)
            print(queue.get())
    """)
    assert done.returncode == 0, done.stderr
    assert "'Net', tensor([" in done.stdout and "2.15.0" in done.stdout


def test_from_within_a_program():
    code = "import tercel.torch; tercel.torch.install(); tercel.torch.install(); import torch; print(torch.ones(1).dtype)"
    assert python("-c", code).stdout == "torch.float32\n"
    taken = """if True:
        import sys, types
        sys.modules["torch"] = types.ModuleType("torch")
        sys.modules["torch"].__file__ = "/elsewhere/torch/__init__.py"
        from tercel.torch import install
        try:
            install()
        except ImportError as error:
            print(error)
        import tercel
        print(tercel.float32, "torch.nn" in sys.modules)
    """
    assert python("-c", taken).stdout.splitlines() == [
        "torch is already imported, from /elsewhere/torch/__init__.py: Tercel can take its name only before that",
        "tercel.float32 False"]


def test_the_extension_is_loaded_once(tmp_path):
    """Loads it as another package over the same files, as a copy of the file, and again under its own name."""
    os.symlink(os.path.dirname(tc.__file__), tmp_path / "torch")
    (tmp_path / "copied").mkdir()
    shutil.copy(tc._C.__file__, tmp_path / "copied")
    done = python("-c", textwrap.dedent("""
        import sys
        sys.path.insert(0, sys.argv[1])
        import tercel as tc
        for name in ("torch._C", "copied._C", "tercel._C"):
            before = sys.modules.pop(name, None)
            try:
                __import__(name)
            except ImportError as error:
                print(error)
            if before is not None:
                sys.modules[name] = before
        assert (tc.ones(2) + 1).tolist() == [2, 2] and tc.zeros(1, dtype=tc.int8).dtype is tc.int8
    """), str(tmp_path))
    assert done.returncode == 0, done.stderr
    message = "the extension of tercel is already loaded, as tercel._C: a process can load it only once, under one name"
    assert set(done.stdout.splitlines()) == {message}


def test_versions_are_compared_by_numbers():
    version = TorchVersion("2.15.0")
    assert version == "2.15.0" and version == "2.15" and version > "2.2" and version >= (2, 15) and not version < "2.9.1"
    assert version != "2.15.1" and version < "2.15.0.post1" and version > "2.15.0rc1" and version < (3,)
    assert version != 2 and version == "2.15.0+cpu" and hash(version) == hash("2.15.0") and version.split(".")[0] == "2"
    assert tc.torch_version.__version__ == version and isinstance(tc.torch_version.__version__, str)
    with pytest.raises(TypeError):
        version < 3
    assert version != "not a version" and version < "nothing"
