// Construction of complex numbers, and views of their parts.
//
// real(), imag(), view_as_real() and view_as_complex() are views; conj() is a copy.
// The gradient of a real loss with respect to complex z = x + iy is dL/dx + i dL/dy, as in PyTorch: backward multiplies
// by the conjugate of a derivative.
#pragma once

#include "tercel/core/tensor.h"

namespace tercel {

/** re + im i; both float32 or both float64 (RuntimeError). */
TERCEL_API Tensor complex(const Tensor& re, const Tensor& im);
TERCEL_API const Tensor& complex_out(const Tensor& out, const Tensor& re, const Tensor& im);
/** abs * (cos(angle) + sin(angle) i); both float32 or both float64 (RuntimeError). */
TERCEL_OP_API(autocast_f32) Tensor polar(const Tensor& abs, const Tensor& angle);
TERCEL_API const Tensor& polar_out(const Tensor& out, const Tensor& abs, const Tensor& angle);

/** A view of the real and imaginary parts, in a new last dimension of size 2. */
TERCEL_OP_API(python, cheap) Tensor view_as_real(const Tensor& x);
/**
 * A view of pairs of float32 or float64 along the last dimension as complex numbers. RuntimeError unless that dimension
 * has size 2 and stride 1, and all other strides and the offset are even.
 */
TERCEL_OP_API(python, cheap, autocast_f32) Tensor view_as_complex(const Tensor& x);
/** A view of the real part; a real tensor is returned as is. */
TERCEL_OP_API(python, cheap, layout_sparse) Tensor real(const Tensor& x);
/** A view of the imaginary part; RuntimeError for a real tensor. */
TERCEL_OP_API(python, cheap) Tensor imag(const Tensor& x);
/** A copy with the complex conjugates; a real tensor is returned as is. */
TERCEL_OP_API(method, python, layout_sparse) Tensor conj(const Tensor& x);
TERCEL_OP_API(method, python, out_apart, layout_sparse) Tensor conj_physical(const Tensor& x);
TERCEL_OP_API(method, python, layout_sparse) const Tensor& conj_physical_(const Tensor& x);

}  // namespace tercel
