// Dtype of a result. promote_types() of two dtypes and can_cast() are in core/scalar_type.h.
#pragma once

#include "tercel/core/tensor.h"

namespace tercel {

/** The dtype in which an op on both operands computes. */
TERCEL_OP_API(layout_any) ScalarType result_type(const Tensor& a, const Tensor& b);
TERCEL_OP_API(layout_any) ScalarType result_type(const Tensor& a, Scalar b);
TERCEL_OP_API(layout_any) ScalarType result_type(Scalar a, const Tensor& b);
TERCEL_OP_API(layout_any) ScalarType result_type(Scalar a, Scalar b);

}  // namespace tercel
