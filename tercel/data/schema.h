// Contents of a row, the same for every format.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tercel/util/enum_names.h"
#include "tercel/util/export.h"
#include "tercel/util/options.h"

namespace tercel::data {

/** Limits that keep sizes in range; larger values in files and options are errors. */
constexpr int64_t kMaxDim = 1 << 20;      // labels, dense values or slots of a row
constexpr int64_t kMaxHotness = 1 << 24;  // keys of one slot in a row

/** One categorical field. */
struct Slot {
  std::string name;
  int64_t size = 0;       // its keys lie in [first_key, first_key + size); 0: any key may occur
  int64_t first_key = 0;  // 0 where size is 0
  int64_t hotness = 1;    // most keys that a row has in this slot (HugeCTR's nnz_per_slot)
  bool weighted = false;  // each key has a weight, f32

  static constexpr auto fields() {
    return option_list(option_field<&Slot::name>("name", "name of the field", required()),
                       option_field<&Slot::size>("size", "number of its keys, 0 if any key may occur", at_least(0)),
                       option_field<&Slot::first_key>("first_key", "its smallest key", at_least(0)),
                       option_field<&Slot::hotness>("hotness", "most keys that a row has in it", at_least(1)),
                       option_field<&Slot::weighted>("weighted", "each key has a weight"));
  }
  friend bool operator==(const Slot&, const Slot&) = default;
};

enum class ColumnType : uint8_t { F32, I64 };

constexpr auto enum_names(ColumnType) {
  return std::to_array<EnumName<ColumnType>>({{ColumnType::F32, "f32"}, {ColumnType::I64, "i64"}});
}

/** A further value of each row, such as a weight, a time, a group or an id: not an input of a model. */
struct Column {
  std::string name;
  ColumnType type = ColumnType::F32;

  static constexpr auto fields() {
    return option_list(option_field<&Column::name>("name", "name of the column", required()),
                       option_field<&Column::type>("type", "of its values"));
  }
  friend bool operator==(const Column&, const Column&) = default;
};

/** Content of a row, independent of the file format. */
struct TERCEL_API Schema {
  int64_t label_dim = 1;
  int64_t dense_dim = 0;
  std::vector<std::string> label_names;  // label_dim of them, or none
  std::vector<std::string> dense_names;  // dense_dim of them, or none
  std::vector<Slot> slots;
  std::vector<Column> columns;

  int64_t slot_num() const { return static_cast<int64_t>(slots.size()); }
  /** Sum of the slots' hotness: most keys of a row. */
  int64_t max_nnz() const;
  /** Rows that one table for all slots needs: the end of the last key range; 0 if a slot's size is unknown. */
  int64_t num_keys() const;
  /**
   * HugeCTR's slot_size_array, by which the keys of each slot are offset by the sum of the sizes before it, and a slot
   * of size 0 shares the keys of the next one. Slots of unknown size are behind its end. Where no array gives the slots
   * their keys, the sizes, with 0 for unknown ones.
   */
  std::vector<int64_t> slot_size_array() const;
  /** Sets first_key of each slot to the sum of the sizes before it. */
  void set_consecutive_keys();
  /** ConfigError "<name>: ..." unless dims, names, ranges and hotness make sense. */
  void check(std::string_view name) const;

  static constexpr auto fields() {
    return option_list(
        option_field<&Schema::label_dim>("label_dim", "labels of a row", at_least(1), at_most(kMaxDim), required()),
        option_field<&Schema::label_names>("label_names", "their names"),
        option_field<&Schema::dense_dim>("dense_dim", "dense values of a row", at_least(0), at_most(kMaxDim),
                                         required()),
        option_field<&Schema::dense_names>("dense_names", "their names"),
        option_field<&Schema::slots>("slots", "the categorical fields, in the order of the files"),
        option_field<&Schema::columns>("columns", "further values of a row"));
  }
  friend bool operator==(const Schema&, const Schema&) = default;
};

}  // namespace tercel::data
