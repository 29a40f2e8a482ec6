// Sparse tensors of files.
#pragma once

#include <string>

#include "tercel/core/tensor.h"

namespace tercel::io {

/** Why the parts are not those of a COO tensor of these sizes, every index read; empty if they are. */
std::string fault_of_coo(const Tensor& indices, const Tensor& values, IntSpan sizes, bool coalesced);
/**
 * The same for a tensor of a compressed layout, whose offsets and indices are those of rows or columns (blocks).
 * Indices of a row need not ascend, as in tensors that are constructed without checks.
 */
std::string fault_of_compressed(Layout layout, const Tensor& offsets, const Tensor& plain, const Tensor& values,
                                IntSpan sizes);

}  // namespace tercel::io
