// What the schema of an Arrow column says of its numbers. Private.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "tercel/data/element_type.h"
#include "tercel/util/arrow_c.h"

namespace tercel::data {

/** What a column of numbers is. */
struct ArrowNumbers {
  enum class Form : uint8_t { Scalar, List, LargeList, FixedList };

  ElementType type = ElementType::I64;
  Form form = Form::Scalar;
  int64_t list_size = 0;             // of a FixedList
  std::optional<ElementType> index;  // dictionary-encoded: type of the indices
  bool temporal = false;             // they are times
  bool all_missing = false;          // Arrow's type null: there is no number

  bool is_list() const { return form != Form::Scalar; }
};

/** The numbers of a field of a schema; none if it has others than numbers and lists of numbers. */
std::optional<ArrowNumbers> arrow_numbers(const ArrowSchema& field);

/** DataError unless it is that of a struct with fields, "columns of a table". */
void check_table_schema(const ArrowSchema& schema, std::string_view owner);

}  // namespace tercel::data
