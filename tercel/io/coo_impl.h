// COO tensors of files.
#pragma once

#include <string>

#include "tercel/core/tensor.h"

namespace tercel::io {

/** Why the parts are not those of a COO tensor of these sizes, every index read; empty if they are. */
std::string fault_of_coo(const Tensor& indices, const Tensor& values, IntSpan sizes, bool coalesced);

}  // namespace tercel::io
