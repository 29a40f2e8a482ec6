// The default floating-point dtype.
#pragma once

#include "tercel/core/scalar_type.h"
#include "tercel/util/export.h"

namespace tercel {

/**
 * float32 unless changed by set_default_dtype(). It is the dtype of floating scalars and of real-valued functions of
 * integer tensors; complex scalars have complex_dtype() of it. C++ factories do not use it: their default is always
 * float32.
 */
TERCEL_API ScalarType default_dtype();
/** For the whole process; RuntimeError for a dtype that is not floating. */
TERCEL_API void set_default_dtype(ScalarType dtype);

}  // namespace tercel
