#pragma once

#include <cstdint>

#include "tercel/core/tensor.h"
#include "tercel/ops/sort/key_sort_kernels.h"

namespace tercel {

/** Sorts keys; reuses its memory between calls. */
class KeySorter {
 public:
  /** Sorts fewer than 2^32 keys (RuntimeError, starting with `op`). The result is valid until the next call. */
  SortedKeys sort(const char* op, const int64_t* keys, int64_t n, bool descending = false);

 private:
  Tensor buffers_[2];
  Tensor counts_;
};

/** Resizes `buffer` to at least `nbytes`, growing in steps; its content may be lost. */
void* reserve_scratch(Tensor& buffer, int64_t nbytes);

}  // namespace tercel
