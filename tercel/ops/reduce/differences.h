// Differences of neighbours along a dimension, and what is made of them: integrals and numerical gradients.
#pragma once

#include <vector>

#include "tercel/core/tensor.h"

namespace tercel {

/**
 * x[i + 1] - x[i] along a dimension, n times over; of bools, whether they differ. prepend and append, where defined,
 * are put before and after x first. RuntimeError for n < 0.
 */
TERCEL_OP_API(method, python, out_apart)
Tensor diff(const Tensor& x, int64_t n = 1, int64_t dim = -1, const Tensor& prepend = Tensor(),
            const Tensor& append = Tensor());

/** The integral along a dimension by the trapezoidal rule, of samples dx apart. */
TERCEL_API Tensor trapezoid(const Tensor& y, double dx = 1, int64_t dim = -1);
/** The same for samples at the places x: a vector for the dimension, or sizes that broadcast with y's. */
TERCEL_OP_API(python, keyword = dim) Tensor trapezoid(const Tensor& y, const Tensor& x, int64_t dim = -1);
/** trapezoid(). */
TERCEL_API Tensor trapz(const Tensor& y, double dx = 1, int64_t dim = -1);
TERCEL_OP_API(python, keyword = dim) Tensor trapz(const Tensor& y, const Tensor& x, int64_t dim = -1);
/** The integral up to each sample but the first. */
TERCEL_API Tensor cumulative_trapezoid(const Tensor& y, double dx = 1, int64_t dim = -1);
TERCEL_OP_API(python, keyword = dim) Tensor cumulative_trapezoid(const Tensor& y, const Tensor& x, int64_t dim = -1);

/**
 * For each of the dimensions (all if none) an estimate of the derivative from central differences, at the two ends from
 * one-sided differences of the given order, 1 or 2. Samples are one `spacing` apart, of which there is one for each
 * dimension; RuntimeError for another number, and where a dimension has fewer than edge_order + 1 elements.
 */
TERCEL_API std::vector<Tensor> gradient(const Tensor& x, Span<double> spacing, IntSpan dims = {},
                                        int64_t edge_order = 1);
TERCEL_API std::vector<Tensor> gradient(const Tensor& x, double spacing = 1, IntSpan dims = {}, int64_t edge_order = 1);
/** The same for samples at the places that a vector for each dimension gives. */
TERCEL_API std::vector<Tensor> gradient(const Tensor& x, Span<Tensor> coordinates, IntSpan dims = {},
                                        int64_t edge_order = 1);

}  // namespace tercel
