// Exact checks of whether written elements share memory with other elements.
#pragma once

#include "tercel/core/tensor.h"

namespace tercel {

/** RuntimeError, starting with `op`, unless elements can be written to `out` while `in` is read. */
void check_overlap(const char* op, const Tensor& out, const Tensor& in);
/** RuntimeError if `out` and `in` share any memory, even if they are identical. */
void check_apart(const char* op, const Tensor& out, const Tensor& in);
/** RuntimeError, starting with `op`, if two elements of `out` share memory. */
void check_no_internal_overlap(const char* op, const Tensor& out);

}  // namespace tercel
