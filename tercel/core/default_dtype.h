// The dtype that floating numbers take when nothing says which.
#pragma once

#include "tercel/core/scalar_type.h"
#include "tercel/util/export.h"

namespace tercel {

/**
 * float32, unless set_default_dtype() has said otherwise. Numbers that a person wrote, and functions of real numbers of
 * integers, give it; complex_dtype() of it is what complex numbers give. C++ factories do not ask for it: theirs is
 * float32.
 */
TERCEL_API ScalarType default_dtype();
/** For the whole process; RuntimeError for a dtype that is not floating. */
TERCEL_API void set_default_dtype(ScalarType dtype);

}  // namespace tercel
