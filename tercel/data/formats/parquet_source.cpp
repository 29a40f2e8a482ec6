#include <algorithm>
#include <limits>
#include <utility>

#include "tercel/data/formats/parquet_source_impl.h"
#include "tercel/data/remote_store_impl.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"
#include "tercel/util/parallel.h"

namespace tercel::data {

namespace {

// See Note [Windows of row groups].
constexpr int64_t kWindowBytes = int64_t{8} << 20;
constexpr int64_t kMaxWindowBytes = int64_t{256} << 20;
constexpr int64_t kPieceBytes = int64_t{16} << 20;
constexpr int64_t kHeapBytes = int64_t{512} << 20;
// Of a batch of Arrow: its columns stay in the second cache while they are decoded, and are long enough to be copied
// fast.
constexpr int64_t kBatchRows = int64_t{1} << 16;

}  // namespace

ParquetSource::ParquetSource(const ParquetOptions& parquet, const Dataset& dataset, const DataPart& part,
                             const SourceOptions& options)
    : layout_(ParquetLayout::of(dataset.schema, parquet)),
      plan_(layout_.plan(parquet)),
      memory_(arrow_memory_limit()),
      window_bytes_(std::clamp<int64_t>(memory_ / (2 * (2 + options.workers)), 1, kMaxWindowBytes)),
      jumps_(options.jumps) {
  BatchShape shape = layout_.add_columns(dataset.schema, options, "parquet", plan_);
  for (const Slot& s : dataset.schema.slots) hotness_.push_back(s.hotness);
  open_files(dataset, part);
  shape.uniform = uniform_;
  std::vector<std::string> paths;
  for (size_t f = 0; f < files_.count(); ++f) paths.push_back(files_[f].path);
  constexpr uint64_t kAnyKey = std::numeric_limits<uint64_t>::max();
  assembler_ = std::make_unique<RowAssembler>(RowRules(dataset.schema, options.binary_labels, kAnyKey, options.inputs),
                                              std::move(shape), plan_.names(), layout_.offsets(), std::move(paths));
  if (jumps_) {
    kept_.resize(groups_.size());
    spool_ = std::make_unique<Spool>(kHeapBytes);
  }
}

void ParquetSource::open_files(const Dataset& dataset, const DataPart& part) {
  for (const DataFile& described : part.files) {
    const std::shared_ptr<const RandomAccessFile> file = files_.add(dataset, described);
    const size_t index = files_.count() - 1;
    const std::string name = printable(file->path());
    const ParquetFooter footer = read_parquet_footer(*file);
    TERCEL_CHECK(footer.rows == described.rows, DataError, name, ": expected ", described.rows,
                 " rows, as the dataset's description says, found ", footer.rows);
    layout_.check(footer, name);
    handles_.push_back(std::make_unique<ParquetHandle>(file->path()));
    leaves_.push_back(leaves_of(plan_, footer, name));
    for (size_t g = 0; g < footer.row_groups.size(); ++g) {
      const ParquetRowGroup& group = footer.row_groups[g];
      if (group.rows == 0) continue;
      groups_.push_back({index, static_cast<int32_t>(g), files_[index].first_row + group.first_row, group.first_row,
                         group.rows, decoded_row_bytes(plan_, footer, group, name), largest_allocation(group),
                         bytes_in_file(group, leaves_.back())});
      uniform_ = uniform_ && is_uniform(footer, group, name);
    }
  }
}

// Whether all slots of the row group are full, as its counts say; the rows are compared with it when they are decoded.
// A list that is empty or missing counts as a value, so that lists of at most one key may be empty.
bool ParquetSource::is_uniform(const ParquetFooter& footer, const ParquetRowGroup& group, std::string_view file) const {
  for (size_t s = 0; s < layout_.keys.size(); ++s) {
    const ParquetKeys& keys = layout_.keys[s];
    const ParquetColumnInfo* column = footer.find(keys.name, file);
    const ParquetChunk& chunk = group.chunks[static_cast<size_t>(column->first_leaf)];
    const int64_t hotness = hotness_[s];
    if (keys.list) {
      if (hotness < 2 || chunk.values / hotness != group.rows || chunk.values % hotness != 0) return false;
    } else {
      const bool may_be_empty = plan_.missing_is_empty && !plan_.fill_key && column->nullable && chunk.nulls != 0;
      if (hotness != 1 || may_be_empty) return false;
    }
  }
  return true;
}

size_t ParquetSource::group_of(int64_t row) const {
  const auto behind = std::upper_bound(groups_.begin(), groups_.end(), row,
                                       [](int64_t r, const Group& group) { return r < group.first_row; });
  return static_cast<size_t>(behind - groups_.begin()) - 1;
}

int64_t ParquetSource::row_behind_damage(int64_t row) const {
  const Group& group = groups_[group_of(row)];
  return group.first_row + group.rows;
}

bool ParquetSource::is_cut(const Group& group) const {
  return group.rows > 1 && group.rows > window_bytes_ / group.row_bytes;
}

int64_t ParquetSource::piece_rows(const Group& group) const {
  return std::clamp<int64_t>(std::min(kPieceBytes, window_bytes_) / group.row_bytes, 1, kBatchRows);
}

RowWindows ParquetSource::windows() const {
  std::vector<int64_t> starts;
  const int64_t most = std::min(kWindowBytes, window_bytes_);
  int64_t bytes = most;  // of the window so far: the first row group begins one
  for (const Group& group : groups_) {
    const bool cut = is_cut(group);
    if (cut) {
      for (int64_t row = 0; row < group.rows; row += piece_rows(group)) starts.push_back(group.first_row + row);
      bytes = most;
      continue;
    }
    const int64_t own = group.rows * group.row_bytes;
    if (bytes + own > most) {
      starts.push_back(group.first_row);
      bytes = 0;
    }
    bytes += own;
  }
  return RowWindows::at(rows(), std::move(starts));
}

std::unique_ptr<RowGroupStream> ParquetSource::open_group(const Group& group, int64_t batch_rows) const {
  const RowGroupStream::Place place{
      group.file, group.number, group.row_in_file, group.rows, group.largest_allocation, files_[group.file].info};
  return std::make_unique<RowGroupStream>(*handles_[group.file], plan_, leaves_[group.file], place, batch_rows);
}

void ParquetSource::load(Span<RowRange> ranges, Window& target, const std::atomic<bool>& stop) {
  auto& window = static_cast<ParquetWindow&>(target);
  window.rows = 0;
  window.tasks.clear();
  window.parts.clear();
  if (jumps_) return load_mixed(ranges, window, stop);
  for (const RowRange& range : ranges) {
    for (int64_t row = range.begin; row < range.begin + range.count;) {
      if (stop.load(std::memory_order_relaxed)) return;
      const size_t index = group_of(row);
      const Group& group = groups_[index];
      const int64_t skip = row - group.first_row;
      const int64_t count = std::min(range.begin + range.count - row, group.rows - skip);
      if (is_cut(group)) {
        load_piece(index, skip, count, window);
      } else {
        TERCEL_ASSERT(skip == 0 && count == group.rows);
        window.tasks.push_back({index, window.rows});
      }
      window.rows += count;
      row += count;
    }
  }
}

void ParquetSource::load_piece(size_t index, int64_t skip, int64_t count, ParquetWindow& window) {
  const Group& group = groups_[index];
  const int64_t first = window.rows;
  const size_t first_part = window.parts.size();
  try {
    if (!stream_ || stream_group_ != index || skip < streamed_first_) {
      streamed_.reset();
      stream_ = open_group(group, piece_rows(group));
      stream_group_ = index;
      streamed_first_ = 0;
    }
    for (int64_t done = 0; done < count;) {
      while (!streamed_ || skip >= streamed_first_ + streamed_->rows) {
        if (streamed_) streamed_first_ += streamed_->rows;
        DecodedRows next;
        // The stream itself finds that there are fewer rows.
        TERCEL_ASSERT(stream_->next(next));
        streamed_ = std::make_shared<const DecodedRows>(std::move(next));
      }
      const int64_t begin = skip - streamed_first_;
      const int64_t taken = std::min(count - done, streamed_->rows - begin);
      window.parts.push_back({streamed_, begin, first + done, taken, nullptr});
      skip += taken;
      done += taken;
    }
    if (skip == group.rows) {
      // The end of the stream is looked at: it may have more rows than the metadata says.
      DecodedRows none;
      stream_->next(none);
      stream_.reset();
      streamed_.reset();
    }
    files_.check_unchanged(group.file, {group.row_in_file, 0});
  } catch (...) {
    // Of all these rows: what was decoded before is not to be trusted where the file changed.
    stream_.reset();
    streamed_.reset();
    window.parts.resize(first_part);
    window.parts.push_back({nullptr, 0, first, count, std::current_exception()});
  }
}

void ParquetSource::decode_group(const Task& task, std::vector<DecodedPart>& parts) const {
  const Group& group = groups_[task.group];
  int64_t done = 0;
  const size_t first_part = parts.size();
  try {
    const std::unique_ptr<RowGroupStream> stream = open_group(group, std::min(kBatchRows, group.rows));
    for (DecodedRows rows; stream->next(rows);) {
      const int64_t count = rows.rows;
      parts.push_back({std::make_shared<const DecodedRows>(std::move(rows)), 0, task.first + done, count, nullptr});
      done += count;
    }
    files_.check_unchanged(group.file, {group.row_in_file, 0});
  } catch (...) {
    // Of the whole row group: what was decoded before is not to be trusted where the file changed.
    parts.resize(first_part);
    parts.push_back({nullptr, 0, task.first, group.rows, std::current_exception()});
  }
}

void ParquetSource::prepare(Window& target) const {
  auto& window = static_cast<ParquetWindow&>(target);
  for (const Task& task : window.tasks) decode_group(task, window.parts);
}

void ParquetSource::keep(size_t index) {
  const Group& group = groups_[index];
  Kept& kept = kept_[index];
  try {
    const std::unique_ptr<RowGroupStream> stream = open_group(group, piece_rows(group));
    int64_t first = 0;
    for (DecodedRows rows; stream->next(rows);) {
      kept.pieces.push_back({first, spool_->keep(rows)});
      first += rows.rows;
    }
    files_.check_unchanged(group.file, {group.row_in_file, 0});
  } catch (...) {
    kept.pieces.clear();
    kept.error = std::current_exception();
  }
  kept.is_done = true;
}

void ParquetSource::keep_groups(Span<RowRange> ranges, const std::atomic<bool>& stop) {
  std::vector<size_t> missing;
  for (const RowRange& range : ranges)
    for (size_t g = group_of(range.begin); g < groups_.size() && groups_[g].first_row < range.begin + range.count; ++g)
      if (!kept_[g].is_done) missing.push_back(g);
  std::sort(missing.begin(), missing.end());
  missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
  // As many at once as Arrow has memory for: their pages, and a piece of each.
  const auto bytes_of = [&](size_t g) { return groups_[g].bytes_in_file + kPieceBytes; };
  for (size_t next = 0; next < missing.size();) {
    const size_t first = next;
    int64_t bytes = bytes_of(missing[next++]);
    while (next < missing.size() && bytes + bytes_of(missing[next]) <= memory_ / 2) bytes += bytes_of(missing[next++]);
    parallel_for(static_cast<int64_t>(first), static_cast<int64_t>(next), 1, [&](int64_t begin, int64_t end) {
      const RemoteWaitScope scope(stop);  // threads of the pool have none
      for (int64_t i = begin; i < end && !stop.load(std::memory_order_relaxed); ++i)
        keep(missing[static_cast<size_t>(i)]);
    });
  }
}

void ParquetSource::load_mixed(Span<RowRange> ranges, ParquetWindow& window, const std::atomic<bool>& stop) {
  keep_groups(ranges, stop);
  DecodedRows& mixed = window.mixed;
  mixed.rows = 0;
  for (const RowRange& range : ranges) {
    for (int64_t row = range.begin; row < range.begin + range.count;) {
      if (stop.load(std::memory_order_relaxed)) return;
      const size_t index = group_of(row);
      const Group& group = groups_[index];
      const Kept& kept = kept_[index];
      if (kept.error) std::rethrow_exception(kept.error);
      const int64_t skip = row - group.first_row;
      const auto behind = std::upper_bound(kept.pieces.begin(), kept.pieces.end(), skip,
                                           [](int64_t r, const Piece& piece) { return r < piece.first; });
      const Piece& piece = *(behind - 1);
      const int64_t begin = skip - piece.first;
      const int64_t count = std::min(range.begin + range.count - row, piece.rows.rows - begin);
      if (mixed.rows == 0) mixed.clear_like(piece.rows);
      mixed.append(piece.rows, begin, count);
      window.rows += count;
      row += count;
    }
  }
}

void ParquetSource::decode(const Window& source, const Places& places, BatchBuffer& out) const {
  const auto& window = static_cast<const ParquetWindow&>(source);
  if (jumps_) {
    const uint32_t* mix = window.mix.empty() ? nullptr : window.mix.data() + places.begin;
    assembler_->decode(window.mixed, places.begin, mix, places, out);
    return;
  }
  decode_parts(*assembler_, window.parts, window.mix, places, out);
}

}  // namespace tercel::data
