// Copying elements between tensors of any dtype, shape and order.
#pragma once

#include "tercel/core/tensor.h"

namespace tercel {

/**
 * dst = src, element by element: broadcasts src, converts its dtype (see Note [Conversions]), transposes in blocks.
 * RuntimeError if src does not broadcast to dst's shape or overlaps dst. Changes neither version nor history.
 */
void copy_elements_out(const Tensor& dst, const Tensor& src);

/** Sets every element to a number; RuntimeError if the dtype cannot hold it. Changes neither version nor history. */
void fill_elements(const Tensor& x, Scalar value);
void zero_elements(const Tensor& x);

/** Fills dst, which may be expanded, with the value of a 0-dimensional tensor. */
void fill_elements_out(const Tensor& dst, const Tensor& value);

}  // namespace tercel
