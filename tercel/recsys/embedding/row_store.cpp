#include "tercel/recsys/embedding/row_store.h"

#include <memory>

#include "tercel/ops/factories/factories.h"
#include "tercel/util/cpu_info.h"

namespace tercel::recsys {

RowStore::RowStore(int64_t rows, int64_t dim, const TensorOptions& place, Span<const char*> state_names, size_t per_row)
    : weight_(empty({rows, dim}, place)) {
  for (size_t k = 0; k < state_names.size(); ++k) {
    try {
      states_.push_back(empty({rows, k + per_row < state_names.size() ? dim : 1}, place));
    } catch (const OutOfMemoryError& e) {
      throw_error<OutOfMemoryError>({"the optimizer's '", state_names[k], "': ", e.what()});
    }
  }
}

namespace {

/** [0, dim] at the start of memory that the tensor owns. */
Tensor growing_tensor(int64_t dim, ScalarType dtype, ReservedMemory*& memory) {
  auto owner = std::make_unique<ReservedMemory>(static_cast<size_t>(dim) * item_size(dtype),
                                                static_cast<size_t>(memory_info().total));
  memory = owner.get();
  const auto free_owner = [](void* context) { delete static_cast<ReservedMemory*>(context); };
  DataPtr block(memory->data(), owner.release(), free_owner, kCpu);
  return Tensor(make_intrusive<TensorImpl>(make_intrusive<StorageImpl>(0, std::move(block), nullptr, false), dtype,
                                           IntSpan({0, dim})));
}

}  // namespace

RowStore RowStore::growing(int64_t dim, const TensorOptions& place, Span<const char*> state_names, size_t per_row) {
  TERCEL_CHECK(place.device.is_cpu(), NotImplementedError, "rows that grow are in the memory of the CPU, not on ",
               to_string(place.device));
  RowStore store;
  store.memory_.resize(1 + state_names.size());
  store.weight_ = growing_tensor(dim, place.dtype, store.memory_[0]);
  for (size_t i = 0; i < state_names.size(); ++i)
    store.states_.push_back(
        growing_tensor(i + per_row < state_names.size() ? dim : 1, place.dtype, store.memory_[i + 1]));
  return store;
}

void RowStore::resize(int64_t rows) {
  TERCEL_CHECK(grows(), RuntimeError, "these rows cannot grow");
  const auto tensor = [this](size_t i) -> const Tensor& { return i == 0 ? weight_ : states_[i - 1]; };
  const auto bytes = [&](size_t i) {
    return static_cast<size_t>(rows * tensor(i).size(1)) * item_size(tensor(i).dtype());
  };
  for (size_t i = 0; i < memory_.size(); ++i) memory_[i]->grow(bytes(i));
  for (size_t i = 0; i < memory_.size(); ++i) {
    TensorImpl& impl = tensor(i).impl();
    if (bytes(i) > impl.storage()->nbytes()) impl.storage()->set_nbytes(bytes(i));
    impl.set_sizes_contiguous({rows, tensor(i).size(1)});
  }
}

}  // namespace tercel::recsys
