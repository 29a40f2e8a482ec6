// resize_() of CSR matrices.
#include <algorithm>

#include "tercel/autograd/record.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/sparse/compressed_impl.h"
#include "tercel/ops/sparse/coo.h"
#include "tercel/ops/sparse/coo_impl.h"
#include "tercel/ops/sparse/sparse_ops_impl.h"
#include "tercel/ops/views/cat.h"
#include "tercel/ops/views/views.h"

namespace tercel {

using sparse_ops::make_compressed;

const Tensor& sparse_resize_(const Tensor& x, IntSpan sizes) {
  if (x.layout() != Layout::SparseCsr || x.dim() != 2 || dense_dim(x) > 0) refuse_layout("resize_", x.layout());
  TERCEL_CHECK(sizes.size() == 2, RuntimeError, "resize_: expected the sizes of a matrix for a tensor of layout ",
               to_string(x.layout()), " but got ", sizes);
  TERCEL_CHECK(sizes[0] >= 0 && sizes[1] >= 0, RuntimeError, "resize_: expected sizes that are not negative but got ",
               sizes);
  constexpr const char* kNarrower =
      "resize_: Resizing columns of sparse CSR tensors to a smaller value is not supported.";
  TERCEL_CHECK(sizes[1] >= x.size(1), RuntimeError, kNarrower, " The original number of columns is ", x.size(1),
               " while the requested new number of columns is ", sizes[1], ".");
  TERCEL_CHECK(!x.requires_grad() && !should_record(x), RuntimeError, "cannot resize variables that require grad");
  const SparseData& parts = *x.impl().sparse();
  const int64_t before = x.size(0), rows = sizes[0];
  Tensor offsets = narrow(parts.indices, 0, 0, std::min(before, rows) + 1);
  const int64_t nnz = item(select(offsets, 0, -1)).to_int64();
  if (rows > before) offsets = cat({offsets, expand(narrow(offsets, 0, before, 1), {rows - before})}, 0);
  TERCEL_CHECK(nnz >= 0 && nnz <= parts.values.size(0), IndexError, "resize_: row ", std::min(before, rows),
               " begins at entry ", nnz, " of ", parts.values.size(0));
  sparse_ops::replace_parts(x, make_compressed(x.layout(), clone(offsets), narrow(parts.plain_indices, 0, 0, nnz),
                                               narrow(parts.values, 0, 0, nnz), DimVector(sizes)));
  return x;
}

}  // namespace tercel
