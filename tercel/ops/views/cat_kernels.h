#pragma once

#include <cstdint>

#include "tercel/core/dispatch.h"

namespace tercel {

/** One input of a concatenation: a run of bytes in each row. */
struct CatPart {
  const char* data;
  int64_t stride;  ///< from one row to the next, in bytes
  int64_t run;
};
struct CatLoop {
  const CatPart* parts;
  int64_t num_parts;
  char* out;
  int64_t row;  ///< bytes of a row: the sum of the runs
};
/** Rows [begin, end). */
using CatFn = void(const CatLoop& loop, int64_t begin, int64_t end);

TERCEL_DECLARE_KERNELS(CatFn, cat)

}  // namespace tercel
