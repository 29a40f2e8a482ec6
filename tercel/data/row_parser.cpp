#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "tercel/data/row_parser_impl.h"
#include "tercel/data/text_number_impl.h"
#include "tercel/data/timestamp_impl.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"
#include "tercel/util/suggest.h"

namespace tercel::data {

namespace {

constexpr size_t kNoColumn = std::numeric_limits<size_t>::max();
constexpr double kMostFloat = std::numeric_limits<float>::max();

bool contains(const std::vector<std::string>& texts, std::string_view text) {
  return std::find(texts.begin(), texts.end(), text) != texts.end();
}

std::string hint(std::string_view name, Span<std::string_view> header) {
  const std::string_view nearest = nearest_name(name, header);
  return nearest.empty() ? std::string() : "; did you mean " + quoted_text(nearest) + "?";
}

std::string column_count(size_t count) { return str_cat({count, count == 1 ? " column" : " columns"}); }

std::string_view without_blanks(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

/** Rows of a table with columns. */
class TableParser final : public RowParser {
 public:
  TableParser(const TextFormat& format, LabelColumn label) : RowParser(format, label) {}

  void bind(const RecordReader& first) override {
    if (format_.header)
      bind_header(first);
    else
      bind_numbers(first);
  }
  bool has_label() const override { return label_ != kNoColumn; }
  int64_t num_columns() const override { return static_cast<int64_t>(width_); }
  std::unique_ptr<RowParser> clone() const override { return std::make_unique<TableParser>(*this); }

  void parse(const RecordReader& record, TextRows& rows) override {
    const Span<std::string_view> columns = record.columns();
    if (columns.size() != width_) record.fail(column_count(width_), column_count(columns.size()));
    if (label_ != kNoColumn)
      read_label(record, label_, columns[label_], rows);
    else
      add_label(0, {}, rows);
    for (size_t i = 0; i < dense_.size(); ++i) rows.dense[i].push_back(read_dense(record, columns[dense_[i]], i));
    for (size_t f = 0; f < fields_.size(); ++f) {
      if (fields_[f] == kNoColumn) continue;  // a combination, which follows from the others
      if (plain_[f]) {
        const std::string_view text = columns[fields_[f]];
        rows.fields[f].values.push_back(is_missing(text) ? std::string_view() : kept(record, text, rows));
      } else {
        read_field(record, f, rows);
      }
    }
    if (weight_ != kNoColumn) rows.weights.push_back(read_weight(record, columns[weight_]));
    if (time_ != kNoColumn) read_time(record, columns[time_], rows);
    if (id_ != kNoColumn) rows.ids.push_back(kept(record, columns[id_], rows));
    ++rows.rows;
  }

 private:
  void bind_header(const RecordReader& records);
  void bind_numbers(const RecordReader& records);
  static size_t column_named(const RecordReader& records, const std::string& name);
  static size_t column_numbered(const RecordReader& records, const std::string& name, size_t columns);
  template <class Place>
  void bind_columns(Place place);

  bool is_missing(std::string_view text) const {
    return text.empty() || (!format_.missing.empty() && contains(format_.missing, text));
  }
  double read_dense(const RecordReader& record, std::string_view text, size_t i) const;
  float read_weight(const RecordReader& record, std::string_view text) const;
  void read_field(const RecordReader& record, size_t f, TextRows& rows) const;
  void read_value(const RecordReader& record, size_t f, std::string_view text, TextRows& rows) const;
  std::string_view hex_value(const RecordReader& record, size_t f, std::string_view text, TextRows& rows) const;
  int32_t read_list(const RecordReader& record, size_t f, std::string_view text, TextRows& rows) const;
  void read_time(const RecordReader& record, std::string_view text, TextRows& rows) const;
  Timestamp time_of(const RecordReader& record, size_t column, std::string_view label, std::string_view text) const;

  size_t width_ = 0;
  size_t label_ = kNoColumn, weight_ = kNoColumn, time_ = kNoColumn, id_ = kNoColumn;
  std::vector<size_t> dense_, fields_;
  std::vector<uint8_t> plain_;  // of each field: a column holds its one value
};

size_t TableParser::column_named(const RecordReader& records, const std::string& name) {
  const Span<std::string_view> header = records.columns();
  const auto* const found = std::find(header.begin(), header.end(), name);
  if (found == header.end()) return kNoColumn;
  if (std::find(found + 1, header.end(), name) != header.end())
    records.fail("one column " + quoted_text(name), "two of that name");
  return static_cast<size_t>(found - header.begin());
}

size_t TableParser::column_numbered(const RecordReader& records, const std::string& name, size_t columns) {
  size_t number = 0;
  const auto [stop, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  TERCEL_CHECK(error == std::errc() && stop == name.data() + name.size() && number >= 1, ConfigError,
               "expected the number of a column, from 1, where the text has no header, found ", quoted_text(name));
  if (number > columns) records.fail("a column " + name, column_count(columns));
  return number - 1;
}

template <class Place>
void TableParser::bind_columns(Place place) {
  dense_.clear();
  fields_.clear();
  for (const std::string& name : format_.dense) dense_.push_back(place(name));
  plain_.clear();
  for (const TextField& field : format_.fields) {
    fields_.push_back(field.parents.empty() ? place(field.column) : kNoColumn);
    plain_.push_back(!field.is_list && !field.weighted && field.part == TimePart::None && field.hex_modulo == 0 ? 1
                                                                                                                : 0);
  }
  weight_ = format_.weight_column.empty() ? kNoColumn : place(format_.weight_column);
  // Numbers of columns have several spellings.
  const bool is_other =
      weight_ != kNoColumn && (weight_ == label_ || std::find(dense_.begin(), dense_.end(), weight_) != dense_.end() ||
                               std::find(fields_.begin(), fields_.end(), weight_) != fields_.end());
  TERCEL_CHECK(!is_other, ConfigError, "expected a weight column apart from label, dense and categorical ones, found '",
               printable(format_.weight_column), "'");
  time_ = format_.time_column.empty() ? kNoColumn : place(format_.time_column);
  id_ = format_.id_column.empty() ? kNoColumn : place(format_.id_column);
}

void TableParser::bind_header(const RecordReader& records) {
  const Span<std::string_view> header = records.columns();
  width_ = header.size();
  const auto require = [&](const std::string& name) {
    const size_t column = column_named(records, name);
    if (column == kNoColumn)
      records.fail("a column " + quoted_text(name),
                   column_count(header.size()) + " of other names" + hint(name, header));
    return column;
  };
  label_ = label_column_ == LabelColumn::Required ? require(format_.label) : column_named(records, format_.label);
  bind_columns(require);
}

void TableParser::bind_numbers(const RecordReader& records) {
  const size_t found = records.columns().size();
  const size_t wanted = format_.num_columns > 0 ? static_cast<size_t>(format_.num_columns) : found;
  const bool without_label = label_column_ == LabelColumn::Optional && found + 1 == wanted;
  if (!without_label && found != wanted) records.fail(column_count(wanted), column_count(found));
  width_ = found;
  label_ = column_numbered(records, format_.label, wanted);
  bind_columns([&](const std::string& name) {
    const size_t column = column_numbered(records, name, wanted);
    if (without_label && column == label_) records.fail("column " + name + ", the label's", "text without labels");
    return without_label && column > label_ ? column - 1 : column;
  });
  if (without_label) label_ = kNoColumn;
}

double TableParser::read_dense(const RecordReader& record, std::string_view text, size_t i) const {
  if (is_missing(text)) return std::numeric_limits<double>::quiet_NaN();
  double value = 0;
  if (!parse_number(text, value)) [[unlikely]]
    record.fail(dense_[i], format_.dense_names[i], "a number or nothing", quoted_text(text));
  // The dataset stores floats.
  if (!(std::abs(value) <= kMostFloat)) [[unlikely]]
    record.fail(dense_[i], format_.dense_names[i], "a finite number", quoted_text(text));
  return value;
}

float TableParser::read_weight(const RecordReader& record, std::string_view text) const {
  double weight = 0;
  if (!parse_number(text, weight) || !(weight >= 0 && weight <= kMostFloat))
    record.fail(weight_, format_.weight_column, "a weight, a finite number that is not negative",
                text.empty() ? "nothing" : quoted_text(text));
  return static_cast<float>(weight);
}

Timestamp TableParser::time_of(const RecordReader& record, size_t column, std::string_view label,
                               std::string_view text) const {
  Timestamp time;
  if (!parse_time(text, format_.time_unit, time))
    record.fail(column, label, "a number or a timestamp such as 2024-05-01T12:30:00",
                text.empty() ? "nothing" : quoted_text(text));
  return time;
}

void TableParser::read_time(const RecordReader& record, std::string_view text, TextRows& rows) const {
  double time = 0;
  // Any number: it is compared with another one, and need not be a date.
  if (!parse_number_or_time(text, format_.time_unit, time))
    record.fail(time_, format_.time_column, "a number or a timestamp such as 2024-05-01T12:30:00",
                text.empty() ? "nothing" : quoted_text(text));
  rows.times.push_back(time);
}

void TableParser::read_field(const RecordReader& record, size_t f, TextRows& rows) const {
  const TextField& field = format_.fields[f];
  const std::string_view text = record.columns()[fields_[f]];
  const bool missing = is_missing(text);
  if (field.part != TimePart::None)
    rows.fields[f].values.push_back(
        missing ? std::string_view() : time_part_text(time_of(record, fields_[f], field.column, text), field.part));
  else if (field.is_list)
    rows.fields[f].nnz.push_back(missing ? 0 : read_list(record, f, text, rows));
  else
    read_value(record, f, missing ? std::string_view() : text, rows);
}

void TableParser::read_value(const RecordReader& record, size_t f, std::string_view text, TextRows& rows) const {
  const TextField& field = format_.fields[f];
  if (field.weighted) rows.fields[f].weights.push_back(take_weight(record, fields_[f], field.name, text));
  rows.fields[f].values.push_back(field.hex_modulo > 0 && !text.empty() ? hex_value(record, f, text, rows)
                                                                        : kept(record, text, rows));
}

/** The number mod hex_modulo in decimal digits. */
std::string_view TableParser::hex_value(const RecordReader& record, size_t f, std::string_view text,
                                        TextRows& rows) const {
  uint64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc() || stop != text.data() + text.size())
    record.fail(fields_[f], format_.fields[f].name, "a hexadecimal number of at most 16 digits", quoted_text(text));
  return rows.texts.emplace_back(std::to_string(value % static_cast<uint64_t>(format_.fields[f].hex_modulo)));
}

int32_t TableParser::read_list(const RecordReader& record, size_t f, std::string_view text, TextRows& rows) const {
  const TextField& field = format_.fields[f];
  int32_t count = 0;
  for (size_t start = 0; start <= text.size();) {
    const size_t end = std::min(text.find(field.separator, start), text.size());
    std::string_view value = text.substr(start, end - start);
    start = end + field.separator.size();
    if (format_.trim) value = without_blanks(value);
    if (is_missing(value)) continue;
    if (field.max_hotness > 0 && count == field.max_hotness) {
      ++rows.cut;
      continue;
    }
    read_value(record, f, value, rows);
    ++count;
  }
  return count;
}

}  // namespace

RowParser::~RowParser() = default;

std::string quoted_text(std::string_view text) {
  constexpr size_t kShown = 40;
  std::string out = "'" + printable(text.substr(0, kShown));
  return out + (text.size() > kShown ? "...'" : "'");
}

void RowParser::read_label(const RecordReader& record, size_t column, std::string_view text, TextRows& rows) const {
  const auto found = [&] { return text.empty() ? std::string("nothing") : quoted_text(text); };
  if (!labels_.is_empty()) {
    switch (labels_.of(text)) {
      case LabelRule::Meaning::One: add_label(1, kept(record, text, rows), rows); return;
      case LabelRule::Meaning::Zero: add_label(0, kept(record, text, rows), rows); return;
      case LabelRule::Meaning::NoNumber: record.fail(column, format_.label_name, "a number", found());
      case LabelRule::Meaning::Unknown:
        record.fail(column, format_.label_name, format_.negative.empty() ? "a label" : "one of the labels given",
                    found());
    }
  }
  double value = 0;
  const bool is_number = parse_number(text, value);
  const bool minus_one = format_.kind != TextKind::Table && value == -1;
  if (!is_number || (value != 0 && value != 1 && !minus_one))
    record.fail(column, format_.label_name, format_.kind == TextKind::Table ? "0 or 1" : "0, 1 or -1", found());
  add_label(value == 1 ? 1.0F : 0.0F, {}, rows);
}

float RowParser::take_weight(const RecordReader& record, size_t column, std::string_view label,
                             std::string_view& text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return 1;
  double weight = 0;
  if (!parse_number(text.substr(colon + 1), weight) || !(std::abs(weight) <= kMostFloat))
    record.fail(column, label, "a finite number as the weight behind ':'", quoted_text(text));
  if (colon == 0) record.fail(column, label, "a value before the weight", quoted_text(text));
  text = text.substr(0, colon);
  return static_cast<float>(weight);
}

std::unique_ptr<RowParser> make_row_parser(const TextFormat& format, LabelColumn label) {
  if (format.kind != TextKind::Table) return make_feature_parser(format, label);
  return std::make_unique<TableParser>(format, label);
}

TextDialect dialect_of(const TextFormat& format) {
  TextDialect dialect;
  dialect.delimiter = format.delimiter;
  dialect.quotes = format.quotes;
  dialect.trim = format.trim;
  dialect.skip_blank = format.skip_blank;
  dialect.comment = format.comment;
  dialect.blanks = format.kind != TextKind::Table;
  return dialect;
}

}  // namespace tercel::data
