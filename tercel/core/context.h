// Process-wide settings. Any thread may read and set them.
#pragma once

#include <cstdint>

#include "tercel/util/export.h"

namespace tercel {

/** Whether a DeferredTensor keeps its memory when it shrinks. Default: true. */
TERCEL_API bool keep_on_shrink();
TERCEL_API void set_keep_on_shrink(bool keep);

/** How many bytes more than it needs a DeferredTensor may keep when it shrinks. Default: no limit. */
TERCEL_API int64_t max_keep_on_shrink_memory();
/** RuntimeError for a negative number. */
TERCEL_API void set_max_keep_on_shrink_memory(int64_t nbytes);

/**
 * Whether sizes, strides and storage of results of detach() and data() may be changed. Default: true, as in PyTorch
 * since 1.13; with false the setters of TensorImpl throw.
 */
TERCEL_API bool detach_allows_metadata_change();
TERCEL_API void set_detach_allows_metadata_change(bool allow);

}  // namespace tercel
