#include <algorithm>
#include <cstring>
#include <utility>

#include "tercel/data/formats/norm_source_impl.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"

namespace tercel::data {

namespace {

constexpr int64_t kMarkRows = 256;
// Threads wake each other once a window; the windows of a reader leave the second cache, which costs less.
constexpr int64_t kReadBytes = int64_t{1} << 21;
constexpr int64_t kMaxRowsPerRead = int64_t{1} << 20;

}  // namespace

NormSource::NormSource(const NormOptions& norm, const Dataset& dataset, const DataPart& part,
                       const SourceOptions& options)
    : layout_(dataset.schema, norm, options.binary_labels, options.inputs),
      shape_(shape_of(layout_.schema(), options.inputs)),
      loop_shape_(layout_.rules, shape_),
      keep_marks_(options.jumps),
      skips_bad_records_(options.skips_bad_records) {
  TERCEL_CHECK(options.columns.empty(), ConfigError,
               "norm: expected no columns besides labels, dense values and keys, "
               "which are all that the files hold, found '",
               printable(options.columns[0]), "'");
  open_files(dataset, part);
  shape_.uniform = std::all_of(records_.begin(), records_.end(), [](const Records& file) { return file.uniform; });
  make_loop(options.binary_labels);
}

void NormSource::make_loop(bool binary_labels) {
  for (const RowRules::SlotRule& slot : layout_.rules.slots()) hotness_.push_back(static_cast<int32_t>(slot.hotness));
  loop_shape_.set_rules(loop_);
  loop_.row_bytes = layout_.max_record_bytes;
  loop_.binary_labels = binary_labels;
  loop_.wide_keys = layout_.options.key_type == KeyType::I64;
  loop_.framed = layout_.framed();
  loop_.hotness = hotness_.data();
}

void NormSource::open_files(const Dataset& dataset, const DataPart& part) {
  int64_t body = 0;
  for (const DataFile& described : part.files) {
    const std::shared_ptr<const RandomAccessFile> file = files_.add(dataset, described);
    const std::string& path = file->path();
    const int64_t rows = read_norm_header(*file, layout_);
    TERCEL_CHECK(rows == described.rows, DataError, printable(path), ": byte ", layout_.framed() ? 12 : 8,
                 ": expected number_of_records ", described.rows, ", as the dataset's description says, found ", rows);
    Records records;
    records.uniform = check_norm_size(path, described.bytes, rows, layout_);
    records.marks.push_back(layout_.header_bytes());
    body += described.bytes - layout_.header_bytes();
    records_.push_back(std::move(records));
  }
  if (rows() > 0)
    rows_per_read_ = std::clamp<int64_t>(kReadBytes / std::max<int64_t>(1, body / rows()), 1, kMaxRowsPerRead);
}

std::unique_ptr<Window> NormSource::make_window() const { return std::make_unique<NormWindow>(); }

const RandomAccessFile& NormSource::use(size_t index) {
  std::shared_ptr<const RandomAccessFile> file = files_.open(index);
  if (file != open_) walked_to_ = {0, layout_.header_bytes()};
  open_ = std::move(file);
  return *open_;
}

void NormSource::load(Span<RowRange> ranges, Window& target, const std::atomic<bool>& stop) {
  auto& window = static_cast<NormWindow&>(target);
  window.rows = 0;
  window.bytes.resize(0);
  window.starts.assign(1, 0);
  window.malformed.clear();
  window.pieces.clear();
  for (const RowRange& range : ranges) {
    for (int64_t row = range.begin; row < range.begin + range.count;) {
      if (stop.load(std::memory_order_relaxed)) return;
      const size_t index = files_.file_of(row);
      const SourceFiles::Entry& file = files_[index];
      const int64_t record = row - file.first_row;
      const int64_t count = std::min(range.begin + range.count - row, file.rows - record);
      if (shape_.uniform)
        load_uniform(index, record, count, window);
      else
        load_ragged(index, record, count, window, stop);
      row += count;
    }
  }
}

void NormSource::load_uniform(size_t index, int64_t record, int64_t count, NormWindow& window) {
  const size_t first_byte = window.bytes.size();
  const int64_t offset = layout_.header_bytes() + record * layout_.max_record_bytes;
  const auto bytes = static_cast<size_t>(count * layout_.max_record_bytes);
  window.pieces.push_back({index, record, offset, window.rows, first_byte});
  window.bytes.resize(first_byte + bytes);
  const size_t found = use(index).read_at(window.bytes.data() + first_byte, bytes, offset);
  files_.check_unchanged(index, {record, offset});
  TERCEL_CHECK(found == bytes, DataError, printable(files_[index].path), ": record ", record, ": byte ", offset,
               ": expected ", bytes, " more bytes, found ", found);
  window.rows += count;
}

void NormSource::load_ragged(size_t index, int64_t record, int64_t count, NormWindow& window,
                             const std::atomic<bool>& stop) {
  const RecordPlace start = find_record(index, record, stop);
  if (start.record != record) return;  // stopped on the way
  window.pieces.push_back({index, record, start.offset, window.rows, window.bytes.size()});
  walked_to_ = walk(index, start, count, &window, stop);
}

RecordPlace NormSource::find_record(size_t index, int64_t record, const std::atomic<bool>& stop) {
  const Records& source = records_[index];
  use(index);
  const auto mark = std::min(static_cast<size_t>(record / kMarkRows), source.marks.size() - 1);
  RecordPlace start{static_cast<int64_t>(mark) * kMarkRows, source.marks[mark]};
  if (walked_to_.record <= record && walked_to_.record > start.record) start = walked_to_;
  if (source.uniform) start = {record, layout_.header_bytes() + record * layout_.max_record_bytes};
  return walk(index, start, record - start.record, nullptr, stop);
}

RecordPlace NormSource::walk(size_t index, RecordPlace from, int64_t count, NormWindow* window,
                             const std::atomic<bool>& stop) {
  const SourceFiles::Entry& source = files_[index];
  std::vector<int64_t>& marks = records_[index].marks;
  const RandomAccessFile& file = use(index);
  ByteBuffer& buffer = window ? window->bytes : scratch_;
  if (!window) buffer.resize(0);
  size_t next = buffer.size();  // where the record `at` starts in the buffer
  RecordPlace at = from;
  const int64_t last = from.record + count;
  const int64_t average = (source.info.size - layout_.header_bytes()) / std::max<int64_t>(1, source.rows);
  const auto refuse = [&] {
    files_.check_unchanged(index, at);
    if (window) window->rows += at.record - from.record;
    fail_record(index, at);
  };
  while (at.record < last) {
    int64_t size = record_size(buffer.data() + next, buffer.size() - next);
    const bool malformed = size < 0;
    if (malformed && skips_bad_records_) size = framed_size(buffer.data() + next, buffer.size() - next);
    if (size < 0) refuse();
    if (size > 0) {
      if (keep_marks_ && at.record == static_cast<int64_t>(marks.size()) * kMarkRows) marks.push_back(at.offset);
      next += static_cast<size_t>(size);
      at = {at.record + 1, at.offset + size};
      if (window && malformed) window->malformed.push_back(window->starts.size() - 1);
      if (window) window->starts.push_back(next);
      continue;
    }
    if (stop.load(std::memory_order_relaxed)) return at;
    const size_t begun = buffer.size() - next;
    if (!window) {
      if (begun > 0) std::memmove(buffer.data(), buffer.data() + next, begun);
      buffer.resize(begun);
      next = 0;
    }
    const int64_t read_from = at.offset + static_cast<int64_t>(begun);
    const int64_t left = source.info.size - read_from;
    if (left <= 0) refuse();
    // Estimates the rest by the average size; an incomplete record is read in growing steps.
    const int64_t guess = std::min((last - at.record) * average + average / 2 + 64, kReadBytes);
    const auto bytes = static_cast<size_t>(std::min(left, std::max(guess, static_cast<int64_t>(begun))));
    buffer.resize(next + begun + bytes);
    if (file.read_at(buffer.data() + next + begun, bytes, read_from) != bytes) refuse();
  }
  files_.check_unchanged(index, at);
  if (window) {
    buffer.resize(next);
    window->rows += count;
  }
  TERCEL_CHECK(at.record < source.rows || at.offset == source.info.size, DataError, printable(source.path), ": record ",
               source.rows - 1, ": byte ", at.offset, ": expected the end of the file after ", source.rows,
               " records, found ", source.info.size - at.offset, " more bytes");
  return at;
}

int64_t NormSource::record_size(const std::byte* record, size_t bytes) const {
  const int64_t key_size = key_bytes(layout_.options.key_type);
  const auto end = static_cast<int64_t>(bytes);
  const int64_t payload = layout_.framed() ? 4 : 0;
  int64_t at = payload + 4 * (layout_.schema().label_dim + layout_.schema().dense_dim);
  for (const RowRules::SlotRule& slot : layout_.rules.slots()) {
    if (at + 4 > end) return 0;
    const int64_t nnz = load_unaligned<int32_t>(record + at);
    if (!slot.allows(nnz)) return -1;
    at += 4 + nnz * key_size;
  }
  const int64_t size = at + (layout_.framed() ? 1 : 0);
  if (size > end) return 0;
  return layout_.framed() && load_unaligned<int32_t>(record) != at - payload ? -1 : size;
}

int64_t NormSource::framed_size(const std::byte* record, size_t bytes) const {
  const int64_t frame = norm_frame_bytes(layout_.options.check_mode);
  if (!layout_.framed() || bytes < sizeof(int32_t)) return -1;
  const int64_t size = load_unaligned<int32_t>(record) + frame;
  if (size < layout_.min_record_bytes || size > layout_.max_record_bytes) return -1;
  return size <= static_cast<int64_t>(bytes) ? size : 0;
}

void NormSource::fail_record(size_t index, RecordPlace at) {
  const auto bytes = static_cast<size_t>(std::min(layout_.max_record_bytes, files_[index].info.size - at.offset));
  scratch_.resize(bytes);
  const size_t found = open_->read_at(scratch_.data(), bytes, at.offset);
  fail(index, at, Span<std::byte>(scratch_.data(), found), false);
}

void NormSource::fail(size_t index, RecordPlace at, Span<std::byte> bytes, bool exact) const {
  const SourceFiles::Entry& source = files_[index];
  try {
    check_norm_record(layout_, bytes, {source.path, at.record, at.offset}, exact);
  } catch (const DataError& error) {
    throw DataError(error.what() + key_type_hint(source.info.size, source.rows, layout_));
  }
  // The file changed between two reads, or the two sets of checks disagree, which is a bug.
  files_.check_unchanged(index, at);
  throw_error<InternalError>({printable(source.path), ": record ", at.record, " was refused but follows all rules"});
}

}  // namespace tercel::data
