#include <algorithm>

#include "tercel/data/row_rules_impl.h"
#include "tercel/util/format.h"

namespace tercel::data {

RowRules::RowRules(const Schema& schema, bool binary_labels, uint64_t max_key, Span<SparseInput> inputs)
    : schema_(schema), binary_labels_(binary_labels), tables_(schema.slots.size()) {
  std::vector<int64_t> num_keys(schema.slots.size());
  size_t next = 0;
  for (const SparseInput& input : inputs)
    for (int64_t s = 0; s < input.slot_num; ++s, ++next) {
      tables_[next] = input.table;
      num_keys[next] = input.num_keys;
    }
  for (size_t s = 0; s < schema.slots.size(); ++s) {
    const Slot& slot = schema.slots[s];
    const auto first = static_cast<uint64_t>(slot.first_key);
    const int64_t size = slot.size > 0 ? slot.size : num_keys[s];
    const uint64_t range = size > 0 ? static_cast<uint64_t>(size - 1) : std::numeric_limits<uint64_t>::max();
    // Where the first key is too large for the files already, any key that they can hold is out of the range.
    slots_.push_back({first, std::min(range, max_key >= first ? max_key - first : 0), slot.hotness});
  }
}

std::string RowRules::slot_text(size_t slot) const {
  return str_cat({"slot ", slot, " ('", schema_.slots[slot].name, "')"});
}

std::string RowRules::expected_label(int64_t index) const {
  return str_cat({"label ", index, " to be ", binary_labels_ ? "0 or 1" : "a finite number"});
}

std::string RowRules::expected_dense(int64_t index) const {
  return str_cat({"dense value ", index, " to be a finite number"});
}

std::string RowRules::expected_count(size_t slot, bool exact) const {
  return str_cat({exact ? "" : "0 to ", slots_[slot].hotness, " keys in ", slot_text(slot)});
}

std::string RowRules::expected_key(size_t slot) const {
  const SlotRule& rule = slots_[slot];
  std::string text =
      str_cat({"a key from ", rule.first_key, " to ", rule.first_key + rule.key_range, " in ", slot_text(slot)});
  if (!tables_[slot].empty()) text += str_cat({" of table '", tables_[slot], "'"});
  return text;
}

}  // namespace tercel::data
