"""
tercel export and tercel import against files that NumPy lays out and reads, without code of Tercel.

The program is the one in TERCEL_PROGRAM, or in bin beside the package of a build folder.
"""

import json
import os
import pathlib
import subprocess

import numpy as np
import pytest
import tercel
import tercel.data as td
import tercel.recsys as tr

PROGRAM = pathlib.Path(os.environ.get("TERCEL_PROGRAM", pathlib.Path(tercel.__file__).parents[2] / "bin" / "tercel"))
WIDTH, DENSE, SLOTS = 3, 4, 5

pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason="needs the program of a build folder")


def program(*words, code=0):
    done = subprocess.run([str(PROGRAM), *map(str, words)], capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exchange")
    program("generate", folder / "data", "--preset", "small", "--rows", "3000", "--quiet")
    graph = {"model_name": "small", "layers": [
        {"type": "Data", "label": {"top": "label", "label_dim": 1}, "dense": {"top": "dense", "dense_dim": DENSE},
         "sparse": [{"top": "keys", "slot_num": SLOTS, "nnz_per_slot": [1] * SLOTS, "is_fixed_length": True}]},
        {"type": "LocalizedSlotSparseEmbeddingHash", "bottom": "keys", "top": "emb", "sparse_embedding_hparam": {
            "embedding_vec_size": WIDTH, "combiner": "sum", "max_vocabulary_size_global": KINDS["static"]}},
        {"type": "Reshape", "bottom": "emb", "top": "flat", "leading_dim": SLOTS * WIDTH},
        {"type": "BatchNorm", "bottom": "dense", "top": "normal", "bn_param": {"factor": 0.9, "eps": 1e-5}},
        {"type": "Concat", "bottom": ["flat", "normal"], "top": "all"},
        {"type": "InnerProduct", "bottom": "all", "top": "logit", "fc_param": {"num_output": 1}},
        {"type": "BinaryCrossEntropyLoss", "bottom": ["logit", "label"], "top": "loss"}]}
    for name, rows in KINDS.items():
        graph["layers"][1]["sparse_embedding_hparam"]["max_vocabulary_size_global"] = rows
        (folder / f"{name}.json").write_text(json.dumps(graph))
    return folder


KINDS = {"static": 0, "hashed": -1}


@pytest.fixture(scope="module")
def content(root):
    """Random weights, by name, with all keys of the data."""
    keys = td.Dataset(root / "data").schema.num_keys
    random = np.random.default_rng(7)
    return {"emb": random.normal(size=(keys, WIDTH)).astype("<f4"),
            "normal.gamma": random.normal(size=DENSE).astype("<f4"),
            "normal.beta": random.normal(size=DENSE).astype("<f4"),
            "normal.running_mean": random.normal(size=DENSE).astype("<f4"),
            "normal.running_var": random.uniform(0.5, 2, size=DENSE).astype("<f4"),
            "logit.weight": random.normal(size=(SLOTS * WIDTH + DENSE, 1)).astype("<f4"),
            "logit.bias": random.normal(size=1).astype("<f4")}


def expected(root, weights):
    """Probabilities of the test rows, in float64."""
    out = []
    for batch in td.Dataset(root / "data").batches("test", batch_size=64):
        keys = next(iter(batch.inputs.values())).keys.numpy().reshape(-1, SLOTS)
        dense = batch.dense.numpy().astype("f8")
        normal = ((dense - weights["normal.running_mean"]) / np.sqrt(weights["normal.running_var"] + 1e-5)
                  * weights["normal.gamma"] + weights["normal.beta"])
        flat = weights["emb"].astype("f8")[keys].reshape(len(keys), -1)
        logit = np.concatenate([flat, normal], axis=1) @ weights["logit.weight"].astype("f8") + weights["logit.bias"]
        out.append(1 / (1 + np.exp(-logit[:, 0])))
    return np.concatenate(out)


def predictions(root, run):
    program("predict", run, root / "data", "--out", run / "p.npy", "--quiet")
    return np.load(run / "p.npy")


def write_safetensors(path, tensors):
    """By the format's description: a length, a JSON header, then the bytes."""
    kinds, header, data = {"<f4": "F32", "<i8": "I64", "<f8": "F64"}, {}, b""
    for name, values in tensors.items():
        header[name] = {"dtype": kinds[values.dtype.str], "shape": list(values.shape),
                        "data_offsets": [len(data), len(data) + values.nbytes]}
        data += values.tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(np.uint64(len(text)).tobytes() + text + data)


def write_hugectr(folder, weights, keys):
    """As HugeCTR's manual and readers have it; keys in any order."""
    folder.mkdir()
    order = ["normal.gamma", "normal.beta", "logit.weight", "logit.bias"]
    (folder / "x_dense_30.model").write_bytes(b"".join(weights[name].tobytes() for name in order))
    statistics = {"type": "BatchNorm", "mean": weights["normal.running_mean"].tolist(),
                  "var": weights["normal.running_var"].tolist()}
    (folder / "x_dense_30.model.ntp.json").write_text(json.dumps({"layers": [statistics]}))
    table = folder / "x0_sparse_30.model"
    table.mkdir()
    keys.astype("<i8").tofile(table / "key")
    weights["emb"][keys].tofile(table / "emb_vector")
    np.zeros(len(keys), "<u8").tofile(table / "slot_id")


@pytest.mark.parametrize("kind", list(KINDS))
def test_models_of_an_independent_program(root, content, tmp_path, kind):
    keys = np.random.default_rng(3).permutation(len(content["emb"]))
    write_hugectr(tmp_path / "hugectr", content, keys)
    tensors = dict(content)
    if kind == "hashed":
        tensors["emb"], tensors["emb.keys"] = content["emb"][keys], keys.astype("<i8")
    write_safetensors(tmp_path / "m.safetensors", tensors)
    views = {name: tercel.from_numpy(np.repeat(values, 2, axis=0))[::2] for name, values in tensors.items()}
    tercel.save(views, str(tmp_path / "m.pt"))
    wanted = expected(root, content)
    assert 0.1 < wanted.std()
    for files in ("hugectr", "m.safetensors", "m.pt"):
        run = tmp_path / f"{files}-run"
        program("import", tmp_path / files, run, "--data", root / "data", "--model", root / f"{kind}.json")
        found = predictions(root, run)
        assert np.abs(found - wanted).max() < 1e-6, files


@pytest.mark.parametrize("kind", list(KINDS))
def test_files_are_read_by_an_independent_program(root, tmp_path, kind):
    program("train", root / "data", "--model", root / f"{kind}.json", "--out", tmp_path / "run", "--epochs", "1",
            "--batch-size", "100", "--lr", "0.05", "--optimizer", "Adam", "--quiet")
    model = tr.load_model(tmp_path / "run")
    found = predictions(root, tmp_path / "run")
    for name in ("out", "m.safetensors", "m.pt"):
        program("export", tmp_path / "run", tmp_path / name)
    # HugeCTR's files.
    folder, step = tmp_path / "out", model.step
    dense = np.fromfile(folder / f"model_dense_{step}.model", "<f4")
    n = SLOTS * WIDTH + DENSE
    weights = {"normal.gamma": dense[:DENSE], "normal.beta": dense[DENSE:2 * DENSE],
               "logit.weight": dense[2 * DENSE:2 * DENSE + n].reshape(n, 1), "logit.bias": dense[2 * DENSE + n:]}
    assert weights["logit.bias"].size == 1
    row = json.loads((folder / f"model_dense_{step}.model.ntp.json").read_text())["layers"][0]
    weights["normal.running_mean"], weights["normal.running_var"] = np.float32(row["mean"]), np.float32(row["var"])
    keys = np.fromfile(folder / f"model0_sparse_{step}.model/key", "<i8")
    vectors = np.fromfile(folder / f"model0_sparse_{step}.model/emb_vector", "<f4").reshape(-1, WIDTH)
    weights["emb"] = np.zeros((td.Dataset(root / "data").schema.num_keys, WIDTH), "f4")
    weights["emb"][keys] = vectors
    assert np.abs(found - expected(root, weights)).max() < 1e-6
    assert os.path.getsize(folder / f"model0_opt_sparse_{step}.model") == 2 * vectors.nbytes
    count = dense.size
    assert os.path.getsize(folder / f"model_opt_dense_{step}.model") == -(-4 * count // 256) * 256 + 4 * count
    slots = np.fromfile(folder / f"model0_sparse_{step}.model/slot_id", "<u8")
    firsts = [slot.first_key for slot in td.Dataset(root / "data").schema.slots]
    wanted = np.searchsorted(firsts, keys, side="right") - 1 if kind == "static" else np.zeros(len(keys))
    assert np.array_equal(slots, wanted)
    # The safetensors file, by the format's description.
    raw = (tmp_path / "m.safetensors").read_bytes()
    length = int(np.frombuffer(raw[:8], "<u8")[0])
    header, data = json.loads(raw[8:8 + length]), raw[8 + length:]
    assert header.pop("__metadata__") == {"format": "pt", "model_name": "small", "step": str(step)}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        values = np.frombuffer(data[begin:end], {"F32": "<f4", "I64": "<i8"}[entry["dtype"]]).reshape(entry["shape"])
        if name == "emb.keys":
            assert np.array_equal(values, keys)
        else:
            assert np.array_equal(values, vectors if name == "emb" else weights[name]), name
    names = set(header)
    assert names == set(weights) | ({"emb.keys"} if kind == "hashed" else set())


@pytest.mark.parametrize("package", ["torch", "safetensors.numpy"])
def test_packages_read_them(root, tmp_path, package):
    reader = pytest.importorskip(package)
    program("train", root / "data", "--model", root / "hashed.json", "--out", tmp_path / "run", "--epochs", "1",
            "--batch-size", "100", "--quiet")
    path = tmp_path / ("m.pt" if package == "torch" else "m.safetensors")
    program("export", tmp_path / "run", path)
    found = reader.load(path, weights_only=True) if package == "torch" else reader.load_file(path)
    model = tr.load_model(tmp_path / "run")
    keys, vectors = model.table_rows("emb")
    wanted = {**model.parameters(), **model.buffers(), "emb": vectors, "emb.keys": keys}
    assert set(found) == set(wanted)
    for name, values in wanted.items():
        assert np.array_equal(np.asarray(found[name]), values.numpy()), name


def test_refusals(root, content, tmp_path):
    write_hugectr(tmp_path / "hugectr", content, np.arange(len(content["emb"])))
    (tmp_path / "hugectr/x0_sparse_30.model/emb_vector").write_bytes(b"1234")
    words = ("import", tmp_path / "hugectr", tmp_path / "run", "--data", root / "data", "--model")
    assert "emb_vector: expected" in program(*words, root / "static.json", code=3)
    assert not (tmp_path / "run").exists()
    write_safetensors(tmp_path / "m.safetensors", {**content, "logit.bias": np.zeros(1, "<i8")})
    words = ("import", tmp_path / "m.safetensors", tmp_path / "run", "--data", root / "data", "--model")
    assert "tensor 'logit.bias': expected [1] of floating-point numbers" in program(*words, root / "static.json",
                                                                                    code=3)
    write_safetensors(tmp_path / "m.safetensors", content)
    assert "expected a tensor 'emb.keys'" in program(*words, root / "hashed.json", code=3)
    assert not (tmp_path / "run").exists()
