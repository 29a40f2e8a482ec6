#include "tercel/data/csr_tensor.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "tercel/core/sparse_data.h"
#include "tercel/util/error.h"

namespace tercel::data {

namespace {

void check_keys(const SparseBatch& batch, int64_t num_keys) {
  visit_index_types("csr_tensor", batch.keys.dtype(), [&]<class T>() {
    const T* const keys = batch.keys.data<T>();
    const T* const end = keys + batch.keys.numel();
    const T* const bad = std::find_if(keys, end, [num_keys](T key) { return key < 0 || key >= num_keys; });
    TERCEL_CHECK(bad == end, IndexError, "csr_tensor: expected keys in [0, ", num_keys, "), but key ", bad - keys,
                 " of '", batch.name, "' is ", *bad);
  });
}

Tensor ones(int64_t size) {
  Tensor result = empty({size}, kFloat32);
  std::fill_n(result.data<float>(), size, 1.0f);
  return result;
}

}  // namespace

Tensor csr_tensor(const SparseBatch& batch, int64_t num_keys) {
  check_defined("csr_tensor", batch.row_offsets, "row_offsets");
  check_defined("csr_tensor", batch.keys, "keys");
  check_keys(batch, num_keys);
  auto parts = std::make_unique<SparseData>();
  parts->indices = batch.row_offsets;
  parts->plain_indices = batch.keys;
  parts->values = batch.key_weights.defined() ? batch.key_weights : ones(batch.keys.numel());
  parts->sparse_dim = 2;
  auto impl = make_intrusive<TensorImpl>(parts->values.dtype(), batch.keys.device(),
                                         IntSpan({batch.row_offsets.numel() - 1, num_keys}), Layout::SparseCsr);
  impl->set_sparse(std::move(parts));
  // With a version counter of its own: see Note [Sparse tensors].
  return Tensor(impl->shallow_copy(/*own_version=*/true, /*allow_metadata_change=*/true));
}

}  // namespace tercel::data
