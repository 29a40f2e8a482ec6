"""The compile commands of a build folder, one for each source of Tercel."""

import copy
import json
import pathlib
import shlex

ROOT = pathlib.Path(__file__).resolve().parent.parent
KERNEL_ISA = "avx2"


class Command:
    """The compile command of a source: the compiler and its flags, without source, output and launcher."""

    def __init__(self, entry):
        self.path = pathlib.Path(entry["directory"], entry["file"]).resolve()
        self.folder = entry["directory"]
        words = shlex.split(entry["command"])
        self.compiler = next(word for word in words if pathlib.Path(word).name.rstrip("-0123456789.").endswith(("++", "nvcc")))
        flags = words[words.index(self.compiler) + 1 :]
        self.flags = []
        skip = False
        for flag in flags:
            if skip or flag in ("-o", "-c"):
                skip = flag == "-o"
            elif not flag.endswith(entry["file"]):
                self.flags.append(flag)

    def isa(self):
        """The instruction set of a kernel source, None for all others."""
        return next((flag[len("-DTERCEL_ISA=cpu_") :] for flag in self.flags if flag.startswith("-DTERCEL_ISA=")), None)

    def relative(self):
        return self.path.relative_to(ROOT)


def load(build):
    """One command for each C++ source below ROOT, sorted by path: the AVX2 one for kernels; fuzz targets, which only the
    preset `asan` builds, get the flags of another source."""
    path = pathlib.Path(build, "compile_commands.json")
    if not path.exists():
        raise SystemExit(f"{path} does not exist: configure the build first (scripts/build)")
    commands = {}
    for entry in json.loads(path.read_text()):
        command = Command(entry)
        if command.path.suffix != ".cpp" or not command.path.is_relative_to(ROOT) or command.path.is_relative_to(ROOT / "build"):
            continue
        if command.isa() in (None, KERNEL_ISA):
            commands[command.path] = command
    plain = next((command for command in commands.values() if command.isa() is None), None)
    for path in (ROOT / "fuzz").glob("*.cpp") if plain else ():
        if path not in commands:
            commands[path] = copy.copy(plain)
            commands[path].path = path
    return [commands[path] for path in sorted(commands)]
