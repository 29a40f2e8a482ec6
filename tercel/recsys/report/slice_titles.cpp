#include "tercel/recsys/report/slice_titles.h"

#include <algorithm>

#include "tercel/recsys/row_keys.h"

namespace tercel::recsys {

SliceTitles::SliceTitles(const data::Dataset& dataset, std::string_view slot) {
  if (!dataset.conversion || !dataset.conversion->vocabulary) return;
  const data::Slot* found = nullptr;
  for (const data::Slot& entry : dataset.schema.slots)
    if (entry.name == slot) found = &entry;
  if (found == nullptr) return;  // a column
  first_key_ = found->first_key;
  vocabulary_ = data::load_vocabulary(dataset.path_of(*dataset.conversion->vocabulary));
  // Where several slots share their keys, the first one has the categories.
  const auto owner = std::find_if(dataset.schema.slots.begin(), dataset.schema.slots.end(),
                                  [&](const data::Slot& entry) { return entry.first_key == first_key_; });
  for (int64_t f = 0; f < vocabulary_->num_fields(); ++f)
    if (vocabulary_->name(f) == owner->name) field_ = f;
}

std::string SliceTitles::title_of(int64_t key, Span<std::string_view> categories) const {
  if (key == RowKeys::kNone) return "(none)";
  if (field_ < 0) return std::to_string(key);
  const int64_t id = key - first_key_;
  if (id == 0) return "(other)";
  return id > 0 && id <= static_cast<int64_t>(categories.size()) ? std::string(categories[static_cast<size_t>(id - 1)])
                                                                 : std::to_string(key);
}

void SliceTitles::set(std::vector<Slice>& slices) const {
  std::vector<std::string_view> categories;  // listed once: there may be many
  if (field_ >= 0 && !slices.empty()) categories = vocabulary_->categories(field_);
  for (Slice& slice : slices) slice.title = title_of(slice.key, categories);
}

}  // namespace tercel::recsys
