// The dtype of a result. promote_types() for two dtypes, and can_cast(), are in core/scalar_type.h.
#pragma once

#include "tercel/core/tensor.h"

namespace tercel {

/** The compute dtype of an operation on both operands. */
TERCEL_OP_API(layout_any) ScalarType result_type(const Tensor& a, const Tensor& b);
TERCEL_OP_API(layout_any) ScalarType result_type(const Tensor& a, Scalar b);
TERCEL_OP_API(layout_any) ScalarType result_type(Scalar a, const Tensor& b);
TERCEL_OP_API(layout_any) ScalarType result_type(Scalar a, Scalar b);

}  // namespace tercel
