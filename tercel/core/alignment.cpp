#include "tercel/core/alignment.h"

#include "tercel/util/error.h"

namespace tercel {

void check_aligned(const char* op, const StorageImpl& storage, ScalarType dtype) {
  TERCEL_CHECK(storage.nbytes() == 0 || is_aligned(storage.data(), dtype), ValueError, op,
               ": the memory is not aligned to elements of ", to_string(dtype), ". Copy it first.");
}

}  // namespace tercel
