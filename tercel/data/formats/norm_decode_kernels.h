#pragma once

#include "tercel/core/dispatch.h"
#include "tercel/data/formats/row_decode_kernels.h"

namespace tercel {

/** Records of Norm whose slots are all full. */
struct NormRowsLoop : RowsLoop {
  bool framed;             ///< by length and checksum
  const int32_t* hotness;  ///< of each slot
};

/** Decodes places [begin, end); returns the first one that breaks a rule, or -1. */
using NormRowsFn = int64_t(const NormRowsLoop& loop, int64_t begin, int64_t end);

TERCEL_DECLARE_KERNELS(NormRowsFn, decode_norm_rows)

}  // namespace tercel
