#include "tercel/core/sparse_data.h"

#include <memory>
#include <utility>

namespace tercel {

Tensor detail::make_coo(const Tensor& indices, const Tensor& values, IntSpan sizes, bool coalesced) {
  auto impl = make_intrusive<TensorImpl>(values.dtype(), values.device(), sizes, Layout::SparseCoo);
  impl->set_sparse(std::make_unique<SparseData>(SparseData{.indices = indices,
                                                           .values = Tensor(values.impl().shallow_copy(false, true)),
                                                           .sparse_dim = indices.size(0),
                                                           .dense_dim = values.dim() - 1,
                                                           .coalesced = coalesced || values.size(0) < 2}));
  return Tensor(std::move(impl));
}

Tensor detail::make_compressed(Layout layout, const Tensor& offsets, const Tensor& plain, const Tensor& values,
                               IntSpan sizes) {
  auto impl = make_intrusive<TensorImpl>(values.dtype(), values.device(), sizes, layout);
  impl->set_sparse(std::make_unique<SparseData>(
      SparseData{.indices = offsets,
                 .plain_indices = plain,
                 .values = Tensor(values.impl().shallow_copy(false, true)),
                 .sparse_dim = 2,
                 .dense_dim = static_cast<int64_t>(sizes.size()) - 2 - (offsets.dim() - 1)}));
  return Tensor(std::move(impl));
}

}  // namespace tercel
