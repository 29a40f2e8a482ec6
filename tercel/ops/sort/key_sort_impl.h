#pragma once

#include <cstdint>

#include "tercel/core/tensor.h"
#include "tercel/ops/sort/key_sort_kernels.h"

namespace tercel {

/** Sorts; keeps its memory from call to call. */
class KeySorter {
 public:
  /** The keys' order; fewer than 2^32 of them (RuntimeError, starting with `op`). Valid until the next call. */
  SortedKeys sort(const char* op, const int64_t* keys, int64_t n, bool descending = false);

 private:
  Tensor buffers_[2];
  Tensor counts_;
};

/** `buffer` as at least `nbytes` of memory, of which the old contents may be lost; grows in steps. */
void* reserve_scratch(Tensor& buffer, int64_t nbytes);

}  // namespace tercel
