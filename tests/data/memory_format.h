// A format of rows in memory, for what no other format has yet: windows of unequal sizes, work on a window before it is
// decoded, further columns, weights of keys.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tercel/data/record_source_impl.h"
#include "tercel/util/error.h"
#include "tests/data/norm_data.h"

namespace tercel::data::test {

/** Values of its columns in row r. */
inline float weight_of(int64_t row) { return static_cast<float>(row) / 4; }
inline int64_t time_of(int64_t row) { return 1'000'000'007 * row; }
/** The weight of key k, counted over all rows. */
inline float key_weight_of(int64_t key) { return static_cast<float>(key) / 8; }

struct MemoryOptions {
  std::vector<int64_t> window_rows = {1, 7, 64, 3};  // repeated until the rows end
  int64_t bad_window = -1;                           // prepare() of the window that begins with this row throws
  int64_t bad_row = -1;                              // load() throws when it comes to this row
  bool key_weights = false;

  static constexpr auto fields() {
    return option_list(
        option_field<&MemoryOptions::window_rows>("window_rows", "rows of each window", at_least(1)),
        option_field<&MemoryOptions::bad_window>("bad_window", "first row of a window that cannot be prepared"),
        option_field<&MemoryOptions::bad_row>("bad_row", "a row that cannot be loaded"),
        option_field<&MemoryOptions::key_weights>("key_weights", "whether keys have weights"));
  }
};

/** Rows and what was done with them, shared by a format and its sources. */
struct MemoryRows {
  Rows rows;
  std::atomic<int64_t> prepared{0};
};

class MemorySource final : public RecordSource {
 public:
  MemorySource(std::shared_ptr<MemoryRows> memory, const MemoryOptions& options, const Schema& schema,
               const SourceOptions& asked)
      : memory_(std::move(memory)), options_(options), schema_(schema) {
    shape_.label_dim = schema.label_dim;
    shape_.dense_dim = schema.dense_dim;
    size_t slot = 0;
    for (const SparseInput& input : asked.inputs) {
      BatchShape::Input shape{input.name, input.slot_num, {}, options.key_weights};
      for (int64_t s = 0; s < input.slot_num; ++s) shape.hotness.push_back(schema.slots[slot++].hotness);
      shape_.inputs.push_back(std::move(shape));
    }
    for (const std::string& column : asked.columns) {
      TERCEL_CHECK(column == "weight" || column == "time", ConfigError, "memory: no column '", column, "'");
      shape_.columns.push_back({column, column == "time" ? kInt64 : kFloat32, column == asked.weight});
    }
    first_key_.push_back(0);
    const Rows& rows = memory_->rows;
    for (const int32_t nnz : rows.nnz) first_key_.push_back(first_key_.back() + nnz);
  }

  int64_t rows() const override { return memory_->rows.count; }
  RowWindows windows() const override {
    std::vector<int64_t> starts;
    for (int64_t row = 0, w = 0; row < rows(); ++w) {
      starts.push_back(row);
      row += options_.window_rows[static_cast<size_t>(w) % options_.window_rows.size()];
    }
    return RowWindows::at(rows(), std::move(starts));
  }
  const BatchShape& shape() const override { return shape_; }
  std::unique_ptr<Window> make_window() const override { return std::make_unique<MemoryWindow>(); }

  void load(Span<RowRange> ranges, Window& target, const std::atomic<bool>& /*stop*/) override {
    auto& window = static_cast<MemoryWindow&>(target);
    window.rows = 0;
    window.numbers.clear();
    for (const RowRange& range : ranges)
      for (int64_t i = 0; i < range.count; ++i, ++window.rows) {
        if (range.begin + i == options_.bad_row) throw DataError("memory: a bad row");
        window.numbers.push_back(~(range.begin + i));
      }
  }
  bool prepares() const override { return true; }
  void prepare(Window& target) const override {
    auto& window = static_cast<MemoryWindow&>(target);
    TERCEL_CHECK(!window.numbers.empty(), InternalError, "memory: an empty window is prepared");
    if (~window.numbers.front() == options_.bad_window) throw DataError("memory: a bad window");
    for (int64_t& number : window.numbers) number = ~number;  // twice would undo it
    ++memory_->prepared;
  }
  void decode(const Window& source, const Places& places, BatchBuffer& out) const override {
    const auto& window = static_cast<const MemoryWindow&>(source);
    for (int64_t i = 0; i < places.count; ++i) {
      const auto place = static_cast<size_t>(places.begin + i);
      decode_row(window.numbers[window.mix.empty() ? place : window.mix[place]], places.batch_row + i, out);
    }
  }

 private:
  struct MemoryWindow final : Window {
    std::vector<int64_t> numbers;
  };

  void decode_row(int64_t row, int64_t to, BatchBuffer& out) const {
    const Rows& rows = memory_->rows;
    for (int64_t i = 0; i < schema_.label_dim; ++i)
      out.labels[to * schema_.label_dim + i] = rows.labels[static_cast<size_t>(row * schema_.label_dim + i)];
    for (int64_t i = 0; i < schema_.dense_dim; ++i)
      out.dense[to * schema_.dense_dim + i] = rows.dense[static_cast<size_t>(row * schema_.dense_dim + i)];
    for (size_t c = 0; c < shape_.columns.size(); ++c) {
      if (shape_.columns[c].dtype == kInt64)
        static_cast<int64_t*>(out.columns[c])[to] = time_of(row);
      else
        static_cast<float*>(out.columns[c])[to] = weight_of(row);
    }
    size_t slot = static_cast<size_t>(row * schema_.slot_num());
    for (size_t i = 0; i < shape_.inputs.size(); ++i) {
      for (int64_t s = 0; s < shape_.inputs[i].slot_num; ++s, ++slot) {
        BatchBuffer::Input* input = &out.inputs[i];
        out.reserve_keys(i, input->nnz + rows.nnz[slot]);
        for (int64_t key = first_key_[slot]; key < first_key_[slot + 1]; ++key) {
          if (input->key_weights) input->key_weights[input->nnz] = key_weight_of(key);
          input->keys[input->nnz++] = rows.keys[static_cast<size_t>(key)];
        }
        input->row_offsets[to * shape_.inputs[i].slot_num + s + 1] = input->nnz;
      }
    }
  }

  std::shared_ptr<MemoryRows> memory_;
  MemoryOptions options_;
  Schema schema_;
  BatchShape shape_;
  std::vector<int64_t> first_key_;  // of each slot of each row
};

class MemoryFormat final : public DatasetFormat {
 public:
  explicit MemoryFormat(std::shared_ptr<MemoryRows> memory, MemoryOptions options = {})
      : memory_(std::move(memory)), options_(std::move(options)) {}

  std::string_view name() const override { return "memory"; }
  OptionTable option_table() const override { return tercel::option_table<MemoryOptions>(); }
  const void* options() const override { return &options_; }
  void* options() override { return &options_; }
  void check_sizes(const Dataset&) const override {}
  int64_t estimate_bytes(const Schema&, int64_t) const override { return 0; }
  std::unique_ptr<RecordSource> open(const Dataset& dataset, const DataPart&,
                                     const SourceOptions& options) const override {
    return std::make_unique<MemorySource>(memory_, options_, dataset.schema, options);
  }
  std::unique_ptr<DatasetWriter> create_writer(const Schema&, const WriterOptions&) const override {
    throw ConfigError("memory: cannot be written");
  }

 private:
  std::shared_ptr<MemoryRows> memory_;
  MemoryOptions options_;
};

/** The rows as a dataset without files. */
inline Dataset memory_dataset(const Schema& schema, std::shared_ptr<MemoryRows> memory, MemoryOptions options = {}) {
  Dataset dataset;
  dataset.schema = schema;
  DataFile file;
  file.path = "memory";
  file.rows = memory->rows.count;
  dataset.train.files.push_back(file);
  dataset.format = std::make_shared<MemoryFormat>(std::move(memory), std::move(options));
  return dataset;
}

}  // namespace tercel::data::test
