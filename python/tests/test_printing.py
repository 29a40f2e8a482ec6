"""repr(tensor), line for line."""

import pytest

import tercel as tc


@pytest.fixture(autouse=True)
def default_options():
    yield
    tc.set_printoptions(profile="default")


SAMPLES = [
    (lambda: tc.tensor(3.5), "tensor(3.5000)"),
    (lambda: tc.tensor(3), "tensor(3)"),
    (lambda: tc.tensor([True, False]), "tensor([ True, False])"),
    (lambda: tc.tensor([1.0, 2.0]), "tensor([1., 2.])"),
    (lambda: tc.tensor([1.5, -2.25]), "tensor([ 1.5000, -2.2500])"),
    (lambda: tc.tensor([1, -20]), "tensor([  1, -20])"),
    (lambda: tc.tensor([1.5, float("nan"), float("inf")]), "tensor([1.5000,    nan,    inf])"),
    (lambda: tc.tensor([1e10, 1.0]), "tensor([1.0000e+10, 1.0000e+00])"),
    (lambda: tc.tensor([1e-5, 1.0]), "tensor([1.0000e-05, 1.0000e+00])"),
    (lambda: tc.tensor([1000.0, 1.0]), "tensor([1000.,    1.])"),
    (lambda: tc.tensor([1001.0, 1.0]), "tensor([1.0010e+03, 1.0000e+00])"),
    (lambda: tc.tensor([]), "tensor([])"),
    (lambda: tc.empty(0, 3), "tensor([], size=(0, 3))"),
    (lambda: tc.empty(0, dtype=tc.int64), "tensor([], dtype=tercel.int64)"),
    (lambda: tc.tensor([1.0], dtype=tc.float64), "tensor([1.], dtype=tercel.float64)"),
    (lambda: tc.tensor([1], dtype=tc.uint8), "tensor([1], dtype=tercel.uint8)"),
    (lambda: tc.tensor([0.5], dtype=tc.float16), "tensor([0.5000], dtype=tercel.float16)"),
    (lambda: tc.tensor([1.0], requires_grad=True), "tensor([1.], requires_grad=True)"),
    (lambda: tc.tensor([1.0], requires_grad=True) + 1, "tensor([2.], grad_fn=<AddBackward0>)"),
    (lambda: tc.arange(4).view(2, 2), "tensor([[0, 1],\n        [2, 3]])"),
    (lambda: tc.zeros(2, 1, 2), "tensor([[[0., 0.]],\n\n        [[0., 0.]]])"),
    (lambda: tc.arange(2000), "tensor([   0,    1,    2,  ..., 1997, 1998, 1999])"),
    (lambda: tc.arange(30),
     "tensor([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17,\n"
     "        18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29])"),
    (lambda: tc.zeros(1001, 2),
     "tensor([[0., 0.],\n        [0., 0.],\n        [0., 0.],\n        ...,\n        [0., 0.],\n        [0., 0.],\n"
     "        [0., 0.]])"),
]


@pytest.mark.parametrize("make, text", SAMPLES)
def test_samples(make, text):
    assert repr(make()) == str(make()) == text


def test_options():
    tc.set_printoptions(precision=2)
    assert repr(tc.tensor([1.234])) == "tensor([1.23])"
    tc.set_printoptions(sci_mode=True)
    assert repr(tc.tensor([1.5])) == "tensor([1.50e+00])"
    tc.set_printoptions(threshold=3, edgeitems=1)
    assert repr(tc.arange(5)) == "tensor([0,  ..., 4])"
    tc.set_printoptions(profile="default", edgeitems=0, threshold=3)
    assert repr(tc.arange(5)) == "tensor([...], size=(5,))"
    assert repr(tc.ones(2, 2)) == "tensor([...], size=(2, 2))"


def test_formats_numbers_only():
    assert f"{tc.tensor(2.5):.1f}" == "2.5"
    assert f"{tc.tensor([1, 2])}" == "tensor([1, 2])"
    with pytest.raises(TypeError):
        format(tc.ones(2), ".1f")


def test_other_objects():
    assert repr(tc.float32) == "tercel.float32" and repr(tc.long) == "tercel.int64"
    assert repr(tc.device("cpu")) == "device(type='cpu')" and str(tc.device("cuda:1")) == "cuda:1"
    assert repr(tc.strided) == "tercel.strided" and repr(tc.channels_last) == "tercel.channels_last"
    assert repr(tc.ones(2, dtype=tc.uint8).untyped_storage()) == (
        " 1\n 1\n[tercel.storage.UntypedStorage(device=cpu) of size 2]")
    assert repr(tc.Size([2, 3])) == "tercel.Size([2, 3])"
