#pragma once

#include <cstdint>

#include "tercel/core/dispatch.h"

namespace tercel {

/**
 * Rows of n elements, each normalised separately. Weight and bias have `parts` numbers for each of `period` rows and
 * then repeat; each number applies to n / parts elements of a row.
 */
struct RowNormLoop {
  bool wide;    ///< double, else float
  bool centre;  ///< subtract the mean first
  int64_t n, parts, period;
  double eps;
  const void* x;
  const void* weight;  ///< or null
  const void* bias;    ///< or null
  const void* grad;    ///< backward: gradient of the result
  void* mean;          ///< mean of each row
  void* rstd;          ///< 1 / sqrt(variance + eps) of each row
  void* out;           ///< forward: the result; backward: the gradient of x, or null
  /// Backward: sums over each `block` rows, a multiple of period, [blocks][period][parts], or null.
  void* weight_sums;
  void* bias_sums;
  int64_t block;
};
/**
 * Rows [begin, end). Forward computes mean and rstd, backward reads them. Backward with a block of more than a period
 * takes whole blocks.
 */
using RowNormFn = void(const RowNormLoop& loop, int64_t begin, int64_t end);

TERCEL_DECLARE_KERNELS(RowNormFn, row_norm)
TERCEL_DECLARE_KERNELS(RowNormFn, row_norm_backward)

}  // namespace tercel
