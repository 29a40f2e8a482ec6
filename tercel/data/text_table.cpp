#include "tercel/data/text_table.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "tercel/data/random_access_file.h"
#include "tercel/data/row_parser_impl.h"
#include "tercel/data/text_records_impl.h"
#include "tercel/util/error.h"
#include "tercel/util/file_stream.h"
#include "tercel/util/format.h"

namespace tercel::data {

namespace {

// A block, its rows by column and its keys fit in the second cache of a core.
constexpr size_t kBlockBytes = size_t{64} << 10;
// A record that is longer is not looked for: its parser says what is wrong.
constexpr size_t kMostBlockBytes = 4 * kMaxRecordBytes;

/** Line feeds, in lanes of bytes that the compiler makes a vector of. */
int64_t count_lines(std::string_view text) {
  constexpr size_t kLanes = 32, kRounds = 255;
  int64_t count = 0;
  size_t i = 0;
  while (i + kLanes <= text.size()) {
    uint8_t lanes[kLanes] = {};
    for (size_t round = 0; round < kRounds && i + kLanes <= text.size(); ++round, i += kLanes)
      for (size_t lane = 0; lane < kLanes; ++lane)
        lanes[lane] = static_cast<uint8_t>(lanes[lane] + (text[i + lane] == '\n' ? 1 : 0));
    for (const uint8_t lane : lanes) count += lane;
  }
  return count + std::count(text.begin() + static_cast<std::ptrdiff_t>(i), text.end(), '\n');
}

/** The end of the lines from `begin` on, that of the text if there are fewer. */
size_t end_of_lines(std::string_view text, size_t begin, int64_t lines) {
  size_t end = begin;
  for (; lines > 0 && end < text.size(); --lines) end = std::min(text.find('\n', end), text.size() - 1) + 1;
  return end;
}

void clear(const TextFormat& format, TextRows& rows) {
  rows.rows = rows.cut = 0;
  rows.weighted = format.has_weights();
  rows.ragged = rows.weighted || format.has_lists();
  rows.labels.clear();
  rows.label_texts.clear();
  rows.dense.resize(format.dense.size());
  for (std::vector<double>& column : rows.dense) column.clear();
  rows.fields.resize(format.fields.size());
  for (TextValues& field : rows.fields) {
    field.values.clear();
    field.nnz.clear();
    field.weights.clear();
  }
  rows.weights.clear();
  rows.times.clear();
  rows.ids.clear();
  rows.texts.clear();
}

/** The values of fields that are combinations: texts with a byte 0 between them, none where one is missing. */
void combine(const TextFormat& format, TextRows& rows) {
  for (size_t f = 0; f < format.fields.size(); ++f) {
    const std::vector<size_t>& parents = format.fields[f].parents;
    if (parents.empty()) continue;
    const auto count = static_cast<size_t>(rows.rows);
    // One text for all rows, which must not move while views into it are made.
    size_t bytes = parents.size() * count;
    for (const size_t parent : parents)
      for (const std::string_view value : rows.fields[parent].values) bytes += value.size();
    std::string& all = rows.texts.emplace_back();
    all.reserve(bytes);
    std::vector<std::string_view>& values = rows.fields[f].values;
    for (size_t row = 0; row < count; ++row) {
      const auto is_missing = [&](size_t parent) { return rows.fields[parent].values[row].empty(); };
      if (std::any_of(parents.begin(), parents.end(), is_missing)) {
        values.emplace_back();
        continue;
      }
      const size_t begin = all.size();
      for (const size_t parent : parents) {
        if (all.size() != begin) all += '\0';
        all += rows.fields[parent].values[row];
      }
      values.push_back(std::string_view(all).substr(begin));
    }
  }
}

}  // namespace

struct TextTable::State {
  TextFormat format;
  std::vector<TextSource> sources;
  LabelColumn label_column;
  TextDialect dialect;

  size_t next_source = 0;
  std::unique_ptr<GzipReader> reader;
  std::string rest;  // of the file, behind the last block
  bool at_end = true;
  int64_t lines = 0;
  int64_t skip_lines = 0;                   // that are left to skip,
  bool header_left = false;                 // and whether the header is behind them
  std::shared_ptr<const RowParser> parser;  // of the present file, once its columns are known

  int64_t first_width = 0;
  int64_t bytes_before = 0;  // of the files that are done
  int64_t bytes_total = 0;
  std::vector<FileInfo> infos;

  const std::string& name_of(const TextSource& source) const { return source.name.empty() ? source.path : source.name; }
  bool open_next();
  void fill(std::string& text, size_t bytes);
  void read_block(TextBlock& block);
  bool has_record(std::string_view text, size_t head) const;
  void bind(TextBlock& block);
  void skip_head(const TextBlock& block, RecordReader& records) const;
};

bool TextTable::State::open_next() {
  if (reader) bytes_before += infos.back().size;
  reader.reset();
  if (next_source == sources.size()) return false;
  parser.reset();
  const TextSource& source = sources[next_source++];
  FileInfo info;
  reader = open_data_stream(source.path, info);
  infos.push_back(info);
  at_end = false;
  lines = 0;
  skip_lines = format.skip_lines;
  header_left = format.header;
  rest.clear();
  return true;
}

/** Reads until the text has at least so many bytes or the file ends. */
void TextTable::State::fill(std::string& text, size_t bytes) {
  size_t size = text.size();
  if (size >= bytes) return;
  text.resize(bytes);
  while (size < bytes && !at_end) {
    const size_t count = reader->read_some(text.data() + size, bytes - size);
    at_end = count == 0;
    size += count;
  }
  text.resize(size);
}

/** Whether there is a record behind the head of a file; comments may be long. */
bool TextTable::State::has_record(std::string_view text, size_t head) const {
  RecordReader records(text.substr(head), dialect, name_of(sources[next_source - 1]),
                       count_lines(text.substr(0, head)));
  return records.next();
}

void TextTable::State::read_block(TextBlock& block) {
  block.text.swap(rest);
  size_t head = 0, end = 0;
  for (size_t bytes = kBlockBytes;; bytes *= 2) {
    fill(block.text, bytes);
    const std::string_view text = block.text;
    // Lines that are skipped may have any quotes.
    head = end_of_lines(text, lines == 0 ? byte_order_mark(text) : 0, skip_lines);
    end = text.size();
    if (at_end || bytes > kMostBlockBytes) break;
    end = head + whole_records(text.substr(head), dialect);
    if (end > head && (!header_left || has_record(text.substr(0, end), head))) break;
  }
  rest.assign(block.text, end, std::string::npos);
  block.text.resize(end);
  block.name = name_of(sources[next_source - 1]);
  block.source = next_source - 1;
  block.lines_before = lines;
  block.skip_lines = skip_lines;
  // The lines to skip may be longer than a block.
  skip_lines -= std::min(skip_lines, count_lines(std::string_view(block.text).substr(0, head)));
  block.has_header = header_left && (at_end || head < end);
  if (block.has_header) header_left = false;
  lines += count_lines(block.text);
}

void TextTable::State::skip_head(const TextBlock& block, RecordReader& records) const {
  for (int64_t i = 0; i < block.skip_lines; ++i)
    if (!records.skip_line()) break;
}

/** Finds the columns in the first record of the file. */
void TextTable::State::bind(TextBlock& block) {
  RecordReader records(block.text, dialect, block.name, block.lines_before);
  skip_head(block, records);
  const bool found = records.next();
  TERCEL_CHECK(found || !block.has_header, DataError, printable(block.name),
               ": expected a line with the names of the columns, found ",
               format.skip_lines > 0 ? "no more lines" : "an empty file");
  if (!found) return;
  std::unique_ptr<RowParser> bound = make_row_parser(format, label_column);
  bound->bind(records);
  parser = std::move(bound);
  if (first_width == 0) first_width = parser->num_columns();
  // All further rows must match the first one, in further files too.
  if (!format.header && format.num_columns == 0) format.num_columns = first_width;
}

TextTable::TextTable(TextFormat format, std::vector<TextSource> sources, LabelColumn label)
    : state_(std::make_unique<State>()) {
  TERCEL_ASSERT(format.dense.size() == format.dense_names.size());
  state_->format = std::move(format);
  state_->dialect = dialect_of(state_->format);
  state_->sources = std::move(sources);
  state_->label_column = label;
  // The size of the standard input is unknown.
  for (const TextSource& source : state_->sources)
    if (is_url(source.path)) {
      state_->bytes_total += open_data_file(source.path)->size();
    } else if (source.path != "-") {
      state_->bytes_total += file_size(source.path);
    }
}

TextTable::~TextTable() = default;

bool TextTable::next(TextBlock& block) {
  State& state = *state_;
  bool opened = false;
  while (!opened && state.at_end && state.rest.empty()) {
    if (!state.open_next()) return false;
    opened = true;
  }
  state.read_block(block);
  if (!state.parser) state.bind(block);
  block.parser = state.parser;
  return true;
}

void TextTable::parse(const TextBlock& block, TextRows& rows) const {
  const TextFormat& format = state_->format;
  clear(format, rows);
  if (!block.parser) return;
  RecordReader records(block.text, state_->dialect, block.name, block.lines_before);
  state_->skip_head(block, records);
  if (block.has_header) records.next();
  const std::unique_ptr<RowParser> parser = block.parser->clone();
  while (records.next()) parser->parse(records, rows);
  combine(format, rows);
}

bool TextTable::has_label() const { return state_->parser && state_->parser->has_label(); }
int64_t TextTable::num_columns() const { return state_->first_width; }
int64_t TextTable::bytes_total() const { return state_->bytes_total; }
const std::vector<FileInfo>& TextTable::file_infos() const { return state_->infos; }
const TextFormat& TextTable::format() const { return state_->format; }

int64_t TextTable::bytes_done() const {
  return state_->bytes_before + (state_->reader ? state_->reader->compressed_position() : 0);
}

}  // namespace tercel::data
