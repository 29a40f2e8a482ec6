#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "tercel/data/dataset.h"
#include "tercel/data/file_list.h"
#include "tercel/data/formats/norm_writer_impl.h"
#include "tercel/data/row_rules_impl.h"
#include "tercel/util/atomic_file.h"
#include "tercel/util/checksum.h"
#include "tercel/util/error.h"
#include "tercel/util/file.h"
#include "tercel/util/format.h"

namespace tercel::data {

namespace {

// Rows are buffered, so that checksum and file get few, large writes.
constexpr size_t kBufferBytes = size_t{64} << 10;

class OutputFile {
 public:
  OutputFile(const std::string& path, CheckMode mode) : file_(path), mode_(mode) { buffer_.reserve(2 * kBufferBytes); }

  /** Room for the next `bytes`; the caller fills all of it. */
  char* append(size_t bytes) {
    if (buffer_.size() >= kBufferBytes) flush();
    const size_t start = buffer_.size();
    buffer_.resize(start + bytes);
    return buffer_.data() + start;
  }

  void append_framed(const void* payload, size_t bytes) {
    char* out = append(bytes + static_cast<size_t>(norm_frame_bytes(mode_)));
    if (mode_ == CheckMode::Sum) out = open_frame(out, bytes);
    std::memcpy(out, payload, bytes);
    if (mode_ == CheckMode::Sum) close_frame(out, bytes);
  }

  static char* open_frame(char* out, size_t payload_bytes) {
    const auto length = static_cast<int32_t>(payload_bytes);
    std::memcpy(out, &length, sizeof(length));
    return out + sizeof(length);
  }
  static void close_frame(char* payload, size_t payload_bytes) {
    const uint8_t sum = norm_sum(payload, payload_bytes);
    std::memcpy(payload + payload_bytes, &sum, sizeof(sum));
  }

  void flush() {
    checksum_.update(buffer_.data(), buffer_.size());
    file_.write(buffer_.data(), buffer_.size());
    buffer_.clear();
  }

  /** Replaces the first bytes; the checksum is then no longer that of the content. */
  void replace_header(const NormHeader& header) {
    char bytes[sizeof(NormHeader) + 5];
    char* out = mode_ == CheckMode::Sum ? open_frame(bytes, sizeof(header)) : bytes;
    std::memcpy(out, &header, sizeof(header));
    if (mode_ == CheckMode::Sum) close_frame(out, sizeof(header));
    file_.writer().rewrite(0, bytes, static_cast<size_t>(norm_header_bytes(mode_)));
  }

  void commit() { file_.commit(); }
  uint64_t checksum() const { return checksum_.value(); }
  int64_t bytes() { return file_.writer().position(); }

 private:
  AtomicFile file_;
  CheckMode mode_;
  Checksum checksum_;
  std::vector<char> buffer_;
};

}  // namespace

struct NormWriter::State {
  RowRules rules;
  NormOptions norm;
  WriterOptions options;
  std::optional<OutputFile> file;
  int64_t rows_in_file = 0;
  int64_t rows = 0;
  DataPart part;
  bool finished = false;
  bool broken = false;  // a file could not be written: no more rows are accepted

  State(const Schema& schema, const NormOptions& norm_options, WriterOptions writer_options)
      : rules(schema, writer_options.binary_labels, max_key(norm_options.key_type)),
        norm(norm_options),
        options(std::move(writer_options)) {}

  const Schema& schema() const { return rules.schema(); }
  std::string relative_path(size_t index) const { return str_cat({options.prefix, index, ".data"}); }

  NormHeader header(int64_t records) const {
    NormHeader result;
    result.error_check = norm.check_mode == CheckMode::Sum ? 1 : 0;
    result.number_of_records = records;
    result.label_dim = schema().label_dim;
    result.dense_dim = schema().dense_dim;
    result.slot_num = schema().slot_num();
    return result;
  }

  // Most files become full, so the header is written for a full file, and their checksum needs no second pass.
  void open_file() {
    file.emplace(join_path(options.folder, relative_path(part.files.size())), norm.check_mode);
    rows_in_file = 0;
    const NormHeader expected = header(options.rows_per_file);
    file->append_framed(&expected, sizeof(expected));
  }

  void close_file() {
    file->flush();
    const bool full = rows_in_file == options.rows_per_file;
    if (!full) file->replace_header(header(rows_in_file));
    DataFile record;
    record.path = relative_path(part.files.size());
    record.rows = rows_in_file;
    record.bytes = file->bytes();
    const std::string path = join_path(options.folder, record.path);
    file->commit();
    part.files.push_back(record);
    const uint64_t sum = full ? file->checksum() : file_checksum(path);
    part.files.back().checksum = checksum_to_hex(sum);
    file.reset();
  }

  // Number of keys; throws before anything of the row is written.
  int64_t check_row(const float* labels, const float* dense, const int32_t* nnz, const int64_t* keys) const;
  void put_row(const float* labels, const float* dense, const int32_t* nnz, const int64_t* keys, int64_t num_keys);

  void remove_files() noexcept {
    file.reset();
    try {
      for (const DataFile& written : part.files) remove_file(join_path(options.folder, written.path));
    } catch (...) {  // the first error is the one to report
    }
  }

  [[noreturn]] void fail(std::string_view expected, std::string_view found) const {
    throw_error<ValueError>({"norm: row ", rows, ": expected ", expected, ", found ", found});
  }
};

int64_t NormWriter::State::check_row(const float* labels, const float* dense, const int32_t* nnz,
                                     const int64_t* keys) const {
  for (int64_t i = 0; i < schema().label_dim; ++i)
    if (!rules.is_label(labels[i])) fail(rules.expected_label(i), format_double(labels[i]));
  for (int64_t i = 0; i < schema().dense_dim; ++i)
    if (!RowRules::is_dense_value(dense[i])) fail(rules.expected_dense(i), format_double(dense[i]));
  int64_t num_keys = 0;
  for (size_t s = 0; s < rules.slots().size(); ++s) {
    const RowRules::SlotRule& rule = rules.slots()[s];
    const int64_t count = nnz ? nnz[s] : rule.hotness;
    if (!rule.allows(count)) fail(rules.expected_count(s, false), str_cat({count}));
    for (int64_t i = 0; i < count; ++i)
      if (!rule.has(keys[num_keys + i])) fail(rules.expected_key(s), str_cat({keys[num_keys + i]}));
    num_keys += count;
  }
  return num_keys;
}

void NormWriter::State::put_row(const float* labels, const float* dense, const int32_t* nnz, const int64_t* keys,
                                int64_t num_keys) {
  const bool framed = norm.check_mode == CheckMode::Sum;
  const auto total = static_cast<size_t>(norm_record_bytes(schema().label_dim, schema().dense_dim, schema().slot_num(),
                                                           num_keys, norm.key_type, norm.check_mode));
  const size_t payload_bytes = total - static_cast<size_t>(norm_frame_bytes(norm.check_mode));
  char* const start = file->append(total);
  char* const payload = framed ? OutputFile::open_frame(start, payload_bytes) : start;
  char* out = payload;
  const auto put = [&out](const void* data, size_t bytes) {
    if (bytes > 0) std::memcpy(out, data, bytes);
    out += bytes;
  };
  put(labels, static_cast<size_t>(schema().label_dim) * sizeof(float));
  put(dense, static_cast<size_t>(schema().dense_dim) * sizeof(float));
  for (size_t s = 0; s < schema().slots.size(); ++s) {
    const int32_t count = nnz ? nnz[s] : static_cast<int32_t>(schema().slots[s].hotness);
    put(&count, sizeof(count));
    if (norm.key_type == KeyType::I64) {
      put(keys, static_cast<size_t>(count) * sizeof(int64_t));
    } else {
      for (int32_t i = 0; i < count; ++i) {
        const auto key = static_cast<uint32_t>(keys[i]);
        put(&key, sizeof(key));
      }
    }
    keys += count;
  }
  if (framed) OutputFile::close_frame(payload, payload_bytes);
}

NormWriter::NormWriter(const Schema& schema, const NormOptions& norm, const WriterOptions& options)
    : state_(std::make_unique<State>(schema, norm, options)) {
  TERCEL_CHECK(options.rows_per_file > 0, ConfigError, "norm: rows_per_file: expected at least 1, found ",
               options.rows_per_file);
  TERCEL_CHECK(options.file_list.find('/') == std::string::npos, ConfigError,
               "norm: file_list: expected a name inside the folder, found '", printable(options.file_list), "'");
  create_dirs(parent_path(join_path(options.folder, state_->relative_path(0))));
}

NormWriter::~NormWriter() {
  if (!state_->finished) state_->remove_files();
}

int64_t NormWriter::rows() const noexcept { return state_->rows; }

void NormWriter::write(const RowBlock& block) {
  State& state = *state_;
  TERCEL_CHECK(!state.finished && !state.broken, ValueError, "norm: write after finish() or after an error");
  const float *labels = block.labels, *dense = block.dense;
  const int32_t* nnz = block.nnz;
  const int64_t* keys = block.keys;
  for (int64_t row = 0; row < block.rows; ++row) {
    const int64_t num_keys = state.check_row(labels, dense, nnz, keys);
    state.broken = true;
    if (!state.file) state.open_file();
    state.put_row(labels, dense, nnz, keys, num_keys);
    ++state.rows;
    if (++state.rows_in_file == state.options.rows_per_file) state.close_file();
    state.broken = false;
    labels += state.schema().label_dim;
    dense += state.schema().dense_dim;
    if (nnz) nnz += state.schema().slots.size();
    keys += num_keys;
  }
}

DataPart NormWriter::finish() {
  State& state = *state_;
  TERCEL_CHECK(!state.finished && !state.broken, ValueError, "norm: finish after finish() or after an error");
  state.broken = true;
  if (!state.file && state.part.files.empty()) state.open_file();
  if (state.file) state.close_file();
  if (!state.options.file_list.empty()) {
    std::vector<std::string> paths;
    for (const DataFile& file : state.part.files) paths.push_back(file.path);
    write_file_list(join_path(state.options.folder, state.options.file_list), paths);
    state.part.file_list = state.options.file_list;
  }
  state.finished = true;
  return state.part;
}

}  // namespace tercel::data
