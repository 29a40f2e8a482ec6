"""Views, concatenation and rearrangement, compared with NumPy."""

import numpy as np
import pytest

import tercel as tc
from tercel.nn import functional

N = np.arange(24.0).reshape(2, 3, 4)


def x():
    return tc.from_numpy(N.copy())


def same(got, want):
    np.testing.assert_array_equal(got.numpy(), want)


def says(error, sentence, call):
    with pytest.raises(error) as info:
        call()
    assert sentence in str(info.value)


@pytest.mark.parametrize("name, call", [
    ("flip", lambda m, a: m.flip(a, (0, 2))),
    ("roll", lambda m, a: m.roll(a, 2, 1)),
    ("roll", lambda m, a: m.roll(a, (1, -1), (0, 2))),
    ("roll", lambda m, a: m.roll(a, 5)),
    ("rot90", lambda m, a: m.rot90(a)),
    ("tile", lambda m, a: m.tile(a, (2, 1, 3))),
    ("tril", lambda m, a: m.tril(a, 1)),
    ("triu", lambda m, a: m.triu(a, -1)),
    ("moveaxis", lambda m, a: m.moveaxis(a, (0, 1), (2, 0))),
    ("swapaxes", lambda m, a: m.swapaxes(a, 0, 2)),
    ("diagonal", lambda m, a: m.diagonal(a, 1, 1, 2)),
    ("ravel", lambda m, a: m.ravel(a)),
    ("fliplr", lambda m, a: m.fliplr(a)),
    ("flipud", lambda m, a: m.flipud(a)),
])
def test_like_numpy(name, call):
    same(call(tc, x()), call(np, N))


@pytest.mark.parametrize("name", ["hstack", "vstack", "dstack", "column_stack"])
def test_stacks(name):
    same(getattr(tc, name)([x(), x()]), getattr(np, name)([N, N]))
    v = np.arange(3.0)
    same(getattr(tc, name)((tc.arange(3.0), tc.arange(3.0))), getattr(np, name)([v, v]).astype("f4"))


def test_pieces():
    for name in ["hsplit", "vsplit", "dsplit"]:
        for got, want in zip(getattr(tc, name)(x(), [1, 2]), getattr(np, name)(N, [1, 2])):
            same(got, want)
    for sections in (2, [1, 3], tc.tensor([1, 3]), tc.tensor(2)):
        want = sections.tolist() if isinstance(sections, tc.Tensor) else sections
        for got, part in zip(x().tensor_split(sections, 2), np.array_split(N, want, 2)):
            same(got, part)
    assert [len(p) for p in tc.arange(5).chunk(4)] == [2, 2, 1]


def test_views():
    assert x().view(tc.float32).shape == (2, 3, 8) and x().unflatten(2, (2, -1)).shape == (2, 3, 2, 2)
    assert x().unfold(2, 2, 1).shape == (2, 3, 3, 2) and x().movedim(0, -1).shape == (3, 4, 2)
    assert tc.zeros(1, 2, 1).squeeze((0, 2)).shape == (2,) and x().narrow(2, tc.tensor(1), 2)[0, 0].tolist() == [1, 2]
    assert [t.shape for t in tc.broadcast_tensors(tc.zeros(3, 1), tc.zeros(2))] == [(3, 2), (3, 2)]
    assert tc.broadcast_shapes((3, 1), 4, (2, 1, 1)) == (2, 3, 4)
    says(RuntimeError, "Shape mismatch: objects cannot be broadcast to a single shape",
         lambda: tc.broadcast_shapes((3,), (4,)))
    assert tc.atleast_2d(tc.arange(3)).shape == (1, 3) and tc.atleast_3d([tc.zeros(2), tc.zeros(())])[1].shape == (1, 1, 1)
    assert x().mT.shape == (2, 4, 3) and x().T.shape == (4, 3, 2)
    says(RuntimeError, "tensor.mT is only supported on matrices or batches of matrices. Got 1-D tensor.",
         lambda: tc.arange(3).mT)


def test_views_in_place():
    y = tc.zeros(2, 3)
    before = y._version
    assert y.t_() is y and y.shape == (3, 2) and y._version == before + 1
    assert y.unsqueeze_(0).transpose_(0, 1).squeeze_(1).swapaxes_(0, 1).shape == (2, 3)
    y.as_strided_((2, 2), (2, 1))
    assert y.shape == (2, 2)
    says(RuntimeError, "a leaf Variable that requires grad is being used in an in-place operation.",
         lambda: tc.zeros(2, 2, requires_grad=True).t_())


def test_repeats():
    same(x().repeat(2, 1, 1, 2), np.tile(N, (2, 1, 1, 2)))
    same(x().repeat_interleave(3, 1), N.repeat(3, 1))
    same(tc.repeat_interleave(x(), tc.tensor([2, 0, 1]), dim=1), N.repeat([2, 0, 1], 1))
    same(tc.repeat_interleave(x(), 2), N.repeat(2))
    assert tc.repeat_interleave(tc.tensor([2, 0, 1])).tolist() == [0, 0, 2]
    says(RuntimeError, "repeats must have the same size as input along dim",
         lambda: x().repeat_interleave(tc.tensor([1, 2]), 2))


@pytest.mark.parametrize("mode, numpy_mode", [("reflect", "reflect"), ("replicate", "edge"), ("circular", "wrap")])
def test_pad(mode, numpy_mode):
    same(functional.pad(x(), (2, 1, 1, 2), mode), np.pad(N, [(0, 0), (1, 2), (2, 1)], numpy_mode))


def test_pad_with_a_number():
    same(functional.pad(x(), (1, 2), value=7), np.pad(N, [(0, 0), (0, 0), (1, 2)], constant_values=7))
    same(tc.constant_pad_nd(x(), (-1, 0)), N[:, :, 1:])


def test_meshgrid_and_diagonals():
    a, b = tc.arange(2), tc.arange(3)
    for indexing in ("ij", "xy"):
        for got, want in zip(tc.meshgrid(a, b, indexing=indexing), np.meshgrid(a.numpy(), b.numpy(), indexing=indexing)):
            same(got, want)
    assert tc.meshgrid([a, b], indexing="ij")[0].shape == (2, 3)
    assert tc.cartesian_prod(a, a).tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]
    assert tc.combinations(b).tolist() == [[0, 1], [0, 2], [1, 2]]
    same(tc.vander(b, 3), np.vander(b.numpy(), 3))
    assert tc.block_diag(a, tc.ones(1, 1, dtype=tc.int64)).tolist() == [[0, 1, 0], [0, 0, 1]]
    same(tc.tril_indices(3, 4, 1), np.stack(np.tril_indices(3, 1, 4)))
    same(tc.triu_indices(3, 4, 1, dtype=tc.int32), np.stack(np.triu_indices(3, 1, 4)).astype("i4"))
    same(tc.diag(b, 1), np.diag(b.numpy(), 1))
    assert tc.diag_embed(tc.ones(2, 3)).shape == (2, 3, 3) and tc.diagflat(tc.ones(2, 2)).shape == (4, 4)
    y = tc.ones(2, 2)
    assert y.tril_() is y and y.tolist() == [[1, 0], [1, 1]]


def test_scatters():
    z = tc.zeros(3, 4)
    assert z.select_scatter(tc.ones(4), 0, 1).sum(1).tolist() == [0, 4, 0]
    assert z.slice_scatter(tc.ones(3, 2), dim=1, start=1, end=None, step=2).sum(0).tolist() == [0, 3, 0, 3]
    assert z.diagonal_scatter(tc.ones(3)).sum().item() == 3
    assert z.as_strided_scatter(tc.ones(2), (2,), (5,)).flatten().tolist()[:6] == [1, 0, 0, 0, 0, 1]
    assert tc.narrow_copy(z, 1, 0, 2).shape == tc.slice_copy(z, 1, None, 2).shape == (3, 2)


def test_one_element_of_a_slice_is_changed_in_place():
    for size in (2, 3):
        x = tc.arange(2.0, 2.0 + size)
        x[1::2] *= -1
        assert x.tolist() == [2, -3, 4][:size]
    y = tc.ones(1, 1, 3)
    y[:, :, 1:2] += 2
    assert y.tolist() == [[[1, 3, 1]]]
