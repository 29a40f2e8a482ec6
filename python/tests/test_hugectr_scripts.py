"""The scripts of examples/hugectr, run by python -m tercel.hugectr, reach what their data allows."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "hugectr"
# Every sample of HugeCTR: the script and its arguments.
CASES = [
    "wdl", "wdl --gpus 8", "wdl --format norm", "dcn", "dcn --embedding localized --gpus 2",
    "dcn --embedding localized --gpus 8 --nodes 2", "deepfm", "criteo", "criteo --data norm",
    "criteo --data multi_slots", "ncf", "ncf --model gmf", "ncf --model neumf", "din", "din --pooling matmul", "bst",
    "bst --pooling concat", "mmoe", "mmoe --shared-bottom", "dlrm", "dlrm_ftrl",
    "dlrm_ftrl --optimizer ftrl --shard_plan hybrid", "dlrm_dcnv2"]
# Scripts, and cases of others, whose files are not Parquet.
WITHOUT_PARQUET = ("ncf", "dlrm", "dlrm_ftrl", "dlrm_dcnv2", "wdl --format norm", "criteo --data norm",
                   "criteo --data multi_slots")


def run(name, folder, *arguments):
    command = [sys.executable, "-m", "tercel.hugectr", str(EXAMPLES / f"{name}.py"), *arguments]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600, env=dict(os.environ))
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.parametrize("case", CASES)
def test_script(case, tmp_path):
    name, *arguments = case.split()
    if not {name, case} & set(WITHOUT_PARQUET):
        pytest.importorskip("pyarrow")
    text = run(name, tmp_path, *arguments)
    possible = [float(auc) for auc in re.findall(r"eval data: .*probabilities ([0-9., ]+)", text)[0].split(", ")]
    # Of several labels, each has its AUC behind their mean.
    each = r"Evaluation, AUC of \S+: ([0-9.]+)" if len(possible) > 1 else r"Evaluation, AUC: ([0-9.]+)"
    reached = [float(auc) for auc in re.findall(each, text)[-len(possible):]]
    assert len(reached) == len(possible)
    for truth, auc in zip(possible, reached):
        assert truth > 0.75
        assert auc - 0.5 > 0.95 * (truth - 0.5), (auc, truth)
    if case == "wdl":
        assert [layer["type"] for layer in json.loads((tmp_path / "wdl_data/wdl.json").read_text())["layers"]][:3] == [
            "Data", "DistributedSlotSparseEmbeddingHash", "DistributedSlotSparseEmbeddingHash"]
    if name == "dlrm_dcnv2":
        assert "training starts" in text and "training ends after iteration 1199" in text
        assert (tmp_path / "dcnv2_data/dump/embedding_collection_0/meta_data").exists()
    if name == "ncf":
        assert len(re.findall(r"Evaluation, HitRate: ", text)) == 4


def test_every_example_is_run():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {case.split()[0] for case in CASES}


def test_a_size_option_makes_a_large_script_fit(tmp_path):
    command = [sys.executable, "-m", "tercel.hugectr", str(EXAMPLES / "dlrm_dcnv2.py")]
    result = subprocess.run([*command, "--vocabulary", "40000000", "--ev_size", "4096"], cwd=tmp_path,
                            capture_output=True, text=True, timeout=600)
    assert result.returncode == 1
    last = result.stderr.strip().splitlines()[-1]
    assert re.search(r"OutOfMemoryError: Model: the 26 embedding tables need 34078\.7 GB .* are free; the largest",
                     last)
    assert "Finish 4 iterations" in run("dlrm_dcnv2", tmp_path, "--iterations", "4")
