#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "tercel/data/arrow_keys_impl.h"
#include "tercel/data/arrow_values_impl.h"

namespace tercel::data {

namespace {

/** The row of an element, of rows that elements are asked for in order. */
class RowOfElement {
 public:
  explicit RowOfElement(const std::vector<int64_t>& offsets) : offsets_(offsets) {}

  int64_t operator()(int64_t element) {
    while (offsets_[row_ + 1] <= element) ++row_;
    return static_cast<int64_t>(row_);
  }

 private:
  const std::vector<int64_t>& offsets_;
  size_t row_ = 0;
};

/** Removes the keys of these rows, which have one each: the rows get empty bags. */
void drop_keys(const std::vector<int64_t>& rows, KeyColumn& out) {
  size_t to = 0;
  auto dropped = rows.begin();
  out.own_offsets.push_back(0);
  for (size_t row = 0; row < out.own.size(); ++row) {
    if (dropped != rows.end() && *dropped == static_cast<int64_t>(row))
      ++dropped;
    else
      out.own[to++] = out.own[row];
    out.own_offsets.push_back(static_cast<int64_t>(to));
  }
  out.own.resize(to);
  out.keys = out.own.data();
  out.offsets = out.own_offsets.data();
}

KeyChanges decode_scalar_keys(const ArrowArray& array, const ArrowNumbers& numbers, const ColumnPlan& plan,
                              KeyColumn& out, const ArrowPlace& place) {
  const ArrowElements elements = elements_of(array, numbers, place);
  if (is_plain<int64_t>(elements)) {
    out.keys = static_cast<const int64_t*>(elements.data) + elements.offset;
    return {};
  }
  std::vector<int64_t> missing;
  out.own.resize(static_cast<size_t>(elements.length));
  convert_elements(elements, out.own.data(), place, [&](int64_t row) {
    missing.push_back(row);
    return plan.fill_key.value_or(0);
  });
  out.keys = out.own.data();
  KeyChanges changes;
  if (missing.empty()) return changes;
  if (plan.fill_key) {
    changes.replaced = std::move(missing);
  } else if (plan.missing_is_empty) {
    drop_keys(missing, out);
    changes.dropped = std::move(missing);
  } else {
    for (const int64_t row : missing) add_missing(out.bad, row);
  }
  return changes;
}

/**
 * Rows without a list get one key, or none. What their offsets span in the file, as those of lists of a fixed size do,
 * is left out.
 */
void replace_missing_lists(const ArrowLists& lists, std::optional<int64_t> fill, KeyColumn& out) {
  std::vector<int64_t> keys, offsets{0};
  auto no_list = lists.missing.begin();
  for (size_t row = 0; row + 1 < lists.offsets.size(); ++row) {
    if (no_list == lists.missing.end() || *no_list != static_cast<int64_t>(row)) {
      if (lists.offsets[row] < lists.offsets[row + 1])
        keys.insert(keys.end(), out.keys + lists.offsets[row], out.keys + lists.offsets[row + 1]);
    } else {
      ++no_list;
      if (fill) keys.push_back(*fill);
    }
    offsets.push_back(static_cast<int64_t>(keys.size()));
  }
  out.own = std::move(keys);
  out.keys = out.own.data();
  out.own_offsets = std::move(offsets);
}

KeyChanges decode_key_lists(const ArrowArray& array, const ArrowNumbers& numbers, const ColumnPlan& plan,
                            KeyColumn& out, const ArrowPlace& place) {
  ArrowLists lists = lists_of(array, numbers, place);
  const ArrowElements elements = elements_of(lists, numbers, place);
  KeyChanges changes;
  if (is_plain<int64_t>(elements)) {
    out.keys = static_cast<const int64_t*>(elements.data) + elements.offset;
  } else {
    const auto is_missing = [&](int64_t row) {
      return std::binary_search(lists.missing.begin(), lists.missing.end(), row);
    };
    out.own.resize(static_cast<size_t>(elements.length));
    RowOfElement row_of(lists.offsets);
    convert_elements(elements, out.own.data(), place, [&](int64_t i) {
      const int64_t row = row_of(i);
      if (is_missing(row)) return int64_t{0};
      if (plan.fill_key)
        changes.filled.push_back({row, i - lists.offsets[static_cast<size_t>(row)]});
      else
        add_missing(out.bad, row);
      return plan.fill_key.value_or(0);
    });
    out.keys = out.own.data();
  }
  if (lists.missing.empty()) {
    out.own_offsets = std::move(lists.offsets);
  } else {
    replace_missing_lists(lists, plan.fill_key, out);
    if (plan.fill_key) {
      changes.replaced = std::move(lists.missing);
    } else if (plan.missing_is_empty) {
      changes.dropped = std::move(lists.missing);
    } else {
      for (const int64_t row : lists.missing) out.bad.push_back({row, BadCell::Kind::Missing, 0});
      sort_bad(out.bad);
    }
  }
  out.offsets = out.own_offsets.data();
  return changes;
}

}  // namespace

KeyChanges decode_keys(const ArrowArray& array, const ArrowNumbers& numbers, const ColumnPlan& plan, KeyColumn& out,
                       const ArrowPlace& place) {
  out.is_unsigned = numbers.type == ElementType::U64;
  return numbers.is_list() ? decode_key_lists(array, numbers, plan, out, place)
                           : decode_scalar_keys(array, numbers, plan, out, place);
}

void decode_weights(const ArrowArray& array, const ArrowNumbers& numbers, const KeyChanges& changes, KeyColumn& out,
                    const ArrowPlace& place) {
  const int64_t rows = array.length;
  ArrowLists lists;
  if (numbers.is_list()) {
    lists = lists_of(array, numbers, place);
  } else {
    lists.child = &array;
    for (int64_t row = 0; row <= rows; ++row) lists.offsets.push_back(row);
    for (int64_t row = 0; numbers.all_missing && row < rows; ++row) lists.missing.push_back(row);
  }
  const ArrowElements elements = elements_of(lists, numbers, place);
  std::vector<float> weights(static_cast<size_t>(elements.length));
  std::vector<bool> missing;  // of weights; empty: none is
  convert_elements(elements, weights.data(), place, [&](int64_t i) {
    missing.resize(weights.size());
    missing[static_cast<size_t>(i)] = true;
    return kNoValue;
  });
  const int64_t keys = rows == 0 ? 0 : out.begin(rows - 1) + out.count(rows - 1) - out.begin(0);
  out.own_weights.assign(static_cast<size_t>(keys), kNoValue);
  std::vector<BadCell> bad;
  auto dropped = changes.dropped.begin(), replaced = changes.replaced.begin(), no_list = lists.missing.cbegin();
  auto filled = changes.filled.begin();
  const auto is_next = [](auto& next, const std::vector<int64_t>& all, int64_t row) {
    if (next == all.end() || *next != row) return false;
    ++next;
    return true;
  };
  for (int64_t row = 0; row < rows; ++row) {
    const bool has_no_list = is_next(no_list, lists.missing, row);
    if (is_next(dropped, changes.dropped, row)) continue;
    float* const to = out.own_weights.data() + (out.begin(row) - out.begin(0));
    if (is_next(replaced, changes.replaced, row)) {
      *to = 1;
      continue;
    }
    const auto begin = static_cast<size_t>(lists.offsets[static_cast<size_t>(row)]);
    const int64_t count =
        has_no_list ? 0 : lists.offsets[static_cast<size_t>(row) + 1] - lists.offsets[static_cast<size_t>(row)];
    bool is_missing = has_no_list && out.count(row) > 0;
    if (count != out.count(row) && !is_missing) bad.push_back({row, BadCell::Kind::Weights, count});
    for (int64_t k = 0; count == out.count(row) && k < count; ++k) {
      if (filled != changes.filled.end() && filled->row == row && filled->key == k) {
        ++filled;
        to[k] = 1;
        continue;
      }
      to[k] = weights[begin + static_cast<size_t>(k)];
      is_missing |= !missing.empty() && missing[begin + static_cast<size_t>(k)];
    }
    while (filled != changes.filled.end() && filled->row == row) ++filled;
    if (is_missing) bad.push_back({row, BadCell::Kind::MissingWeight, 0});
  }
  out.weights = out.own_weights.data();
  std::vector<BadCell> all;
  std::merge(out.bad.begin(), out.bad.end(), bad.begin(), bad.end(), std::back_inserter(all),
             [](const BadCell& a, const BadCell& b) { return a.row < b.row; });
  out.bad = std::move(all);
}

}  // namespace tercel::data
