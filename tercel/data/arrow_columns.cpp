#include "tercel/data/arrow_columns_impl.h"

#include <unordered_set>
#include <utility>

#include "tercel/data/arrow_elements_impl.h"
#include "tercel/data/arrow_keys_impl.h"
#include "tercel/data/arrow_values_impl.h"
#include "tercel/util/arrow_types.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"

namespace tercel::data {

namespace {

/** Rows of a struct array that are null; producers need not say how many these are. */
int64_t missing_rows(const ArrowArray& batch) {
  if (batch.null_count == 0 || batch.n_buffers < 1 || !batch.buffers || !batch.buffers[0]) return 0;
  int64_t missing = 0;
  for (int64_t row = 0; row < batch.length; ++row)
    missing += is_set(static_cast<const uint8_t*>(batch.buffers[0]), batch.offset + row) ? 0 : 1;
  return missing;
}

}  // namespace

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
    fail_column({owner, name}, list ? "lists of numbers" : "numbers", arrow_type_text(*field));
  column.numbers = *numbers;
  return column;
}

void ArrowDecoder::check_type(const Column& column, bool good, std::string_view expected,
                              std::string_view owner) const {
  if (!good && !column.numbers.all_missing)
    fail_column({owner, column.name}, expected, arrow_type_text(*schema_->children[column.child]));
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
    const ArrowNumbers& numbers = floats_.back().numbers;
    check_type(floats_.back(), !numbers.temporal && (plan.integers || is_float(numbers.type)),
               "floating point numbers (integers and bools are taken with the option 'integers')", owner);
  }
  for (const ColumnPlan::Keys& wanted : plan.keys) {
    keys_.push_back(find(wanted.name, wanted.list, owner));
    const ArrowNumbers& numbers = keys_.back().numbers;
    check_type(keys_.back(), !numbers.temporal && !is_float(numbers.type) && numbers.type != ElementType::Bool,
               "integers", owner);
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
  // Sums of these fit in 64 bits, and what is too much for any memory is not allocated.
  constexpr int64_t kMostRows = int64_t{1} << 40;
  TERCEL_CHECK(array.length >= 0 && array.length <= kMostRows && array.offset >= 0 && array.offset <= kMostRows,
               DataError, owner, ": expected a batch of 0 to ", kMostRows, " rows, found ", array.length,
               ", beginning at ", array.offset);
  const int64_t missing = missing_rows(array);
  TERCEL_CHECK(array.n_children == children_ && missing == 0, DataError, owner, ": expected a batch of ", children_,
               " columns without missing rows, found ", array.n_children, " columns, ", missing, " missing rows");
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
                 child.length, ", beginning at ", child.offset);
    child.offset += array.offset;
    child.length = array.length;
  }
  for (size_t c = 0; c < floats_.size(); ++c) {
    const Column& column = floats_[c];
    FloatColumn out;
    decode_floats(children[column.child], column.numbers, plan_.floats[c], plan_.fill_float, out, {owner, column.name});
    rows.floats.push_back(std::move(out));
  }
  size_t weighted = 0;
  for (size_t s = 0; s < keys_.size(); ++s) {
    const Column& column = keys_[s];
    KeyColumn out;
    const KeyChanges changes = decode_keys(children[column.child], column.numbers, plan_, out, {owner, column.name});
    if (!plan_.keys[s].weights.empty()) {
      const Column& weights = weights_[weighted++];
      decode_weights(children[weights.child], weights.numbers, changes, out, {owner, weights.name});
    }
    rows.keys.push_back(std::move(out));
  }
  for (size_t c = 0; c < columns_.size(); ++c) {
    const Column& column = columns_[c];
    FurtherColumn out;
    decode_further(children[column.child], column.numbers, plan_.columns[c].type, out, {owner, column.name});
    rows.columns.push_back(std::move(out));
  }
  rows.arrays.push_back(std::move(batch));
  return rows;
}

}  // namespace tercel::data
