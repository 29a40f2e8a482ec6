#include "tercel/recsys/model/batch_place.h"

#include "tercel/ops/common/copy.h"

namespace tercel::recsys {

namespace {

/** Calls f(tensor) for each tensor of a batch, until it returns false; whether it never did. */
template <class Batch, class F>
bool for_each_tensor(Batch& batch, F&& f) {
  if (!f(batch.labels) || !f(batch.dense) || !f(batch.weights)) return false;
  for (auto& input : batch.sparse)
    if (!f(input.row_offsets) || !f(input.keys) || !f(input.key_weights)) return false;
  for (auto& column : batch.columns)
    if (!f(column.values)) return false;
  return true;
}

ScalarType dtype_at(const Tensor& t, const TensorOptions& place) {
  return t.is_floating_point() ? place.dtype : t.dtype();
}

}  // namespace

bool is_at(const data::Batch& batch, const TensorOptions& place) {
  return for_each_tensor(batch, [&place](const Tensor& t) {
    return !t.defined() || (t.device() == place.device && t.dtype() == dtype_at(t, place));
  });
}

data::Batch batch_at(const data::Batch& batch, const TensorOptions& place) {
  data::Batch moved = batch;
  for_each_tensor(moved, [&place](Tensor& t) {
    if (!t.defined()) return true;
    const ScalarType dtype = dtype_at(t, place);
    if (t.device() == place.device) {
      t = to(t, dtype);
    } else {
      const Tensor there = empty(t.sizes(), TensorOptions(dtype, place.device));
      t = copy_(there, t);
    }
    return true;
  });
  return moved;
}

}  // namespace tercel::recsys
