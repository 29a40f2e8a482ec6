"""Files of tensors: compared with NumPy's reader and writer, damaged, and as file objects."""

import collections
import io
import pathlib
import zipfile

import numpy as np
import pytest

import tercel as tc
from tercel.io import load_npy, load_npz, save_npy, save_npz

DTYPES = [tc.bool, tc.uint8, tc.int8, tc.int16, tc.int32, tc.int64, tc.float16, tc.float32, tc.float64]
SHAPES = [(), (0,), (5,), (2, 3), (2, 0, 3)]


def numbers(shape, dtype):
    n = tc.Size(shape).numel()
    return (tc.arange(n) % 2 if dtype is tc.bool else tc.arange(n)).to(dtype).view(shape)


def back(obj, **options):
    file = io.BytesIO()
    tc.save(obj, file)
    file.seek(0)
    return tc.load(file, **options)


@pytest.mark.parametrize("dtype", [*DTYPES, tc.bfloat16])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("mmap", [False, True])
def test_tensors_come_back(tmp_path, dtype, shape, mmap):
    x = numbers(shape, dtype)
    path = tmp_path / "x.pt"
    tc.save(x, path)
    y = tc.load(path, mmap=mmap)
    assert y.dtype is dtype and y.shape == x.shape and y.tolist() == x.tolist()


def test_objects_come_back():
    x = tc.arange(3.0)
    obj = {
        "none": None, "yes": True, "int": -2**63, "float": 0.1, "text": "gr\u00fc\u00df", "bytes": bytes(range(256)),
        "empty": b"", "list": [1, [2, ()]], "tuple": (1, "a", 3, 4), "size": x.shape, "dtype": tc.int16,
        "device": tc.device("cpu"), 5: x, (1, b"k"): collections.OrderedDict(b=1, a=2),
    }
    got = back(obj)
    tensor, want = got.pop(5), dict(obj)
    del want[5]
    assert got == want and list(got) == list(want) and tensor.tolist() == [0, 1, 2]
    assert type(got["size"]) is tc.Size and type(got[1, b"k"]) is collections.OrderedDict
    assert type(got["yes"]) is bool and got["dtype"] is tc.int16 and list(got[1, b"k"]) == ["b", "a"]


def test_sharing_comes_back():
    x = tc.arange(6.0)
    inner = [1]
    got = back({"x": x, "view": x.view(2, 3)[:, 1], "again": x, "a": inner, "b": inner})
    got["x"][4] = 50
    assert got["view"].tolist() == [1, 50] and got["view"].stride() == (3,) and got["again"] is got["x"]
    assert got["a"] is got["b"]


def test_requires_grad_comes_back():
    w = tc.ones(2, requires_grad=True)
    got = back([w, w.detach()])
    assert got[0].requires_grad and got[0].is_leaf and not got[1].requires_grad


def test_a_state_dict(tmp_path):
    state = collections.OrderedDict(weight=tc.ones(2, 3), bias=tc.zeros(2))
    path = tmp_path / "model.pt"
    tc.save(state, str(path))
    with open(path, "rb") as file:
        got = tc.load(file, map_location="cpu", weights_only=True)
    assert type(got) is collections.OrderedDict and list(got) == ["weight", "bias"]
    assert got["weight"].tolist() == [[1, 1, 1], [1, 1, 1]]


class Own:
    pass


def test_parameters_modules_and_optimizers(tmp_path):
    nn = tc.nn
    w, frozen = nn.Parameter(tc.ones(2)), nn.Parameter(tc.ones(3), requires_grad=False)
    got = back({"w": w, "frozen": frozen, "data": w.detach()})
    assert type(got["w"]) is type(got["frozen"]) is nn.Parameter and type(got["data"]) is tc.Tensor
    assert got["w"].requires_grad and not got["frozen"].requires_grad
    assert got["w"].data_ptr() == got["data"].data_ptr()

    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    optimizer = tc.optim.Adam(model.parameters(), lr=0.1)
    model(tc.rand(5, 3)).sum().backward()
    optimizer.step()
    path = tmp_path / "training.pt"
    tc.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": 1}, path)
    state = tc.load(path)
    fresh = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    fresh.load_state_dict(state["model"])
    other = tc.optim.Adam(fresh.parameters())
    other.load_state_dict(state["optimizer"])
    x = tc.rand(5, 3)
    for net, steps in ((model, optimizer), (fresh, other)):
        steps.zero_grad()
        net(x).sum().backward()
        steps.step()
    for name, value in model.state_dict().items():
        assert fresh.state_dict()[name].tolist() == value.tolist(), name


class Named(tc.Tensor):
    pass


@pytest.mark.parametrize("obj, name", [
    (Own(), "Own"), (Named([1.0]), "Named"), ({"a": [Own()]}, "Own"), ({1, 2}, "set"), (1j, "complex"), (np.float64(1), "numpy.float64"),
    (collections.defaultdict(list), "collections.defaultdict"), (np.ones(2), "numpy.ndarray"), (len, "builtin"),
])
def test_other_objects_are_named(tmp_path, obj, name):
    path = tmp_path / "x.pt"
    with pytest.raises(TypeError, match=f"cannot save an object of type .*{name}"):
        tc.save(obj, path)
    assert not path.exists()


def test_what_cannot_be_in_a_file():
    loop = []
    loop.append(loop)
    with pytest.raises(ValueError, match="contains itself"):
        back(loop)
    deep = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(ValueError, match="containers inside each other"):
        back(deep)
    with pytest.raises(ValueError, match="does not fit"):
        back(2**63)
    with pytest.raises(UnicodeEncodeError):
        back("\ud800")
    with pytest.raises(TypeError, match="write"):
        tc.save(1, 5)
    with pytest.raises(TypeError, match="read"):
        tc.load(5)


def test_nothing_in_a_file_is_run(tmp_path):
    path = tmp_path / "evil.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02cos\nsystem\nX\x04\0\0\0true\x85R.")
    for weights_only in (True, False):
        with pytest.raises(tc.DataError, match="os.system, which could be anything and is not run"):
            tc.load(path, weights_only=weights_only)


def test_system_errors_and_other_devices(tmp_path):
    with pytest.raises(tc.IoError):
        tc.load(tmp_path / "none.pt")
    with pytest.raises(OSError):
        tc.save(1, tmp_path / "no" / "x.pt")
    tc.save(tc.ones(1), tmp_path / "x.pt")
    for location in (None, "cpu", tc.device("cpu"), {"cuda:0": "cpu"}, lambda storage, where: storage):
        assert tc.load(tmp_path / "x.pt", map_location=location).item() == 1
    with pytest.raises(NotImplementedError, match="CPU only"):
        tc.load(tmp_path / "x.pt", "cuda")


def test_errors_name_the_file_object(tmp_path):
    with pytest.raises(tc.DataError, match="<BytesIO>"):
        tc.load(io.BytesIO(b"no archive at all"))


def damaged(data):
    """Truncated, and with a byte changed, at many positions."""
    step = max(1, len(data) // 97)
    for at in range(0, len(data), step):
        yield data[:at]
        yield data[:at] + bytes([data[at] ^ 0x41]) + data[at + 1:]


@pytest.mark.parametrize("kind", ["pt", "npy", "npz", "compressed", "safetensors"])
def test_damaged_files(kind):
    x = tc.arange(40.0)
    file = io.BytesIO()
    if kind == "pt":
        tc.save({"a": x, "b": [x[3:], "text", 5, b"bytes"]}, file)
        read = tc.load
    elif kind == "npy":
        save_npy(file, x)
        read = load_npy
    elif kind == "safetensors":
        tc.safetensors.save_file({"a": x, "b": tc.ones(2)}, file)
        read = tc.safetensors.load_file
    else:
        save_npz(file, {"a": x, "b": tc.ones(2)}, compressed=kind == "compressed")
        read = load_npz
    refused = 0
    for data in damaged(file.getvalue()):
        try:
            read(io.BytesIO(data))
        except tc.DataError:
            refused += 1
    assert refused > 50


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_npy_both_ways(tmp_path, dtype, shape):
    x = numbers(shape, dtype)
    path = tmp_path / "x.npy"
    save_npy(path, x)
    n = np.load(path)
    assert n.shape == shape and n.dtype == x.numpy().dtype and n.tolist() == x.tolist()
    np.save(path, n)
    for mmap in (False, True):
        y = load_npy(path, mmap=mmap)
        assert y.dtype is dtype and y.shape == shape and y.tolist() == x.tolist()


def test_npy_layouts(tmp_path):
    path = tmp_path / "x.npy"
    n = np.arange(6.0).reshape(2, 3)
    np.save(path, np.asfortranarray(n))
    assert load_npy(path).stride() == (1, 2) and load_npy(path).tolist() == n.tolist()
    save_npy(path, tc.arange(6).view(2, 3).t()[1:])
    assert np.load(path).tolist() == [[1, 4], [2, 5]]
    np.save(path, n.astype(">f4"))
    assert load_npy(path).dtype is tc.float32 and load_npy(path).tolist() == n.tolist()
    with pytest.raises(TypeError):
        save_npy(path, tc.ones(2, dtype=tc.bfloat16))
    np.save(path, np.array([{}], object))
    with pytest.raises(tc.DataError, match="object"):
        load_npy(path)
    assert load_npy(io.BytesIO(_npy_bytes(n))).tolist() == n.tolist()


def _npy_bytes(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def test_a_mapped_file_does_not_change(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, np.arange(5.0))
    x = load_npy(path, mmap=True)
    x[0] = 9
    path.unlink()
    assert x.tolist() == [9, 1, 2, 3, 4]


@pytest.mark.parametrize("compressed", [False, True])
def test_npz_both_ways(tmp_path, compressed):
    path = tmp_path / "x.npz"
    save_npz(path, {"a": tc.arange(3), "b/c": tc.ones(2, 2)}, compressed=compressed)
    with np.load(path) as archive:
        assert archive.files == ["a", "b/c"] and archive["b/c"].tolist() == [[1, 1], [1, 1]]
    (np.savez_compressed if compressed else np.savez)(path, x=np.arange(4), y=np.float32(2))
    got = load_npz(path)
    assert list(got) == ["x", "y"] and got["x"].tolist() == [0, 1, 2, 3] and got["y"].item() == 2
    file = io.BytesIO()
    save_npz(file, got)
    assert load_npz(io.BytesIO(file.getvalue()))["x"].tolist() == [0, 1, 2, 3]
    with pytest.raises(TypeError, match="'x': expected a Tensor, not list"):
        save_npz(path, {"x": [1]})
    with pytest.raises(tc.DataError):
        bomb = tmp_path / "bomb.npz"
        np.savez_compressed(bomb, x=np.zeros(100_000))
        load_npz(bomb, max_inflated_bytes=1000)


@pytest.mark.parametrize("dtype", [*DTYPES, tc.bfloat16])
@pytest.mark.parametrize("shape", SHAPES)
def test_safetensors(tmp_path, dtype, shape):
    x = numbers(shape, dtype)
    path = tmp_path / "x.safetensors"
    tc.safetensors.save_file({"x": x, "y": tc.ones(1)}, path, metadata={"format": "pt"})
    loaded = [tc.safetensors.load_file(path), tc.safetensors.load(pathlib.Path(path).read_bytes())]
    with tc.safetensors.safe_open(path, framework="pt", device="cpu") as f:
        assert sorted(f.keys()) == ["x", "y"] and f.metadata() == {"format": "pt"}
        loaded.append({"x": f.get_tensor("x")})
        assert f.get_slice("x").get_shape() == list(shape)
    for tensors in loaded:
        assert tensors["x"].dtype is dtype and tensors["x"].shape == shape and tensors["x"].tolist() == x.tolist()


def test_safetensors_slices_and_errors(tmp_path):
    x = tc.arange(12.0).view(3, 4)
    data = tc.safetensors.save({"x": x})
    assert data[8:].startswith(b'{"x":{"dtype":"F32","shape":[3,4],"data_offsets":[0,48]}}')
    path = tmp_path / "x.safetensors"
    path.write_bytes(data)
    with tc.safetensors.safe_open(path, "pt") as f:
        part = f.get_slice("x")
        assert part[1:, ::2].tolist() == [[4, 6], [8, 10]] and part[0].tolist() == [0, 1, 2, 3]
        assert part.get_dtype() == "F32" and f.metadata() is None
        with pytest.raises(KeyError):
            f.get_tensor("y")
    with pytest.raises(ValueError, match="closed"):
        f.keys()
    with pytest.raises(RuntimeError, match="share memory"):
        tc.safetensors.save({"a": x, "b": x[1:]})
    with pytest.raises(ValueError):
        tc.safetensors.save({"a": x.t()})
    with pytest.raises(TypeError, match="expected a dict"):
        tc.safetensors.save([x])
    with pytest.raises(TypeError, match="metadata"):
        tc.safetensors.save({"x": x}, metadata={"a": 1})
    with pytest.raises(NotImplementedError):
        tc.safetensors.load_file(path, device="cuda:0")
    assert tc.safetensors.load(tc.safetensors.save({})) == {}


@pytest.mark.skipif(not pathlib.Path("/proc/self/statm").exists(), reason="needs /proc")
def test_nothing_leaks(tmp_path):
    x = tc.arange(50_000.0)
    save_npy(tmp_path / "x.npy", x)
    damaged_file = tmp_path / "damaged.pt"
    tc.save([x], damaged_file)
    damaged_file.write_bytes(damaged_file.read_bytes()[:-100])

    def once():
        file = io.BytesIO()
        tc.save({"x": x, "y": [x[1:], "text", b"bytes"]}, file)
        file.seek(0)
        tc.load(file)
        tc.safetensors.load(tc.safetensors.save({"x": x}))
        load_npy(tmp_path / "x.npy")
        load_npy(tmp_path / "x.npy", mmap=True)
        with pytest.raises(tc.DataError):
            tc.load(damaged_file)
        with pytest.raises(TypeError):
            tc.save([x, object()], damaged_file)

    def resident():
        return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * 4096

    def descriptors():
        return len(list(pathlib.Path("/proc/self/fd").iterdir()))

    for _ in range(20):
        once()
    before, opened = resident(), descriptors()
    for _ in range(40):
        once()
    assert resident() - before < 20 * x.nbytes  # a leak of one tensor per round would be 40 tensors
    assert descriptors() == opened
