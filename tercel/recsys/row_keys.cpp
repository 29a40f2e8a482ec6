#include "tercel/recsys/row_keys.h"

#include <algorithm>

#include "tercel/core/tensor.h"
#include "tercel/ops/common/copy.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"
#include "tercel/util/suggest.h"

namespace tercel::recsys {

RowKeys::RowKeys(const data::Schema& schema, Span<data::SparseInput> inputs, std::string_view name,
                 std::string_view owner, const std::vector<std::string_view>& others)
    : name_(name), owner_(owner) {
  std::vector<std::string_view> known;
  int64_t first_slot = 0, slot = -1;
  for (const data::SparseInput& input : inputs) {
    for (int64_t s = 0; s < input.slot_num && first_slot + s < schema.slot_num(); ++s) {
      const data::Slot& of = schema.slots[static_cast<size_t>(first_slot + s)];
      known.push_back(of.name);
      if (slot >= 0 || (of.name != name && !(input.slot_num == 1 && input.name == name))) continue;
      slot = first_slot + s;
      input_ = input.name;
      position_ = s;
    }
    first_slot += input.slot_num;
  }
  if (slot >= 0) {
    const int64_t hotness = schema.slots[static_cast<size_t>(slot)].hotness;
    TERCEL_CHECK(hotness == 1, ConfigError, owner, ": slot '", printable(name), "' has up to ", hotness,
                 " keys in a row; expected one that has a single key");
    return;
  }
  for (const data::Column& column : schema.columns) {
    if (column.type != data::ColumnType::I64) continue;
    if (column.name == name) return;
    known.push_back(column.name);
  }
  known.insert(known.end(), others.begin(), others.end());
  throw_error<ConfigError>({owner, ": unknown slot or column", others.empty() ? " of integers" : "", " '",
                            printable(name), "'", known_names(name, known)});
}

Span<int64_t> RowKeys::read(const data::Batch& batch) {
  keys_.assign(static_cast<size_t>(batch.rows), kNone);
  if (is_column()) {
    const auto column = std::find_if(batch.columns.begin(), batch.columns.end(),
                                     [this](const data::RowColumn& entry) { return entry.name == name_; });
    TERCEL_CHECK(column != batch.columns.end(), ConfigError, owner_, ": the batch has no column '", printable(name_),
                 "'");
    const Tensor values = to(column->values, kInt64).contiguous();
    std::copy_n(values.data<int64_t>(), keys_.size(), keys_.begin());
    return keys_;
  }
  const data::SparseBatch& input = batch.input(input_);
  const Tensor keys = to(input.keys, kInt64).contiguous(), offsets = to(input.row_offsets, kInt64).contiguous();
  for (int64_t row = 0; row < batch.rows; ++row) {
    const int64_t bag =
        input.order == data::BagOrder::SampleMajor ? row * input.slot_num + position_ : position_ * batch.rows + row;
    const int64_t first = offsets.data<int64_t>()[bag], end = offsets.data<int64_t>()[bag + 1];
    if (end > first) keys_[static_cast<size_t>(row)] = keys.data<int64_t>()[first];
  }
  return keys_;
}

}  // namespace tercel::recsys
