#include "tercel/data/parquet_table.h"

#include <utility>

#include "tercel/data/arrow_made_impl.h"
#include "tercel/data/formats/parquet_output_impl.h"
#include "tercel/util/atomic_file.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"

namespace tercel::data {

namespace {

constexpr std::string_view kOwner = "parquet";
constexpr int64_t kGroupRows = int64_t{1} << 16;
// Offsets of texts are i32.
constexpr size_t kMaxGroupBytes = size_t{1} << 30;

const char* format_of(ValueType type) { return type == ValueType::I64 ? "l" : type == ValueType::F32 ? "f" : "u"; }

/** Values that are not written yet. */
struct ColumnBuffer {
  std::vector<int64_t> integers;
  std::vector<float> floats;
  std::string text;
  std::vector<int32_t> offsets{0};
};

struct Group {
  std::vector<ColumnBuffer> columns;
  int64_t rows = 0;
};

}  // namespace

struct ParquetTableWriter::State {
  State(const std::string& path, const std::vector<TableColumn>& with) : file(path), columns(with) {}

  AtomicFile file;
  std::vector<TableColumn> columns;
  std::unique_ptr<ParquetOutput> output;
  Group group;
  int64_t rows = 0;  // in all
};

ParquetTableWriter::ParquetTableWriter(const std::string& path, const std::vector<TableColumn>& columns) {
  for (size_t c = 0; c < columns.size(); ++c)
    for (size_t before = 0; before < c; ++before)
      TERCEL_CHECK(columns[before].name != columns[c].name, ConfigError, printable(path),
                   ": expected different names of columns, found '", printable(columns[c].name), "' twice");
  arrow_api(kOwner);  // before the file is made
  state_ = std::make_unique<State>(path, columns);
  state_->group.columns.resize(columns.size());
  std::vector<ArrowSchema> fields;
  for (const TableColumn& column : columns) fields.push_back(make_field(format_of(column.type), column.name, false));
  ParquetOptions options;
  options.row_group_rows = kGroupRows;
  state_->output = std::make_unique<ParquetOutput>(
      [file = &state_->file](const void* data, size_t bytes) { file->write(data, bytes); },
      make_field("+s", "", false, std::move(fields)), options, kOwner);
}

ParquetTableWriter::~ParquetTableWriter() = default;

void ParquetTableWriter::write(Span<TableValues> columns) {
  State& state = *state_;
  const auto count_of = [&](size_t c) {
    const TableValues& values = columns[c];
    return state.columns[c].type == ValueType::I64   ? values.integers.size()
           : state.columns[c].type == ValueType::F32 ? values.floats.size()
                                                     : values.texts.size();
  };
  TERCEL_CHECK(columns.size() == state.columns.size() && !columns.empty(), ValueError, kOwner, ": expected ",
               state.columns.size(), " columns, found ", columns.size());
  const size_t rows = count_of(0);
  for (size_t c = 0; c < columns.size(); ++c)
    TERCEL_CHECK(count_of(c) == rows, ValueError, kOwner, ": column '", printable(state.columns[c].name),
                 "': expected ", rows, " values, found ", count_of(c));
  for (size_t row = 0; row < rows; ++row) {
    bool is_full = ++state.group.rows == kGroupRows;
    for (size_t c = 0; c < columns.size(); ++c) {
      ColumnBuffer& to = state.group.columns[c];
      switch (state.columns[c].type) {
        case ValueType::I64: to.integers.push_back(columns[c].integers[row]); break;
        case ValueType::F32: to.floats.push_back(columns[c].floats[row]); break;
        case ValueType::Text: {
          const std::string& text = columns[c].texts[row];
          TERCEL_CHECK(is_utf8(text), DataError, kOwner, ": row ", state.rows, ": column '",
                       printable(state.columns[c].name), "': expected text in UTF-8, found '", printable(text), "'");
          to.text += text;
          to.offsets.push_back(static_cast<int32_t>(to.text.size()));
          is_full = is_full || to.text.size() >= kMaxGroupBytes;
          break;
        }
      }
    }
    ++state.rows;
    if (is_full) write_group();
  }
}

void ParquetTableWriter::write_group() {
  State& state = *state_;
  const auto data = std::make_shared<const Group>(std::exchange(state.group, {}));
  state.group.columns.resize(state.columns.size());
  std::vector<ArrowArray> arrays;
  for (size_t c = 0; c < state.columns.size(); ++c) {
    const ColumnBuffer& from = data->columns[c];
    std::vector<const void*> buffers{nullptr};
    switch (state.columns[c].type) {
      case ValueType::I64: buffers.push_back(from.integers.data()); break;
      case ValueType::F32: buffers.push_back(from.floats.data()); break;
      case ValueType::Text: buffers.insert(buffers.end(), {from.offsets.data(), from.text.data()}); break;
    }
    arrays.push_back(make_array(data->rows, 0, std::move(buffers), data));
  }
  state.output->write(make_array(data->rows, 0, {nullptr}, data, std::move(arrays)));
}

void ParquetTableWriter::commit() {
  if (state_->group.rows > 0) write_group();
  state_->output->finish();
  state_->output.reset();
  state_->file.commit();
}

}  // namespace tercel::data
