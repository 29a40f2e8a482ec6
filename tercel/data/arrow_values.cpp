#include <algorithm>
#include <utility>

#include "tercel/data/arrow_values_impl.h"

namespace tercel::data {

namespace {

/** f32 values of scalars. */
void decode_scalars(const ArrowElements& elements, std::optional<float> fill, FloatColumn& out,
                    const ArrowPlace& place) {
  if (is_plain<float>(elements)) {
    out.values = static_cast<const float*>(elements.data) + elements.offset;
    return;
  }
  out.own.resize(static_cast<size_t>(elements.length));
  convert_elements(elements, out.own.data(), place, [&](int64_t row) {
    if (fill) return *fill;
    add_missing(out.bad, row);
    return kNoValue;
  });
  out.values = out.own.data();
}

/** Rows of `width` values, all of which are missing. */
void decode_missing(int64_t rows, std::optional<float> fill, FloatColumn& out) {
  out.own.assign(static_cast<size_t>(rows * out.width), fill.value_or(kNoValue));
  for (int64_t row = 0; !fill && row < rows; ++row) add_missing(out.bad, row);
  out.values = out.own.data();
}

/** f32 values of lists that must have `width` elements. */
void decode_lists(const ArrowArray& array, const ArrowNumbers& numbers, std::optional<float> fill, FloatColumn& out,
                  const ArrowPlace& place) {
  const ArrowLists lists = lists_of(array, numbers, place);
  const ArrowElements elements = elements_of(lists, numbers, place);
  const auto rows = static_cast<size_t>(array.length);
  const auto width = static_cast<size_t>(out.width);
  bool regular = lists.missing.empty();
  for (size_t row = 0; regular && row <= rows; ++row) regular = lists.offsets[row] == static_cast<int64_t>(row * width);
  if (regular && is_plain<float>(elements)) {
    out.values = static_cast<const float*>(elements.data) + elements.offset;
    return;
  }
  std::vector<float> values(static_cast<size_t>(elements.length));
  std::vector<bool> missing(values.size(), false);
  convert_elements(elements, values.data(), place, [&](int64_t i) {
    missing[static_cast<size_t>(i)] = true;
    return fill.value_or(kNoValue);
  });
  out.own.assign(rows * width, kNoValue);
  auto no_list = lists.missing.begin();
  for (size_t row = 0; row < rows; ++row) {
    const auto number = static_cast<int64_t>(row);
    const auto begin = static_cast<size_t>(lists.offsets[row]), end = static_cast<size_t>(lists.offsets[row + 1]);
    if (no_list != lists.missing.end() && *no_list == number) {
      ++no_list;
      if (fill)
        std::fill_n(out.own.begin() + static_cast<std::ptrdiff_t>(row * width), width, *fill);
      else
        add_missing(out.bad, number);
    } else if (end - begin != width) {
      out.bad.push_back({number, BadCell::Kind::Count, static_cast<int64_t>(end - begin)});
    } else {
      for (size_t k = 0; k < width; ++k) {
        out.own[row * width + k] = values[begin + k];
        if (missing[begin + k] && !fill) add_missing(out.bad, number);
      }
    }
  }
  out.values = out.own.data();
}

}  // namespace

void decode_floats(const ArrowArray& array, const ArrowNumbers& numbers, const ColumnPlan::Floats& wanted,
                   std::optional<float> fill, FloatColumn& out, const ArrowPlace& place) {
  out.width = wanted.width;
  if (numbers.is_list())
    decode_lists(array, numbers, fill, out, place);
  else if (wanted.list)
    decode_missing(array.length, fill, out);
  else
    decode_scalars(elements_of(array, numbers, place), fill, out, place);
}

void decode_further(const ArrowArray& array, const ArrowNumbers& numbers, ColumnType type, FurtherColumn& out,
                    const ArrowPlace& place) {
  const ArrowElements elements = elements_of(array, numbers, place);
  if (type == ColumnType::F32) {
    FloatColumn values;
    decode_scalars(elements, std::nullopt, values, place);
    out.floats = values.values;
    out.own_floats = std::move(values.own);
    out.bad = std::move(values.bad);
    return;
  }
  if (is_plain<int64_t>(elements)) {
    out.integers = static_cast<const int64_t*>(elements.data) + elements.offset;
  } else {
    out.own_integers.resize(static_cast<size_t>(elements.length));
    convert_elements(elements, out.own_integers.data(), place, [&](int64_t row) {
      add_missing(out.bad, row);
      return int64_t{0};
    });
    out.integers = out.own_integers.data();
  }
  if (elements.type != ElementType::U64) return;
  // Unlike keys, which are bits, these are numbers: one that i64 does not hold is an error.
  for (int64_t row = 0; row < elements.length; ++row)
    if (out.integers[row] < 0) out.bad.push_back({row, BadCell::Kind::Range, out.integers[row]});
  sort_bad(out.bad);
}

}  // namespace tercel::data
