#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "tercel/data/arrow_made_impl.h"
#include "tercel/data/formats/parquet_metadata_impl.h"
#include "tercel/data/formats/parquet_writer_impl.h"
#include "tercel/util/atomic_file.h"
#include "tercel/util/error.h"
#include "tercel/util/file.h"
#include "tercel/util/format.h"
#include "tercel/util/half.h"

namespace tercel::data {

namespace {

constexpr std::string_view kOwner = "parquet";
// Offsets of lists are i32.
constexpr int64_t kMaxGroupKeys = int64_t{1} << 30;

const char* format_of(ElementType type) {
  constexpr const char* kFormats[] = {"b", "c", "s", "i", "l", "C", "S", "I", "L", "e", "f", "g"};
  return kFormats[static_cast<size_t>(type)];
}

/** Bytes of an element; those of bools are packed when they are written. */
size_t bytes_of(ElementType type) {
  constexpr size_t kBytes[] = {1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 4, 8};
  return kBytes[static_cast<size_t>(type)];
}

struct IntegerRange {
  int64_t least;
  uint64_t most;
};

IntegerRange range_of(ElementType type) {
  const size_t bits = 8 * bytes_of(type);
  if (type == ElementType::Bool) return {0, 1};
  if (type >= ElementType::U8) return {0, std::numeric_limits<uint64_t>::max() >> (64 - bits)};
  const uint64_t most = std::numeric_limits<uint64_t>::max() >> (65 - bits);
  return {-static_cast<int64_t>(most) - 1, most};
}

/** Whether a key, a number of 64 bits, is one of the type; those of the types of 64 bits may have any bits. */
bool holds(ElementType type, int64_t key) {
  if (bytes_of(type) == 8) return true;
  const IntegerRange range = range_of(type);
  return key >= range.least && (key < 0 || static_cast<uint64_t>(key) <= range.most);
}

/** Appends a value as an element of the type; false if it is none. */
bool append_value(ElementType type, float value, std::vector<uint8_t>& out) {
  const auto put = [&](const auto& element) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(&element);
    out.insert(out.end(), bytes, bytes + sizeof(element));
    return true;
  };
  if (type == ElementType::F32) return put(value);
  if (type == ElementType::F64) return put(static_cast<double>(value));
  if (type == ElementType::F16) {
    const Half half(value);
    return static_cast<float>(half) == value && put(half);
  }
  const IntegerRange range = range_of(type);
  const auto wide = static_cast<double>(value);
  // 2^63 and 2^64 themselves are out of range, and are what the largest numbers of these types are as doubles.
  if (std::trunc(wide) != wide || wide < static_cast<double>(range.least) || wide >= std::ldexp(1.0, 64)) return false;
  const auto integer = wide < 0 ? static_cast<uint64_t>(static_cast<int64_t>(wide)) : static_cast<uint64_t>(wide);
  if (wide >= 0 && integer > range.most) return false;
  const auto* bytes = reinterpret_cast<const uint8_t*>(&integer);
  out.insert(out.end(), bytes, bytes + bytes_of(type));
  return true;
}

/** Bytes of 0 and 1 as bits. */
std::vector<uint8_t> packed(const std::vector<uint8_t>& bools) {
  std::vector<uint8_t> bits((bools.size() + 7) / 8, 0);
  for (size_t i = 0; i < bools.size(); ++i) bits[i / 8] = static_cast<uint8_t>(bits[i / 8] | bools[i] << i % 8);
  return bits;
}

}  // namespace

/** Rows in memory, as columns. */
struct ParquetWriter::Columns {
  struct Keys {
    std::vector<uint8_t> bytes;  // u32 or i64
    std::vector<int32_t> offsets{0};
    std::vector<float> weights;
    std::vector<uint8_t> valid;  // bits, of a column without lists
    int64_t missing = 0;
  };
  struct Further {
    std::vector<float> floats;
    std::vector<int64_t> integers;
  };

  int64_t rows = 0;
  int64_t most_keys = 0;  // of a slot
  struct Values {
    std::vector<uint8_t> bytes;  // elements of the column's type
    std::vector<int32_t> offsets{0};
  };
  std::vector<Values> values;  // of labels, then of dense values
  std::vector<Keys> keys;
  std::vector<Further> further;
};

ParquetWriter::ParquetWriter(const Schema& schema, const ParquetOptions& parquet, const WriterOptions& options)
    : RecordWriter({kOwner, ".parquet", /*full_slots=*/false, /*file_list=*/true},
                   RowRules(schema, options.binary_labels,
                            parquet.keys.empty() ? max_key(parquet.key_type) : std::numeric_limits<uint64_t>::max()),
                   options),
      layout_(ParquetLayout::of(schema, parquet)),
      parquet_(parquet),
      folder_(options.folder),
      prefix_(options.prefix),
      columns_(std::make_unique<Columns>()) {
  arrow_api(kOwner);  // whether it is there is known before the first row
  std::vector<std::string> names;
  for (const auto* values : {&layout_.labels, &layout_.dense})
    for (const ParquetValues& column : *values) names.push_back(column.name);
  for (const ParquetKeys& column : layout_.keys) {
    names.push_back(column.name);
    if (!column.weights.empty()) names.push_back(column.weights);
  }
  for (const Column& column : layout_.columns) names.push_back(column.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  TERCEL_CHECK(twice == names.end(), ConfigError, kOwner,
               ": expected different names of labels, dense values, slots and columns, found '", printable(*twice),
               "' twice");
  values_ = layout_.labels;
  values_.insert(values_.end(), layout_.dense.begin(), layout_.dense.end());
}

ParquetWriter::~ParquetWriter() = default;

void ParquetWriter::clear_columns() {
  *columns_ = Columns();
  columns_->values.resize(values_.size());
  columns_->keys.resize(layout_.keys.size());
  columns_->further.resize(layout_.columns.size());
}

void ParquetWriter::begin_file(RecordFile& file, int64_t /*expected_rows*/) {
  clear_columns();
  std::vector<ArrowSchema> fields;
  const auto add = [&](const std::string& name, const char* format, bool list, bool nullable) {
    if (!list) return fields.push_back(make_field(format, name, nullable));
    std::vector<ArrowSchema> element{make_field(format, "element", false)};
    fields.push_back(make_field("+l", name, false, std::move(element)));
  };
  for (const ParquetValues& column : values_) add(column.name, format_of(column.type), column.list, false);
  for (const ParquetKeys& column : layout_.keys) {
    add(column.name, format_of(column.type), column.list, true);
    if (!column.weights.empty()) add(column.weights, "f", column.list, true);
  }
  for (const Column& column : layout_.columns)
    fields.push_back(make_field(column.type == ColumnType::I64 ? "l" : "f", column.name, false));
  const auto append = [&file](const void* data, size_t bytes) { std::memcpy(file.append(bytes), data, bytes); };
  output_ = std::make_unique<ParquetOutput>(append, make_field("+s", "", false, std::move(fields)), parquet_, kOwner);
}

void ParquetWriter::check_row(const RowView& row) {
  row_values_.resize(values_.size());
  int64_t at = 0;
  for (size_t c = 0; c < values_.size(); ++c) {
    row_values_[c].clear();
    for (int64_t k = 0; k < values_[c].width; ++k, ++at) {
      const float value = at < schema().label_dim ? row.labels[at] : row.dense[at - schema().label_dim];
      if (!append_value(values_[c].type, value, row_values_[c]))
        fail_row(str_cat({"a value of type ", arrow_type_name(values_[c].type), " in column '",
                          printable(values_[c].name), "'"}),
                 format_double(value));
    }
  }
  const int64_t* keys = row.keys;
  for (size_t s = 0; s < layout_.keys.size(); ++s) {
    const ParquetKeys& layout = layout_.keys[s];
    const int64_t count = row.count(s, schema().slots[s].hotness);
    const bool may_be_missing = parquet_.missing_keys == MissingKeys::Empty && parquet_.fill_null_key.empty();
    if (!layout.list && count != 1 && !(count == 0 && may_be_missing))
      fail_row(str_cat({may_be_missing ? "at most " : "", "one key in column '", printable(layout.name),
                        "', which has no lists"}),
               str_cat({count}));
    for (int64_t k = 0; k < count; ++k, ++keys)
      if (!holds(layout.type, subtract_wrapping(*keys, layout.offset)))
        fail_row(str_cat({"a key of type ", arrow_type_name(layout.type), " in column '", printable(layout.name), "'"}),
                 str_cat({subtract_wrapping(*keys, layout.offset)}));
  }
  for (size_t c = 0; c < layout_.columns.size(); ++c) {
    if (layout_.columns[c].type == ColumnType::I64) continue;
    const float value = static_cast<const float*>(row.columns[c])[row.index];
    if (!RowRules::is_dense_value(value))
      fail_row(str_cat({"column '", printable(layout_.columns[c].name), "' to be a finite number"}),
               format_double(value));
  }
}

void ParquetWriter::put_row(const RowView& row, RecordFile& /*file*/) {
  Columns& columns = *columns_;
  for (size_t c = 0; c < values_.size(); ++c) {
    Columns::Values& to = columns.values[c];
    to.bytes.insert(to.bytes.end(), row_values_[c].begin(), row_values_[c].end());
    to.offsets.push_back(static_cast<int32_t>(to.bytes.size() / bytes_of(values_[c].type)));
    columns.most_keys = std::max<int64_t>(columns.most_keys, to.offsets.back());
  }
  const auto bit_of_row = static_cast<size_t>(columns.rows);
  int64_t key = 0;
  for (size_t s = 0; s < layout_.keys.size(); ++s) {
    const ParquetKeys& layout = layout_.keys[s];
    Columns::Keys& to = columns.keys[s];
    const int64_t count = row.count(s, schema().slots[s].hotness);
    // A column without lists has a missing key, and a missing weight, in place of an empty bag.
    const bool missing = !layout.list && count == 0;
    if (!layout.list) {
      if (bit_of_row % 8 == 0) to.valid.push_back(0);
      if (!missing) to.valid.back() = static_cast<uint8_t>(to.valid.back() | 1u << bit_of_row % 8);
      to.missing += missing ? 1 : 0;
    }
    const size_t width = bytes_of(layout.type);
    const size_t begin = to.bytes.size();
    const auto stored = missing ? size_t{1} : static_cast<size_t>(count);
    to.bytes.resize(begin + stored * width);
    for (int64_t k = 0; k < count; ++k) {
      const int64_t local = subtract_wrapping(row.keys[key + k], layout.offset);
      std::memcpy(to.bytes.data() + begin + static_cast<size_t>(k) * width, &local, width);
    }
    if (!layout.weights.empty()) {
      for (int64_t k = 0; k < count; ++k) to.weights.push_back(row.key_weights ? row.key_weights[key + k] : 1.0f);
      if (missing) to.weights.push_back(0);
    }
    key += count;
    to.offsets.push_back(static_cast<int32_t>(to.bytes.size() / width));
    columns.most_keys = std::max<int64_t>(columns.most_keys, to.offsets.back());
  }
  for (size_t c = 0; c < layout_.columns.size(); ++c) {
    const void* from = row.columns[c];
    if (layout_.columns[c].type == ColumnType::I64)
      columns.further[c].integers.push_back(static_cast<const int64_t*>(from)[row.index]);
    else
      columns.further[c].floats.push_back(static_cast<const float*>(from)[row.index]);
  }
  if (++columns.rows == parquet_.row_group_rows || columns.most_keys >= kMaxGroupKeys) write_group();
}

void ParquetWriter::write_group() {
  for (size_t c = 0; c < values_.size(); ++c)
    if (values_[c].type == ElementType::Bool) columns_->values[c].bytes = packed(columns_->values[c].bytes);
  const auto data = std::make_shared<const Columns>(std::move(*columns_));
  clear_columns();
  const int64_t rows = data->rows;
  std::vector<ArrowArray> arrays;
  const auto add_list = [&](const std::vector<int32_t>& offsets, const void* elements) {
    std::vector<ArrowArray> child{make_array(offsets.back(), 0, {nullptr, elements}, data)};
    arrays.push_back(make_array(rows, 0, {nullptr, offsets.data()}, data, std::move(child)));
  };
  for (size_t c = 0; c < values_.size(); ++c) {
    const Columns::Values& values = data->values[c];
    if (values_[c].list)
      add_list(values.offsets, values.bytes.data());
    else
      arrays.push_back(make_array(rows, 0, {nullptr, values.bytes.data()}, data));
  }
  for (size_t s = 0; s < data->keys.size(); ++s) {
    const Columns::Keys& keys = data->keys[s];
    const auto add = [&](const void* values) {
      if (!layout_.keys[s].list)
        return arrays.push_back(
            make_array(rows, keys.missing, {keys.missing > 0 ? keys.valid.data() : nullptr, values}, data));
      add_list(keys.offsets, values);
    };
    add(keys.bytes.data());
    if (!layout_.keys[s].weights.empty()) add(keys.weights.data());
  }
  for (size_t c = 0; c < data->further.size(); ++c) {
    const Columns::Further& further = data->further[c];
    const void* values = layout_.columns[c].type == ColumnType::I64 ? static_cast<const void*>(further.integers.data())
                                                                    : further.floats.data();
    arrays.push_back(make_array(rows, 0, {nullptr, values}, data));
  }
  output_->write(make_array(rows, 0, {nullptr}, data, std::move(arrays)));
}

void ParquetWriter::end_file(RecordFile& /*file*/, int64_t /*rows*/, int64_t /*expected_rows*/) {
  if (columns_->rows > 0) write_group();
  output_->finish();
  output_.reset();
}

void ParquetWriter::end_part(const DataPart& part) {
  write_file_atomically(join_path(parent_path(join_path(folder_, prefix_ + "0")), kParquetMetadataFile),
                        parquet_metadata(layout_, part));
}

}  // namespace tercel::data
