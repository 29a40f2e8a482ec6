#include <algorithm>
#include <limits>
#include <utility>

#include "tercel/data/arrow_table_impl.h"
#include "tercel/data/dataset.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"

namespace tercel::data {

namespace {

// A window is a range of rows: reading one costs nothing but this many bytes of a batch at a time.
constexpr int64_t kWindowBytes = int64_t{8} << 20;
constexpr int64_t kMostWindowRows = int64_t{1} << 16;

/** Rows without what a reader did not ask for; they point into the others. */
std::shared_ptr<const DecodedRows> view_of(const DecodedRows& rows, const std::vector<size_t>& columns) {
  auto view = std::make_shared<DecodedRows>();
  view->rows = rows.rows;
  view->origins = rows.origins;
  for (const FloatColumn& column : rows.floats) {
    FloatColumn& to = view->floats.emplace_back();
    to.width = column.width;
    to.values = column.values;
    to.bad = column.bad;
  }
  for (const KeyColumn& column : rows.keys) {
    KeyColumn& to = view->keys.emplace_back();
    to.per_row = column.per_row;
    to.is_unsigned = column.is_unsigned;
    to.keys = column.keys;
    to.offsets = column.offsets;
    to.weights = column.weights;
    to.bad = column.bad;
  }
  for (const size_t index : columns) {
    const FurtherColumn& column = rows.columns[index];
    FurtherColumn& to = view->columns.emplace_back();
    to.floats = column.floats;
    to.integers = column.integers;
    to.bad = column.bad;
  }
  return view;
}

class TableSource final : public RecordSource {
 public:
  TableSource(const ParquetOptions& columns, const Dataset& dataset, const DataFile& file,
              std::shared_ptr<const TableRows> rows, const TablePart& part, const SourceOptions& options)
      : rows_(std::move(rows)), part_(part), jumps_(options.jumps) {
    const ParquetLayout layout = ParquetLayout::of(dataset.schema, columns);
    ColumnPlan plan = layout.plan(columns);
    BatchShape shape = layout.add_columns(dataset.schema, options, kArrowFormat, plan);
    shape.uniform = part.uniform;
    std::vector<size_t> chosen;
    for (const ColumnPlan::Further& column : plan.columns) {
      const auto found = std::find_if(layout.columns.begin(), layout.columns.end(),
                                      [&](const Column& known) { return known.name == column.name; });
      chosen.push_back(static_cast<size_t>(found - layout.columns.begin()));
    }
    for (const DecodedRows& chunk : part.chunks) chunks_.push_back(view_of(chunk, chosen));
    constexpr uint64_t kAnyKey = std::numeric_limits<uint64_t>::max();
    assembler_ = std::make_unique<RowAssembler>(
        RowRules(dataset.schema, options.binary_labels, kAnyKey, options.inputs), std::move(shape), plan.names(),
        layout.offsets(), std::vector<std::string>{file.path});
  }

  int64_t rows() const override { return part_.rows; }
  RowWindows windows() const override {
    const int64_t row_bytes = std::max<int64_t>(1, part_.bytes / part_.rows);
    return RowWindows::every(part_.rows, std::clamp<int64_t>(kWindowBytes / row_bytes, 1, kMostWindowRows));
  }
  const BatchShape& shape() const override { return assembler_->shape(); }
  std::unique_ptr<Window> make_window() const override { return std::make_unique<TableWindow>(); }

  void load(Span<RowRange> ranges, Window& target, const std::atomic<bool>& stop) override {
    auto& window = static_cast<TableWindow&>(target);
    window.rows = 0;
    window.parts.clear();
    window.mixed.rows = 0;
    for (const RowRange& range : ranges) {
      for (int64_t row = range.begin; row < range.begin + range.count;) {
        if (stop.load(std::memory_order_relaxed)) return;
        const auto behind = std::upper_bound(part_.starts.begin(), part_.starts.end(), row);
        const auto index = static_cast<size_t>(behind - part_.starts.begin()) - 1;
        const std::shared_ptr<const DecodedRows>& chunk = chunks_[index];
        const int64_t skip = row - part_.starts[index];
        const int64_t count = std::min(range.begin + range.count - row, chunk->rows - skip);
        if (jumps_) {
          if (window.mixed.rows == 0) window.mixed.clear_like(*chunk);
          window.mixed.append(*chunk, skip, count);
        } else {
          window.parts.push_back({chunk, skip, window.rows, count, nullptr});
        }
        window.rows += count;
        row += count;
      }
    }
  }

  void decode(const Window& source, const Places& places, BatchBuffer& out) const override {
    const auto& window = static_cast<const TableWindow&>(source);
    if (!jumps_) return decode_parts(*assembler_, window.parts, window.mix, places, out);
    const uint32_t* mix = window.mix.empty() ? nullptr : window.mix.data() + places.begin;
    assembler_->decode(window.mixed, places.begin, mix, places, out);
  }

 private:
  struct TableWindow final : Window {
    std::vector<DecodedPart> parts;
    DecodedRows mixed;  // in random order, instead of the parts
  };

  std::shared_ptr<const TableRows> rows_;
  const TablePart& part_;
  bool jumps_;
  std::vector<std::shared_ptr<const DecodedRows>> chunks_;
  std::unique_ptr<RowAssembler> assembler_;
};

class ArrowTableFormat final : public DatasetFormat {
 public:
  ArrowTableFormat(TableColumns columns, std::shared_ptr<const TableRows> rows)
      : columns_(std::move(columns)), rows_(std::move(rows)) {}

  std::string_view name() const override { return kArrowFormat; }
  OptionTable option_table() const override { return tercel::option_table<TableColumns>(); }
  const void* options() const override { return &columns_; }
  void* options() override { return &columns_; }
  bool has_files() const override { return false; }

  void check_sizes(const Dataset& /*dataset*/) const override { fail_gone(); }
  int64_t estimate_bytes(const Schema& /*schema*/, int64_t /*rows*/) const override { return 0; }

  std::unique_ptr<RecordSource> open(const Dataset& dataset, const DataPart& part,
                                     const SourceOptions& options) const override {
    if (!rows_) fail_gone();
    for (const auto& [name, known] : dataset.parts())
      if (&known == &part && !part.files.empty())
        return std::make_unique<TableSource>(all_options(), dataset, part.files.front(), rows_,
                                             rows_->parts[static_cast<size_t>(name)], options);
    throw_error<InternalError>({kArrowFormat, ": a part of another dataset"});
  }

  std::unique_ptr<DatasetWriter> create_writer(const Schema& /*schema*/,
                                               const WriterOptions& /*options*/) const override {
    throw_error<ConfigError>({"format 'arrow': expected a format of files, found that of tables in memory"});
  }

 private:
  ParquetOptions all_options() const {
    ParquetOptions all;
    static_cast<TableColumns&>(all) = columns_;
    return all;
  }

  [[noreturn]] static void fail_gone() {
    throw_error<DataError>(
        {"format 'arrow': expected rows in files, found the description of a table in memory, whose "
         "rows are not stored"});
  }

  TableColumns columns_;
  std::shared_ptr<const TableRows> rows_;
};

}  // namespace

std::unique_ptr<DatasetFormat> arrow_table_format(const TableColumns& columns, std::shared_ptr<const TableRows> rows) {
  return std::make_unique<ArrowTableFormat>(columns, std::move(rows));
}

}  // namespace tercel::data
