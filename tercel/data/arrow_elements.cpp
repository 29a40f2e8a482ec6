#include "tercel/data/arrow_elements_impl.h"

#include <limits>

namespace tercel::data {

namespace {

using Form = ArrowNumbers::Form;

const uint8_t* validity(const ArrowArray& array) {
  return array.null_count == 0 ? nullptr : static_cast<const uint8_t*>(array.buffers[0]);
}

void check_array(const ArrowArray& array, int64_t buffers, int64_t children, const ArrowPlace& place) {
  const bool has_child = children == 0 || (array.n_children == children && array.children && array.children[0] &&
                                           array.children[0]->release);
  if (array.length >= 0 && array.offset >= 0 && array.offset <= std::numeric_limits<int64_t>::max() - array.length &&
      array.n_buffers == buffers && (buffers == 0 || array.buffers) && array.n_children == children && has_child)
    return;
  fail_column(place, str_cat({"an array of ", buffers, " buffers and ", children, " children"}),
              str_cat({array.n_buffers, " and ", array.n_children, ", length ", array.length, ", offset ", array.offset,
                       array.n_children == children && !has_child ? ", a null pointer or a released child" : ""}));
}

/** `count` elements of an array from `first` on. */
ArrowElements elements_from(const ArrowArray& array, const ArrowNumbers& numbers, int64_t first, int64_t count,
                            const ArrowPlace& place) {
  check_array(array, numbers.all_missing && !numbers.index ? 0 : 2, 0, place);
  if (first < 0 || count < 0 || first > array.length - count)
    fail_column(place, str_cat({first, " and ", count, " more elements"}), str_cat({array.length}));
  ArrowElements elements;
  elements.type = numbers.type;
  elements.all_missing = numbers.all_missing;
  elements.length = count;
  if (numbers.all_missing) return elements;
  elements.valid = validity(array);
  elements.offset = array.offset + first;
  elements.data = array.buffers[1];
  if (numbers.index) {
    const ArrowArray* const dictionary = array.dictionary;
    if (!dictionary || !dictionary->release) fail_column(place, "a dictionary", dictionary ? "a released one" : "none");
    check_array(*dictionary, 2, 0, place);
    elements.index = numbers.index;
    elements.indices = array.buffers[1];
    elements.data = dictionary->buffers[1];
    elements.dictionary_valid = validity(*dictionary);
    elements.dictionary_offset = dictionary->offset;
    elements.dictionary_length = dictionary->length;
  }
  if (count > 0 &&
      ((!elements.data && (!numbers.index || elements.dictionary_length > 0)) || (numbers.index && !elements.indices)))
    fail_column(place, "a buffer of values", "none");
  return elements;
}

/** Sets where the lists begin by the offsets in the array. */
template <class Offset>
void set_offsets(const ArrowArray& array, ArrowLists& lists, const ArrowPlace& place) {
  const void* const buffer = array.buffers[1];
  if (!buffer) fail_column(place, "a buffer of offsets", "none");
  const auto at = [&](int64_t row) { return load_element<Offset, int64_t>(buffer, array.offset + row); };
  lists.first = at(0);
  if (lists.first < 0) fail_column(place, "offsets of at least 0", str_cat({lists.first}));
  for (int64_t row = 1, last = lists.first; row <= array.length; ++row) {
    const int64_t offset = at(row);
    if (offset < last) fail_column(place, "offsets that do not descend", str_cat({offset}));
    lists.offsets[static_cast<size_t>(row)] = offset - lists.first;
    last = offset;
  }
}

}  // namespace

void fail_column(const ArrowPlace& place, std::string_view expected, std::string_view found) {
  throw_error<DataError>(
      {place.owner, ": column '", printable(place.name), "': expected ", expected, ", found ", found});
}

ArrowElements elements_of(const ArrowArray& array, const ArrowNumbers& numbers, const ArrowPlace& place) {
  return elements_from(array, numbers, 0, array.length, place);
}

ArrowElements elements_of(const ArrowLists& lists, const ArrowNumbers& numbers, const ArrowPlace& place) {
  return elements_from(*lists.child, numbers, lists.first, lists.offsets.back(), place);
}

ArrowLists lists_of(const ArrowArray& array, const ArrowNumbers& numbers, const ArrowPlace& place) {
  const bool fixed = numbers.form == Form::FixedList;
  check_array(array, fixed ? 1 : 2, 1, place);
  ArrowLists lists;
  lists.child = array.children[0];
  const int64_t rows = array.length;
  lists.offsets.resize(static_cast<size_t>(rows) + 1);
  if (fixed) {
    int64_t end = 0;
    if (__builtin_mul_overflow(array.offset + rows, numbers.list_size, &end))
      fail_column(place, "lists that fit in memory", str_cat({rows, " of ", numbers.list_size}));
    lists.first = array.offset * numbers.list_size;
    for (int64_t row = 0; row <= rows; ++row) lists.offsets[static_cast<size_t>(row)] = row * numbers.list_size;
  } else if (rows > 0 && numbers.form == Form::LargeList) {
    set_offsets<int64_t>(array, lists, place);
  } else if (rows > 0) {
    set_offsets<int32_t>(array, lists, place);
  }
  const uint8_t* const valid = validity(array);
  for (int64_t row = 0; valid && row < rows; ++row)
    if (!is_set(valid, array.offset + row)) lists.missing.push_back(row);
  return lists;
}

}  // namespace tercel::data
