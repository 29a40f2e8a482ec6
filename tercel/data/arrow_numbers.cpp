#include <charconv>

#include "tercel/data/arrow_numbers_impl.h"
#include "tercel/util/arrow_types.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"

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

bool is_usable(const ArrowSchema* field) { return field && field->release; }

}  // namespace

std::optional<ArrowNumbers> arrow_numbers(const ArrowSchema& field) {
  ArrowNumbers numbers;
  const ArrowSchema* element = &field;
  const std::string_view format = field.format ? field.format : "";
  if (format.starts_with("+")) {
    if (field.n_children != 1 || !field.children || !is_usable(field.children[0])) return std::nullopt;
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
    if (!is_usable(element->dictionary)) return std::nullopt;
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
  numbers.temporal = values.starts_with('t');
  return numbers;
}

void check_table_schema(const ArrowSchema& schema, std::string_view owner) {
  // More would be a damaged count: nobody has tables of so many columns.
  constexpr int64_t kMostColumns = int64_t{1} << 24;
  TERCEL_CHECK(schema.format && std::string_view(schema.format) == "+s", DataError, owner,
               ": expected columns, the fields of a struct, found ", arrow_type_text(schema));
  TERCEL_CHECK(schema.n_children >= 0 && schema.n_children <= kMostColumns, DataError, owner, ": expected 0 to ",
               kMostColumns, " columns, found ", schema.n_children);
  for (int64_t i = 0; i < schema.n_children; ++i)
    TERCEL_CHECK(schema.children && is_usable(schema.children[i]), DataError, owner, ": expected ", schema.n_children,
                 " columns, found a null pointer, or a released one, in place of column ", i);
}

}  // namespace tercel::data
