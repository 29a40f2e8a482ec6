#include <algorithm>
#include <utility>

#include "tercel/data/formats/column_describer_impl.h"
#include "tercel/data/slot_sizes_impl.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"

namespace tercel::data {

namespace {

void add_names(std::string_view owner, const std::vector<ParquetValues>& columns, int64_t& dim,
               std::vector<std::string>& names) {
  dim = 0;
  for (const ParquetValues& column : columns) {
    dim += column.width;
    TERCEL_CHECK(dim <= kMaxDim, ConfigError, owner, ": expected at most ", kMaxDim,
                 " labels and dense values in a row, found more with column '", printable(column.name), "'");
    for (int64_t k = 0; k < column.width; ++k)
      names.push_back(column.list ? str_cat({column.name, "[", k, "]"}) : column.name);
  }
}

}  // namespace

ColumnDescriber::~ColumnDescriber() = default;

void ColumnDescriber::describe_columns(const ColumnChoice& choice) {
  check_choice(choice);
  for (const std::string& name : choice.labels) options_.labels.push_back(values_of(name));
  for (const std::string& name : choice.dense) options_.dense.push_back(values_of(name));
  add_names(owner_, options_.labels, schema_.label_dim, schema_.label_names);
  add_names(owner_, options_.dense, schema_.dense_dim, schema_.dense_names);
  for (const std::string& name : choice.keys) add_slot(name);
  for (const std::string& name : columns_.columns) add_column(name);
  set_sizes();
  set_hotness();
  options_.missing_keys = columns_.missing_keys;
  options_.fill_null_dense = columns_.fill_null_dense;
  options_.fill_null_key = columns_.fill_null_key;
}

void ColumnDescriber::check_choice(const ColumnChoice& choice) const {
  std::vector<std::string> all;
  for (const auto* names : {&choice.labels, &choice.dense, &choice.keys, &columns_.columns})
    all.insert(all.end(), names->begin(), names->end());
  std::sort(all.begin(), all.end());
  const auto twice = std::adjacent_find(all.begin(), all.end());
  TERCEL_CHECK(twice == all.end(), ConfigError, owner_, ": expected each column once, found '", printable(*twice),
               "' twice");
  for (const std::string& name : columns_.weighted)
    TERCEL_CHECK(std::find(choice.keys.begin(), choice.keys.end(), name) != choice.keys.end(), ConfigError, "[", owner_,
                 "] option 'weighted': expected names of categorical columns, found '", printable(name), "'");
}

const ParquetColumnInfo& ColumnDescriber::find(const std::string& name) const {
  if (const ParquetColumnInfo* column = find_column(name)) return *column;
  const Span<ParquetColumnInfo> all = table_columns();
  constexpr size_t kMost = 20;
  std::string known;
  for (size_t i = 0; i < std::min(all.size(), kMost); ++i)
    known += str_cat({i == 0 ? "" : ", ", printable(all[i].name)});
  throw_error<ConfigError>({owner_, ": expected a column '", printable(name), "' in ", table_name(), ", found ",
                            known.empty() ? "none" : known, all.size() > kMost ? ", ..." : ""});
}

void ColumnDescriber::refuse(const ParquetColumnInfo& column, std::string_view expected) const {
  throw_error<ConfigError>(
      {table_name(), ": column '", printable(column.name), "': expected ", expected, ", found ", column.type});
}

ParquetValues ColumnDescriber::values_of(const std::string& name) const {
  const ParquetColumnInfo& column = find(name);
  if (column.all_missing) return {name, ElementType::F32, column.list, 1};
  if (!column.number || column.temporal) refuse(column, "numbers, or lists of numbers");
  if (!columns_.integers && !is_float(*column.number))
    refuse(column, "float or double (integers and bools are taken as labels and dense values with option 'integers')");
  ParquetValues values{name, *column.number, column.list, 1};
  if (column.list) values.width = list_width(name);
  return values;
}

void ColumnDescriber::add_slot(const std::string& name) {
  const ParquetColumnInfo& column = find(name);
  const bool is_key =
      column.number && !column.temporal && !is_float(*column.number) && *column.number != ElementType::Bool;
  if (!is_key && !column.all_missing)
    refuse(column,
           "integer keys, or lists of them (text becomes keys by 'tercel convert csv', in Python by "
           "tercel.data.convert())");
  ParquetKeys keys{name, column.number.value_or(ElementType::I64), column.list, 0, ""};
  Slot slot;
  slot.name = name;
  if (std::find(columns_.weighted.begin(), columns_.weighted.end(), name) != columns_.weighted.end()) {
    keys.weights = name + "_weight";
    slot.weighted = true;
    static_cast<void>(find(keys.weights));
  }
  options_.keys.push_back(std::move(keys));
  schema_.slots.push_back(std::move(slot));
}

void ColumnDescriber::add_column(const std::string& name) {
  const ParquetColumnInfo& column = find(name);
  const bool is_missing = column.all_missing && !column.list;
  if (!is_missing && (!column.number || column.list)) refuse(column, "numbers or times");
  const bool is_integer = column.number && !is_float(*column.number);
  schema_.columns.push_back({name, is_integer ? ColumnType::I64 : ColumnType::F32});
}

void ColumnDescriber::set_sizes() {
  const std::vector<int64_t> offsets = set_slot_sizes(schema_.slots, columns_.slot_size_array, owner_);
  for (size_t s = 0; s < offsets.size(); ++s) options_.keys[s].offset = offsets[s];
}

void ColumnDescriber::set_hotness() {
  const std::vector<int64_t>& given = columns_.nnz_per_slot;
  std::vector<Slot>& slots = schema_.slots;
  TERCEL_CHECK(given.size() <= 1 || given.size() == slots.size(), ConfigError, "[", owner_,
               "] option 'nnz_per_slot': expected ", slots.size(), ", one for each slot, or one for all, found ",
               given.size());
  for (size_t s = 0; s < slots.size() && !given.empty(); ++s) slots[s].hotness = given[given.size() == 1 ? 0 : s];
}

}  // namespace tercel::data
