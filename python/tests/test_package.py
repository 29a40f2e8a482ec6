"""The package as a whole: import time, types, interpreter shutdown, wheel."""

import ast
import os
import pathlib
import re
import subprocess
import sys
import textwrap
import time

import pytest

import tercel as tc

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parent.parent


def run(code, *options):
    return subprocess.run([sys.executable, *options, "-c", textwrap.dedent(code)], capture_output=True, text=True,
                          timeout=120)


def test_importing_is_quick_and_needs_nothing():
    done = run("""
        import sys
        import tercel as tc
        assert "numpy" not in sys.modules
        assert tc.tensor([1, 2]).tolist() == [1, 2] and "tensor" in repr(tc.ones(1))
    """)
    assert done.returncode == 0, done.stderr
    best = min(float(run("""
        import numpy, time
        begin = time.process_time()
        import tercel
        print(time.process_time() - begin)
    """).stdout) for _ in range(5))
    assert best < 0.2  # 0.04 on an idle machine; benchmarks/python_ops.py measures


@pytest.mark.parametrize("option", ["", "-O"])
def test_a_process_may_end_with_running_threads(option):
    done = run("""
        import threading
        import tercel as tc
        def work():
            x = tc.ones(100, 100, requires_grad=True)
            while True:
                y = (x @ x).relu()
                y.note = 1
                y.sum().backward()
        for _ in range(3):
            threading.Thread(target=work, daemon=True).start()
        w = tc.ones(2, requires_grad=True)
        w.grad = tc.ones(2)
        w.grad.note = w
        import time
        time.sleep(0.2)
    """, *([option] if option else []))
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_works():
    done = run("""
        import io, os, warnings
        warnings.simplefilter("ignore")
        import tercel as tc
        def save(t):
            file = io.BytesIO()
            tc.save(t, file)
            file.seek(0)
            return file
        save(tc.ones(1000))
        big = tc.ones(1000, 1000)
        big.sum().item()
        child = os.fork()
        if child == 0:
            w = tc.ones(1000, 1000, requires_grad=True)
            (w @ big).sum().backward()
            tc.load(save(w.grad))
            os._exit(0 if (big + big).sum().item() == 2e6 and w.grad[0, 0].item() == 1000 else 1)
        assert os.waitpid(child, 0)[1] == 0
    """)
    assert done.returncode == 0, done.stderr


def test_large_operations_let_other_threads_run():
    import threading
    ticks = []
    done = threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    x = tc.ones(1500, 1500)
    before = len(ticks)
    begin = time.perf_counter()
    while time.perf_counter() - begin < 0.5:
        x @ x
    after = len(ticks)
    done.set()
    thread.join()
    assert after - before > 5


def oldest_python():
    """The version that pyproject.toml promises."""
    project = ROOT / "pyproject.toml"
    return tuple(map(int, re.search(r'requires-python = ">=([0-9]+)\.([0-9]+)"', project.read_text()).groups()))


def newer_parts(source, oldest):
    """Syntax and expressions that the oldest supported Python does not accept."""
    try:
        tree = ast.parse(source, feature_version=oldest)
    except SyntaxError as error:
        return [f"{error.lineno}: {error.msg}"]
    found = []
    names = {"bit_count", "pairwise", "add_note", "aiter", "anext", "tomllib", "StrEnum", "EncodingWarning"}
    keywords = {("zip", "strict"), ("dataclass", "slots"), ("dataclass", "kw_only"), ("bisect", "key")}
    later = any(isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in tree.body)
    for node in ast.walk(tree):
        name = getattr(node, "attr", None) or getattr(node, "id", None)
        if name in names:
            found.append(f"{node.lineno}: {name}")
        if isinstance(node, ast.Call):
            called = getattr(node.func, "attr", None) or getattr(node.func, "id", None)
            found += [f"{node.lineno}: {called}({k.arg}=)" for k in node.keywords if (called, k.arg) in keywords]
        for annotation in (getattr(node, "annotation", None), getattr(node, "returns", None)):
            if annotation and not later and any(isinstance(part, ast.BitOr) for part in ast.walk(annotation)):
                found.append(f"{annotation.lineno}: A | B is evaluated")
    return found


@pytest.mark.parametrize("source, count", [
    ("match 1:\n    case 1: pass", 1), ("def f(x: int | None) -> int | None: pass", 2), ("x: int | None = 1", 1),
    ("from __future__ import annotations\nx: int | None = 1", 0), ("x = zip(a, b, strict=True)", 1),
    ("x = (1).bit_count()", 1), ("x: 'int' = {} | {}", 0), ("with (a as b, c as d): pass", 0)])
def test_newer_parts_are_found(source, count):
    assert len(newer_parts(source, (3, 9))) == count


def test_the_oldest_python_reads_all_of_it():
    oldest = oldest_python()
    files = [*(ROOT / "python").rglob("*.py"), *(ROOT / "tools").glob("*.py")]
    assert len(files) > 100
    found = {str(file.relative_to(ROOT)): newer_parts(file.read_text(encoding="utf-8"), oldest) for file in files}
    assert {file: parts for file, parts in found.items() if parts} == {}


def test_types_are_known():
    mypy = pytest.importorskip("mypy.api")
    from mypy.defaults import PYTHON3_VERSION_MIN
    for version in {max(oldest_python(), PYTHON3_VERSION_MIN), sys.version_info[:2]}:  # mypy's own oldest may be later
        out, errors, status = mypy.run(["--strict", "--no-error-summary", "--cache-dir", os.devnull, "--python-version",
                                        "{}.{}".format(*version), str(HERE / "sample.py")])
        assert status == 0, out + errors
    bad = HERE / "sample.py"
    wrong = bad.read_text() + "\ntc.add(1, 2, 3)\n"
    out, _, status = mypy.run(["--cache-dir", os.devnull, "-c", wrong])
    assert status != 0 and "add" in out


def test_a_wheel_of_the_tree_installs(tmp_path):
    """Builds with pip into a separate folder; the existing build folder avoids a second compilation."""
    build = pathlib.Path(tc.__file__).parents[2]
    if not (build / "CMakeCache.txt").exists():
        pytest.skip("the package is installed: there is no build folder")
    command = [sys.executable, "-m", "pip", "install", "--no-build-isolation", "--no-deps", "--quiet", "--target",
               str(tmp_path), str(ROOT)]
    subprocess.run(command, check=True, timeout=1200, env={**os.environ, "SKBUILD_BUILD_DIR": str(build)})
    done = subprocess.run([sys.executable, "-c", "import tercel; print(tercel.__file__, tercel.ones(2).sum().item())"],
                          capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(tmp_path)}, cwd=tmp_path)
    assert done.stdout.split() == [str(tmp_path / "tercel" / "__init__.py"), "2.0"], done.stderr
    (extension,) = (tmp_path / "tercel").glob("_C.*.so")
    assert str(ROOT).encode() not in extension.read_bytes()  # no paths of the build folder
    assert (tmp_path / "tercel" / "_C.pyi").exists() and (tmp_path / "tercel" / "py.typed").exists()
