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

#include "tercel/util/file_stream.h"
#include "tercel/util/span.h"

namespace tercel::data {

struct TextDialect {
  char delimiter = '\t';
  bool quotes = false;
  bool trim = false;        // blanks and tabs around columns are dropped
  bool skip_blank = false;  // lines with nothing but blanks are no records
};

/** Longest line, and longest record over several lines, in bytes. */
constexpr size_t kMaxLineBytes = size_t{1} << 20;
constexpr size_t kMaxRecordBytes = size_t{4} << 20;

class RecordReader {
 public:
  /** The source must outlive it; errors call it `name`. */
  RecordReader(ByteReader& source, const TextDialect& dialect, std::string name);

  /** False at the end. DataError for a line that is too long and for quotes that are wrong. */
  bool next();
  /** Skips a line without parsing it; false at the end. */
  bool skip_line();
  /** Columns of the record; valid until the next call. */
  Span<std::string_view> columns() const { return columns_; }
  /** Line on which the record starts, from 1. */
  int64_t line() const { return line_; }
  /** DataError "name: line N: column C (label): expected ..., found ..."; columns count from 0 here. */
  [[noreturn]] void fail(size_t column, std::string_view label, std::string_view expected,
                         std::string_view found) const;
  /** The same without a column. */
  [[noreturn]] void fail(std::string_view expected, std::string_view found) const;

 private:
  void split(std::string_view line);
  void split_quoted(std::string_view line);
  std::string_view trimmed(std::string_view text) const;
  bool is_space(char c) const;
  bool is_blank(std::string_view line) const;

  LineReader lines_;
  TextDialect dialect_;
  std::string name_;
  int64_t line_ = 0;
  std::vector<std::string_view> columns_;
  std::string unquoted_;      // columns of a record with quotes, one after the other
  std::vector<size_t> ends_;  // of each of them
};

}  // namespace tercel::data
