#include <algorithm>
#include <array>

#include "tercel/data/formats/raw_decode_kernels.h"
#include "tercel/data/formats/raw_source_impl.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"

namespace tercel::data {

namespace {

// Threads wake each other once a window; the windows of a reader leave the second cache, which costs less.
constexpr int64_t kReadBytes = int64_t{1} << 21;
constexpr int64_t kMaxRowsPerRead = int64_t{1} << 20;

constinit const KernelTable<RawRowsFn> decode_kernels = TERCEL_CPU_KERNELS(decode_raw_rows);

// Counts are mostly small: their logarithms are looked up.
constexpr uint32_t kTabulated = 4096;

const std::array<float, kTabulated>& logs_of_dense() {
  static const std::array<float, kTabulated> table = [] {
    std::array<float, kTabulated> values{};
    for (uint32_t i = 0; i < kTabulated; ++i) values[i] = log_of_dense(static_cast<int32_t>(i));
    return values;
  }();
  return table;
}

}  // namespace

RawSource::RawSource(const RawTypes& types, const Dataset& dataset, const DataPart& part, const SourceOptions& options)
    : layout_(dataset.schema, types, options.binary_labels, options.inputs),
      shape_(shape_of(layout_.schema(), options.inputs)),
      loop_shape_(layout_.rules, shape_),
      rows_per_read_(std::clamp<int64_t>(kReadBytes / layout_.row_bytes, 1, kMaxRowsPerRead)),
      workers_read_(options.workers > 1) {
  TERCEL_CHECK(options.columns.empty(), ConfigError, types.format,
               ": expected no columns besides labels, dense values and keys, "
               "which are all that the files hold, found '",
               printable(options.columns[0]), "'");
  shape_.uniform = true;
  make_loop(options.binary_labels);
  for (const DataFile& described : part.files) {
    files_.add(dataset, described);
    check_raw_size(dataset.path_of(described), described.bytes, described.rows, layout_);
  }
}

void RawSource::make_loop(bool binary_labels) {
  const RawTypes& types = layout_.types;
  loop_shape_.set_rules(loop_);
  loop_.row_bytes = layout_.row_bytes;
  loop_.float_labels = types.labels == NumberType::F32;
  loop_.float_dense = types.dense == NumberType::F32;
  loop_.binary_labels = binary_labels;
  loop_.wide_keys = types.keys == KeyType::I64;
  loop_.logs = logs_of_dense().data();
  loop_.num_logs = static_cast<int32_t>(kTabulated);
  loop_.log = &log_of_dense;
  const std::vector<RowRules::SlotRule>& slots = layout_.rules.slots();
  for (size_t s = 0; s < slots.size(); ++s)
    key_offset_.insert(key_offset_.end(), static_cast<size_t>(slots[s].hotness), layout_.key_offsets[s]);
  if (types.slot_offsets == SlotOffsets::Add) loop_.key_offset = key_offset_.data();
}

std::unique_ptr<Window> RawSource::make_window() const { return std::make_unique<RawWindow>(); }

void RawSource::load(Span<RowRange> ranges, Window& target, const std::atomic<bool>& stop) {
  auto& window = static_cast<RawWindow&>(target);
  window.rows = 0;
  window.pieces.clear();
  int64_t rows = 0;
  for (const RowRange& range : ranges) rows += range.count;
  window.bytes.resize(static_cast<size_t>(rows * layout_.row_bytes));
  for (const RowRange& range : ranges) {
    for (int64_t row = range.begin; row < range.begin + range.count;) {
      if (stop.load(std::memory_order_relaxed)) return;
      const size_t index = files_.file_of(row);
      const SourceFiles::Entry& file = files_[index];
      const int64_t record = row - file.first_row;
      const int64_t count = std::min(range.begin + range.count - row, file.rows - record);
      window.pieces.push_back({index, files_.open(index), record, count, window.rows});
      if (!workers_read_) read(window.pieces.back(), window);
      window.rows += count;
      row += count;
    }
  }
}

void RawSource::prepare(Window& target) const {
  auto& window = static_cast<RawWindow&>(target);
  for (const Piece& piece : window.pieces) read(piece, window);
}

void RawSource::read(const Piece& piece, RawWindow& window) const {
  const RecordPlace at{piece.first_record, piece.first_record * layout_.row_bytes};
  const auto bytes = static_cast<size_t>(piece.count * layout_.row_bytes);
  const size_t found = piece.open->read_at(window.bytes.data() + piece.first_row * layout_.row_bytes, bytes, at.offset);
  files_.check_unchanged(piece.file, at);
  TERCEL_CHECK(found == bytes, DataError, printable(files_[piece.file].path), ": record ", at.record, ": byte ",
               at.offset, ": expected ", bytes, " more bytes, found ", found);
}

void RawSource::decode(const Window& source, const Places& places, BatchBuffer& out) const {
  const auto& window = static_cast<const RawWindow&>(source);
  RawRowsLoop loop = loop_;
  RowLoopShape::Inputs inputs;
  loop_shape_.set_places(loop, window, window.bytes.data(), places, out, inputs);
  const int64_t bad = decode_kernels[kCpu](loop, places.begin, places.begin + places.count);
  // The kernel says only that a row breaks a rule: check_raw_row finds which, and throws the error.
  if (bad < 0) return;
  try {
    fail_row(window, window.mix.empty() ? bad : int64_t{window.mix[static_cast<size_t>(bad)]});
  } catch (const DataError& error) {
    throw BadRecord(error.what(), bad);
  }
}

void RawSource::fail_row(const RawWindow& window, int64_t row) const {
  const auto behind = std::upper_bound(window.pieces.begin(), window.pieces.end(), row,
                                       [](int64_t r, const Piece& piece) { return r < piece.first_row; });
  const Piece& piece = *(behind - 1);
  const int64_t record = piece.first_record + row - piece.first_row;
  const std::string& path = files_[piece.file].path;
  check_raw_row(layout_, {window.bytes.data() + row * layout_.row_bytes, static_cast<size_t>(layout_.row_bytes)},
                {path, record, record * layout_.row_bytes});
  // The two sets of checks disagree, which is a bug.
  throw_error<InternalError>({printable(path), ": record ", record, " was refused but follows all rules"});
}

}  // namespace tercel::data
