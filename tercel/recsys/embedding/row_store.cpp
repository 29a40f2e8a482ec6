#include "tercel/recsys/embedding/row_store.h"

#include "tercel/ops/factories/factories.h"

namespace tercel::recsys {

RowStore::RowStore(int64_t rows, int64_t dim, const TensorOptions& place, Span<const char*> state_names)
    : weight_(empty({rows, dim}, place)) {
  for (const char* name : state_names) {
    try {
      states_.push_back(empty({rows, dim}, place));
    } catch (const OutOfMemoryError& e) {
      throw_error<OutOfMemoryError>({"the optimizer's '", name, "': ", e.what()});
    }
  }
}

}  // namespace tercel::recsys
