// A Parquet file that the Arrow module writes. Private.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>

#include "tercel/data/arrow_module_impl.h"
#include "tercel/data/formats/parquet_format.h"
#include "tercel/util/callable.h"

namespace tercel::data {

class ParquetOutput {
 public:
  /** `append` receives the file's bytes in order, and may throw. Takes ownership of the schema. */
  ParquetOutput(Callable<void(const void* data, size_t bytes)> append, ArrowSchema schema,
                const ParquetOptions& options, std::string_view owner);
  ~ParquetOutput();
  ParquetOutput(const ParquetOutput&) = delete;
  ParquetOutput& operator=(const ParquetOutput&) = delete;

  /** Writes a struct array as a row group; takes ownership of it. Errors "<owner>: ...", or what `append` threw. */
  void write(ArrowArray rows);
  /** Writes the footer. */
  void finish();

 private:
  static int32_t append_bytes(void* context, const void* data, int64_t bytes);
  void check(ArrowCode code, const ArrowFailure& failure) const;

  Callable<void(const void* data, size_t bytes)> append_;
  std::string owner_;
  const ArrowApi& api_;
  ArrowParquetWriter* writer_ = nullptr;
  std::exception_ptr thrown_;  // by append_
};

}  // namespace tercel::data
