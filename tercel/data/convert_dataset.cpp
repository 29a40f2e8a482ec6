#include "tercel/data/convert_dataset.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "tercel/data/batch_reader.h"
#include "tercel/data/random_access_file.h"
#include "tercel/util/atomic_file.h"
#include "tercel/util/error.h"
#include "tercel/util/file.h"
#include "tercel/util/format.h"
#include "tercel/util/parallel.h"

namespace tercel::data {

namespace {

using Progress = FunctionRef<void(int64_t rows)>;

/** Rows of a batch, so that it takes a megabyte or few, whatever a row may hold. */
int64_t batch_rows(const Schema& schema) {
  constexpr int64_t kNumbers = 1 << 18, kMostRows = 8192;
  const int64_t row = schema.label_dim + schema.dense_dim + schema.slot_num() + schema.max_nnz();
  return std::clamp<int64_t>(kNumbers / row, 1, kMostRows);
}

/** A batch as a block of rows, or a range of its rows. */
class BatchRows {
 public:
  BatchRows(const Schema& schema, const Batch& batch) : schema_(schema), batch_(batch) {
    if (batch.sparse.empty()) return;
    const SparseBatch& sparse = batch.sparse[0];
    offsets_ = sparse.row_offsets.data<int64_t>();
    const auto bags = static_cast<size_t>(batch.rows * sparse.slot_num);
    nnz_.resize(bags);
    for (size_t bag = 0; bag < bags; ++bag) nnz_[bag] = static_cast<int32_t>(offsets_[bag + 1] - offsets_[bag]);
  }

  /** Valid until the next call. */
  RowBlock rows(int64_t begin, int64_t count) {
    RowBlock block;
    block.rows = count;
    block.labels = static_cast<const float*>(batch_.labels.data_ptr()) + begin * schema_.label_dim;
    block.dense = static_cast<const float*>(batch_.dense.data_ptr()) + begin * schema_.dense_dim;
    if (offsets_ != nullptr) {
      const SparseBatch& sparse = batch_.sparse[0];
      const int64_t first_bag = begin * sparse.slot_num, first_key = offsets_[first_bag];
      block.nnz = nnz_.data() + first_bag;
      block.keys = static_cast<const int64_t*>(sparse.keys.data_ptr()) + first_key;
      if (sparse.key_weights.defined())
        block.key_weights = static_cast<const float*>(sparse.key_weights.data_ptr()) + first_key;
    }
    columns_.clear();
    for (const RowColumn& column : batch_.columns) {
      const auto* values = static_cast<const std::byte*>(column.values.data_ptr());
      columns_.push_back(values + begin * static_cast<int64_t>(item_size(column.values.dtype())));
    }
    block.columns = columns_;
    return block;
  }

 private:
  const Schema& schema_;
  const Batch& batch_;
  const int64_t* offsets_ = nullptr;
  std::vector<int32_t> nnz_;
  std::vector<const void*> columns_;
};

class DatasetConverter {
 public:
  DatasetConverter(const Dataset& source, const ConvertDatasetOptions& options, const std::string& folder, bool replace,
                   Progress progress)
      : source_(source), options_(options), progress_(progress) {
    TERCEL_CHECK(options.format, ConfigError, "convert: expected a format, such as norm_format(), found none");
    check_options(options, "convert");
    check_room(*options.format, source.schema, source.rows(), folder);
    if (!replace || !source.checked_format().has_files()) return;
    for (const auto& [name, part] : source.parts())
      for (const DataFile& file : part.files) check_outside(folder, source.path_of(file));
  }

  ConvertDatasetResult run(const std::string& target) {
    Dataset& result = result_.dataset;
    result.format = options_.format;
    for (const auto& origin : source_.origins)
      if (origin->name() != result.format->name()) add_origin(result, origin);
    if (source_.format->name() != result.format->name() && source_.format->has_files())
      add_origin(result, source_.format);
    result.schema = source_.schema;
    result.conversion = source_.conversion;
    // All before the first row is read: what the schema forbids is known at once.
    std::vector<std::pair<PartName, std::unique_ptr<DatasetWriter>>> writers;
    for (const auto& [name, part] : source_.parts())
      if (!part.files.empty()) writers.emplace_back(name, make_writer(target, name));
    copy_vocabulary(target);
    for (const auto& [name, writer] : writers) result.part(name) = write_part(name, *writer);
    return std::move(result_);
  }

 private:
  static void add_origin(Dataset& dataset, const std::shared_ptr<const DatasetFormat>& format) {
    std::erase_if(dataset.origins, [&](const auto& other) { return other->name() == format->name(); });
    dataset.origins.push_back(format);
  }

  std::unique_ptr<DatasetWriter> make_writer(const std::string& folder, PartName part) const {
    WriterOptions options;
    options.folder = folder;
    options.prefix = str_cat({to_string(part), "/part-"});
    options.file_list = str_cat({to_string(part), ".txt"});
    if (options_.rows_per_file > 0) options.rows_per_file = options_.rows_per_file;
    // The source's rules hold for the rows already.
    options.binary_labels = false;
    return options_.format->create_writer(source_.schema, options);
  }

  DataPart write_part(PartName name, DatasetWriter& writer) {
    const DataPart& part = source_.part(name);
    // Rows that are left in the file of the source, and the file.
    size_t file = 0;
    int64_t left = 0;
    const auto next_file = [&] {
      for (; left == 0 && file < part.files.size(); ++file) {
        left = part.files[file].rows;
        if (options_.rows_per_file == 0) writer.start_file(left);
      }
    };
    next_file();
    if (part.rows() > 0) {
      ReaderOptions reading;
      reading.batch_size = batch_rows(source_.schema);
      reading.num_workers = num_threads();
      reading.prefetch = std::max<int64_t>(2, reading.num_workers);
      reading.binary_labels = false;
      reading.on_bad_record = options_.on_bad_record;
      reading.max_bad_records = options_.max_bad_records;
      for (const Column& column : source_.schema.columns) reading.columns.push_back(column.name);
      BatchReader reader(source_, name, reading);
      // Rows that were left out count in the files of the source.
      const auto leave_out = [&](int64_t count) {
        while (count > 0) {
          const int64_t here = std::min(left, count);
          count -= here;
          left -= here;
          next_file();
        }
      };
      Batch batch;
      int64_t row = 0;
      while (reader.next(batch)) {
        BatchRows rows(source_.schema, batch);
        leave_out(batch.row - row);  // batches without a good row are not delivered
        row = batch.row;
        auto bad = batch.bad_rows.begin();
        const int64_t end = batch.row + batch.rows + static_cast<int64_t>(batch.bad_rows.size());
        for (int64_t begin = 0; row < end;) {
          if (bad != batch.bad_rows.end() && *bad == row) {
            ++bad;
            ++row;
            leave_out(1);
            continue;
          }
          const int64_t count = std::min(left, (bad != batch.bad_rows.end() ? *bad : end) - row);
          write_rows(writer, rows.rows(begin, count), part, row);
          begin += count;
          row += count;
          left -= count;
          next_file();
        }
        progress_(done_ + end);
      }
      leave_out(part.rows() - row);
      add_bad_records(reader);
    }
    done_ += part.rows();
    DataPart result = writer.finish();
    // It is of all rows of the part.
    if (result.rows() == part.rows()) result.truth = part.truth;
    return result;
  }

  void add_bad_records(const BatchReader& reader) {
    result_.bad_records += reader.bad_records();
    if (result_.first_bad_record.empty()) result_.first_bad_record = reader.first_bad_record();
  }

  /** Writes rows of the source from `row` on. */
  void write_rows(DatasetWriter& writer, const RowBlock& block, const DataPart& part, int64_t row) const {
    const int64_t before = writer.rows();
    try {
      writer.write(block);
    } catch (const ValueError& error) {
      std::string_view why = error.what();
      const std::string counted = str_cat({options_.format->name(), ": row ", writer.rows(), ": "});
      if (why.starts_with(counted)) why.remove_prefix(counted.size());
      fail_row(row + writer.rows() - before, part, why);
    }
  }

  /** Names the row in its file. */
  [[noreturn]] void fail_row(int64_t row, const DataPart& part, std::string_view why) const {
    for (const DataFile& file : part.files) {
      if (row < file.rows)
        throw_error<DataError>({printable(source_.path_of(file)), ": row ", row, ": the format ",
                                options_.format->name(), " cannot hold it: ", why});
      row -= file.rows;
    }
    throw DataError(std::string(why));
  }

  void copy_vocabulary(const std::string& target) const {
    if (!source_.conversion || !source_.conversion->vocabulary) return;
    const FileRecord& vocabulary = *source_.conversion->vocabulary;
    verify_file(source_, vocabulary);
    const std::string to = join_path(target, vocabulary.path);
    create_dirs(parent_path(to));
    write_file_atomically(to, read_data_file(source_.path_of(vocabulary), vocabulary.bytes));
  }

  const Dataset& source_;
  const ConvertDatasetOptions& options_;
  Progress progress_;
  int64_t done_ = 0;  // rows of the parts before
  ConvertDatasetResult result_;
};

}  // namespace

ConvertDatasetResult convert_dataset(const Dataset& source, const std::string& folder,
                                     const ConvertDatasetOptions& options, bool replace, Progress progress) {
  DatasetConverter converter(source, options, folder, replace, progress);
  AtomicDir target(folder, replace ? kDatasetFile : std::string_view());
  ConvertDatasetResult result = converter.run(target.temporary_path());
  save_dataset(result.dataset, target.temporary_path());
  target.commit();
  result.dataset.folder = folder;
  return result;
}

}  // namespace tercel::data
