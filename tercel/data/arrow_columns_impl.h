// Decodes record batches of the Arrow C data interface into DecodedRows. Private.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tercel/data/decoded_rows_impl.h"
#include "tercel/data/element_type.h"
#include "tercel/data/schema.h"
#include "tercel/util/arrow_c.h"

namespace tercel::data {

/** What a column of numbers is. */
struct ArrowNumbers {
  enum class Form : uint8_t { Scalar, List, LargeList, FixedList };

  ElementType type = ElementType::I64;
  Form form = Form::Scalar;
  int64_t list_size = 0;             // of a FixedList
  std::optional<ElementType> index;  // dictionary-encoded: type of the indices
  bool all_missing = false;          // Arrow's type null: there is no number

  bool is_list() const { return form != Form::Scalar; }
};

/** The numbers of a field of a schema; none if it has others than numbers and lists of numbers. */
std::optional<ArrowNumbers> arrow_numbers(const ArrowSchema& field);
/** "int64", "list<float>", or the format of a type that is not known. */
std::string arrow_type_text(const ArrowSchema& field);

/** DataError unless it is that of a struct with fields, "columns of a table". */
void check_table_schema(const ArrowSchema& schema, std::string_view owner);

/** Which columns to decode, and how. */
struct ColumnPlan {
  struct Floats {
    std::string name;
    int64_t width = 1;
    bool list = false;
  };
  struct Keys {
    std::string name;
    bool list = false;
    std::string weights;  // a column of lists as long as those of the keys; empty: none
  };
  struct Further {
    std::string name;
    ColumnType type = ColumnType::F32;
  };

  std::vector<Floats> floats;  // labels, then dense values
  std::vector<Keys> keys;
  std::vector<Further> columns;
  bool integers = false;            // integers and bools may be labels and dense values
  std::optional<float> fill_float;  // in place of missing values
  std::optional<int64_t> fill_key;
  bool missing_is_empty = false;  // missing keys, and lists of keys, are empty bags

  ColumnNames names() const;
  /** Names of all columns of files that are read. */
  std::vector<std::string> all() const;
};

/** Decodes batches of one schema. */
class ArrowDecoder {
 public:
  /** DataError "<owner>: column 'x': ..." for a column that is not there, or not what the plan says. */
  ArrowDecoder(const ColumnPlan& plan, const ArrowSchema& schema, std::string_view owner);

  /** Takes ownership of the batch, a struct array. DataError for one that contradicts its schema. */
  DecodedRows decode(ArrowOwned<ArrowArray> batch, const RowOrigin& origin, std::string_view owner) const;

 private:
  struct Column {
    size_t child = 0;
    ArrowNumbers numbers;
    std::string name;
  };

  Column find(const std::string& name, bool list, std::string_view owner) const;
  void check_type(const Column& column, bool good, std::string_view expected, std::string_view owner) const;

  /** Fields of the schema by name; used while it is there. */
  std::unordered_map<std::string_view, std::vector<size_t>> by_name_;
  const ArrowSchema* schema_ = nullptr;

  ColumnPlan plan_;
  std::vector<Column> floats_, keys_, weights_, columns_;  // weights: of the slots that have them, in order
  int64_t children_ = 0;
};

}  // namespace tercel::data
