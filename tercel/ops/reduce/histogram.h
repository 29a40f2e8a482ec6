// Histograms.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "tercel/core/tensor.h"

namespace tercel {

/**
 * Counts, as int64, of each number from 0 to the maximum (at least minlength - 1) in a vector of integers; or, with
 * weights, sums of the corresponding weights: float32 for float32 weights, else float64. RuntimeError for negative
 * numbers, NotImplementedError for floating-point x.
 */
TERCEL_OP_API(method, python, out, no_python_out)
Tensor bincount(const Tensor& x, const Tensor& weights = Tensor(), int64_t minlength = 0);

/**
 * Counts elements in each of `bins` intervals of equal width from min to max (if these are equal, the minimum and
 * maximum of x); the last interval is closed. Elements outside and NaN are ignored. x is floating
 * (NotImplementedError), the result has its dtype. RuntimeError for bounds that are not finite or not in order.
 */
TERCEL_OP_API(method, python, out) Tensor histc(const Tensor& x, int64_t bins = 100, Scalar min = 0, Scalar max = 0);

struct Histogram {
  Tensor hist;       ///< [bins]
  Tensor bin_edges;  ///< [bins + 1]
};
/** The same between ascending edges, with weights of x's sizes; `density` divides by the total and each width. */
TERCEL_OP_API(method, out_apart)
Histogram histogram(const Tensor& x, const Tensor& bins, const Tensor& weight = Tensor(), bool density = false);
/** The same for bins of equal width in a range, by default that of the elements. */
TERCEL_OP_API(method, out_apart)
Histogram histogram(const Tensor& x, int64_t bins, std::optional<std::pair<double, double>> range = std::nullopt,
                    const Tensor& weight = Tensor(), bool density = false);

struct HistogramDd {
  Tensor hist;                    ///< [bins of dimension 0, of dimension 1, ...]
  std::vector<Tensor> bin_edges;  ///< of each dimension
};
/**
 * Counts the points (rows of x [..., n]) in each box of the grid given by n lists of ascending edges, or sums their
 * weights [...], if given. Bins are half-open, except the last. `density` divides by the total and by each volume.
 */
TERCEL_API HistogramDd histogramdd(const Tensor& x, Span<Tensor> bins, const Tensor& weight = Tensor(),
                                   bool density = false);
/** The same for bins of equal width; range has the bounds of each dimension, by default those of the points. */
TERCEL_API HistogramDd histogramdd(const Tensor& x, IntSpan bins, Span<double> range = {},
                                   const Tensor& weight = Tensor(), bool density = false);
TERCEL_API HistogramDd histogramdd(const Tensor& x, int64_t bins, Span<double> range = {},
                                   const Tensor& weight = Tensor(), bool density = false);

}  // namespace tercel
