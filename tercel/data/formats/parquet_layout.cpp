#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "tercel/data/formats/parquet_layout_impl.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"

namespace tercel::data {

namespace {

constexpr std::string_view kOwner = "parquet";

int64_t total_width(const std::vector<ParquetValues>& columns) {
  int64_t sum = 0;
  for (const ParquetValues& column : columns) sum += column.width;
  return sum;
}

/** "label", or "label0", "label1" ... */
std::vector<ParquetValues> values_of(std::string_view kind, const std::vector<std::string>& names, int64_t dim) {
  std::vector<ParquetValues> columns(static_cast<size_t>(dim));
  for (size_t i = 0; i < columns.size(); ++i)
    columns[i].name = !names.empty() ? names[i] : dim == 1 ? std::string(kind) : str_cat({kind, i});
  return columns;
}

/** Whether the column, of whose values none is there, stands for one of numbers, or of lists of them. */
bool fits_missing(const ParquetColumnInfo& column, bool list) { return column.all_missing && (list || !column.list); }

bool fits(const ParquetColumnInfo& column, ElementType type, bool list) {
  if (fits_missing(column, list)) return true;
  return column.number && *column.number == type && column.list == list;
}

}  // namespace

ParquetLayout ParquetLayout::written(const Schema& schema, KeyType key_type) {
  ParquetLayout layout;
  layout.labels = values_of("label", schema.label_names, schema.label_dim);
  layout.dense = values_of("dense", schema.dense_names, schema.dense_dim);
  for (const Slot& slot : schema.slots) {
    ParquetKeys keys;
    keys.name = slot.name;
    keys.type = key_type == KeyType::U32 ? ElementType::U32 : ElementType::I64;
    keys.list = slot.hotness > 1;
    keys.offset = slot.first_key;
    if (slot.weighted) keys.weights = slot.name + "_weight";
    layout.keys.push_back(std::move(keys));
  }
  layout.columns = schema.columns;
  return layout;
}

ParquetLayout ParquetLayout::of(const Schema& schema, const ParquetOptions& options) {
  const bool named = !options.labels.empty() || !options.dense.empty() || !options.keys.empty();
  if (!named) return written(schema, options.key_type);
  ParquetLayout layout{options.labels, options.dense, options.keys, schema.columns};
  const auto check = [](std::string_view what, int64_t found, int64_t expected) {
    TERCEL_CHECK(found == expected, ConfigError, kOwner, ": option '", what, "': expected ", expected,
                 " in all, as the schema says, found ", found);
  };
  check("label_columns", total_width(layout.labels), schema.label_dim);
  check("dense_columns", total_width(layout.dense), schema.dense_dim);
  check("key_columns", static_cast<int64_t>(layout.keys.size()), schema.slot_num());
  for (const auto* columns : {&layout.labels, &layout.dense})
    for (const ParquetValues& column : *columns)
      TERCEL_CHECK(column.list || column.width == 1, ConfigError, kOwner, ": column '", printable(column.name),
                   "': expected width 1, as it is no list, found ", column.width);
  for (size_t s = 0; s < layout.keys.size(); ++s)
    TERCEL_CHECK(layout.keys[s].weights.empty() != schema.slots[s].weighted, ConfigError, kOwner, ": column '",
                 printable(layout.keys[s].name), "': expected weights exactly where the schema has them");
  return layout;
}

ColumnPlan ParquetLayout::plan(const ParquetOptions& options) const {
  ColumnPlan plan;
  for (const auto* values : {&labels, &dense})
    for (const ParquetValues& column : *values) {
      plan.floats.push_back({column.name, column.width, column.list});
      plan.integers |= !is_float(column.type);
    }
  for (const ParquetKeys& column : keys) plan.keys.push_back({column.name, column.list, column.weights});
  if (!options.fill_null_dense.empty()) plan.fill_float = static_cast<float>(options.fill_null_dense[0]);
  if (!options.fill_null_key.empty()) plan.fill_key = options.fill_null_key[0];
  plan.missing_is_empty = options.missing_keys == MissingKeys::Empty;
  return plan;
}

BatchShape ParquetLayout::add_columns(const Schema& schema, const SourceOptions& asked, std::string_view owner,
                                      ColumnPlan& plan) const {
  BatchShape shape = shape_of(schema, asked.inputs);
  size_t slot = 0;
  for (BatchShape::Input& input : shape.inputs)
    for (int64_t s = 0; s < input.slot_num; ++s) input.key_weights |= schema.slots[slot++].weighted;
  for (const std::string& name : asked.columns) {
    const auto column =
        std::find_if(columns.begin(), columns.end(), [&](const Column& known) { return known.name == name; });
    TERCEL_CHECK(column != columns.end(), ConfigError, owner, ": expected one of the ", columns.size(),
                 " further columns of the dataset's description, found '", printable(name), "'");
    plan.columns.push_back({name, column->type});
    shape.columns.push_back({name, column->type == ColumnType::I64 ? kInt64 : kFloat32, name == asked.weight});
  }
  return shape;
}

std::vector<int64_t> ParquetLayout::offsets() const {
  std::vector<int64_t> result;
  for (const ParquetKeys& column : keys) result.push_back(column.offset);
  return result;
}

void ParquetLayout::check(const ParquetFooter& footer, std::string_view file) const {
  const auto find = [&](const std::string& name) -> const ParquetColumnInfo& {
    const ParquetColumnInfo* column = footer.find(name, file);
    TERCEL_CHECK(column, DataError, file, ": expected a column '", printable(name),
                 "', as the description says, found ", "none");
    return *column;
  };
  const auto refuse = [&](const std::string& name, std::string_view expected, const ParquetColumnInfo& found) {
    throw_error<DataError>({file, ": column '", printable(name), "': expected ", expected,
                            ", as the description says, found ", found.type});
  };
  const auto check_type = [&](const std::string& name, ElementType type, bool list) {
    const ParquetColumnInfo& column = find(name);
    if (!fits(column, type, list)) refuse(name, arrow_type_name(type, list), column);
  };
  for (const auto* values : {&labels, &dense})
    for (const ParquetValues& column : *values) check_type(column.name, column.type, column.list);
  for (const ParquetKeys& column : keys) {
    check_type(column.name, column.type, column.list);
    if (column.weights.empty()) continue;
    const ParquetColumnInfo& weights = find(column.weights);
    if (fits_missing(weights, column.list)) continue;
    if (!weights.number || !is_float(*weights.number) || weights.list != column.list)
      refuse(column.weights, column.list ? "list<float>" : "float", weights);
  }
  for (const Column& column : columns) {
    const ParquetColumnInfo& found = find(column.name);
    const bool wants_float = column.type == ColumnType::F32;
    if (fits_missing(found, false)) continue;
    if (!found.number || found.list || is_float(*found.number) != wants_float)
      refuse(column.name, wants_float ? "float or double" : "integers", found);
  }
}

void check_fills(const std::vector<double>& fill_null_dense, const std::vector<int64_t>& fill_null_key,
                 std::string_view owner) {
  TERCEL_CHECK(fill_null_dense.size() <= 1 && fill_null_key.size() <= 1, ConfigError, "[", owner,
               "] options 'fill_null_dense' and 'fill_null_key': expected one value at most, found ",
               std::max(fill_null_dense.size(), fill_null_key.size()));
  for (const double value : fill_null_dense)
    TERCEL_CHECK(std::abs(value) <= double{std::numeric_limits<float>::max()}, ConfigError, "[", owner,
                 "] option 'fill_null_dense': expected a finite number that f32 holds, found ", format_double(value));
}

// Widths, and values of a row, have limits (kMaxDim, kMaxHotness), by which nothing here overflows.
int64_t decoded_row_bytes(const ColumnPlan& plan, const ParquetFooter& footer, const ParquetRowGroup& group,
                          std::string_view file) {
  const int64_t rows = std::max<int64_t>(1, group.rows);
  int64_t bytes = 0;
  for (const ColumnPlan::Floats& column : plan.floats) bytes += 4 * column.width;
  for (const ColumnPlan::Keys& column : plan.keys) {
    const ParquetColumnInfo* info = footer.find(column.name, file);
    const int64_t values = info ? group.chunks[static_cast<size_t>(info->first_leaf)].values : 0;
    bytes += column.list ? 8 + values / rows * (column.weights.empty() ? 8 : 12) : 12;
  }
  return std::max<int64_t>(1, bytes + 8 * static_cast<int64_t>(plan.columns.size()));
}

}  // namespace tercel::data
