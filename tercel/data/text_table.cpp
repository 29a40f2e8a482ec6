#include "tercel/data/text_table.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "tercel/data/text_records_impl.h"
#include "tercel/util/error.h"
#include "tercel/util/file_stream.h"
#include "tercel/util/format.h"
#include "tercel/util/suggest.h"

namespace tercel::data {

namespace {

constexpr size_t kNoColumn = std::numeric_limits<size_t>::max();

// Rows are streamed, so decompressed data may have any size.
constexpr int64_t kAnySize = std::numeric_limits<int64_t>::max();

/** A decimal number in the whole text, with a sign, fraction and exponent if need be; "inf" and "nan" are numbers too.
 */
bool parse_number(std::string_view text, double& out) {
  const char* begin = text.data();
  const char* const end = begin + text.size();
  constexpr std::ptrdiff_t kExactDigits = 15;
  if (begin != end && end - begin <= kExactDigits) {
    const bool negative = *begin == '-';
    const char* at = begin + (negative ? 1 : 0);
    int64_t value = 0;
    bool digits = at != end;
    for (; at != end && digits; ++at) {
      digits = *at >= '0' && *at <= '9';
      value = value * 10 + (*at - '0');
    }
    if (digits) {
      out = static_cast<double>(negative ? -value : value);
      return true;
    }
  }
  if (end - begin > 1 && *begin == '+' && begin[1] != '-') ++begin;
  const auto [stop, error] = std::from_chars(begin, end, out);
  return error == std::errc() && stop == end;
}

std::string quoted(std::string_view text) {
  constexpr size_t kShown = 40;
  std::string out = "'" + printable(text.substr(0, kShown));
  return out + (text.size() > kShown ? "...'" : "'");
}

bool contains(const std::vector<std::string>& texts, std::string_view text) {
  return std::find(texts.begin(), texts.end(), text) != texts.end();
}

std::string hint(std::string_view name, Span<std::string_view> header) {
  const std::string_view nearest = nearest_name(name, header);
  return nearest.empty() ? std::string() : "; did you mean " + quoted(nearest) + "?";
}

std::string column_count(size_t count) { return str_cat({count, count == 1 ? " column" : " columns"}); }

}  // namespace

struct TextTable::State {
  TextFormat format;
  std::vector<TextSource> sources;
  LabelColumn label_column;

  size_t next_source = 0;
  std::unique_ptr<GzipReader> reader;
  std::optional<RecordReader> records;
  bool bound = false;  // the present file's columns are known
  size_t width = 0;    // columns of its rows
  size_t label = kNoColumn;
  std::vector<size_t> dense, categorical;

  int64_t rows = 0;
  int64_t first_width = 0;
  int64_t bytes_before = 0;  // of the files that are done
  int64_t bytes_total = 0;
  std::vector<FileInfo> infos;

  const std::string& name_of(const TextSource& source) const { return source.name.empty() ? source.path : source.name; }
  bool open_next();
  void bind_header();
  void bind_numbers(size_t found);
  size_t column_named(const std::string& name, Span<std::string_view> header) const;
  size_t column_numbered(const std::string& name, size_t columns) const;
  void read_row(TextRow& row);
  float read_label(std::string_view text) const;
  double read_dense(std::string_view text, size_t i) const;
};

bool TextTable::State::open_next() {
  if (reader) bytes_before += infos.back().size;
  records.reset();
  reader.reset();
  if (next_source == sources.size()) return false;
  const TextSource& source = sources[next_source++];
  File file = File::open_input(source.path);
  infos.push_back(file.info());
  reader = std::make_unique<GzipReader>(std::move(file), kAnySize);
  const TextDialect dialect{format.delimiter, format.quotes, format.trim, format.skip_blank};
  records.emplace(*reader, dialect, name_of(source));
  for (int64_t i = 0; i < format.skip_lines; ++i)
    if (!records->skip_line()) break;
  bound = false;
  if (format.header) {
    TERCEL_CHECK(records->next(), DataError, printable(name_of(source)),
                 ": expected a line with the names of the columns, found ",
                 format.skip_lines > 0 ? "no more lines" : "an empty file");
    bind_header();
  }
  return true;
}

size_t TextTable::State::column_named(const std::string& name, Span<std::string_view> header) const {
  const auto* const found = std::find(header.begin(), header.end(), name);
  if (found == header.end()) return kNoColumn;
  if (std::find(found + 1, header.end(), name) != header.end())
    records->fail("one column " + quoted(name), "two of that name");
  return static_cast<size_t>(found - header.begin());
}

void TextTable::State::bind_header() {
  const Span<std::string_view> header = records->columns();
  width = header.size();
  const auto require = [&](const std::string& name) {
    const size_t column = column_named(name, header);
    if (column == kNoColumn)
      records->fail("a column " + quoted(name), column_count(header.size()) + " of other names" + hint(name, header));
    return column;
  };
  label = label_column == LabelColumn::Required ? require(format.label) : column_named(format.label, header);
  dense.clear();
  categorical.clear();
  for (const std::string& name : format.dense) dense.push_back(require(name));
  for (const std::string& name : format.categorical) categorical.push_back(require(name));
  bound = true;
}

size_t TextTable::State::column_numbered(const std::string& name, size_t columns) const {
  size_t number = 0;
  const auto [stop, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  TERCEL_CHECK(error == std::errc() && stop == name.data() + name.size() && number >= 1, ConfigError,
               "expected the number of a column, from 1, where the text has no header, found ", quoted(name));
  if (number > columns) records->fail("a column " + name, column_count(columns));
  return number - 1;
}

// The first row determines the number of columns.
void TextTable::State::bind_numbers(size_t found) {
  const size_t wanted = format.num_columns > 0 ? static_cast<size_t>(format.num_columns) : found;
  const bool without_label = label_column == LabelColumn::Optional && found + 1 == wanted;
  if (!without_label && found != wanted) records->fail(column_count(wanted), column_count(found));
  width = found;
  label = column_numbered(format.label, wanted);
  const auto place = [&](const std::string& name) {
    const size_t column = column_numbered(name, wanted);
    return without_label && column > label ? column - 1 : column;
  };
  dense.clear();
  categorical.clear();
  for (const std::string& name : format.dense) dense.push_back(place(name));
  for (const std::string& name : format.categorical) categorical.push_back(place(name));
  if (without_label) label = kNoColumn;
  bound = true;
}

float TextTable::State::read_label(std::string_view text) const {
  if (!format.positive.empty()) {
    if (contains(format.positive, text)) return 1;
    const bool negative = format.negative.empty() ? !text.empty() : contains(format.negative, text);
    if (!negative) {
      records->fail(label, format.label_name, format.negative.empty() ? "a label" : "one of the labels given",
                    text.empty() ? "nothing" : quoted(text));
    }
    return 0;
  }
  double value = 0;
  if (!parse_number(text, value) || (value != 0 && value != 1))
    records->fail(label, format.label_name, "0 or 1", text.empty() ? "nothing" : quoted(text));
  return static_cast<float>(value);
}

double TextTable::State::read_dense(std::string_view text, size_t i) const {
  if (text.empty() || (!format.missing.empty() && contains(format.missing, text)))
    return std::numeric_limits<double>::quiet_NaN();
  double value = 0;
  if (!parse_number(text, value)) [[unlikely]]
    records->fail(dense[i], format.dense_names[i], "a number or nothing", quoted(text));
  // The dataset stores floats.
  if (!(std::abs(value) <= static_cast<double>(std::numeric_limits<float>::max()))) [[unlikely]]
    records->fail(dense[i], format.dense_names[i], "a finite number", quoted(text));
  return value;
}

void TextTable::State::read_row(TextRow& row) {
  const Span<std::string_view> columns = records->columns();
  if (!bound) bind_numbers(columns.size());
  if (columns.size() != width) records->fail(column_count(width), column_count(columns.size()));
  row.label = label == kNoColumn ? 0 : read_label(columns[label]);
  row.dense.resize(dense.size());
  for (size_t i = 0; i < dense.size(); ++i) row.dense[i] = read_dense(columns[dense[i]], i);
  row.categories.resize(categorical.size());
  for (size_t i = 0; i < categorical.size(); ++i) {
    const std::string_view text = columns[categorical[i]];
    row.categories[i] = !format.missing.empty() && contains(format.missing, text) ? std::string_view() : text;
  }
}

TextTable::TextTable(TextFormat format, std::vector<TextSource> sources, LabelColumn label)
    : state_(std::make_unique<State>()) {
  TERCEL_ASSERT(format.dense.size() == format.dense_names.size() &&
                format.categorical.size() == format.categorical_names.size());
  state_->format = std::move(format);
  state_->sources = std::move(sources);
  state_->label_column = label;
  // The size of the standard input is unknown.
  for (const TextSource& source : state_->sources)
    if (source.path != "-") state_->bytes_total += file_size(source.path);
}

TextTable::~TextTable() = default;

bool TextTable::next(TextRow& row) {
  State& state = *state_;
  while (!state.records || !state.records->next())
    if (!state.open_next()) return false;
  state.read_row(row);
  if (state.rows++ == 0) {
    state.first_width = static_cast<int64_t>(state.width);
    // All further rows must match the first one, in further files too.
    if (!state.format.header && state.format.num_columns == 0) state.format.num_columns = state.first_width;
  }
  return true;
}

bool TextTable::has_label() const { return state_->bound && state_->label != kNoColumn; }
int64_t TextTable::rows() const { return state_->rows; }
int64_t TextTable::num_columns() const { return state_->first_width; }
int64_t TextTable::bytes_total() const { return state_->bytes_total; }
const std::vector<FileInfo>& TextTable::file_infos() const { return state_->infos; }

int64_t TextTable::bytes_done() const {
  return state_->bytes_before + (state_->reader ? state_->reader->compressed_position() : 0);
}

}  // namespace tercel::data
