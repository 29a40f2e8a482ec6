// Functions shared by dtype promotion and the elementwise iterator.
#pragma once

#include "tercel/core/scalar.h"

namespace tercel {

/** Whether the integer dtype can represent the number. */
bool holds_number(ScalarType t, Scalar value);

/**
 * RuntimeError, with PyTorch's message, if the dtype cannot hold the number: out of range, or a nonzero imaginary part
 * for a real dtype. Fractions are truncated; bool accepts any number.
 */
void check_number_fits(ScalarType t, Scalar value);

}  // namespace tercel
