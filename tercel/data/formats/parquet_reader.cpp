#include <algorithm>
#include <utility>

#include "tercel/data/formats/parquet_reader_impl.h"
#include "tercel/data/formats/source_files_impl.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"

namespace tercel::data {

ParquetHandle::~ParquetHandle() {
  if (handle_) arrow_api(path_).close_file(handle_);
}

ArrowParquetFile* ParquetHandle::get(const RandomAccessFile& file) {
  const std::lock_guard lock(mutex_);
  if (handle_) return handle_;
  const std::string owner = printable(path_);
  const ArrowApi& api = arrow_api(owner);
  const ArrowSourceFile source(file);
  ArrowFailure failure{};
  const ArrowCode code = api.open_file(&source.input(), &handle_, &failure);
  source.rethrow();
  check_arrow(code, failure, owner);
  return handle_;
}

std::vector<int32_t> leaves_of(const ColumnPlan& plan, const ParquetFooter& footer, std::string_view file) {
  std::vector<int32_t> leaves;
  for (const std::string& name : plan.all()) {
    const ParquetColumnInfo* column = footer.find(name, file);
    TERCEL_CHECK(column && column->leaf_count == 1, DataError, file, ": expected a column of numbers '",
                 printable(name), "', found ", column ? column->type : "none");
    leaves.push_back(column->first_leaf);
  }
  return leaves;
}

int64_t largest_allocation(const ParquetRowGroup& group) {
  constexpr int64_t kLeast = int64_t{1} << 20;
  // Buffers grow by doubling; levels and values of a column are separate ones.
  int64_t largest = kLeast;
  for (const ParquetChunk& chunk : group.chunks)
    largest = std::max({largest, 4 * chunk.uncompressed, 4 * chunk.compressed, 16 * chunk.values});
  return largest;
}

int64_t bytes_in_file(const ParquetRowGroup& group, const std::vector<int32_t>& leaves) {
  int64_t sum = 0;
  for (const int32_t leaf : leaves) {
    const ParquetChunk& chunk = group.chunks[static_cast<size_t>(leaf)];
    sum += chunk.compressed + chunk.uncompressed;
  }
  return sum;
}

RowGroupStream::RowGroupStream(ParquetHandle& handle, const ColumnPlan& plan, const std::vector<int32_t>& leaves,
                               const Place& place, int64_t batch_rows)
    : place_(place),
      owner_(str_cat({printable(handle.path()), ": row group ", place.group})),
      file_(open_data_file(handle.path())),
      source_(*file_) {
  check_same_file(handle.path(), {place.first_row, 0}, place.info, file_->identity());
  const ArrowApi& api = arrow_api(owner_);
  ArrowFailure failure{};
  const ArrowCode code = api.read_row_group(handle.get(*file_), &source_.input(), place.group, leaves.data(),
                                            static_cast<int32_t>(leaves.size()), batch_rows, place.largest_allocation,
                                            stream_.out(), &failure);
  source_.rethrow();
  check_arrow(code, failure, owner_);
  ArrowOwned<ArrowSchema> schema;
  stream_.get_schema(schema.get(), owner_);
  decoder_.emplace(plan, *schema, owner_);
}

bool RowGroupStream::next(DecodedRows& rows) {
  ArrowOwned<ArrowArray> batch;
  const auto check_rows = [&](bool good) {
    TERCEL_CHECK(good, DataError, owner_, ": expected ", place_.rows, " rows, as its metadata says, found ",
                 done_ < place_.rows ? "" : "more than ", done_);
  };
  while (true) {
    bool more = false;
    try {
      more = stream_.next(batch.get(), owner_);
    } catch (const DataError&) {
      source_.rethrow();  // what Arrow only calls a failure to read
      throw;
    }
    if (!more) {
      check_rows(done_ == place_.rows);
      return false;
    }
    const int64_t count = batch->length;
    check_rows(count >= 0 && count <= place_.rows - done_);
    if (count == 0) {
      batch.reset();
      continue;
    }
    rows = decoder_->decode(std::move(batch), {0, place_.file, place_.group, place_.first_row + done_}, owner_);
    done_ += count;
    return true;
  }
}

}  // namespace tercel::data
