// Whether a tensor's elements can lie at an address.
#pragma once

#include <cstdint>

#include "tercel/core/scalar_type.h"
#include "tercel/core/storage.h"

namespace tercel {

/** Whether the address is aligned for elements of the type: to their size, or to that of their parts. */
inline bool is_aligned(const void* elements, ScalarType dtype) {
  return reinterpret_cast<uintptr_t>(elements) % item_size(real_dtype(dtype)) == 0;
}

/**
 * ValueError if the storage's memory, such as a part of another storage, is not aligned to elements of the type. All
 * tensors have aligned elements, as compilers take for granted.
 */
TERCEL_API void check_aligned(const char* op, const StorageImpl& storage, ScalarType dtype);

}  // namespace tercel
