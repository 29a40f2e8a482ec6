// Short-time Fourier transforms: transforms of successive frames of a signal. Names, defaults, warnings and errors are
// PyTorch's.
#pragma once

#include <optional>
#include <string_view>

#include "tercel/core/tensor.h"

namespace tercel {

/**
 * The Fourier transforms of frames of n_fft elements of x [time] or [n, time], hop_length (default n_fft / 4) apart:
 * [..., frequencies, frames]; only the first half of the frequencies if onesided, the default for real signals. Frames
 * are multiplied by the window [win_length], centred in the frame; the default is ones. With `center`, the signal is
 * padded by n_fft / 2 elements on both sides, by the given pad_mode of pad(), so that frame t is centred at t *
 * hop_length. `normalized` divides by sqrt(n_fft). For real input the result is pairs of real numbers, with a warning,
 * unless return_complex is given. RuntimeError for inconsistent sizes.
 */
TERCEL_OP_API(python_function, python_method, autocast_f32)
Tensor stft(const Tensor& x, int64_t n_fft, std::optional<int64_t> hop_length = {},
            std::optional<int64_t> win_length = {}, const Tensor& window = {}, bool center = true,
            std::string_view pad_mode = "reflect", bool normalized = false, std::optional<bool> onesided = {},
            std::optional<bool> return_complex = {}, std::optional<bool> align_to_window = {});

/**
 * The signal whose stft() with the same arguments is x [..., frequencies, frames], in the least-squares sense.
 * Overlapping frames are multiplied by the window, added, and divided by the sum of the squared window, which must not
 * be 0 anywhere (RuntimeError). `length` trims or zero-pads the signal.
 */
TERCEL_OP_API(python_function, python_method)
Tensor istft(const Tensor& x, int64_t n_fft, std::optional<int64_t> hop_length = {},
             std::optional<int64_t> win_length = {}, const Tensor& window = {}, bool center = true,
             bool normalized = false, std::optional<bool> onesided = {}, std::optional<int64_t> length = {},
             bool return_complex = false);

}  // namespace tercel
