// Parser of delimited text: records and their columns. Private.
//
// Note [Records]
// A record is a line, whose columns are separated by delimiters. With quotes (RFC 4180), a column may be enclosed in
// double quotes; inside, delimiters and line ends are text, and two quotes are one. A quote elsewhere in a column is
// text. Text need not be UTF-8.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tercel/util/span.h"

namespace tercel::data {

struct TextDialect {
  char delimiter = '\t';
  bool quotes = false;
  bool trim = false;         // blanks and tabs around columns are dropped
  bool skip_blank = false;   // lines with nothing but blanks are no records
  bool blanks = false;       // blanks and tabs, any number, are the delimiter; "#" begins a comment
  std::string comment = {};  // lines that start with it are no records
};

/** Whether blanks around columns include the character. */
bool is_space(const TextDialect& dialect, char c);
/** Whether a line is a record, not a comment or blank. Drops a comment at its end. */
bool is_record(const TextDialect& dialect, std::string_view& line);

/** Bytes of the byte order mark that starts a file, or 0. */
size_t byte_order_mark(std::string_view text);

/**
 * Bytes of the whole records at the beginning of a text that may go on; 0 if there is none. A text that is no valid
 * record ends anywhere behind its first fault.
 */
size_t whole_records(std::string_view text, const TextDialect& dialect);

/** Longest line, and longest record over several lines, in bytes. */
constexpr size_t kMaxLineBytes = size_t{1} << 20;
constexpr size_t kMaxRecordBytes = size_t{4} << 20;

/** Records of a piece of text, in place. */
class RecordReader {
 public:
  /**
   * The text must outlive it; errors call it `name`. `lines_before` lines come before the text; a byte order mark may
   * start it if there are none.
   */
  RecordReader(std::string_view text, TextDialect dialect, std::string name, int64_t lines_before = 0);

  /** False at the end. DataError for a line that is too long and for quotes that are wrong. */
  bool next();
  /** Skips a line without parsing it; false at the end. */
  bool skip_line();
  /** Columns of the record; valid until the next call, or if it has no quotes as long as the text. */
  Span<std::string_view> columns() const { return columns_; }
  /** Whether columns are valid until the next call only. */
  bool has_quotes() const { return has_quotes_; }
  /** Line on which the record starts, from 1. */
  int64_t line() const { return line_; }
  /** DataError "name: line N: column C (label): expected ..., found ..."; columns count from 0 here. */
  [[noreturn]] void fail(size_t column, std::string_view label, std::string_view expected,
                         std::string_view found) const;
  /** The same without a column. */
  [[noreturn]] void fail(std::string_view expected, std::string_view found) const;

 private:
  bool next_line(std::string_view& line);
  void split(std::string_view line);
  void split_at_blanks(std::string_view line);
  void split_quoted(std::string_view line);
  std::string_view trimmed(std::string_view text) const;

  std::string_view rest_;
  TextDialect dialect_;
  std::string name_;
  int64_t lines_;  // so far
  int64_t line_ = 0;
  bool has_quotes_ = false;
  std::vector<std::string_view> columns_;
  std::string unquoted_;      // columns of a record with quotes, one after the other
  std::vector<size_t> ends_;  // of each of them
};

}  // namespace tercel::data
