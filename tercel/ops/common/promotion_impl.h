// What the promotion of dtypes and the elementwise iterator share.
#pragma once

#include "tercel/core/scalar.h"

namespace tercel {

/** Whether the integer dtype has that number. */
bool holds_number(ScalarType t, Scalar value);

/**
 * RuntimeError, in PyTorch's words, where an element of that dtype cannot be the number: one that is out of its range,
 * or has an imaginary part that the dtype has not. Fractions are cut off, bool takes any number.
 */
void check_number_fits(ScalarType t, Scalar value);

}  // namespace tercel
