// Window functions for signal processing, by PyTorch's conventions.
//
// A periodic window, for use with Fourier transforms, is a symmetric one of length + 1 without its last value. Length 1
// gives 1, length 0 an empty window. RuntimeError for a negative length or a dtype that is not floating.
#pragma once

#include "tercel/core/tensor.h"

namespace tercel {

/** Triangular window, 0 at its ends. */
TERCEL_OP_API(python) Tensor bartlett_window(int64_t window_length, bool periodic = true, TensorOptions options = {});
/** 0.42 - 0.5 cos(x) + 0.08 cos(2x). */
TERCEL_OP_API(python) Tensor blackman_window(int64_t window_length, bool periodic = true, TensorOptions options = {});
/** alpha - beta cos(x). */
TERCEL_OP_API(python)
Tensor hamming_window(int64_t window_length, bool periodic = true, double alpha = 0.54, double beta = 0.46,
                      TensorOptions options = {});
/** 0.5 - 0.5 cos(x). */
TERCEL_OP_API(python) Tensor hann_window(int64_t window_length, bool periodic = true, TensorOptions options = {});
/** I0(beta sqrt(1 - x^2)) / I0(beta), x from -1 to 1. */
TERCEL_OP_API(python)
Tensor kaiser_window(int64_t window_length, bool periodic = true, double beta = 12, TensorOptions options = {});

}  // namespace tercel
