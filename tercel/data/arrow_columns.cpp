#include "tercel/data/arrow_columns_impl.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <limits>
#include <type_traits>
#include <unordered_set>
#include <utility>

#include "tercel/util/error.h"
#include "tercel/util/format.h"
#include "tercel/util/half.h"

namespace tercel::data {

namespace {

using Form = ArrowNumbers::Form;

std::optional<ElementType> number_of_format(std::string_view format) {
  if (format.size() == 1) {
    switch (format[0]) {
      case 'b': return ElementType::Bool;
      case 'c': return ElementType::I8;
      case 'C': return ElementType::U8;
      case 's': return ElementType::I16;
      case 'S': return ElementType::U16;
      case 'i': return ElementType::I32;
      case 'I': return ElementType::U32;
      case 'l': return ElementType::I64;
      case 'L': return ElementType::U64;
      case 'e': return ElementType::F16;
      case 'f': return ElementType::F32;
      case 'g': return ElementType::F64;
      default: return std::nullopt;
    }
  }
  // Times that are stored as i64: timestamps, dates in milliseconds, times of day in micro- and nanoseconds, durations;
  // and as i32: dates in days, times of day in seconds and milliseconds.
  const std::string_view kind = format.substr(0, 3);
  if (kind == "tdD" || kind == "tts" || kind == "ttm") return ElementType::I32;
  if (kind.starts_with("ts") || kind.starts_with("tD") || kind == "tdm" || kind == "ttu" || kind == "ttn")
    return ElementType::I64;
  return std::nullopt;
}

/** Elements of an array of numbers, of which some may be missing. */
struct Elements {
  ElementType type = ElementType::I64;
  const void* data = nullptr;
  const uint8_t* valid = nullptr;  // null: none is missing
  int64_t offset = 0;              // of element 0, in both
  int64_t length = 0;
  std::optional<ElementType> index;  // dictionary-encoded
  const void* indices = nullptr;
  const uint8_t* dictionary_valid = nullptr;
  int64_t dictionary_offset = 0;
  int64_t dictionary_length = 0;
  bool all_missing = false;
};

bool bit(const uint8_t* bits, int64_t i) { return (bits[i >> 3] >> (i & 7) & 1) != 0; }

/** Calls function(T{}) with the C++ type; Bool and F16 have none and are read by load(). */
template <class Function>
auto with_type(ElementType type, Function function) {
  switch (type) {
    case ElementType::I8: return function(int8_t{});
    case ElementType::I16: return function(int16_t{});
    case ElementType::I32: return function(int32_t{});
    case ElementType::I64: return function(int64_t{});
    case ElementType::U8: return function(uint8_t{});
    case ElementType::U16: return function(uint16_t{});
    case ElementType::U32: return function(uint32_t{});
    case ElementType::U64: return function(uint64_t{});
    case ElementType::F32: return function(float{});
    case ElementType::F64: return function(double{});
    case ElementType::F16: return function(Half{});
    case ElementType::Bool: return function(bool{});
  }
  throw_error<InternalError>({"arrow: an unknown type of numbers"});
}

template <class T, class To>
To load(const void* data, int64_t i) {
  if constexpr (std::is_same_v<T, bool>)
    return static_cast<To>(bit(static_cast<const uint8_t*>(data), i));
  else if constexpr (std::is_same_v<T, Half>)
    return static_cast<To>(static_cast<float>(static_cast<const Half*>(data)[i]));
  else
    return static_cast<To>(static_cast<const T*>(data)[i]);
}

[[noreturn]] void fail_array(std::string_view owner, std::string_view name, std::string_view expected,
                             std::string_view found) {
  throw_error<DataError>({owner, ": column '", printable(name), "': expected ", expected, ", found ", found});
}

const uint8_t* validity(const ArrowArray& array) {
  return array.null_count == 0 ? nullptr : static_cast<const uint8_t*>(array.buffers[0]);
}

void check_array(const ArrowArray& array, int64_t buffers, int64_t children, std::string_view owner,
                 std::string_view name) {
  if (array.length < 0 || array.offset < 0 || array.n_buffers != buffers || array.n_children != children ||
      array.offset > std::numeric_limits<int64_t>::max() - array.length || (buffers > 0 && !array.buffers) ||
      (children > 0 && (!array.children || !array.children[0] || !array.children[0]->release)))
    fail_array(
        owner, name, str_cat({"an array of ", buffers, " buffers and ", children, " children"}),
        str_cat({array.n_buffers, " and ", array.n_children, ", length ", array.length, ", offset ", array.offset,
                 children > 0 && array.n_children == children ? ", a null pointer or a released child" : ""}));
}

/** The elements of an array, from `first` on. */
Elements elements_of(const ArrowArray& array, const ArrowNumbers& numbers, int64_t first, int64_t count,
                     std::string_view owner, std::string_view name) {
  check_array(array, numbers.all_missing ? 0 : 2, 0, owner, name);
  if (first < 0 || count < 0 || first > array.length - count)
    fail_array(owner, name, str_cat({first, " and ", count, " more elements"}), str_cat({array.length}));
  Elements elements;
  elements.type = numbers.type;
  elements.all_missing = numbers.all_missing;
  if (numbers.all_missing) {
    elements.length = count;
    return elements;
  }
  elements.valid = validity(array);
  elements.offset = array.offset + first;
  elements.length = count;
  elements.data = array.buffers[1];
  if (numbers.index) {
    if (!array.dictionary) fail_array(owner, name, "a dictionary", "none");
    check_array(*array.dictionary, 2, 0, owner, name);
    elements.index = numbers.index;
    elements.indices = array.buffers[1];
    elements.data = array.dictionary->buffers[1];
    elements.dictionary_valid = validity(*array.dictionary);
    elements.dictionary_offset = array.dictionary->offset;
    elements.dictionary_length = array.dictionary->length;
  }
  if (count > 0 &&
      ((!elements.data && (!numbers.index || elements.dictionary_length > 0)) || (numbers.index && !elements.indices)))
    fail_array(owner, name, "a buffer of values", "none");
  return elements;
}

/** The elements as To; `missing(i)` is called for those that are not there, and gives what stands in their place. */
template <class To, class Missing>
void convert(const Elements& from, To* to, std::string_view owner, std::string_view name, Missing missing) {
  const int64_t offset = from.offset;
  if (from.all_missing) {
    for (int64_t i = 0; i < from.length; ++i) to[i] = missing(i);
    return;
  }
  if (from.index) {
    with_type(*from.index, [&]<class Index>(Index) {
      if constexpr (std::is_integral_v<Index> && !std::is_same_v<Index, bool>) {
        with_type(from.type, [&]<class T>(T) {
          for (int64_t i = 0; i < from.length; ++i) {
            if (from.valid && !bit(from.valid, offset + i)) {
              to[i] = missing(i);
              continue;
            }
            const auto index = load<Index, int64_t>(from.indices, offset + i);
            if (index < 0 || index >= from.dictionary_length)
              fail_array(owner, name, str_cat({"indices below ", from.dictionary_length}), str_cat({index}));
            const int64_t at = from.dictionary_offset + index;
            to[i] = from.dictionary_valid && !bit(from.dictionary_valid, at) ? missing(i) : load<T, To>(from.data, at);
          }
        });
      }
    });
    return;
  }
  with_type(from.type, [&]<class T>(T) {
    if (!from.valid) {
      for (int64_t i = 0; i < from.length; ++i) to[i] = load<T, To>(from.data, offset + i);
      return;
    }
    for (int64_t i = 0; i < from.length; ++i)
      to[i] = bit(from.valid, offset + i) ? load<T, To>(from.data, offset + i) : missing(i);
  });
}

/** Whether elements are a plain array of To. */
template <class To>
bool is_plain(const Elements& elements) {
  if (elements.valid || elements.index || elements.all_missing) return false;
  if constexpr (std::is_same_v<To, float>) return elements.type == ElementType::F32;
  return elements.type == ElementType::I64 || elements.type == ElementType::U64;
}

/** Where the lists of an array begin, and the array of their elements. */
struct Lists {
  std::vector<int64_t> offsets;  // rows + 1, from 0
  std::vector<int64_t> missing;  // rows without a list
  const ArrowArray* child = nullptr;
  int64_t first = 0;  // element of the child that is element 0
};

Lists lists_of(const ArrowArray& array, const ArrowNumbers& numbers, std::string_view owner, std::string_view name) {
  const bool fixed = numbers.form == Form::FixedList;
  check_array(array, fixed ? 1 : 2, 1, owner, name);
  Lists lists;
  lists.child = array.children[0];
  const int64_t rows = array.length;
  lists.offsets.resize(static_cast<size_t>(rows) + 1);
  const uint8_t* valid = validity(array);
  const auto is_missing = [&](int64_t row) { return valid && !bit(valid, array.offset + row); };
  if (fixed) {
    int64_t end = 0;
    if (__builtin_mul_overflow(array.offset + rows, numbers.list_size, &end))
      fail_array(owner, name, "lists that fit in memory", str_cat({rows, " of ", numbers.list_size}));
    lists.first = array.offset * numbers.list_size;
    for (int64_t row = 0; row <= rows; ++row) lists.offsets[static_cast<size_t>(row)] = row * numbers.list_size;
  } else if (rows > 0) {
    const auto copy = [&]<class Offset>(const Offset* offsets) {
      if (!offsets) fail_array(owner, name, "a buffer of offsets", "none");
      offsets += array.offset;
      lists.first = offsets[0];
      for (int64_t row = 0; row <= rows; ++row) {
        if (row > 0 && offsets[row] < offsets[row - 1])
          fail_array(owner, name, "offsets that do not descend", str_cat({int64_t{offsets[row]}}));
        lists.offsets[static_cast<size_t>(row)] = offsets[row] - lists.first;
      }
    };
    if (numbers.form == Form::LargeList)
      copy(static_cast<const int64_t*>(array.buffers[1]));
    else
      copy(static_cast<const int32_t*>(array.buffers[1]));
  }
  for (int64_t row = 0; row < rows; ++row)
    if (is_missing(row)) lists.missing.push_back(row);
  return lists;
}

Elements elements_of(const Lists& lists, const ArrowNumbers& numbers, std::string_view owner, std::string_view name) {
  return elements_of(*lists.child, numbers, lists.first, lists.offsets.back(), owner, name);
}

void add_missing(std::vector<BadCell>& bad, int64_t row) {
  if (bad.empty() || bad.back().row != row) bad.push_back({row, BadCell::Kind::Missing, 0});
}

void sort_bad(std::vector<BadCell>& bad) {
  std::sort(bad.begin(), bad.end(), [](const BadCell& a, const BadCell& b) { return a.row < b.row; });
}

constexpr float kNoValue = std::numeric_limits<float>::quiet_NaN();

/** f32 values of scalars. */
void decode_scalars(const Elements& elements, std::optional<float> fill, FloatColumn& out, std::string_view owner,
                    std::string_view name) {
  if (is_plain<float>(elements)) {
    out.values = static_cast<const float*>(elements.data) + elements.offset;
    return;
  }
  out.own.resize(static_cast<size_t>(elements.length));
  convert(elements, out.own.data(), owner, name, [&](int64_t row) {
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
                  std::string_view owner, std::string_view name) {
  const Lists lists = lists_of(array, numbers, owner, name);
  const Elements elements = elements_of(lists, numbers, owner, name);
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
  convert(elements, values.data(), owner, name, [&](int64_t i) {
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

/** What the keys of a column have otherwise than the file, for the weights beside them. */
struct KeyChanges {
  std::vector<int64_t> dropped;   // rows without keys, whatever the file has
  std::vector<int64_t> replaced;  // rows of one key that stands in place of what is missing
  /** A key that stands in place of a missing one in a list. */
  struct Filled {
    int64_t row;
    int64_t key;  // of the row
  };
  std::vector<Filled> filled;
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
                              KeyColumn& out, std::string_view owner, std::string_view name) {
  const Elements elements = elements_of(array, numbers, 0, array.length, owner, name);
  if (is_plain<int64_t>(elements)) {
    out.keys = static_cast<const int64_t*>(elements.data) + elements.offset;
    return {};
  }
  std::vector<int64_t> missing;
  out.own.resize(static_cast<size_t>(elements.length));
  convert(elements, out.own.data(), owner, name, [&](int64_t row) {
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
void replace_missing_lists(const Lists& lists, std::optional<int64_t> fill, KeyColumn& out) {
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
                            KeyColumn& out, std::string_view owner, std::string_view name) {
  Lists lists = lists_of(array, numbers, owner, name);
  const Elements elements = elements_of(lists, numbers, owner, name);
  KeyChanges changes;
  if (is_plain<int64_t>(elements)) {
    out.keys = static_cast<const int64_t*>(elements.data) + elements.offset;
  } else {
    const auto is_missing = [&](int64_t row) {
      return std::binary_search(lists.missing.begin(), lists.missing.end(), row);
    };
    out.own.resize(static_cast<size_t>(elements.length));
    RowOfElement row_of(lists.offsets);
    convert(elements, out.own.data(), owner, name, [&](int64_t i) {
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

KeyChanges decode_keys(const ArrowArray& array, const ArrowNumbers& numbers, const ColumnPlan& plan, KeyColumn& out,
                       std::string_view owner, std::string_view name) {
  out.is_unsigned = numbers.type == ElementType::U64;
  return numbers.is_list() ? decode_key_lists(array, numbers, plan, out, owner, name)
                           : decode_scalar_keys(array, numbers, plan, out, owner, name);
}

/** Weights beside the keys: a number each; 1 for keys that stand in place of missing ones. */
void decode_weights(const ArrowArray& array, const ArrowNumbers& numbers, const KeyChanges& changes, KeyColumn& out,
                    std::string_view owner, std::string_view name) {
  const int64_t rows = array.length;
  Lists lists;
  if (numbers.is_list()) {
    lists = lists_of(array, numbers, owner, name);
  } else {
    lists.child = &array;
    for (int64_t row = 0; row <= rows; ++row) lists.offsets.push_back(row);
    for (int64_t row = 0; numbers.all_missing && row < rows; ++row) lists.missing.push_back(row);
  }
  const Elements elements = elements_of(lists, numbers, owner, name);
  std::vector<float> weights(static_cast<size_t>(elements.length));
  std::vector<bool> missing;  // of weights; empty: none is
  convert(elements, weights.data(), owner, name, [&](int64_t i) {
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

void decode_further(const Elements& elements, ColumnType type, FurtherColumn& out, std::string_view owner,
                    std::string_view name) {
  if (type == ColumnType::F32) {
    FloatColumn values;
    decode_scalars(elements, std::nullopt, values, owner, name);
    out.floats = values.values;
    out.own_floats = std::move(values.own);
    out.bad = std::move(values.bad);
    return;
  }
  if (is_plain<int64_t>(elements)) {
    out.integers = static_cast<const int64_t*>(elements.data) + elements.offset;
  } else {
    out.own_integers.resize(static_cast<size_t>(elements.length));
    convert(elements, out.own_integers.data(), owner, name, [&](int64_t row) {
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

}  // namespace

std::optional<ArrowNumbers> arrow_numbers(const ArrowSchema& field) {
  ArrowNumbers numbers;
  const ArrowSchema* element = &field;
  const std::string_view format = field.format ? field.format : "";
  if (format.starts_with("+")) {
    if (field.n_children != 1 || !field.children || !field.children[0]) return std::nullopt;
    element = field.children[0];
    if (format == "+l") {
      numbers.form = Form::List;
    } else if (format == "+L") {
      numbers.form = Form::LargeList;
    } else if (format.starts_with("+w:")) {
      numbers.form = Form::FixedList;
      const std::string_view size = format.substr(3);
      const auto [end, error] = std::from_chars(size.data(), size.data() + size.size(), numbers.list_size);
      if (error != std::errc() || end != size.data() + size.size() || numbers.list_size < 0) return std::nullopt;
    } else {
      return std::nullopt;
    }
  }
  std::string_view values = element->format ? element->format : "";
  if (element->dictionary) {
    numbers.index = number_of_format(values);
    if (!numbers.index || is_float(*numbers.index) || *numbers.index == ElementType::Bool) return std::nullopt;
    values = element->dictionary->format ? element->dictionary->format : "";
  }
  if (values == "n") {
    numbers.all_missing = true;
    return numbers;
  }
  const std::optional<ElementType> type = number_of_format(values);
  if (!type) return std::nullopt;
  numbers.type = *type;
  return numbers;
}

std::string arrow_type_text(const ArrowSchema& field) {
  const std::optional<ArrowNumbers> numbers = arrow_numbers(field);
  if (numbers) {
    if (numbers->all_missing) return numbers->is_list() ? "list<null>" : "null";
    return arrow_type_name(numbers->type, numbers->is_list());
  }
  const std::string_view format = field.format ? field.format : "";
  if (field.dictionary) return "dictionary";
  if (format == "u" || format == "U" || format == "vu") return "string";
  if (format.starts_with("+s")) return "struct";
  if (format.starts_with("+l") || format.starts_with("+L") || format.starts_with("+w")) return "list";
  return str_cat({"format '", printable(format), "'"});
}

void check_table_schema(const ArrowSchema& schema, std::string_view owner) {
  // More would be a damaged count: nobody has tables of so many columns.
  constexpr int64_t kMostColumns = int64_t{1} << 24;
  TERCEL_CHECK(schema.format && std::string_view(schema.format) == "+s", DataError, owner,
               ": expected columns, the fields of a struct, found ", arrow_type_text(schema));
  TERCEL_CHECK(schema.n_children >= 0 && schema.n_children <= kMostColumns, DataError, owner, ": expected 0 to ",
               kMostColumns, " columns, found ", schema.n_children);
  for (int64_t i = 0; i < schema.n_children; ++i)
    TERCEL_CHECK(schema.children && schema.children[i], DataError, owner, ": expected ", schema.n_children,
                 " columns, found a null pointer in place of column ", i);
}

ColumnNames ColumnPlan::names() const {
  ColumnNames result;
  for (const Floats& column : floats) result.floats.push_back(column.name);
  for (const Keys& column : keys) {
    result.keys.push_back(column.name);
    result.weights.push_back(column.weights);
  }
  for (const Further& column : columns) result.columns.push_back(column.name);
  return result;
}

std::vector<std::string> ColumnPlan::all() const {
  std::vector<std::string> result;
  std::unordered_set<std::string_view> known;  // of strings of the plan
  const auto add = [&](const std::string& name) {
    if (!name.empty() && known.insert(name).second) result.push_back(name);
  };
  for (const Floats& column : floats) add(column.name);
  for (const Keys& column : keys) {
    add(column.name);
    add(column.weights);
  }
  for (const Further& column : columns) add(column.name);
  return result;
}

ArrowDecoder::Column ArrowDecoder::find(const std::string& name, bool list, std::string_view owner) const {
  const auto found = by_name_.find(name);
  TERCEL_CHECK(found != by_name_.end(), DataError, owner, ": expected a column '", printable(name), "', found none");
  TERCEL_CHECK(found->second.size() == 1, DataError, owner, ": expected one column '", printable(name),
               "', found several");
  Column column;
  column.name = name;
  column.child = found->second.front();
  const ArrowSchema* field = schema_->children[column.child];
  const std::optional<ArrowNumbers> numbers = arrow_numbers(*field);
  const bool is_missing = numbers && numbers->all_missing && !numbers->is_list();
  if (!numbers || (numbers->is_list() != list && !is_missing))
    fail_array(owner, name, list ? "lists of numbers" : "numbers", arrow_type_text(*field));
  column.numbers = *numbers;
  return column;
}

void ArrowDecoder::check_type(const Column& column, bool good, std::string_view expected,
                              std::string_view owner) const {
  if (!good && !column.numbers.all_missing)
    fail_array(owner, column.name, expected, arrow_type_name(column.numbers.type));
}

ArrowDecoder::ArrowDecoder(const ColumnPlan& plan, const ArrowSchema& schema, std::string_view owner) : plan_(plan) {
  check_table_schema(schema, owner);
  children_ = schema.n_children;
  schema_ = &schema;
  for (int64_t i = 0; i < children_; ++i)
    if (const ArrowSchema* child = schema.children[i]; child->name)
      by_name_[child->name].push_back(static_cast<size_t>(i));
  for (const ColumnPlan::Floats& wanted : plan.floats) {
    floats_.push_back(find(wanted.name, wanted.list, owner));
    check_type(floats_.back(), plan.integers || is_float(floats_.back().numbers.type),
               "floating point numbers (integers and bools are taken with the option 'integers')", owner);
  }
  for (const ColumnPlan::Keys& wanted : plan.keys) {
    keys_.push_back(find(wanted.name, wanted.list, owner));
    const ElementType type = keys_.back().numbers.type;
    check_type(keys_.back(), !is_float(type) && type != ElementType::Bool, "integers", owner);
    if (wanted.weights.empty()) continue;
    weights_.push_back(find(wanted.weights, wanted.list, owner));
    check_type(weights_.back(), is_float(weights_.back().numbers.type), "floating point numbers", owner);
  }
  for (const ColumnPlan::Further& wanted : plan.columns) {
    columns_.push_back(find(wanted.name, false, owner));
    if (wanted.type == ColumnType::I64)
      check_type(columns_.back(), !is_float(columns_.back().numbers.type), "integers", owner);
  }
  by_name_.clear();
  schema_ = nullptr;
}

DecodedRows ArrowDecoder::decode(ArrowOwned<ArrowArray> batch, const RowOrigin& origin, std::string_view owner) const {
  DecodedRows rows;
  const ArrowArray& array = *batch;
  const bool missing = array.null_count != 0 && array.n_buffers > 0 && array.buffers && array.buffers[0];
  // Sums of these fit in 64 bits, and what is too much for any memory is not allocated.
  constexpr int64_t kMostRows = int64_t{1} << 40;
  TERCEL_CHECK(array.length >= 0 && array.length <= kMostRows && array.offset >= 0 && array.offset <= kMostRows,
               DataError, owner, ": expected a batch of 0 to ", kMostRows, " rows, found ", array.length,
               ", beginning at ", array.offset);
  TERCEL_CHECK(array.n_children == children_ && !missing, DataError, owner, ": expected a batch of ", children_,
               " columns without missing rows, found ", array.n_children, " columns, ", array.null_count,
               " missing rows");
  rows.rows = array.length;
  rows.origins.push_back(origin);
  // A slice of a struct array moves the offset of the struct, not those of its children.
  std::vector<ArrowArray> children(static_cast<size_t>(array.n_children));
  for (int64_t i = 0; i < array.n_children; ++i) {
    ArrowArray& child = children[static_cast<size_t>(i)];
    TERCEL_CHECK(array.children && array.children[i] && array.children[i]->release, DataError, owner, ": expected ",
                 array.n_children, " columns in each batch, found none, or a released one, in place of column ", i);
    child = *array.children[i];
    TERCEL_CHECK(child.offset >= 0 && child.offset <= kMostRows && child.length >= array.offset + array.length,
                 DataError, owner, ": expected ", array.offset + array.length, " rows in each column, found ",
                 child.length);
    child.offset += array.offset;
    child.length = array.length;
  }
  for (size_t c = 0; c < floats_.size(); ++c) {
    const Column& column = floats_[c];
    FloatColumn out;
    out.width = plan_.floats[c].width;
    const ArrowArray& child = children[column.child];
    if (plan_.floats[c].list && !column.numbers.is_list())
      decode_missing(child.length, plan_.fill_float, out);
    else if (column.numbers.is_list())
      decode_lists(child, column.numbers, plan_.fill_float, out, owner, column.name);
    else
      decode_scalars(elements_of(child, column.numbers, 0, child.length, owner, column.name), plan_.fill_float, out,
                     owner, column.name);
    rows.floats.push_back(std::move(out));
  }
  size_t weighted = 0;
  for (size_t s = 0; s < keys_.size(); ++s) {
    KeyColumn out;
    const KeyChanges changes =
        decode_keys(children[keys_[s].child], keys_[s].numbers, plan_, out, owner, keys_[s].name);
    if (!plan_.keys[s].weights.empty()) {
      const Column& weights = weights_[weighted++];
      decode_weights(children[weights.child], weights.numbers, changes, out, owner, weights.name);
    }
    rows.keys.push_back(std::move(out));
  }
  for (size_t c = 0; c < columns_.size(); ++c) {
    FurtherColumn out;
    const ArrowArray& child = children[columns_[c].child];
    decode_further(elements_of(child, columns_[c].numbers, 0, child.length, owner, columns_[c].name),
                   plan_.columns[c].type, out, owner, columns_[c].name);
    rows.columns.push_back(std::move(out));
  }
  rows.arrays.push_back(std::move(batch));
  return rows;
}

}  // namespace tercel::data
