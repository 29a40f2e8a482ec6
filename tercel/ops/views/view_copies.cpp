#include "tercel/ops/views/view_copies.h"

#include "tercel/ops/common/copy.h"
#include "tercel/ops/views/diagonals.h"
#include "tercel/ops/views/views.h"
#include "tercel/ops/views/views_impl.h"

namespace tercel {

namespace {

Tensor copied(const Tensor& view) {
  return clone(view, view.layout() == Layout::Strided ? MemoryFormat::Contiguous : MemoryFormat::Preserve);
}

}  // namespace

Tensor alias_copy(const Tensor& x) { return copied(x); }
Tensor as_strided_copy(const Tensor& x, IntSpan size, IntSpan stride, std::optional<int64_t> storage_offset) {
  return copied(as_strided(x, size, stride, storage_offset));
}
Tensor detach_copy(const Tensor& x) { return copied(x.detach()); }
Tensor diagonal_copy(const Tensor& x, int64_t offset, int64_t dim1, int64_t dim2) {
  return copied(diagonal(x, offset, dim1, dim2));
}
Tensor expand_copy(const Tensor& x, IntSpan sizes) { return copied(expand(x, sizes)); }
Tensor narrow_copy(const Tensor& x, int64_t dim, int64_t start, int64_t length) {
  if (x.layout() == Layout::SparseCoo) [[unlikely]] {
    // As in PyTorch, whose errors are others than those of narrow().
    TERCEL_CHECK(dim >= -x.dim() && dim < x.dim(), RuntimeError, "Dimension ", dim,
                 " out of range. Expecting 0 <= dim < ", x.dim(), ".");
    const int64_t size = x.sizes()[static_cast<size_t>(wrap_dim(dim, x.dim()))];
    TERCEL_CHECK(start >= 0 && length >= 0 && start <= size - length, RuntimeError,
                 "Invalid range to narrow. range(start, start+length) must be a subset of range(0, ", size, ").");
  }
  return copied(narrow(x, dim, start, length));
}
Tensor permute_copy(const Tensor& x, IntSpan dims) { return copied(permute(x, dims)); }
Tensor select_copy(const Tensor& x, int64_t dim, int64_t index) { return copied(select(x, dim, index)); }
Tensor slice_copy(const Tensor& x, int64_t dim, int64_t start, int64_t end, int64_t step) {
  return copied(slice(x, dim, start, end, step));
}
Tensor squeeze_copy(const Tensor& x) { return copied(squeeze(x)); }
Tensor squeeze_copy(const Tensor& x, int64_t dim) { return copied(squeeze(x, dim)); }
Tensor t_copy(const Tensor& x) { return copied(t(x)); }
Tensor transpose_copy(const Tensor& x, int64_t dim0, int64_t dim1) { return copied(transpose(x, dim0, dim1)); }
std::vector<Tensor> unbind_copy(const Tensor& x, int64_t dim) {
  std::vector<Tensor> out = unbind(x, dim);
  for (Tensor& part : out) part = copied(part);
  return out;
}
Tensor unfold_copy(const Tensor& x, int64_t dimension, int64_t size, int64_t step) {
  return copied(unfold(x, dimension, size, step));
}
Tensor unsqueeze_copy(const Tensor& x, int64_t dim) { return copied(unsqueeze(x, dim)); }
Tensor view_copy(const Tensor& x, IntSpan size) { return copied(reshape(x, size)); }

}  // namespace tercel
