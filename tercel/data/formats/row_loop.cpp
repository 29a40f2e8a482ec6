#include <algorithm>

#include "tercel/data/formats/row_loop_impl.h"

namespace tercel::data {

RowLoopShape::RowLoopShape(const RowRules& rules, const BatchShape& shape)
    : label_dim_(shape.label_dim), dense_dim_(shape.dense_dim) {
  for (const RowRules::SlotRule& slot : rules.slots()) {
    first_key_.insert(first_key_.end(), static_cast<size_t>(slot.hotness), slot.first_key);
    key_range_.insert(key_range_.end(), static_cast<size_t>(slot.hotness), slot.key_range);
  }
  for (const BatchShape::Input& input : shape.inputs) {
    const bool one_hot = std::all_of(input.hotness.begin(), input.hotness.end(), [](int64_t h) { return h == 1; });
    inputs_.push_back({nullptr, row_nnz(input), input.slot_num, one_hot});
  }
}

void RowLoopShape::set_rules(RowsLoop& loop) const {
  loop.label_dim = label_dim_;
  loop.dense_dim = dense_dim_;
  loop.first_key = first_key_.data();
  loop.key_range = key_range_.data();
}

void RowLoopShape::set_places(RowsLoop& loop, const Window& window, const std::byte* rows, const Places& places,
                              const BatchBuffer& out, Inputs& inputs) const {
  loop.rows = rows;
  loop.mix = window.mix.empty() ? nullptr : window.mix.data();
  loop.labels = out.labels + places.batch_row * label_dim_;
  loop.dense = out.dense + places.batch_row * dense_dim_;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    inputs.push_back(inputs_[i]);
    inputs.back().keys = out.inputs[i].keys + places.batch_row * inputs_[i].nnz;
  }
  loop.inputs = inputs.data();
  loop.num_inputs = static_cast<int64_t>(inputs.size());
}

}  // namespace tercel::data
