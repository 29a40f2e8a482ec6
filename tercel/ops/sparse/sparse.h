// Functions of tercel.sparse: ops whose gradient keeps the pattern of a sparse operand.
#pragma once

#include <string_view>

#include "tercel/core/tensor.h"

namespace tercel::sparse {

/**
 * The product of matrices of which at least one is COO; COO if both are. The gradient of a COO operand has its pattern,
 * while that of tercel::mm() has all elements.
 */
TERCEL_API Tensor mm(const Tensor& mat1, const Tensor& mat2);
/**
 * The product of a CSR matrix [n, k] and a strided one [k, m] with another reduction than a sum: of the products of the
 * entries of row i with column j, `reduce` is "sum", "mean" (over the entries), "amax" or "amin"; 0 for a row without
 * entries. A gradient of amax and amin goes to the first of equal products. RuntimeError for another `reduce`,
 * NotImplementedError for operands of other layouts.
 */
TERCEL_API Tensor mm(const Tensor& mat1, const Tensor& mat2, std::string_view reduce);
/** beta * input + alpha * mm(mat1, mat2). */
TERCEL_API Tensor addmm(const Tensor& input, const Tensor& mat1, const Tensor& mat2, Scalar beta = 1, Scalar alpha = 1);

/**
 * Sums over dimensions, or over all: COO if a sparse dimension remains, else strided. Integers are summed in int64. The
 * gradient has the pattern of the input.
 */
TERCEL_API Tensor sum(const Tensor& input, IntSpan dim = {}, ScalarType dtype = ScalarType::Undefined);

/** softmax() along a dimension, over the entries: what has no entry counts as minus infinity. Floating dtypes. */
TERCEL_API Tensor softmax(const Tensor& input, int64_t dim, ScalarType dtype = ScalarType::Undefined);
/** The logarithm of softmax(). */
TERCEL_API Tensor log_softmax(const Tensor& input, int64_t dim, ScalarType dtype = ScalarType::Undefined);

}  // namespace tercel::sparse
