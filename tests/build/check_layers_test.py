"""tools/check_layers.py on made-up trees."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run_on(files):
    with tempfile.TemporaryDirectory() as folder:
        tree = pathlib.Path(folder)
        (tree / "cmake").mkdir()
        (tree / "cmake" / "TercelLayer.cmake").write_text((ROOT / "cmake" / "TercelLayer.cmake").read_text())
        for name, text in files.items():
            path = tree / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return subprocess.run(
            [sys.executable, ROOT / "tools" / "check_layers.py", tree], capture_output=True, text=True, check=False
        )


class CheckLayers(unittest.TestCase):
    def assert_refused(self, files, *expected):
        result = run_on(files)
        self.assertEqual(result.returncode, 1, result)
        for part in expected:
            self.assertIn(part, result.stderr)

    def assert_accepted(self, files):
        result = run_on(files)
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_downward_and_own_includes_are_accepted(self):
        self.assert_accepted(
            {
                "tercel/util/span.h": "#include <vector>\n",
                "tercel/core/tensor.h": '#include "tercel/util/span.h"\n#include "tercel/core/device.h"\n',
                "tercel/ops/elementwise/cpu/x_kernels.cpp": '#include "tercel/ops/elementwise/unary_ops.h"\n#include "tercel/core/tensor.h"\n',
                "tercel/recsys/layers/mlp.cpp": '#include "tercel/nn/mlp.h"\n#include "tercel/data/batch.h"\n',
                "tercel/data/reader.cpp": '#include "tercel/core/tensor.h"\n',
                "tests/recsys/mlp_test.cpp": '#include "tercel/recsys/layers/mlp.h"\n',
                "cli/main.cpp": '#include "tercel/recsys/trainer.h"\n',
            }
        )

    def test_upward_include_is_refused_with_its_place(self):
        self.assert_refused(
            {"tercel/core/tensor.cpp": '#include "tercel/util/span.h"\n\n#include "tercel/ops/elementwise/unary.h"\n'},
            "tercel/core/tensor.cpp:3: core (10) may not include ops (30)",
        )

    def test_layers_of_one_rank_are_strangers(self):
        self.assert_refused({"tercel/nn/linear.h": '#include "tercel/optim/sgd.h"\n'}, "nn (40) may not include optim (40)")

    def test_data_sees_core_only(self):
        self.assert_refused({"tercel/data/reader.h": '#include "tercel/ops/views/views.h"\n'}, "data (40) may not include ops (30)")

    def test_subfolders_spaces_and_angle_brackets_are_seen(self):
        self.assert_refused({"tercel/ops/cpu/a.h": "  #  include <tercel/nn/mlp.h>\n"}, "tercel/ops/cpu/a.h:1")

    def test_families_see_each_others_public_headers(self):
        self.assert_accepted(
            {
                "tercel/ops/nn/a.cpp": '#include "tercel/ops/reduce/reduce.h"\n#include "tercel/ops/nn/a_impl.h"\n'
                '#include "tercel/ops/common/b_impl.h"\n#include "tercel/ops/linalg/gemm_impl.h"\n',
                "tercel/ops/nn/cpu/a_kernels.cpp": '#include "tercel/ops/common/cpu/vec.h"\n#include "tercel/ops/nn/a_kernels.h"\n',
                "tercel/ops/common/b.cpp": '#include "tercel/ops/elementwise/unary_ops.h"\n',
            }
        )

    def test_families_do_not_see_each_others_private_headers(self):
        for header in ("reduce/reduce_impl.h", "reduce/reduce_kernels.h", "reduce/cpu/vec.h", "reduce/cuda/a.cuh"):
            for user in ("nn", "common"):
                self.assert_refused(
                    {f"tercel/ops/{user}/cpu/a.h": f'\n#include "tercel/ops/{header}"\n'},
                    f"tercel/ops/{user}/cpu/a.h:2: {user} may not include {header}, which is private",
                )
        self.assert_refused({"tercel/ops/print.cpp": '#include "tercel/ops/nn/a_impl.h"\n'}, "ops may not include nn/a_impl.h")
        self.assert_refused({"tercel/ops/reduce/a.cpp": '#include "tercel/ops/linalg/gemm_impl.h"\n'}, "reduce may not include")

    def test_umbrella_header_is_for_those_above_the_library(self):
        self.assert_accepted({"tests/cli/a_test.cpp": '#include "tercel/tercel.h"\n'})
        self.assert_refused({"tercel/recsys/a.h": '#include "tercel/tercel.h"\n'}, "umbrella")

    def test_library_does_not_see_the_program(self):
        self.assert_refused({"tercel/recsys/a.h": '#include "cli/command.h"\n'}, "recsys (50) may not include cli (60)")

    def test_tests_see_no_higher_layer(self):
        self.assert_refused({"tests/core/a_test.cpp": '#include "tercel/ops/elementwise/unary.h"\n'}, "tests/core/a_test.cpp:1")

    def test_unknown_layers_are_refused(self):
        self.assert_refused({"tercel/misc/a.h": "\n"}, "tercel/misc: not a layer")
        self.assert_refused({"tercel/core/a.h": '#include "tercel/misc/a.h"\n'}, "unknown layer 'misc'")


if __name__ == "__main__":
    unittest.main()
