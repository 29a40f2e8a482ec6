// Weights packed once for many products; see docs/design/ops.md, Packed weights.
#pragma once

#include <optional>

#include "tercel/core/tensor.h"

namespace tercel {

/**
 * A float32 or float64 weight [out, in], converted to `dtype` if that is given, in the layout Opaque: the order in
 * which the products of the instruction set in use read it. Only linear() multiplies by it; it never changes and has no
 * gradient. RuntimeError for other dtypes or numbers of dimensions, or if the weight requires a gradient.
 */
TERCEL_OP_API(method, python_method) Tensor to_mkldnn(const Tensor& x, std::optional<ScalarType> dtype = std::nullopt);

/** A strided copy of the weight [out, in] that to_mkldnn() packed: the same bits, on any instruction set. */
TERCEL_API Tensor unpack_weight(const Tensor& x);

}  // namespace tercel
