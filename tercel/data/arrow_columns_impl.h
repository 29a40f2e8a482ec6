// Decodes record batches of the Arrow C data interface into DecodedRows. Private.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tercel/data/arrow_numbers_impl.h"
#include "tercel/data/decoded_rows_impl.h"
#include "tercel/data/schema.h"
#include "tercel/util/arrow_c.h"

namespace tercel::data {

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
