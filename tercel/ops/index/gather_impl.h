// Selection of rows into memory of the caller. Private.
#pragma once

#include "tercel/core/tensor.h"

namespace tercel {

/**
 * Gives `out`, contiguous, index_select(x, 0, rows); it must have those sizes and that dtype, and other memory than x.
 * Not recorded. Errors of index_select().
 */
TERCEL_API void select_rows_to(const Tensor& out, const Tensor& x, const Tensor& rows);

}  // namespace tercel
