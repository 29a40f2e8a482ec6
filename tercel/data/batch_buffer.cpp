#include <algorithm>
#include <cstring>

#include "tercel/data/batch_buffer_impl.h"
#include "tercel/util/error.h"

namespace tercel::data {

namespace {

// Whether this is the only handle of the tensor and its memory, and both are as empty() makes them.
bool is_ours(const Tensor& tensor, ScalarType dtype, int64_t numel) {
  return tensor.defined() && tensor.use_count() == 1 && tensor.dtype() == dtype && tensor.device().is_cpu() &&
         tensor.has_storage() && tensor.storage().use_count() == 1 && tensor.storage_offset() == 0 &&
         !tensor.requires_grad() && tensor.impl().autograd_meta() == nullptr &&
         tensor.impl().plain_view_base() == nullptr && tensor.impl().allow_tensor_metadata_change() &&
         tensor.storage()->nbytes() >= static_cast<size_t>(numel) * item_size(dtype);
}

// Reuses the tensor if possible; its elements are unspecified.
void remake(Tensor& tensor, IntSpan sizes, ScalarType dtype) {
  if (is_ours(tensor, dtype, numel_of(sizes)))
    tensor.impl().set_sizes_contiguous(sizes);
  else
    tensor = empty(sizes, dtype);
}

}  // namespace

Tensor uniform_row_offsets(const BatchShape::Input& input, int64_t rows) {
  Tensor result = empty({rows * input.slot_num + 1}, kInt64);
  int64_t* out = result.data<int64_t>();
  int64_t offset = 0;
  *out++ = offset;
  for (int64_t row = 0; row < rows; ++row)
    for (const int64_t hotness : input.hotness) *out++ = offset += hotness;
  return result;
}

void BatchBuffer::prepare(int64_t rows, const BatchShape& shape, Span<Tensor> uniform_offsets) {
  uniform_ = shape.uniform;
  batch.rows = rows;
  remake(batch.labels, {rows, shape.label_dim}, kFloat32);
  remake(batch.dense, {rows, shape.dense_dim}, kFloat32);
  labels = static_cast<float*>(batch.labels.data_ptr());
  dense = static_cast<float*>(batch.dense.data_ptr());
  batch.sparse.resize(shape.inputs.size());
  inputs.assign(shape.inputs.size(), Input{});
  for (size_t i = 0; i < inputs.size(); ++i) {
    const BatchShape::Input& input = shape.inputs[i];
    SparseBatch& sparse = batch.sparse[i];
    const int64_t first = input.hotness.empty() ? 0 : input.hotness.front();
    const bool equal =
        std::all_of(input.hotness.begin(), input.hotness.end(), [first](int64_t h) { return h == first; });
    sparse.slot_num = input.slot_num;
    sparse.hotness = uniform_ && equal ? first : 0;
    const int64_t num_offsets = rows * input.slot_num + 1;
    if (uniform_) {
      const Tensor& all = uniform_offsets[i];
      sparse.row_offsets = all.numel() == num_offsets
                               ? all
                               : Tensor(make_intrusive<TensorImpl>(all.storage(), kInt64, IntSpan({num_offsets})));
      int64_t row_nnz = 0;
      for (const int64_t hotness : input.hotness) row_nnz += hotness;
      inputs[i].nnz = rows * row_nnz;
      remake(sparse.keys, {inputs[i].nnz}, kInt64);
      inputs[i].keys = static_cast<int64_t*>(sparse.keys.data_ptr());
      inputs[i].capacity = inputs[i].nnz;
    } else {
      remake(sparse.row_offsets, {num_offsets}, kInt64);
      inputs[i].row_offsets = sparse.row_offsets.data<int64_t>();
      inputs[i].row_offsets[0] = 0;
      if (!is_ours(sparse.keys, kInt64, 1)) sparse.keys = empty({0}, kInt64);
      inputs[i].keys = static_cast<int64_t*>(sparse.keys.storage()->data());
      inputs[i].capacity = static_cast<int64_t>(sparse.keys.storage()->nbytes() / sizeof(int64_t));
    }
  }
}

void BatchBuffer::reserve_keys(size_t input, int64_t count) {
  Input& target = inputs[input];
  if (count <= target.capacity) return;
  const int64_t capacity = std::max(count, target.capacity + target.capacity / 2);
  Tensor keys = empty({capacity}, kInt64);
  if (target.nnz > 0) std::memcpy(keys.data<int64_t>(), target.keys, static_cast<size_t>(target.nnz) * sizeof(int64_t));
  batch.sparse[input].keys = std::move(keys);
  target.keys = batch.sparse[input].keys.data<int64_t>();
  target.capacity = capacity;
}

void BatchBuffer::finish() {
  if (uniform_) return;
  for (size_t i = 0; i < inputs.size(); ++i) batch.sparse[i].keys.impl().set_sizes_contiguous({inputs[i].nnz});
}

}  // namespace tercel::data
