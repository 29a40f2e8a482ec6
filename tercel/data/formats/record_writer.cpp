#include <utility>

#include "tercel/data/file_list.h"
#include "tercel/data/formats/record_writer_impl.h"
#include "tercel/util/error.h"
#include "tercel/util/file.h"
#include "tercel/util/format.h"

namespace tercel::data {

namespace {

// Rows are buffered, so that checksum and file get few, large writes.
constexpr size_t kBufferBytes = size_t{64} << 10;

}  // namespace

RecordFile::RecordFile(const std::string& path) : file_(path) { buffer_.reserve(2 * kBufferBytes); }

char* RecordFile::append(size_t bytes) {
  if (buffer_.size() >= kBufferBytes) flush();
  const size_t start = buffer_.size();
  buffer_.resize(start + bytes);
  return buffer_.data() + start;
}

void RecordFile::replace_start(const void* bytes, size_t count) {
  flush();
  file_.writer().rewrite(0, bytes, count);
  replaced_ = true;
}

void RecordFile::commit(FileRecord& record) {
  flush();
  record.bytes = file_.writer().position();
  file_.commit();
  record.checksum = checksum_to_hex(replaced_ ? file_checksum(file_.path()) : checksum_.value());
}

void RecordFile::flush() {
  checksum_.update(buffer_.data(), buffer_.size());
  file_.write(buffer_.data(), buffer_.size());
  buffer_.clear();
}

RecordWriter::RecordWriter(const Traits& traits, RowRules rules, WriterOptions options)
    : traits_(traits), rules_(std::move(rules)), options_(std::move(options)) {
  TERCEL_CHECK(options_.rows_per_file > 0, ConfigError, traits.format, ": rows_per_file: expected at least 1, found ",
               options_.rows_per_file);
  TERCEL_CHECK(options_.file_list.find('/') == std::string::npos, ConfigError, traits.format,
               ": file_list: expected a name inside the folder, found '", printable(options_.file_list), "'");
  create_dirs(parent_path(join_path(options_.folder, relative_path(0))));
}

RecordWriter::~RecordWriter() {
  if (!finished_) remove_files();
}

void RecordWriter::begin_file(RecordFile& /*file*/, int64_t /*expected_rows*/) {}
void RecordWriter::end_file(RecordFile& /*file*/, int64_t /*rows*/, int64_t /*expected_rows*/) {}
void RecordWriter::end_part(const DataPart& /*part*/) {}
void RecordWriter::check_row(const RowView& /*row*/) {}

void RecordWriter::fail_row(std::string_view expected, std::string_view found) const {
  throw_error<ValueError>({traits_.format, ": row ", rows_, ": expected ", expected, ", found ", found});
}

std::string RecordWriter::relative_path(size_t index) const {
  return str_cat({options_.prefix, index, traits_.extension});
}

void RecordWriter::check_writable(std::string_view what) const {
  TERCEL_CHECK(!finished_ && !broken_, ValueError, traits_.format, ": ", what, " after finish() or after an error");
}

void RecordWriter::open_file(int64_t expected_rows) {
  file_ = std::make_unique<RecordFile>(join_path(options_.folder, relative_path(part_.files.size())));
  rows_in_file_ = 0;
  expected_rows_ = expected_rows;
  begin_file(*file_, expected_rows);
}

void RecordWriter::close_file() {
  end_file(*file_, rows_in_file_, expected_rows_);
  // Recorded first, so that it is removed again if the checksum cannot be computed.
  DataFile& record = part_.files.emplace_back();
  record.path = relative_path(part_.files.size() - 1);
  record.rows = rows_in_file_;
  file_->commit(record);
  file_.reset();
}

void RecordWriter::remove_files() noexcept {
  file_.reset();
  try {
    for (const DataFile& written : part_.files) remove_file(join_path(options_.folder, written.path));
  } catch (...) {  // the first error is the one to report
  }
}

void RecordWriter::check_rules(RowView& row) const {
  for (int64_t i = 0; i < schema().label_dim; ++i)
    if (!rules_.is_label(row.labels[i])) fail_row(rules_.expected_label(i), format_double(row.labels[i]));
  for (int64_t i = 0; i < schema().dense_dim; ++i)
    if (!RowRules::is_dense_value(row.dense[i])) fail_row(rules_.expected_dense(i), format_double(row.dense[i]));
  row.num_keys = 0;
  for (size_t s = 0; s < rules_.slots().size(); ++s) {
    const RowRules::SlotRule& rule = rules_.slots()[s];
    const int64_t count = row.count(s, rule.hotness);
    if (!rule.allows(count) || (traits_.full_slots && count != rule.hotness))
      fail_row(str_cat({rules_.expected_count(s, traits_.full_slots),
                        traits_.full_slots ? ", as in every row of such files" : ""}),
               str_cat({count}));
    for (int64_t i = 0; i < count; ++i)
      if (!rule.has(row.keys[row.num_keys + i]))
        fail_row(rules_.expected_key(s), str_cat({row.keys[row.num_keys + i]}));
    row.num_keys += count;
  }
  for (int64_t k = 0; row.key_weights && k < row.num_keys; ++k)
    if (!RowRules::is_dense_value(row.key_weights[k]))
      fail_row(str_cat({"weight of key ", k, " to be a finite number"}), format_double(row.key_weights[k]));
}

void RecordWriter::write(const RowBlock& block) {
  check_writable("write");
  RowView row{block.labels, block.dense, block.nnz, block.keys, 0, block.key_weights, block.columns, 0};
  for (int64_t i = 0; i < block.rows; ++i) {
    check_rules(row);
    check_row(row);
    broken_ = true;
    if (!file_) open_file(options_.rows_per_file);
    put_row(row, *file_);
    ++rows_;
    if (++rows_in_file_ == expected_rows_) close_file();
    broken_ = false;
    row.labels += schema().label_dim;
    row.dense += schema().dense_dim;
    if (row.nnz) row.nnz += schema().slots.size();
    row.keys += row.num_keys;
    if (row.key_weights) row.key_weights += row.num_keys;
    ++row.index;
  }
}

void RecordWriter::start_file(int64_t rows) {
  check_writable("start_file");
  TERCEL_CHECK(rows >= 0, ValueError, traits_.format, ": start_file: expected 0 rows or more, found ", rows);
  broken_ = true;
  if (file_) close_file();
  open_file(rows);
  if (rows == 0) close_file();
  broken_ = false;
}

DataPart RecordWriter::finish() {
  check_writable("finish");
  broken_ = true;
  if (!file_ && part_.files.empty()) open_file(options_.rows_per_file);
  if (file_) close_file();
  if (traits_.file_list && !options_.file_list.empty()) {
    std::vector<std::string> paths;
    for (const DataFile& file : part_.files) paths.push_back(file.path);
    write_file_list(join_path(options_.folder, options_.file_list), paths);
    part_.file_list = options_.file_list;
  }
  end_part(part_);
  finished_ = true;
  return part_;
}

}  // namespace tercel::data
