"""Complex numbers and their parts: views, gradients, conjugates."""

import numpy as np
import pytest

import tercel as tc

Z = [1 + 2j, 3 - 1j]


def leaf(values, **options):
    return tc.tensor(values, requires_grad=True, **options)


def test_parts_are_views():
    z = tc.zeros(2, 3, dtype=tc.complex64).t()
    r = tc.view_as_real(z)
    assert r.shape == (3, 2, 2) and r.stride() == (2, 6, 1) and r.dtype is tc.float32 and r._base is z._base
    assert z.real.stride() == z.imag.stride() == (2, 6) and z.imag.storage_offset() == 1
    z.real.add_(1)
    z.imag[0] = 5
    assert z.tolist() == [[1 + 5j, 1 + 5j], [1, 1], [1, 1]] and z._version == 2
    pairs = tc.ones(4, 2)
    c = tc.view_as_complex(pairs[1:3])
    c.mul_(2j)
    assert pairs.tolist() == [[1, 1], [-2, 2], [-2, 2], [1, 1]] and c.dtype is tc.complex64
    assert tc.view_as_complex(tc.ones(2, dtype=tc.float64)).item() == 1 + 1j
    x = tc.ones(2)
    assert x.real is x and tc.real(x) is x


def test_parts_may_be_set():
    z = tc.zeros(2, dtype=tc.complex64)
    z.real = tc.tensor([1.0, 2.0])
    z.imag = 5
    assert z.tolist() == [1 + 5j, 2 + 5j]
    x = tc.zeros(2)
    x.real = 3
    assert x.tolist() == [3, 3]
    with pytest.raises(TypeError, match="imag is not implemented for tensors with non-complex dtypes"):
        x.imag = 1
    with pytest.raises(RuntimeError, match="without overflow"):
        z.real = 1j
    with pytest.raises(TypeError, match="can't assign a str"):
        z.imag = "1"


@pytest.mark.parametrize("make,sentence", [
    (lambda: tc.view_as_real(tc.ones(2)), "view_as_real is only supported for complex tensors"),
    (lambda: tc.view_as_complex(tc.ones(2, dtype=tc.int32)), "view_as_complex is only supported for"),
    (lambda: tc.view_as_complex(tc.tensor(1.0)), "must have one or more dimensions"),
    (lambda: tc.view_as_complex(tc.ones(2, 3)), "must have a last dimension of size 2"),
    (lambda: tc.view_as_complex(tc.ones(2, 2).t()), "must have a last dimension with stride 1"),
    (lambda: tc.view_as_complex(tc.ones(3, 3)[:, :2]), "must have a stride divisible by 2 for all but last dimension"),
    (lambda: tc.view_as_complex(tc.ones(5)[1:3]), "must have a storage_offset divisible by 2"),
    (lambda: tc.ones(2).imag, "imag is not implemented for tensors with non-complex dtypes."),
    (lambda: tc.complex(tc.ones(2), tc.ones(2, dtype=tc.float64)),
     "Expected object of scalar type Float but got scalar type Double for second argument"),
    (lambda: tc.complex(tc.ones(2, dtype=tc.int32), tc.ones(2)), "Half, Float or Double tensors but got Int and Float"),
    (lambda: tc.polar(tc.ones(2), tc.ones(2), out=tc.ones(2)), "Expected object of scalar type|can't be cast"),
])
def test_errors(make, sentence):
    with pytest.raises((RuntimeError, TypeError), match=sentence):
        make()


def test_made_of_parts():
    a, b = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    z = tc.complex(a, b)
    assert z.tolist() == [1 + 3j, 2 + 4j]
    z.abs().sum().backward()
    size = np.hypot([1, 2], [3, 4])
    assert np.allclose(a.grad, [1, 2] / size) and np.allclose(b.grad, [3, 4] / size)
    a.grad = b.grad = None
    p = tc.polar(a, b)
    assert np.allclose(p.detach(), [1, 2] * np.exp(1j * np.array([3, 4])))
    p.real.sum().backward()
    assert np.allclose(a.grad, np.cos([3, 4])) and np.allclose(b.grad, -np.array([1, 2]) * np.sin([3, 4]))
    out = tc.empty(0, dtype=tc.complex64)
    assert tc.complex(tc.ones(2), tc.zeros(2), out=out) is out and out.tolist() == [1, 1]


def test_gradients_of_the_parts():
    z = leaf(Z)
    (tc.view_as_real(z) * tc.tensor([[1.0, 2.0], [3.0, 4.0]])).sum().backward()
    assert z.grad.tolist() == [1 + 2j, 3 + 4j]
    z.grad = None
    (z.imag ** 2).sum().backward()
    assert z.grad.tolist() == [4j, -2j]
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    tc.view_as_complex(x).abs().sum().backward()
    assert np.allclose(x.grad, x.detach().numpy() / np.hypot([1, 3], [2, 4])[:, None])


def test_a_part_changed_in_place():
    z = leaf(Z)
    y = z * 2
    y.real.mul_(3)  # y = 6 Re z + 2 Im z i
    y.real.sum().backward()
    assert z.grad.tolist() == [6, 6]
    z.grad = None
    y = z * 2
    v = y.imag
    v.mul_(3)
    (v * v).sum().backward()
    assert z.grad.tolist() == [2 * 6 * 6 * 2j, 2 * 6 * 6 * -1j]
    # The base changes, the view follows: v = Im(6 i z) = 6 Re z.
    z.grad = None
    y = z * 2
    v = y.imag
    y.mul_(3j)
    v.sum().backward()
    assert z.grad.tolist() == [6, 6]
    w = leaf([1.0, 2.0])
    c = tc.tensor(Z)
    c.imag.copy_(w * 3)
    assert c.tolist() == [1 + 3j, 3 + 6j]
    c.imag.sum().backward()
    assert w.grad.tolist() == [3, 3]


def test_pairs_changed_in_place():
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    y = x * 1
    tc.view_as_complex(y).mul_(2j)  # (a, b) becomes (-2 b, 2 a)
    (y * tc.tensor([1.0, 10.0])).sum().backward()
    assert x.grad.tolist() == [[20, -2], [20, -2]]
    x.grad = None
    y = x * 1
    c = tc.view_as_complex(y)
    y.mul_(3)
    c.imag.sum().backward()
    assert x.grad.tolist() == [[0, 3], [0, 3]]


def test_conjugates():
    z = tc.tensor([[1 + 2j, 3]])
    for conjugate in (z.conj(), z.conj_physical(), tc.conj(z), z.clone().conj_physical_()):
        assert conjugate.tolist() == [[1 - 2j, 3]] and not conjugate.is_conj() and not conjugate.is_neg()
    assert z.mH.tolist() == z.H.tolist() == z.adjoint().tolist() == [[1 - 2j], [3]] and z.T.tolist() == [[1 + 2j], [3]]
    x = tc.ones(2)
    assert x.conj() is x and z.resolve_conj() is z and z.resolve_neg() is z
    leaf_z = leaf(Z)
    (leaf_z * leaf_z.conj()).real.sum().backward()
    assert leaf_z.grad.tolist() == [2 * v for v in Z]


def test_angles_and_signs():
    n = np.array([3 + 4j, -1 - 1j, 0, -2])
    z = tc.tensor(n)
    assert np.allclose(z.angle(), np.angle(n)) and np.allclose(z.abs(), abs(n))
    assert np.allclose(z.sgn(), [0.6 + 0.8j, n[1] / abs(n[1]), 0, -1])
    assert tc.isreal(z).tolist() == [False, False, True, True] and z.isnan().tolist() == [False] * 4
    assert tc.tensor([-2.0, 1.0]).angle().tolist() == pytest.approx([np.pi, 0])
    assert z.clone().sgn_().tolist() == z.sgn().tolist()


@pytest.mark.parametrize("dtype", [tc.complex64, tc.complex128])
def test_an_infinite_part_makes_the_absolute_value_infinite(dtype):
    inf, nan = float("inf"), float("nan")
    z = tc.tensor([complex(inf, nan), complex(nan, -inf), complex(-inf, 2), complex(inf, inf), complex(nan, 1)] * 5,
                  dtype=dtype)
    assert z.abs()[:4].tolist() == [inf] * 4 and z.abs().isnan().tolist() == ([False] * 4 + [True]) * 5


@pytest.mark.parametrize("name", ["exp", "log", "sqrt", "sin", "cos", "tanh", "reciprocal", "square", "sum", "mean",
                                  "prod"])
def test_functions_of_complex_numbers(name):
    n = np.array([[1.5 + 2j, -2 - 1j], [0.25j, 3]])
    z = tc.tensor(n)
    assert np.allclose(getattr(z, name)(), getattr(np, name)(n))
    assert np.allclose(z @ z, n @ n) and np.allclose(z.cumsum(0), n.cumsum(0)) and np.allclose(z ** 2.5, n ** 2.5)


def test_covariances():
    x = np.random.default_rng(7).standard_normal((3, 5, 2)) @ np.array([1, 1j])
    t, counts, weights = tc.from_numpy(x), np.array([1, 2, 3, 1, 2]), np.array([0.5, 1, 2, 1, 0.25])
    np.testing.assert_allclose(tc.cov(t).numpy(), np.cov(x), atol=1e-12)
    np.testing.assert_allclose(
        tc.cov(t, fweights=tc.from_numpy(counts), aweights=tc.from_numpy(weights)).numpy(),
        np.cov(x, fweights=counts, aweights=weights), atol=1e-12)
    np.testing.assert_allclose(tc.corrcoef(t).numpy(), np.corrcoef(x), atol=1e-12)
