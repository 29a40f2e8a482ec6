// Differences of neighbouring elements along a dimension, and numerical integrals and gradients.
#pragma once

#include <vector>

#include "tercel/core/tensor.h"

namespace tercel {

/**
 * x[i + 1] - x[i] along a dimension, applied n times; for bool, whether they differ. prepend and append, if defined,
 * are first concatenated before and after x. RuntimeError for n < 0.
 */
TERCEL_OP_API(method, python, out_apart)
Tensor diff(const Tensor& x, int64_t n = 1, int64_t dim = -1, const Tensor& prepend = Tensor(),
            const Tensor& append = Tensor());

/** Integral along a dimension by the trapezoidal rule, for samples at distance dx. */
TERCEL_API Tensor trapezoid(const Tensor& y, double dx = 1, int64_t dim = -1);
/** The same for samples at positions x: a vector along the dimension, or sizes that broadcast with y's. */
TERCEL_OP_API(python, keyword = dim) Tensor trapezoid(const Tensor& y, const Tensor& x, int64_t dim = -1);
/** Alias of trapezoid(). */
TERCEL_API Tensor trapz(const Tensor& y, double dx = 1, int64_t dim = -1);
TERCEL_OP_API(python, keyword = dim) Tensor trapz(const Tensor& y, const Tensor& x, int64_t dim = -1);
/** Cumulative integral up to each sample except the first. */
TERCEL_API Tensor cumulative_trapezoid(const Tensor& y, double dx = 1, int64_t dim = -1);
TERCEL_OP_API(python, keyword = dim) Tensor cumulative_trapezoid(const Tensor& y, const Tensor& x, int64_t dim = -1);

/**
 * Estimates the derivative along each of the dimensions (all by default) by central differences, and at both ends by
 * one-sided differences of the given order, 1 or 2. Samples have a distance of `spacing`, one number per dimension
 * (RuntimeError otherwise); RuntimeError if a dimension has fewer than edge_order + 1 elements.
 */
TERCEL_API std::vector<Tensor> gradient(const Tensor& x, Span<double> spacing, IntSpan dims = {},
                                        int64_t edge_order = 1);
TERCEL_API std::vector<Tensor> gradient(const Tensor& x, double spacing = 1, IntSpan dims = {}, int64_t edge_order = 1);
/** The same for samples at the positions given by one vector per dimension. */
TERCEL_API std::vector<Tensor> gradient(const Tensor& x, Span<Tensor> coordinates, IntSpan dims = {},
                                        int64_t edge_order = 1);

}  // namespace tercel
