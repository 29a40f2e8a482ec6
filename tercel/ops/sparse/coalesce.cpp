// Sums of the values of equal entries.
//
// Note [Coalescing]
// Entries are sorted by their row-major position, stably (Note [Sorted entries] in entry_sort_impl.h); each run of
// equal positions is then summed in its order by one thread. So the result does not depend on the number of threads.
// Entries that are in order already are not sorted.
#include <algorithm>

#include "tercel/autograd/record.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/sparse/coo.h"
#include "tercel/ops/sparse/coo_impl.h"
#include "tercel/ops/sparse/csr_impl.h"
#include "tercel/ops/views/views.h"
#include "tercel/util/profile.h"

namespace tercel {

namespace {

Tensor coalesced(const Tensor& x, const SparseData& parts) {
  using sparse_ops::csr_of_entries;
  using sparse_ops::CsrMatrix;
  using sparse_ops::flat_indices;
  using sparse_ops::make_coo;
  using sparse_ops::sparse_sizes;
  using sparse_ops::unflatten;
  const Tensor keys = flat_indices("coalesce", parts.indices, sparse_sizes(x, parts));
  const auto* first = static_cast<const int64_t*>(keys.data_ptr());
  const int64_t n = keys.numel();
  if (std::adjacent_find(first, first + n, [](int64_t a, int64_t b) { return a >= b; }) == first + n)
    return make_coo(parts.indices, parts.values, x.sizes(), true);
  // One row, whose columns are the positions.
  const Tensor row = expand(zeros({}, kInt64), {n});
  const CsrMatrix unique =
      csr_of_entries("coalesce", row, keys, parts.values, 1, numel_of(sparse_sizes(x, parts)), kInt64);
  return make_coo(unflatten(unique.columns, sparse_sizes(x, parts)), unique.values, x.sizes(), true);
}

}  // namespace

Tensor coalesce(const Tensor& x) {
  const ProfileRange range("coalesce", RangeKind::Op);
  check_defined("coalesce", x, "self");
  TERCEL_CHECK(x.layout() == Layout::SparseCoo, RuntimeError,
               "coalesce expected sparse coordinate tensor layout but got ", sparse_ops::layout_word(x.layout()));
  const SparseData& parts = *x.impl().sparse();
  if (parts.coalesced) return x;
  Tensor out = coalesced(x, parts);
  if (should_record(x)) record("CoalesceBackward0", out, {x}, [](BackwardCall& call) { call.set(0, call.take()); });
  return out;
}

}  // namespace tercel
