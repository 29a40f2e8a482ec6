"""Short-time Fourier transforms: stft() and its inverse, of PyTorch's names and sentences."""

import warnings

from tercel import _C
from tercel import fft as _fft
from tercel._C import Tensor

__all__ = ["istft", "stft"]


def _shape(x):
    return "[" + ", ".join(map(str, x.shape)) + "]"


class _Call:
    """One call: how it is named in errors, and its window."""

    def __init__(self, name, x, n_fft, hop_length, win_length, window, **others):
        self.n_fft = n_fft
        self.win_length = n_fft if win_length is None else win_length
        self.hop_length = self._hop(name, hop_length)
        named = "None" if window is None else f"{window.type()}{{{_shape(window)}}}"
        numbers = {"n_fft": n_fft, "hop_length": self.hop_length, "win_length": self.win_length, "window": named, **others}
        self.text = f"{name}({x.type()}{_shape(x)}, " + ", ".join(
            f"{k}={int(v) if isinstance(v, bool) else v}" for k, v in numbers.items()) + ")"
        self.window = window

    def _hop(self, name, hop_length):
        # PyTorch takes a quarter of the frame for both, of the window's for istft().
        return (self.n_fft if name == "stft" else self.win_length) // 4 if hop_length is None else hop_length

    def check(self, fits, sentence, error=RuntimeError):
        if not fits:
            raise error(f"{self.text} : {sentence}")

    def padded_window(self, x):
        """The window in the middle of a frame; ones where there is none."""
        window = self.window
        if window is None:
            window = _C.ones(self.win_length, dtype=_C.real(x).dtype if x.is_complex() else x.dtype, device=x.device)
        left = (self.n_fft - self.win_length) // 2
        return _C.constant_pad_nd(window, (left, self.n_fft - self.win_length - left)) if (
            self.win_length < self.n_fft) else window


def stft(input, n_fft, hop_length=None, win_length=None, window=None, center=True, pad_mode="reflect",  # noqa: A002
         normalized=False, onesided=None, return_complex=None, align_to_window=None):
    """The Fourier transforms of frames of n_fft elements, hop_length apart: [..., frequencies, frames].

    The frames are multiplied by the window, which stands in their middle. With `center`, the signal is continued by
    n_fft / 2 elements on both sides, as `pad_mode` says, and a frame's number times hop_length is its middle.
    """
    if window is None:
        warnings.warn("A window was not provided. A rectangular window will be applied, which is known to cause spectral "
                      "leakage. Other windows such as hann_window() are recommended.", stacklevel=2)
    if center and align_to_window is not None:
        raise RuntimeError("stft align_to_window should only be set when center = false")
    if center:
        if pad_mode not in ("constant", "reflect", "replicate", "circular"):
            raise NotImplementedError(f"Unrecognised padding mode {pad_mode}")
        from tercel.nn.functional import pad
        by = n_fft // 2
        input = pad(input.reshape([1] * (3 - input.dim()) + list(input.shape)), [by, by], pad_mode).reshape(
            [*input.shape[:-1], input.shape[-1] + 2 * by])
    call = _Call("stft", input, n_fft, hop_length, win_length, window, normalized=normalized, onesided=onesided,
                 return_complex=return_complex, align_to_window=align_to_window)
    complex_in = input.is_complex() or (window is not None and window.is_complex())
    if return_complex is None:
        # PyTorch 2 wants an answer for real signals; programs older than that rely on the pairs.
        return_complex = complex_in
    if not return_complex:
        warnings.warn("stft with return_complex=False is deprecated. In a future release, stft will return complex tensors "
                      "for all inputs; view_as_real() of them is the old format.", stacklevel=2)
    call.check(input.is_floating_point() or input.is_complex(), "expected a tensor of floating point or complex values",
               NotImplementedError)
    call.check(input.dim() in (1, 2), "expected a 1D or 2D tensor")
    size = input.shape[-1]
    call.check(0 < n_fft <= size, f"expected 0 < n_fft < {size}, but got n_fft={n_fft}")
    call.check(call.hop_length > 0, f"expected hop_length > 0, but got hop_length={call.hop_length}")
    call.check(0 < call.win_length <= n_fft, f"expected 0 < win_length <= n_fft, but got win_length={call.win_length}")
    call.check(window is None or tuple(window.shape) == (call.win_length,),
               f"expected a 1D window tensor of size equal to win_length={call.win_length}, but got window with size "
               f"{'' if window is None else list(window.shape)}")
    onesided = not complex_in if onesided is None else onesided
    if onesided and complex_in:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    frames = input.unfold(-1, n_fft, call.hop_length)
    if window is not None or call.win_length < n_fft:
        frames = frames * call.padded_window(input)
    norm = "ortho" if normalized else "backward"
    out = (_fft.rfft if onesided else _fft.fft)(frames, norm=norm).transpose(-1, -2)
    return out if return_complex else _C.view_as_real(out.contiguous())


def istft(input, n_fft, hop_length=None, win_length=None, window=None, center=True, normalized=False,  # noqa: A002
          onesided=None, length=None, return_complex=False):
    """The signal of which stft() with the same arguments makes `input`; where several fit, the nearest.

    Frames are added where they overlap, times the window, and divided by the sum of its squares there, which must not
    be 0 (RuntimeError).
    """
    if window is None:
        warnings.warn("A window was not provided. A rectangular window will be applied. Please provide the same window used "
                      "by stft to make the inversion lossless.", stacklevel=2)
    call = _Call("istft", input, n_fft, hop_length, win_length, window, center=center, normalized=normalized,
                 onesided=onesided, length=length, return_complex=return_complex)
    if not input.is_complex() and input.dim() > 2 and input.shape[-1] == 2:
        warnings.warn("istft of pairs of real numbers is deprecated: give it view_as_complex() of them.", stacklevel=2)
        call.check(input.numel() > 0, "input tensor cannot be empty.")
        input = _C.view_as_complex(input.contiguous())  # noqa: A001
    if not input.is_complex():
        raise TypeError("istft requires a complex-valued input tensor matching the output from stft with "
                        "return_complex=True.")
    hop = call.hop_length
    call.check(input.numel() > 0, "input tensor cannot be empty.")
    call.check(input.dim() in (2, 3), f"expected a tensor with 3 or 4 dimensions, but got {input.dim() + 1}")
    count, frames = input.shape[-2:]
    onesided = count != n_fft if onesided is None else onesided
    if onesided:
        call.check(n_fft // 2 + 1 == count, "expected the frequency dimension (3rd to the last) of the input tensor to match "
                   f"n_fft / 2 + 1 when onesided=True, but got {count}")
    else:
        call.check(n_fft == count, "expected the frequency dimension (3rd to the last) of the input tensor to match n_fft "
                   f"when onesided=False, but got {count}")
    call.check(0 < hop <= call.win_length, "expected 0 < hop_length <= win_length")
    call.check(0 < call.win_length <= n_fft, "expected 0 < win_length <= n_fft")
    call.check(window is None or tuple(window.shape) == (call.win_length,),
               "Invalid window shape. window has to be 1D and length of `win_length`")
    if return_complex and onesided:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    if not return_complex and window is not None and window.is_complex():
        raise RuntimeError("Complex windows are incompatible with return_complex=False")
    norm = "ortho" if normalized else "backward"
    parts = input.transpose(-1, -2)
    if return_complex:
        parts = _fft.ifft(parts, norm=norm)
    else:
        parts = _fft.irfft(parts if onesided else parts[..., :n_fft // 2 + 1], n_fft, norm=norm)
    window = call.padded_window(parts)
    size = n_fft + hop * (frames - 1)
    out = _overlapped(parts * window, size, hop)
    weight = _overlapped((window * window).expand(1, frames, n_fft), size, hop)[0]
    start = n_fft // 2 if center else 0
    end = start + length if length is not None else size - n_fft // 2 if center else size
    out, weight = out[..., start:end], weight[start:end]
    if weight.numel() and not _C.abs(weight).min().item() > 1e-11:
        raise RuntimeError(f"{call.text} window overlap add min: 1")
    out = out / weight
    if end > size:
        warnings.warn("The length of signal is shorter than the length parameter. Result is being padded with zeros in the "
                      "tail. Please check your center and hop_length settings.", stacklevel=2)
        out = _C.constant_pad_nd(out, (0, end - size))
    return out


def _overlapped(frames, size, hop):
    """Frames [..., count, n], each `hop` after the one before, added up."""
    count, n = frames.shape[-2:]
    places = (_C.arange(count).unsqueeze(-1) * hop + _C.arange(n)).reshape(-1)
    return frames.new_zeros([*frames.shape[:-2], size]).index_add(-1, places, frames.flatten(-2))


Tensor.stft, Tensor.istft = stft, istft
