#include "tercel/data/csr_tensor.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "tercel/core/sparse_data.h"
#include "tercel/util/error.h"

namespace tercel::data {

namespace {

void check_part(const Tensor& part, const char* name, int64_t least) {
  check_strided("csr_tensor", part, name);
  TERCEL_CHECK(part.dim() == 1 && part.is_contiguous() && part.numel() >= least && part.device().is_cpu(), RuntimeError,
               "csr_tensor: expected ", name, " [", least == 0 ? "nnz" : "bags + 1", "] on cpu, contiguous, but got ",
               describe(part));
}

template <class T>
void check_indices(const Tensor& row_offsets, const Tensor& keys, int64_t num_keys) {
  const int64_t nnz = keys.numel(), bags = row_offsets.numel() - 1;
  const T* const offsets = row_offsets.data<T>();
  TERCEL_CHECK(offsets[0] == 0 && offsets[bags] == nnz, IndexError, "csr_tensor: expected row offsets from 0 to ", nnz,
               ", the number of keys, but they are from ", offsets[0], " to ", offsets[bags]);
  const T* const falls = std::adjacent_find(offsets, offsets + bags + 1, [](T a, T b) { return a > b; });
  TERCEL_CHECK(falls == offsets + bags + 1, IndexError,
               "csr_tensor: expected row offsets that do not fall, but number ", falls - offsets, " is ", *falls,
               ", and the next one ", falls[1]);
  const T* const first = keys.data<T>();
  const T* const bad = std::find_if(first, first + nnz, [num_keys](T key) { return key < 0 || key >= num_keys; });
  TERCEL_CHECK(bad == first + nnz, IndexError, "csr_tensor: expected keys in [0, ", num_keys, "), but key number ",
               bad - first, " is ", *bad);
}

Tensor ones(int64_t size) {
  Tensor result = empty({size}, kFloat32);
  std::fill_n(result.data<float>(), size, 1.0f);
  return result;
}

}  // namespace

Tensor csr_tensor(const Tensor& row_offsets, const Tensor& keys, const Tensor& key_weights, int64_t num_keys) {
  check_part(row_offsets, "row_offsets", 1);
  check_part(keys, "keys", 0);
  TERCEL_CHECK(row_offsets.dtype() == keys.dtype(), RuntimeError, "csr_tensor: expected row offsets of the keys' ",
               to_string(keys.dtype()), ", but they are ", to_string(row_offsets.dtype()));
  if (key_weights.defined()) {
    check_part(key_weights, "key_weights", 0);
    TERCEL_CHECK(key_weights.numel() == keys.numel(), RuntimeError, "csr_tensor: expected a weight for each of ",
                 keys.numel(), " keys, but got ", key_weights.numel());
    TERCEL_CHECK(!key_weights.requires_grad(), RuntimeError,
                 "csr_tensor: it has no gradient, but key_weights require one; give it their detach()");
  }
  visit_index_types("csr_tensor", keys.dtype(), [&]<class T>() { check_indices<T>(row_offsets, keys, num_keys); });

  auto parts = std::make_unique<SparseData>();
  parts->indices = row_offsets;
  parts->plain_indices = keys;
  parts->values = key_weights.defined() ? key_weights : ones(keys.numel());
  parts->sparse_dim = 2;
  auto impl = make_intrusive<TensorImpl>(parts->values.dtype(), kCpu, IntSpan({row_offsets.numel() - 1, num_keys}),
                                         Layout::SparseCsr);
  impl->set_sparse(std::move(parts));
  // With a version counter of its own: see Note [Sparse tensors].
  return Tensor(impl->shallow_copy(/*own_version=*/true, /*allow_metadata_change=*/true));
}

Tensor csr_tensor(const SparseBatch& batch, int64_t num_keys) {
  return csr_tensor(batch.row_offsets, batch.keys, batch.key_weights, num_keys);
}

}  // namespace tercel::data
