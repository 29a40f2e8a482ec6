#include "tercel/data/schema.h"

#include <algorithm>
#include <limits>

#include "tercel/util/error.h"
#include "tercel/util/format.h"

namespace tercel::data {

namespace {

void check_names(std::string_view owner, std::string_view what, const std::vector<std::string>& names, int64_t dim) {
  TERCEL_CHECK(names.empty() || static_cast<int64_t>(names.size()) == dim, ConfigError, owner, ": ", what,
               ": expected no names or ", dim, ", found ", names.size());
  std::vector<std::string_view> sorted(names.begin(), names.end());
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  TERCEL_CHECK(twice == sorted.end(), ConfigError, owner, ": ", what, ": the name '", printable(*twice),
               "' occurs twice");
}

}  // namespace

int64_t Schema::max_nnz() const {
  int64_t sum = 0;
  for (const Slot& slot : slots) sum += slot.hotness;
  return sum;
}

int64_t Schema::num_keys() const {
  int64_t end = 0;
  for (const Slot& slot : slots) {
    if (slot.size == 0) return 0;
    end = std::max(end, slot.first_key + slot.size);
  }
  return end;
}

std::vector<int64_t> Schema::slot_size_array() const {
  std::vector<int64_t> sizes, steps;
  for (const Slot& slot : slots) sizes.push_back(slot.size);
  // A size is the step from a slot's first key to that of the next one.
  size_t known = 0;
  while (known < slots.size() && slots[known].size > 0) ++known;
  for (size_t s = 0; s < known; ++s)
    steps.push_back(s + 1 < known ? slots[s + 1].first_key - slots[s].first_key : slots[s].size);
  bool is_rule = known > 0 && slots[0].first_key == 0;
  for (size_t s = 0, next = 0; s < known && is_rule; ++s) {
    for (next = std::max(next, s); steps[next] == 0;) ++next;
    is_rule = steps[next] == slots[s].size && slots[s].size > 0 && steps[s] >= 0;
  }
  for (size_t s = known; s < slots.size(); ++s) is_rule = is_rule && slots[s].size == 0;
  return is_rule ? steps : sizes;
}

void Schema::set_consecutive_keys() {
  int64_t next = 0;
  for (Slot& slot : slots) {
    TERCEL_CHECK(slot.size >= 0 && slot.size <= std::numeric_limits<int64_t>::max() - next, ConfigError, "slot '",
                 printable(slot.name), "': ", slot.size, " keys behind ", next, " do not fit in 64 bits");
    slot.first_key = slot.size > 0 ? next : 0;
    next += slot.size;
  }
}

void Schema::check(std::string_view name) const {
  check_options(*this, name);
  TERCEL_CHECK(slot_num() <= kMaxDim, ConfigError, name, ": slots: expected at most ", kMaxDim, ", found ", slot_num());
  check_names(name, "label_names", label_names, label_dim);
  check_names(name, "dense_names", dense_names, dense_dim);
  std::vector<std::string> names;
  for (const Slot& slot : slots) {
    names.push_back(slot.name);
    TERCEL_CHECK(slot.hotness <= kMaxHotness, ConfigError, name, ": slot '", printable(slot.name),
                 "': hotness: expected at most ", kMaxHotness, ", found ", slot.hotness);
    TERCEL_CHECK(slot.size > 0 || slot.first_key == 0, ConfigError, name, ": slot '", printable(slot.name),
                 "': expected first_key 0 where size is 0, found ", slot.first_key);
    TERCEL_CHECK(slot.first_key <= std::numeric_limits<int64_t>::max() - slot.size, ConfigError, name, ": slot '",
                 printable(slot.name), "': ", slot.size, " keys from ", slot.first_key, " on do not fit in 64 bits");
  }
  check_names(name, "slots", names, slot_num());
  names.clear();
  for (const Column& column : columns) names.push_back(column.name);
  TERCEL_CHECK(static_cast<int64_t>(names.size()) <= kMaxDim, ConfigError, name, ": columns: expected at most ",
               kMaxDim, ", found ", names.size());
  check_names(name, "columns", names, static_cast<int64_t>(names.size()));
}

}  // namespace tercel::data
