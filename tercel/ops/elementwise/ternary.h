// Elementwise functions of three tensors.
#pragma once

#include "tercel/core/tensor.h"

namespace tercel {

/** a where the bool tensor `condition` is true, else b. All are broadcast; a and b are promoted. */
TERCEL_OP_API(out) Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b);
TERCEL_OP_API(out) Tensor where(const Tensor& condition, const Tensor& a, Scalar b);
TERCEL_OP_API(out) Tensor where(const Tensor& condition, Scalar a, const Tensor& b);

/** a + weight * (b - a): a at weight 0, b at weight 1. */
TERCEL_OP_API(method, out) Tensor lerp(const Tensor& a, const Tensor& b, const Tensor& weight);
TERCEL_OP_API(method, out) Tensor lerp(const Tensor& a, const Tensor& b, Scalar weight);
TERCEL_OP_API(method) const Tensor& lerp_(const Tensor& a, const Tensor& b, Scalar weight);

/** x + value * tensor1 * tensor2, in one pass. */
TERCEL_OP_API(method, out)
Tensor addcmul(const Tensor& x, const Tensor& tensor1, const Tensor& tensor2, Scalar value = 1);
TERCEL_OP_API(method, python_method, keyword = value)
const Tensor& addcmul_(const Tensor& x, const Tensor& tensor1, const Tensor& tensor2, Scalar value = 1);
/** x + value * tensor1 / tensor2, in one pass. */
TERCEL_OP_API(method, out)
Tensor addcdiv(const Tensor& x, const Tensor& tensor1, const Tensor& tensor2, Scalar value = 1);
TERCEL_OP_API(method, python_method, keyword = value)
const Tensor& addcdiv_(const Tensor& x, const Tensor& tensor1, const Tensor& tensor2, Scalar value = 1);

}  // namespace tercel
