// The dtype of a result; how two dtypes meet is promote_types() in core/scalar_type.h, what may be stored can_cast().
#pragma once

#include "tercel/core/tensor.h"

namespace tercel {

/** The dtype that an operation on both calculates in. */
TERCEL_API ScalarType result_type(const Tensor& a, const Tensor& b);
TERCEL_API ScalarType result_type(const Tensor& a, Scalar b);
TERCEL_API ScalarType result_type(Scalar a, const Tensor& b);
TERCEL_API ScalarType result_type(Scalar a, Scalar b);

}  // namespace tercel
