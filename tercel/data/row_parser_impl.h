// Records as rows: columns of a table, or a label and features. Private.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "tercel/data/label_rule_impl.h"
#include "tercel/data/text_format.h"
#include "tercel/data/text_records_impl.h"
#include "tercel/data/text_rows.h"
#include "tercel/data/text_table.h"

namespace tercel::data {

/** The text in quotes, cut if it is long. */
std::string quoted_text(std::string_view text);

/** Parser of the records of one file. */
class RowParser {
 public:
  virtual ~RowParser();

  /** Finds the columns in the first record of the file, a header or a row. */
  virtual void bind(const RecordReader& first) = 0;
  virtual bool has_label() const = 0;
  /** Columns of every row; 0: any number. */
  virtual int64_t num_columns() const = 0;
  /** Appends a row to columns of the format's shape. DataError that names line and column; the row is incomplete then.
   */
  virtual void parse(const RecordReader& record, TextRows& rows) = 0;
  /** A parser of the same file, for another thread. */
  virtual std::unique_ptr<RowParser> clone() const = 0;

 protected:
  RowParser(const TextFormat& format, LabelColumn label)
      : format_(format), label_column_(label), labels_(format.positive, format.negative) {}

  /** Adds the label of a row that has one. */
  void read_label(const RecordReader& record, size_t column, std::string_view text, TextRows& rows) const;
  void add_label(float label, std::string_view text, TextRows& rows) const {
    rows.labels.push_back(label);
    if (!labels_.is_empty()) rows.label_texts.push_back(text);
  }
  /** The weight behind the last colon of `text`, which is cut off; 1 without a colon. */
  static float take_weight(const RecordReader& record, size_t column, std::string_view label, std::string_view& text);
  /** The text for as long as the rows live. */
  static std::string_view kept(const RecordReader& record, std::string_view text, TextRows& rows) {
    if (!record.has_quotes() || text.empty()) return text;
    return rows.texts.emplace_back(text);
  }

  const TextFormat& format_;
  LabelColumn label_column_;
  LabelRule labels_;
};

/** A parser for a file of the format, which must outlive it. */
std::unique_ptr<RowParser> make_row_parser(const TextFormat& format, LabelColumn label);
std::unique_ptr<RowParser> make_feature_parser(const TextFormat& format, LabelColumn label);

/** How lines are divided into columns. */
TextDialect dialect_of(const TextFormat& format);

}  // namespace tercel::data
