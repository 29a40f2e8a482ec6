#include "tercel/io/pickled_tensors_impl.h"

#include <algorithm>
#include <utility>

#include "tercel/core/sparse_data.h"
#include "tercel/io/sparse_impl.h"
#include "tercel/util/format.h"

namespace tercel::io {

size_t PickledTensors::add_storage(std::string_view key, int64_t count, ScalarType dtype) {
  int64_t nbytes = 0;
  const auto item = static_cast<int64_t>(dtype == ScalarType::Undefined ? 1 : item_size(dtype));
  if (count < 0 || __builtin_mul_overflow(count, item, &nbytes))
    errors_.fail("the size of a storage", str_cat({count}));
  const auto [found, is_new] = keys_.try_emplace(key, storages_.size());
  if (is_new) storages_.push_back({key, nbytes, dtype, {}});
  StorageInfo& info = storages_[found->second];
  if (info.nbytes != nbytes)
    errors_.fail(str_cat({info.nbytes, " bytes for storage '", key, "', as before"}), str_cat({nbytes}));
  set_dtype(info, dtype);
  return found->second;
}

void PickledTensors::set_dtype(StorageInfo& info, ScalarType dtype) const {
  if (dtype == ScalarType::Undefined) return;
  if (info.dtype == ScalarType::Undefined) info.dtype = dtype;
  if (info.dtype != dtype)
    errors_.fail(str_cat({"tensors of one dtype over storage '", info.key, "'"}),
                 str_cat({to_string(info.dtype), " and ", to_string(dtype)}));
}

size_t PickledTensors::add_strided(TensorInfo info) {
  StorageInfo& storage = storages_[info.storage];
  set_dtype(storage, info.dtype);
  if (storage.dtype == ScalarType::Undefined) errors_.fail("a dtype", "a storage without one");
  info.dtype = storage.dtype;
  check_geometry(info, storage);
  return add(std::move(info));
}

size_t PickledTensors::add_sparse(TensorInfo info) {
  const auto check_part = [this](size_t place) {
    if (tensors_[place].layout != Layout::Strided) errors_.fail("strided parts of a sparse tensor", "a sparse one");
  };
  check_part(info.indices);
  if (is_compressed(info.layout)) check_part(info.plain_indices);
  check_part(info.values);
  info.dtype = tensors_[info.values].dtype;
  info.requires_grad = is_compressed(info.layout) && tensors_[info.values].requires_grad;
  return add(std::move(info));
}

size_t PickledTensors::add(TensorInfo info) {
  if (info.requires_grad && !is_differentiable(info.dtype))
    errors_.fail("a floating dtype of a tensor that requires a gradient", to_string(info.dtype));
  tensors_.push_back(std::move(info));
  return tensors_.size() - 1;
}

void PickledTensors::check_geometry(const TensorInfo& info, const StorageInfo& storage) const {
  const int64_t room = storage.nbytes / static_cast<int64_t>(item_size(info.dtype));
  const bool same_rank = info.sizes.size() == info.strides.size();
  if (!same_rank) errors_.fail("as many strides as sizes", str_cat({info.strides.size(), " and ", info.sizes.size()}));
  int64_t numel = 1, last = info.offset;
  bool fits = info.offset >= 0 && info.offset <= room, empty = false;
  for (size_t d = 0; d < info.sizes.size(); ++d) {
    const int64_t size = info.sizes[d];
    int64_t reach = 0;
    empty |= size == 0;
    fits &= !__builtin_mul_overflow(numel, std::max<int64_t>(size, 1), &numel);
    if (size > 1)
      fits &= !__builtin_mul_overflow(size - 1, info.strides[d], &reach) && !__builtin_add_overflow(last, reach, &last);
  }
  if (!fits || (!empty && last >= room))
    errors_.fail(
        str_cat({"a tensor inside of storage '", storage.key, "', which has ", room, " elements"}),
        str_cat({"sizes ", IntSpan(info.sizes), ", strides ", IntSpan(info.strides), ", offset ", info.offset}));
}

Tensor PickledTensors::make(size_t place) {
  const TensorInfo& info = tensors_[place];
  const Tensor t = info.layout == Layout::Strided ? strided(info) : sparse(info);
  t.impl().set_requires_grad_flag(info.requires_grad);
  return t;
}

Tensor PickledTensors::strided(const TensorInfo& info) {
  StorageInfo& storage = storages_[info.storage];
  if (!storage.loaded) storage.loaded = load_(storage.key, storage.nbytes, storage.dtype);
  return Tensor(make_intrusive<TensorImpl>(storage.loaded, info.dtype, info.sizes, info.strides, info.offset));
}

Tensor PickledTensors::sparse(const TensorInfo& info) {
  const bool compressed = is_compressed(info.layout);
  const Tensor indices = strided(tensors_[info.indices]), values = strided(tensors_[info.values]);
  const Tensor plain = compressed ? strided(tensors_[info.plain_indices]) : Tensor();
  const std::string fault = compressed ? fault_of_compressed(info.layout, indices, plain, values, info.sizes)
                                       : fault_of_coo(indices, values, info.sizes, info.coalesced);
  if (!fault.empty()) errors_.fail("the parts of a sparse tensor", fault);
  return compressed ? detail::make_compressed(info.layout, indices, plain, values, info.sizes)
                    : detail::make_coo(indices, values, info.sizes, info.coalesced);
}

}  // namespace tercel::io
