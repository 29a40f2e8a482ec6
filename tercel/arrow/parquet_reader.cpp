// Reading Parquet files, one row group at a time.
#include <arrow/record_batch.h>
#include <parquet/arrow/reader.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>
#include <parquet/properties.h>

#include <utility>
#include <vector>

#include "tercel/arrow/arrow_io_impl.h"
#include "tercel/arrow/export_impl.h"

namespace tercel::data {

/** Metadata only: readers of row groups are made of it for each call, since Arrow's cannot be shared by threads. */
struct ArrowParquetFile {
  std::shared_ptr<::parquet::FileMetaData> metadata;
};

}  // namespace tercel::data

namespace tercel::arrow_module {

using ::arrow::Result;
using ::arrow::Status;
using data::ArrowCode;
using data::ArrowParquetFile;

namespace {

::parquet::ReaderProperties reader_properties() {
  ::parquet::ReaderProperties properties(&pool());
  properties.set_page_checksum_verification(true);
  return properties;
}

::parquet::ArrowReaderProperties arrow_properties(int64_t batch_rows) {
  ::parquet::ArrowReaderProperties properties(/*use_threads=*/false);
  properties.set_pre_buffer(false);
  properties.set_batch_size(batch_rows);
  return properties;
}

/** Batches of a row group and what they are read with, which must outlive them. */
class RowGroupReader final : public ::arrow::RecordBatchReader {
 public:
  RowGroupReader(std::unique_ptr<::parquet::arrow::FileReader> file,
                 std::unique_ptr<::arrow::RecordBatchReader> batches, int64_t largest_allocation)
      : file_(std::move(file)), batches_(std::move(batches)), largest_allocation_(largest_allocation) {}

  std::shared_ptr<::arrow::Schema> schema() const override { return batches_->schema(); }
  Status ReadNext(std::shared_ptr<::arrow::RecordBatch>* out) override {
    const AllocationLimit limit(largest_allocation_);
    return caught([&] { return batches_->ReadNext(out); });
  }

 private:
  std::unique_ptr<::parquet::arrow::FileReader> file_;
  std::unique_ptr<::arrow::RecordBatchReader> batches_;
  int64_t largest_allocation_;
};

Result<std::unique_ptr<::parquet::arrow::FileReader>> open_reader(const ArrowParquetFile& file,
                                                                  const data::ArrowInput& input, int64_t batch_rows) {
  ::parquet::arrow::FileReaderBuilder builder;
  ARROW_RETURN_NOT_OK(builder.Open(std::make_shared<HostInput>(input), reader_properties(), file.metadata));
  builder.memory_pool(&pool())->properties(arrow_properties(batch_rows));
  return builder.Build();
}

}  // namespace

ArrowCode open_file(const data::ArrowInput* input, ArrowParquetFile** out, data::ArrowFailure* failure) {
  return guarded(failure, [&] {
    auto file = std::make_unique<ArrowParquetFile>();
    file->metadata =
        ::parquet::ParquetFileReader::Open(std::make_shared<HostInput>(*input), reader_properties())->metadata();
    *out = file.release();
    return Status::OK();
  });
}

void close_file(ArrowParquetFile* file) { delete file; }

ArrowCode read_row_group(ArrowParquetFile* file, const data::ArrowInput* input, int32_t row_group,
                         const int32_t* leaves, int32_t leaf_count, int64_t batch_rows, int64_t largest_allocation,
                         ArrowArrayStream* out, data::ArrowFailure* failure) {
  return guarded(failure, [&]() -> Status {
    const AllocationLimit limit(largest_allocation);
    ARROW_ASSIGN_OR_RAISE(auto reader, open_reader(*file, *input, batch_rows));
    const std::vector<int> columns(leaves, leaves + leaf_count);
    ARROW_ASSIGN_OR_RAISE(auto batches, reader->GetRecordBatchReader({row_group}, columns));
    auto rows = std::make_shared<RowGroupReader>(std::move(reader), std::move(batches), largest_allocation);
    export_stream(std::move(rows), out);
    return Status::OK();
  });
}

}  // namespace tercel::arrow_module
