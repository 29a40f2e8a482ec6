#include <utility>

#include "tercel/data/formats/parquet_output_impl.h"
#include "tercel/util/enum_names.h"

namespace tercel::data {

ParquetOutput::ParquetOutput(Callable<void(const void* data, size_t bytes)> append, ArrowSchema schema,
                             const ParquetOptions& options, std::string_view owner)
    : append_(std::move(append)), owner_(owner), api_(arrow_api(owner)) {
  const ArrowOutput output{this, &append_bytes};
  const std::string codec(to_string(options.codec));
  const ArrowWriteOptions writing{codec.c_str(), options.row_group_rows, options.dictionary ? 1 : 0};
  ArrowFailure failure{};
  check(api_.open_writer(&output, &schema, &writing, &writer_, &failure), failure);
}

ParquetOutput::~ParquetOutput() {
  if (writer_ != nullptr) api_.close_writer(writer_);
}

int32_t ParquetOutput::append_bytes(void* context, const void* data, int64_t bytes) {
  auto& self = *static_cast<ParquetOutput*>(context);
  try {
    if (bytes > 0) self.append_(data, static_cast<size_t>(bytes));
    return 0;
  } catch (...) {
    self.thrown_ = std::current_exception();
    return -1;
  }
}

void ParquetOutput::check(ArrowCode code, const ArrowFailure& failure) const {
  if (thrown_) std::rethrow_exception(thrown_);
  check_arrow(code, failure, owner_);
}

void ParquetOutput::write(ArrowArray rows) {
  ArrowFailure failure{};
  check(api_.write_rows(writer_, &rows, &failure), failure);
}

void ParquetOutput::finish() {
  ArrowFailure failure{};
  check(api_.finish_writer(writer_, &failure), failure);
}

}  // namespace tercel::data
