"""tercel.fft against numpy.fft, over generated sizes; its errors; gradients."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tercel as tc

NORMS = st.sampled_from(["backward", "ortho", "forward", None])
ONE = ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]
SEVERAL = ["fftn", "ifftn", "rfftn", "irfftn"]


def sample(shape, seed=0, real=False, dtype=np.float64):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape).astype(dtype)
    return x if real else x + 1j * rng.standard_normal(shape).astype(dtype)


def tensor(x):
    return tc.from_dlpack(np.ascontiguousarray(x))


def near(got, want, tolerance=1e-12):
    assert tuple(got.shape) == want.shape
    scale = max(1, np.abs(want).max(initial=0))
    np.testing.assert_allclose(np.from_dlpack(got.detach().contiguous()), want, rtol=0, atol=tolerance * scale)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(ONE), st.lists(st.integers(1, 40), min_size=1, max_size=3), st.integers(0, 2),
       st.none() | st.integers(1, 60), NORMS)
def test_one_dimension(name, shape, dim, n, norm):
    dim = dim % len(shape) - len(shape)
    if name in ("irfft", "hfft") and n is None and shape[dim] == 1:
        n = 1
    x = sample(shape, real=name in ("rfft", "ihfft"))
    near(getattr(tc.fft, name)(tensor(x), n, dim, norm), getattr(np.fft, name)(x, n, dim, norm))


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(SEVERAL), st.permutations([0, 1, 2]), st.integers(1, 3),
       st.none() | st.lists(st.integers(1, 9), min_size=3, max_size=3), NORMS)
def test_several_dimensions(name, order, count, lengths, norm):
    dims = order[:count]
    s = lengths[:count] if lengths else None
    x = sample((4, 6, 5), real=name == "rfftn")
    near(getattr(tc.fft, name)(tensor(x), s, dims, norm), getattr(np.fft, name)(x, s, dims, norm))


@pytest.mark.parametrize("name", ["fft2", "ifft2", "rfft2", "irfft2"])
def test_two_dimensions(name):
    x = sample((2, 4, 6), real=name == "rfft2")
    near(getattr(tc.fft, name)(tensor(x)), getattr(np.fft, name)(x))
    near(getattr(tc.fft, name)(tensor(x), dim=(0, 1)), getattr(np.fft, name)(x, axes=(0, 1)))


def test_hermitian_of_several_dimensions():
    x = sample((3, 4, 5))
    # The forward transform of a half spectrum is irfftn of its conjugate, without the division.
    near(tc.fft.hfftn(tensor(x), (3, 4, 8)), np.fft.irfftn(x.conj(), (3, 4, 8), (0, 1, 2), norm="forward"))
    near(tc.fft.hfft2(tensor(x)), np.fft.irfftn(x.conj(), (4, 8), (1, 2), norm="forward"))
    near(tc.fft.ihfftn(tensor(x.real)), np.fft.rfftn(x.real, norm="forward").conj())
    near(tc.fft.ihfft2(tensor(x.real)), np.fft.rfft2(x.real, norm="forward").conj())


@pytest.mark.parametrize("n", [512, 1024, 1155, 4099, 2 ** 15, 30030, 3 ** 9])
@pytest.mark.parametrize("dtype, tolerance", [(np.float32, 2e-6), (np.float64, 1e-14)])
def test_long_lines(n, dtype, tolerance):
    x = sample((2, n), real=True, dtype=dtype)
    z = sample((2, n), dtype=dtype)
    for name, of in (("fft", z), ("ifft", z), ("rfft", x), ("fft", x)):
        got = getattr(tc.fft, name)(tensor(of))
        assert got.dtype is (tc.complex64 if dtype is np.float32 else tc.complex128)
        near(got, getattr(np.fft, name)(of.astype(np.complex128 if of is z else np.float64)), tolerance)
    near(tc.fft.irfft(tensor(z), n), np.fft.irfft(z.astype(np.complex128), n), tolerance)


@pytest.mark.parametrize("n", range(7))
def test_frequencies_and_shifts(n):
    if n > 0:
        near(tc.fft.fftfreq(n, 0.5, dtype=tc.float64), np.fft.fftfreq(n, 0.5))
        near(tc.fft.rfftfreq(n, 2.0, dtype=tc.float64), np.fft.rfftfreq(n, 2.0))
    x = np.arange(float(n * 5)).reshape(n, 5)
    for dim in (None, 0, (0, 1)):
        near(tc.fft.fftshift(tensor(x), dim), np.fft.fftshift(x, dim))
        near(tc.fft.ifftshift(tensor(x), dim), np.fft.ifftshift(x, dim))


def test_gradients():
    x = tc.from_numpy(sample((3, 6), real=True)).requires_grad_()
    tc.fft.irfft(tc.fft.rfft(x, norm="ortho"), norm="ortho").sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), np.ones((3, 6)), atol=1e-12)
    assert type(tc.fft.fft(x).grad_fn).__name__ == "FftC2CBackward0"
    # Parseval: the sum of squares of the transform is n times that of the line.
    y = x.detach().requires_grad_()
    tc.fft.fft(y).abs().pow(2).sum().backward()
    np.testing.assert_allclose(y.grad.numpy(), 12 * y.detach().numpy(), rtol=1e-10)


def test_out_and_defaults():
    x = tc.from_numpy(sample((3, 4), real=True))
    out = tc.empty(3, 4, dtype=tc.complex128)
    assert tc.fft.fft(x, out=out) is out
    near(out, np.fft.fft(x.numpy()))
    assert tc.fft.fft(tc.ones(3, dtype=tc.int64)).dtype is tc.complex64
    assert tc.fft.fftfreq(3, requires_grad=True).requires_grad


@pytest.mark.parametrize("call, kind, text", [
    (lambda x: tc.fft.fft(x, 0), RuntimeError, r"Invalid number of data points \(0\) specified"),
    (lambda x: tc.fft.fft(x, norm="x"), RuntimeError, 'Invalid normalization mode: "x"'),
    (lambda x: tc.fft.fft(x, dim=5), IndexError, "Dimension out of range"),
    (lambda x: tc.fft.rfft(tc.fft.fft(x)), TypeError, "rfft expects a real input tensor, but got ComplexFloat"),
    (lambda x: tc.fft.fftn(x, s=(2,), dim=(0, 1)), RuntimeError, "dim and shape arguments must have the same length"),
    (lambda x: tc.fft.fft(x.half()), NotImplementedError, "Unsupported dtype Half"),
    (lambda x: tc.fft.fft(x, 1.5), TypeError, r"fft_fft\(\): argument 'n' \(position 2\) must be int, not float"),
    (lambda x: tc.fft.fft(x, s=2), TypeError, r"fft_fft\(\) got an unexpected keyword argument 's'"),
    (lambda x: tc.fft.rfftfreq(4, dtype=tc.int32), RuntimeError, "requires a floating point or complex dtype"),
])
def test_errors(call, kind, text):
    with pytest.raises(kind, match=text):
        call(tc.ones(3, 4))


def frames_by_hand(x, n, hop, window):
    """[frequencies, frames] of a signal that is not continued."""
    return np.stack([np.fft.fft(x[i:i + n] * window) for i in range(0, len(x) - n + 1, hop)], axis=-1)


@pytest.mark.parametrize("complex_signal", [False, True])
@pytest.mark.parametrize("win_length", [8, 5])
def test_short_time_transforms(complex_signal, win_length):
    signal, window = sample((40,), real=not complex_signal), np.hanning(win_length + 2)[1:-1]
    x, w = tc.from_numpy(signal), tc.from_numpy(window)
    left = (8 - win_length) // 2
    padded = np.pad(window, (left, 8 - win_length - left))
    for center in (False, True):
        for normalized in (False, True):
            around = np.pad(signal, 4, mode="reflect") if center else signal
            want = frames_by_hand(around, 8, 2, padded) / (np.sqrt(8) if normalized else 1)
            if not complex_signal:
                want = want[:5]
            got = tc.stft(x, 8, 2, win_length, w, center=center, normalized=normalized, return_complex=True)
            near(got, want)
            if center:
                back = tc.istft(got, 8, 2, win_length, w, normalized=normalized, return_complex=complex_signal, length=40)
                near(back, signal)
    both = tc.stft(tc.stack([x, 2 * x]), 8, 2, win_length, w, onesided=False, return_complex=True)
    near(both[1], 2 * both[0].numpy())
    near(tc.istft(both, 8, 2, win_length, w, onesided=False, return_complex=True)[0, :38].real, signal.real[:38])


def test_older_signatures_of_short_time_transforms():
    x, w = tc.randn(20, dtype=tc.float64), tc.ones(4, dtype=tc.float64)
    with pytest.warns(UserWarning, match="return_complex=False is deprecated"):
        pairs = x.stft(4, window=w)
    assert pairs.shape == (3, 21, 2)
    with pytest.warns(UserWarning, match="pairs of real numbers is deprecated"):
        near(tc.istft(pairs, 4, window=w), x.numpy())
    with pytest.warns(UserWarning, match="A window was not provided"):
        near(tc.stft(x, 4, return_complex=True), tc.view_as_complex(pairs).numpy())
    y = x.clone().requires_grad_()
    z = tc.stft(y, 4, window=w, return_complex=True)
    tc.istft(z, 4, window=w).sum().backward()
    near(y.grad, np.ones(20))
    with pytest.warns(UserWarning, match="Result is being padded with zeros"):
        assert tc.istft(z.detach(), 4, window=w, length=30)[-8:].tolist() == [0] * 8


@pytest.mark.parametrize("call, text", [
    (lambda x, w: x.stft(30, window=tc.ones(30), center=False, return_complex=True), "expected 0 < n_fft < 20, but got n_fft=30"),
    (lambda x, w: x.stft(4, 0, window=w, return_complex=True), "expected hop_length > 0"),
    (lambda x, w: x.stft(4, win_length=5, window=w, return_complex=True), "expected 0 < win_length <= n_fft"),
    (lambda x, w: x.stft(4, window=tc.ones(3), return_complex=True), "expected a 1D window tensor of size equal to win_length=4"),
    (lambda x, w: x.stft(4, window=w, onesided=True, return_complex=True) if x.is_complex() else
        (x + 0j).stft(4, window=w, onesided=True), "Cannot have onesided output if window or input is complex"),
    (lambda x, w: x.view(1, 1, 20).stft(4, window=w, center=False, return_complex=True), "expected a 1D or 2D tensor"),
    (lambda x, w: tc.istft(tc.ones(3, 5, dtype=tc.complex64), 4, 9, window=w), "expected 0 < hop_length <= win_length"),
    (lambda x, w: tc.istft(tc.ones(3, 5, dtype=tc.complex64), 4, window=tc.zeros(4)), "window overlap add min"),
    (lambda x, w: tc.istft(tc.ones(3, 5, dtype=tc.complex64), 6, window=w), "match n_fft when onesided=False|onesided=True"),
    (lambda x, w: tc.istft(tc.ones(3, 0, dtype=tc.complex64), 4, window=w), "input tensor cannot be empty"),
])
def test_refused_frames(call, text):
    with pytest.raises(RuntimeError, match=text):
        call(tc.ones(20), tc.ones(4))


@pytest.mark.parametrize("dtype", [tc.bool, tc.uint8, tc.int64])
def test_integers_come_in_the_default_dtype(dtype):
    x = tc.tensor([[1, 0, 1, 1]]).to(dtype)
    names = {"fft": True, "ifft": True, "rfft": True, "ihfft": True, "irfft": False, "hfft": False, "fft2": True,
             "fftn": True, "rfftn": True, "irfftn": False}
    try:
        for real, pairs in ((tc.float32, tc.complex64), (tc.float64, tc.complex128)):
            tc.set_default_dtype(real)
            for name, is_complex in names.items():
                got = getattr(tc.fft, name)(x)
                assert got.dtype is (pairs if is_complex else real), name
                assert (got == getattr(tc.fft, name)(x.to(real))).all(), name
    finally:
        tc.set_default_dtype(tc.float32)
