// Writing Parquet files, a row group with each call.
#include <arrow/c/bridge.h>
#include <arrow/record_batch.h>
#include <arrow/table.h>
#include <arrow/util/compression.h>
#include <parquet/arrow/writer.h>
#include <parquet/properties.h>

#include <string_view>
#include <utility>

#include "tercel/arrow/arrow_io_impl.h"

namespace tercel::data {

struct ArrowParquetWriter {
  std::shared_ptr<::arrow::Schema> schema;
  std::unique_ptr<::parquet::arrow::FileWriter> writer;
};

}  // namespace tercel::data

namespace tercel::arrow_module {

using ::arrow::Result;
using ::arrow::Status;
using data::ArrowCode;
using data::ArrowParquetWriter;

namespace {

Result<::arrow::Compression::type> codec_of(std::string_view name) {
  // Parquet's "lz4" without a frame is deprecated in favour of LZ4_RAW, which Arrow calls LZ4.
  ARROW_ASSIGN_OR_RAISE(const auto codec, name == "none" ? ::arrow::Compression::UNCOMPRESSED
                                                         : ::arrow::util::Codec::GetCompressionType(std::string(name)));
  if (codec != ::arrow::Compression::UNCOMPRESSED && !::arrow::util::Codec::IsAvailable(codec))
    return Status::NotImplemented("codec '", name, "' is not part of this Arrow");
  return codec;
}

}  // namespace

ArrowCode open_writer(const data::ArrowOutput* output, ArrowSchema* schema, const data::ArrowWriteOptions* options,
                      ArrowParquetWriter** out, data::ArrowFailure* failure) {
  return guarded(failure, [&]() -> Status {
    auto made = std::make_unique<ArrowParquetWriter>();
    ARROW_ASSIGN_OR_RAISE(made->schema, ::arrow::ImportSchema(reinterpret_cast<::ArrowSchema*>(schema)));
    ARROW_ASSIGN_OR_RAISE(const auto codec, codec_of(options->codec));
    ::parquet::WriterProperties::Builder properties;
    properties.memory_pool(&pool())
        ->compression(codec)
        ->max_row_group_length(options->row_group_rows)
        ->enable_page_checksum()
        ->created_by("tercel");
    if (options->dictionary == 0) properties.disable_dictionary();
    ARROW_ASSIGN_OR_RAISE(
        made->writer, ::parquet::arrow::FileWriter::Open(*made->schema, &pool(), std::make_shared<HostOutput>(*output),
                                                         properties.build()));
    *out = made.release();
    return Status::OK();
  });
}

ArrowCode write_rows(ArrowParquetWriter* writer, ArrowArray* rows, data::ArrowFailure* failure) {
  return guarded(failure, [&]() -> Status {
    ARROW_ASSIGN_OR_RAISE(const auto batch,
                          ::arrow::ImportRecordBatch(reinterpret_cast<::ArrowArray*>(rows), writer->schema));
    ARROW_ASSIGN_OR_RAISE(const auto table, ::arrow::Table::FromRecordBatches(writer->schema, {batch}));
    return writer->writer->WriteTable(*table, std::max<int64_t>(1, batch->num_rows()));
  });
}

ArrowCode finish_writer(ArrowParquetWriter* writer, data::ArrowFailure* failure) {
  return guarded(failure, [&] { return writer->writer->Close(); });
}

void close_writer(ArrowParquetWriter* writer) { delete writer; }

}  // namespace tercel::arrow_module
