// The settings of a process: what is neither an argument nor a property of a tensor. Any thread may read and set them.
#pragma once

#include <cstdint>

#include "tercel/util/export.h"

namespace tercel {

/** Whether a DeferredTensor keeps its memory when it shrinks. Default: true. */
TERCEL_API bool keep_on_shrink();
TERCEL_API void set_keep_on_shrink(bool keep);

/** The most bytes beyond what is needed that a DeferredTensor keeps when it shrinks. Default: no limit. */
TERCEL_API int64_t max_keep_on_shrink_memory();
/** RuntimeError for a negative number. */
TERCEL_API void set_max_keep_on_shrink_memory(int64_t nbytes);

/**
 * Whether what detach() and data() return may get other sizes, strides or another storage. Default: true, as in PyTorch
 * since 1.13; with false the setters of TensorImpl refuse it.
 */
TERCEL_API bool detach_allows_metadata_change();
TERCEL_API void set_detach_allows_metadata_change(bool allow);

}  // namespace tercel
