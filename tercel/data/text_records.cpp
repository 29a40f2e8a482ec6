#include <algorithm>
#include <cstring>
#include <utility>

#include "tercel/data/text_records_impl.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"

namespace tercel::data {

namespace {

constexpr char kQuote = '"';
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

/** End of the record that starts at `begin` and has a quote in its first line; npos if it goes on behind the text. */
size_t end_of_quoted(std::string_view text, size_t begin, const TextDialect& dialect) {
  const auto skip_blanks = [&](size_t i) {
    while (dialect.trim && i < text.size() && is_space(dialect, text[i])) ++i;
    return i;
  };
  const auto after_line = [&](size_t i) {
    const size_t end = text.find('\n', i);
    return end == std::string_view::npos ? end : end + 1;
  };
  for (size_t i = skip_blanks(begin);; i = skip_blanks(i + 1)) {
    if (i < text.size() && text[i] == kQuote) {
      do {
        i = text.find(kQuote, i + 1);
        if (i == std::string_view::npos || i + 1 == text.size()) return std::string_view::npos;
      } while (text[i + 1] == kQuote && ++i < text.size());
      i = skip_blanks(i + 1);
    } else {
      const char ends[] = {dialect.delimiter, '\n'};
      i = text.find_first_of({ends, sizeof(ends)}, i);
    }
    if (i >= text.size()) return std::string_view::npos;
    if (text[i] != dialect.delimiter) return after_line(i);
  }
}

}  // namespace

size_t byte_order_mark(std::string_view text) { return text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0; }

size_t whole_records(std::string_view text, const TextDialect& dialect) {
  const size_t last = text.rfind('\n');
  if (last == std::string_view::npos) return 0;
  if (!dialect.quotes) return last + 1;
  size_t begin = 0;
  for (;;) {
    const size_t quote = text.find(kQuote, begin);
    if (quote == std::string_view::npos) return last + 1;
    // Lines before the one with the quote are records, or none.
    const size_t before = text.substr(0, quote).rfind('\n');
    const size_t start = before == std::string_view::npos || before < begin ? begin : before + 1;
    const size_t line_end = text.find('\n', start);
    if (line_end == std::string_view::npos) return start;
    std::string_view line = text.substr(start, line_end - start);
    size_t end = line_end + 1;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (is_record(dialect, line)) end = end_of_quoted(text, start, dialect);
    if (end == std::string_view::npos) return start;
    if (end == text.size()) return end;
    begin = end;
  }
}

// A delimiter is never blank: in a table of tabs, empty columns are columns.
bool is_space(const TextDialect& dialect, char c) {
  return (c == ' ' || c == '\t') && (c != dialect.delimiter || dialect.blanks);
}

bool is_record(const TextDialect& dialect, std::string_view& line) {
  if (dialect.blanks) line = line.substr(0, line.find('#'));
  if (!dialect.comment.empty() && line.starts_with(dialect.comment)) return false;
  return !dialect.skip_blank || std::any_of(line.begin(), line.end(), [&](char c) { return !is_space(dialect, c); });
}

RecordReader::RecordReader(std::string_view text, TextDialect dialect, std::string name, int64_t lines_before)
    : rest_(text), dialect_(std::move(dialect)), name_(std::move(name)), lines_(lines_before) {
  if (lines_before == 0) rest_.remove_prefix(byte_order_mark(rest_));
}

std::string_view RecordReader::trimmed(std::string_view text) const {
  if (!dialect_.trim) return text;
  while (!text.empty() && is_space(dialect_, text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(dialect_, text.back())) text.remove_suffix(1);
  return text;
}

bool RecordReader::next_line(std::string_view& line) {
  if (rest_.empty()) return false;
  const void* const found = std::memchr(rest_.data(), '\n', rest_.size());
  const size_t length =
      found != nullptr ? static_cast<size_t>(static_cast<const char*>(found) - rest_.data()) : rest_.size();
  line = rest_.substr(0, length);
  rest_.remove_prefix(std::min(length + 1, rest_.size()));
  // A carriage return before the line feed is not part of the line.
  if (line.ends_with('\r')) line.remove_suffix(1);
  ++lines_;
  TERCEL_CHECK(line.size() <= kMaxLineBytes, DataError, printable(name_), ": line ", lines_, ": expected at most ",
               kMaxLineBytes, " bytes, found ", line.size());
  return true;
}

bool RecordReader::skip_line() {
  std::string_view line;
  return next_line(line);
}

bool RecordReader::next() {
  std::string_view line;
  do {
    if (!next_line(line)) return false;
  } while (!is_record(dialect_, line));
  line_ = lines_;
  has_quotes_ = dialect_.quotes && std::memchr(line.data(), kQuote, line.size()) != nullptr;
  if (dialect_.blanks)
    split_at_blanks(line);
  else if (has_quotes_)
    split_quoted(line);
  else
    split(line);
  return true;
}

void RecordReader::split_at_blanks(std::string_view line) {
  columns_.clear();
  constexpr std::string_view kBlanks = " \t";
  for (size_t begin = line.find_first_not_of(kBlanks); begin != std::string_view::npos;) {
    const size_t end = std::min(line.find_first_of(kBlanks, begin), line.size());
    columns_.push_back(line.substr(begin, end - begin));
    begin = line.find_first_not_of(kBlanks, end);
  }
}

void RecordReader::split(std::string_view line) {
  columns_.clear();
  const char* begin = line.data();
  const char* const end = begin + line.size();
  for (;;) {
    const void* const found =
        begin < end ? std::memchr(begin, dialect_.delimiter, static_cast<size_t>(end - begin)) : nullptr;
    const char* const stop = found != nullptr ? static_cast<const char*>(found) : end;
    columns_.push_back(trimmed({begin, static_cast<size_t>(stop - begin)}));
    if (found == nullptr) return;
    begin = stop + 1;
  }
}

// Parses a record, which may span several lines, in one pass.
void RecordReader::split_quoted(std::string_view line) {
  unquoted_.clear();
  ends_.clear();
  size_t i = 0;
  for (bool more = true; more;) {
    const size_t start = i;
    if (dialect_.trim)
      while (i < line.size() && is_space(dialect_, line[i])) ++i;
    if (i < line.size() && line[i] == kQuote) {
      ++i;
      for (;;) {
        if (i == line.size()) {
          unquoted_ += '\n';
          if (unquoted_.size() > kMaxRecordBytes)
            fail(str_cat({"a record of at most ", kMaxRecordBytes, " bytes"}), "more (is a closing quote missing?)");
          if (!next_line(line)) fail(ends_.size(), {}, "a closing quote", "the end of the file");
          i = 0;
          continue;
        }
        if (line[i] != kQuote) {
          unquoted_ += line[i++];
          continue;
        }
        ++i;
        if (i == line.size() || line[i] != kQuote) break;
        unquoted_ += kQuote;
        ++i;
      }
      if (dialect_.trim)
        while (i < line.size() && is_space(dialect_, line[i])) ++i;
      if (i < line.size() && line[i] != dialect_.delimiter)
        fail(ends_.size(), {}, "the delimiter or the end of the line behind a closing quote",
             "'" + printable(line.substr(i, 1)) + "'");
    } else {
      i = std::min(line.find(dialect_.delimiter, start), line.size());
      unquoted_ += trimmed(line.substr(start, i - start));
    }
    ends_.push_back(unquoted_.size());
    more = i < line.size();
    ++i;
  }
  columns_.clear();
  size_t begin = 0;
  for (const size_t end : ends_) {
    columns_.emplace_back(unquoted_.data() + begin, end - begin);
    begin = end;
  }
}

void RecordReader::fail(size_t column, std::string_view label, std::string_view expected,
                        std::string_view found) const {
  // Without a header, a column's name is its number.
  const std::string text =
      label.empty() || label == std::to_string(column + 1) ? std::string() : " (" + printable(label) + ")";
  throw_error<DataError>(
      {printable(name_), ": line ", line_, ": column ", column + 1, text, ": expected ", expected, ", found ", found});
}

void RecordReader::fail(std::string_view expected, std::string_view found) const {
  throw_error<DataError>({printable(name_), ": line ", line_, ": expected ", expected, ", found ", found});
}

}  // namespace tercel::data
