// Reading row groups of Parquet files through the Arrow module. Private.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tercel/data/arrow_columns_impl.h"
#include "tercel/data/arrow_module_impl.h"
#include "tercel/data/arrow_owned_impl.h"
#include "tercel/data/formats/parquet_footer.h"
#include "tercel/data/random_access_file.h"

namespace tercel::data {

/** A file's metadata as Arrow knows it, read when it is first needed. */
class ParquetHandle {
 public:
  explicit ParquetHandle(std::string path) : path_(std::move(path)) {}
  ~ParquetHandle();
  ParquetHandle(const ParquetHandle&) = delete;
  ParquetHandle& operator=(const ParquetHandle&) = delete;

  const std::string& path() const { return path_; }
  /** May be called by several threads. The file is that of the path. */
  ArrowParquetFile* get(const RandomAccessFile& file);

 private:
  std::string path_;
  std::mutex mutex_;
  ArrowParquetFile* handle_ = nullptr;
};

/** The leaf columns that a plan needs of a file, for RowGroupStream. */
std::vector<int32_t> leaves_of(const ColumnPlan& plan, const ParquetFooter& footer, std::string_view file);

/** The most bytes that decoding a row group may need at once, as the sizes in its metadata say. */
int64_t largest_allocation(const ParquetRowGroup& group);

/** Bytes of these columns of a row group, compressed and not: what may be in memory while it is decoded. */
int64_t bytes_in_file(const ParquetRowGroup& group, const std::vector<int32_t>& leaves);

/** A row group, decoded piece by piece. */
class RowGroupStream {
 public:
  struct Place {
    size_t file = 0;        // for messages
    int32_t group = 0;      // in the file
    int64_t first_row = 0;  // of the group, in the file
    int64_t rows = 0;
    int64_t largest_allocation = 0;  // see largest_allocation()
    FileInfo info = {};              // of the file whose metadata this is
  };

  /** Opens the file again; DataError if it is another one now. The handle must outlive it. */
  RowGroupStream(ParquetHandle& handle, const ColumnPlan& plan, const std::vector<int32_t>& leaves, const Place& place,
                 int64_t batch_rows);

  /** The next rows; false behind the last one. DataError, also if the group has another number of rows than it says. */
  bool next(DecodedRows& rows);

 private:
  Place place_;
  std::string owner_;
  std::unique_ptr<RandomAccessFile> file_;
  ArrowSourceFile source_;
  ArrowStream stream_;  // uses those before it
  std::optional<ArrowDecoder> decoder_;
  int64_t done_ = 0;
};

}  // namespace tercel::data
