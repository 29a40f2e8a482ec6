#include "tercel/recsys/embedding/row_store.h"

#include "tercel/ops/factories/factories.h"

namespace tercel::recsys {

RowStore::RowStore(int64_t rows, int64_t dim, const TensorOptions& place, Span<const char*> state_names, size_t per_row)
    : weight_(empty({rows, dim}, place)) {
  for (size_t k = 0; k < state_names.size(); ++k) {
    try {
      states_.push_back(empty({rows, k + per_row < state_names.size() ? dim : 1}, place));
    } catch (const OutOfMemoryError& e) {
      throw_error<OutOfMemoryError>({"the optimizer's '", state_names[k], "': ", e.what()});
    }
  }
}

}  // namespace tercel::recsys
