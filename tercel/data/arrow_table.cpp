#include "tercel/data/arrow_table.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "tercel/data/arrow_columns_impl.h"
#include "tercel/data/arrow_table_impl.h"
#include "tercel/data/formats/column_describer_impl.h"
#include "tercel/util/arrow_types.h"
#include "tercel/util/checksum.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"

namespace tercel::data {

namespace {

/** Content of a part's columns, whatever batches they came in. */
class ContentHash {
 public:
  void add(const DecodedRows& rows, int64_t first_row) {
    columns_.resize(kParts * (rows.floats.size() + rows.keys.size() + rows.columns.size()));
    size_t at = 0;
    for (const FloatColumn& column : rows.floats) {
      add_values(at, column.values, rows.rows * column.width);
      add_bad(at, column.bad, first_row);
      at += kParts;
    }
    for (const KeyColumn& column : rows.keys) {
      const int64_t first = column.begin(0);
      const int64_t count = column.begin(rows.rows - 1) + column.count(rows.rows - 1) - first;
      add_values(at, column.keys + first, count);
      if (column.weights) add_values(at + kWeights, column.weights + first, count);
      for (int64_t row = 0; column.offsets && row < rows.rows; ++row)
        if (column.count(row) != 1) add_pair(at + kCounts, first_row + row, column.count(row));
      add_bad(at, column.bad, first_row);
      at += kParts;
    }
    for (const FurtherColumn& column : rows.columns) {
      if (column.floats)
        add_values(at, column.floats, rows.rows);
      else
        add_values(at, column.integers, rows.rows);
      add_bad(at, column.bad, first_row);
      at += kParts;
    }
  }

  std::string hex() const {
    Checksum all;
    for (const Checksum& column : columns_) {
      const uint64_t value = column.value();
      all.update(&value, sizeof(value));
    }
    return checksum_to_hex(all.value());
  }
  int64_t bytes() const { return bytes_; }

 private:
  template <class T>
  void add_values(size_t column, const T* values, int64_t count) {
    if (count == 0) return;
    const size_t bytes = static_cast<size_t>(count) * sizeof(T);
    columns_[column].update(values, bytes);
    bytes_ += static_cast<int64_t>(bytes);
  }
  void add_pair(size_t column, int64_t a, int64_t b) {
    const int64_t pair[] = {a, b};
    columns_[column].update(pair, sizeof(pair));
  }
  void add_bad(size_t column, const std::vector<BadCell>& bad, int64_t first_row) {
    for (const BadCell& cell : bad) add_pair(column + kBad, first_row + cell.row, cell.found);
  }

  // What a column has: values, weights, counts that are not 1, what is missing. One checksum for all would depend on
  // where batches end.
  static constexpr size_t kWeights = 1, kCounts = 2, kBad = 3, kParts = 4;

  std::vector<Checksum> columns_;
  int64_t bytes_ = 0;
};

/** The fewest and the most keys of a row in a slot. */
struct KeyCounts {
  int64_t least = std::numeric_limits<int64_t>::max(), most = 0;
};

void count_keys(const DecodedRows& rows, std::vector<KeyCounts>& counts) {
  counts.resize(rows.keys.size());
  for (size_t s = 0; s < rows.keys.size(); ++s) {
    const KeyColumn& column = rows.keys[s];
    const auto add = [&](int64_t count) {
      counts[s].least = std::min(counts[s].least, count);
      counts[s].most = std::max(counts[s].most, count);
    };
    if (!column.offsets) add(column.per_row);
    for (int64_t row = 0; column.offsets && row < rows.rows; ++row) add(column.count(row));
  }
}

/** A part's stream, open. */
struct OpenTable {
  std::string name;  // for messages
  ArrowStream stream;
  ArrowOwned<ArrowSchema> schema;

  OpenTable(std::string_view part, ArrowArrayStream* given) : name(str_cat({part, " table"})) {
    stream.take(given, name);
    stream.get_schema(schema.get(), name);
    check_table_schema(*schema, name);
  }
};

class TableReader final : ColumnDescriber {
 public:
  TableReader(const ArrowTables& tables, const ArrowTableOptions& options, FunctionRef<void(int64_t)> progress)
      : ColumnDescriber(options, kArrowFormat), tables_(tables), spec_(options), progress_(progress) {}

  Dataset read() {
    check_options(spec_, kArrowFormat);
    check_fills(spec_.fill_null_dense, spec_.fill_null_key, kArrowFormat);
    TERCEL_CHECK(!spec_.label.empty(), ConfigError, "[", kArrowFormat,
                 "] option 'label': expected the names of columns, found none");
    TERCEL_CHECK(tables_.train, ConfigError, kArrowFormat, ": expected a table of the train part, found none");
    Dataset dataset;
    std::array<std::optional<OpenTable>, 3> opened;
    const std::array<ArrowArrayStream*, 3> given = {tables_.train, tables_.valid, tables_.test};
    for (const auto& [name, part] : dataset.parts())
      if (ArrowArrayStream* stream = given[static_cast<size_t>(name)])
        opened[static_cast<size_t>(name)].emplace(to_string(name), stream);
    train_ = &*opened[0];
    for (int64_t i = 0; i < train_->schema->n_children; ++i) infos_.push_back(info_of(*train_->schema->children[i]));
    read_first_batch();
    describe_columns({spec_.label, spec_.dense, spec_.categorical});
    ColumnPlan plan = ParquetLayout::of(schema_, options_).plan(options_);
    plan.integers = spec_.integers;
    for (const Column& column : schema_.columns) plan.columns.push_back({column.name, column.type});
    for (const auto& [name, part] : dataset.parts())
      if (std::optional<OpenTable>& table = opened[static_cast<size_t>(name)])
        part.files.push_back(read_part(*table, plan, rows_->parts[static_cast<size_t>(name)]));
    set_hotness();
    schema_.check(kArrowFormat);
    for (size_t p = 0; p < rows_->parts.size(); ++p) rows_->parts[p].uniform = is_uniform(counts_[p]);
    dataset.schema = std::move(schema_);
    dataset.format = arrow_table_format(options_, std::move(rows_));
    return dataset;
  }

 private:
  static ParquetColumnInfo info_of(const ArrowSchema& field) {
    ParquetColumnInfo info;
    info.name = field.name ? field.name : "";
    info.type = arrow_type_text(field);
    if (const std::optional<ArrowNumbers> numbers = arrow_numbers(field)) {
      if (!numbers->all_missing) info.number = numbers->type;
      info.all_missing = numbers->all_missing;
      info.list = numbers->is_list();
      info.temporal = numbers->temporal;
    }
    return info;
  }

  const std::string& table_name() const override { return train_->name; }
  Span<ParquetColumnInfo> table_columns() const override { return infos_; }
  const ParquetColumnInfo* find_column(const std::string& name) const override {
    const ParquetColumnInfo* found = nullptr;
    for (const ParquetColumnInfo& info : infos_) {
      if (info.name != name) continue;
      TERCEL_CHECK(!found, DataError, train_->name, ": expected one column '", printable(name), "', found several");
      found = &info;
    }
    return found;
  }
  /** Of the first list among the first rows. */
  int64_t list_width(const std::string& name) const override {
    constexpr int64_t kRows = 1024;
    if (!first_->release) return 1;
    ColumnPlan plan;
    plan.floats.push_back({name, 1, true});
    plan.integers = spec_.integers;
    // The first rows of the batch, which stays ours.
    ArrowOwned<ArrowArray> probe;
    *probe.get() = *first_;
    probe.get()->length = std::min(first_->length, kRows);
    probe.get()->release = [](ArrowArray* self) { self->release = nullptr; };
    const DecodedRows rows =
        ArrowDecoder(plan, *train_->schema, train_->name).decode(std::move(probe), {}, train_->name);
    int64_t row = 0;  // no row before it has a list
    for (const BadCell& cell : rows.floats[0].bad) {
      if (cell.row != row) break;
      if (cell.kind == BadCell::Kind::Count) return std::max<int64_t>(1, cell.found);
      ++row;
    }
    return 1;
  }

  void read_first_batch() {
    while (train_->stream.next(first_.get(), train_->name)) {
      if (first_->length != 0) return;
      first_.reset();
    }
  }

  DataFile read_part(OpenTable& table, const ColumnPlan& plan, TablePart& part) {
    const ArrowDecoder decoder(plan, *table.schema, table.name);
    std::vector<KeyCounts>& counts = counts_[static_cast<size_t>(&part - rows_->parts.data())];
    ContentHash hash;
    while (true) {
      ArrowOwned<ArrowArray> batch;
      if (&table == train_) batch = std::exchange(first_, ArrowOwned<ArrowArray>());
      if (!batch->release && !table.stream.next(batch.get(), table.name)) break;
      if (batch->length == 0) continue;
      TERCEL_CHECK(batch->length <= std::numeric_limits<int64_t>::max() - part.rows, DataError, table.name,
                   ": expected rows that fit in 64 bits, found more");
      const RowOrigin origin{0, 0, -1, part.rows};
      DecodedRows rows = decoder.decode(std::move(batch), origin, table.name);
      count_keys(rows, counts);
      hash.add(rows, part.rows);
      part.starts.push_back(part.rows);
      part.rows += rows.rows;
      part.chunks.push_back(spec_.storage == TableStorage::Disk ? rows_->spool.keep(rows) : std::move(rows));
      all_rows_ += part.chunks.back().rows;
      progress_(all_rows_);
    }
    TERCEL_CHECK(part.rows > 0, DataError, table.name, ": expected rows, found none");
    table.stream.reset();
    part.bytes = hash.bytes();
    DataFile file;
    file.path = table.name;
    file.bytes = hash.bytes();
    file.checksum = hash.hex();
    file.rows = part.rows;
    return file;
  }

  void set_hotness() {
    if (!spec_.nnz_per_slot.empty()) return;
    for (size_t s = 0; s < schema_.slots.size(); ++s)
      for (const std::vector<KeyCounts>& counts : counts_)
        if (!counts.empty()) schema_.slots[s].hotness = std::max(schema_.slots[s].hotness, counts[s].most);
  }

  bool is_uniform(const std::vector<KeyCounts>& counts) const {
    for (size_t s = 0; s < counts.size(); ++s)
      if (counts[s].least != schema_.slots[s].hotness || counts[s].most != counts[s].least) return false;
    return true;
  }

  const ArrowTables& tables_;
  const ArrowTableOptions& spec_;
  FunctionRef<void(int64_t)> progress_;
  OpenTable* train_ = nullptr;
  std::vector<ParquetColumnInfo> infos_;
  ArrowOwned<ArrowArray> first_;  // the first batch with rows of the train part
  std::shared_ptr<TableRows> rows_ = std::make_shared<TableRows>();
  std::array<std::vector<KeyCounts>, 3> counts_;
  int64_t all_rows_ = 0;
};

}  // namespace

Dataset dataset_from_arrow(const ArrowTables& tables, const ArrowTableOptions& options,
                           FunctionRef<void(int64_t rows)> progress) {
  struct Consumed {
    std::array<ArrowArrayStream*, 3> streams;
    ~Consumed() {
      for (ArrowArrayStream* stream : streams)
        if (stream && stream->release) stream->release(stream);
    }
  } const consumed{{tables.train, tables.valid, tables.test}};  // also those that no reader came to
  return TableReader(tables, options, progress).read();
}

}  // namespace tercel::data
