"""tools/check_isa_objects.py and cmake/IsolateIsa.cmake on made-up kernels."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CXX = os.environ.get("CXX", "g++")
FLAGS = {"generic": [], "avx2": ["-mavx2", "-mfma"], "avx512": ["-mavx512f", "-mavx512vl"]}

KERNEL = """
template <class T> __attribute__((noinline)) T twice(T x) { return x + x; }  // the same weak symbol for every set
namespace tercel::ISA {
inline int calls() { static int count = 0; return ++count; }  // unique, in the namespace
__attribute__((noinline)) inline float shared(float x) { return x * 3.0f + float(calls()); }
void scale(float* out, const float* in, long n) {
  for (long i = 0; i < n; ++i) out[i] = twice(in[i]) + shared(in[i]);
}
extern const int level;
const int level = 1;
}
"""


class IsaObjects(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.build = pathlib.Path(folder.name)
        (self.build / "isa").mkdir()

    def compile(self, text, isa, name, flags=()):
        source = self.build / f"{name}.cpp"
        source.write_text(text)
        path = self.build / f"{name}_{isa}.o"
        command = [CXX, "-std=c++20", "-O2", "-fPIC", "-c", source, "-o", path, f"-DISA=cpu_{isa}", *FLAGS[isa], *flags]
        if "clang" not in CXX:
            command.append("-fno-gnu-unique")
        subprocess.run(command, check=True)
        return path

    def isolate(self, isa, *objects, aliases=()):
        output = self.build / "isa" / f"tercel_ops_{isa}.o"
        tools = [f"-D{name}={os.environ.get(name, name.lower())}" for name in ("LD", "NM", "OBJCOPY")]
        command = ["cmake", *tools, f"-DISA=cpu_{isa}", f"-DALIASES={','.join(aliases)}", f"-DOUTPUT={output}"]
        command += ["-P", ROOT / "cmake/IsolateIsa.cmake", "--", *objects]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def isolate_all(self, text=KERNEL):
        for isa in FLAGS:
            result = self.isolate(isa, self.compile(text, isa, "kernel"))
            self.assertEqual(result.returncode, 0, result.stderr)

    def replace(self, isa, text, flags=()):
        """Replaces the isolated object by one that was not isolated."""
        self.compile(text, isa, "raw", flags).rename(self.build / "isa" / f"tercel_ops_{isa}.o")

    def check(self):
        command = [sys.executable, ROOT / "tools/check_isa_objects.py", self.build]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def assert_refused(self, expected):
        result = self.check()
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn(expected, result.stderr)

    def test_isolated_objects_pass_and_still_work(self):
        self.isolate_all()
        result = self.check()
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        main = """
          namespace tercel::cpu_generic { void scale(float*, const float*, long); extern const int level; }
          template <class T> T twice(T) { return T(1000); }  // would be the copy for everybody, if any leaked
          int main() {
            float in[2] = {1, 2}, out[2];
            tercel::cpu_generic::scale(out, in, 2);
            return out[0] == 6 && out[1] == 12 && twice(1.0f) == 1000 && tercel::cpu_generic::level == 1 ? 0 : 1;
          }"""
        source = self.build / "main.cpp"
        source.write_text(main)
        objects = sorted((self.build / "isa").glob("*.o"))
        subprocess.run([CXX, "-std=c++20", "-O0", source, *objects, "-o", self.build / "main"], check=True)
        self.assertEqual(subprocess.run([self.build / "main"], check=False).returncode, 0)

    def test_aliases_are_names_of_the_same_kernels(self):
        kernel = self.compile(KERNEL, "avx2", "kernel")
        result = self.isolate("avx2", kernel, aliases=("cpu_generic", "cpu_avx512"))
        self.assertEqual(result.returncode, 0, result.stderr)
        command = [os.environ.get("NM", "nm"), "-C", "--defined-only", "--extern-only", self.build / "isa/tercel_ops_avx2.o"]
        names = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        places = {}
        for line in names.splitlines():
            place, kind, name = line.split(maxsplit=2)
            places.setdefault((place, kind, name.split("::")[2]), []).append(name.split("::")[1])
        self.assertEqual(sorted((name, kind) for _, kind, name in places),
                         [("level", "R"), ("scale(float*, float const*, long)", "T")])
        for sets in places.values():
            self.assertEqual(sorted(sets), ["cpu_avx2", "cpu_avx512", "cpu_generic"])

    def test_object_that_was_not_isolated_is_refused(self):
        self.isolate_all()
        self.replace("avx512", KERNEL)
        self.assert_refused("tercel_ops_avx512.o: weak symbol: _Z5twiceIfET_S0_")

    def test_foreign_symbol_is_refused(self):
        self.isolate_all()
        self.replace("avx2", "namespace tercel::ISA { void f() {} } void stray() {}")
        self.assert_refused("tercel_ops_avx2.o: foreign global symbol: _Z5strayv")

    def test_call_of_another_set_is_refused(self):
        self.isolate_all()
        text = "namespace tercel::cpu_avx512 { void g(); } namespace tercel::ISA { void f() { cpu_avx512::g(); } }"
        self.replace("generic", text)
        self.assert_refused("tercel_ops_generic.o: calls into another instruction set: _ZN6tercel10cpu_avx5121gEv")

    def test_instruction_above_the_set_is_refused(self):
        self.isolate_all()
        text = "namespace tercel::ISA { void f(float* x) { for (int i = 0; i < 64; ++i) x[i] += 1; } }"
        self.replace("generic", text, ["-O3", "-mavx"])
        self.assert_refused("_ZN6tercel11cpu_generic1fEPf: instruction above its set: v")
        self.isolate_all()
        self.replace("avx2", text, ["-O3", "-mavx512f", "-mprefer-vector-width=512"])
        self.assert_refused("_ZN6tercel8cpu_avx21fEPf: instruction above its set: v")

    def test_instruction_above_the_baseline_is_refused_in_the_library(self):
        self.isolate_all()
        (self.build / "lib").mkdir()
        plain = self.compile("float f(float x) { return x * 2; }", "generic", "plain", ["-mavx"])
        objects = sorted((self.build / "isa").glob("*.o"))
        subprocess.run(["ar", "rcs", self.build / "lib/libtercel.a", *objects, plain], check=True)
        self.assert_refused("libtercel.a(plain_generic.o): _Z1ff: instruction above its set: v")

    def test_missing_set_is_refused(self):
        self.isolate_all()
        (self.build / "isa/tercel_ops_avx2.o").unlink()
        self.assert_refused("there is no such object for avx2")

    def test_kernels_without_a_strong_symbol_are_an_error(self):
        text = "namespace tercel::ISA { template <class T> void f(T*) {} template void f<float>(float*); }"
        result = self.isolate("avx2", self.compile(text, "avx2", "weak_only"))
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("an explicit instantiation of a template is weak", " ".join(result.stderr.split()))


if __name__ == "__main__":
    unittest.main()
