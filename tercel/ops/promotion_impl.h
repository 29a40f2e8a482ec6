// What the promotion of dtypes and the elementwise iterator share.
#pragma once

#include "tercel/core/scalar.h"

namespace tercel {

/** Whether the integer dtype has that number. */
bool holds_number(ScalarType t, Scalar value);

}  // namespace tercel
