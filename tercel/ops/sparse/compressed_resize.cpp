// resize_() and resize_as_sparse_() of compressed tensors.
#include <algorithm>
#include <utility>

#include "tercel/autograd/record.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/sparse/compressed_impl.h"
#include "tercel/ops/sparse/coo.h"
#include "tercel/ops/sparse/coo_impl.h"
#include "tercel/ops/sparse/sparse_ops_impl.h"
#include "tercel/ops/views/cat.h"
#include "tercel/ops/views/resize.h"
#include "tercel/ops/views/views.h"

namespace tercel {

using sparse_ops::check_unrecorded;
using sparse_ops::layout_word;
using sparse_ops::make_compressed;
using sparse_ops::replace_parts;

namespace {

/** Checks of resize_() of CSR tensors. */
void check_new_sizes(const Tensor& x, IntSpan sizes) {
  if (x.layout() != Layout::SparseCsr || dense_dim(x) > 0) refuse_layout("resize_", x.layout());
  TERCEL_CHECK(sizes.size() >= 2, RuntimeError,
               "torch.resize_: Only batched sparse CSR matrices are supported, but got size ", sizes);
  for (const int64_t size : sizes)
    TERCEL_CHECK(size >= 0, RuntimeError, "resize_: expected sizes that are not negative but got ", sizes);
  const int64_t columns = sizes[sizes.size() - 1];
  constexpr const char* kNarrower =
      "torch.resize_: Resizing columns of sparse CSR tensors to a smaller value is not supported.";
  TERCEL_CHECK(columns >= x.size(-1), RuntimeError, kNarrower, " The original number of columns is ", x.size(-1),
               " while the requested new number of columns is ", columns, ".");
  TERCEL_CHECK(!x.requires_grad() && !should_record(x), RuntimeError, "cannot resize variables that require grad");
  const int64_t before = numel_of(x.sizes().subspan(0, x.sizes().size() - 2)),
                after = numel_of(sizes.subspan(0, sizes.size() - 2));
  TERCEL_CHECK(after <= before, RuntimeError, "resize_: expected sizes of at most ", before, " matrices but got ",
               sizes);
}

DimVector sizes_of(IntSpan batch, IntSpan rest) {
  DimVector out(batch);
  for (const int64_t size : rest) out.push_back(size);
  return out;
}

}  // namespace

const Tensor& sparse_resize_(const Tensor& x, IntSpan sizes) {
  if (!is_compressed(x.layout())) refuse_layout("resize_", x.layout());
  check_new_sizes(x, sizes);
  const SparseData& parts = *x.impl().sparse();
  const int64_t before = x.size(-2), rows = sizes[sizes.size() - 2];
  const IntSpan batch = sizes.subspan(0, sizes.size() - 2);
  const int64_t matrices = numel_of(batch);
  const auto of_matrices = [matrices](const Tensor& part) {
    return narrow(reshape(part, {-1, part.size(-1)}), 0, 0, matrices);
  };
  // An empty part has no number of matrices to infer.
  const bool entries = parts.plain_indices.numel() > 0 && matrices > 0;
  Tensor offsets = narrow(of_matrices(parts.indices), 1, 0, std::min(before, rows) + 1);
  int64_t nnz = 0;
  if (entries) {
    const Tensor ends = select(offsets, 1, -1);
    nnz = item(select(ends, 0, 0)).to_int64();
    TERCEL_CHECK(item(all(eq(ends, nnz))).to_bool(), RuntimeError, "resize_: expected as many entries in the first ",
                 rows, " rows of each matrix of a batch");
    TERCEL_CHECK(nnz >= 0 && nnz <= parts.values.size(-1), IndexError, "resize_: row ", std::min(before, rows),
                 " begins at entry ", nnz, " of ", parts.values.size(-1));
  }
  if (rows > before) offsets = cat({offsets, expand(narrow(offsets, 1, before, 1), {matrices, rows - before})}, 1);
  const auto kept = [&](const Tensor& part) {
    return entries ? reshape(narrow(of_matrices(part), 1, 0, nnz), sizes_of(batch, {nnz}))
                   : empty(sizes_of(batch, {0}), part.options());
  };
  replace_parts(x, make_compressed(x.layout(), clone(reshape(offsets, sizes_of(batch, {rows + 1}))),
                                   kept(parts.plain_indices), kept(parts.values), sizes));
  return x;
}

const Tensor& compressed_resize_as_(const Tensor& x, const Tensor& the_template) {
  for (const auto& [tensor, name] : {std::pair{&x, "self"}, {&the_template, "src"}})
    TERCEL_CHECK(is_compressed(tensor->layout()), RuntimeError, "resize_as_sparse_compressed_: ", name,
                 "  expected sparse compressed tensor layout but got ", layout_word(tensor->layout()));
  TERCEL_CHECK(x.layout() == the_template.layout(), RuntimeError,
               "resize_as_sparse_compressed_tensor_: self and src must have the same layout, but got: self (",
               layout_word(x.layout()), ") and source (", layout_word(the_template.layout()), ")");
  check_unrecorded("resize_as_sparse_", x, should_record(x));
  const SparseData &before = *x.impl().sparse(), &like = *the_template.impl().sparse();
  const ScalarType index = before.indices.dtype();
  const Tensor values = clone(before.values, MemoryFormat::Contiguous);
  resize_(values, like.values.sizes());
  replace_parts(x, make_compressed(x.layout(), to(like.indices, index, true), to(like.plain_indices, index, true),
                                   values, the_template.sizes()));
  return x;
}

}  // namespace tercel
