#include <algorithm>
#include <cstring>

#include "tercel/autograd/record.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/index/gather.h"
#include "tercel/ops/sparse/compressed.h"
#include "tercel/ops/sparse/compressed_impl.h"
#include "tercel/ops/sparse/coo.h"
#include "tercel/ops/sparse/coo_impl.h"
#include "tercel/ops/views/cat.h"
#include "tercel/ops/views/views.h"

namespace tercel::sparse_ops {

const SparseData& compressed_parts(const char* op, const Tensor& x) {
  check_defined(op, x, "self");
  if (!is_compressed(x.layout())) refuse_layout(op, x.layout());
  return *x.impl().sparse();
}

int64_t batch_dims(const Tensor& x) { return x.impl().sparse()->indices.dim() - 1; }

namespace {

/** Offsets and indices with values that take no memory, to be saved for backward. */
Tensor pattern_of(const Tensor& x) {
  const SparseData& parts = *x.impl().sparse();
  const Tensor values = expand(zeros({}, TensorOptions(x.dtype(), x.device())), parts.values.sizes());
  return make_compressed(x.layout(), parts.indices, parts.plain_indices, values, x.sizes());
}

}  // namespace

Tensor compressed_of_values(Layout layout, const Tensor& offsets, const Tensor& plain, const Tensor& values,
                            IntSpan sizes) {
  Tensor out = make_compressed(layout, offsets, plain, values, sizes);
  if (should_record(values))
    record("SparseCompressedTensorBackward0", out, {values},
           [pattern = SavedTensor(pattern_of(out))](BackwardCall& call) {
             call.set(0, elements_at_pattern(call.grad(), pattern.get()));
           });
  return out;
}

Tensor with_values(const Tensor& x, const Tensor& values) {
  const SparseData& parts = *x.impl().sparse();
  return compressed_of_values(x.layout(), parts.indices, parts.plain_indices, values, x.sizes());
}

Tensor compressed_values(const Tensor& x) {
  const SparseData& parts = compressed_parts("values", x);
  Tensor out = parts.values.detach();
  if (should_record(x))
    record("ValuesBackward0", out, {x}, [pattern = SavedTensor(pattern_of(x))](BackwardCall& call) {
      call.set(0, with_values(pattern.get(), call.grad()));
    });
  return out;
}

Tensor in_layout_of(const Tensor& x, const Tensor& like) {
  if (!is_blocked(like.layout())) return to_sparse(x, like.layout());
  const auto batch = static_cast<size_t>(batch_dims(like));
  return to_sparse(x, like.layout(), like.impl().sparse()->values.sizes().subspan(batch + 1, 2));
}

bool same_pattern(const Tensor& a, const Tensor& b) {
  if (a.layout() != b.layout() || a.sizes() != b.sizes()) return false;
  const SparseData &x = *a.impl().sparse(), &y = *b.impl().sparse();
  const auto same = [](const Tensor& p, const Tensor& q) {
    if (p.is_set_to(q)) return true;
    if (p.sizes() != q.sizes() || p.dtype() != q.dtype()) return false;
    const Tensor u = p.contiguous(), v = q.contiguous();
    return u.numel() == 0 || std::memcmp(u.data_ptr(), v.data_ptr(), u.nbytes()) == 0;
  };
  return same(x.indices, y.indices) && same(x.plain_indices, y.plain_indices) && x.values.sizes() == y.values.sizes();
}

void overwrite(const Tensor& x, const Tensor& with, bool records) {
  const Tensor values = is_compressed(x.layout()) ? x.impl().sparse()->values : Tensor();
  if (records || !values.defined() || !same_pattern(x, with) || !values.impl().is_non_overlapping_and_dense())
    return replace_parts(x, with);
  const NoRecordGuard no_record;
  copy_(values, with.impl().sparse()->values);
}

CsrMatrix matrix_of(const Tensor& x) {
  const SparseData& parts = *x.impl().sparse();
  const bool rows = by_rows(x.layout());
  CsrMatrix a{parts.indices, parts.plain_indices, parts.values, x.size(rows ? 1 : 0)};
  if (is_blocked(x.layout())) {
    // Blocks of the transpose are transposed.
    if (!rows) a.values = transpose(a.values, 1, 2);
    a.num_columns /= a.values.size(2);
  }
  return a;
}

Tensor tensor_of(Layout layout, const CsrMatrix& a, IntSpan sizes) {
  const bool turn = is_blocked(layout) && !by_rows(layout);
  return make_compressed(layout, a.offsets, a.columns, turn ? contiguous(transpose(a.values, 1, 2)) : a.values, sizes);
}

namespace {

/** Positions [nnz], row-major, of the entries (blocks) of a matrix. */
Tensor positions_of(const Tensor& pattern) {
  const CsrMatrix a = checked_csr("sparse_mask", matrix_of(pattern));
  check_columns("sparse_mask", a);
  const Tensor major = to(csr_rows(a), kInt64), minor = to(a.columns, kInt64);
  if (by_rows(pattern.layout())) return add(mul(major, a.num_columns), minor);
  return add(mul(minor, a.num_rows()), major);
}

/** Of a strided tensor with the pattern's sizes, one matrix. */
Tensor strided_elements(const Tensor& x, const Tensor& pattern) {
  const SparseData& parts = *pattern.impl().sparse();
  const auto dense = x.sizes().subspan(2, x.sizes().size() - 2);
  DimVector rows{x.size(0) * x.size(1)};
  Tensor flat;
  if (is_blocked(pattern.layout())) {
    const int64_t height = parts.values.size(1), width = parts.values.size(2);
    DimVector split{x.size(0) / height, height, x.size(1) / width, width};
    for (const int64_t s : dense) split.push_back(s);
    rows = {split[0] * split[2], height, width};
    flat = transpose(reshape(x, split), 1, 2);
  } else {
    flat = x;
  }
  for (const int64_t s : dense) rows.push_back(s);
  return index_select(reshape(flat, rows), 0, positions_of(pattern));
}

/** Whether both are matrices that can be merged row by row. */
bool has_plain_rows(const Tensor& x, const Tensor& pattern) {
  const bool plain = !is_blocked(x.layout()) && x.layout() == pattern.layout() && x.dim() == 2;
  return plain && x.impl().sparse()->indices.dtype() == pattern.impl().sparse()->indices.dtype();
}

/** Of another matrix of the same layout: what both have, and zeros. */
Tensor merged_elements(const Tensor& x, const Tensor& pattern) {
  CsrMatrix ones = matrix_of(pattern), none = ones;
  // The merge has ascending columns.
  if (!csr_ascends("sparse_mask", ones))
    return elements_at(compressed_to_coo(x), unflatten(positions_of(pattern), pattern.sizes()), 2);
  ones.values = expand(tercel::ones({}, TensorOptions(x.dtype())), {ones.nnz()});
  none.values = expand(zeros({}, TensorOptions(x.dtype())), {none.nnz()});
  return csr_add("sparse_mask", none, csr_mul("sparse_mask", matrix_of(x), ones), 1).values;
}

}  // namespace

Tensor elements_at_pattern(const Tensor& x, const Tensor& pattern) {
  TERCEL_CHECK(x.sizes() == pattern.sizes(), RuntimeError,
               "sparse_mask(): operands have incompatible sizes; self has size ", x.sizes(), " but mask has size ",
               pattern.sizes());
  if (is_compressed(x.layout()) && same_pattern(x, pattern)) return compressed_values(x);
  if (is_compressed(x.layout()) && has_plain_rows(x, pattern) && !should_record(x)) return merged_elements(x, pattern);
  if (x.layout() != Layout::Strided) return elements_at_pattern(to_dense(x), pattern);
  if (batch_dims(pattern) == 0) return strided_elements(x, pattern);
  std::vector<Tensor> parts;
  for (int64_t b = 0; b < x.size(0); ++b) parts.push_back(elements_at_pattern(select(x, 0, b), batch_of(pattern, b)));
  if (parts.empty()) return zeros(pattern.impl().sparse()->values.sizes(), TensorOptions(x.dtype(), x.device()));
  return stack(parts, 0);
}

Tensor batch_of(const Tensor& x, int64_t position, int64_t dim) {
  const SparseData& parts = *x.impl().sparse();
  DimVector sizes(x.sizes());
  sizes.erase(sizes.begin() + dim);
  return compressed_of_values(x.layout(), select(parts.indices, dim, position),
                              select(parts.plain_indices, dim, position), select(compressed_values(x), dim, position),
                              sizes);
}

Tensor stack_batches(Span<Tensor> batches) {
  std::vector<Tensor> offsets, plain, values;
  for (const Tensor& x : batches) {
    const SparseData& parts = *x.impl().sparse();
    TERCEL_CHECK(parts.plain_indices.sizes() == batches[0].impl().sparse()->plain_indices.sizes(), RuntimeError,
                 "Expect the same number of specified elements per batch.");
    offsets.push_back(parts.indices);
    plain.push_back(parts.plain_indices);
    values.push_back(compressed_values(x));
  }
  DimVector sizes(batches[0].sizes());
  sizes.insert(sizes.begin(), static_cast<int64_t>(batches.size()));
  return compressed_of_values(batches[0].layout(), stack(offsets, 0), stack(plain, 0), stack(values, 0), sizes);
}

}  // namespace tercel::sparse_ops
