"""python -m tercel.hugectr: a script runs as by `python SCRIPT.py`."""

import os
import subprocess
import sys

import pytest


def run(folder, *arguments, module=True):
    command = [sys.executable, *(["-m", "tercel.hugectr"] if module else []), *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)


def script(folder, text, name="script.py"):
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


def test_the_script_sees_what_python_gives_it(tmp_path):
    text = ("import sys, os, __main__\n"
            "print(sys.argv, __name__, os.path.basename(__file__), sys.path[0], __main__.x if False else 'm')\n"
            "x = 3\nprint(__main__.x, __package__, __doc__, os.getcwd())\nimport beside\nprint(beside.value)\n")
    path = script(tmp_path, text, "folder/script.py")
    (tmp_path / "folder" / "beside.py").write_text("value = 5\n")
    plain = run(tmp_path, "folder/script.py", "--a", "b c", module=False)
    ours = run(tmp_path, "folder/script.py", "--a", "b c")
    assert plain.returncode == ours.returncode == 0, ours.stderr
    assert ours.stdout == plain.stdout and str(path.parent) in ours.stdout


def test_hugectr_and_mpi4py_are_found(tmp_path):
    script(tmp_path, "import hugectr\nfrom hugectr.tools import DataGenerator\nfrom hugectr.data import DataSource\n"
                     "import mpi4py\nfrom mpi4py import MPI\nimport mpi4py.MPI\n"
                     "c = MPI.COMM_WORLD\nprint(hugectr.__name__, c.Get_rank(), c.Get_size(), c.bcast([1]), c.rank)\n"
                     "c.Barrier()\nprint(c.allreduce(3, op=MPI.SUM), c.gather('x'))\n")
    result = run(tmp_path, "script.py")
    assert result.stdout == "tercel.hugectr 0 1 [1] 0\n3 ['x']\n", result.stderr


@pytest.mark.parametrize("text, code", [("import sys; sys.exit(7)", 7), ("raise SystemExit", 0),
                                        ("import sys; sys.exit('words')", 1), ("def f():\n    1 / 0\nf()\n", 1),
                                        ("x = = 3\n", 1), ("raise ValueError('é')", 1)])
def test_exit_codes_and_tracebacks_are_those_of_the_script(tmp_path, text, code):
    script(tmp_path, text)
    plain, ours = run(tmp_path, "script.py", module=False), run(tmp_path, "script.py")
    assert plain.returncode == ours.returncode == code
    assert ours.stderr == plain.stderr


def test_ctrl_c_ends_a_script_as_it_ends_python(tmp_path):
    text = "import signal, os\nsignal.signal(signal.SIGINT, signal.default_int_handler)\nos.kill(os.getpid(), 2)\n"
    script(tmp_path, text + "import time; time.sleep(5)\n")
    plain, ours = run(tmp_path, "script.py", module=False), run(tmp_path, "script.py")
    assert ours.returncode == plain.returncode
    assert "KeyboardInterrupt" in ours.stderr and "tercel" not in ours.stderr


def test_classes_of_the_script_can_be_pickled(tmp_path):
    script(tmp_path, "import pickle\nclass A: pass\nprint(type(pickle.loads(pickle.dumps(A()))) is A)\n")
    assert run(tmp_path, "script.py").stdout == "True\n"


def test_usage(tmp_path):
    assert run(tmp_path).returncode == 2 and "usage" in run(tmp_path).stderr
    assert "usage" in run(tmp_path, "--help").stdout
    missing = run(tmp_path, "none.py")
    assert missing.returncode == 2 and "cannot open 'none.py': No such file" in missing.stderr


def test_the_environment_is_left_alone(tmp_path):
    script(tmp_path, "import os\nprint(sorted(os.environ) == sorted(k for k in os.environ))\n"
                     "print({k: v for k, v in os.environ.items() if 'HCTR' in k or 'HUGECTR' in k})\n")
    before = dict(os.environ)
    assert run(tmp_path, "script.py").stdout == "True\n{}\n" and dict(os.environ) == before
