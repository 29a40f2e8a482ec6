// Copying elements between tensors of any dtype, shape and order.
#pragma once

#include "tercel/core/tensor.h"

namespace tercel {

/**
 * dst = src, element by element: broadcasts src, converts its dtype (see Note [Conversions]), transposes in blocks.
 * RuntimeError when src does not broadcast to dst's shape or overlaps it. Neither version nor history changes.
 */
void copy_elements_out(const Tensor& dst, const Tensor& src);

/** Sets every element to a number, RuntimeError if the dtype cannot hold it; neither version nor history changes. */
void fill_elements(const Tensor& x, Scalar value);
void zero_elements(const Tensor& x);

/** Fills dst, which may be expanded, with the element of `value`, a 0-dimensional tensor. */
void fill_elements_out(const Tensor& dst, const Tensor& value);

}  // namespace tercel
