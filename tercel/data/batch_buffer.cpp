#include <algorithm>
#include <cstring>
#include <numeric>
#include <type_traits>
#include <utility>

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

/** The hotness of all slots if it is the same, else 0. */
int64_t common_hotness(const BatchShape::Input& input) {
  const int64_t first = input.hotness.empty() ? 0 : input.hotness.front();
  return std::all_of(input.hotness.begin(), input.hotness.end(), [first](int64_t h) { return h == first; }) ? first : 0;
}

/** The values of a column as f32; the tensor itself if they are. */
Tensor as_floats(const Tensor& values) {
  if (values.dtype() == kFloat32) return values;
  const Tensor out = empty(values.sizes(), kFloat32);
  const auto* const from = static_cast<const int64_t*>(values.data_ptr());
  std::transform(from, from + values.numel(), static_cast<float*>(out.data_ptr()),
                 [](int64_t value) { return static_cast<float>(value); });
  return out;
}

template <class T>
void fill_uniform_offsets(const BatchShape::Input& input, BagOrder order, int64_t rows, T* out) {
  int64_t offset = 0;
  *out++ = 0;
  const auto next = [&](int64_t hotness) { *out++ = static_cast<T>(offset += hotness); };
  if (order == BagOrder::SampleMajor) {
    for (int64_t row = 0; row < rows; ++row)
      for (const int64_t hotness : input.hotness) next(hotness);
  } else {
    for (const int64_t hotness : input.hotness)
      for (int64_t row = 0; row < rows; ++row) next(hotness);
  }
}

/** Keys and weights of an input, and where its bags begin. */
template <class Key>
struct Bags {
  Key* row_offsets;  // null: not written
  Key* keys;
  float* weights;  // null: there are none
};

/** Copies bags from the order of rows to that of slots, or only converts them. */
template <class Key>
void copy_bags(const Bags<const int64_t>& from, BagOrder order, int64_t rows, int64_t slots, const Bags<Key>& to) {
  int64_t next = 0;
  if (to.row_offsets) to.row_offsets[0] = 0;
  const auto copy = [&](int64_t source, int64_t target) {
    for (int64_t k = from.row_offsets[source]; k < from.row_offsets[source + 1]; ++k, ++next) {
      to.keys[next] = static_cast<Key>(from.keys[k]);
      if (to.weights) to.weights[next] = from.weights[k];
    }
    if (to.row_offsets) to.row_offsets[target + 1] = static_cast<Key>(next);
  };
  if (order == BagOrder::SampleMajor) {
    for (int64_t bag = 0; bag < rows * slots; ++bag) copy(bag, bag);
  } else {
    for (int64_t slot = 0; slot < slots; ++slot)
      for (int64_t row = 0; row < rows; ++row) copy(row * slots + slot, slot * rows + row);
  }
}

}  // namespace

BatchShape shape_of(const Schema& schema, Span<SparseInput> inputs) {
  BatchShape shape;
  shape.label_dim = schema.label_dim;
  shape.dense_dim = schema.dense_dim;
  size_t slot = 0;
  for (const SparseInput& taken : inputs) {
    BatchShape::Input input;
    input.name = taken.name;
    input.slot_num = taken.slot_num;
    for (int64_t s = 0; s < taken.slot_num; ++s, ++slot) {
      TERCEL_ASSERT(slot < schema.slots.size());
      input.hotness.push_back(schema.slots[slot].hotness);
      input.key_weights |= schema.slots[slot].weighted;
    }
    shape.inputs.push_back(std::move(input));
  }
  TERCEL_ASSERT(slot == schema.slots.size());
  return shape;
}

int64_t row_nnz(const BatchShape::Input& input) {
  return std::accumulate(input.hotness.begin(), input.hotness.end(), int64_t{0});
}

Tensor uniform_row_offsets(const BatchShape& shape, size_t input, int64_t rows) {
  Tensor result = empty({rows * shape.inputs[input].slot_num + 1}, shape.key_dtype);
  if (shape.key_dtype == kInt64)
    fill_uniform_offsets(shape.inputs[input], shape.bag_order, rows, result.data<int64_t>());
  else
    fill_uniform_offsets(shape.inputs[input], shape.bag_order, rows, result.data<int32_t>());
  return result;
}

BatchBuffer::Decoded BatchBuffer::decoded(size_t input) {
  SparseBatch& sparse = shape_->as_decoded() ? batch.sparse[input] : own_[input];
  return {sparse.row_offsets, sparse.keys, sparse.key_weights};
}

void BatchBuffer::prepare(int64_t rows, const BatchShape& shape, Span<Tensor> uniform_offsets) {
  shape_ = &shape;
  uniform_offsets_ = uniform_offsets;
  batch.rows = rows;
  batch.bad_rows.clear();
  batch.bad_record.clear();
  batch.weights.reset();  // so that the column's memory is not shared
  remake(batch.labels, {rows, shape.label_dim}, kFloat32);
  remake(batch.dense, {rows, shape.dense_dim}, kFloat32);
  labels = static_cast<float*>(batch.labels.data_ptr());
  dense = static_cast<float*>(batch.dense.data_ptr());
  batch.columns.resize(shape.columns.size());
  columns.clear();
  for (size_t c = 0; c < shape.columns.size(); ++c) {
    RowColumn& column = batch.columns[c];
    column.name = shape.columns[c].name;
    remake(column.values, {rows}, shape.columns[c].dtype);
    columns.push_back(column.values.data_ptr());
  }
  batch.sparse.resize(shape.inputs.size());
  own_.resize(shape.as_decoded() ? 0 : shape.inputs.size());
  inputs.assign(shape.inputs.size(), Input{});
  for (size_t i = 0; i < inputs.size(); ++i) prepare_input(i, rows);
}

Tensor BatchBuffer::uniform_offsets_of(size_t input, int64_t rows) const {
  const Tensor& all = uniform_offsets_[input];
  const int64_t num_offsets = rows * shape_->inputs[input].slot_num + 1;
  if (all.numel() == num_offsets) return all;
  if (shape_->bag_order == BagOrder::SlotMajor) return uniform_row_offsets(*shape_, input, rows);
  return Tensor(make_intrusive<TensorImpl>(all.storage(), all.dtype(), IntSpan({num_offsets})));
}

void BatchBuffer::prepare_input(size_t input, int64_t rows) {
  const BatchShape::Input& shape = shape_->inputs[input];
  SparseBatch& sparse = batch.sparse[input];
  sparse.name = shape.name;
  sparse.slot_num = shape.slot_num;
  sparse.hotness = shape_->uniform ? common_hotness(shape) : 0;
  sparse.order = shape_->bag_order;
  if (!shape.key_weights) sparse.key_weights = Tensor();  // of the reader that used the batch before
  const int64_t num_offsets = rows * shape.slot_num + 1;
  const Decoded target = decoded(input);
  Input& out = inputs[input];
  if (shape_->uniform) {
    sparse.row_offsets = uniform_offsets_of(input, rows);
    out.nnz = rows * row_nnz(shape);
    remake(target.keys, {out.nnz}, kInt64);
    out.capacity = out.nnz;
    if (shape.key_weights) remake(target.key_weights, {out.nnz}, kFloat32);
  } else {
    remake(target.row_offsets, {num_offsets}, kInt64);
    out.row_offsets = target.row_offsets.data<int64_t>();
    out.row_offsets[0] = 0;
    if (!is_ours(target.keys, kInt64, 1)) target.keys = empty({0}, kInt64);
    out.capacity = static_cast<int64_t>(target.keys.storage()->nbytes() / sizeof(int64_t));
    if (shape.key_weights && !is_ours(target.key_weights, kFloat32, out.capacity))
      target.key_weights = empty({out.capacity}, kFloat32);
  }
  out.keys = static_cast<int64_t*>(target.keys.storage()->data());
  out.key_weights = shape.key_weights ? static_cast<float*>(target.key_weights.storage()->data()) : nullptr;
}

void BatchBuffer::reserve_keys(size_t input, int64_t count) {
  Input& out = inputs[input];
  if (count <= out.capacity) return;
  const Decoded target = decoded(input);
  const int64_t capacity = std::max(count, out.capacity + out.capacity / 2);
  const auto grow = [&](Tensor& tensor, auto*& values) {
    Tensor larger = empty({capacity}, tensor.dtype());
    if (out.nnz > 0) std::memcpy(larger.data_ptr(), values, static_cast<size_t>(out.nnz) * sizeof(*values));
    tensor = std::move(larger);
    values = static_cast<std::remove_reference_t<decltype(values)>>(tensor.data_ptr());
  };
  grow(target.keys, out.keys);
  if (shape_->inputs[input].key_weights) grow(target.key_weights, out.key_weights);
  out.capacity = capacity;
}

void BatchBuffer::arrange(size_t input) {
  const BatchShape::Input& shape = shape_->inputs[input];
  const Input& from = inputs[input];
  SparseBatch& to = batch.sparse[input];
  remake(to.keys, {from.nnz}, shape_->key_dtype);
  if (shape.key_weights) remake(to.key_weights, {from.nnz}, kFloat32);
  if (!shape_->uniform) remake(to.row_offsets, {batch.rows * shape.slot_num + 1}, shape_->key_dtype);
  // Sources write no offsets where all batches have the same: those of the order of rows are made once.
  Tensor& offsets = own_[input].row_offsets;
  if (shape_->uniform && (!offsets.defined() || offsets.numel() < batch.rows * shape.slot_num + 1)) {
    offsets = empty({batch.rows * shape.slot_num + 1}, kInt64);
    fill_uniform_offsets(shape, BagOrder::SampleMajor, batch.rows, offsets.data<int64_t>());
  }
  const Bags<const int64_t> decoded{offsets.data<int64_t>(), from.keys, from.key_weights};
  const auto copy = [&]<class Key>(Key*) {
    copy_bags(decoded, to.order, batch.rows, shape.slot_num,
              Bags<Key>{shape_->uniform ? nullptr : to.row_offsets.data<Key>(), static_cast<Key*>(to.keys.data_ptr()),
                        shape.key_weights ? static_cast<float*>(to.key_weights.data_ptr()) : nullptr});
  };
  if (shape_->key_dtype == kInt64)
    copy(static_cast<int64_t*>(nullptr));
  else
    copy(static_cast<int32_t*>(nullptr));
}

void BatchBuffer::truncate(int64_t row) {
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!shape_->uniform) inputs[i].nnz = inputs[i].row_offsets[row * shape_->inputs[i].slot_num];
}

void BatchBuffer::shrink(int64_t rows) {
  batch.rows = rows;
  batch.labels.impl().set_sizes_contiguous({rows, shape_->label_dim});
  batch.dense.impl().set_sizes_contiguous({rows, shape_->dense_dim});
  for (RowColumn& column : batch.columns) column.values.impl().set_sizes_contiguous({rows});
  for (size_t i = 0; i < inputs.size(); ++i) {
    const BatchShape::Input& shape = shape_->inputs[i];
    const Decoded target = decoded(i);
    if (shape_->uniform) {
      batch.sparse[i].row_offsets = uniform_offsets_of(i, rows);
      inputs[i].nnz = rows * row_nnz(shape);
      target.keys.impl().set_sizes_contiguous({inputs[i].nnz});
      if (shape.key_weights) target.key_weights.impl().set_sizes_contiguous({inputs[i].nnz});
    } else {
      target.row_offsets.impl().set_sizes_contiguous({rows * shape.slot_num + 1});
    }
  }
}

void BatchBuffer::finish(int64_t rows) {
  if (rows < batch.rows) shrink(rows);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!shape_->as_decoded()) {
      arrange(i);
    } else if (!shape_->uniform) {
      batch.sparse[i].keys.impl().set_sizes_contiguous({inputs[i].nnz});
      if (shape_->inputs[i].key_weights) batch.sparse[i].key_weights.impl().set_sizes_contiguous({inputs[i].nnz});
    }
  }
  for (size_t c = 0; c < shape_->columns.size(); ++c)
    if (shape_->columns[c].is_weight) batch.weights = as_floats(batch.columns[c].values);
}

}  // namespace tercel::data
