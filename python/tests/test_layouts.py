"""Operands of a layout other than strided: refused before an op runs, except by ops that read only sizes and dtype."""

import pytest

import tercel as tc

opaque = tc._C._opaque_tensor((2, 3))
x = tc.ones(2, 3)


@pytest.mark.parametrize("name, call", [
    ("add", lambda: tc.add(opaque, x)),
    ("add", lambda: tc.add(x, opaque)),
    ("add", lambda: tc.add(x, x, out=opaque)),
    ("add_", lambda: opaque.add_(x)),
    ("sum", lambda: opaque.sum(0)),
    ("view", lambda: opaque.view(6)),
    ("cat", lambda: tc.cat([x, opaque])),
    ("linalg_qr", lambda: tc.linalg.qr(opaque)),
    ("embedding", lambda: tc.nn.functional.embedding(tc.tensor([0]), opaque)),
    ("to", lambda: opaque.double()),
    ("tolist", lambda: opaque.tolist()),
    ("numpy", lambda: opaque.numpy()),
    ("stride", lambda: opaque.stride()),
    ("untyped_storage", lambda: opaque.untyped_storage()),
    ("data_ptr", lambda: opaque.data_ptr()),
])
def test_is_refused(name, call):
    with pytest.raises(NotImplementedError) as info:
        call()
    if name != "to":  # float and double are separate entries
        assert str(info.value) == f"{name}: not implemented for layout _mkldnn"


def test_operators_and_indices_refuse_it():
    for call in (lambda: opaque + x, lambda: -opaque, lambda: opaque @ x, lambda: opaque[0], lambda: opaque.T,
                 lambda: tc._C._opaque_tensor(()).item()):
        with pytest.raises(NotImplementedError, match="not implemented for layout _mkldnn"):
            call()


def test_autocast_leaves_it_to_the_op():
    with tc.autocast("cpu"), pytest.raises(NotImplementedError, match="^mm: not implemented for layout _mkldnn"):
        tc.mm(opaque, x)


def test_it_can_be_described():
    assert opaque.shape == (2, 3) and opaque.dtype == tc.float32 and opaque.dim() == 2
    assert opaque.numel() == 6 and opaque.size(1) == 3 and opaque.is_floating_point()
    assert tc.is_complex(opaque) is False and tc.is_same_size(opaque, x) and opaque.get_device() == -1
    assert tc.result_type(opaque, tc.tensor(1)) == tc.float32
