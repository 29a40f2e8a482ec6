// Short-time Fourier transforms: of frames of a signal, one after the other. Names, defaults, warnings and errors are
// PyTorch's.
#pragma once

#include <optional>
#include <string_view>

#include "tercel/core/tensor.h"

namespace tercel {

/**
 * The Fourier transforms of frames of n_fft elements of x [time] or [n, time], hop_length (by default a quarter frame)
 * apart: [..., frequencies, frames], the first half of the frequencies if onesided, which it is by default of what is
 * real. Frames are multiplied by the window [win_length], which stands in their middle; without one, by ones. With
 * `center`, the signal is continued by n_fft / 2 elements on both sides, as pad_mode of pad() says, and a frame's
 * number times hop_length is its middle. `normalized` divides by the root of n_fft. What is real is by default returned
 * as pairs, with a warning; return_complex gives complex numbers. RuntimeError for numbers that do not fit.
 */
TERCEL_OP_API(python_function, python_method, autocast_f32)
Tensor stft(const Tensor& x, int64_t n_fft, std::optional<int64_t> hop_length = {},
            std::optional<int64_t> win_length = {}, const Tensor& window = {}, bool center = true,
            std::string_view pad_mode = "reflect", bool normalized = false, std::optional<bool> onesided = {},
            std::optional<bool> return_complex = {}, std::optional<bool> align_to_window = {});

/**
 * The signal of which stft() with the same arguments makes x [..., frequencies, frames]; where several fit, the
 * nearest. Frames are added where they overlap, times the window, and divided by the sum of its squares there, which
 * must not be 0 (RuntimeError). `length` cuts the signal, or fills it with zeros.
 */
TERCEL_OP_API(python_function, python_method)
Tensor istft(const Tensor& x, int64_t n_fft, std::optional<int64_t> hop_length = {},
             std::optional<int64_t> win_length = {}, const Tensor& window = {}, bool center = true,
             bool normalized = false, std::optional<bool> onesided = {}, std::optional<int64_t> length = {},
             bool return_complex = false);

}  // namespace tercel
