// Parts of composite ops that unary.cpp defines.
#pragma once

#include "tercel/core/tensor.h"

namespace tercel {

/** Composite parts of ops in unary_ops.h, for floating x. */
Tensor hardswish_of_floats(const Tensor& x);
Tensor nan_to_num_of_floats(const Tensor& x, double nan, double largest);
/** The tanh approximation of gelu(), for a floating tensor. */
Tensor gelu_tanh(const Tensor& x);
/** above * x for x > 0, else below * expm1(x); for a floating tensor. */
Tensor elu_of(const Tensor& x, double below, double above);

}  // namespace tercel
