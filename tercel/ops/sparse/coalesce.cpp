// Sums of the values of equal entries.
//
// Note [Coalescing]
// Entries are sorted by their row-major position, stably (Note [Sorted entries] in entry_sort_impl.h); each run of
// equal positions is then summed in its order by one thread. So the result does not depend on the number of threads.
// Entries that are in order already are not sorted.
#include "tercel/autograd/record.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/sparse/coo.h"
#include "tercel/ops/sparse/coo_impl.h"
#include "tercel/ops/sparse/csr_impl.h"
#include "tercel/ops/views/views.h"
#include "tercel/util/profile.h"

namespace tercel {

sparse_ops::UniqueEntries sparse_ops::unique_entries(const char* op, const Tensor& x) {
  const SparseData& parts = parts_of(op, x);
  const IntSpan sizes = sparse_sizes(x, parts);
  const Tensor keys = flat_indices(op, parts.indices, sizes);
  if (ascends(keys)) return {parts.indices, parts.values, keys};
  // One row, whose columns are the positions.
  const Tensor row = expand(zeros({}, kInt64), {keys.numel()});
  const CsrMatrix unique = csr_of_entries(op, row, keys, parts.values, 1, numel_of(sizes), kInt64);
  return {unflatten(unique.columns, sizes), unique.values, unique.columns};
}

Tensor coalesce(const Tensor& x) {
  const ProfileRange range("coalesce", RangeKind::Op);
  check_defined("coalesce", x, "self");
  TERCEL_CHECK(x.layout() == Layout::SparseCoo, RuntimeError,
               "coalesce expected sparse coordinate tensor layout but got ", sparse_ops::layout_word(x.layout()));
  if (x.impl().sparse()->coalesced) return x;
  const sparse_ops::UniqueEntries entries = sparse_ops::unique_entries("coalesce", x);
  Tensor out = sparse_ops::make_coo(entries.indices, entries.values, x.sizes(), true);
  if (should_record(x)) record("CoalesceBackward0", out, {x}, [](BackwardCall& call) { call.set(0, call.take()); });
  return out;
}

}  // namespace tercel
