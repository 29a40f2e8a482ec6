// How many elements lie where.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "tercel/core/tensor.h"

namespace tercel {

/**
 * How often each number from 0 to the largest (at least minlength - 1) comes in a vector of integers, int64; or, where
 * weights are given, the sum of those that stand beside it: float32 for float32 weights, else float64. RuntimeError for
 * negative numbers, NotImplementedError for floating ones.
 */
TERCEL_OP_API(method, python, out, no_python_out)
Tensor bincount(const Tensor& x, const Tensor& weights = Tensor(), int64_t minlength = 0);

/**
 * How many elements lie in each of `bins` intervals of one width from min to max (the least and the largest element if
 * both are the same), the last of which has both ends. Others, and NaN, do not count. Floating x (NotImplementedError),
 * whose dtype the result has. RuntimeError for bounds that are not finite or not in order.
 */
TERCEL_OP_API(method, python, out) Tensor histc(const Tensor& x, int64_t bins = 100, Scalar min = 0, Scalar max = 0);

struct Histogram {
  Tensor hist;       ///< [bins]
  Tensor bin_edges;  ///< [bins + 1]
};
/** The same between ascending edges, with weights of x's sizes; `density` divides by the sum and each width. */
TERCEL_OP_API(method, out_apart)
Histogram histogram(const Tensor& x, const Tensor& bins, const Tensor& weight = Tensor(), bool density = false);
/** The same for bins of one width in a range, by default that of the elements. */
TERCEL_OP_API(method, out_apart)
Histogram histogram(const Tensor& x, int64_t bins, std::optional<std::pair<double, double>> range = std::nullopt,
                    const Tensor& weight = Tensor(), bool density = false);

struct HistogramDd {
  Tensor hist;                    ///< [bins of dimension 0, of dimension 1, ...]
  std::vector<Tensor> bin_edges;  ///< of each dimension
};
/**
 * How many points, the rows of x [..., n], lie in each of the boxes between n lists of ascending edges, the last of
 * which belongs to its box; the sum of their weights [...], if given. `density` divides by the sum and each volume.
 */
TERCEL_API HistogramDd histogramdd(const Tensor& x, Span<Tensor> bins, const Tensor& weight = Tensor(),
                                   bool density = false);
/** The same for so many bins of one width in each dimension; range: the ends of each, else those of the points. */
TERCEL_API HistogramDd histogramdd(const Tensor& x, IntSpan bins, Span<double> range = {},
                                   const Tensor& weight = Tensor(), bool density = false);
TERCEL_API HistogramDd histogramdd(const Tensor& x, int64_t bins, Span<double> range = {},
                                   const Tensor& weight = Tensor(), bool density = false);

}  // namespace tercel
