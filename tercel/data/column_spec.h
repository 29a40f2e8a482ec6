// Which columns of a table are labels, dense values and keys: options of Parquet files and of Arrow tables in memory.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tercel/util/enum_names.h"
#include "tercel/util/options.h"

namespace tercel::data {

/** What a missing key (null) is: an error with its row, or a bag without keys. */
enum class MissingKeys : uint8_t { Error, Empty };

constexpr auto enum_names(MissingKeys) {
  return std::to_array<EnumName<MissingKeys>>({{MissingKeys::Error, "error"}, {MissingKeys::Empty, "empty"}});
}

/** Columns by name, and how they are read. */
struct ColumnSpec {
  std::vector<std::string> label, dense, categorical;
  std::vector<std::string> weighted;  // categorical columns whose keys have weights, in the column NAME_weight
  std::vector<std::string> columns;   // further columns
  std::vector<int64_t> nnz_per_slot;  // none: 1, and for lists the most that there are; one: for all slots
  std::vector<int64_t> slot_size_array;
  bool integers = false;
  MissingKeys missing_keys = MissingKeys::Error;
  std::vector<double> fill_null_dense;
  std::vector<int64_t> fill_null_key;

  static constexpr auto fields() {
    return option_list(
        option_field<&ColumnSpec::label>("label", "columns of labels"),
        option_field<&ColumnSpec::dense>("dense", "columns of dense values"),
        option_field<&ColumnSpec::categorical>("categorical", "columns of keys, a slot each"),
        option_field<&ColumnSpec::weighted>("weighted",
                                            "those of them whose keys have weights, in a column NAME_weight"),
        option_field<&ColumnSpec::columns>("columns", "further columns to be read beside the inputs of models"),
        option_field<&ColumnSpec::nnz_per_slot>(
            "nnz_per_slot", "for each slot, the most keys that a row has in it; one: for all; none: found by reading",
            at_least(1)),
        option_field<&ColumnSpec::slot_size_array>(
            "slot_size_array",
            "keys of each slot, by which those of later ones are offset; 0: as the next; empty: no offsets",
            at_least(0)),
        option_field<&ColumnSpec::integers>("integers", "take integers and bools as labels and dense values"),
        option_field<&ColumnSpec::missing_keys>("missing_keys", "what a missing key is"),
        option_field<&ColumnSpec::fill_null_dense>(
            "fill_null_dense", "in place of missing labels and dense values; none: they are errors"),
        option_field<&ColumnSpec::fill_null_key>("fill_null_key", "in place of missing keys; none: see missing_keys"));
  }
};

}  // namespace tercel::data
