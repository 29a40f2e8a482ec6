// Arguments of the kernels that make up for skipped steps of Adam.
#pragma once

#include <cstdint>

#include "tercel/core/dispatch.h"
#include "tercel/core/scalar_type.h"
#include "tercel/optim/lazy_adam.h"

namespace tercel {

/** n rows of `dim` elements of float32 or float64. See Note [Lazy steps]. */
struct SkippedRows {
  ScalarType dtype;
  void* weight;
  void* m;
  void* v;
  void* last;                                              ///< a number for each row: that of its last step
  int64_t weight_stride, m_stride, v_stride, last_stride;  ///< from row to row, in elements
  const int64_t* rows;                                     ///< [n], without duplicates; null for all rows in order
  int64_t n, dim;
  int64_t before;                      ///< number of the step that the rows are brought to, modulo `modulus`
  int64_t stamp;                       ///< new value of `last`
  int64_t modulus;                     ///< a power of 2
  const optim::SkippedSteps* skipped;  ///< [known + 1]
  int64_t known;                       ///< rows that skipped more steps have no moments
  double epsilon;
};
/** Returns whether every stored value is finite. */
using SkippedRowsFn = bool(const SkippedRows& rows);

TERCEL_DECLARE_KERNELS(SkippedRowsFn, catch_up_rows)

}  // namespace tercel
