// Arguments of the kernels of row-wise AdaGrad.
#pragma once

#include <cstdint>

#include "tercel/core/dispatch.h"
#include "tercel/core/scalar_type.h"
#include "tercel/optim/rules.h"

namespace tercel {

/** One step on n rows of `dim` elements, all operands float32 or all float64. Row i of the gradient belongs to row
 * rows[i] of weight and accumulator. */
struct RowWiseUpdate {
  ScalarType dtype;
  void* weight;
  void* accumulator;  ///< a number for each row
  const void* gradient;
  int64_t weight_stride, accumulator_stride, gradient_stride;  ///< from row to row, in elements
  const int64_t* rows;                                         ///< [n], without duplicates; null for all rows in order
  int64_t n, dim;
  optim::Step<double> step;
};
/** Returns whether every stored value is finite. */
using RowWiseUpdateFn = bool(const RowWiseUpdate& update);

TERCEL_DECLARE_KERNELS(RowWiseUpdateFn, update_row_wise)

}  // namespace tercel
